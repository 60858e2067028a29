//! Names and descriptions of errors. They need no initialisation.

use super::entries;
use crate::types::{Out, Status};
use std::ffi::{CStr, c_char};

fn answer(text: Option<&'static CStr>, place: Out<*const c_char>) -> crate::types::Result<()> {
    place.set(text.map_or(std::ptr::null(), CStr::as_ptr))?;
    text.map(|_| ()).ok_or(Status::INVALID_VALUE)
}

entries! {
    /// Returns the name of an error, such as `CUDA_ERROR_INVALID_VALUE`; null for an undeclared number.
    fn cuGetErrorName(error: Status, name: Out<*const c_char>) {
        answer(error.name(), name)
    }

    /// Returns the description of an error; null for an undeclared number.
    fn cuGetErrorString(error: Status, description: Out<*const c_char>) {
        answer(error.description(), description)
    }
}
