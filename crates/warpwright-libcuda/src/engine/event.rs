//! Events: places in the order of a stream's work.
//!
//! An event that is recorded again has a new mark; whoever waits for the old one goes on doing so. A mark is reached
//! even if the work before it has failed: nobody waits for ever.

use super::queue::Until;
use super::{Queue, Stream};
use crate::state::{Context, Handles, Kind};
use crate::types::{Result, Status};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// All events.
pub(crate) static EVENTS: Handles<Event> = Handles::new(Kind::Event);

/// An event.
pub(crate) struct Event {
    context: Arc<Context>,
    has_times: bool,
    recorded: Mutex<Recorded>,
}

/// Where an event was recorded last.
#[derive(Clone)]
pub(crate) enum Recorded {
    /// Nowhere.
    Never,
    /// In the work of a stream.
    At(Arc<Mark>),
    /// In a stream that captures.
    Captured(Arc<dyn CapturedEvent>),
}

/// An event in a capture.
pub(crate) trait CapturedEvent: Send + Sync {
    /// A stream waits for it, and thereby takes part in the capture.
    fn join(&self, stream: &Arc<Stream>) -> Result<()>;
}

/// A place in the work of a stream.
pub(crate) struct Mark {
    queue: Arc<Queue>,
    reached: OnceLock<Instant>,
}

impl Mark {
    pub(crate) fn new(queue: Arc<Queue>) -> Self {
        Mark { queue, reached: OnceLock::new() }
    }

    /// Whether the work before it is done.
    pub(crate) fn is_reached(&self) -> bool {
        self.reached.get().is_some()
    }

    /// It is reached now.
    pub(crate) fn reach(&self) {
        // A graph passes its marks again and again: the first time counts for those who wait.
        let _ = self.reached.set(Instant::now());
    }

    /// It is reached now, by another thread than the one that works.
    pub(super) fn reach_beside(&self) {
        self.reach();
        self.queue.stir();
    }

    /// Waits for it.
    fn wait(self: &Arc<Self>) {
        if !self.is_reached() {
            self.queue.wait(Until::Mark(self.clone()));
        }
    }

    /// Somebody wants to know of it who does not wait: the work before it is not put off any longer.
    pub(super) fn ask(self: &Arc<Self>) {
        if !self.is_reached() {
            self.queue.ask(Until::Mark(self.clone()));
        }
    }

    /// Whether it is a place in the work of that queue.
    pub(super) fn is_of(&self, queue: &Queue) -> bool {
        std::ptr::eq(&raw const *self.queue, queue)
    }
}

impl Event {
    pub(crate) fn new(context: Arc<Context>, has_times: bool) -> Self {
        Event { context, has_times, recorded: Mutex::new(Recorded::Never) }
    }

    /// The context that it was made in.
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it was recorded last.
    pub(crate) fn recorded(&self) -> Recorded {
        self.lock().clone()
    }

    /// It was recorded.
    pub(crate) fn set(&self, recorded: Recorded) {
        let old = std::mem::replace(&mut *self.lock(), recorded);
        drop(old);
    }

    /// The mark, where it has one.
    fn mark(&self) -> Result<Option<Arc<Mark>>> {
        match self.recorded() {
            Recorded::Never => Ok(None),
            Recorded::At(mark) => Ok(Some(mark)),
            Recorded::Captured(_) => Err(Status::CAPTURED_EVENT),
        }
    }

    /// Whether the work before it is done. Without any it is.
    pub(crate) fn query(&self) -> Result<()> {
        let open = self.mark()?.filter(|mark| !mark.is_reached());
        self.context.check()?;
        match open {
            None => Ok(()),
            Some(mark) => {
                mark.ask();
                Err(Status::NOT_READY)
            }
        }
    }

    /// Waits for the work before it.
    pub(crate) fn synchronize(&self) -> Result<()> {
        if let Some(mark) = self.mark()? {
            mark.wait();
        }
        self.context.check()
    }

    /// Milliseconds from another one to this one.
    pub(crate) fn elapsed_since(&self, start: &Event) -> Result<f32> {
        if !self.has_times || !start.has_times || self.context.id() != start.context.id() {
            return Err(Status::INVALID_HANDLE);
        }
        let (Some(start), Some(end)) = (start.mark()?, self.mark()?) else {
            return Err(Status::INVALID_HANDLE);
        };
        self.context.check()?;
        [&start, &end].into_iter().for_each(Mark::ask);
        let (Some(start), Some(end)) = (start.reached.get(), end.reached.get()) else {
            return Err(Status::NOT_READY);
        };
        let seconds = match end.checked_duration_since(*start) {
            Some(time) => time.as_secs_f64(),
            None => -start.duration_since(*end).as_secs_f64(),
        };
        Ok((seconds * 1e3) as f32)
    }
}
