//! Whether anything goes on in the process that may change what a launch waits for.
//!
//! Devices of one process wait for each other's signals, and copy to each other. So a launch that stands still may be given
//! up only when all devices rest: each is idle, or has nothing but launches that stand still and operations behind them.

use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Release},
};
use std::time::{Duration, Instant};

/// Devices that do something, or wait for what no device brings about.
static LIVELY: AtomicUsize = AtomicUsize::new(0);

/// When a device last did something that others may notice, in microseconds.
static LAST: AtomicU64 = AtomicU64::new(0);

/// What a device says of itself.
#[derive(Debug, Default)]
pub(crate) struct Lively(bool);

impl Lively {
    /// From now on it does something, or waits for what no device brings about; or else it rests.
    pub(crate) fn set(&mut self, lively: bool) {
        if lively && !self.0 {
            LIVELY.fetch_add(1, AcqRel);
        } else if !lively && self.0 {
            LIVELY.fetch_sub(1, AcqRel);
        }
        self.0 = lively;
    }
}

impl Drop for Lively {
    fn drop(&mut self) {
        self.set(false);
    }
}

/// A device has done something that others may notice.
pub(crate) fn noticed() {
    LAST.store(microseconds(), Release);
}

/// For how long all devices have rested.
pub(crate) fn quiet_for() -> Duration {
    if LIVELY.load(Acquire) > 0 {
        return Duration::ZERO;
    }
    Duration::from_micros(microseconds().saturating_sub(LAST.load(Acquire)))
}

fn microseconds() -> u64 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed().as_micros() as u64
}
