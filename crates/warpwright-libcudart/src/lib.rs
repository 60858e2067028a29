//! The CUDA runtime API over the CUDA driver API, as a library that replaces `libcudart.so.12` and `libcudart.so.13`.
//!
//! Programs that `nvcc -cudart shared` has compiled, and libraries that link the runtime dynamically, run on it without
//! NVIDIA's. `warpwright exec -- PROGRAM` puts it before NVIDIA's; it is never installed under that name.
//!
//! ```text
//! program ── cudart: registration, current device, last error ── libcuda.so.1 ── device
//! ```
//!
//! The runtime is a client of the driver like any other: **it opens `libcuda.so.1` and calls its public functions
//! only**, so it runs on `warpwright-libcuda` and on NVIDIA's driver. It knows nothing of devices beyond them. The former
//! also learns which calls are the program's.
//!
//! | module | contents |
//! | --- | --- |
//! | [`abi`] | the interface's types, as in C |
//! | [`api`] | the exported functions |
//! | `driver` | the driver's functions, looked up by name |
//! | `code` | what programs register: kernels and variables, loaded at first use |
//! | `state` | the device of a thread, and its context |
//! | `error` | errors: their names, and the last one of each thread |
//!
//! One file serves both major versions: the layouts and signatures that differ follow the name under which it was
//! loaded. Its handles are the driver's. **No panic crosses the interface.** Each missing function says so, once, by
//! name.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

pub mod abi;
pub mod api;

mod code;
mod driver;
mod error;
mod log;
mod state;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex even if its holder has panicked: the data is consistent between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
