//! Accesses of one kind to a row: entries, and scatters for the small ones.

use super::access::Spot;
use super::clock::Standing;
use super::entry::{Bytes, Entry, Lanes};
use super::order::{Found, View, asked, unordered};
use super::scatter::Scatter;

/// Entries of one list from which on small ones are kept in a scatter.
const MAX_IN_LIST: usize = 4;
/// Entries of one list at all. An agent that copies from one place without an end would leave any number.
const MAX_ENTRIES: usize = 512;
/// Bytes of a small entry at most.
const SMALL: u32 = 16;
/// Scatters of one list at most.
const MAX_SCATTERS: usize = 80;
/// The maximum number of other blocks whose same accesses to the same bytes are kept. Beyond that, these represent
/// all.
const MAX_FOREIGN: usize = 8;

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
pub(super) struct List {
    /// All bytes that the rest is about, and perhaps others.
    pub(super) bytes: Bytes,
    /// The same of the entries.
    plain: Bytes,
    first: Entry,
    rest: Vec<Entry>,
    more: Option<Box<More>>,
}

impl List {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Calls `visit` on each entry that overlaps `bytes`, and drops those left without bytes.
    #[inline(always)]
    pub(super) fn visit(&mut self, bytes: Bytes, mut visit: impl FnMut(&mut Entry)) {
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
    pub(super) fn meet(&mut self, new: &Entry, view: &View<'_>, mut race: Option<&mut Found<'_>>) {
        if self.bytes.and(new.bytes).is_empty() {
            return;
        }
        let mut gone = false;
        self.visit(new.bytes, |old| {
            let before = old.bytes;
            meet(old, new, view, race.as_deref_mut());
            gone |= old.bytes != before;
        });
        // Scatters of the own block are replaced by what is added to them.
        if race.is_some() || view.clocks.knows_others() {
            gone |= self.meet_scatters(new, view, race);
        }
        if gone {
            if let Some(more) = &mut self.more {
                more.crowd = more.crowd.without(new.bytes);
            }
            self.tidy();
        }
    }

    /// The same of the scatters. Whether something is remembered no longer.
    pub(super) fn meet_scatters(
        &mut self,
        new: &Entry,
        view: &View<'_>,
        mut race: Option<&mut Found<'_>>,
    ) -> bool {
        let mut gone = false;
        if let Some(more) = &mut self.more {
            for scatter in &mut more.scatters {
                gone |= scatter.meet(new, view, race.as_deref_mut());
            }
        }
        gone
    }

    /// The bytes of a strong read that other threads wrote strongly.
    pub(super) fn of_others(&self, new: &Entry) -> Bytes {
        let entries = std::iter::once(&self.first).chain(&self.rest);
        let mut bytes = entries.fold(Bytes::default(), |all, old| all.or(old.of_others(new)));
        if let Some(more) = &self.more {
            bytes = more.scatters.iter().fold(bytes, |all, scatter| all.or(scatter.of_others(new)));
        }
        bytes
    }

    /// Whether nothing new would be said by keeping the access.
    #[inline]
    pub(super) fn says(&mut self, new: &Entry, view: &View<'_>) -> bool {
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
    pub(super) fn push(&mut self, new: &Entry, view: &View<'_>) {
        self.bytes = self.bytes.or(new.bytes);
        let small = new.bytes.count() <= SMALL;
        if !(small && self.more.as_mut().is_some_and(|more| more.take(new, view))) {
            self.push_entry(new);
            let threshold = self.more.as_ref().map_or(MAX_IN_LIST, |more| more.threshold);
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
        if self.rest.capacity() == 0 {
            self.rest.reserve(2 * MAX_IN_LIST);
        }
        if self.rest.len() >= MAX_ENTRIES {
            self.rest.remove(0);
        }
        self.rest.push(*new);
    }

    /// Moves small entries to scatters.
    #[cold]
    fn scatter(&mut self, view: &View<'_>) {
        let more = self.more.get_or_insert_default();
        self.rest.retain(|entry| entry.bytes.count() > SMALL || !more.take(entry, view));
        more.threshold = MAX_IN_LIST.max(2 * self.rest.len());
        self.tidy();
    }

    /// Of what many blocks did to the same bytes, not all is kept.
    #[inline]
    fn thin(&mut self, new: &Entry, view: &View<'_>) {
        let scatters = self.more.as_ref().map_or(0, |more| more.scatters.len());
        if self.rest.len() + scatters >= MAX_FOREIGN {
            self.thin_out(new, view);
        }
    }

    fn thin_out(&mut self, new: &Entry, view: &View<'_>) {
        let class = crowd_class(new);
        let mut blocks = [0; MAX_FOREIGN + 1];
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
                && more.scatters.iter().filter(|s| foreign(s)).count() > 2 * MAX_FOREIGN
            {
                let at = view.chance as usize % more.scatters.len();
                if foreign(&more.scatters[at]) {
                    more.scatters.swap_remove(at);
                }
            }
        }
        if count > MAX_FOREIGN {
            let more = self.more.get_or_insert_default();
            if more.crowd_class != class {
                (more.crowd, more.crowd_class) = (Bytes::default(), class);
            }
            more.crowd = more.crowd.or(new.bytes);
            more.threshold = more.threshold.max(MAX_IN_LIST);
        }
        self.sample(new.block, view.chance);
    }

    /// Drops an entry of another block, if many others did the same to its bytes.
    fn sample(&mut self, block: u32, chance: u32) {
        if self.rest.len() <= MAX_FOREIGN {
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
        if others > MAX_FOREIGN {
            self.rest.swap_remove(at);
        }
    }

    /// Keeps a spot, if that is a matter of the warp's own scatter.
    #[inline(always)]
    pub(super) fn add(&mut self, new: &Entry, spot: &Spot, view: &View<'_>) -> bool {
        let Some(more) = &mut self.more else { return false };
        if self.plain.half(spot.half) & spot.bits != 0 {
            return false;
        }
        let write = new.is_write();
        let count = more.scatters.len();
        if write {
            // Whatever else there is must be strong for the access.
            if count > 1 && (!new.is_atomic() || more.mixed || !view.private) {
                return false;
            }
        } else if !new.is_strong()
            && more.crowd_class == 0
            && more.crowd.half(spot.half) & spot.bits == spot.bits
            && !view.clocks.knows_others()
        {
            return true;
        }
        if !view.private && self.rest.len() + count >= MAX_FOREIGN {
            return false;
        }
        let hint = more.hints[(new.warps.trailing_zeros() & 31) as usize];
        let Some(scatter) = more.scatters.get_mut(usize::from(hint)) else { return false };
        if scatter.bytes().is_empty() {
            if count > 1 {
                return false;
            }
            scatter.renew(new, u32::MAX);
        }
        let added = scatter.is_for(new) && scatter.add(new, spot, write && !new.is_atomic());
        if added {
            self.bytes.add_half(spot.half, spot.bits);
        }
        added
    }

    /// A spot is written. Returns whether its only content was the same thread's last access.
    #[inline(always)]
    pub(super) fn replace(&mut self, new: &Entry, spot: &Spot) -> bool {
        if self.bytes.half(spot.half) & spot.bits == 0 {
            return true;
        }
        // What is strong does not stand for what was weak.
        if new.is_strong() || (self.plain.half(spot.half) & spot.bits != 0 && !self.replace_plain(new, spot))
        {
            return false;
        }
        match &mut self.more {
            None => true,
            Some(more) => match &mut more.scatters[..] {
                [] => true,
                [scatter] => scatter.replace(new, spot),
                _ => false,
            },
        }
    }

    /// The same of the entries.
    fn replace_plain(&mut self, new: &Entry, spot: &Spot) -> bool {
        let overlaps = |entry: &Entry| entry.bytes.half(spot.half) & spot.bits != 0;
        let own = |entry: &Entry| !overlaps(entry) || entry.is_by(new, spot);
        if !own(&self.first) || !self.rest.iter().all(own) {
            return false;
        }
        self.first.bytes.drop_half(spot.half, spot.bits);
        self.rest.retain_mut(|entry| {
            entry.bytes.drop_half(spot.half, spot.bits);
            !entry.bytes.is_empty()
        });
        true
    }

    /// Whether so many blocks have read all bytes that it is not kept of more.
    pub(super) fn is_all_read(&self) -> bool {
        self.more.as_ref().is_some_and(|more| more.crowd_class == 0 && more.crowd == Bytes::ALL)
    }

    pub(super) fn clear(&mut self) {
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

    pub(super) fn forget(&mut self, bytes: Bytes) {
        self.visit(bytes, |entry| entry.bytes = entry.bytes.without(bytes));
        if let Some(more) = &mut self.more {
            more.crowd = more.crowd.without(bytes);
            more.scatters.iter_mut().for_each(|scatter| scatter.forget(bytes));
        }
        self.tidy();
    }
}

/// The property shared by similar accesses of several blocks: weak reads of any width conflict with all writes.
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
            None if self.scatters.len() < MAX_SCATTERS => {
                // Most rows have one, and rows are many.
                if self.scatters.is_empty() {
                    self.scatters.reserve_exact(1);
                }
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
    // What nobody knows of is replaced by who did it.
    if !conflicts
        && (old.block != new.block || old.warps != new.warps)
        && view.clocks.standing(old.block, old.clock, old.is_async()) == Standing::Unknown
    {
        return;
    }
    let open = match race {
        Some(race) if conflicts => unordered(old, new, view, |meeting| race(old, meeting)),
        _ => unordered(old, new, view, |_| true),
    };
    if !stands {
        return;
    }
    if !open || conflicts {
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
                .filter(|old| asked(old, new, view, |_| true))
                .fold(0, |warps, old| warps | old.warps);
        }
    }
}
