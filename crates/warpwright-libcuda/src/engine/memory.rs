//! The allocations of a device, by address. Addresses are never reused.
//!
//! An allocation of a graph has its address from the creation of its node on, and memory only between its node and the
//! free. It is among the allocations all that time.

use super::{Engine, Pool, Usage, explain_free, status};
use crate::lock;
use crate::report::calls::{self, Call};
use crate::report::log;
use crate::types::{CUcontext, CUdevice, Result, Status};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use warpwright_device::{Failure, Op};
use warpwright_vm::{Buffer, Device, Placeholder, Span};

/// An allocation of the client.
pub(crate) struct Block {
    place: Backing,
    pub(crate) kind: BlockKind,
    /// Its unique number in the process.
    pub(crate) id: u64,
    pub(crate) context: u64,
    pub(crate) context_handle: CUcontext,
    /// The call that made it.
    pub(crate) made_by: Call,
    /// Whether copies of it are always synchronous: an attribute of the client, without effect.
    pub(crate) sync_operations: AtomicBool,
    /// It was freed in the order of a stream, which has not executed that yet; or it is a graph's that no launch has
    /// allocated.
    is_freed: AtomicBool,
    /// The stream has executed the free, or the graph has not executed its allocation.
    is_gone: Arc<AtomicBool>,
}

/// Where its memory is.
enum Backing {
    /// It has it as long as it exists.
    Own(Buffer<u8>),
    /// It has it at times.
    OfGraph(GraphPlace),
}

/// The addresses of a graph's allocation.
struct GraphPlace {
    reserved: Placeholder,
    /// The graph of its node.
    graph: u64,
    /// Whether that exists, or what was made from it.
    is_owned: AtomicBool,
    freer: Mutex<Freer>,
}

/// Which graphs have a node that frees an allocation of a graph.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Freer {
    Nobody,
    Own,
    Others,
}

/// How it was allocated.
#[derive(Clone)]
pub(crate) enum BlockKind {
    /// Immediately.
    Plain,
    /// In the order of a stream, from a pool.
    Pooled(Arc<Pool>),
    /// By a node of a graph.
    OfGraph,
}

impl Block {
    /// Where it begins.
    pub(crate) fn base(&self) -> u64 {
        match &self.place {
            Backing::Own(buffer) => buffer.address(),
            Backing::OfGraph(place) => place.reserved.address(),
        }
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.place {
            Backing::Own(buffer) => buffer.len() as u64,
            Backing::OfGraph(place) => place.reserved.bytes(),
        }
    }

    /// Whether it is allocated, as far as calls have said: by them and by the launches of graphs, less what was freed.
    pub(crate) fn is_allocated(&self) -> bool {
        !self.is_freed.load(Relaxed)
    }

    fn of_graph(&self) -> Option<&GraphPlace> {
        match &self.place {
            Backing::Own(_) => None,
            Backing::OfGraph(place) => Some(place),
        }
    }

    /// A graph gets a node that frees it: the graph that has it, once, or else others.
    pub(crate) fn will_be_freed_by(&self, graph: u64) -> Result<()> {
        let place = self.of_graph().ok_or_else(|| {
            log::misuse(&"a graph frees what graphs have allocated, and nothing else");
            Status::INVALID_VALUE
        })?;
        let mut freer = lock(&place.freer);
        let new = if place.graph == graph { Freer::Own } else { Freer::Others };
        if *freer == Freer::Own || *freer == Freer::Others && new == Freer::Own {
            log::misuse(&format_args!(
                "another node of a graph frees the allocation at {:#x} already",
                self.base()
            ));
            return Err(Status::INVALID_VALUE);
        }
        *freer = new;
        Ok(())
    }

    /// Takes it back. Returns whether it was allocated.
    pub(crate) fn take(&self) -> bool {
        !self.is_freed.swap(true, Relaxed)
    }

    /// Notes what a launch of a graph leaves behind: whether the allocation is there afterwards.
    pub(crate) fn set_allocated(&self, is_allocated: bool) {
        self.is_freed.store(!is_allocated, Relaxed);
    }
}

