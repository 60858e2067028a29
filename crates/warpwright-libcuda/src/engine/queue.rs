//! The queue of a device: what was asked for on all streams, in the order in which it was, and what of it is done.
//!
//! A ticket is the number of an operation. Those of one stream are done in their order; of all streams, the one that
//! was asked for first among those that can be done. A stream that waits for all blocking streams of its context, and
//! they for it, is held up with them.

use super::{Op, Stream, StreamKind};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often the thread looks whether something can be done that waits for what nobody tells of: at first, and at last.
const LOOK_EVERY: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(1));

/// What those who ask and the thread that works share.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Something was asked for, or may have become possible.
    work: Condvar,
    /// Something is done.
    done: Condvar,
}

#[derive(Default)]
struct State {
    /// What is not begun, by tickets.
    entries: VecDeque<Entry>,
    /// The last ticket given.
    issued: u64,
    /// What is being done, and on which stream; 0 for nothing.
    running: u64,
    running_on: Option<Arc<Stream>>,
    sleeping: bool,
    waiters: u32,
    /// Something has happened that may make possible what was not.
    stirred: bool,
}

/// An operation that was asked for.
pub(super) struct Entry {
    pub(super) ticket: u64,
    pub(super) stream: Arc<Stream>,
    pub(super) op: Op,
}

/// What has become of an operation.
pub(super) enum Outcome {
    /// It is done, or never will be.
    Done,
    /// This is left of it.
    Rest(Op),
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for operations of a stream, one after the other.
    pub(super) fn push(&self, stream: &Arc<Stream>, op: Op) {
        let mut state = self.state();
        state.issued += 1;
        let ticket = state.issued;
        stream.issue(ticket);
        state.entries.push_back(Entry { ticket, stream: stream.clone(), op });
        let wake = std::mem::take(&mut state.sleeping);
        drop(state);
        if wake {
            self.work.notify_one();
        }
    }

    /// Something may have become possible that was not.
    pub(crate) fn stir(&self) {
        let mut state = self.state();
        state.stirred = true;
        drop(state);
        self.work.notify_one();
        self.done.notify_all();
    }

