//! Memory of the host that devices know: pinned, registered and managed memory.
//!
//! All devices have it at the address that it has for the host. It is mapped into those that work, and into others when
//! they begin to.
//!
//! What devices no longer know may still be held by operations; ours stays as long as they do, and what is the client's
//! own is given back when nothing reaches it any more.

use super::{Engine, engines, memory, status};
use crate::report::calls::{self, Call};
use crate::types::{CUcontext, Result, Status};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use warpwright_vm::{Buffer, Span};

/// What memory begins and ends with.
const PAGE: usize = 4096;

unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        length: usize,
        access: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut c_void;
    fn munmap(at: *mut c_void, length: usize) -> c_int;
    fn msync(at: *mut c_void, length: usize, flags: c_int) -> c_int;
}

/// Whole pages of the process's own, which are zero and take memory when they are touched.
struct Pages {
    address: usize,
    bytes: usize,
}

impl Pages {
    fn new(bytes: usize) -> Result<Self> {
        const READ_AND_WRITE: c_int = 3;
        const PRIVATE_AND_ANONYMOUS: c_int = 0x22;
        let bytes = bytes.checked_next_multiple_of(PAGE).ok_or(Status::OUT_OF_MEMORY)?;
        // SAFETY: new pages, wherever there is room.
        let pointer =
            unsafe { mmap(std::ptr::null_mut(), bytes, READ_AND_WRITE, PRIVATE_AND_ANONYMOUS, -1, 0) };
        let failed = std::ptr::without_provenance_mut(usize::MAX);
        if pointer == failed || pointer.is_null() {
            return Err(Status::OUT_OF_MEMORY);
        }
        Ok(Pages { address: pointer.expose_provenance(), bytes })
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the pages that were mapped above. Nothing holds words in them: launches that may have known them were
        // waited for before the client's handle of them went, and operations hold what holds this.
        unsafe { munmap(std::ptr::with_exposed_provenance_mut(self.address), self.bytes) };
    }
}

/// Memory of the host that devices know.
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
    /// The call that made it.
    pub(crate) made_by: Call,
    pub(crate) sync_operations: AtomicBool,
    maps: Mutex<Vec<(i32, Buffer<u8>)>>,
    words: &'static [AtomicU32],
    /// What it is in, where it is not the client's. Behind the maps, so that it goes after them.
    _pages: Option<Pages>,
}

/// How it came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostKind {
    /// Pinned memory that was allocated.
    Pinned,
    /// The client's own, which it has registered.
    Registered,
    /// Memory that host and devices share.
    Managed,
}

impl HostMemory {
    fn maps(&self) -> MutexGuard<'_, Vec<(i32, Buffer<u8>)>> {
        self.maps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn map_into(&self, engine: &Engine) -> Result<()> {
        let name = format!("{} memory {} ({})", self.kind.name(), self.id, self.made_by);
        let mut maps = self.maps();
        if maps.iter().all(|(ordinal, _)| *ordinal != engine.ordinal()) {
            let bytes = size_of_val(self.words) as u64;
            let map = engine.vm().map_host(self.words, bytes, &name).map_err(|error| status(&error))?;
            maps.push((engine.ordinal(), map));
        }
        Ok(())
    }

