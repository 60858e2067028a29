//! What the device may still use when the host has no use for it any more.
//!
//! Dropping something on the host says nothing about the device. What was asked for of streams until then may use it,
//! and so it is given back in their order: a stream of its own waits for theirs, and is what frees. **Nothing here
//! makes the host wait**, but for the end of the device: a kernel that runs until the host says so must not stand in
//! the way of a buffer that is dropped meanwhile.

use super::context::Context;
use super::error::{CallError, check};
use super::handles::{Event, Stream};
use cudarc::driver::sys;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Gives back what streams may still use, behind them.
pub(crate) struct Reaper {
    context: Arc<Context>,
    stream: Stream,
    /// The device's streams by their number. One that is closed is none of them, and the own stream waits for it.
    streams: Mutex<BTreeMap<u64, Arc<Stream>>>,
    /// What the host gives back, and the event behind which it may. In the order of the own stream.
    dying: Mutex<VecDeque<(Event, Box<dyn Send>)>>,
}

/// What may use something.
pub(crate) enum Users<'a> {
    /// The streams of these numbers.
    Streams(&'a [u64]),
    /// Every stream that there is.
    All,
}

impl Reaper {
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self, CallError> {
        let stream = Stream::new(context)?;
        Ok(Reaper { context: context.clone(), stream, streams: Mutex::default(), dying: Mutex::default() })
    }

    fn streams(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Stream>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn dying(&self) -> MutexGuard<'_, VecDeque<(Event, Box<dyn Send>)>> {
        self.dying.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream is there.
    pub(crate) fn open(&self, id: u64, stream: &Arc<Stream>) {
        self.streams().insert(id, stream.clone());
    }

    /// A stream is asked for nothing any more.
    pub(crate) fn close(&self, id: u64) {
        let stream = self.streams().remove(&id);
        if let Some(stream) = stream {
            // A context that is lost keeps nothing busy.
            let _ = self.context.bind().and_then(|()| self.behind(&stream));
        }
    }

    /// What the own stream is asked for from now on waits for what that stream was asked for so far.
    fn behind(&self, stream: &Stream) -> Result<(), CallError> {
        let event = Event::new(&self.context, false)?;
        event.record(stream)?;
        self.stream.wait(&event)
    }

    /// The same for these streams. The context is bound.
    fn follow(&self, users: &Users<'_>) -> Result<(), CallError> {
        let streams = self.streams();
        match users {
            Users::Streams(ids) => {
                ids.iter().filter_map(|id| streams.get(id)).try_for_each(|stream| self.behind(stream))
            }
            Users::All => streams.values().try_for_each(|stream| self.behind(stream)),
        }
    }

    /// Frees memory of the device's pool behind the streams that may use it.
    pub(crate) fn free(&self, address: u64, users: &[u64]) -> Result<(), CallError> {
        self.context.bind()?;
        self.follow(&Users::Streams(users))?;
        // SAFETY: the memory is of a pool, nothing on the host leads to it any more, and what the device was asked to
        // do with it comes before.
        check("cuMemFreeAsync", unsafe { sys::cuMemFreeAsync(address, self.stream.raw()) })
    }

    /// Drops something behind the streams that may use it: not now, but when the device is past them and
    /// [`sweep`](Self::sweep) is called.
    pub(crate) fn after(&self, users: &Users<'_>, what: Box<dyn Send>) {
        let mark = || {
            self.context.bind()?;
            // The order of the events must be that of the list.
            let mut dying = self.dying();
            self.follow(users)?;
            let event = Event::new(&self.context, false)?;
            event.record(&self.stream)?;
            dying.push_back((event, what));
            Ok::<_, CallError>(())
        };
        // Where the context is lost, `what` goes at once: there is nothing left to use it.
        let _ = mark();
        self.sweep();
    }

    /// Drops what is not in use any more.
    pub(crate) fn sweep(&self) {
        let mut dead = Vec::new();
        let mut dying = self.dying();
        if dying.is_empty() || self.context.bind().is_err() {
            return;
        }
        // An error is the context's, which is lost: nothing is in use.
        while dying.front().is_some_and(|(event, _)| event.is_complete().unwrap_or(true)) {
            dead.extend(dying.pop_front());
        }
        drop(dying);
        // Outside of the lock: what goes may have something else dropped.
        drop(dead);
    }

    /// Waits until everything that was given back so far is free.
    pub(crate) fn settle(&self) -> Result<(), CallError> {
        self.context.bind()?;
        self.stream.synchronize()?;
        self.sweep();
        Ok(())
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        // Host memory under the hands of the device must not go. An error is the context's, and ends everything.
        let _ = self.settle();
    }
}
