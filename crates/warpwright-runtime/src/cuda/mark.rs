//! Marks of a CUDA device: events of the driver that know times.

use super::error::{CallError, check};
use super::handles::{Event, Stream};
use cudarc::driver::sys::{self, CUresult};
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Events that are kept for later marks.
const KEPT: usize = 256;
/// How often another kind of device that waits for a mark looks at first, and at last.
const LOOK: (Duration, Duration) = (Duration::from_micros(10), Duration::from_millis(1));

/// What the device says of an event. A cheap handle.
#[derive(Clone)]
pub(crate) struct Mark {
    state: Arc<State>,
}

struct State {
    /// `None` where it was skipped after an error.
    event: Option<Event>,
    /// It is known to be complete.
    reached: AtomicBool,
    spares: Arc<Spares>,
}

/// Events that no mark has any more.
#[derive(Default)]
pub(super) struct Spares {
    events: Mutex<Vec<Event>>,
}

impl Spares {
    /// An event that knows times.
    fn take(&self, stream: &Stream) -> Result<Event, CallError> {
        let spare = self.events.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.map_or_else(|| Event::new(stream.context(), true), Ok)
    }
}

impl Mark {
    /// Marks the end of what the stream was asked for. The context is bound.
    pub(super) fn record(spares: &Arc<Spares>, stream: &Stream) -> Result<Self, CallError> {
        let event = spares.take(stream)?;
        event.record(stream)?;
        let reached = AtomicBool::new(false);
        Ok(Mark { state: Arc::new(State { event: Some(event), reached, spares: spares.clone() }) })
    }

    /// One that was not recorded, after an error.
    pub(super) fn skipped(spares: &Arc<Spares>) -> Self {
        let (reached, spares) = (AtomicBool::new(true), spares.clone());
        Mark { state: Arc::new(State { event: None, reached, spares }) }
    }

    /// Its event; `None` where it was skipped.
    pub(super) fn event(&self) -> Option<&Event> {
        self.state.event.as_ref()
    }

    /// Whether everything before it is complete. In a context that is lost everything is.
    pub(crate) fn is_complete(&self) -> bool {
        if self.state.reached.load(Acquire) {
            return true;
        }
        let Some(event) = self.event() else { return true };
        let complete = event.context().bind().and_then(|()| event.is_complete()).unwrap_or(true);
        if complete {
            self.state.reached.store(true, Release);
        }
        complete
    }

    /// Waits until everything before it is complete.
    pub(super) fn wait(&self) -> Result<(), CallError> {
        let Some(event) = self.event() else { return Ok(()) };
        event.context().bind()?;
        event.synchronize()?;
        self.state.reached.store(true, Release);
        Ok(())
    }

    /// Waits on a thread that has no stream, or until `given_up` says that nobody wants to know any more.
    pub(crate) fn wait_unless(&self, given_up: impl Fn() -> bool) {
        let (mut pause, longest) = LOOK;
        while !self.is_complete() && !given_up() {
            std::thread::sleep(pause);
            pause = (pause * 2).min(longest);
        }
    }

    /// The time from an earlier one of the same device; `None` where one is not complete, or was skipped.
    pub(crate) fn elapsed(&self, earlier: &Mark) -> Result<Option<Duration>, CallError> {
        let (Some(end), Some(start)) = (self.event(), earlier.event()) else { return Ok(None) };
        end.context().bind()?;
        let mut milliseconds = 0.0;
        // SAFETY: writes the number; both events live.
        let asked = unsafe { sys::cuEventElapsedTime(&mut milliseconds, start.raw(), end.raw()) };
        if asked == CUresult::CUDA_ERROR_NOT_READY {
            return Ok(None);
        }
        check("cuEventElapsedTime", asked)?;
        // What came later has a negative time.
        Ok(Some(Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).unwrap_or_default()))
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let Some(event) = self.event.take() else { return };
        let mut events = self.spares.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events.len() < KEPT {
            events.push(event);
        }
    }
}
