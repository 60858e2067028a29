//! Host memory that devices know: pinned, registered and managed memory.
//!
//! It has the same address on all devices as on the host. It is mapped into active devices, and into others when they
//! start.
//!
//! Operations may still hold memory that devices no longer know. Our own memory lives as long as they do; the client's
//! is returned to it when no operation can access it any more.

use super::pages::{Pages, is_there};
use super::{Engine, engines, memory, status};
use crate::lock;
use crate::report::calls::{self, Call};
use crate::types::{CUcontext, Result, Status};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex};
use warpwright_vm::{Buffer, Span};

/// Words that devices know, with their owner. Slices of them borrow this; an operation that keeps them, also on a
/// device, keeps this.
struct Words {
    first: usize,
    count: usize,
    owner: Owner,
}

enum Owner {
    /// Pages of our own.
    Pages(#[expect(dead_code, reason = "it is dropped with the words")] Pages),
    /// The client.
    Client,
}

impl Words {
    /// The first `bytes` bytes of new pages.
    fn new(bytes: usize) -> Result<Self> {
        let pages = Pages::new(bytes)?;
        Ok(Words { first: pages.first(), count: bytes.div_ceil(4), owner: Owner::Pages(pages) })
    }

    /// Memory of the client: all words of which it has a byte, since it may begin and end within a word.
    ///
    /// # Safety
    ///
    /// The memory exists, in whole pages, and only the processor protects it: the client has promised that it stays
    /// until the last owner of this is dropped.
    unsafe fn of_client(memory: *mut c_void, bytes: usize) -> Self {
        let address = memory.expose_provenance();
        let first = address & !3;
        Words { first, count: (address + bytes - first).div_ceil(4), owner: Owner::Client }
    }
}

impl AsRef<[AtomicU32]> for Words {
    fn as_ref(&self) -> &[AtomicU32] {
        let first = std::ptr::with_exposed_provenance::<AtomicU32>(self.first);
        // SAFETY: that many words are mapped there and aligned. They stay until this is dropped, which the slice
        // borrows: pages are unmapped then, and for other memory `of_client` was promised it.
        unsafe { std::slice::from_raw_parts(first, self.count) }
    }
}

/// Host memory that devices know.
pub(crate) struct HostMemory {
    /// Where it begins, and its size in bytes.
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    pub(crate) kind: HostKind,
    /// As the client gave them.
    pub(crate) flags: u32,
    /// A number that no other allocation of the process ever has.
    pub(crate) id: u64,
    pub(crate) context: u64,
    pub(crate) context_handle: CUcontext,
    /// Where it was allocated.
    pub(crate) device: i32,
    /// The name of the managed variable that it is, which its module frees.
    pub(crate) variable: Option<String>,
    /// The call that made it.
    pub(crate) made_by: Call,
    pub(crate) sync_operations: AtomicBool,
    maps: Mutex<Vec<(i32, Buffer<u8>)>>,
    words: Arc<Words>,
}

/// The kind of host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostKind {
    /// Allocated pinned memory.
    Pinned,
    /// The client's own memory, registered.
    Registered,
    /// Managed memory, shared by host and devices.
    Managed,
}

impl HostMemory {
    fn map_into(&self, engine: &Engine) -> Result<()> {
        let name = match &self.variable {
            Some(name) => name.clone(),
            None => format!("{} memory {} ({})", self.kind.name(), self.id, self.made_by),
        };
        let mut maps = lock(&self.maps);
        if maps.iter().all(|(ordinal, _)| *ordinal != engine.ordinal) {
            // Memory of the client begins and ends within words.
            let bytes = match self.words.owner {
                Owner::Pages(_) => self.bytes,
                Owner::Client => 4 * self.words.count as u64,
            };
            let map =
                engine.vm().map_host(self.words.clone(), bytes, &name).map_err(|error| status(&error))?;
            maps.push((engine.ordinal, map));
        }
        Ok(())
    }

    /// Its bytes, as any device has them.
    pub(super) fn span(&self, address: u64, bytes: u64) -> Result<Span> {
        let end = address.checked_add(bytes).ok_or(Status::INVALID_VALUE)?;
        if address < self.base || end > self.base + self.bytes {
            return Err(Status::INVALID_VALUE);
        }
        let maps = lock(&self.maps);
        let (ordinal, _) = maps.first().ok_or(Status::INVALID_VALUE)?;
        let engines = engines()?;
        let engine = engines.iter().find(|engine| engine.ordinal == *ordinal).ok_or(Status::INVALID_VALUE)?;
        engine.vm().span(address, bytes).map_err(|error| status(&error))
    }

    fn end(&self) -> u64 {
        self.base + self.bytes
    }
}

impl HostKind {
    fn name(self) -> &'static str {
        match self {
            HostKind::Pinned => "pinned",
            HostKind::Registered => "registered",
            HostKind::Managed => "managed",
        }
    }
}

/// The host memory that devices know, by address.
pub(crate) struct Hosts {
    pieces: Mutex<BTreeMap<u64, Arc<HostMemory>>>,
}

/// That of the process.
pub(crate) fn hosts() -> &'static Hosts {
    static HOSTS: Hosts = Hosts { pieces: Mutex::new(BTreeMap::new()) };
    &HOSTS
}

/// The owner of an allocation: the context's number and handle, and the device.
#[derive(Clone, Copy)]
pub(crate) struct Asker {
    pub(crate) context: u64,
    pub(crate) context_handle: CUcontext,
    pub(crate) device: i32,
}

