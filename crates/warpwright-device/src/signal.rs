//! Signals: places in the order of a stream's work, each reached once.

use crate::queue::{Queue, Until};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A place in the work of a stream. It is reached even if the work before it has failed: nobody waits for ever.
pub struct Signal {
    queue: Arc<Queue>,
    reached: OnceLock<Reached>,
}

#[derive(Clone, Copy)]
struct Reached {
    at: Instant,
    /// The work before it was done, or some of it was skipped after a failure.
    done: bool,
}

impl Signal {
    /// A signal for a stream of that queue.
    pub fn new(queue: &Arc<Queue>) -> Arc<Signal> {
        Arc::new(Signal { queue: queue.clone(), reached: OnceLock::new() })
    }

    /// Whether the work before it is over.
    pub fn is_reached(&self) -> bool {
        self.reached.get().is_some()
    }

    /// It is reached now, on the thread of its queue.
    pub(crate) fn reach(&self, done: bool) {
        // A graph passes its signals again and again: the first time counts for those who wait.
        let _ = self.reached.set(Reached { at: Instant::now(), done });
    }

    /// It is reached now, on another thread than that of its queue.
    pub fn reach_beside(&self) {
        self.reach(true);
        self.queue.stir();
    }

    /// Waits for it.
    pub fn wait(self: &Arc<Self>) {
        if !self.is_reached() {
            self.queue.wait(Until::Signal(self.clone()));
        }
    }

    /// Somebody wants to know of it who does not wait: the work before it is not put off any longer.
    pub fn ask(self: &Arc<Self>) {
        if !self.is_reached() {
            self.queue.ask(Until::Signal(self.clone()));
        }
    }

    /// The time from an earlier one to this one, negative where that one came later; `None` where one is not reached.
    pub fn seconds_since(&self, start: &Signal) -> Option<f64> {
        let (start, end) = (start.reached.get()?.at, self.reached.get()?.at);
        Some(match end.checked_duration_since(start) {
            Some(time) => time.as_secs_f64(),
            None => -start.duration_since(end).as_secs_f64(),
        })
    }

    /// The time from an earlier one to this one, none where that one came later; `None` where the work before one was
    /// not done.
    pub fn elapsed_since(&self, start: &Signal) -> Option<Duration> {
        let done =
            |signal: &Signal| signal.reached.get().filter(|reached| reached.done).map(|reached| reached.at);
        Some(done(self)?.saturating_duration_since(done(start)?))
    }

    /// Whether it is a place in the work of that queue.
    pub(crate) fn is_of(&self, queue: &Queue) -> bool {
        std::ptr::eq(&raw const *self.queue, queue)
    }
}
