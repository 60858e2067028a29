//! What a row of memory remembers: the accesses that a later one may race with.
//!
//! A row keeps lists of entries, each about the bytes that one warp touched with one instruction. A
//! coalesced access is one entry, however many lanes it had, and meeting it again is one comparison.
//! Rows that many warps touch in small pieces (bins of a histogram) are split into words with lists of
//! their own.

use super::clock::Clocks;
use super::entry::{Bytes, Entry, lanes};

/// Entries of one list after which a row is split into words.
const MOST_IN_ROW: usize = 48;
/// Entries of other blocks that are kept for the same bytes. Beyond that a sample stands for all.
const MOST_FOREIGN: usize = 8;
/// Entries of one list in all: one for each thread of a block. An agent that copies from one place without an
/// end would leave any number.
const MOST_IN_LIST: usize = 1024;
const WORDS: usize = 32;
const WORD_BYTES: u32 = 4;

/// What is called with each earlier access that races with the present one.
pub(super) type Found<'a> = dyn FnMut(&Entry, Meeting) + 'a;

/// Two lanes that met at a byte of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meeting {
    /// The lane of the earlier access.
    pub(super) before: u32,
    /// The lane of the present one.
    pub(super) lane: u32,
    /// Where in the row.
    pub(super) byte: u32,
}

/// Finds two lanes of overlapping accesses that nothing orders.
fn unordered(old: &Entry, new: &Entry, warp: u8, clocks: &Clocks) -> Option<Meeting> {
    if clocks.knows_warp(warp, old) {
        return None;
    }
    // A thread's own accesses are in program order, unless an agent made the earlier one. What an agent
    // does comes after what its thread did.
    let own = old.block == new.block && old.warp() == warp;
    if own && old.is_lanewise(new) {
        return None;
    }
    // Lanes change between elements only.
    let element = old.element().min(new.element());
    let mut bits = old.bytes.and(new.bytes).bits();
    while bits != 0 {
        let byte = bits.trailing_zeros();
        bits &= !Bytes::range(byte & !(element - 1), element).bits();
        let (before, present) = (old.lanes_at(byte), new.lanes_at(byte));
        for lane in lanes(present) {
            let others = if own { before & !(1 << lane) } else { before };
            if let Some(before) = lanes(others).find(|&of| !clocks.knows_lane(warp, lane, old, of)) {
                return Some(Meeting { before, lane, byte });
            }
        }
    }
    None
}

/// A few entries, the first in place.
#[derive(Debug, Default)]
struct List {
    first: Entry,
    rest: Vec<Entry>,
}

impl List {
    fn len(&self) -> usize {
        usize::from(!self.first.bytes.is_empty()) + self.rest.len()
    }

    fn iter(&self) -> impl Iterator<Item = &Entry> {
        std::iter::once(&self.first).filter(|entry| !entry.bytes.is_empty()).chain(&self.rest)
    }

    /// Calls `visit` on each entry that overlaps `bytes`, and drops those left without bytes.
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

    fn push(&mut self, new: Entry) {
        if self.first.bytes.is_empty() {
            self.first = new;
            return;
        }
        if self.first.absorb(&new) || self.rest.iter_mut().any(|entry| entry.absorb(&new)) {
            return;
        }
        self.rest.push(new);
    }

