//! Signals: points in the order of a stream's operations, each reached once.

use crate::queue::{Queue, Until};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A point in the order of a stream's operations. It is reached even if an operation before it has failed, so that no
/// thread waits forever.
pub struct Signal {
    queue: Arc<Queue>,
    reached: OnceLock<Reached>,
}

#[derive(Clone, Copy)]
struct Reached {
    at: Instant,
    /// Whether the operations before it were executed, and none was skipped after a failure.
    done: bool,
}

impl Signal {
    /// A signal for a stream of that queue.
    pub fn new(queue: &Arc<Queue>) -> Arc<Signal> {
        Arc::new(Signal { queue: queue.clone(), reached: OnceLock::new() })
    }

    /// Whether the operations before it are complete.
    pub fn is_reached(&self) -> bool {
        self.reached.get().is_some()
    }

    /// Reaches it, on the thread of its queue.
    pub(crate) fn reach(&self, done: bool) {
        // A graph passes its signals again and again: the first time counts for those who wait.
        let _ = self.reached.set(Reached { at: Instant::now(), done });
    }

    /// Reaches it, on another thread than that of its queue.
    pub fn reach_beside(&self) {
        self.reach(true);
        self.queue.stir();
    }

    /// Waits until it is reached.
    pub fn wait(self: &Arc<Self>) {
        if !self.is_reached() {
            self.queue.wait(Until::Signal(self.clone()));
        }
    }

    /// Notes a query without waiting: the operations before it are no longer deferred.
    pub fn ask(self: &Arc<Self>) {
        if !self.is_reached() {
            self.queue.ask(Until::Signal(self.clone()));
        }
    }

    /// The time from an earlier signal to this one, in seconds, negative if the other is the later one; `None` if one
    /// is not reached.
    pub fn seconds_since(&self, start: &Signal) -> Option<f64> {
        let (start, end) = (start.reached.get()?.at, self.reached.get()?.at);
        Some(match end.checked_duration_since(start) {
            Some(time) => time.as_secs_f64(),
            None => -start.duration_since(end).as_secs_f64(),
        })
    }

    /// The time from an earlier signal to this one, zero if the other is the later one; `None` if operations before one
    /// of them were not executed.
    pub fn elapsed_since(&self, start: &Signal) -> Option<Duration> {
        let done =
            |signal: &Signal| signal.reached.get().filter(|reached| reached.done).map(|reached| reached.at);
        Some(done(self)?.saturating_duration_since(done(start)?))
    }

    /// Whether it belongs to that queue.
    pub(crate) fn is_of(&self, queue: &Queue) -> bool {
        std::ptr::eq(&raw const *self.queue, queue)
    }
}
