//! Memory of a CUDA device, and host memory that it can access.
//!
//! Allocation is stream-ordered if the device has pools: memory is ready for the stream's next operations, and is freed
//! after all streams that have used it, without a wait. Devices without pools allocate at once, and free unused memory
//! when there is an opportunity.
//!
//! This module does not know the users of memory: they are set before it is dropped ([`Memory::used_by`]).

use super::context::{Context, Unbound};
use super::deferred_free::DeferredFree;
use super::error::{CallError, check};
use super::handles::Stream;
use super::sys::{self, CUdevice_attribute as Attribute, Status};
use crate::lock;
use std::ffi::c_void;
use std::fmt;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};

/// What hands out memory of a device.
pub(crate) struct Allocator {
    context: Arc<Context>,
    deferred: Arc<DeferredFree>,
    /// Whether the device has memory pools.
    pooled: bool,
}

/// A piece of memory, which is freed when it is dropped.
pub(crate) struct Memory {
    address: u64,
    bytes: u64,
    kind: Kind,
    /// The streams that may use it.
    users: Mutex<Vec<u64>>,
}

enum Kind {
    /// No bytes: no memory.
    Empty,
    /// Of the device's pool.
    Pooled(Arc<DeferredFree>),
    /// Of a device without one.
    Plain { context: Arc<Context>, deferred: Arc<DeferredFree> },
    /// Of the host's.
    Mapped { block: Option<HostBlock>, deferred: Arc<DeferredFree> },
    /// Memory of another owner.
    Borrowed,
}

impl Allocator {
    pub(crate) fn new(context: &Arc<Context>, deferred: &Arc<DeferredFree>) -> Result<Self, CallError> {
        let pooled = context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? != 0;
        Ok(Allocator { context: context.clone(), deferred: deferred.clone(), pooled })
    }

    /// Allocates exactly that many bytes for the later operations of the stream, whose number is `id`. `None` if there
    /// is no room.
    pub(crate) fn allocate(&self, bytes: u64, stream: &Stream, id: u64) -> Result<Option<Memory>, CallError> {
        if bytes == 0 {
            return Ok(Some(Memory::new(0, 0, Kind::Empty, Vec::new())));
        }
        let Ok(size) = usize::try_from(bytes) else { return Ok(None) };
        self.context.bind()?;
        self.deferred.sweep();
        stream.must_not_capture("cuMemAllocAsync")?;
        let _unbound = Unbound::new();
        let mut address = 0;
        let (call, result) = if self.pooled {
            // SAFETY: writes the address; the stream lives.
            ("cuMemAllocAsync", unsafe { sys::cuMemAllocAsync(&mut address, size, stream.handle) })
        } else {
            // SAFETY: writes the address.
            ("cuMemAlloc", unsafe { sys::cuMemAlloc_v2(&mut address, size) })
        };
        if result == Status::OUT_OF_MEMORY {
            return Ok(None);
        }
        check(call, result)?;
        let deferred = self.deferred.clone();
        let kind = if self.pooled {
            Kind::Pooled(deferred)
        } else {
            Kind::Plain { context: self.context.clone(), deferred }
        };
        Ok(Some(Memory::new(address, bytes, kind, vec![id])))
    }

    /// Allocates zeroed host memory that the device can access. `None` if there is no room.
    pub(crate) fn allocate_mapped(&self, bytes: u64) -> Result<Option<Memory>, CallError> {
        if bytes == 0 {
            return Ok(Some(Memory::new(0, 0, Kind::Empty, Vec::new())));
        }
        let Ok(size) = usize::try_from(bytes) else { return Ok(None) };
        self.deferred.sweep();
        let Some(block) = HostBlock::new(&self.context, size)? else { return Ok(None) };
        // SAFETY: the block has that many bytes, and is not known elsewhere yet.
        unsafe { block.start().write_bytes(0, size) };
        let (address, deferred) = (block.address()?, self.deferred.clone());
        Ok(Some(Memory::new(address, bytes, Kind::Mapped { block: Some(block), deferred }, Vec::new())))
    }

    /// Memory of another owner, which promises how long it exists.
    pub(crate) fn borrowed(address: u64, bytes: u64) -> Memory {
        Memory::new(address, bytes, Kind::Borrowed, Vec::new())
    }

    /// Returns free memory of the driver's pool to the device, after waiting for its users.
    pub(crate) fn reclaim(&self) -> Result<(), CallError> {
        self.deferred.settle()?;
        if self.pooled {
            let mut pool = null_mut();
            // SAFETY: writes the handle.
            let asked = unsafe { sys::cuDeviceGetDefaultMemPool(&mut pool, self.context.device()) };
            check("cuDeviceGetDefaultMemPool", asked)?;
            // SAFETY: the pool is the device's, and lives as long.
            check("cuMemPoolTrimTo", unsafe { sys::cuMemPoolTrimTo(pool, 0) })?;
        }
        Ok(())
    }

    /// Bytes of the device's memory that are free: not in use by this process or another one.
    pub(crate) fn room(&self) -> Result<u64, CallError> {
        self.context.bind()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes both numbers.
        check("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok(free as u64)
    }
}

impl Memory {
    fn new(address: u64, bytes: u64, kind: Kind, users: Vec<u64>) -> Self {
        Memory { address, bytes, kind, users: Mutex::new(users) }
    }

    /// Address on the device; 0 of no bytes.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Sets the streams that may use it, by their numbers. It is freed after their operations.
    pub(crate) fn used_by(&self, streams: impl IntoIterator<Item = u64>) {
        let mut users = lock(&self.users);
        users.clear();
        users.extend(streams);
    }

