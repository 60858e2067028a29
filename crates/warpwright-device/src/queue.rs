//! The operations issued on all streams of a device, and their state.
//!
//! A ticket is the number of an operation, over all streams in the order of the calls. Each stream has a lane: its
//! operations that have not begun, in their order. A [`Chooser`] picks the next lane among those that can go on. A
//! stream that waits for all blocking streams of its domain, or is waited for by them, is blocked together with them.
//!
//! An order that defers work does so until a thread waits for it or queries it, it has waited too long, or there is too
//! much of it. From then on, younger operations cannot delay it, and operations of the same age can delay the oldest
//! only for a limited time.

use crate::chain;
use crate::lock;
use crate::op::{Launch, Op};
use crate::order::{Chooser, LONGEST, MAX_DEFERRED, Order};
use crate::quiet::{Lively, has_other_threads, noticed, quiet_for};
use crate::signal::Signal;
use crate::stream::{Stream, StreamKind};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// The interval at which the thread polls for conditions that are not signalled: at first, and at most.
const POLL_EVERY: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(1));

/// The number of empty lanes that are kept.
const KEPT_LANES: usize = 64;

/// How long the process must be idle before a stalled launch is aborted: if its only thread waits; and otherwise.
const PATIENCE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(3));

/// The state shared by the threads that issue operations and the one that executes them.
pub struct Queue {
    state: Mutex<State>,
    /// Notified when an operation was issued, or may have become possible.
    work: Condvar,
    /// Notified when something that a thread waits for is complete.
    done: Condvar,
}

#[derive(Default)]
struct State {
    /// Operations that have not begun, by stream.
    lanes: HashMap<u64, VecDeque<Entry>>,
    /// The first tickets of the lanes in their order, and the lanes' streams.
    heads: Vec<(u64, u64)>,
    /// The number of operations that have not begun.
    count: usize,
    /// The last ticket given.
    issued: u64,
    /// The ticket that is being executed and its stream; 0 for none.
    running: u64,
    running_on: Option<Arc<Stream>>,
    sleeping: bool,
    /// Whether something may have become possible.
    stirred: bool,
    /// The conditions that threads wait for, by a number for each.
    waits: BTreeMap<u64, Until>,
    waited: u64,
    /// The conditions that were queried and do not hold yet.
    asked: Vec<Until>,
    chooser: Chooser,
    /// The first ticket that has not begun, and since when it is the first.
    oldest: Option<(u64, Instant)>,
    /// Operations up to this ticket are no longer deferred.
    due: u64,
    /// The oldest ticket that could go on when another one was chosen, and since when.
    passed_over: Option<(u64, Instant)>,
    /// Whether the latest turn was that of a launch that had stood still.
    resumed: bool,
    /// The number of turns of operations that others may notice.
    turns: u64,
    /// When an operation was last issued, had a turn, or the queue was stirred.
    active: Option<Instant>,
    /// When a thread last made a query without waiting.
    asked_at: Option<Instant>,
    /// The thread that issues operations, and whether others do too.
    client: Option<ThreadId>,
    has_clients: bool,
    /// Whether it is active, or waits for something outside of the devices.
    lively: Lively,
    /// Whether the queue is closed.
    closed: bool,
}

/// An operation that was issued.
pub(crate) struct Entry {
    pub(crate) ticket: u64,
    pub(crate) stream: Arc<Stream>,
    pub(crate) op: Op,
}

/// The outcome of a turn of an operation.
pub(crate) enum Outcome {
    /// It is complete, or will never be executed.
    Done,
    /// This is the rest of it.
    Rest(Op),
    /// The rest is a stalled launch. Also, whether it did something before that others may notice.
    Stands(Op, bool),
}

/// An operation whose turn it is.
pub(crate) struct Turn {
    pub(crate) entry: Entry,
    /// Whether it is a launch that waits for something that never happens.
    pub(crate) give_up: bool,
}

/// A condition that a thread can wait for.
#[derive(Clone)]
pub(crate) enum Until {
    /// A stream has completed a ticket.
    Stream(u64, u64),
    /// A signal is reached.
    Signal(Arc<Signal>),
    /// Everything up to a ticket is complete.
    All(u64),
    /// Everything of a failure domain up to a ticket is complete.
    Domain(u64, u64),
    /// Everything up to a ticket that the default stream of a domain waits for is complete.
    Default(u64, u64),
}

