//! What a row of memory remembers: the accesses that a later one may race with.
//!
//! A row keeps lists of entries, each about the bytes that a warp touched with one instruction. A coalesced
//! access is one entry, however many lanes it had, warps that do the same share one, and meeting it again
//! is one comparison. Rows that are touched in small pieces keep these in [`Scatter`]s.

use super::access::Piece;
use super::clock::{Clocks, Standing};
use super::entry::{Bytes, Entry, Lanes, lanes};
use super::scatter::Scatter;

/// Entries of one list from which on small ones are kept in a scatter.
const MOST_IN_LIST: usize = 4;
/// Bytes of a small entry at most.
const SMALL: u32 = 16;
/// Scatters of one list at most.
const MOST_SCATTERS: usize = 80;
/// Other blocks of which is kept what they did to the same bytes. Beyond that these stand for all.
const MOST_FOREIGN: usize = 8;

/// What is called with each earlier access that races with the present one.
pub(super) type Found<'a> = dyn FnMut(&Entry, Meeting) + 'a;

/// Two lanes that met at a byte of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meeting {
    /// The warp of the earlier access; may be an agent.
    pub(super) warp: u8,
    /// The lane of the earlier access.
    pub(super) before: u32,
    /// The lane of the present one.
    pub(super) lane: u32,
    /// Where in the row.
    pub(super) byte: u32,
}

/// Finds two threads of overlapping accesses that nothing orders.
#[inline]
pub(super) fn unordered(old: &Entry, new: &Entry, view: &View<'_>) -> Option<Meeting> {
    match view.clocks.standing(old.block, old.clock, old.is_async()) {
        Standing::Known => None,
        Standing::Unknown => strangers(old, new, view.warp),
        Standing::Ask if old.warps.is_power_of_two() => asked(old, new, view),
        Standing::Ask => old.each_warp().find_map(|old| asked(&old, new, view)),
    }
}

/// Two threads that are not the same, where no thread knows of others.
fn strangers(old: &Entry, new: &Entry, warp: u8) -> Option<Meeting> {
    let common = old.bytes.and(new.bytes);
    if common.is_empty() {
        return None;
    }
    // A thread's own accesses are in program order, unless an agent made the earlier one. What an agent
    // does comes after what its thread did.
    let own = if old.block == new.block && !old.is_async() { old.warps & 1 << warp } else { 0 };
    let byte = common.bits().trailing_zeros();
    let mut old = *old;
    if old.warps != own {
        old.warps &= !own;
        let (before, lane) = (old.lanes_at(byte), new.lanes_at(byte));
        return Some(Meeting {
            warp: old.warp(),
            before: before.trailing_zeros() & 31,
            lane: lane.trailing_zeros() & 31,
            byte,
        });
    }
    if old.is_lanewise(new) {
        return None;
    }
    pairs(&old, new, |lane, before| before & !(1 << lane))
}

/// The same where what a thread knows must be looked up. The earlier access is of one warp.
fn asked(old: &Entry, new: &Entry, view: &View<'_>) -> Option<Meeting> {
    let View { clocks, warp, .. } = *view;
    if clocks.knows_warp(warp, old) {
        return None;
    }
    let own = old.block == new.block && old.warp() == warp;
    if own && old.is_lanewise(new) {
        return None;
    }
    pairs(old, new, |lane, before| {
        let others = if own { before & !(1 << lane) } else { before };
        lanes(others).filter(|&of| !clocks.knows_lane(warp, lane, old, of)).fold(0, |all, of| all | 1 << of)
    })
}

/// The first two lanes at a common byte such that `open` leaves, of the earlier ones, any to the later one.
#[inline(always)]
fn pairs(old: &Entry, new: &Entry, open: impl Fn(u32, u32) -> u32) -> Option<Meeting> {
    // Lanes change between elements only.
    let element = old.element().min(new.element());
    let mut bits = old.bytes.and(new.bytes).bits();
    while bits != 0 {
        let byte = bits.trailing_zeros();
        bits &= !Bytes::range(byte & !(element - 1), element).bits();
        let (before, present) = (old.lanes_at(byte), new.lanes_at(byte));
        for lane in lanes(present) {
            let left = open(lane, before);
            if left != 0 {
                return Some(Meeting { warp: old.warp(), before: left.trailing_zeros(), lane, byte });
            }
        }
    }
    None
}

