//! Which rows are in vector registers.
//!
//! Every result is stored to its row, so that an instruction can be left to the interpreter without ado; what is read
//! again is still in a register, where a segment has not been entered since.

use super::{Compiler, Result, Vectors, row32, row64};
use crate::native::Lane;
use iced_x86::code_asm::*;
use std::ops::Range;

/// A strip of a row: whether the row is of 64 bits, which one it is, and which strip.
pub(super) type Strip = (bool, u32, i32);

/// What registers hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    strips: [Option<Strip>; 16],
    /// When each was used last.
    used: [u32; 16],
    now: u32,
    /// Some lanes may skip the instruction: what it puts into registers would not be there.
    pub(super) skipped: bool,
}

impl Held {
    /// Nothing is held.
    pub(super) fn clear(&mut self) {
        self.free(0..self.strips.len());
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

    /// A register for a strip, in the place of the one of these that was used longest ago. A strip that may be skipped
    /// is not held.
    fn take(&mut self, of: Range<usize>, strip: Strip) -> usize {
        let first = of.start;
        let at = of.min_by_key(|&at| self.used[at]).unwrap_or(first);
        self.now += 1;
        (self.strips[at], self.used[at]) = ((!self.skipped).then_some(strip), self.now);
        at
    }

    /// Registers hold nothing any more.
    pub(super) fn free(&mut self, of: Range<usize>) {
        self.strips[of.clone()].fill(None);
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
        V::store(&mut self.a, place::<V>(strip))?;
        self.held.forget(strip);
        if self.held.skipped {
            return Ok(());
        }
        let register = V::HOLD[self.held.take(V::RESULTS, strip)];
        V::copy(&mut self.a, register)
    }
}

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
