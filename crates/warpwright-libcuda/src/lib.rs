//! The CUDA driver API over the virtual GPU, as a library that takes the place of `libcuda.so.1`.
//!
//! A program that uses the driver API runs on it without a GPU, and its kernels under the checks of
//! `warpwright-vm`. `warpwright exec -- PROGRAM` starts one with it; it is never installed under the driver's name.
//! Clients see the C interface alone. The Rust library is for the tests of this package.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`types`] | the interface's types and constants, as C has them |
//! | [`api`] | the exported functions: pointers checked, values converted, a call of what is inside |
//! | `state` | what the process has: configuration, devices, contexts, handles |
//! | `engine` | what a device does and in which order: memory, streams, events |
//! | `code` | modules, functions, launches |
//! | `graph` | capture of streams, graphs |
//! | `report` | what the user is told: the log, findings, leaks, the exit status |
//!
//! Invariants: **a handle or an address that a client gives is looked up and never followed**; the pointers that are
//! followed are those that the interface says are the client's memory, and only in [`types::Out`] and
//! [`types::In`], which come from a client's call alone. **No panic crosses the interface**, and no lock is held while
//! the client's code runs. Whatever of the interface is missing says so, once by name.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

pub mod api;
pub mod types;

mod code;
mod engine;
mod graph;
mod report;
mod state;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A lock whose holder may have panicked: what it guards is whole between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
