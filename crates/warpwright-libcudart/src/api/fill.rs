//! Fills.

use super::copy::Order;
use super::entries;
use crate::abi::{Extent, Handle, PitchedPtr, Stream};
use crate::driver::{driver, driver_by};
use crate::error::{Error, Result};
use std::ffi::{c_int, c_uchar};

/// Fills bytes with the low byte of a value.
fn fill(to: Handle, value: c_int, bytes: usize, order: Order) -> Result<()> {
    let value = value as c_uchar;
    match order {
        _ if bytes == 0 => Ok(()),
        Order::Waiting(default) => driver_by!(default, cuMemsetD8_v2, cuMemsetD8_v2_ptds, (to, value, bytes)),
        Order::On(stream) => driver!(cuMemsetD8Async(to, value, bytes, stream)),
    }
}

/// Fills `height` rows of `width` bytes.
fn fill_rows(
    to: Handle,
    pitch: usize,
    value: c_int,
    width: usize,
    height: usize,
    order: Order,
) -> Result<()> {
    let value = value as c_uchar;
    match order {
        _ if width == 0 || height == 0 => Ok(()),
        Order::Waiting(default) => {
            driver_by!(default, cuMemsetD2D8_v2, cuMemsetD2D8_v2_ptds, (to, pitch, value, width, height))
        }
        Order::On(stream) => driver!(cuMemsetD2D8Async(to, pitch, value, width, height, stream)),
    }
}

/// Fills slices of rows of `extent.width` bytes.
fn fill_slices(to: PitchedPtr, value: c_int, extent: Extent, order: Order) -> Result<()> {
    if extent.height == to.ysize {
        let rows = extent.height.checked_mul(extent.depth).ok_or(Error::INVALID_VALUE)?;
        return fill_rows(to.pointer, to.pitch, value, extent.width, rows, order);
    }
    let slice = to.pitch.checked_mul(to.ysize).ok_or(Error::INVALID_VALUE)?;
    (0..extent.depth).try_for_each(|z| {
        let at = to.pointer.wrapping_byte_add(slice.wrapping_mul(z));
        fill_rows(at, to.pitch, value, extent.width, extent.height, order)
    })
}

entries! {
    /// Fills bytes.
    fn cudaMemset, cudaMemset_ptds |default| (to: Handle, value: c_int, bytes: usize) {
        fill(to, value, bytes, Order::Waiting(default))
    }

    /// Fills bytes in the order of a stream.
    fn cudaMemsetAsync, cudaMemsetAsync_ptsz |default| (to: Handle, value: c_int, bytes: usize, stream: Stream) {
        fill(to, value, bytes, Order::On(default.resolve(stream)))
    }

    /// Fills rows.
    fn cudaMemset2D, cudaMemset2D_ptds |default| (
        to: Handle, pitch: usize, value: c_int, width: usize, height: usize,
    ) {
        fill_rows(to, pitch, value, width, height, Order::Waiting(default))
    }

    /// Fills rows in the order of a stream.
    fn cudaMemset2DAsync, cudaMemset2DAsync_ptsz |default| (
        to: Handle, pitch: usize, value: c_int, width: usize, height: usize, stream: Stream,
    ) {
        fill_rows(to, pitch, value, width, height, Order::On(default.resolve(stream)))
    }

    /// Fills slices.
    fn cudaMemset3D, cudaMemset3D_ptds |default| (to: PitchedPtr, value: c_int, extent: Extent) {
        fill_slices(to, value, extent, Order::Waiting(default))
    }

    /// Fills slices in the order of a stream.
    fn cudaMemset3DAsync, cudaMemset3DAsync_ptsz |default| (
        to: PitchedPtr, value: c_int, extent: Extent, stream: Stream,
    ) {
        fill_slices(to, value, extent, Order::On(default.resolve(stream)))
    }
}
