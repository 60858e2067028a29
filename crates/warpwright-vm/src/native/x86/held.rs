//! Which rows are in vector registers.
//!
//! What is read again is still in a register, where a segment has not been entered since. With AVX-512 a result stays there
//! alone, until a segment ends, its register is needed, or something else reads its row; so one that is replaced before
//! that is never stored. Where native code is left, these results are stored on the way out: rows are then what the
//! interpreter would have left. With AVX2, which has few registers, results are stored at once.

use super::{Accesses, Compiler, Result, Vectors, row32, row64};
use crate::machine::{Inst, UNGUARDED};
use crate::native::{Lane, Operation};
use iced_x86::code_asm::*;
use std::ops::Range;

/// A strip of a row: whether the row is of 64 bits, which one it is, and which strip.
pub(super) type Strip = (bool, u32, i32);

/// What registers hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    strips: [Option<Strip>; 16],
    /// Results that are not in their rows yet.
    unsaved: [bool; 16],
    /// When each was used last.
    used: [u32; 16],
    now: u32,
    /// Some lanes may skip the instruction: what it puts into registers would not be there.
    pub(super) skipped: bool,
}

impl Held {
    /// Nothing is held.
    pub(super) fn clear(&mut self) {
        debug_assert!(self.unsaved().next().is_none(), "results are lost");
        self.free(0..self.strips.len());
    }

    /// The results that are not in their rows.
    pub(super) fn unsaved(&self) -> impl Iterator<Item = (usize, Strip)> {
        self.all().filter(|&(at, _)| self.unsaved[at])
    }

    /// What is held where, by the numbers of registers.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, Strip)> {
        self.strips.into_iter().enumerate().filter_map(|(at, strip)| Some((at, strip?)))
    }

    /// What others hold, and these do not.
    pub(super) fn missing(&self, others: &Held) -> Vec<(usize, Strip)> {
        others.all().filter(|&(at, strip)| self.strips[at] != Some(strip)).collect()
    }

    fn find(&mut self, strip: Strip) -> Option<usize> {
        let at = self.strips.iter().position(|held| *held == Some(strip))?;
        self.now += 1;
        self.used[at] = self.now;
        Some(at)
    }

    /// A register for a strip, in the place of the one of these that was used longest ago and is saved. A strip that may be
    /// skipped is not held.
    fn take(&mut self, of: Range<usize>, strip: Strip) -> usize {
        let first = of.start;
        let at = of.min_by_key(|&at| (self.unsaved[at], self.used[at])).unwrap_or(first);
        debug_assert!(!self.unsaved[at], "a result is lost");
        self.now += 1;
        (self.strips[at], self.used[at]) = ((!self.skipped).then_some(strip), self.now);
        at
    }

    /// Registers hold nothing any more.
    pub(super) fn free(&mut self, of: Range<usize>) {
        self.strips[of.clone()].fill(None);
        self.unsaved[of.clone()].fill(false);
        self.used[of].fill(0);
    }

    /// A strip changes in memory alone.
    pub(super) fn forget(&mut self, strip: Strip) {
        if let Some(at) = self.strips.iter().position(|held| *held == Some(strip)) {
            self.free(at..at + 1);
        }
    }
}

