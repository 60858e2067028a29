//! Observation order: writes that are ordered before an access because a strong read, itself ordered before the access,
//! has read what they left (PTX ISA 8.9.5, causality order, rule 2).
//!
//! A strong read observes the write whose value it reads, and through a chain of read-modify-writes those before it
//! (8.9.2). The block that saw all others' `atomicAdd` on a counter may reset the counter by a plain store, and so may
//! a thread that a barrier orders behind it. The rule orders these writes and nothing else that their threads did, so
//! no clock learns from it: each location that has been observed keeps a short log instead.
//!
//! ```text
//!   Observed   the logs of a row, present once a strong read met the strong write of another thread there
//!   Log        one location, of an address and a size: its last events, in the order of its values
//!   Event      threads of a warp wrote the location strongly, or observed it, or both
//! ```
//!
//! An access that nothing else orders behind a strong write asks the log for the last observation that its thread
//! knows: that of its own, or one which the clocks order before it. Strong writes that came before the observation are
//! ordered. Those that came after it are named in the log, for others do not say which they were.
//!
//! *Overwritten values.* A strong store that replaces a value does not end the chain here. Coherence orders earlier
//! strong writes before it, and causality orders it before the access, which leaves nothing undetermined.
//!
//! *Blocks on several host threads.* A write is entered before memory changes, and an observation after memory was
//! read. So an observation may count a write that came just after it, which can hide a race but never invent one.
//!
//! *Size.* A log keeps the last writes of a few warps. If the observation of a thread may have been dropped, and the
//! thread knows of all writes that followed, they count as ordered. This can hide a race, but never invent one.

use super::clock::{Clocks, Standing};
use super::entry::{Bytes, Entry, Lanes, ROW_BYTES, Scope, Stamp, lanes};
use super::order::{Found, View, unordered};

/// Events with a write that a log keeps.
const MAX_WRITES: usize = 4;
/// Events that a log keeps at all.
const MAX_EVENTS: usize = 64;

/// Threads of a warp that accessed a location by one instruction.
#[derive(Clone, Copy, Debug)]
struct Event {
    clock: u64,
    block: u32,
    /// The lanes; those of an atomic operation act in ascending order.
    lanes: u32,
    pc: u32,
    /// The execution of the instruction.
    serial: u16,
    warp: u8,
    flags: u8,
}

/// The event counts as a write for observations before it.
const WRITE: u8 = 1;
/// It observed what was there.
const READ: u8 = 2;
/// It is an atomic operation.
const ATOMIC: u8 = 4;
/// Its scope is the device.
const DEVICE: u8 = 8;

impl Event {
    fn new(of: &Entry, lanes: u32, role: u8) -> Event {
        let flag = |on: bool, bit: u8| if on { bit } else { 0 };
        Event {
            clock: of.clock,
            block: of.block,
            lanes,
            pc: of.pc,
            serial: of.serial(),
            warp: of.warp(),
            flags: role | flag(of.is_atomic() && of.is_write(), ATOMIC) | flag(of.is_device(), DEVICE),
        }
    }

    fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    fn is_same_warp(&self, other: &Event) -> bool {
        self.block == other.block && self.warp == other.warp
    }

    /// Whether it is strong for all threads for which `other` is.
    fn is_as_strong(&self, other: &Event) -> bool {
        self.is(DEVICE) || !other.is(DEVICE)
    }

    fn is_same_execution(&self, other: &Event) -> bool {
        self.is_same_warp(other) && self.clock == other.clock && self.serial == other.serial
    }

    /// As the write of some of its lanes.
    fn entry(&self, bytes: Bytes, of: u32) -> Entry {
        let stamp = Stamp {
            block: self.block,
            clock: self.clock,
            pc: self.pc,
            warp: self.warp,
            write: true,
            atomic: self.is(ATOMIC),
            strong: Some(if self.is(DEVICE) { Scope::Device } else { Scope::Block }),
            element: bytes.count(),
            serial: self.serial,
        };
        stamp.entry().with(bytes, Lanes::Set(of))
    }

    /// The lanes of whose part in the event a lane of a warp knows.
    fn known_to(&self, warp: u8, lane: u32, clocks: &Clocks) -> u32 {
        let own = if self.block == clocks.block && self.warp == warp { self.lanes & 1 << lane } else { 0 };
        match clocks.standing(self.block, self.clock, false) {
            Standing::Known => self.lanes,
            Standing::Unknown => own,
            Standing::Ask => {
                let entry = self.entry(Bytes::range(0, 1), self.lanes);
                if clocks.knows_warp(warp, &entry) {
                    return self.lanes;
                }
                let known = lanes(self.lanes & !own).filter(|&of| clocks.knows_lane(warp, lane, &entry, of));
                known.fold(own, |all, of| all | 1 << of)
            }
        }
    }
}

