//! The CUDA driver API over the virtual GPU, as a library that replaces `libcuda.so.1`.
//!
//! Programs that use the driver API run on it without a GPU, and their kernels run under the checks of `warpwright-vm`.
//! `warpwright exec -- PROGRAM` starts a program with it; it is never installed under the driver's name. Clients see
//! only the C interface; the Rust library is for the tests of this package.
//!
//! | module | contents |
//! | --- | --- |
//! | [`types`] | the interface's types and constants, as in C |
//! | [`api`] | the exported functions: check pointers, convert values, call the implementation |
//! | `state` | the state of the process: configuration, devices, contexts, handles |
//! | `engine` | the engine of a device: memory, streams, events |
//! | `code` | modules, functions, launches |
//! | `graph` | graphs and their capture |
//! | `report` | reports to the user: the log, findings, leaks, the exit status |
//!
//! Invariants: **handles and addresses from clients are looked up and never dereferenced**. The only pointers that are
//! followed are those that the interface defines as the client's memory, and only in [`types::Out`] and [`types::In`],
//! which a client's call alone can create. **No panic crosses the interface**, and no lock is held while the client's
//! code runs. Each missing function says so, once, by name.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

pub mod api;
pub mod types;

mod code;
mod engine;
mod graph;
mod report;
mod state;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex even if its holder has panicked: the data is consistent between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