    /// The address of host memory, if it is that and has those bytes.
    fn host(&self, offset: u64, bytes: usize) -> Option<*mut u8> {
        let Kind::Mapped { block: Some(block), .. } = &self.kind else { return None };
        let inside = offset.checked_add(bytes as u64).is_some_and(|end| end <= self.bytes);
        // SAFETY: inside of the block.
        inside.then(|| unsafe { block.start().add(offset as usize) })
    }

    /// Reads current host memory; a number of up to 8 bytes at a multiple of its size as one value. Returns whether it
    /// has those bytes.
    pub(crate) fn peek(&self, offset: u64, value: &mut [u8]) -> bool {
        let Some(from) = self.host(offset, value.len()) else { return value.is_empty() };
        let mut rest = value;
        let mut from = from;
        while !rest.is_empty() {
            let width = width(from, rest.len());
            let (now, later) = rest.split_at_mut(width);
            // SAFETY: the bytes are inside of the block, which lives as long as `self`, at an address that is aligned
            // for them. All accesses of the host are atomic, and the device's are none of the host's.
            unsafe {
                match width {
                    8 => now.copy_from_slice(&AtomicU64::from_ptr(from.cast()).load(Acquire).to_ne_bytes()),
                    4 => now.copy_from_slice(&AtomicU32::from_ptr(from.cast()).load(Acquire).to_ne_bytes()),
                    2 => now.copy_from_slice(&AtomicU16::from_ptr(from.cast()).load(Acquire).to_ne_bytes()),
                    _ => now.copy_from_slice(&[AtomicU8::from_ptr(from).load(Acquire)]),
                }
                from = from.add(width);
            }
            rest = later;
        }
        true
    }

    /// Writes host memory at once, as [`peek`](Self::peek) reads it.
    pub(crate) fn poke(&self, offset: u64, value: &[u8]) -> bool {
        let Some(to) = self.host(offset, value.len()) else { return value.is_empty() };
        let mut rest = value;
        let mut to = to;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(width(to, rest.len()));
            // SAFETY: as for `peek`.
            unsafe {
                match *now {
                    [a, b, c, d, e, f, g, h] => {
                        let word = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
                        AtomicU64::from_ptr(to.cast()).store(word, Release);
                    }
                    [a, b, c, d] => {
                        AtomicU32::from_ptr(to.cast()).store(u32::from_ne_bytes([a, b, c, d]), Release);
                    }
                    [a, b] => AtomicU16::from_ptr(to.cast()).store(u16::from_ne_bytes([a, b]), Release),
                    _ => AtomicU8::from_ptr(to).store(now[0], Release),
                }
                to = to.add(now.len());
            }
            rest = later;
        }
        true
    }
}

/// Bytes of the largest value that is aligned there and within as many.
fn width(address: *mut u8, bytes: usize) -> usize {
    [8, 4, 2].into_iter().find(|&width| width <= bytes && address.addr().is_multiple_of(width)).unwrap_or(1)
}

impl Drop for Memory {
    fn drop(&mut self) {
        let users = self.users.get_mut().unwrap_or_else(PoisonError::into_inner);
        match &mut self.kind {
            Kind::Empty | Kind::Borrowed => {}
            Kind::Pooled(deferred) => {
                // An error is the context's, which is lost, and its memory with it.
                let _ = deferred.free(self.address, users);
            }
            Kind::Plain { context, deferred } => {
                let plain = Plain { context: context.clone(), address: self.address };
                deferred.after(Some(users), Box::new(plain));
            }
            Kind::Mapped { block, deferred } => deferred.after(Some(users), Box::new(block.take())),
        }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {:#x}", self.bytes, self.address)
    }
}

/// Memory of a device without pools that nothing uses any more.
struct Plain {
    context: Arc<Context>,
    address: u64,
}

impl Drop for Plain {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: nothing leads to the memory any more, on the host or the device. An error is the context's.
            let _ = unsafe { sys::cuMemFree_v2(self.address) };
        }
    }
}

/// Host memory that every device of the process can access. It must be dropped only when no device uses it.
pub(crate) struct HostBlock {
    context: Arc<Context>,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it is memory; those who have a reference see to it that accesses do not meet.
unsafe impl Send for HostBlock {}
// SAFETY: as above.
unsafe impl Sync for HostBlock {}

impl HostBlock {
    /// New memory, at an address that is a multiple of the size of any element. `None` where there is no room.
    pub(crate) fn new(context: &Arc<Context>, bytes: usize) -> Result<Option<Self>, CallError> {
        context.bind()?;
        let _unbound = Unbound::new();
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        let mut start: *mut c_void = null_mut();
        // SAFETY: writes the address.
        let result = unsafe { sys::cuMemHostAlloc(&mut start, bytes, flags) };
        if result == Status::OUT_OF_MEMORY {
            return Ok(None);
        }
        check("cuMemHostAlloc", result)?;
        let start = NonNull::new(start.cast());
        Ok(start.map(|start| HostBlock { context: context.clone(), start, bytes }))
    }

    /// The first byte.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Number of bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The first byte as the device sees it.
    pub(crate) fn address(&self) -> Result<u64, CallError> {
        let mut address = 0;
        // SAFETY: writes the address; the memory is mapped.
        let asked = unsafe { sys::cuMemHostGetDevicePointer_v2(&mut address, self.start.as_ptr().cast(), 0) };
        check("cuMemHostGetDevicePointer", asked)?;
        Ok(address)
    }
}

impl Drop for HostBlock {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: the memory is not used any more: see the type. An error means that the context is lost.
            let _ = unsafe { sys::cuMemFreeHost(self.start.as_ptr().cast()) };
        }
    }
}