/// The last events of a location.
#[derive(Debug, Default)]
struct Log {
    /// The location.
    bytes: Bytes,
    /// The oldest first.
    events: Vec<Event>,
    /// An observation was dropped.
    lost: bool,
}

impl Log {
    /// Lanes wrote.
    fn wrote(&mut self, event: Event) {
        if let Some(same) = self.events.iter_mut().rev().find(|old| old.is_same_execution(&event)) {
            same.lanes |= event.lanes;
            return;
        }
        // The last write of a thread says enough of it.
        self.drop_lanes(&event, |old| !old.is(READ));
        self.push(event);
    }

    /// Lanes observed.
    fn observed(&mut self, event: Event) {
        if event.is(ATOMIC) {
            if let Some(last) = self.events.last_mut()
                && last.is_same_execution(&event)
            {
                last.flags |= READ;
                last.lanes |= event.lanes;
            } else {
                self.push(event);
            }
        } else {
            // Polls of one value: the first says most, since more threads know of it.
            let mut new = event.lanes;
            for old in self.events.iter_mut().rev() {
                let changes = old.is(WRITE) || old.is(ATOMIC);
                if old.is(READ) && old.is_same_warp(&event) && old.is_as_strong(&event) {
                    // Of the lanes of an atomic operation, the last has observed all others.
                    let last = 1u32 << 31 >> (old.lanes | 1).leading_zeros();
                    let all = if changes { last } else { old.lanes };
                    new &= !all;
                    if !changes && new != 0 && old.clock == event.clock && old.flags == event.flags {
                        old.lanes |= new;
                        new = 0;
                    }
                }
                if changes || new == 0 {
                    break;
                }
            }
            if new == 0 {
                return;
            }
            self.push(Event { lanes: new, ..event });
        }
        // Who knows of an earlier observation of the same time knows of this one.
        let writes = event.is(ATOMIC);
        self.drop_lanes(&event, |old| {
            old.clock == event.clock
                && !old.is_same_execution(&event)
                && event.is_as_strong(old)
                && (writes || !(old.is(WRITE) || old.is(ATOMIC)))
        });
    }

    /// Takes the lanes of an event out of its warp's earlier ones.
    #[inline]
    fn drop_lanes(&mut self, event: &Event, which: impl Fn(&Event) -> bool) {
        let mut empty = false;
        for old in &mut self.events {
            if old.is_same_warp(event) && which(old) {
                old.lanes &= !event.lanes;
                empty |= old.lanes == 0;
            }
        }
        if empty {
            self.events.retain(|old| old.lanes != 0);
        }
    }

    fn push(&mut self, event: Event) {
        self.events.push(event);
        let writes = self.events.iter().filter(|event| event.is(WRITE)).count();
        if writes > MAX_WRITES || self.events.len() > MAX_EVENTS {
            self.lost |= self.events.remove(0).is(READ);
        }
    }

    /// Whether a lane knows of an observation that counts. Calls `newer` with the writes after the last one, and their
    /// lanes.
    fn is_known(
        &self,
        lane: u32,
        view: &View<'_>,
        counts: impl Fn(&Event) -> bool,
        mut newer: impl FnMut(&Event, u32),
    ) -> bool {
        let mut open = false;
        for event in self.events.iter().rev() {
            let known = event.known_to(view.warp, lane, view.clocks);
            if event.is(READ) && known != 0 && counts(event) {
                let above = u32::MAX.checked_shl(32 - known.leading_zeros()).unwrap_or(0);
                if event.is(ATOMIC) && event.lanes & above != 0 {
                    newer(event, event.lanes & above);
                }
                return true;
            }
            if event.is(WRITE) {
                open |= known != event.lanes;
                newer(event, event.lanes);
            }
        }
        self.lost && !open
    }
}

/// The observed locations of a row.
#[derive(Debug)]
pub(super) struct Observed {
    /// All bytes of the locations.
    bytes: Bytes,
    /// For each byte, where the log of a location that begins there probably is.
    of: [u8; ROW_BYTES as usize],
    /// Those from `used` on are free.
    logs: Vec<Log>,
    used: usize,
}

impl Default for Observed {
    fn default() -> Self {
        Observed { bytes: Bytes::default(), of: [0; ROW_BYTES as usize], logs: Vec::new(), used: 0 }
    }
}

/// The locations of an access, each by its first byte and its size.
fn locations(bytes: Bytes, element: u32) -> impl Iterator<Item = (u32, Bytes)> {
    let mut left = bytes.bits();
    std::iter::from_fn(move || {
        (left != 0).then(|| {
            let byte = left.trailing_zeros();
            let start = byte - byte % element;
            let location = Bytes::range(start, element);
            left &= !location.bits();
            (start, location)
        })
    })
}

