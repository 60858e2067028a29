//! Deferred frees: resources that the device may still use when the host drops them.
//!
//! Dropping a resource on the host says nothing about the device. Operations that were issued before may use it, so it
//! is freed in their order: a dedicated stream waits for theirs, and frees it.
//!
//! **Nothing here makes the host wait**, except the end of the device: a kernel that runs until the host says so must
//! not delay the drop of a buffer. Resources that the driver frees at once, for which it may wait for everything that
//! runs (modules, host memory), are freed when nothing runs, or when there are too many of them.
//!
//! While another library captures on its stream, nothing can be ordered after that stream: frees are postponed until
//! the capture ends. So are frees that the driver refuses for any other reason, unless the context is lost: memory that
//! may be in use is not freed.

use super::context::{Context, Unbound};
use super::error::{CallError, check};
use super::faults::ends_context;
use super::handles::{CAPTURED, Event, Stream};
use super::sys::{self, Status};
use crate::lock;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

/// The maximum number of resources that wait until nothing runs. Beyond it, unused ones are freed even if the driver
/// waits.
const MAX_PENDING: usize = 256;

/// Frees resources after the operations of the streams that may use them.
pub(crate) struct DeferredFree {
    context: Arc<Context>,
    stream: Stream,
    /// The device's streams by their numbers. When a stream is closed, it is removed, and the dedicated stream waits
    /// for it.
    streams: Mutex<BTreeMap<u64, Arc<Stream>>>,
    /// Resources that the host frees, each with the event after which it may. In the order of the dedicated stream.
    dying: Mutex<VecDeque<(Event, Box<dyn Send>)>>,
    /// Frees that were postponed by a capture.
    pending: Mutex<Vec<Pending>>,
}

/// A postponed free, after these streams or after all of them.
struct Pending {
    users: Option<Vec<u64>>,
    what: What,
}

enum What {
    /// Memory of the device's pool.
    Memory(u64),
    /// A resource that the host frees.
    Thing(Box<dyn Send>),
}

/// The users of a resource: the streams of these numbers; `None` for all streams.
pub(crate) type Users<'a> = Option<&'a [u64]>;

impl DeferredFree {
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self, CallError> {
        let stream = Stream::new(context, 0)?;
        let (streams, dying, pending) = Default::default();
        Ok(DeferredFree { context: context.clone(), stream, streams, dying, pending })
    }

    /// Adds a stream.
    pub(crate) fn open(&self, id: u64, stream: &Arc<Stream>) {
        lock(&self.streams).insert(id, stream.clone());
    }

    /// Removes a stream that has no handles.
    pub(crate) fn close(&self, id: u64) {
        // Under one lock: a concurrent free either waits for the stream, or is ordered after the wait for it here.
        let mut streams = lock(&self.streams);
        if let Some(stream) = streams.get(&id) {
            // A context that is lost keeps nothing busy.
            let _ = self.context.bind().and_then(|()| self.behind(stream));
        }
        let stream = streams.remove(&id);
        drop(streams);
        // It may be the last to have it, and then destroys it.
        drop(stream);
    }

    /// Makes the dedicated stream wait for the operations of that stream so far.
    fn behind(&self, stream: &Stream) -> Result<(), CallError> {
        if stream.is_captured()? {
            return Err(CallError::new("cuEventRecord", CAPTURED));
        }
        let event = Event::new(&self.context, false)?;
        event.record(stream)?;
        self.stream.wait(&event)
    }

    /// The same for these streams. The context is bound.
    fn follow(&self, users: Users<'_>) -> Result<(), CallError> {
        let streams = lock(&self.streams);
        match users {
            Some(ids) => {
                ids.iter().filter_map(|id| streams.get(id)).try_for_each(|stream| self.behind(stream))
            }
            None => streams.values().try_for_each(|stream| self.behind(stream)),
        }
    }