impl Hosts {
    /// The memory that contains an address.
    pub(crate) fn find(&self, address: u64) -> Option<Arc<HostMemory>> {
        let pieces = lock(&self.pieces);
        let (_, piece) = pieces.range(..=address).next_back()?;
        (address < piece.end()).then(|| piece.clone())
    }

    /// Whether it contains some of these bytes.
    pub(crate) fn touches(&self, address: u64, bytes: u64) -> bool {
        let end = address.saturating_add(bytes.max(1));
        let pieces = lock(&self.pieces);
        pieces.range(..end).next_back().is_some_and(|(_, piece)| piece.end() > address)
    }

    /// Allocates memory, zero and at the beginning of a page.
    pub(crate) fn allocate(&self, bytes: u64, kind: HostKind, flags: u32, asker: Asker) -> Result<u64> {
        let size = usize::try_from(bytes).ok().filter(|size| *size > 0).ok_or(Status::INVALID_VALUE)?;
        let words = Words::new(size)?;
        self.insert((words.first as u64, bytes), kind, flags, asker, None, words)
    }

    /// Memory for a managed variable, zero.
    pub(crate) fn variable(&self, name: &str, bytes: u64, asker: Asker) -> Result<ManagedVariable> {
        const OF_ALL: u32 = 1;
        let size = usize::try_from(bytes).map_err(|_| Status::OUT_OF_MEMORY)?;
        let words = Words::new(size)?;
        let (address, kind) = (words.first as u64, HostKind::Managed);
        self.insert((address, bytes), kind, OF_ALL, asker, Some(name.to_owned()), words)?;
        Ok(ManagedVariable { address, bytes })
    }

    /// Registers memory of the client.
    ///
    /// # Safety
    ///
    /// It must exist until it is [freed](Self::free) and the operations that use it are complete.
    pub(crate) unsafe fn register(
        &self,
        memory: *mut c_void,
        bytes: usize,
        flags: u32,
        asker: Asker,
    ) -> Result<()> {
        let address = memory.addr() as u64;
        if address == 0 || bytes == 0 || address.checked_add(bytes as u64).is_none() {
            return Err(Status::INVALID_VALUE);
        }
        if self.touches(address, bytes as u64) {
            return Err(Status::HOST_MEMORY_ALREADY_REGISTERED);
        }
        if !is_there(address, bytes as u64) {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: it was found to be there, which it is by whole pages, and the caller says that it stays.
        let words = unsafe { Words::of_client(memory, bytes) };
        self.insert((address, bytes as u64), HostKind::Registered, flags, asker, None, words).map(drop)
    }

    fn insert(
        &self,
        (address, bytes): (u64, u64),
        kind: HostKind,
        flags: u32,
        asker: Asker,
        variable: Option<String>,
        words: Words,
    ) -> Result<u64> {
        let memory = Arc::new(HostMemory {
            base: address,
            bytes,
            kind,
            flags,
            id: memory::next_id(),
            context: asker.context,
            context_handle: asker.context_handle,
            device: asker.device,
            variable,
            made_by: calls::current(),
            sync_operations: AtomicBool::new(false),
            maps: Mutex::default(),
            words: Arc::new(words),
        });
        // First the one and then the other: a device that begins to work meanwhile does it the other way round.
        lock(&self.pieces).insert(memory.base, memory.clone());
        let mapped =
            engines().and_then(|engines| engines.iter().try_for_each(|engine| memory.map_into(engine)));
        if let Err(status) = mapped {
            lock(&self.pieces).remove(&memory.base);
            lock(&memory.maps).clear();
            return Err(status);
        }
        Ok(address)
    }

    /// Frees the memory of that kind at an address, after waiting for the devices.
    pub(crate) fn free(&self, address: u64, kind: HostKind) -> Result<()> {
        let is_it = |piece: &Arc<HostMemory>| piece.kind == kind && piece.variable.is_none();
        if !lock(&self.pieces).get(&address).is_some_and(is_it) {
            return Err(Status::INVALID_VALUE);
        }
        let engines = engines()?;
        engines.iter().for_each(|engine| engine.drain());
        // Another thread may have been faster.
        let piece = lock(&self.pieces).remove(&address).ok_or(Status::INVALID_VALUE)?;
        lock(&piece.maps).clear();
        // A launch that began in between may have known it.
        engines.iter().for_each(|engine| engine.drain());
        Ok(())
    }

    /// Maps all of it into a device that starts.
    pub(crate) fn map_into(&self, engine: &Engine) -> Result<()> {
        self.alive().iter().try_for_each(|piece| piece.map_into(engine))
    }

    /// Frees the memory of a destroyed context. The devices have been waited for.
    pub(super) fn release(&self, context: u64) {
        let is_its = |piece: &&Arc<HostMemory>| piece.context == context && piece.variable.is_none();
        for piece in self.alive().iter().filter(is_its) {
            // Another thread may have freed it.
            let _ = self.free(piece.base, piece.kind);
        }
    }

    /// The live allocations and registrations.
    pub(crate) fn alive(&self) -> Vec<Arc<HostMemory>> {
        lock(&self.pieces).values().cloned().collect()
    }
}

/// A managed variable: host and devices have it as long as this exists, and launches that know it as long as they run.
#[derive(Debug)]
pub(crate) struct ManagedVariable {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
}

impl Drop for ManagedVariable {
    fn drop(&mut self) {
        let piece = lock(&hosts().pieces).remove(&self.address);
        if let Some(piece) = piece {
            lock(&piece.maps).clear();
        }
    }
}