/// An allocation of a graph, as the graph and its executable graph hold it. With the last clone of its `Arc` the address
/// goes, or with the memory if that is there still.
pub(crate) struct GraphMemory {
    pub(crate) block: Arc<Block>,
    engine: Arc<Engine>,
}

impl GraphMemory {
    /// A new one, without memory.
    pub(crate) fn create(
        engine: &Arc<Engine>,
        graph: u64,
        bytes: u64,
        context: (u64, CUcontext),
    ) -> Result<Arc<GraphMemory>> {
        if bytes == 0 {
            return Err(Status::INVALID_VALUE);
        }
        let (id, made_by) = (next_id(), calls::current());
        let name = format!("allocation {id} of a graph ({made_by})");
        let reserved = engine.vm().placeholder(&name, bytes).map_err(|error| status(&error))?;
        let (is_owned, freer) = (AtomicBool::new(true), Mutex::new(Freer::Nobody));
        let block = Arc::new(Block {
            place: Backing::OfGraph(GraphPlace { reserved, graph, is_owned, freer }),
            kind: BlockKind::OfGraph,
            id,
            context: context.0,
            context_handle: context.1,
            made_by,
            sync_operations: AtomicBool::new(false),
            is_freed: AtomicBool::new(true),
            is_gone: Arc::new(AtomicBool::new(true)),
        });
        lock(&engine.memory.blocks).insert(block.base(), block.clone());
        Ok(Arc::new(GraphMemory { block, engine: engine.clone() }))
    }

    /// Its device.
    pub(crate) fn device(&self) -> CUdevice {
        self.engine.ordinal
    }
}

impl warpwright_device::Decide for GraphMemory {
    /// The node's turn: from here on there is memory.
    fn decide(self: Arc<Self>) -> warpwright_device::Result<Op> {
        let Some(place) = self.block.of_graph() else { return Ok(Op::Nothing) };
        place.reserved.commit().map_err(|error| Failure::of_device("an allocation of a graph", &error))?;
        if self.block.is_gone.swap(false, Relaxed) {
            self.engine.memory.graphs.take(self.block.bytes());
        }
        Ok(Op::Nothing)
    }
}

impl Drop for GraphMemory {
    fn drop(&mut self) {
        self.engine.memory.disown(&self.block);
    }
}

impl warpwright_device::Release for Block {
    /// Releases an allocation that was taken back. A stream may free memory of another device.
    fn release(&self) {
        let was_gone = self.is_gone.swap(true, Relaxed);
        // There are none where the process has been forked.
        let engines = super::engines().unwrap_or_default();
        engines.iter().any(|engine| engine.memory.forget(self, was_gone));
    }
}

/// A new number for an allocation.
pub(super) fn next_id() -> u64 {
    static IDS: AtomicU64 = AtomicU64::new(1);
    IDS.fetch_add(1, Relaxed)
}

/// The allocations of a device.
#[derive(Default)]
pub(crate) struct Memory {
    blocks: Mutex<BTreeMap<u64, Arc<Block>>>,
    /// What graphs have allocated.
    pub(crate) graphs: Usage,
}

impl Memory {
    /// Allocates at least one byte for a context.
    pub(crate) fn allocate(
        &self,
        vm: &Device,
        bytes: u64,
        kind: BlockKind,
        context: (u64, CUcontext),
    ) -> Result<Arc<Block>> {
        if bytes == 0 {
            return Err(Status::INVALID_VALUE);
        }
        let len = usize::try_from(bytes).map_err(|_| Status::OUT_OF_MEMORY)?;
        let id = next_id();
        let made_by = calls::current();
        let name = format!("allocation {id} ({made_by})");
        let buffer = vm.alloc_named::<u8>(&name, len).map_err(|error| status(&error))?;
        if let BlockKind::Pooled(pool) = &kind {
            pool.usage.take(bytes);
        }
        let block = Arc::new(Block {
            place: Backing::Own(buffer),
            kind,
            id,
            context: context.0,
            context_handle: context.1,
            made_by,
            sync_operations: AtomicBool::new(false),
            is_freed: AtomicBool::new(false),
            is_gone: Arc::default(),
        });
        lock(&self.blocks).insert(block.base(), block.clone());
        Ok(block)
    }