    /// Frees memory of the device's pool after the streams that may use it.
    pub(crate) fn free(&self, address: u64, users: &[u64]) -> Result<(), CallError> {
        self.context.bind()?;
        match self.follow(Some(users)) {
            Err(error) if !ends_context(error.code) => {
                self.postpone(Some(users), What::Memory(address));
                return Ok(());
            }
            followed => followed?,
        }
        // SAFETY: the memory is of a pool, nothing on the host leads to it any more, and what the device was asked to
        // do with it comes before.
        check("cuMemFreeAsync", unsafe { sys::cuMemFreeAsync(address, self.stream.handle) })
    }

    /// Drops a resource after the streams that may use it: not now, but once the device is past them and
    /// [`sweep`](Self::sweep) is called.
    pub(crate) fn after(&self, users: Users<'_>, what: Box<dyn Send>) {
        self.put_behind(users, what);
        self.sweep();
    }

    fn put_behind(&self, users: Users<'_>, what: Box<dyn Send>) {
        // The order of the events must be that of the list.
        let mut dying = lock(&self.dying);
        let record = || {
            self.context.bind()?;
            self.follow(users)?;
            let event = Event::new(&self.context, false)?;
            event.record(&self.stream)?;
            Ok::<_, CallError>(event)
        };
        match record() {
            Ok(event) => dying.push_back((event, what)),
            Err(error) if !ends_context(error.code) => {
                drop(dying);
                self.postpone(users, What::Thing(what));
            }
            // The context is lost: there is nothing left to use it.
            Err(_) => {
                drop(dying);
                drop(what);
            }
        }
    }

    /// Postpones a free until the capture ends.
    fn postpone(&self, users: Users<'_>, what: What) {
        lock(&self.pending).push(Pending { users: users.map(<[u64]>::to_vec), what });
    }

    /// Retries the postponed frees. Those that still fail are postponed again.
    fn give_back_pending(&self) {
        let kept = std::mem::take(&mut *lock(&self.pending));
        for Pending { users, what } in kept {
            match what {
                // An error is the context's, which is lost, and its memory with it.
                What::Memory(address) => drop(self.free(address, users.as_deref().unwrap_or_default())),
                What::Thing(thing) => self.put_behind(users.as_deref(), thing),
            }
        }
    }

    /// Drops resources that are no longer in use.
    pub(crate) fn sweep(&self) {
        self.give_back_pending();
        let mut dead = Vec::new();
        let mut dying = lock(&self.dying);
        if dying.is_empty() || self.context.bind().is_err() {
            return;
        }
        // Asking a stream is such a call too.
        let _unbound = Unbound::new();
        if dying.len() <= MAX_PENDING && self.is_busy() {
            return;
        }
        // In a context that is lost nothing is in use.
        let is_past = |event: &Event| event.is_complete().unwrap_or_else(|error| ends_context(error.code));
        while dying.front().is_some_and(|(event, _)| is_past(event)) {
            dead.extend(dying.pop_front());
        }
        drop(dying);
        // Outside of the lock: what goes may have something else dropped.
        drop(dead);
    }

    /// Whether a stream is busy. The context is bound.
    fn is_busy(&self) -> bool {
        let busy = |stream: &Arc<Stream>| {
            // SAFETY: the stream lives. An error is the context's, in which nothing goes on.
            let ask = || unsafe { sys::cuStreamQuery(stream.handle) };
            stream.is_captured().unwrap_or(false) || ask() == Status::NOT_READY
        };
        lock(&self.streams).values().any(busy)
    }

    /// Waits until all frees so far are done.
    pub(crate) fn settle(&self) -> Result<(), CallError> {
        self.context.bind()?;
        self.give_back_pending();
        self.stream.synchronize()?;
        self.sweep();
        Ok(())
    }
}

impl Drop for DeferredFree {
    fn drop(&mut self) {
        // Host memory under the hands of the device must not go. An error is the context's, and ends everything.
        let _ = self.settle();
        // A capture may use them, and its graph may be launched later.
        std::mem::take(&mut *lock(&self.pending)).into_iter().for_each(std::mem::forget);
    }
}
