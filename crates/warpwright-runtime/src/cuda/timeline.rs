//! Timelines of CUDA streams: the order of a stream's operations, and its progress.
//!
//! Issuing an operation records no event, since that would take as long as issuing the operation. Waiting waits for the
//! whole stream. A query whether a ticket is complete first asks whether the stream is idle. If not, an event is
//! recorded then, after everything issued so far, and later queries use it again:
//!
//! ```text
//!  tickets   3   5   6   9          is 5 complete?  no event covers it: one is recorded, which covers 9
//!            ────────────▲──►       is 6 complete?  the same event is asked
//! ```
//!
//! **Queries and waits do not wait for threads that issue**: an upload may hold its stream's turn while it waits for
//! pinned memory behind a kernel that waits for the host. An operation that is being issued is not complete, and a
//! query says so.

use super::context::Unbound;
use super::deferred_free::DeferredFree;
use super::error::CallError;
use super::faults::Suspects;
use super::handles::{Event, Stream};
use super::staging::Lane;
use crate::lock;
use std::collections::{HashMap, VecDeque};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

/// A stream as its handles hold it. Its operations go on when it is dropped.
pub(crate) struct StreamHandle {
    pub(super) timeline: Arc<Timeline>,
    timelines: Arc<Timelines>,
    deferred: Arc<DeferredFree>,
}

/// The timeline of a stream, and its progress.
pub(super) struct Timeline {
    pub(crate) id: u64,
    stream: Arc<Stream>,
    order: Mutex<Order>,
    /// The last ticket whose operation was issued, all of it.
    issued: AtomicU64,
    /// Locked only while the driver answers.
    covers: Mutex<Covers>,
    /// The last ticket that is known to be complete.
    pub(crate) completed: Arc<AtomicU64>,
    /// Whether its handles are gone.
    closed: AtomicBool,
}

/// The state that follows the order of a stream. It is locked while an operation is issued, so that the order of
/// tickets is the order of issue.
pub(super) struct Order {
    /// The last ticket.
    pub(super) issued: u64,
    /// Copies from the host.
    pub(super) lane: Lane,
    /// Launches that are not known to be complete.
    pub(super) suspects: Suspects,
}

/// A turn to issue to a stream.
pub(super) struct Turn<'a> {
    timeline: &'a Timeline,
    order: MutexGuard<'a, Order>,
}

/// Events behind operations.
#[derive(Default)]
struct Covers {
    /// Each with the last ticket that it covers.
    events: VecDeque<(u64, Event)>,
    /// Events for reuse.
    spare: Vec<Event>,
}

/// The timelines of a device by their numbers, including those that are closed and not idle yet.
#[derive(Default)]
pub(super) struct Timelines {
    by_id: Mutex<HashMap<u64, Arc<Timeline>>>,
}

impl StreamHandle {
    pub(super) fn new(
        timeline: Arc<Timeline>,
        timelines: &Arc<Timelines>,
        deferred: &Arc<DeferredFree>,
    ) -> Self {
        lock(&timelines.by_id).insert(timeline.id, timeline.clone());
        deferred.open(timeline.id, &timeline.stream);
        StreamHandle { timeline, timelines: timelines.clone(), deferred: deferred.clone() }
    }

    /// The driver's stream.
    pub(super) fn stream(&self) -> &Arc<Stream> {
        &self.timeline.stream
    }

    /// Whether another library has the stream too, and may capture on it.
    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        self.timeline.stream.is_shared()
    }
}

impl Drop for StreamHandle {
    fn drop(&mut self) {
        self.timeline.closed.store(true, Relaxed);
        self.deferred.close(self.timeline.id);
        self.timelines.sweep();
    }
}

impl Deref for Turn<'_> {
    type Target = Order;

    fn deref(&self) -> &Order {
        &self.order
    }
}

impl DerefMut for Turn<'_> {
    fn deref_mut(&mut self) -> &mut Order {
        &mut self.order
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // The next turn comes after this: the number never goes back.
        self.timeline.issued.store(self.order.issued, Release);
    }
}

