//! A device at work: what it is asked for on streams, and in which order it does that, over a virtual GPU.
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
//! A front end validates what its clients ask for, in its own order of errors, and makes [operations](Op) of it. From
//! there on there is one engine:
//!
//! - One thread of a device does what is asked for on all streams. [`Order`] chooses among the streams that can go on:
//!   by default the operation that was asked for first. Every choice is legal, so a program for which some choice
//!   gives a wrong result has forgotten to wait.
//! - An operation that waits (for a [`Signal`], for a value in memory, for a function of the client's) holds up its own
//!   stream and what that one holds up by the rules of the default stream. Other streams go on.
//! - **Operations hold what they touch**: memory and streams that are given back stay until what was asked for before is
//!   done.
//! - **What fails is told to the [`FailureDomain`] of its stream**, which says what is not done from then on. What
//!   others wait for happens in any case: signals are reached, memory is released.
//!
//! This crate knows no driver API, no handles and no clients' pointers, and has no `unsafe`: memory of a client is behind
//! [`HostBytes`], and its functions are behind [`HostCall`].

#![forbid(unsafe_code)]

mod bytes;
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
pub use op::{Comparison, HostCall, Launch, Op, Pattern, Release};
pub use order::{Chooser, Order, UnknownOrder};
pub use queue::Queue;
pub use signal::Signal;
pub use stream::{Stream, StreamKind};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A lock whose holder may have panicked: what it guards is whole between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The example of the page that registries show.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