impl Observed {
    pub(super) fn clear(&mut self) {
        if self.used != 0 {
            (self.bytes, self.used) = (Bytes::default(), 0);
        }
    }

    /// Forgets the locations that have any of these bytes.
    pub(super) fn forget(&mut self, bytes: Bytes) {
        self.bytes = Bytes::default();
        for log in &mut self.logs[..self.used] {
            if !log.bytes.and(bytes).is_empty() {
                log.bytes = Bytes::default();
            }
            self.bytes = self.bytes.or(log.bytes);
        }
    }

    fn at(&self, start: u32, location: Bytes) -> Option<usize> {
        let is = |log: &Log| log.bytes == location;
        let logs = &self.logs[..self.used];
        let number = usize::from(self.of[start as usize % ROW_BYTES as usize]);
        if logs.get(number).is_some_and(is) {
            return Some(number);
        }
        logs.iter().position(is)
    }

    /// A strong read of one location that has a log has been done; false where it is another one.
    #[inline]
    pub(super) fn observe_again(&mut self, new: &Entry) -> bool {
        let start = new.bytes.first();
        if !self.bytes.contains(new.bytes) || new.bytes.count() != new.element() {
            return false;
        }
        let Some(at) = self.at(start, new.bytes) else { return false };
        self.logs[at].observed(Event::new(new, new.lanes_at(start), READ));
        true
    }

    /// A strong write.
    #[inline]
    pub(super) fn wrote(&mut self, new: &Entry) {
        if new.bytes.and(self.bytes).is_empty() {
            return;
        }
        for (start, location) in locations(new.bytes.and(self.bytes), new.element()) {
            if let Some(at) = self.at(start, location) {
                self.logs[at].wrote(Event::new(new, new.lanes_at(start), WRITE));
            }
        }
    }

    /// A strong read has been done; `met` are the bytes that another thread wrote strongly.
    pub(super) fn observe(&mut self, new: &Entry, met: Bytes) {
        for (start, location) in locations(new.bytes.and(self.bytes.or(met)), new.element()) {
            let at = match self.at(start, location) {
                Some(at) => at,
                None if met.and(location).is_empty() => continue,
                None => self.begin(start, location),
            };
            self.logs[at].observed(Event::new(new, new.lanes_at(start), READ));
        }
    }

    /// A log for a location.
    fn begin(&mut self, start: u32, location: Bytes) -> usize {
        let at = self.logs[..self.used].iter().position(|log| log.bytes.is_empty()).unwrap_or(self.used);
        if at == self.logs.len() {
            self.logs.push(Log::default());
        }
        self.used = self.used.max(at + 1);
        self.of[start as usize % ROW_BYTES as usize] = u8::try_from(at).unwrap_or(u8::MAX);
        self.bytes = self.bytes.or(location);
        let log = &mut self.logs[at];
        (log.bytes, log.lost) = (location, false);
        log.events.clear();
        at
    }

    /// Of lanes that accessed a byte earlier, which nothing else orders before the access of a lane, those that no
    /// observation orders either.
    #[cold]
    pub(super) fn unordered(
        &self,
        old: &Entry,
        before: u32,
        (byte, lane): (u32, u32),
        view: &View<'_>,
    ) -> u32 {
        if !old.is_strong() || !old.is_write() || old.is_async() {
            return before;
        }
        let start = byte - byte % old.element();
        let location = Bytes::range(start, old.element());
        let Some(at) = self.at(start, location) else { return before };
        let mut newer = 0;
        let counts = |event: &Event| event.entry(location, event.lanes).is_morally_strong(old);
        let known = self.logs[at].is_known(lane, view, counts, |event, lanes| {
            if event.block == old.block && event.clock == old.clock && old.warps >> event.warp & 1 != 0 {
                newer |= lanes;
            }
        });
        if known { before & newer } else { before }
    }

    /// Calls `race` with the writes that an access races with: those that came after the last observation that its
    /// thread knows.
    #[cold]
    pub(super) fn unseen(&self, new: &Entry, view: &View<'_>, race: &mut Found<'_>) {
        for log in &self.logs[..self.used] {
            let common = log.bytes.and(new.bytes);
            if common.is_empty() {
                continue;
            }
            for (byte, part) in locations(common, log.bytes.count().min(new.element())) {
                for lane in lanes(new.lanes_at(byte)) {
                    let mut newer = Vec::new();
                    if !log.is_known(lane, view, |_| true, |event, of| newer.push((*event, of))) {
                        continue;
                    }
                    let own = new.with(part, Lanes::Set(1 << lane));
                    for old in newer.into_iter().map(|(event, of)| event.entry(log.bytes, of)) {
                        if !old.is_morally_strong(new) {
                            unordered(&old, &own, view, |meeting| race(&old, meeting));
                        }
                    }
                }
            }
        }
    }
}