/// What did not fit into entries.
#[derive(Debug, Default)]
struct More {
    /// For each warp, the scatter that took its last piece.
    hints: [u8; 32],
    /// Those without bytes are free.
    scatters: Vec<Scatter>,
    /// Bytes that so many blocks have accessed, in a way that conflicts with all that others do in the way
    /// of `crowd_class`, that it is not kept of more blocks.
    crowd: Bytes,
    crowd_class: u32,
    /// Entries from which on it is worth looking again for small ones.
    threshold: usize,
    /// Whether the scatters may be about several sorts of accesses.
    mixed: bool,
}

/// Accesses of one sort: the first in place.
#[derive(Debug, Default)]
struct List {
    /// All bytes that the rest is about, and perhaps others.
    bytes: Bytes,
    /// The same of the entries.
    plain: Bytes,
    first: Entry,
    rest: Vec<Entry>,
    more: Option<Box<More>>,
}

impl List {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Calls `visit` on each entry that overlaps `bytes`, and drops those left without bytes.
    #[inline(always)]
    fn visit(&mut self, bytes: Bytes, mut visit: impl FnMut(&mut Entry)) {
        if !self.first.bytes.and(bytes).is_empty() {
            visit(&mut self.first);
        }
        let mut at = 0;
        while at < self.rest.len() {
            let entry = &mut self.rest[at];
            if !entry.bytes.and(bytes).is_empty() {
                visit(entry);
                if entry.bytes.is_empty() {
                    self.rest.swap_remove(at);
                    continue;
                }
            }
            at += 1;
        }
    }

    /// After something was dropped: what is there now.
    fn tidy(&mut self) {
        self.plain = self.rest.iter().fold(self.first.bytes, |all, entry| all.or(entry.bytes));
        self.bytes = self.plain;
        if let Some(more) = &self.more {
            self.bytes = more.scatters.iter().fold(self.bytes, |all, scatter| all.or(scatter.bytes()));
        }
    }

    /// An access meets those of the list: it may take their place, and where `race` is given they conflict.
    #[inline]
    fn meet(&mut self, new: &Entry, view: &View<'_>, mut race: Option<&mut Found<'_>>) {
        if self.bytes.and(new.bytes).is_empty() {
            return;
        }
        let mut gone = false;
        self.visit(new.bytes, |old| {
            let before = old.bytes;
            meet(old, new, view, race.as_deref_mut());
            gone |= old.bytes != before;
        });
        if let Some(more) = &mut self.more {
            for scatter in &mut more.scatters {
                gone |= scatter.meet(new, view, race.as_deref_mut());
            }
            if gone {
                more.crowd = more.crowd.without(new.bytes);
            }
        }
        if gone {
            self.tidy();
        }
    }

    /// Whether nothing new would be said by keeping the access.
    #[inline]
    fn says(&mut self, new: &Entry, view: &View<'_>) -> bool {
        if !self.bytes.contains(new.bytes) {
            return false;
        }
        let says = |old: &mut Entry| {
            let says = old.says(new);
            // The last one to have accessed all of it is the one to be named.
            if says && old.bytes == new.bytes && old.warps == new.warps {
                old.pc = new.pc;
            }
            says
        };
        if says(&mut self.first) || self.rest.iter_mut().any(says) {
            return true;
        }
        self.more.as_ref().is_some_and(|more| more.is_crowded(crowd_class(new), new.bytes, view))
    }

    /// Remembers an access.
    #[inline]
    fn push(&mut self, new: &Entry, view: &View<'_>) {
        self.bytes = self.bytes.or(new.bytes);
        let small = new.bytes.count() <= SMALL;
        if !(small && self.more.as_mut().is_some_and(|more| more.take(new, view))) {
            self.push_entry(new);
            let threshold = self.more.as_ref().map_or(MOST_IN_LIST, |more| more.threshold);
            if small && self.rest.len() >= threshold {
                self.scatter(view);
            }
        }
        if !view.private {
            self.thin(new, view);
        }
    }

