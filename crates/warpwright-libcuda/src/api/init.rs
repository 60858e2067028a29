//! Initialisation, and functions that need none.

use super::entries;
use crate::state;
use crate::types::{Out, Status};
use std::ffi::{c_int, c_uint};

entries! {
    /// Initialises the driver. There are no flags.
    fn cuInit(flags: c_uint) {
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        state::initialise()
    }

    /// Returns the CUDA version of the driver, as 1000 · major + 10 · minor. Needs no initialisation.
    fn cuDriverGetVersion(version: Out<c_int>) {
        version.set(state::config()?.driver_version as c_int)
    }
}
