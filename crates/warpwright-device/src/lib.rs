//! The engine of a device: executes operations of streams, in a chosen order, on a virtual GPU.
//!
//! ```text
//! front ends: warpwright-runtime, warpwright-libcuda
//!      │ operations on streams                     ▲ failures, reports
//!      ▼                                           │
//!   Stream ──► Queue ── one thread chooses ──► execute ──► virtual GPU
//!               │  order: issue, reverse, random         memory
//!               └─ signals, semaphore waits
//! ```
//!
//! A front end validates its clients' requests, in its own order of errors, and turns them into [operations](Op). From
//! there on there is one engine:
//!
//! - One thread of a device executes the operations of all streams. [`Order`] chooses among the streams that can go on:
//!   by default the operation that was issued first. Every choice is legal, so a program for which some choice gives a
//!   wrong result has forgotten a wait.
//! - An operation that waits (for a [`Signal`], for a value in memory, for a function of the client) blocks its own
//!   stream and the streams that this one blocks by the rules of the default stream. Other streams go on.
//! - **Operations hold what they touch**: memory and streams that were freed stay alive until earlier operations are
//!   complete.
//! - **A failure is reported to the [`FailureDomain`] of its stream**, which decides what is skipped from then on.
//!   Signals are reached and memory is released in any case.
//!
//! This crate knows no driver API, no handles and no pointers of clients, and has no `unsafe`: memory of a client is
//! behind [`HostBytes`], and its functions are behind [`HostCall`].

#![forbid(unsafe_code)]

mod bytes;
mod chain;
mod copy;
mod engine;
mod failure;
mod op;
mod order;
mod queue;
mod quiet;
mod signal;
mod stream;

pub use bytes::{Bytes, HostBytes};
pub use copy::{Copy, Layout, Memory, Side};
pub use engine::{Counts, Engine, enter_engine_thread, is_engine_thread};
pub use failure::{Cause, Failure, FailureDomain, Result};
pub use op::{Comparison, Decide, HostCall, Launch, Op, Pattern, Release};
pub use order::{Chooser, Order, UnknownOrder};
pub use queue::Queue;
pub use signal::Signal;
pub use stream::{Stream, StreamKind};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex even if its holder has panicked: the data is consistent between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The example of the page that registries show.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