    #[inline]
    fn push_entry(&mut self, new: &Entry) {
        self.plain = self.plain.or(new.bytes);
        if self.first.bytes.is_empty() {
            self.first = *new;
            return;
        }
        if self.first.absorb(new) || self.rest.iter_mut().any(|entry| entry.absorb(new)) {
            return;
        }
        self.rest.push(*new);
    }

    /// Moves small entries to scatters.
    #[cold]
    fn scatter(&mut self, view: &View<'_>) {
        let more = self.more.get_or_insert_default();
        self.rest.retain(|entry| entry.bytes.count() > SMALL || !more.take(entry, view));
        more.threshold = MOST_IN_LIST.max(2 * self.rest.len());
        self.tidy();
    }

    /// Of what many blocks did to the same bytes, not all is kept.
    #[inline]
    fn thin(&mut self, new: &Entry, view: &View<'_>) {
        let scatters = self.more.as_ref().map_or(0, |more| more.scatters.len());
        if self.rest.len() + scatters >= MOST_FOREIGN {
            self.thin_out(new, view);
        }
    }

    fn thin_out(&mut self, new: &Entry, view: &View<'_>) {
        let class = crowd_class(new);
        let mut blocks = [0; MOST_FOREIGN + 1];
        let mut count = 0;
        let mut note = |block: u32| {
            if count < blocks.len() && !blocks[..count].contains(&block) {
                blocks[count] = block;
                count += 1;
            }
        };
        for entry in &self.rest {
            if crowd_class(entry) == class && entry.bytes.contains(new.bytes) {
                note(entry.block);
            }
        }
        if let Some(more) = &mut self.more {
            for scatter in &more.scatters {
                if crowd_class(&Entry::of_class(scatter.class(), 0)) == class
                    && scatter.bytes().contains(new.bytes)
                {
                    note(scatter.block());
                }
            }
            let foreign = |scatter: &Scatter| scatter.block() != new.block;
            if view.clocks.knows_others()
                && more.scatters.iter().filter(|s| foreign(s)).count() > 2 * MOST_FOREIGN
            {
                let at = view.chance as usize % more.scatters.len();
                if foreign(&more.scatters[at]) {
                    more.scatters.swap_remove(at);
                }
            }
        }
        if count > MOST_FOREIGN {
            let more = self.more.get_or_insert_default();
            if more.crowd_class != class {
                (more.crowd, more.crowd_class) = (Bytes::default(), class);
            }
            more.crowd = more.crowd.or(new.bytes);
            more.threshold = more.threshold.max(MOST_IN_LIST);
        }
        self.sample(new.block, view.chance);
    }

    /// Drops an entry of another block, if many others did the same to its bytes.
    fn sample(&mut self, block: u32, chance: u32) {
        if self.rest.len() <= MOST_FOREIGN {
            return;
        }
        let at = chance as usize % self.rest.len();
        let victim = self.rest[at];
        if victim.block == block {
            return;
        }
        let others = self
            .rest
            .iter()
            .filter(|entry| {
                entry.block != block
                    && entry.bytes.contains(victim.bytes)
                    && entry.is_strong() == victim.is_strong()
            })
            .count();
        if others > MOST_FOREIGN {
            self.rest.swap_remove(at);
        }
    }

    /// Keeps a small piece, if that is a matter of the warp's own scatter.
    #[inline(always)]
    fn repeats(&mut self, new: &Entry, piece: &Piece, units: (u8, u8), mask: u32, view: &View<'_>) -> bool {
        let Some(more) = &mut self.more else { return false };
        if !self.plain.and(piece.bytes).is_empty() {
            return false;
        }
        let private = view.private;
        let write = new.is_write();
        if !write && !new.is_strong() && more.is_crowded(0, piece.bytes, view) {
            return true;
        }
        let count = more.scatters.len();
        if !private && (self.rest.len() + count >= MOST_FOREIGN || write && count > 1) {
            return false;
        }
        let weak_write = write && !new.is_atomic();
        if count > 1 && (weak_write || write && more.mixed) {
            return false;
        }
        let hint = more.hints[(new.warps.trailing_zeros() & 31) as usize];
        let Some(scatter) = more.scatters.get_mut(usize::from(hint)) else { return false };
        if !scatter.bytes().is_empty()
            && scatter.is_for(new)
            && scatter.add(new, piece.bytes, units, mask, weak_write)
        {
            self.bytes = self.bytes.or(piece.bytes);
            return true;
        }
        false
    }

