//! The values that a store writes, for the race check.

use super::race::Stored;
use crate::machine::Registers;
use crate::memory::{Element, Group, RegionKind};
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

/// How often a worker waits for a store that another worker has been seen to be about to do, and how often it then looks.
/// The other one has only that store left to do, unless its host thread does not run.
const WAITS: u32 = 64;
const LOOKS: u32 = 256;

/// The values that a store of registers writes.
pub(super) struct StoredRegisters<'m> {
    pub(super) registers: &'m Registers,
    pub(super) elements: &'m [Element],
    pub(super) bytes: u32,
    pub(super) group: &'m Group<'m>,
    pub(super) shared: &'m [u32],
    /// The worker's waits, where other workers write the same memory.
    pub(super) waits: Option<&'m Cell<u32>>,
}

impl StoredRegisters<'_> {
    /// A byte of what a lane stores; none where a vector has a `_`.
    fn byte(&self, lane: u32, at: u32) -> Option<u8> {
        let (lane, byte) = (lane as usize, at % self.bytes.max(1));
        let value: u128 = match *self.elements.get((at / self.bytes.max(1)) as usize)? {
            Element::Sink => return None,
            Element::Narrow(row) => self.registers.row32(row)[lane].into(),
            Element::Wide(row) => self.registers.row64(row)[lane].into(),
            Element::Double(row) => {
                u128::from(self.registers.row64(row)[lane])
                    | u128::from(self.registers.row64(row + 1)[lane]) << 64
            }
        };
        Some((value >> (8 * byte)) as u8)
    }

    fn byte_in_memory(&self, at: u64) -> u8 {
        let word = match self.group.region.kind {
            RegionKind::Global(allocation) => allocation.word(at).load(Relaxed),
            _ => self.shared.get((at >> 2) as usize).copied().unwrap_or(0),
        };
        (word >> (8 * (at & 3))) as u8
    }
}

impl Stored for StoredRegisters<'_> {
    fn is_in_memory(&self, lane: u32, from: u32, bytes: u32) -> bool {
        let is_there = || {
            (from..from + bytes).all(|at| {
                let there = self.byte_in_memory(self.group.offsets[lane as usize] + u64::from(at));
                self.byte(lane, at).is_none_or(|byte| byte == there)
            })
        };
        // Accesses are looked at before they are done: a worker may see that another one stores before it has.
        is_there()
            || self.waits.is_some_and(|waits| {
                waits.set(waits.get() + 1);
                waits.get() <= WAITS
                    && (0..LOOKS).any(|_| {
                        std::thread::yield_now();
                        is_there()
                    })
            })
    }

    fn is_equal(&self, (a, a_from): (u32, u32), (b, b_from): (u32, u32), bytes: u32) -> bool {
        (0..bytes).all(|at| self.byte(a, a_from + at) == self.byte(b, b_from + at))
    }
}