    /// Bytes of it, as any device has them.
    pub(super) fn span(&self, address: u64, bytes: u64) -> Result<Span> {
        let end = address.checked_add(bytes).ok_or(Status::INVALID_VALUE)?;
        if address < self.base || end > self.base + self.bytes {
            return Err(Status::INVALID_VALUE);
        }
        let maps = self.maps();
        let (ordinal, _) = maps.first().ok_or(Status::INVALID_VALUE)?;
        let engines = engines()?;
        let engine =
            engines.iter().find(|engine| engine.ordinal() == *ordinal).ok_or(Status::INVALID_VALUE)?;
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

/// The memory of the host that devices know, by address.
pub(crate) struct Hosts {
    pieces: Mutex<BTreeMap<u64, Arc<HostMemory>>>,
}

/// That of the process.
pub(crate) fn hosts() -> &'static Hosts {
    static HOSTS: Hosts = Hosts { pieces: Mutex::new(BTreeMap::new()) };
    &HOSTS
}

/// Who asks for memory: the context's number and handle, and the device.
#[derive(Clone, Copy)]
pub(crate) struct Asker {
    pub(crate) context: u64,
    pub(crate) context_handle: CUcontext,
    pub(crate) device: i32,
}

impl Hosts {
    fn pieces(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<HostMemory>>> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What an address is in.
    pub(crate) fn find(&self, address: u64) -> Option<Arc<HostMemory>> {
        let pieces = self.pieces();
        let (_, piece) = pieces.range(..=address).next_back()?;
        (address < piece.end()).then(|| piece.clone())
    }

    /// Whether some of these bytes are among it.
    pub(crate) fn touches(&self, address: u64, bytes: u64) -> bool {
        let end = address.saturating_add(bytes.max(1));
        let pieces = self.pieces();
        pieces.range(..end).next_back().is_some_and(|(_, piece)| piece.end() > address)
    }

    /// Allocates memory, zero and at the beginning of a page.
    pub(crate) fn allocate(&self, bytes: u64, kind: HostKind, flags: u32, asker: Asker) -> Result<u64> {
        let size = usize::try_from(bytes).ok().filter(|size| *size > 0).ok_or(Status::INVALID_VALUE)?;
        let pages = Pages::new(size)?;
        self.insert(pages.address, bytes, kind, flags, asker, Some(pages))
    }

    /// Makes memory of the client's known.
    pub(crate) fn register(&self, address: u64, bytes: u64, flags: u32, asker: Asker) -> Result<()> {
        if address == 0 || bytes == 0 || address.checked_add(bytes).is_none() {
            return Err(Status::INVALID_VALUE);
        }
        if self.touches(address, bytes) {
            return Err(Status::HOST_MEMORY_ALREADY_REGISTERED);
        }
        if !is_there(address, bytes) {
            return Err(Status::INVALID_VALUE);
        }
        let pointer: *mut u8 = std::ptr::without_provenance_mut(address as usize);
        self.insert(pointer.expose_provenance(), bytes, HostKind::Registered, flags, asker, None).map(drop)
    }

    fn insert(
        &self,
        address: usize,
        bytes: u64,
        kind: HostKind,
        flags: u32,
        asker: Asker,
        pages: Option<Pages>,
    ) -> Result<u64> {
        // Whole words: memory that is registered may begin and end within one.
        let first = address & !3;
        let words = (address + bytes as usize - first).div_ceil(4);
        let pointer = std::ptr::with_exposed_provenance::<AtomicU32>(first);
        // SAFETY: the memory is there: allocated above, or found to be there, which it is by whole pages. It stays
        // until the last of this structure, which holds the words, is gone, or it is the client's, who promises it.
        let words = unsafe { std::slice::from_raw_parts(pointer, words) };
        let memory = Arc::new(HostMemory {
            base: address as u64,
            bytes,
            kind,
            flags,
            id: memory::next_id(),
            context: asker.context,
            context_handle: asker.context_handle,
            device: asker.device,
            made_by: calls::current(),
            sync_operations: AtomicBool::new(false),
            maps: Mutex::default(),
            words,
            _pages: pages,
        });
        // First the one and then the other: a device that begins to work meanwhile does it the other way round.
        self.pieces().insert(memory.base, memory.clone());
        let mapped =
            engines().and_then(|engines| engines.iter().try_for_each(|engine| memory.map_into(engine)));
        if let Err(status) = mapped {
            self.pieces().remove(&memory.base);
            memory.maps().clear();
            return Err(status);
        }
        Ok(address as u64)
    }

    /// Gives back what begins at an address and came about so; waits for the devices.
    pub(crate) fn free(&self, address: u64, kind: HostKind) -> Result<()> {
        if self.pieces().get(&address).is_none_or(|piece| piece.kind != kind) {
            return Err(Status::INVALID_VALUE);
        }
        let engines = engines()?;
        engines.iter().for_each(|engine| engine.drain());
        // Another thread may have been faster.
        let piece = self.pieces().remove(&address).ok_or(Status::INVALID_VALUE)?;
        piece.maps().clear();
        // A launch that began in between may have known it.
        engines.iter().for_each(|engine| engine.drain());
        Ok(())
    }

    /// All of them into a device that begins to work.
    pub(crate) fn map_into(&self, engine: &Engine) -> Result<()> {
        self.alive().iter().try_for_each(|piece| piece.map_into(engine))
    }

    /// A context ends, and what was allocated in it. The devices have been waited for.
    pub(super) fn release(&self, context: u64) {
        let addresses: Vec<(u64, HostKind)> = self
            .pieces()
            .values()
            .filter(|piece| piece.context == context)
            .map(|p| (p.base, p.kind))
            .collect();
        for (address, kind) in addresses {
            // Somebody else may have given it back.
            let _ = self.free(address, kind);
        }
    }

    /// What was allocated or registered and not given back.
    pub(crate) fn alive(&self) -> Vec<Arc<HostMemory>> {
        self.pieces().values().cloned().collect()
    }
}

/// Whether the process has memory at all of these addresses. Whether it may read or write there is not asked.
pub(super) fn is_there(address: u64, bytes: u64) -> bool {
    const ASYNC: c_int = 1;
    const NO_MEMORY: i32 = 12;
    let first = address as usize & !(PAGE - 1);
    let end =
        (address as usize).checked_add(bytes as usize).and_then(|end| end.checked_next_multiple_of(PAGE));
    let Some(end) = end else { return false };
    // SAFETY: nothing is changed that a program could see; it fails where there is nothing.
    let status = unsafe { msync(std::ptr::without_provenance_mut(first), end - first, ASYNC) };
    // Where the question is not allowed, the client is believed.
    status == 0 || std::io::Error::last_os_error().raw_os_error() != Some(NO_MEMORY)
}