    /// A small piece is written: whether all that there was is what the same thread did just before.
    #[inline(always)]
    fn replaces(&mut self, new: &Entry, piece: &Piece, units: (u8, u8), mask: u32) -> bool {
        if self.bytes.and(piece.bytes).is_empty() {
            return true;
        }
        let Some(more) = &mut self.more else { return false };
        let [scatter] = &mut more.scatters[..] else { return false };
        // What is strong does not stand for what was weak.
        !new.is_strong()
            && self.plain.and(piece.bytes).is_empty()
            && scatter.replace(new, piece.bytes, units, mask)
    }

    fn clear(&mut self) {
        if self.is_empty() {
            return;
        }
        (self.bytes, self.plain) = Default::default();
        self.first = Entry::default();
        self.rest.clear();
        if let Some(more) = &mut self.more {
            more.crowd = Bytes::default();
            more.mixed = false;
            more.scatters.iter_mut().for_each(Scatter::clear);
        }
    }

    fn forget(&mut self, bytes: Bytes) {
        self.visit(bytes, |entry| entry.bytes = entry.bytes.without(bytes));
        if let Some(more) = &mut self.more {
            more.crowd = more.crowd.without(bytes);
            more.scatters.iter_mut().for_each(|scatter| scatter.forget(bytes));
        }
        self.tidy();
    }
}

/// What makes accesses of several blocks alike: weak reads of any width conflict with all writes.
fn crowd_class(entry: &Entry) -> u32 {
    if entry.is_write() || entry.is_strong() { entry.class() } else { 0 }
}

impl More {
    /// Whether so much is known of some bytes that more blocks add nothing.
    #[inline(always)]
    fn is_crowded(&self, class: u32, bytes: Bytes, view: &View<'_>) -> bool {
        self.crowd_class == class && self.crowd.contains(bytes) && !view.clocks.knows_others()
    }

    /// Keeps an entry in a scatter, and says whether one could take it.
    #[inline]
    fn take(&mut self, new: &Entry, view: &View<'_>) -> bool {
        let (mut open, mut own, mut free) = (false, false, None);
        for (at, scatter) in self.scatters.iter_mut().enumerate() {
            if scatter.bytes().is_empty() {
                free = Some(at);
            } else if scatter.is_for(new) {
                if scatter.take(new, view) {
                    self.hints[(new.warps.trailing_zeros() & 31) as usize] = at as u8;
                    return true;
                }
                if scatter.is_open() {
                    open = true;
                } else {
                    own = true;
                }
            }
        }
        // Warps that do not fit together get one each.
        if own || (open && !new.warps.is_power_of_two()) {
            return false;
        }
        let warps = if open { new.warps } else { u32::MAX };
        let others = |scatter: &Scatter| !scatter.bytes().is_empty() && scatter.class() != new.class();
        self.mixed |= self.scatters.iter().any(others);
        let scatter = match free {
            Some(at) => {
                self.scatters[at].renew(new, warps);
                &mut self.scatters[at]
            }
            None if self.scatters.len() < MOST_SCATTERS => {
                self.scatters.push(Scatter::new(new, warps));
                let last = self.scatters.len() - 1;
                &mut self.scatters[last]
            }
            None => return false,
        };
        scatter.take(new, view)
    }
}

/// The new access meets an old one: it may replace it, and where `race` is given the two conflict.
#[inline]
fn meet(old: &mut Entry, new: &Entry, view: &View<'_>, race: Option<&mut Found<'_>>) {
    let stands = new.stands_for(old);
    let conflicts = race.is_some() && !old.is_morally_strong(new);
    if !stands && !conflicts {
        return;
    }
    let meeting = unordered(old, new, view);
    if conflicts && let (Some(meeting), Some(race)) = (meeting, race) {
        race(old, meeting);
    }
    if !stands {
        return;
    }
    if meeting.is_none() || conflicts {
        old.bytes = old.bytes.without(new.bytes);
    } else if old.block == new.block && !old.is_async() && new.bytes.contains(old.bytes) {
        let own = 1 << view.warp;
        if old.warps == own
            && new.warps == own
            && !new.is_async()
            && let Lanes::Set(lanes) = new.lanes()
        {
            // Polls of one location by many lanes: each lane's last is enough.
            old.drop_lanes(lanes);
        } else if !old.warps.is_power_of_two()
            && view.clocks.standing(old.block, old.clock, false) == Standing::Ask
        {
            old.warps = old
                .each_warp()
                .filter(|old| asked(old, new, view).is_some())
                .fold(0, |warps, old| warps | old.warps);
        }
    }
}

