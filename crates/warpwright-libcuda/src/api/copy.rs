//! Copies of contiguous bytes.

use super::copy_rows::{Extent, side_of_array};
use super::entries;
use super::memory::here;
use crate::engine::{Stream, issue, memory_of_any, memory_of_device, memory_of_host};
use crate::types::{CUarray, CUcontext, CUdeviceptr, CUstream, Result, Status};
use std::ffi::c_void;
use warpwright_device::{Copy, Memory};

/// The kinds of memory that an address may have.
#[derive(Clone, Copy)]
enum At {
    Host(u64),
    Device(u64),
    Any(u64),
    /// From a byte of the first row of an array on.
    Array(CUarray, u64),
}

impl At {
    fn memory(self, bytes: u64) -> Result<Memory> {
        match self {
            At::Host(address) => memory_of_host(address, bytes),
            At::Device(address) => memory_of_device(address, bytes),
            At::Any(address) => memory_of_any(address, bytes),
            At::Array(array, offset) => {
                let extent = Extent { width: bytes, height: 1, depth: 1 };
                side_of_array(array, [offset, 0, 0], extent).map(|side| side.memory)
            }
        }
    }
}

fn host<T>(pointer: *const T) -> At {
    At::Host(pointer.expose_provenance() as u64)
}

/// Issues a copy; `waits` is false for functions that return at once.
fn copy(stream: CUstream, to: At, from: At, bytes: usize, waits: bool) -> Result<()> {
    let stream = Stream::get(stream)?;
    if bytes == 0 {
        return Ok(());
    }
    let bytes = bytes as u64;
    issue(&stream, Copy::flat(to.memory(bytes)?, from.memory(bytes)?, bytes), waits)
}

/// The contexts of a copy between contexts: both must exist.
pub(super) fn contexts(to: CUcontext, from: CUcontext) -> Result<()> {
    here()?;
    for context in [to, from] {
        crate::state::CONTEXTS.get(context.0).map_err(|_| Status::INVALID_CONTEXT)?.check()?;
    }
    Ok(())
}

/// Executes a copy between contexts, after all earlier operations of both and of the current one, and before all later
/// ones.
pub(super) fn alone(
    stream: CUstream,
    to: CUcontext,
    from: CUcontext,
    copy: impl FnOnce() -> Result<()>,
) -> Result<()> {
    contexts(to, from)?;
    let stream = Stream::get(stream)?;
    if !stream.is_capturing() {
        for context in [to, from] {
            crate::state::Context::find(context)?.synchronize()?;
        }
        stream.context.synchronize()?;
    }
    copy()?;
    stream.wait();
    stream.context.outcome()
}

