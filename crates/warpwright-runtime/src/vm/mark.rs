//! Marks of the virtual GPU: whether it has reached an event, and when.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a wait for another device looks whether its own is going away.
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// What the device says of an event.
#[derive(Clone)]
pub(crate) struct Mark {
    state: Arc<MarkState>,
    /// The number of its record.
    ticket: u64,
}

/// Whether the device has reached an event, and when.
#[derive(Default)]
pub(super) struct MarkState {
    passed: Mutex<Passed>,
    changed: Condvar,
    /// What is to be done when the device is there.
    then: Mutex<Vec<Then>>,
}

type Then = Box<dyn FnOnce() + Send>;

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
    pub(super) fn reach(&self, at: Option<Instant>) {
        *self.passed() = at.map_or(Passed::Skipped, Passed::At);
        self.changed.notify_all();
        self.follow();
    }

    fn then(&self) -> MutexGuard<'_, Vec<Then>> {
        self.then.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn follow(&self) {
        let then = std::mem::take(&mut *self.then());
        then.into_iter().for_each(|then| then());
    }

    fn time(&self) -> Option<Instant> {
        match *self.passed() {
            Passed::At(time) => Some(time),
            Passed::NotYet | Passed::Skipped => None,
        }
    }
}

impl Drop for MarkState {
    fn drop(&mut self) {
        self.follow();
    }
}

impl Mark {
    pub(super) fn new(state: Arc<MarkState>, ticket: u64) -> Self {
        Mark { state, ticket }
    }

    /// The number of its record.
    pub(crate) fn ticket(&self) -> u64 {
        self.ticket
    }

    /// Whether the device is there, or has skipped it.
    pub(crate) fn is_complete(&self) -> bool {
        !matches!(*self.state.passed(), Passed::NotYet)
    }

    /// The time from an earlier one to this one; `None` where the device was not there, or has skipped one.
    pub(crate) fn elapsed(&self, earlier: &Mark) -> Option<Duration> {
        Some(self.state.time()?.saturating_duration_since(earlier.state.time()?))
    }

    /// Has something done when the device is there, has skipped it or is gone; now if it is so already. It is done by the
    /// thread of the device, which it must not hold up.
    pub(crate) fn then(&self, then: impl FnOnce() + Send + 'static) {
        self.state.then().push(Box::new(then));
        // The device may have been there in between: then nobody else does it.
        if self.is_complete() {
            self.state.follow();
        }
    }

    /// Waits until the device is there, or `given_up` says that nobody wants to know any more.
    pub(crate) fn wait_unless(&self, given_up: impl Fn() -> bool) {
        let mut passed = self.state.passed();
        while matches!(*passed, Passed::NotYet) && !given_up() {
            passed = match self.state.changed.wait_timeout(passed, LOOK) {
                Ok((passed, _)) => passed,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }
}
