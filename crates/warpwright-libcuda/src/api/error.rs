//! What errors are called, and what they mean. Needs no initialisation.

use super::entries;
use crate::types::{Out, Status};
use std::ffi::{CStr, c_char};

fn answer(text: Option<&'static CStr>, place: Out<*const c_char>) -> crate::types::Result<()> {
    place.set(text.map_or(std::ptr::null(), CStr::as_ptr))?;
    text.map(|_| ()).ok_or(Status::INVALID_VALUE)
}

entries! {
    /// The name of an error, such as `CUDA_ERROR_INVALID_VALUE`; null for what is none.
    fn cuGetErrorName(error: Status, name: Out<*const c_char>) {
        answer(error.name(), name)
    }

    /// What an error means; null for what is none.
    fn cuGetErrorString(error: Status, description: Out<*const c_char>) {
        answer(error.description(), description)
    }
}
