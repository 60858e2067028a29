//! Fills of memory.

use super::entries;
use crate::engine::Stream;
use crate::engine::bytes_at;
use crate::graph::guard;
use crate::types::{CUdeviceptr, CUstream, Result, Status};
use std::ffi::{c_uchar, c_uint, c_ushort};
use warpwright_device::{Op, Pattern};

/// Rows of elements: address, pitch in bytes, elements of a row, number of rows.
type Rows = (CUdeviceptr, usize, usize, usize);

fn fill(stream: CUstream, rows: Rows, pattern: Pattern, waits: bool) -> Result<()> {
    let (address, pitch, width, height) = rows;
    let (pitch, height) = (pitch as u64, height as u64);
    let stream = Stream::get(stream)?;
    let element = pattern.bytes().len() as u64;
    let invalid = Status::INVALID_VALUE;
    // One row has no pitch.
    if !address.is_multiple_of(element) || height > 1 && !pitch.is_multiple_of(element) {
        return Err(invalid);
    }
    let width = (width as u64).checked_mul(element).ok_or(invalid)?;
    if width == 0 || height == 0 {
        return Ok(());
    }
    if height > 1 && pitch < width {
        return Err(invalid);
    }
    let bytes = pitch.checked_mul(height - 1).and_then(|rows| rows.checked_add(width)).ok_or(invalid)?;
    let target = bytes_at(address, bytes)?;
    let is_host = target.is_mapped();
    if waits && stream.is_capturing() {
        guard::waits(&stream)?;
    }
    stream.submit(Op::Fill { target, pattern, width, height, pitch })?;
    // Memory of devices is filled while the client goes on.
    if waits && is_host {
        stream.wait();
        stream.context.outcome()?;
    }
    Ok(())
}

entries! {
    /// Sets bytes.
    fn cuMemsetD8_v2, cuMemsetD8_v2_ptds |default| (address: CUdeviceptr, value: c_uchar, count: usize) {
        fill(default.resolve(CUstream::NULL), (address, 0, count, 1), Pattern::of8(value), true)
    }

    /// Sets bytes in the order of a stream.
    fn cuMemsetD8Async, cuMemsetD8Async_ptsz |default| (
        address: CUdeviceptr, value: c_uchar, count: usize, stream: CUstream,
    ) {
        fill(default.resolve(stream), (address, 0, count, 1), Pattern::of8(value), false)
    }

    /// Sets bytes of rows.
    fn cuMemsetD2D8_v2, cuMemsetD2D8_v2_ptds |default| (
        address: CUdeviceptr, pitch: usize, value: c_uchar, width: usize, height: usize,
    ) {
        fill(default.resolve(CUstream::NULL), (address, pitch, width, height), Pattern::of8(value), true)
    }

    /// Sets bytes of rows in the order of a stream.
    fn cuMemsetD2D8Async, cuMemsetD2D8Async_ptsz |default| (
        address: CUdeviceptr, pitch: usize, value: c_uchar, width: usize, height: usize, stream: CUstream,
    ) {
        fill(default.resolve(stream), (address, pitch, width, height), Pattern::of8(value), false)
    }

    /// Sets half words.
    fn cuMemsetD16_v2, cuMemsetD16_v2_ptds |default| (address: CUdeviceptr, value: c_ushort, count: usize) {
        fill(default.resolve(CUstream::NULL), (address, 0, count, 1), Pattern::of16(value), true)
    }

    /// Sets half words in the order of a stream.
    fn cuMemsetD16Async, cuMemsetD16Async_ptsz |default| (
        address: CUdeviceptr, value: c_ushort, count: usize, stream: CUstream,
    ) {
        fill(default.resolve(stream), (address, 0, count, 1), Pattern::of16(value), false)
    }

    /// Sets half words of rows.
    fn cuMemsetD2D16_v2, cuMemsetD2D16_v2_ptds |default| (
        address: CUdeviceptr, pitch: usize, value: c_ushort, width: usize, height: usize,
    ) {
        fill(default.resolve(CUstream::NULL), (address, pitch, width, height), Pattern::of16(value), true)
    }

    /// Sets half words of rows in the order of a stream.
    fn cuMemsetD2D16Async, cuMemsetD2D16Async_ptsz |default| (
        address: CUdeviceptr, pitch: usize, value: c_ushort, width: usize, height: usize, stream: CUstream,
    ) {
        fill(default.resolve(stream), (address, pitch, width, height), Pattern::of16(value), false)
    }

    /// Sets words.
    fn cuMemsetD32_v2, cuMemsetD32_v2_ptds |default| (address: CUdeviceptr, value: c_uint, count: usize) {
        fill(default.resolve(CUstream::NULL), (address, 0, count, 1), Pattern::of32(value), true)
    }

    /// Sets words in the order of a stream.
    fn cuMemsetD32Async, cuMemsetD32Async_ptsz |default| (
        address: CUdeviceptr, value: c_uint, count: usize, stream: CUstream,
    ) {
        fill(default.resolve(stream), (address, 0, count, 1), Pattern::of32(value), false)
    }

    /// Sets words of rows.
    fn cuMemsetD2D32_v2, cuMemsetD2D32_v2_ptds |default| (
        address: CUdeviceptr, pitch: usize, value: c_uint, width: usize, height: usize,
    ) {
        fill(default.resolve(CUstream::NULL), (address, pitch, width, height), Pattern::of32(value), true)
    }

    /// Sets words of rows in the order of a stream.
    fn cuMemsetD2D32Async, cuMemsetD2D32Async_ptsz |default| (
        address: CUdeviceptr, pitch: usize, value: c_uint, width: usize, height: usize, stream: CUstream,
    ) {
        fill(default.resolve(stream), (address, pitch, width, height), Pattern::of32(value), false)
    }
}
