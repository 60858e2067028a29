//! Events: places in the order of a stream's operations.

use crate::device::Device;
use crate::error::{Result, RuntimeError};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a wait for another device looks whether its own is going away.
const LOOK: Duration = Duration::from_millis(20);

/// A place in the order of a stream's operations, made by
/// [`Stream::record_event`](crate::Stream::record_event).
#[derive(Clone)]
pub struct Event {
    pub(crate) device: Device,
    pub(crate) mark: Mark,
    /// The number of its record.
    pub(crate) ticket: u64,
}

/// What the device says of an event.
pub(crate) type Mark = Arc<MarkState>;

/// Whether the device has reached an event, and when.
#[derive(Debug, Default)]
pub(crate) struct MarkState {
    passed: Mutex<Passed>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
enum Passed {
    #[default]
    NotYet,
    At(Instant),
    /// It was not executed, after an error.
    Skipped,
}

impl MarkState {
    fn passed(&self) -> MutexGuard<'_, Passed> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The device is there; without a time, it has skipped the event.
    pub(crate) fn reach(&self, at: Option<Instant>) {
        *self.passed() = at.map_or(Passed::Skipped, Passed::At);
        self.changed.notify_all();
    }

    /// Waits until the device is there, or `given_up` says that nobody wants to know any more.
    pub(crate) fn wait_unless(&self, given_up: impl Fn() -> bool) {
        let mut passed = self.passed();
        while matches!(*passed, Passed::NotYet) && !given_up() {
            passed = match self.changed.wait_timeout(passed, LOOK) {
                Ok((passed, _)) => passed,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    fn time(&self) -> Option<Instant> {
        match *self.passed() {
            Passed::At(time) => Some(time),
            Passed::NotYet | Passed::Skipped => None,
        }
    }
}

impl Event {
    /// Waits until everything before it has been done. Returns the error of what failed on the device, if
    /// nothing has returned that yet.
    pub fn synchronize(&self) -> Result<()> {
        self.device.wait(self.ticket)
    }

    /// Whether everything before it has been done, or skipped after an error.
    pub fn is_complete(&self) -> bool {
        !matches!(*self.mark.passed(), Passed::NotYet)
    }

    /// The time on the device from an earlier event to this one; zero if that one came later. Both must be of one
    /// device, complete, and not skipped after an error.
    pub fn elapsed(&self, earlier: &Event) -> Result<Duration> {
        if self.device != earlier.device {
            return Err(RuntimeError::OtherDevice { operation: "elapsed", what: "earlier event" });
        }
        match (earlier.mark.time(), self.mark.time()) {
            (Some(start), Some(end)) => Ok(end.saturating_duration_since(start)),
            _ => Err(RuntimeError::Incomplete),
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Event");
        debug.field("device", &self.device).field("complete", &self.is_complete()).finish_non_exhaustive()
    }
}
