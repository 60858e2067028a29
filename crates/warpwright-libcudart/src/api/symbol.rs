//! Variables by their host addresses.

use super::copy::{Direction, Order, copy};
use super::entries;
use crate::abi::{Handle, Out, Stream};
use crate::code;
use crate::error::{Error, Result};
use std::ffi::c_int;

/// The address of a range of a variable, which must lie within it.
pub(super) fn range(symbol: Handle, bytes: usize, offset: usize) -> Result<Handle> {
    let (address, size) = code::variable(symbol)?;
    match offset.checked_add(bytes) {
        Some(end) if end <= size => Ok(address.wrapping_byte_add(offset)),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// The direction of a copy to a variable, or from one.
fn direction(kind: c_int, is_to: bool) -> Result<Direction> {
    use Direction::{Default, DeviceToDevice, DeviceToHost, HostToDevice};
    match (Direction::new(kind)?, is_to) {
        (known @ (DeviceToDevice | Default), _)
        | (known @ HostToDevice, true)
        | (known @ DeviceToHost, false) => Ok(known),
        _ => Err(Error::INVALID_MEMCPY_DIRECTION),
    }
}

fn write(symbol: Handle, from: Handle, bytes: usize, offset: usize, kind: c_int, order: Order) -> Result<()> {
    let direction = direction(kind, true)?;
    copy(range(symbol, bytes, offset)?, from, bytes, direction, order)
}

fn read(to: Handle, symbol: Handle, bytes: usize, offset: usize, kind: c_int, order: Order) -> Result<()> {
    let direction = direction(kind, false)?;
    copy(to, range(symbol, bytes, offset)?, bytes, direction, order)
}

entries! {
    /// Returns the address of a variable on the thread's device.
    fn cudaGetSymbolAddress(address: Out<Handle>, symbol: Handle) { address.set(code::variable(symbol)?.0) }

    /// Returns the size of a variable in bytes.
    fn cudaGetSymbolSize(bytes: Out<usize>, symbol: Handle) { bytes.set(code::variable(symbol)?.1) }

    /// Copies to a variable, and waits.
    fn cudaMemcpyToSymbol, cudaMemcpyToSymbol_ptds |default| (
        symbol: Handle, from: Handle, bytes: usize, offset: usize, kind: c_int,
    ) {
        write(symbol, from, bytes, offset, kind, Order::Waiting(default))
    }

    /// Copies to a variable in the order of a stream.
    fn cudaMemcpyToSymbolAsync, cudaMemcpyToSymbolAsync_ptsz |default| (
        symbol: Handle, from: Handle, bytes: usize, offset: usize, kind: c_int, stream: Stream,
    ) {
        write(symbol, from, bytes, offset, kind, Order::On(default.resolve(stream)))
    }

    /// Copies from a variable, and waits.
    fn cudaMemcpyFromSymbol, cudaMemcpyFromSymbol_ptds |default| (
        to: Handle, symbol: Handle, bytes: usize, offset: usize, kind: c_int,
    ) {
        read(to, symbol, bytes, offset, kind, Order::Waiting(default))
    }

    /// Copies from a variable in the order of a stream.
    fn cudaMemcpyFromSymbolAsync, cudaMemcpyFromSymbolAsync_ptsz |default| (
        to: Handle, symbol: Handle, bytes: usize, offset: usize, kind: c_int, stream: Stream,
    ) {
        read(to, symbol, bytes, offset, kind, Order::On(default.resolve(stream)))
    }
}
