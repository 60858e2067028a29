//! The accesses that a row of memory remembers, with which a later access may race.
//!
//! A row keeps lists of entries, each for the bytes that a warp accessed with one instruction. A coalesced access is
//! one entry for any number of lanes. Warps that make the same access share it, and repeating it costs one
//! comparison. Rows that are accessed in small pieces keep these in scatters.

use super::access::Spot;
use super::entry::{Bytes, Entry, Lanes};
use super::list::List;
use super::non_coherent::Marks;
use super::observed::Observed;
use super::order::{Found, View, unordered};

/// What a row remembers.
#[derive(Debug, Default)]
pub(super) struct Row {
    writes: List,
    reads: List,
    /// The clock of the last access.
    newest: u64,
    /// Agents accessed it, of whom a barrier says nothing.
    agents: bool,
    /// What reads that are not coherent need to know, where there are any.
    marks: Option<Box<Marks>>,
    /// Locations where a strong read met the strong write of another thread.
    observed: Option<Box<Observed>>,
}

impl Row {
    /// Checks an access against the remembered ones, and remembers it. Calls `race` with each earlier access that it
    /// races with.
    #[inline]
    pub(super) fn access(&mut self, new: &Entry, view: &View<'_>, race: &mut Found<'_>) {
        if view.private {
            self.begin(new, view);
        }
        let Row { writes, reads, observed, .. } = self;
        let Some(observed) = observed else {
            return compare((writes, reads), new, view, race);
        };
        let looking = view.with(observed);
        compare((writes, reads), new, &looking, race);
        if looking.is_observed.get() {
            observed.unseen(new, view, race);
        }
        if new.is_write() && new.is_strong() {
            observed.wrote(new);
        }
    }

    /// A strong read has been done: it observes the strong writes of other threads.
    #[inline]
    pub(super) fn observe(&mut self, new: &Entry) {
        if self.writes.bytes.and(new.bytes).is_empty() {
            return;
        }
        if let Some(observed) = &mut self.observed
            && observed.observe_again(new)
        {
            return;
        }
        let met = self.writes.of_others(new);
        match &mut self.observed {
            Some(observed) => observed.observe(new, met),
            None if met.is_empty() => {}
            none => none.insert(Box::default()).observe(new, met),
        }
    }

    /// Remembers an access to a spot by a fast path. Returns whether that was possible: the spot contains nothing
    /// that the access could race with, and the access is kept where the warp's last one was.
    #[inline(always)]
    pub(super) fn add(&mut self, new: &Entry, spot: &Spot, view: &View<'_>) -> bool {
        if view.private {
            self.begin(new, view);
        }
        if !new.is_write() {
            return self.writes.bytes.half(spot.half) & spot.bits == 0 && self.reads.add(new, spot, view);
        }
        // What is replaced before the whole is refused is no loss: the entry that follows says it again.
        let added = self.reads.replace(new, spot) && self.writes.add(new, spot, view);
        if added
            && new.is_strong()
            && let Some(observed) = &mut self.observed
        {
            observed.wrote(&new.with(spot.bytes(), Lanes::Set(spot.lanes)));
        }
        added
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

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.writes.clear();
        self.reads.clear();
        if let Some(observed) = &mut self.observed {
            observed.clear();
        }
        self.newest = 0;
        self.agents = false;
    }

    /// Forgets some bytes.
    pub(super) fn forget(&mut self, bytes: Bytes) {
        self.writes.forget(bytes);
        self.reads.forget(bytes);
        if let Some(marks) = &mut self.marks {
            marks.forget(bytes);
        }
        if let Some(observed) = &mut self.observed {
            observed.forget(bytes);
        }
    }

    /// Whether so many blocks have read all of it that more readers add nothing, and whether reads that are not coherent
    /// have marked all of it.
    pub(super) fn is_crowded(&self) -> (bool, bool) {
        (self.reads.is_all_read(), self.marks.as_ref().is_some_and(|marks| marks.are_all_read()))
    }

    pub(super) fn marks(&mut self) -> &mut Marks {
        self.marks.get_or_insert_default()
    }
}

/// Compares an access with the remembered ones, and remembers it.
#[inline]
fn compare((writes, reads): (&mut List, &mut List), new: &Entry, view: &View<'_>, race: &mut Found<'_>) {
    if new.is_write() {
        writes.meet(new, view, Some(race));
        reads.meet(new, view, Some(race));
        if !(new.is_atomic() && writes.says(new, view)) {
            writes.push(new, view);
        }
        return;
    }
    if !writes.bytes.and(new.bytes).is_empty() {
        read_after(writes, new, view, race);
    }
    if !reads.says(new, view) {
        if !reads.bytes.and(new.bytes).is_empty() {
            reads.meet(new, view, None);
        }
        reads.push(new, view);
    }
}

/// A read of what was written.
fn read_after(writes: &mut List, new: &Entry, view: &View<'_>, race: &mut Found<'_>) {
    let mut meet = |old: &Entry| {
        if !old.is_morally_strong(new) {
            unordered(old, new, view, |meeting| race(old, meeting));
        }
    };
    writes.visit(new.bytes, |old| meet(old));
    writes.meet_scatters(new, view, Some(race));
}