/// Who looks at a row.
pub(super) struct View<'a> {
    /// The warp of the threads, also where their agents act.
    pub(super) warp: u8,
    pub(super) clocks: &'a Clocks,
    /// The memory is the block's own: what its threads all know is of no interest any more.
    pub(super) private: bool,
    /// Anything, evenly spread: which entry to drop where not all can be kept.
    pub(super) chance: u32,
}

/// What a row remembers.
#[derive(Debug, Default)]
pub(super) struct Row {
    writes: List,
    reads: List,
    /// The clock of the last access.
    newest: u64,
    /// Agents accessed it, of whom a barrier says nothing.
    agents: bool,
}

impl Row {
    /// Checks an access against what is remembered, and remembers it. `race` is called with each
    /// earlier access that it races with.
    #[inline]
    pub(super) fn access(&mut self, new: &Entry, view: &View<'_>, race: &mut Found<'_>) {
        if view.private {
            self.begin(new, view);
        }
        if new.is_write() {
            self.writes.meet(new, view, Some(race));
            self.reads.meet(new, view, Some(race));
            if !(new.is_atomic() && self.writes.says(new, view)) {
                self.writes.push(new, view);
            }
            return;
        }
        if !self.writes.bytes.and(new.bytes).is_empty() {
            self.read_after(new, view, race);
        }
        if !self.reads.says(new, view) {
            if !self.reads.bytes.and(new.bytes).is_empty() {
                self.reads.meet(new, view, None);
            }
            self.reads.push(new, view);
        }
    }

    /// Remembers a small piece without further ado, and says whether it could: nothing is there that the
    /// access could race with, and it is kept where the last piece of the warp was.
    #[inline(always)]
    pub(super) fn repeats(&mut self, new: &Entry, piece: &Piece, view: &View<'_>) -> bool {
        let (Some(units), Lanes::Set(mask)) = (piece.pairs, piece.lanes) else { return false };
        if new.is_async() {
            return false;
        }
        if view.private {
            self.begin(new, view);
        }
        if !new.is_write() {
            return self.writes.bytes.and(piece.bytes).is_empty()
                && self.reads.repeats(new, piece, units, mask, view);
        }
        // What is replaced before the whole is refused is no loss: the entry that follows says it again.
        self.reads.replaces(new, piece, units, mask) && self.writes.repeats(new, piece, units, mask, view)
    }

    /// Forgets what is of the past for all threads that can come.
    #[inline(always)]
    fn begin(&mut self, new: &Entry, view: &View<'_>) {
        if self.newest < view.clocks.settled() {
            if !self.agents {
                self.clear();
            } else if self.writes.is_empty() && self.reads.is_empty() {
                self.agents = false;
            }
        }
        self.newest = new.clock;
        self.agents |= new.is_async();
    }

    /// A read of what was written.
    fn read_after(&mut self, new: &Entry, view: &View<'_>, race: &mut Found<'_>) {
        let mut meet = |old: &Entry| {
            if !old.is_morally_strong(new)
                && let Some(meeting) = unordered(old, new, view)
            {
                race(old, meeting);
            }
        };
        self.writes.visit(new.bytes, |old| meet(old));
        if let Some(more) = &mut self.writes.more {
            more.scatters.iter_mut().for_each(|scatter| {
                scatter.meet(new, view, Some(race));
            });
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.writes.clear();
        self.reads.clear();
        self.newest = 0;
        self.agents = false;
    }

    /// Forgets some bytes.
    pub(super) fn forget(&mut self, bytes: Bytes) {
        self.writes.forget(bytes);
        self.reads.forget(bytes);
    }
}
