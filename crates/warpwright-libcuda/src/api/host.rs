//! Pinned host memory.

use super::entries;
use super::memory::{asker, here};
use crate::engine::{HostKind, explain_free, hosts};
use crate::types::{CUdeviceptr, Out, Result, Status};
use std::ffi::{c_uint, c_void};

/// The flags of pinned memory: portable, mapped, write-combined.
const ALLOCATION_FLAGS: c_uint = 7;

/// The flags of registered memory: portable, mapped, I/O memory, read-only.
const REGISTRATION_FLAGS: c_uint = 15;
const OF_A_DEVICE: c_uint = 4;

fn allocate(pointer: Out<*mut c_void>, bytes: usize, flags: c_uint) -> Result<()> {
    let asker = asker()?;
    crate::graph::guard::may_wait()?;
    if flags & !ALLOCATION_FLAGS != 0 {
        return Err(Status::INVALID_VALUE);
    }
    let pointer = pointer.required()?;
    // Nothing is somewhere, and that is nowhere.
    if bytes == 0 {
        return pointer.set(std::ptr::null_mut());
    }
    let address = hosts().allocate(bytes as u64, HostKind::Pinned, flags, asker)?;
    pointer.set(std::ptr::with_exposed_provenance_mut(address as usize))
}

entries! {
    /// Allocates pinned memory.
    fn cuMemAllocHost_v2(pointer: Out<*mut c_void>, bytes: usize) {
        allocate(pointer, bytes, 0)
    }

    /// Allocates pinned memory. All devices can access it, whatever the flags.
    fn cuMemHostAlloc(pointer: Out<*mut c_void>, bytes: usize, flags: c_uint) {
        allocate(pointer, bytes, flags)
    }

    /// Frees pinned memory. Null is ignored.
    fn cuMemFreeHost(pointer: *mut c_void) {
        let (context, _) = here()?;
        if pointer.is_null() {
            return Ok(());
        }
        let at = pointer.addr() as u64;
        hosts().free(at, HostKind::Pinned).inspect_err(|_| explain_free(at))?;
        context.check()
    }

    /// Registers memory of the client with all devices.
    fn cuMemHostRegister_v2(pointer: *mut c_void, bytes: usize, flags: c_uint) {
        let asker = asker()?;
        if flags & !REGISTRATION_FLAGS != 0 {
            return Err(Status::INVALID_VALUE);
        }
        if flags & OF_A_DEVICE != 0 {
            return Err(Status::NOT_SUPPORTED);
        }
        // SAFETY: the interface says that the client keeps the memory until it has unregistered it.
        unsafe { hosts().register(pointer, bytes, flags, asker) }
    }

    /// Unregisters memory of the client.
    fn cuMemHostUnregister(pointer: *mut c_void) {
        let (context, _) = here()?;
        if pointer.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let at = pointer.addr() as u64;
        if hosts().find(at).is_some_and(|host| host.base == at && host.kind != HostKind::Registered) {
            return Err(Status::INVALID_VALUE);
        }
        hosts().free(at, HostKind::Registered).inspect_err(|_| explain_free(at)).map_err(|_| Status::HOST_MEMORY_NOT_REGISTERED)?;
        context.check()
    }

    /// Returns the device address of pinned memory, which equals the host address.
    fn cuMemHostGetDevicePointer_v2(address: Out<CUdeviceptr>, pointer: *mut c_void, flags: c_uint) {
        here()?;
        let at = pointer.addr() as u64;
        if flags != 0 || hosts().find(at).is_none() {
            return Err(Status::INVALID_VALUE);
        }
        address.set(at)
    }

    /// Returns the flags of allocated pinned memory, which is always mapped. Registered memory has none.
    fn cuMemHostGetFlags(flags: Out<c_uint>, pointer: *mut c_void) {
        here()?;
        const MAPPED: c_uint = 2;
        match hosts().find(pointer.addr() as u64) {
            Some(host) if host.kind == HostKind::Pinned => flags.set(host.flags | MAPPED),
            _ => Err(Status::INVALID_VALUE),
        }
    }
}
