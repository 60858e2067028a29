//! Tracks whether anything in the process may still change what a launch waits for.
//!
//! Devices of one process wait for each other's signals, and copy to each other. So a stalled launch may be aborted
//! only when all devices rest: each is idle, or has only stalled launches and operations behind them.

use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Release},
};
use std::time::{Duration, Instant};

/// The number of devices that are active, or wait for something outside of the devices.
static LIVELY: AtomicUsize = AtomicUsize::new(0);

/// The time of the last event on a device that others may notice, in microseconds.
static LAST: AtomicU64 = AtomicU64::new(0);

/// The state that a device reports.
#[derive(Debug, Default)]
pub(crate) struct Lively(bool);

impl Lively {
    /// Reports whether the device is active, or waits for something outside of the devices.
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

/// Notes an event on a device that others may notice.
pub(crate) fn noticed() {
    LAST.store(microseconds(), Release);
}

/// Whether the process has more threads than one that are not of this library: any of them may still make a call.
pub(crate) fn has_other_threads() -> bool {
    // The names of threads of devices.
    let is_ours = |name: &str| ["warpwright-", "cuda-device-"].iter().any(|ours| name.starts_with(ours));
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return false };
    let names =
        threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
    names.filter(|name| !is_ours(name)).count() > 1
}

/// How long all devices have rested.
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