    /// Keeps a sample of what blocks other than `block` did, where many did it to the same bytes.
    fn thin(&mut self, block: u32, chance: u32) {
        if self.rest.len() <= MOST_FOREIGN {
            return;
        }
        let at = chance as usize % self.rest.len();
        let victim = self.rest[at];
        if self.rest.len() > MOST_IN_LIST {
            self.rest.swap_remove(at);
            return;
        }
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

    fn clear(&mut self) {
        self.first = Entry::default();
        self.rest.clear();
    }
}

/// The writes and the reads of a piece of memory.
#[derive(Debug, Default)]
struct Cell {
    writes: List,
    reads: List,
}

impl Cell {
    fn access(&mut self, new: &Entry, view: &View<'_>, race: &mut Found<'_>) {
        if new.is_write() {
            if self.writes.first.says(new) {
                return;
            }
            self.writes.visit(new.bytes, |old| meet(old, new, view, Some(race)));
            self.reads.visit(new.bytes, |old| meet(old, new, view, Some(race)));
            self.writes.push(*new);
            self.writes.thin(new.block, view.chance);
        } else {
            if self.reads.first.says(new) {
                return;
            }
            self.writes.visit(new.bytes, |old| {
                if !old.is_morally_strong(new)
                    && let Some(meeting) = unordered(old, new, view.warp, view.clocks)
                {
                    race(old, meeting);
                }
            });
            self.reads.visit(new.bytes, |old| meet(old, new, view, None));
            self.reads.push(*new);
            self.reads.thin(new.block, view.chance);
        }
    }
}

/// The new access meets an old one: it may replace it, and where `race` is given the two conflict.
fn meet(old: &mut Entry, new: &Entry, view: &View<'_>, race: Option<&mut Found<'_>>) {
    let stands = new.stands_for(old);
    let conflicts = race.is_some() && !old.is_morally_strong(new);
    if !stands && !conflicts {
        return;
    }
    let meeting = unordered(old, new, view.warp, view.clocks);
    if conflicts && let (Some(meeting), Some(race)) = (meeting, race) {
        race(old, meeting);
    }
    if !stands {
        return;
    }
    if meeting.is_none() || conflicts {
        old.bytes = old.bytes.without(new.bytes);
    } else if old.block == new.block
        && old.warp() == new.warp()
        && old.warp() == view.warp
        && new.bytes.contains(old.bytes)
        && let super::entry::Lanes::Set(lanes) = new.lanes()
    {
        // Polls of one location by many lanes: each lane's last is enough.
        old.drop_lanes(lanes);
    }
}

/// Who looks at a row.
pub(super) struct View<'a> {
    /// The warp of the threads, also where their agents act.
    pub(super) warp: u8,
    pub(super) clocks: &'a Clocks,
    /// Anything, evenly spread: which entry to drop where not all can be kept.
    pub(super) chance: u32,
}

/// What a row remembers.
#[derive(Debug, Default)]
pub(super) struct Row {
    cell: Cell,
    words: Option<Box<[Cell; WORDS]>>,
}

impl Row {
    /// Checks an access against what is remembered, and remembers it. `race` is called with each
    /// earlier access that it races with.
    pub(super) fn access(&mut self, new: &Entry, view: &View<'_>, race: &mut Found<'_>) {
        let Some(words) = &mut self.words else {
            self.cell.access(new, view, race);
            if self.cell.writes.len().max(self.cell.reads.len()) > MOST_IN_ROW {
                self.split();
            }
            return;
        };
        let mut bits = new.bytes.bits();
        while bits != 0 {
            let word = bits.trailing_zeros() / WORD_BYTES;
            let bytes = Bytes::range(word * WORD_BYTES, WORD_BYTES);
            bits &= !bytes.bits();
            words[word as usize].access(&new.only(bytes), view, race);
        }
    }

    fn split(&mut self) {
        let mut words: Box<[Cell; WORDS]> = Box::default();
        for (word, cell) in words.iter_mut().enumerate() {
            let bytes = Bytes::range(word as u32 * WORD_BYTES, WORD_BYTES);
            let inside = |entry: &&Entry| !entry.bytes.and(bytes).is_empty();
            self.cell.writes.iter().filter(inside).for_each(|entry| cell.writes.push(entry.only(bytes)));
            self.cell.reads.iter().filter(inside).for_each(|entry| cell.reads.push(entry.only(bytes)));
        }
        self.cell = Cell::default();
        self.words = Some(words);
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.cell.writes.clear();
        self.cell.reads.clear();
        self.words = None;
    }

    /// Forgets some bytes.
    pub(super) fn forget(&mut self, bytes: Bytes) {
        let drop = |cell: &mut Cell| {
            cell.writes.visit(bytes, |entry| entry.bytes = entry.bytes.without(bytes));
            cell.reads.visit(bytes, |entry| entry.bytes = entry.bytes.without(bytes));
        };
        drop(&mut self.cell);
        if let Some(words) = &mut self.words {
            words.iter_mut().for_each(drop);
        }
    }
}
