//! Events: places in the order of a stream's work that clients have handles of.
//!
//! An event that is recorded again has a new signal; whoever waits for the old one goes on doing so.

use super::Stream;
use crate::lock;
use crate::state::{Context, Handles, Kind};
use crate::types::{Result, Status};
use std::sync::{Arc, Mutex};
use warpwright_device::{Op, Signal};

/// All events.
pub(crate) static EVENTS: Handles<Event> = Handles::new(Kind::Event);

/// An event.
pub(crate) struct Event {
    pub(crate) context: Arc<Context>,
    has_times: bool,
    recorded: Mutex<Recorded>,
}

/// Where an event was recorded last.
#[derive(Clone)]
pub(crate) enum Recorded {
    /// Nowhere.
    Never,
    /// In the work of a stream.
    At(Arc<Signal>),
    /// In a stream that captures.
    Captured(Arc<dyn CapturedEvent>),
}

/// An event in a capture.
pub(crate) trait CapturedEvent: Send + Sync {
    /// A stream waits for it, and thereby takes part in the capture.
    fn join(&self, stream: &Arc<Stream>) -> Result<()>;
}

impl Event {
    pub(crate) fn new(context: Arc<Context>, has_times: bool) -> Self {
        Event { context, has_times, recorded: Mutex::new(Recorded::Never) }
    }

    /// Where it was recorded last.
    pub(crate) fn recorded(&self) -> Recorded {
        lock(&self.recorded).clone()
    }

    /// It was recorded.
    pub(crate) fn set(&self, recorded: Recorded) {
        let old = std::mem::replace(&mut *lock(&self.recorded), recorded);
        drop(old);
    }

    /// The signal, where it has one.
    fn signal(&self) -> Result<Option<Arc<Signal>>> {
        match self.recorded() {
            Recorded::Never => Ok(None),
            Recorded::At(signal) => Ok(Some(signal)),
            Recorded::Captured(_) => Err(Status::CAPTURED_EVENT),
        }
    }

    /// Whether the work before it is done. Without any it is.
    pub(crate) fn query(&self) -> Result<()> {
        let open = self.signal()?.filter(|signal| !signal.is_reached());
        self.context.check()?;
        match open {
            None => Ok(()),
            Some(signal) => {
                signal.ask();
                Err(Status::NOT_READY)
            }
        }
    }

    /// Waits for the work before it.
    pub(crate) fn synchronize(&self) -> Result<()> {
        if let Some(signal) = self.signal()? {
            signal.wait();
        }
        self.context.check()
    }

    /// Milliseconds from another one to this one.
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

/// Records an event on a stream, or has the capture of the stream record it.
pub(crate) fn record(stream: &Arc<Stream>, event: &Arc<Event>) -> Result<()> {
    if let Some(recorder) = stream.recorder() {
        return recorder.record_event(stream, event);
    }
    let signal = Signal::new(stream.engine.queue());
    // An event whose signal nobody reaches would be waited for in vain: it has this one if the stream takes it.
    stream.submit(Op::Signal(signal.clone()))?;
    event.set(Recorded::At(signal));
    Ok(())
}

/// Records an event on a stream that captures so that each run of the graph records it.
pub(crate) fn record_outside(stream: &Arc<Stream>, event: &Arc<Event>) -> Result<()> {
    let recorder = stream.recorder().ok_or(Status::INVALID_VALUE)?;
    recorder.record_outside(stream, event)
}
