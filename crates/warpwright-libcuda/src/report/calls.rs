//! Calls of the driver, numbered over all threads, so that a report can refer to one.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// The first call of the process has number 1; 0 is outside of any.
    pub(crate) number: u64,
    /// The name of the function.
    pub(crate) function: &'static str,
}

impl From<Call> for warpwright_report::Call {
    fn from(call: Call) -> Self {
        warpwright_report::Call { number: call.number, function: call.function.to_owned() }
    }
}

const NONE: Call = Call { number: 0, function: "no call" };

static CALLS: AtomicU64 = AtomicU64::new(0);
/// The number of calls that have returned.
static OVER: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static CURRENT: Cell<Call> = const { Cell::new(NONE) };
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            0 => f.write_str(self.function),
            number => write!(f, "call {number}, {}", self.function),
        }
    }
}

/// Begins a call. Returns the enclosing one, if a callback makes it.
pub(crate) fn enter(function: &'static str) -> Call {
    let number = CALLS.fetch_add(1, Relaxed) + 1;
    CURRENT.replace(Call { number, function })
}

/// Ends a call.
pub(crate) fn leave(outer: Call) {
    CURRENT.set(outer);
    OVER.fetch_add(1, Release);
}

/// Whether any call has not returned.
pub(crate) fn are_in_progress() -> bool {
    // In this order, so that none is over that was not counted before.
    let over = OVER.load(Acquire);
    over < CALLS.load(Relaxed)
}

/// The current call of the thread.
pub(crate) fn current() -> Call {
    CURRENT.get()
}

/// The number of calls.
pub(crate) fn total() -> u64 {
    CALLS.load(Relaxed)
}