    /// The allocation that contains an address.
    pub(crate) fn find(&self, address: u64) -> Option<Arc<Block>> {
        let blocks = lock(&self.blocks);
        let (_, block) = blocks.range(..=address).next_back()?;
        (address - block.base() < block.bytes()).then(|| block.clone())
    }

    /// The flag that says whether the memory at an address was released; an error if it was freed. Variables are never
    /// freed.
    pub(super) fn is_gone(&self, address: u64) -> Result<Option<Arc<AtomicBool>>> {
        match self.find(address) {
            Some(block) if !block.is_allocated() => Err(Status::INVALID_VALUE),
            block => Ok(block.map(|block| block.is_gone.clone())),
        }
    }

    /// The bytes of a graph's allocation at an address, and the flag that says whether they have memory; `None` if no graph
    /// has that address. Nodes refer to memory that is not there yet.
    pub(super) fn of_graph(&self, address: u64, bytes: u64) -> Option<Result<(Span, Arc<AtomicBool>)>> {
        let block = self.find(address)?;
        let span = block.of_graph()?.reserved.span(address - block.base(), bytes);
        Some(span.map(|span| (span, block.is_gone.clone())).ok_or(Status::INVALID_VALUE))
    }

    /// Takes back the allocation at an address, once. It exists until it is released.
    pub(crate) fn take(&self, address: u64) -> Result<Arc<Block>> {
        let block = lock(&self.blocks).get(&address).cloned();
        block.filter(|block| block.take()).ok_or_else(|| {
            explain_free(address);
            Status::INVALID_VALUE
        })
    }

    /// Bytes that were taken back and not released yet.
    fn going(&self) -> u64 {
        let blocks = lock(&self.blocks);
        let going = |block: &&Arc<Block>| !block.is_allocated() && !block.is_gone.load(Relaxed);
        blocks.values().filter(going).map(|block| block.bytes()).sum()
    }

    /// Whether there may be room for that many bytes once all operations are complete. If not, waiting is pointless,
    /// and might be for something that only the waiting thread causes.
    pub(crate) fn may_have_room(&self, vm: &Device, bytes: u64) -> bool {
        let going = self.going();
        going > 0 && bytes <= vm.free_memory().saturating_add(going)
    }

    /// Removes an allocation. Returns whether it was of this device. That of a graph goes with the graph.
    fn forget(&self, block: &Block, was_gone: bool) -> bool {
        let mut blocks = lock(&self.blocks);
        if let Some(place) = block.of_graph() {
            let is_here = blocks.contains_key(&block.base());
            if is_here && !was_gone {
                place.reserved.decommit();
                self.graphs.give_back(block.bytes());
            }
            let is_owned = place.is_owned.load(Relaxed);
            let removed = if is_owned { None } else { blocks.remove(&block.base()) };
            drop(blocks);
            drop(removed);
            return is_here;
        }
        let removed = blocks.remove(&block.base());
        drop(blocks);
        if let Some(block) = &removed
            && let BlockKind::Pooled(pool) = &block.kind
        {
            pool.usage.give_back(block.bytes());
        }
        removed.is_some()
    }

    /// The graph of an allocation is gone.
    fn disown(&self, block: &Block) {
        let mut blocks = lock(&self.blocks);
        if let Some(place) = block.of_graph() {
            place.is_owned.store(false, Relaxed);
        }
        let is_over = !block.is_allocated() && block.is_gone.load(Relaxed);
        let removed = if is_over { blocks.remove(&block.base()) } else { None };
        drop(blocks);
        drop(removed);
    }

    /// Releases all allocations of a context.
    pub(super) fn release(&self, context: u64) {
        // Pools belong to the device.
        let is_its = |block: &Block| block.context == context && matches!(block.kind, BlockKind::Plain);
        let mut blocks = lock(&self.blocks);
        let (gone, kept) = std::mem::take(&mut *blocks).into_iter().partition(|(_, block)| is_its(block));
        *blocks = kept;
        drop(blocks);
        drop::<BTreeMap<u64, Arc<Block>>>(gone);
    }

    /// The live allocations.
    pub(crate) fn alive(&self) -> Vec<Arc<Block>> {
        lock(&self.blocks).values().filter(|block| block.is_allocated()).cloned().collect()
    }
}