impl Timeline {
    pub(super) fn new(id: u64, stream: Arc<Stream>, lane: Lane) -> Self {
        let order = Mutex::new(Order { issued: 0, lane, suspects: Suspects::default() });
        let (issued, covers, completed, closed) = Default::default();
        Timeline { id, stream, order, issued, covers, completed, closed }
    }

    /// The stream.
    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Waits for the turn to issue to it.
    pub(super) fn order(&self) -> Turn<'_> {
        Turn { timeline: self, order: lock(&self.order) }
    }

    /// Takes the turn if it is free.
    fn try_order(&self) -> Option<Turn<'_>> {
        let order = match self.order.try_lock() {
            Ok(order) => order,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(Turn { timeline: self, order })
    }

    /// Whether the operations until a ticket are complete.
    pub(super) fn is_complete(&self, ticket: u64) -> Result<bool, CallError> {
        if self.completed.load(Acquire) >= ticket {
            return Ok(true);
        }
        self.stream.context.bind()?;
        let mut covers = lock(&self.covers);
        // Other threads may issue more meanwhile: the queries below cover at least this much.
        let issued = self.issued.load(Acquire);
        // Querying a stream invalidates its capture.
        if self.stream.is_captured()? {
            return Ok(false);
        }
        let _unbound = Unbound::new();
        let Covers { events, spare } = &mut *covers;
        if self.stream.is_idle()? {
            self.passed(issued);
            spare.extend(events.drain(..).map(|(_, event)| event));
            return Ok(issued >= ticket);
        }
        if events.back().is_none_or(|(covered, _)| *covered < ticket.min(issued)) {
            let event = match spare.pop() {
                Some(event) => event,
                None => Event::new(&self.stream.context, false)?,
            };
            event.record(&self.stream)?;
            events.push_back((issued, event));
        }
        while let Some((covered, event)) = events.front() {
            if !event.is_complete()? {
                break;
            }
            self.passed(*covered);
            spare.extend(events.pop_front().map(|(_, event)| event));
        }
        Ok(self.completed.load(Acquire) >= ticket)
    }

    /// Whether all of its operations are complete, and none is being issued.
    pub(super) fn is_idle(&self) -> Result<bool, CallError> {
        match self.try_order().map(|order| order.issued) {
            Some(issued) => self.is_complete(issued),
            None => Ok(false),
        }
    }

    /// Notes that operations until that ticket are complete.
    fn passed(&self, ticket: u64) {
        self.completed.fetch_max(ticket, Release);
    }

    /// Waits until all operations issued so far are complete.
    pub(super) fn wait(&self) -> Result<(), CallError> {
        self.stream.context.bind()?;
        // Operations that other threads issue meanwhile are not waited for.
        let issued = self.issued.load(Acquire);
        // Waiting for a stream invalidates its capture.
        self.stream.must_not_capture("cuStreamSynchronize")?;
        self.stream.synchronize()?;
        self.seen(issued);
        Ok(())
    }

    /// Notes that everything until that ticket is complete, without an error.
    pub(super) fn seen(&self, ticket: u64) {
        self.passed(ticket);
        // A thread that has the turn issues an operation that is not complete.
        if let Some(mut order) = self.try_order()
            && order.issued == ticket
        {
            order.suspects = Suspects::default();
        }
    }
}

impl Timelines {
    /// The timeline of that number; `None` if it is closed and idle.
    pub(super) fn get(&self, id: u64) -> Option<Arc<Timeline>> {
        lock(&self.by_id).get(&id).cloned()
    }

    /// All timelines.
    pub(super) fn all(&self) -> Vec<Arc<Timeline>> {
        lock(&self.by_id).values().cloned().collect()
    }

    /// Removes those that are closed and idle.
    pub(super) fn sweep(&self) {
        let mut timelines = lock(&self.by_id);
        // In a context that is lost nothing goes on.
        let gone: Vec<_> = timelines
            .iter()
            .filter(|(_, timeline)| timeline.closed.load(Relaxed) && timeline.is_idle().unwrap_or(true))
            .map(|(&id, _)| id)
            .collect();
        let gone: Vec<_> = gone.into_iter().filter_map(|id| timelines.remove(&id)).collect();
        drop(timelines);
        drop(gone);
    }
}
