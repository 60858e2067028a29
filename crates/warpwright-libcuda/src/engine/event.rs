//! Events: points in the order of a stream's operations, with handles for clients.
//!
//! Recording an event again gives it a new signal; streams that wait for the old one go on waiting for that.

use super::Stream;
use crate::lock;
use crate::state::{Context, Handles, Kind};
use crate::types::{CUevent, Result, Status};
use std::sync::{Arc, Mutex};
use warpwright_device::{Op, Signal};

/// All events.
pub(crate) static EVENTS: Handles<Event> = Handles::new(Kind::Event);

/// An event.
pub(crate) struct Event {
    pub(crate) handle: CUevent,
    pub(crate) context: Arc<Context>,
    has_times: bool,
    recorded: Mutex<Recorded>,
}

/// The last record of an event.
#[derive(Clone)]
pub(crate) enum Recorded {
    /// It was never recorded.
    Never,
    /// On a stream.
    At(Arc<Signal>),
    /// In a capture.
    Captured(Arc<dyn CapturedEvent>),
}

/// An event in a capture.
pub(crate) trait CapturedEvent: Send + Sync {
    /// A stream waits for it, and so joins the capture.
    fn join(&self, stream: &Arc<Stream>) -> Result<()>;
}

impl Event {
    pub(crate) fn new(handle: CUevent, context: Arc<Context>, has_times: bool) -> Self {
        Event { handle, context, has_times, recorded: Mutex::new(Recorded::Never) }
    }

    /// Its last record.
    pub(crate) fn recorded(&self) -> Recorded {
        lock(&self.recorded).clone()
    }

    /// Notes a record.
    pub(crate) fn set(&self, recorded: Recorded) {
        let old = std::mem::replace(&mut *lock(&self.recorded), recorded);
        drop(old);
    }

    /// Its signal, if it has one.
    fn signal(&self) -> Result<Option<Arc<Signal>>> {
        match self.recorded() {
            Recorded::Never => Ok(None),
            Recorded::At(signal) => Ok(Some(signal)),
            Recorded::Captured(_) => Err(Status::CAPTURED_EVENT),
        }
    }

    /// Whether the operations before it are complete. An event without any is complete.
    pub(crate) fn query(&self) -> Result<()> {
        let open = self.signal()?.filter(|signal| !signal.is_reached());
        self.context.check()?;
        match open {
            None => self.context.outcome(),
            Some(signal) => {
                signal.ask();
                Err(Status::NOT_READY)
            }
        }
    }

    /// Waits for the operations before it.
    pub(crate) fn synchronize(&self) -> Result<()> {
        if let Some(signal) = self.signal()? {
            signal.wait();
        }
        self.context.outcome()
    }

    /// Milliseconds from another event to this one.
    pub(crate) fn elapsed_since(&self, start: &Event) -> Result<f32> {
        if !self.has_times || !start.has_times || self.context.id != start.context.id {
            return Err(Status::INVALID_HANDLE);
        }
        let (Some(start), Some(end)) = (start.signal()?, self.signal()?) else {
            return Err(Status::INVALID_HANDLE);
        };
        self.context.check()?;
        [&start, &end].into_iter().for_each(Signal::ask);
        let seconds = end.seconds_since(&start).ok_or(Status::NOT_READY)?;
        Ok((seconds * 1e3) as f32)
    }
}

/// Records an event on a stream, or in the capture of the stream.
pub(crate) fn record(stream: &Arc<Stream>, event: &Arc<Event>) -> Result<()> {
    if let Some(recorder) = stream.recorder() {
        return recorder.record_event(stream, event);
    }
    let signal = Signal::new(stream.engine.queue());
    // Waiting for a signal that is never reached would hang: the event gets the signal only if the stream takes it.
    stream.submit(Op::Signal(signal.clone()))?;
    event.set(Recorded::At(signal));
    Ok(())
}

/// Records an event in a capture so that each launch of the graph records it.
pub(crate) fn record_outside(stream: &Arc<Stream>, event: &Arc<Event>) -> Result<()> {
    let recorder = stream.recorder().ok_or(Status::INVALID_VALUE)?;
    recorder.record_outside(stream, event)
}