impl<V: Vectors> Compiler<'_, V> {
    /// A register with a strip of a row, as it is.
    pub(super) fn raw(&mut self, wide: bool, row: u32, strip: i32) -> Result<V::Register> {
        let place = (wide, row, strip);
        if let Some(at) = self.held.find(place) {
            return Ok(V::HOLD[at]);
        }
        let register = V::HOLD[self.held.take(V::SOURCES, place)];
        self.fetch(register, place)?;
        Ok(register)
    }

    /// The word that a row has in all lanes, if it is one of a constant.
    pub(super) fn constant(&self, row: u32) -> Option<u32> {
        let function = self.code.functions.iter().find(|function| function.entry == self.first)?;
        function.constants32.iter().find(|(of, _)| *of == row).map(|(_, value)| *value)
    }

    /// The same, but what is not held is loaded into another register.
    pub(super) fn peek(&mut self, other: V::Register, place: Strip) -> Result<V::Register> {
        if let Some(at) = self.held.find(place) {
            return Ok(V::HOLD[at]);
        }
        self.fetch(other, place)?;
        Ok(other)
    }

    /// Loads a strip of a row.
    pub(super) fn fetch(&mut self, into: V::Register, strip: Strip) -> Result<()> {
        V::load(&mut self.a, into, place::<V>(strip))
    }

    /// The lanes of the result become a strip of a row.
    pub(super) fn put(&mut self, lane: Lane, row: u32, strip: i32) -> Result<()> {
        if lane.is_half() {
            V::zeros_above_half(self)?;
        }
        self.put_strip((lane.is_wide(), row, strip))
    }

    pub(super) fn put32(&mut self, row: u32, strip: i32) -> Result<()> {
        self.put_strip((false, row, strip))
    }

    pub(super) fn put64(&mut self, row: u32, strip: i32) -> Result<()> {
        self.put_strip((true, row, strip))
    }

    pub(super) fn put_strip(&mut self, strip: Strip) -> Result<()> {
        if self.masked {
            let old = self.peek(V::OLD, strip)?;
            V::blend(self, old, strip)?;
        }
        self.held.forget(strip);
        let is_held = !self.held.skipped;
        if !(V::KEEPS_RESULTS && is_held) {
            V::store(&mut self.a, place::<V>(strip), V::RESULT)?;
        }
        if is_held {
            let at = self.held.take(V::RESULTS, strip);
            V::copy(&mut self.a, V::HOLD[at])?;
            self.held.unsaved[at] = V::KEEPS_RESULTS;
        }
        self.make_room(FREE)
    }

    /// Saves results where an instruction is left, or reads rows, so that they would be lost or not be seen.
    pub(super) fn prepare(&mut self, inst: &Inst, operation: Operation) -> Result<()> {
        use Operation::*;
        let is_seen = self.variant.accesses == Accesses::Noted || self.variant.counted;
        match operation {
            // What may be skipped saves nothing; segments end; routines read rows, and change registers.
            _ if inst.guard != UNGUARDED => self.save_all(),
            Branch | MultiplyFragments { .. } => self.save_all(),
            Load | Store | Atomic(..) if is_seen => self.save_all(),
            Load | Store => self.prepare_access(&self.code.memory[inst.x as usize], operation == Store),
            Atomic(..) => self.save_row(false, inst.a),
            _ => Ok(()),
        }
    }

    /// So many registers hold nothing that would be lost.
    pub(super) fn make_room(&mut self, count: usize) -> Result<()> {
        while self.held.unsaved().count() + count > V::HOLD.len() {
            let oldest = self.held.unsaved().min_by_key(|&(at, _)| self.held.used[at]);
            let Some(of) = oldest else { break };
            self.save(of)?;
        }
        Ok(())
    }

    /// All results go to their rows.
    pub(super) fn save_all(&mut self) -> Result<()> {
        let unsaved: Vec<_> = self.held.unsaved().collect();
        unsaved.into_iter().try_for_each(|of| self.save(of))
    }

    /// The strips of a row go there, those that are results and are not there.
    pub(super) fn save_row(&mut self, wide: bool, row: u32) -> Result<()> {
        V::strips(wide).try_for_each(|strip| self.save_strip((wide, row, strip)))
    }

    /// A strip goes to its row, if it is a result that is not there.
    pub(super) fn save_strip(&mut self, strip: Strip) -> Result<()> {
        let unsaved = self.held.unsaved().find(|(_, of)| *of == strip);
        unsaved.map_or(Ok(()), |of| self.save(of))
    }

    fn save(&mut self, (at, strip): (usize, Strip)) -> Result<()> {
        self.held.unsaved[at] = false;
        V::store(&mut self.a, place::<V>(strip), V::HOLD[at])
    }
}

/// Registers that have no results alone, at least: an instruction may need so many for what it reads.
const FREE: usize = 8;

/// Where the bytes of a permutation come from, of `a` and of `b`, if any do: which of the word, or 0x80 where it is the
/// other one's. `None` if signs of bytes are asked for.
pub(super) fn moved_bytes(selector: u32) -> Option<[Option<u32>; 2]> {
    const NONE: u32 = 0x8080_8080;
    let mut words = [NONE; 2];
    for byte in 0..4 {
        let nibble = selector >> (4 * byte) & 0xf;
        if nibble >= 8 {
            return None;
        }
        words[nibble as usize / 4] ^= (0x80 | (nibble % 4)) << (8 * byte);
    }
    Some(words.map(|word| (word != NONE).then_some(word)))
}

/// Where a strip is in memory.
pub(super) fn place<V: Vectors>((wide, row, strip): Strip) -> AsmMemoryOperand {
    if wide { row64(row, V::BYTES * strip) } else { row32(row, V::BYTES * strip) }
}
