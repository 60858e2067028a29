//! What the checks see of a compare-and-swap: by the memory model (PTX ISA 8.4) it is a write only where it stores.
//!
//! Lanes act one after the other. Which of them will store is found out before they do, since a write is announced
//! before memory changes. A lane that will not store only reads memory.

use super::atomic::Atomic;
use crate::check::Touch;
use crate::check::race::AccessKind;
use crate::machine::{LANES, LanesOf, Machine};
use crate::memory::{Group, Order};

/// The lanes of a compare-and-swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Swaps {
    /// Those that only read, before any lane stores.
    pub(super) before: u32,
    /// Those that only read, behind a lane that stores.
    pub(super) behind: u32,
}

impl Swaps {
    /// All lanes count as writes.
    pub(super) const ALL_STORE: Swaps = Swaps { before: 0, behind: 0 };

    /// Of lanes that swap `new` in where memory holds `expected`. `found` is what memory holds before, and then what
    /// each lane finds.
    pub(super) fn foresee<T: Copy + PartialEq>(
        group: &Group<'_>,
        (expected, new): (&[T; LANES], &[T; LANES]),
        found: &mut [T; LANES],
    ) -> Swaps {
        let mut stored: Vec<(u64, T)> = Vec::new();
        let mut swaps = Swaps::ALL_STORE;
        for lane in LanesOf(group.mask) {
            let at = group.offsets[lane];
            if let Some(&(_, value)) = stored.iter().rev().find(|&&(place, _)| place == at) {
                found[lane] = value;
            }
            if found[lane] == expected[lane] {
                stored.push((at, new[lane]));
            } else if stored.is_empty() {
                swaps.before |= 1 << lane;
            } else {
                swaps.behind |= 1 << lane;
            }
        }
        swaps
    }
}

impl<'a> Machine<'a> {
    /// Whether it matters which lanes of a compare-and-swap store.
    pub(super) fn foresees_swaps(&self) -> bool {
        self.launch.options.checks.race
    }

    /// Lanes are about to compare and swap.
    pub(super) fn touches_swaps(&mut self, op: &Atomic, swaps: Swaps, group: &Group<'a>) {
        let reads = swaps.before | swaps.behind;
        if reads == 0 {
            return self.touches(op.touch(), group, &[]);
        }
        let touch = reading(op);
        self.look(touch, &group.part(reads), &[], 0);
        if op.reads && swaps.before != 0 {
            self.observed(touch, &group.part(swaps.before));
        }
        if reads != group.mask {
            self.look(op.touch(), &group.part(group.mask & !reads), &[], 0);
        }
        self.counted(AccessKind::Atomic, group);
    }

    /// They have done so, and observed what they found.
    pub(super) fn observed_swaps(&mut self, op: &Atomic, swaps: Swaps, group: &Group<'a>) {
        let stores = group.mask & !(swaps.before | swaps.behind);
        if stores != 0 {
            self.observed(op.touch(), &group.part(stores));
        }
        if swaps.behind != 0 {
            self.observed(reading(op), &group.part(swaps.behind));
        }
    }

    /// A lane that was to read only stores after all: another host thread was faster.
    pub(super) fn touches_swap(&mut self, op: &Atomic, group: &Group<'a>, lane: usize) {
        self.look(op.touch(), &group.part(1 << lane), &[], 0);
    }
}

fn reading(op: &Atomic) -> Touch {
    Touch { kind: AccessKind::Swap, order: Order { release: false, ..op.order }, ..op.touch() }
}