impl Queue {
    /// A queue that is executed in an order.
    pub(crate) fn new(order: Order) -> Self {
        let state = State { chooser: order.chooser(), ..State::default() };
        Queue { state: Mutex::new(state), work: Condvar::new(), done: Condvar::new() }
    }

    /// Executes the operations from now on in another order. One that chooses at random begins with its seed.
    pub fn set_order(&self, order: Order) {
        self.state().chooser = order.chooser();
        // What was deferred may not be any more.
        self.work.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Issues an operation of a stream. A closed queue executes nothing.
    pub(crate) fn push(&self, stream: &Arc<Stream>, op: Op) {
        let mut state = self.state();
        state.visited();
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

    /// Notes that something may have become possible.
    pub(crate) fn stir(&self) {
        let mut state = self.state();
        state.stirred = true;
        state.active = Some(Instant::now());
        drop(state);
        self.work.notify_one();
        self.done.notify_all();
    }

    /// Waits for a condition. The calling thread must not be the one that executes operations.
    pub(crate) fn wait(&self, until: Until) {
        self.wait_in(self.state(), until);
    }

    /// Waits for all operations issued so far.
    pub(crate) fn wait_all(&self) {
        let state = self.state();
        let last = state.issued;
        self.wait_in(state, Until::All(last));
    }

    /// Waits for all operations of a failure domain issued so far.
    pub(crate) fn wait_for(&self, domain: u64) {
        let state = self.state();
        let last = state.issued;
        self.wait_in(state, Until::Domain(domain, last));
    }

    fn wait_in(&self, mut state: MutexGuard<'_, State>, until: Until) {
        if until.holds(&state) {
            return;
        }
        state.visited();
        state.waited += 1;
        let number = state.waited;
        state.waits.insert(number, until.clone());
        if state.chooser.order().puts_off() || state.heads().any(|head| head.op.standing().is_some()) {
            self.work.notify_one();
        }
        while !until.holds(&state) {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waits.remove(&number);
    }

    /// Notes that a thread has queried a condition that does not hold yet: its operations are no longer deferred.
    pub(crate) fn ask(&self, until: Until) {
        self.ask_in(self.state(), until);
    }

    fn ask_in(&self, mut state: MutexGuard<'_, State>, until: Until) {
        state.asked_at = Some(Instant::now());
        if !state.chooser.order().puts_off() || state.asked.iter().any(|asked| asked.covers(&until)) {
            return;
        }
        state.asked.push(until);
        drop(state);
        self.work.notify_one();
    }

    /// The ticket of the last operation issued; 0 before the first.
    pub fn issued(&self) -> u64 {
        self.state().issued
    }

    /// Whether all operations of a stream up to a ticket are complete.
    pub fn is_over(&self, stream: u64, ticket: u64) -> bool {
        Until::Stream(stream, ticket).holds(&self.state())
    }

    /// Whether all operations issued so far are complete. If not, they are no longer deferred.
    pub fn is_idle(&self) -> bool {
        let state = self.state();
        let until = Until::All(state.issued);
        let idle = until.holds(&state);
        if !idle {
            self.ask_in(state, until);
        }
        idle
    }

    /// The launches behind the operation of a stream that is being executed which may overlap with it.
    pub(crate) fn dependents(&self, stream: &Stream, ticket: u64) -> Vec<Arc<dyn Launch>> {
        let state = self.state();
        let Some(lane) = state.lanes.get(&stream.id()) else { return Vec::new() };
        // Other streams may have come in between that the default stream waits for, or that wait for it.
        let apart = stream.kind() == StreamKind::NonBlocking;
        let follows = |(entry, ticket): &(&Entry, u64)| {
            (apart || entry.ticket == *ticket) && !stream.domain().skips(entry.ticket)
        };
        chain::dependents(lane.iter().zip(ticket + 1..).take_while(follows).map(|(entry, _)| &entry.op))
    }

    /// How many of the launches that may begin early do so.
    pub(crate) fn early(&self, candidates: usize) -> usize {
        if candidates == 0 { 0 } else { self.state().chooser.early(candidates) }
    }

    /// Whether no operation is being executed, and none can be for now.
    pub fn is_resting(&self) -> bool {
        let state = self.state();
        let mut held = Held::default();
        let can_go_on = |head: &Entry| {
            let free = !held.holds(&head.stream) && head.is_ready(state.turns);
            held.hold(&head.stream);
            free
        };
        state.running == 0 && !state.heads().any(can_go_on)
    }

    /// Whether everything that the default stream of a domain waits for is complete. If not, it is no longer deferred.
    pub(crate) fn is_idle_for(&self, domain: u64) -> bool {
        let state = self.state();
        let until = Until::Default(domain, state.issued);
        let idle = until.holds(&state);
        if !idle {
            self.ask_in(state, until);
        }
        idle
    }

    /// Reports the outcome of the last turn, and waits for the next one. `None` when the queue is closed.
    pub(crate) fn next(&self, last: Option<(Entry, Outcome)>) -> Option<Turn> {
        let (mut look, max) = POLL_EVERY;
        // The operation's resources are released without the lock, and before waiting threads are notified.
        let last = last.map(|(Entry { ticket, stream, op }, outcome)| {
            let left = match outcome {
                Outcome::Done => {
                    drop(op);
                    None
                }
                Outcome::Rest(rest) => Some((rest, true)),
                Outcome::Stands(rest, noticed) => Some((rest, noticed)),
            };
            (ticket, stream, left)
        });
        let mut state = self.state();
        state.running = 0;
        state.running_on = None;
        let mut finished = None;
        if let Some((ticket, stream, left)) = last {
            if left.as_ref().is_none_or(|(_, noticed)| *noticed) {
                state.turns += 1;
                state.active = Some(Instant::now());
                noticed();
                state.asked_at = None;
            }
            match left {
                Some((op, _)) => {
                    if let Some(standing) = op.standing() {
                        standing.stands(state.turns);
                    }
                    state.put_back(Entry { ticket, stream, op });
                }
                None => {
                    stream.complete(ticket);
                    finished = Some(stream);
                }
            }
            // Signals may have been reached on the way.
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
            if state.closed {
                return None;
            }
            state.stirred = false;
            let rest = state.rest();
            let (entry, give_up) = match rest {
                Some(_) => (None, false),
                None => match state.take_next() {
                    Some(entry) => (Some(entry), false),
                    None => (state.take_hung(), true),
                },
            };
            if let Some(entry) = entry {
                state.lively.set(true);
                state.running = entry.ticket;
                state.running_on = Some(entry.stream.clone());
                return Some(Turn { entry, give_up });
            }
            let elsewhere = state.awaited_elsewhere(self, rest);
            if !elsewhere.is_empty() {
                drop(state);
                elsewhere.iter().for_each(|signal| signal.ask());
                state = self.state();
            }
            if state.stirred {
                continue;
            }
            state.sleeping = true;
            if state.heads.is_empty() {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                look = POLL_EVERY.0;
            } else {
                let pause = rest.unwrap_or(look);
                let waited = self.work.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner);
                state = waited.0;
                look = if rest.is_some() { POLL_EVERY.0 } else { (2 * look).min(max) };
            }
            state.sleeping = false;
        }
    }

    /// Closes the queue and returns the operations that have not begun. Threads that wait for them go on.
    pub(crate) fn close(&self) -> Vec<Entry> {
        let mut state = self.state();
        state.closed = true;
        state.lively.set(false);
        state.heads.clear();
        state.count = 0;
        let entries = std::mem::take(&mut state.lanes).into_values().flatten().collect();
        drop(state);
        self.work.notify_all();
        self.done.notify_all();
        entries
    }
}

impl State {
    /// Notes that a client's thread issues an operation, or waits.
    fn visited(&mut self) {
        let here = std::thread::current().id();
        let first = *self.client.get_or_insert(here);
        self.has_clients |= first != here;
        self.active = Some(Instant::now());
    }

    fn append(&mut self, entry: Entry) {
        let (ticket, stream) = (entry.ticket, entry.stream.id());
        let lane = self.lanes.entry(stream).or_default();
        if lane.is_empty() {
            // No ticket is later.
            self.heads.push((ticket, stream));
        }
        lane.push_back(entry);
        self.count += 1;
    }

    /// Removes the first entry of a stream, which has one.
    fn pop(&mut self, stream: u64) -> Option<Entry> {
        let lane = self.lanes.get_mut(&stream)?;
        let entry = lane.pop_front()?;
        self.resumed = entry.op.standing().is_some();
        let next = lane.front().map(|next| next.ticket);
        // Lanes keep their room for what comes next, but not those of any number of streams that are gone.
        if next.is_none() && self.lanes.len() > KEPT_LANES {
            self.lanes.remove(&stream);
        }
        self.set_head(stream, next);
        self.count -= 1;
        Some(entry)
    }

    /// Puts the rest of an operation back to the front of its stream.
    fn put_back(&mut self, entry: Entry) {
        let (ticket, stream) = (entry.ticket, entry.stream.id());
        let lane = self.lanes.entry(stream).or_default();
        lane.push_front(entry);
        self.set_head(stream, Some(ticket));
        self.count += 1;
    }

    /// Sets the first ticket of a stream, or that it has none.
    fn set_head(&mut self, stream: u64, ticket: Option<u64>) {
        self.heads.retain(|(_, other)| *other != stream);
        if let Some(ticket) = ticket {
            let place = self.heads.partition_point(|(other, _)| *other < ticket);
            self.heads.insert(place, (ticket, stream));
        }
    }

    /// The first entries of the streams, by their tickets.
    fn heads(&self) -> impl Iterator<Item = &Entry> {
        self.heads.iter().filter_map(|(_, stream)| self.lanes.get(stream)?.front())
    }

    fn is_done_through(&self, ticket: u64) -> bool {
        let first = self.heads.first().map_or(u64::MAX, |(ticket, _)| *ticket);
        let running = if self.running == 0 { u64::MAX } else { self.running };
        first.min(running) > ticket
    }

    /// Whether an operation of these streams, up to a ticket, is not complete.
    fn has_some_of(&self, concerns: impl Fn(&Stream) -> bool, last: u64) -> bool {
        let runs = self.running <= last && self.running_on.as_ref().is_some_and(|stream| concerns(stream));
        runs || self.heads().take_while(|head| head.ticket <= last).any(|head| concerns(&head.stream))
    }

    /// Whether the thread must look at a new operation: a thread waits, or the operation is the first, or one too many.
    fn may_want(&self, count: usize) -> bool {
        !self.chooser.order().puts_off()
            || count == 1
            || count >= MAX_DEFERRED
            || !self.waits.is_empty()
            || !self.asked.is_empty()
    }

    /// How long to defer the next operation; `None` if it is to be executed now, or there is none.
    fn rest(&mut self) -> Option<Duration> {
        if !self.chooser.order().puts_off() {
            return None;
        }
        let (first, _) = *self.heads.first()?;
        let now = Instant::now();
        let since = match self.oldest {
            Some((oldest, since)) if oldest == first => since,
            _ => {
                self.oldest = Some((first, now));
                now
            }
        };
        let left = LONGEST.saturating_sub(now.duration_since(since));
        if self.due < first && (left.is_zero() || self.count >= MAX_DEFERRED) {
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

    /// Whether the oldest operation that can go on was passed over for too long.
    fn is_overdue(&mut self, ticket: u64) -> bool {
        match self.passed_over {
            Some((oldest, since)) if oldest == ticket => since.elapsed() >= LONGEST,
            _ => {
                self.passed_over = Some((ticket, Instant::now()));
                false
            }
        }
    }

    /// Takes one of the operations that can go on.
    fn take_next(&mut self) -> Option<Entry> {
        let mut held = Held::default();
        // The streams that can go on, and the last ticket of each.
        let mut free: Vec<(u64, u64)> = Vec::new();
        let due = if self.is_done_through(self.due) { u64::MAX } else { self.due };
        let takes_first = self.chooser.takes_first();
        let mut oldest = 0;
        // Of the launches that stand still and may go on, the one that has done so for longest: they wait for what others
        // do, who come first, but not for ever. After a turn of one of them others come first again.
        let mut resting: Option<(Duration, u64)> = None;
        for head in self.heads() {
            if head.ticket > due && !free.is_empty() {
                break;
            }
            let stream = head.stream.id();
            if !held.holds(&head.stream) && head.is_ready(self.turns) {
                match head.op.standing().map(|standing| standing.since()) {
                    Some(since) if since < LONGEST || self.resumed => {
                        resting = resting.max(Some((since, stream)));
                    }
                    _ => {
                        let lane = self.lanes.get(&stream);
                        let last = lane.and_then(VecDeque::back).map_or(0, |last| last.ticket);
                        if free.is_empty() {
                            oldest = head.ticket;
                        }
                        free.push((stream, last));
                        if takes_first {
                            break;
                        }
                    }
                }
            }
            held.hold(&head.stream);
        }
        if free.is_empty() {
            return self.pop(resting?.1);
        }
        let chosen = self.chooser.choose(free.len(), |candidate| free[candidate].1);
        let chosen = if chosen > 0 && self.is_overdue(oldest) { 0 } else { chosen };
        self.pop(free.get(chosen)?.0)
    }

    /// Takes a launch that waits for something that never happens: it is stalled, nothing else can go on, on this
    /// device or another one of the process, no outside event is waited for that could change that, and the client
    /// waits.
    fn take_hung(&mut self) -> Option<Entry> {
        let lively = self.heads().any(|head| head.op.is_up_to_others());
        self.lively.set(lively);
        let hangs = |head: &&Entry| {
            head.op.standing().is_some_and(|standing| !standing.polls_host() && !standing.makes_way())
        };
        let stream = self.heads().find(hangs)?.stream.id();
        let waits = self.waits.values().any(|until| !until.holds(self));
        if !waits && self.asked_at.is_none() {
            return None;
        }
        // One thread that waits asks for nothing any more. Of several, another one may.
        let rests = |patience| {
            self.active.is_none_or(|active| active.elapsed() >= patience) && quiet_for() >= patience
        };
        let alone = || waits && !self.has_clients && !has_other_threads();
        if rests(PATIENCE.0) && (rests(PATIENCE.1) || alone()) { self.pop(stream) } else { None }
    }

    /// The signals of other devices that streams wait for, if a thread waits for these streams.
    fn awaited_elsewhere(&self, queue: &Queue, rest: Option<Duration>) -> Vec<Arc<Signal>> {
        if !self.chooser.order().puts_off() || rest.is_some() {
            return Vec::new();
        }
        let signals = self.heads().filter_map(|head| head.op.awaits());
        signals.filter(|signal| !signal.is_of(queue) && !signal.is_reached()).cloned().collect()
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
            Until::Signal(signal) => signal.is_reached(),
            Until::All(last) => state.is_done_through(*last),
            Until::Domain(domain, last) => {
                !state.has_some_of(|stream| stream.domain().id() == *domain, *last)
            }
            Until::Default(domain, last) => {
                let concerns = |stream: &Stream| {
                    stream.kind() != StreamKind::NonBlocking && stream.domain().id() == *domain
                };
                !state.has_some_of(concerns, *last)
            }
        }
    }

    /// Whether this condition implies the other one.
    fn covers(&self, other: &Until) -> bool {
        match (self, other) {
            (Until::Signal(a), Until::Signal(b)) => Arc::ptr_eq(a, b),
            (Until::All(a), Until::All(b)) => a >= b,
            (Until::Stream(a, last), Until::Stream(b, until))
            | (Until::Domain(a, last), Until::Domain(b, until))
            | (Until::Default(a, last), Until::Default(b, until)) => a == b && last >= until,
            _ => false,
        }
    }
}

impl Entry {
    /// Whether it can go on: it waits for nothing, or will never be executed.
    fn is_ready(&self, turns: u64) -> bool {
        self.op.is_ready(turns) || !self.op.is_running() && self.stream.domain().skips(self.ticket)
    }
}

/// What blocks later streams, while the lanes are examined in the order of their first tickets.
#[derive(Default)]
struct Held {
    /// Domains whose default stream blocks its blocking streams, or is blocked by them.
    defaults: Vec<u64>,
    blocking: Vec<u64>,
}

impl Held {
    fn holds(&self, stream: &Stream) -> bool {
        let domain = stream.domain().id();
        match stream.kind() {
            StreamKind::Legacy => self.blocking.contains(&domain),
            StreamKind::Blocking => self.defaults.contains(&domain),
            StreamKind::NonBlocking => false,
        }
    }

    fn hold(&mut self, stream: &Stream) {
        let domain = stream.domain().id();
        let list = match stream.kind() {
            StreamKind::Legacy => &mut self.defaults,
            StreamKind::Blocking => &mut self.blocking,
            StreamKind::NonBlocking => return,
        };
        if !list.contains(&domain) {
            list.push(domain);
        }
    }
}
