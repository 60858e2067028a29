//! Whether two accesses are ordered, and which of their threads are not.

use super::clock::{Clocks, Standing};
use super::entry::{Bytes, Entry, lanes};

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
pub(super) fn asked(old: &Entry, new: &Entry, view: &View<'_>) -> Option<Meeting> {
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
