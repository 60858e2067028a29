//! Copies of bytes.

use super::{entries, forward};
use crate::abi::{Handle, In, Out, Stream};
use crate::driver::{driver, driver_by};
use crate::error::{Error, Result};
use crate::state::DefaultStream;
use std::ptr::with_exposed_provenance_mut;
use std::ffi::{c_int, c_uint};

/// The direction of a copy: `cudaMemcpyKind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    HostToHost,
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
    /// The addresses say it.
    Default,
}

impl Direction {
    pub(super) fn new(kind: c_int) -> Result<Direction> {
        Ok(match kind {
            0 => Direction::HostToHost,
            1 => Direction::HostToDevice,
            2 => Direction::DeviceToHost,
            3 => Direction::DeviceToDevice,
            4 => Direction::Default,
            _ => return Err(Error::INVALID_MEMCPY_DIRECTION),
        })
    }

    /// The kinds of memory of source and target: `CUmemorytype`.
    pub(super) fn kinds(self) -> (c_uint, c_uint) {
        const HOST: c_uint = 1;
        const DEVICE: c_uint = 2;
        const UNIFIED: c_uint = 4;
        match self {
            Direction::HostToHost => (HOST, HOST),
            Direction::HostToDevice => (HOST, DEVICE),
            Direction::DeviceToHost => (DEVICE, HOST),
            Direction::DeviceToDevice => (DEVICE, DEVICE),
            Direction::Default => (UNIFIED, UNIFIED),
        }
    }
}

/// When a copy or a fill happens.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// Behind the work of a default stream; the call waits as the driver's does.
    Waiting(DefaultStream),
    /// In the order of a stream, which is not null.
    On(Stream),
}

/// Copies bytes.
pub(super) fn copy(to: Handle, from: Handle, bytes: usize, direction: Direction, order: Order) -> Result<()> {
    use Direction::{Default, DeviceToDevice, DeviceToHost, HostToDevice, HostToHost};
    if bytes == 0 {
        return Ok(());
    }
    if to.is_null() || from.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    match order {
        Order::Waiting(default) => match direction {
            HostToDevice => driver_by!(default, cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds, (to, from, bytes)),
            DeviceToHost => driver_by!(default, cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds, (to, from, bytes)),
            DeviceToDevice => driver_by!(default, cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds, (to, from, bytes)),
            HostToHost | Default => driver_by!(default, cuMemcpy, cuMemcpy_ptds, (to, from, bytes)),
        },
        Order::On(stream) => match direction {
            HostToDevice => driver!(cuMemcpyHtoDAsync_v2(to, from, bytes, stream)),
            DeviceToHost => driver!(cuMemcpyDtoHAsync_v2(to, from, bytes, stream)),
            DeviceToDevice => driver!(cuMemcpyDtoDAsync_v2(to, from, bytes, stream)),
            HostToHost | Default => driver!(cuMemcpyAsync(to, from, bytes, stream)),
        },
    }
}

/// The index behind a list of copies that says which of them failed: none in particular.
const NO_INDEX: usize = usize::MAX;

entries! {
    /// Copies bytes, and waits.
    fn cudaMemcpy, cudaMemcpy_ptds |default| (to: Handle, from: Handle, bytes: usize, kind: c_int) {
        copy(to, from, bytes, Direction::new(kind)?, Order::Waiting(default))
    }

    /// Copies bytes in the order of a stream.
    fn cudaMemcpyAsync, cudaMemcpyAsync_ptsz |default| (
        to: Handle,
        from: Handle,
        bytes: usize,
        kind: c_int,
        stream: Stream,
    ) {
        copy(to, from, bytes, Direction::new(kind)?, Order::On(default.resolve(stream)))
    }

    /// Copies bytes in the order of a stream, with attributes, which only affect the speed.
    fn cudaMemcpyWithAttributesAsync, cudaMemcpyWithAttributesAsync_ptsz |default| (
        to: Handle,
        from: Handle,
        bytes: usize,
        _attributes: Handle,
        stream: Stream,
    ) {
        copy(to, from, bytes, Direction::Default, Order::On(default.resolve(stream)))
    }

    /// Copies several ranges of bytes, in any order among them. CUDA 12 has a place for the index of a range that
    /// failed, and the stream behind it.
    fn cudaMemcpyBatchAsync, cudaMemcpyBatchAsync_ptsz |default| (
        to: In<Handle>,
        from: In<Handle>,
        bytes: In<usize>,
        count: usize,
        _attributes: Handle,
        _attribute_indices: In<usize>,
        _attribute_count: usize,
        index_or_stream: usize,
        stream_of_12: Stream,
    ) {
        let (index, stream) = match crate::state::major() {
            // SAFETY: CUDA 12 has the place of a number here.
            12 => (unsafe { Out::new(with_exposed_provenance_mut::<usize>(index_or_stream)) }, stream_of_12),
            _ => (Out::null(), Stream(index_or_stream)),
        };
        index.set_if(NO_INDEX);
        let ranges = to.get_all(count)?.into_iter().zip(from.get_all(count)?).zip(bytes.get_all(count)?);
        let stream = default.resolve(stream);
        for (at, ((to, from), bytes)) in ranges.enumerate() {
            copy(to, from, bytes, Direction::Default, Order::On(stream)).inspect_err(|_| index.set_if(at))?;
        }
        Ok(())
    }
}

forward! {
    cudaIpcGetMemHandle(handle: Handle, address: Handle) = cuIpcGetMemHandle(handle, address);
    cudaIpcOpenMemHandle(address: Out<Handle>, handle: crate::abi::Opaque64, flags: c_uint) =
        cuIpcOpenMemHandle_v2(address, handle, flags);
    cudaIpcCloseMemHandle(address: Handle) = cuIpcCloseMemHandle(address);
    cudaIpcGetEventHandle(handle: Handle, event: Handle) = cuIpcGetEventHandle(handle, event);
    cudaIpcOpenEventHandle(event: Out<Handle>, handle: crate::abi::Opaque64) = cuIpcOpenEventHandle(event, handle);
}
