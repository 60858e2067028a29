//! Recorded events of a CUDA device, with times.

use super::context::Unbound;
use super::error::{CallError, check};
use super::handles::{Event, Stream};
use super::sys::{self, Status};
use super::timeline::Timeline;
use crate::lock;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The maximum number of driver events that are kept for reuse.
const KEPT: usize = 256;

/// A recorded event of the device. A cheap handle.
#[derive(Clone)]
pub(crate) struct EventHandle {
    state: Arc<State>,
}

struct State {
    /// `None` where it was skipped after an error.
    event: Option<Event>,
    /// The ticket of the operation that recorded it.
    ticket: u64,
    /// The last ticket of its stream that is known to be complete.
    completed: Arc<AtomicU64>,
    spares: Arc<Spares>,
}

/// Driver events that are free for reuse.
#[derive(Default)]
pub(super) struct Spares {
    events: Mutex<Vec<Event>>,
}

impl Spares {
    /// An event with timing.
    fn take(&self, stream: &Stream) -> Result<Event, CallError> {
        let spare = lock(&self.events).pop();
        spare.map_or_else(|| Event::new(&stream.context, true), Ok)
    }
}

impl EventHandle {
    /// Records an event after everything issued on the stream, with the ticket of this operation. The context is bound.
    pub(super) fn record(spares: &Arc<Spares>, timeline: &Timeline, ticket: u64) -> Result<Self, CallError> {
        let event = spares.take(timeline.stream())?;
        event.record(timeline.stream())?;
        let (completed, spares) = (timeline.completed.clone(), spares.clone());
        Ok(EventHandle { state: Arc::new(State { event: Some(event), ticket, completed, spares }) })
    }

    /// An event that was not recorded because of an error.
    pub(super) fn skipped(spares: &Arc<Spares>) -> Self {
        let (completed, spares) = (Arc::default(), spares.clone());
        EventHandle { state: Arc::new(State { event: None, ticket: 0, completed, spares }) }
    }

    /// The driver's event; `None` if recording was skipped.
    pub(super) fn event(&self) -> Option<&Event> {
        self.state.event.as_ref()
    }

    /// Whether everything before it is complete. In a lost context everything counts as complete.
    pub(crate) fn is_complete(&self) -> bool {
        if self.state.completed.load(Acquire) >= self.state.ticket {
            return true;
        }
        let Some(event) = self.event() else { return true };
        let _unbound = Unbound::new();
        match event.context.bind().and_then(|()| event.is_complete()) {
            Ok(true) => {
                self.reach();
                true
            }
            Ok(false) => false,
            Err(_) => true,
        }
    }

    /// Notes that the stream has reached it.
    fn reach(&self) {
        self.state.completed.fetch_max(self.state.ticket, Release);
    }

    /// Waits until everything before it is complete.
    pub(super) fn wait(&self) -> Result<(), CallError> {
        let Some(event) = self.event() else { return Ok(()) };
        event.context.bind()?;
        event.synchronize()?;
        self.reach();
        Ok(())
    }

    /// The time from an earlier event of the same device; `None` if one is not complete, or was skipped.
    pub(crate) fn elapsed(&self, earlier: &EventHandle) -> Result<Option<Duration>, CallError> {
        let (Some(end), Some(start)) = (self.event(), earlier.event()) else { return Ok(None) };
        end.context.bind()?;
        let mut milliseconds = 0.0;
        // SAFETY: writes the number; both events live.
        let asked = unsafe { sys::cuEventElapsedTime(&mut milliseconds, start.handle, end.handle) };
        if asked == Status::NOT_READY {
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
        let mut events = lock(&self.spares.events);
        if events.len() < KEPT {
            events.push(event);
        }
    }
}
