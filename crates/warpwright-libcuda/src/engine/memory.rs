//! The allocations of a device, by address. Addresses are never reused.

use super::{Pool, status};
use crate::lock;
use crate::report::calls::{self, Call};
use crate::types::{CUcontext, Result, Status};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use warpwright_vm::{Buffer, Device};

/// An allocation of the client.
pub(crate) struct Block {
    buffer: Buffer<u8>,
    pub(crate) kind: BlockKind,
    /// Its unique number in the process.
    pub(crate) id: u64,
    pub(crate) context: u64,
    pub(crate) context_handle: CUcontext,
    /// The call that made it.
    pub(crate) made_by: Call,
    /// Whether copies of it are always synchronous: an attribute of the client, without effect.
    pub(crate) sync_operations: AtomicBool,
    /// It was freed in the order of a stream, which has not executed that yet.
    is_freed: AtomicBool,
    /// The stream has executed the free.
    is_gone: Arc<AtomicBool>,
}

/// How it was allocated.
#[derive(Clone)]
pub(crate) enum BlockKind {
    /// Immediately.
    Plain,
    /// In the order of a stream, from a pool.
    Pooled(Arc<Pool>),
}

impl Block {
    /// Where it begins.
    pub(crate) fn base(&self) -> u64 {
        self.buffer.address()
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> u64 {
        self.buffer.len() as u64
    }
}

impl warpwright_device::Release for Block {
    /// Releases an allocation that was taken back. A stream may free memory of another device.
    fn release(&self) {
        self.is_gone.store(true, Relaxed);
        // There are none where the process has been forked.
        let engines = super::engines().unwrap_or_default();
        engines.iter().any(|engine| engine.memory.forget(self));
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
            pool.take(bytes);
        }
        let block = Arc::new(Block {
            buffer,
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
            Some(block) if block.is_freed.load(Relaxed) => Err(Status::INVALID_VALUE),
            block => Ok(block.map(|block| block.is_gone.clone())),
        }
    }

    /// Takes back the allocation at an address, once. It exists until it is released.
    pub(crate) fn take(&self, address: u64) -> Result<Arc<Block>> {
        let block = lock(&self.blocks).get(&address).cloned().ok_or(Status::INVALID_VALUE)?;
        if block.is_freed.swap(true, Relaxed) { Err(Status::INVALID_VALUE) } else { Ok(block) }
    }

    /// Bytes that were taken back and not released yet.
    fn going(&self) -> u64 {
        let blocks = lock(&self.blocks);
        let gone = blocks.values().filter(|block| block.is_freed.load(Relaxed));
        gone.map(|block| block.bytes()).sum()
    }

    /// Whether there may be room for that many bytes once all operations are complete. If not, waiting is pointless,
    /// and might be for something that only the waiting thread causes.
    pub(crate) fn may_have_room(&self, vm: &Device, bytes: u64) -> bool {
        let going = self.going();
        going > 0 && bytes <= vm.free_memory().saturating_add(going)
    }

    /// Removes an allocation. Returns whether it was of this device.
    fn forget(&self, block: &Block) -> bool {
        let removed = lock(&self.blocks).remove(&block.base());
        if let Some(block) = &removed
            && let BlockKind::Pooled(pool) = &block.kind
        {
            pool.give_back(block.bytes());
        }
        removed.is_some()
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
        lock(&self.blocks).values().filter(|block| !block.is_freed.load(Relaxed)).cloned().collect()
    }
}
