//! Errors, and versions.

use super::entries;
use crate::abi::Out;
use crate::driver;
use crate::{error, state};
use std::ffi::{c_char, c_int};

/// Returns the last error of the thread, and forgets it.
#[unsafe(no_mangle)]
pub extern "C" fn cudaGetLastError() -> c_int {
    error::take_last()
}

/// Returns the last error of the thread.
#[unsafe(no_mangle)]
pub extern "C" fn cudaPeekAtLastError() -> c_int {
    error::last()
}

/// Returns the name of an error.
#[unsafe(no_mangle)]
pub extern "C" fn cudaGetErrorName(error: c_int) -> *const c_char {
    error::name(error).as_ptr()
}

/// Returns what an error means.
#[unsafe(no_mangle)]
pub extern "C" fn cudaGetErrorString(error: c_int) -> *const c_char {
    error::description(error)
}

entries! {
    /// Returns the driver's version, 1000 · major + 10 · minor; 0 without a driver.
    bare fn cudaDriverGetVersion(version: Out<c_int>) { version.set(driver::version()?) }

    /// Returns the version of this library, likewise.
    bare fn cudaRuntimeGetVersion(version: Out<c_int>) { version.set(state::version()) }
}
