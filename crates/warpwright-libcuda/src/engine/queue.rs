//! What a device was asked for on all streams, and what of it is done.
//!
//! A ticket is the number of an operation, over all streams in the order of the calls. Each stream has a lane: what of
//! its work is not begun, which is done in its order. Which lane's turn it is says a [`Chooser`], among those that can go
//! on. A stream that waits for all blocking streams of its context, and they for it, is held up with them.
//!
//! An order that puts work off does so until somebody waits or asks for it, it has waited too long, or there is too much
//! of it. From then on, what is younger does not keep it from being done, and the oldest that can be done not for long what is as old.

use super::order::{Chooser, LONGEST, MOST, Order};
use super::{Mark, Op, Stream, StreamKind};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often the thread looks whether something can be done that waits for what nobody tells of: at first, and at last.
const LOOK_EVERY: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(1));

/// What those who ask and the thread that works share.
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Something was asked for, or may have become possible.
    work: Condvar,
    /// Something that somebody waits for is done.
    done: Condvar,
}

#[derive(Default)]
struct State {
    /// What is not begun, by streams. None is empty.
    lanes: HashMap<u64, VecDeque<Entry>>,
    /// The streams of the lanes, by their first tickets.
    heads: BTreeMap<u64, u64>,
    /// How many are not begun.
    count: usize,
    /// The last ticket given.
    issued: u64,
    /// What is being done, and on which stream; 0 for nothing.
    running: u64,
    running_on: Option<Arc<Stream>>,
    sleeping: bool,
    /// Something has happened that may make possible what was not.
    stirred: bool,
    /// What threads wait for, by a number of each.
    waits: BTreeMap<u64, Until>,
    waited: u64,
    /// What was asked for, and is not so yet.
    asked: Vec<Until>,
    chooser: Chooser,
    /// The first ticket that is not begun, and since when it is the first.
    oldest: Option<(u64, Instant)>,
    /// What was put off long enough: up to this ticket.
    due: u64,
    /// The oldest ticket of those that could be done when another one was, and since when.
    passed_over: Option<(u64, Instant)>,
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

/// What can be waited for.
#[derive(Clone)]
pub(super) enum Until {
    /// A stream has come past a ticket.
    Stream(u64, u64),
    /// A mark is reached.
    Mark(Arc<Mark>),
    /// Everything is done up to a ticket.
    All(u64),
    /// Everything of a context is done up to a ticket.
    Context(u64, u64),
    /// So is everything that the default stream of a context waits for.
    Default(u64, u64),
}

impl Queue {
    /// A queue that is worked off in an order.
    pub(super) fn new(order: Order) -> Self {
        let state = State { chooser: order.chooser(), ..State::default() };
        Queue { state: Mutex::new(state), work: Condvar::new(), done: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for operations of a stream, one after the other.
    pub(super) fn push(&self, stream: &Arc<Stream>, op: Op) {
        let mut state = self.state();
        state.issued += 1;
        let ticket = state.issued;
        stream.issue(ticket);
        state.append(Entry { ticket, stream: stream.clone(), op });
        let wake = state.sleeping && state.may_want(state.count);
        state.sleeping &= !wake;
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

    /// Waits. The calling thread is not the one that works.
    pub(super) fn wait(&self, until: Until) {
        self.wait_in(self.state(), until);
    }

    /// Waits for everything that was asked for so far.
    pub(crate) fn wait_all(&self) {
        let state = self.state();
        let last = state.issued;
        self.wait_in(state, Until::All(last));
    }

    /// Waits for everything that was asked for so far in a context.
    pub(crate) fn wait_for(&self, context: u64) {
        let state = self.state();
        let last = state.issued;
        self.wait_in(state, Until::Context(context, last));
    }

    fn wait_in(&self, mut state: MutexGuard<'_, State>, until: Until) {
        if until.holds(&state) {
            return;
        }
        state.waited += 1;
        let number = state.waited;
        state.waits.insert(number, until.clone());
        if state.chooser.order().puts_off() {
            self.work.notify_one();
        }
        while !until.holds(&state) {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waits.remove(&number);
    }

    /// Somebody who does not wait wants to know of something that is not so yet: it is not put off any longer.
    pub(super) fn ask(&self, until: Until) {
        self.ask_in(self.state(), until);
    }

    fn ask_in(&self, mut state: MutexGuard<'_, State>, until: Until) {
        if !state.chooser.order().puts_off() || state.asked.iter().any(|asked| asked.covers(&until)) {
            return;
        }
        state.asked.push(until);
        drop(state);
        self.work.notify_one();
    }

    /// Whether everything is done that was asked for so far. If not, it is not put off any longer.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state();
        let until = Until::All(state.issued);
        let idle = until.holds(&state);
        if !idle {
            self.ask_in(state, until);
        }
        idle
    }

    /// Whether nothing is being done, and nothing can be for now.
    pub(crate) fn is_resting(&self) -> bool {
        let state = self.state();
        let mut held = Held::default();
        let can_go_on = |head: &Entry| {
            let free = !held.holds(&head.stream) && head.is_ready();
            held.hold(&head.stream);
            free
        };
        state.running == 0 && !state.heads().any(can_go_on)
    }

    /// Whether nothing is left that the default stream of a context waits for. If not, it is not put off any longer.
    pub(super) fn is_idle_for(&self, context: u64) -> bool {
        let state = self.state();
        let until = Until::Default(context, state.issued);
        let idle = until.holds(&state);
        if !idle {
            self.ask_in(state, until);
        }
        idle
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
        if let Some((ticket, stream, rest)) = last {
            match rest {
                Some(op) => state.put_back(Entry { ticket, stream, op }),
                None => {
                    stream.complete(ticket);
                    finished = Some(stream);
                }
            }
            // Marks may have been reached on the way.
            if state.waits.values().any(|until| until.holds(&state)) {
                self.done.notify_all();
            }
        }
        // The last handle of a stream may go here.
        if finished.as_ref().is_some_and(|stream| Arc::strong_count(stream) == 1) {
            drop(state);
            drop(finished.take());
            state = self.state();
        }
        loop {
            state.stirred = false;
            let rest = state.rest();
            if rest.is_none()
                && let Some(entry) = state.take_next()
            {
                state.running = entry.ticket;
                state.running_on = Some(entry.stream.clone());
                return entry;
            }
            let elsewhere = state.awaited_elsewhere(self, rest);
            if !elsewhere.is_empty() {
                drop(state);
                elsewhere.iter().for_each(|mark| mark.ask());
                state = self.state();
            }
            if state.stirred {
                continue;
            }
            state.sleeping = true;
            if state.heads.is_empty() {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                look = LOOK_EVERY.0;
            } else {
                let pause = rest.unwrap_or(look);
                let waited = self.work.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner);
                state = waited.0;
                look = if rest.is_some() { LOOK_EVERY.0 } else { (2 * look).min(most) };
            }
            state.sleeping = false;
        }
    }
}

impl State {
    fn append(&mut self, entry: Entry) {
        let (ticket, stream) = (entry.ticket, entry.stream.id());
        let lane = self.lanes.entry(stream).or_default();
        if lane.is_empty() {
            self.heads.insert(ticket, stream);
        }
        lane.push_back(entry);
        self.count += 1;
    }

    /// The first entry of a stream, which has one.
    fn pop(&mut self, stream: u64) -> Option<Entry> {
        let lane = self.lanes.get_mut(&stream)?;
        let entry = lane.pop_front()?;
        match lane.front() {
            Some(next) => self.heads.insert(next.ticket, stream),
            None => {
                self.lanes.remove(&stream);
                None
            }
        };
        self.heads.remove(&entry.ticket);
        self.count -= 1;
        Some(entry)
    }

    /// What is left of an operation is the first of its stream again.
    fn put_back(&mut self, entry: Entry) {
        let (ticket, stream) = (entry.ticket, entry.stream.id());
        let lane = self.lanes.entry(stream).or_default();
        if let Some(next) = lane.front() {
            self.heads.remove(&next.ticket);
        }
        lane.push_front(entry);
        self.heads.insert(ticket, stream);
        self.count += 1;
    }

    /// The first entries of the streams, by their tickets.
    fn heads(&self) -> impl Iterator<Item = &Entry> {
        self.heads.values().filter_map(|stream| self.lanes.get(stream)?.front())
    }

    fn is_done_through(&self, ticket: u64) -> bool {
        let first = self.heads.keys().next().copied().unwrap_or(u64::MAX);
        let running = if self.running == 0 { u64::MAX } else { self.running };
        first.min(running) > ticket
    }

    /// Whether something of streams is not done, up to a ticket.
    fn has_some_of(&self, concerns: impl Fn(&Stream) -> bool, last: u64) -> bool {
        let runs = self.running <= last && self.running_on.as_ref().is_some_and(|stream| concerns(stream));
        runs || self.heads().take_while(|head| head.ticket <= last).any(|head| concerns(&head.stream))
    }

    /// Whether what was asked for now may have to be looked at: somebody waits, or it is the first, or one too many.
    fn may_want(&self, count: usize) -> bool {
        !self.chooser.order().puts_off()
            || count == 1
            || count >= MOST
            || !self.waits.is_empty()
            || !self.asked.is_empty()
    }

    /// How long to do nothing although there is something to do; `None` where it is to be done now, or there is nothing.
    fn rest(&mut self) -> Option<Duration> {
        if !self.chooser.order().puts_off() {
            return None;
        }
        let first = *self.heads.keys().next()?;
        let now = Instant::now();
        let since = match self.oldest {
            Some((oldest, since)) if oldest == first => since,
            _ => {
                self.oldest = Some((first, now));
                now
            }
        };
        let left = LONGEST.saturating_sub(now.duration_since(since));
        if self.due < first && (left.is_zero() || self.count >= MOST) {
            self.due = self.issued;
        }
        let mut asked = std::mem::take(&mut self.asked);
        asked.retain(|until| !until.holds(self));
        self.asked = asked;
        let wanted = self.due >= first
            || !self.asked.is_empty()
            || self.waits.values().any(|until| !until.holds(self));
        if wanted { None } else { Some(left) }
    }

    /// Whether the oldest of those that can be done was passed over for too long.
    fn is_overdue(&mut self, ticket: u64) -> bool {
        match self.passed_over {
            Some((oldest, since)) if oldest == ticket => since.elapsed() >= LONGEST,
            _ => {
                self.passed_over = Some((ticket, Instant::now()));
                false
            }
        }
    }

    /// Takes one of the operations that can be done.
    fn take_next(&mut self) -> Option<Entry> {
        let mut held = Held::default();
        // The streams that can go on, and the last ticket of each.
        let mut free: Vec<(u64, u64)> = Vec::new();
        let due = if self.is_done_through(self.due) { u64::MAX } else { self.due };
        let takes_first = self.chooser.takes_first();
        let mut oldest = 0;
        for head in self.heads() {
            if head.ticket > due && !free.is_empty() {
                break;
            }
            let stream = head.stream.id();
            if !held.holds(&head.stream) && head.is_ready() {
                let last = self.lanes.get(&stream).and_then(VecDeque::back).map_or(0, |last| last.ticket);
                if free.is_empty() {
                    oldest = head.ticket;
                }
                free.push((stream, last));
                if takes_first {
                    break;
                }
            }
            held.hold(&head.stream);
        }
        if free.is_empty() {
            return None;
        }
        let chosen = self.chooser.choose(free.len(), |candidate| free[candidate].1);
        let chosen = if chosen > 0 && self.is_overdue(oldest) { 0 } else { chosen };
        self.pop(free.get(chosen)?.0)
    }

    /// What streams wait for that other devices bring about, where somebody waits for these.
    fn awaited_elsewhere(&self, queue: &Queue, rest: Option<Duration>) -> Vec<Arc<Mark>> {
        if !self.chooser.order().puts_off() || rest.is_some() {
            return Vec::new();
        }
        let marks = self.heads().filter_map(|head| head.op.awaits());
        marks.filter(|mark| !mark.is_of(queue) && !mark.is_reached()).cloned().collect()
    }
}

impl Until {
    fn holds(&self, state: &State) -> bool {
        match self {
            Until::Stream(id, last) => {
                let runs =
                    state.running <= *last && state.running_on.as_ref().is_some_and(|on| on.id() == *id);
                let first = state.lanes.get(id).and_then(VecDeque::front);
                !runs && first.is_none_or(|first| first.ticket > *last)
            }
            Until::Mark(mark) => mark.is_reached(),
            Until::All(last) => state.is_done_through(*last),
            Until::Context(context, last) => {
                !state.has_some_of(|stream| stream.context().id() == *context, *last)
            }
            Until::Default(context, last) => {
                let concerns = |stream: &Stream| {
                    stream.kind() != StreamKind::NonBlocking && stream.context().id() == *context
                };
                !state.has_some_of(concerns, *last)
            }
        }
    }

    /// Whether the other one holds, or is brought about, where this one does.
    fn covers(&self, other: &Until) -> bool {
        match (self, other) {
            (Until::Mark(a), Until::Mark(b)) => Arc::ptr_eq(a, b),
            (Until::All(a), Until::All(b)) => a >= b,
            (Until::Stream(a, last), Until::Stream(b, until))
            | (Until::Context(a, last), Until::Context(b, until))
            | (Until::Default(a, last), Until::Default(b, until)) => a == b && last >= until,
            _ => false,
        }
    }
}

impl Entry {
    /// Whether it can be done: it waits for nothing, or never will be done.
    fn is_ready(&self) -> bool {
        self.op.is_ready() || !self.op.is_running() && self.stream.context().check().is_err()
    }
}

/// What streams that come behind are held up by, while the lanes are looked through in the order of their first tickets.
#[derive(Default)]
struct Held {
    /// Contexts whose default stream holds up its blocking streams, or is held up by them.
    defaults: Vec<u64>,
    blocking: Vec<u64>,
}

impl Held {
    fn holds(&self, stream: &Stream) -> bool {
        let context = stream.context().id();
        match stream.kind() {
            StreamKind::Legacy => self.blocking.contains(&context),
            StreamKind::Blocking => self.defaults.contains(&context),
            StreamKind::NonBlocking => false,
        }
    }

    fn hold(&mut self, stream: &Stream) {
        let context = stream.context().id();
        let list = match stream.kind() {
            StreamKind::Legacy => &mut self.defaults,
            StreamKind::Blocking => &mut self.blocking,
            StreamKind::NonBlocking => return,
        };
        if !list.contains(&context) {
            list.push(context);
        }
    }
}
