//! Whether two accesses are ordered, and which of their threads are not.

use std::cell::Cell;

use super::clock::{Clocks, Standing};
use super::entry::{Bytes, Entry, lanes};
use super::observed::Observed;

/// The view of the thread that accesses a row.
pub(super) struct View<'a> {
    /// The warp of the threads, also where their agents act.
    pub(super) warp: u8,
    pub(super) clocks: &'a Clocks,
    /// The memory is the block's own: accesses known to all of its threads are no longer relevant.
    pub(super) private: bool,
    /// Anything, evenly spread: which entry to drop where not all can be kept.
    pub(super) chance: u32,
    /// The observed locations of the row.
    pub(super) observed: Option<&'a Observed>,
    /// Whether an observation, and nothing else, ordered an earlier access before this one.
    pub(super) is_observed: Cell<bool>,
}

impl<'a> View<'a> {
    /// Of a row where nothing has been observed.
    pub(super) fn new(warp: u8, clocks: &'a Clocks, private: bool, chance: u32) -> View<'a> {
        View { warp, clocks, private, chance, observed: None, is_observed: Cell::new(false) }
    }

    /// The view of a row with these observed locations.
    pub(super) fn with<'b>(&self, observed: &'b Observed) -> View<'b>
    where
        'a: 'b,
    {
        View { observed: Some(observed), ..View::new(self.warp, self.clocks, self.private, self.chance) }
    }

    /// Of lanes that accessed a byte earlier, and that no clock orders, those that no observation orders either.
    #[inline(always)]
    fn unobserved(&self, old: &Entry, before: u32, at: (u32, u32)) -> u32 {
        let Some(observed) = self.observed else { return before };
        let left = observed.unordered(old, before, at, self);
        if left == 0 {
            self.is_observed.set(true);
        }
        left
    }
}

/// Called with an earlier access that races with the present one, and the bytes where the two meet. Returns whether
/// that settles it; if not, it is called with other bytes where they meet.
pub(super) type Found<'a> = dyn FnMut(&Entry, Meeting) -> bool + 'a;

/// Two lanes that met in some bytes of the row.
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
    /// Bytes from there that both accessed as one.
    pub(super) bytes: u32,
}

/// Whether some threads of overlapping accesses are unordered. Calls `found` with two threads of each element until
/// it returns that this is enough.
#[inline]
pub(super) fn unordered(
    old: &Entry,
    new: &Entry,
    view: &View<'_>,
    mut found: impl FnMut(Meeting) -> bool,
) -> bool {
    match view.clocks.standing(old.block, old.clock, old.is_async()) {
        Standing::Known => false,
        Standing::Unknown => strangers(old, new, view, &mut found),
        Standing::Ask => {
            let mut any = false;
            for old in old.each_warp() {
                let mut enough = false;
                any |= asked(&old, new, view, |meeting| {
                    enough = found(meeting);
                    enough
                });
                if enough {
                    break;
                }
            }
            any
        }
    }
}

/// Threads that are not the same, where no thread knows of others.
fn strangers(old: &Entry, new: &Entry, view: &View<'_>, mut found: impl FnMut(Meeting) -> bool) -> bool {
    // A thread's own accesses are in program order, unless an agent made the earlier one. What an agent
    // does comes after what its thread did.
    let own = if old.block == new.block && !old.is_async() { old.warps & 1 << view.warp } else { 0 };
    if old.warps != own {
        let mut others = *old;
        others.warps &= !own;
        return pairs(&others, new, view, |_, before| before, found);
    }
    !old.is_lanewise(new) && pairs(old, new, view, |lane, before| before & !(1 << lane), &mut found)
}

/// Does the same where a thread's knowledge must be looked up. The earlier access is of one warp.
pub(super) fn asked(old: &Entry, new: &Entry, view: &View<'_>, found: impl FnMut(Meeting) -> bool) -> bool {
    let View { clocks, warp, .. } = *view;
    if clocks.knows_warp(warp, old) {
        return false;
    }
    let own = old.block == new.block && old.warp() == warp;
    if own && old.is_lanewise(new) {
        return false;
    }
    let open = |lane: u32, before: u32| {
        let others = if own { before & !(1 << lane) } else { before };
        lanes(others).filter(|&of| !clocks.knows_lane(warp, lane, old, of)).fold(0, |all, of| all | 1 << of)
    };
    pairs(old, new, view, open, found)
}

/// Two lanes at each common element such that `open` leaves, of the earlier ones, any to the later one.
#[inline(always)]
fn pairs(
    old: &Entry,
    new: &Entry,
    view: &View<'_>,
    open: impl Fn(u32, u32) -> u32,
    mut found: impl FnMut(Meeting) -> bool,
) -> bool {
    let mut any = false;
    // Lanes change between elements only.
    let element = old.element().min(new.element());
    let mut bits = old.bytes.and(new.bytes).bits();
    while bits != 0 {
        let byte = bits.trailing_zeros();
        let bytes = (!(bits >> byte)).trailing_zeros().min(element - byte % element);
        bits &= !Bytes::range(byte - byte % element, element).bits();
        let (before, present) = (old.lanes_at(byte), new.lanes_at(byte));
        for lane in lanes(present) {
            let mut left = open(lane, before);
            if left != 0 {
                left = view.unobserved(old, left, (byte, lane));
            }
            if left == 0 {
                continue;
            }
            any = true;
            let before = left.trailing_zeros();
            if found(Meeting { warp: old.warp(), before, lane, byte, bytes }) {
                return true;
            }
        }
    }
    any
}