    /// Waits until something holds that operations bring about. The calling thread is not the one that works.
    pub(crate) fn wait_until(&self, mut holds: impl FnMut() -> bool) {
        if holds() {
            return;
        }
        let mut state = self.state();
        state.waiters += 1;
        while !holds() {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiters -= 1;
    }

    /// Waits for everything that was asked for so far.
    pub(crate) fn wait_all(&self) {
        let mut state = self.state();
        let last = state.issued;
        state.waiters += 1;
        while !state.is_done_through(last) {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiters -= 1;
    }

    /// Waits for everything that was asked for so far in a context.
    pub(crate) fn wait_for(&self, context: u64) {
        let mut state = self.state();
        let last = state.issued;
        state.waiters += 1;
        while state.has_some_of(context, last) {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiters -= 1;
    }

    /// Whether everything is done that was asked for so far.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state();
        state.is_done_through(state.issued)
    }

    /// Whether nothing is being done, and nothing can be for now.
    pub(crate) fn is_resting(&self) -> bool {
        self.state().sleeping
    }

    /// Whether nothing is left that the default stream of a context waits for.
    pub(super) fn is_idle_for(&self, context: u64) -> bool {
        let concerns = |stream: &Arc<Stream>| {
            stream.kind() != StreamKind::NonBlocking && stream.context().id() == context
        };
        let state = self.state();
        !state.running_on.as_ref().is_some_and(concerns)
            && !state.entries.iter().any(|entry| concerns(&entry.stream))
    }

    /// Says what has become of the last operation, and waits for the next one.
    pub(super) fn next(&self, last: Option<(Entry, Outcome)>) -> Entry {
        let (mut look, most) = LOOK_EVERY;
        // What the operation held is given back without the lock, and before anyone is told.
        let last = last.map(|(entry, outcome)| match outcome {
            Outcome::Done => {
                let Entry { ticket, stream, op } = entry;
                drop(op);
                (ticket, stream, None)
            }
            Outcome::Rest(rest) => (entry.ticket, entry.stream, Some(rest)),
        });
        let mut state = self.state();
        state.running = 0;
        state.running_on = None;
        let mut finished = None;
        match last {
            Some((ticket, stream, Some(op))) => {
                state.put_back(Entry { ticket, stream, op });
                // Marks may have been reached on the way.
                if state.waiters > 0 {
                    self.done.notify_all();
                }
            }
            Some((ticket, stream, None)) => {
                stream.complete(ticket);
                if state.waiters > 0 {
                    self.done.notify_all();
                }
                finished = Some(stream);
            }
            None => {}
        }
        // The last handle of a stream may go here.
        if finished.as_ref().is_some_and(|stream| Arc::strong_count(stream) == 1) {
            drop(state);
            drop(finished.take());
            state = self.state();
        }
        loop {
            state.stirred = false;
            if let Some(entry) = state.take_next() {
                state.running = entry.ticket;
                state.running_on = Some(entry.stream.clone());
                return entry;
            }
            if state.stirred {
                continue;
            }
            state.sleeping = true;
            if state.entries.is_empty() {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                look = LOOK_EVERY.0;
            } else {
                let waited = self.work.wait_timeout(state, look).unwrap_or_else(PoisonError::into_inner);
                state = waited.0;
                look = (2 * look).min(most);
            }
            state.sleeping = false;
        }
    }
}

impl State {
    /// Whether something of a context is not done, up to a ticket.
    fn has_some_of(&self, context: u64, last: u64) -> bool {
        let mut waiting = self.entries.iter().take_while(|entry| entry.ticket <= last);
        let runs =
            self.running <= last && self.running_on.as_ref().is_some_and(|on| on.context().id() == context);
        runs || waiting.any(|entry| entry.stream.context().id() == context)
    }

    fn is_done_through(&self, ticket: u64) -> bool {
        let first = self.entries.front().map_or(u64::MAX, |entry| entry.ticket);
        let running = if self.running == 0 { u64::MAX } else { self.running };
        first.min(running) > ticket
    }

    fn put_back(&mut self, entry: Entry) {
        let place = self.entries.partition_point(|other| other.ticket < entry.ticket);
        self.entries.insert(place, entry);
    }

    /// The first operation that can be done.
    fn take_next(&mut self) -> Option<Entry> {
        if self.entries.front()?.is_ready() {
            return self.entries.pop_front();
        }
        let mut held = Held::default();
        let found = self.entries.iter().position(|entry| {
            let free = !held.holds(&entry.stream) && entry.is_ready();
            if !free {
                held.hold(&entry.stream);
            }
            free
        })?;
        self.entries.remove(found)
    }
}

impl Entry {
    /// Whether it can be done: it waits for nothing, or never will be done.
    fn is_ready(&self) -> bool {
        self.op.is_ready() || !matches!(self.op, Op::Running(_)) && self.stream.context().check().is_err()
    }
}

/// The streams that are held up, while the queue is looked through.
#[derive(Default)]
struct Held {
    streams: Vec<u64>,
    /// Contexts whose default stream is held up by its blocking streams, or holds them up.
    defaults: Vec<u64>,
    blocking: Vec<u64>,
}

impl Held {
    fn holds(&self, stream: &Stream) -> bool {
        let context = stream.context().id();
        self.streams.contains(&stream.id())
            || match stream.kind() {
                StreamKind::Legacy => self.blocking.contains(&context),
                StreamKind::Blocking => self.defaults.contains(&context),
                StreamKind::NonBlocking => false,
            }
    }

    fn hold(&mut self, stream: &Stream) {
        let context = stream.context().id();
        let note = |list: &mut Vec<u64>, value| {
            if !list.contains(&value) {
                list.push(value);
            }
        };
        note(&mut self.streams, stream.id());
        match stream.kind() {
            StreamKind::Legacy => note(&mut self.defaults, context),
            StreamKind::Blocking => note(&mut self.blocking, context),
            StreamKind::NonBlocking => {}
        }
    }
}
