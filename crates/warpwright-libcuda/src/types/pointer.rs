//! Pointers to the client's memory: those of `warpwright_ffi`, with the driver's errors.

use super::{Result, Status};
use std::ffi::c_char;
use warpwright_ffi::InterfaceError;

/// The address to which the client wants a value written.
pub type Out<T> = warpwright_ffi::Out<T, Status>;

/// The address of a value of the client.
pub type In<T> = warpwright_ffi::In<T, Status>;

impl InterfaceError for Status {
    const INVALID_VALUE: Status = Status::INVALID_VALUE;
}

/// A text of the client, which must be UTF-8 and end with a zero byte.
pub(crate) fn text(pointer: In<c_char>) -> Result<String> {
    pointer.text()?.into_string().map_err(|_| Status::INVALID_VALUE)
}