entries! {
    /// Copies between any two addresses.
    fn cuMemcpy, cuMemcpy_ptds |default| (to: CUdeviceptr, from: CUdeviceptr, bytes: usize) {
        copy(default.resolve(CUstream::NULL), At::Any(to), At::Any(from), bytes, true)
    }

    /// Copies between any two addresses in the order of a stream.
    fn cuMemcpyAsync, cuMemcpyAsync_ptsz |default| (
        to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream,
    ) {
        copy(default.resolve(stream), At::Any(to), At::Any(from), bytes, false)
    }

    /// Copies from the host to a device.
    fn cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds |default| (to: CUdeviceptr, from: *const c_void, bytes: usize) {
        copy(default.resolve(CUstream::NULL), At::Device(to), host(from), bytes, true)
    }

    /// Copies from the host to a device in the order of a stream.
    fn cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz |default| (
        to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream,
    ) {
        copy(default.resolve(stream), At::Device(to), host(from), bytes, false)
    }

    /// Copies from a device to the host.
    fn cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds |default| (to: *mut c_void, from: CUdeviceptr, bytes: usize) {
        copy(default.resolve(CUstream::NULL), host(to), At::Device(from), bytes, true)
    }

    /// Copies from a device to the host in the order of a stream.
    fn cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz |default| (
        to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream,
    ) {
        copy(default.resolve(stream), host(to), At::Device(from), bytes, false)
    }

    /// Copies between devices or on one.
    fn cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds |default| (to: CUdeviceptr, from: CUdeviceptr, bytes: usize) {
        copy(default.resolve(CUstream::NULL), At::Device(to), At::Device(from), bytes, true)
    }

    /// Copies between devices or on one in the order of a stream.
    fn cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz |default| (
        to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream,
    ) {
        copy(default.resolve(stream), At::Device(to), At::Device(from), bytes, false)
    }

    /// Copies from the host to a row of an array.
    fn cuMemcpyHtoA_v2, cuMemcpyHtoA_v2_ptds |default| (
        to: CUarray, offset: usize, from: *const c_void, bytes: usize,
    ) {
        copy(default.resolve(CUstream::NULL), At::Array(to, offset as u64), host(from), bytes, true)
    }

    /// Copies from the host to a row of an array in the order of a stream.
    fn cuMemcpyHtoAAsync_v2, cuMemcpyHtoAAsync_v2_ptsz |default| (
        to: CUarray, offset: usize, from: *const c_void, bytes: usize, stream: CUstream,
    ) {
        copy(default.resolve(stream), At::Array(to, offset as u64), host(from), bytes, false)
    }

    /// Copies from a row of an array to the host.
    fn cuMemcpyAtoH_v2, cuMemcpyAtoH_v2_ptds |default| (
        to: *mut c_void, from: CUarray, offset: usize, bytes: usize,
    ) {
        copy(default.resolve(CUstream::NULL), host(to), At::Array(from, offset as u64), bytes, true)
    }

    /// Copies from a row of an array to the host in the order of a stream.
    fn cuMemcpyAtoHAsync_v2, cuMemcpyAtoHAsync_v2_ptsz |default| (
        to: *mut c_void, from: CUarray, offset: usize, bytes: usize, stream: CUstream,
    ) {
        copy(default.resolve(stream), host(to), At::Array(from, offset as u64), bytes, false)
    }

    /// Copies from a device to a row of an array.
    fn cuMemcpyDtoA_v2, cuMemcpyDtoA_v2_ptds |default| (
        to: CUarray, offset: usize, from: CUdeviceptr, bytes: usize,
    ) {
        copy(default.resolve(CUstream::NULL), At::Array(to, offset as u64), At::Device(from), bytes, true)
    }

    /// Copies from a row of an array to a device.
    fn cuMemcpyAtoD_v2, cuMemcpyAtoD_v2_ptds |default| (
        to: CUdeviceptr, from: CUarray, offset: usize, bytes: usize,
    ) {
        copy(default.resolve(CUstream::NULL), At::Device(to), At::Array(from, offset as u64), bytes, true)
    }

    /// Copies between rows of arrays.
    fn cuMemcpyAtoA_v2, cuMemcpyAtoA_v2_ptds |default| (
        to: CUarray, to_offset: usize, from: CUarray, from_offset: usize, bytes: usize,
    ) {
        let (to, from) = (At::Array(to, to_offset as u64), At::Array(from, from_offset as u64));
        copy(default.resolve(CUstream::NULL), to, from, bytes, true)
    }

    /// Copies between contexts.
    fn cuMemcpyPeer, cuMemcpyPeer_ptds |default| (
        to: CUdeviceptr, to_context: CUcontext, from: CUdeviceptr, from_context: CUcontext, bytes: usize,
    ) {
        alone(default.resolve(CUstream::NULL), to_context, from_context, || {
            copy(default.resolve(CUstream::NULL), At::Device(to), At::Device(from), bytes, true)
        })
    }

    /// Copies between contexts in the order of a stream.
    fn cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz |default| (
        to: CUdeviceptr, to_context: CUcontext, from: CUdeviceptr, from_context: CUcontext, bytes: usize,
        stream: CUstream,
    ) {
        contexts(to_context, from_context)?;
        copy(default.resolve(stream), At::Device(to), At::Device(from), bytes, false)
    }
}
