//! Which rows are in vector registers.
//!
//! Every result is stored to its row, so that an instruction can be left to the interpreter without ado; what is read
//! again is still in a register, where a segment has not been entered since.

use super::{Compiler, Result, row32, row64};
use crate::native::Lane;
use iced_x86::code_asm::*;

/// A strip of a row: whether the row is of 64 bits, which one it is, and which strip.
pub(super) type Strip = (bool, u32, i32);

/// The registers that hold strips.
const HOLD: [AsmRegisterZmm; 13] =
    [zmm7, zmm8, zmm9, zmm10, zmm11, zmm12, zmm13, zmm14, zmm15, zmm16, zmm17, zmm18, zmm19];

/// Registers for what is not held.
const PASS: [AsmRegisterZmm; 3] = [zmm28, zmm29, zmm30];

/// What registers hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    strips: [Option<Strip>; HOLD.len()],
    /// When each was used last.
    used: [u32; HOLD.len()],
    now: u32,
    /// Some lanes may skip the instruction: what it puts into registers would not be there.
    pub(super) skipped: bool,
    passed: usize,
}

impl Held {
    /// Nothing is held.
    pub(super) fn clear(&mut self) {
        self.strips = Default::default();
    }

    /// What is held where.
    pub(super) fn all(&self) -> impl Iterator<Item = (AsmRegisterZmm, Strip)> {
        HOLD.into_iter().zip(self.strips).filter_map(|(register, strip)| Some((register, strip?)))
    }

    fn find(&mut self, strip: Strip) -> Option<AsmRegisterZmm> {
        let at = self.strips.iter().position(|held| *held == Some(strip))?;
        self.now += 1;
        self.used[at] = self.now;
        Some(HOLD[at])
    }

    /// A register for a strip, in the place of the one that was used longest ago.
    fn take(&mut self, strip: Strip) -> AsmRegisterZmm {
        if self.skipped {
            self.passed = (self.passed + 1) % PASS.len();
            return PASS[self.passed];
        }
        let oldest = (0..HOLD.len()).min_by_key(|&at| (self.strips[at].is_some(), self.used[at]));
        let at = oldest.unwrap_or(0);
        self.now += 1;
        (self.strips[at], self.used[at]) = (Some(strip), self.now);
        HOLD[at]
    }

    /// A strip changes in memory alone.
    fn forget(&mut self, strip: Strip) {
        self.strips.iter_mut().filter(|held| **held == Some(strip)).for_each(|held| *held = None);
    }
}

impl Compiler<'_> {
    /// A register with a strip of a row, as it is.
    pub(super) fn raw(&mut self, wide: bool, row: u32, strip: i32) -> Result<AsmRegisterZmm> {
        let place = (wide, row, strip);
        if let Some(register) = self.held.find(place) {
            return Ok(register);
        }
        let register = self.held.take(place);
        self.fetch(register, place)?;
        Ok(register)
    }

    /// Loads a strip of a row.
    pub(super) fn fetch(&mut self, into: AsmRegisterZmm, (wide, row, strip): Strip) -> Result<()> {
        match wide {
            true => self.a.vmovdqu64(into, zmmword_ptr(row64(row, strip))),
            false => self.a.vmovdqu32(into, zmmword_ptr(row32(row, strip))),
        }
    }

    /// The lanes of `zmm0` become a strip of a row.
    pub(super) fn put(&mut self, lane: Lane, row: u32, strip: i32) -> Result<()> {
        if lane.is_wide() {
            return self.put64(row, strip);
        }
        if lane.is_half() {
            self.zeros_above_half(zmm0)?;
        }
        self.put32(row, strip)
    }

    pub(super) fn put32(&mut self, row: u32, strip: i32) -> Result<()> {
        let place = (false, row, strip);
        if self.masked {
            let old = self.old(place)?;
            match strip {
                0 => self.a.vpblendmd(zmm0.k6(), old, zmm0)?,
                _ => self.a.vpblendmd(zmm0.k7(), old, zmm0)?,
            }
        }
        self.a.vmovdqu32(zmmword_ptr(row32(row, strip)), zmm0)?;
        self.hold(place)
    }

    pub(super) fn put64(&mut self, row: u32, strip: i32) -> Result<()> {
        let place = (true, row, strip);
        if self.masked {
            let old = self.old(place)?;
            self.a.kshiftrd(k5, k6, 8 * strip as u32)?;
            self.a.vpblendmq(zmm0.k5(), old, zmm0)?;
        }
        self.a.vmovdqu64(zmmword_ptr(row64(row, strip)), zmm0)?;
        self.hold(place)
    }

    /// What a strip holds that is about to change in part.
    fn old(&mut self, place: Strip) -> Result<AsmRegisterZmm> {
        match self.held.find(place) {
            Some(register) => Ok(register),
            None => {
                self.fetch(zmm31, place)?;
                Ok(zmm31)
            }
        }
    }

    /// `zmm0` is a strip from now on.
    fn hold(&mut self, place: Strip) -> Result<()> {
        self.held.forget(place);
        if self.held.skipped {
            return Ok(());
        }
        let register = self.held.take(place);
        self.a.vmovdqa64(register, zmm0)
    }
}
