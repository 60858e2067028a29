//! Operations that move bits and bytes.

use super::super::held::moved_bytes;
use super::super::{Vectors, at, row32};
use super::{Avx2, Compiler, Frame, Result};
use crate::machine::{Inst, NONE};
use crate::native::Lane;
use iced_x86::code_asm::*;
use std::mem::offset_of;
use warpwright_ptx::op::warp::ShuffleMode;

impl Compiler<'_> {
    /// By halves of the table: what is made of `b` and `c` where `a` is 0, and what that is changed by where it is 1.
    pub(super) fn lop3(&mut self, inst: &Inst) -> Result<()> {
        let (zero, one) = (inst.imm as u32 & 15, inst.imm as u32 >> 4 & 15);
        let changes = zero ^ one;
        for strip in Avx2::strips(false) {
            let a = self.raw(false, inst.a, strip)?;
            let b = self.raw(false, inst.b, strip)?;
            let c = self.raw(false, inst.c, strip)?;
            self.logic(ymm0, zero, b, c)?;
            match changes {
                0 => {}
                15 => self.a.vpxor(ymm0, ymm0, a)?,
                _ => {
                    self.logic(ymm1, changes, b, c)?;
                    self.a.vpand(ymm1, ymm1, a)?;
                    self.a.vpxor(ymm0, ymm0, ymm1)?;
                }
            }
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }

    /// A register = two others, by a table of their bits.
    fn logic(
        &mut self,
        into: AsmRegisterYmm,
        table: u32,
        b: AsmRegisterYmm,
        c: AsmRegisterYmm,
    ) -> Result<()> {
        // Tables for both 0 that say 1 are complements.
        let inverse = table & 1 != 0;
        match if inverse { table ^ 15 } else { table } {
            0 => self.a.vpxor(into, into, into)?,
            2 => self.a.vpandn(into, b, c)?,
            4 => self.a.vpandn(into, c, b)?,
            6 => self.a.vpxor(into, b, c)?,
            8 => self.a.vpand(into, b, c)?,
            10 => self.a.vmovdqa(into, c)?,
            12 => self.a.vmovdqa(into, b)?,
            _ => self.a.vpor(into, b, c)?,
        }
        if inverse {
            self.a.vpxor(into, into, constant!(all))?;
        }
        Ok(())
    }

    /// The lowest bits of words, with their sign or zeros above.
    pub(super) fn extend_field(&mut self, inst: &Inst, bits: u32, signed: bool, wide: bool) -> Result<()> {
        for strip in Avx2::strips(wide) {
            let a = match wide {
                true => {
                    self.a.vmovdqu(xmm0, xmmword_ptr(row32(inst.a, 16 * strip)))?;
                    ymm0
                }
                false => self.raw(false, inst.a, strip)?,
            };
            if bits < 32 {
                self.a.vpslld(ymm0, a, 32 - bits)?;
                match signed {
                    true => self.a.vpsrad(ymm0, ymm0, 32 - bits)?,
                    false => self.a.vpsrld(ymm0, ymm0, 32 - bits)?,
                }
            } else if !wide {
                self.a.vmovdqa(ymm0, a)?;
            }
            match (wide, signed) {
                (true, true) => self.a.vpmovsxdq(ymm0, xmm0)?,
                (true, false) => self.a.vpmovzxdq(ymm0, xmm0)?,
                _ => {}
            }
            self.put(if wide { Lane::U64 } else { Lane::U32 }, inst.d, strip)?;
        }
        Ok(())
    }

    /// The words of a row of 64 bits that begin at a bit become a row, if there is one.
    pub(super) fn words_of(&mut self, from: u32, bit: u32, to: u32) -> Result<()> {
        for strip in Avx2::strips(false) {
            if to != NONE {
                let low = self.raw(true, from, 2 * strip)?;
                let high = self.raw(true, from, 2 * strip + 1)?;
                self.a.vshufps(ymm0, low, high, if bit == 0 { 0x88 } else { 0xdd })?;
                self.a.vpermq(ymm0, ymm0, 0xd8)?;
                self.put32(to, strip)?;
            }
        }
        Ok(())
    }

    pub(super) fn pack_halves(&mut self, inst: &Inst) -> Result<()> {
        for strip in Avx2::strips(false) {
            let a = self.raw(false, inst.a, strip)?;
            let b = self.raw(false, inst.b, strip)?;
            self.a.vpslld(ymm0, b, 16)?;
            self.a.vpblendw(ymm0, ymm0, a, 0x55)?;
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }

    pub(super) fn pack_words(&mut self, inst: &Inst) -> Result<()> {
        for strip in Avx2::strips(true) {
            self.extend(ymm0, Lane::U32, inst.a, strip)?;
            self.extend(ymm1, Lane::U32, inst.b, strip)?;
            self.a.vpsllq(ymm1, ymm1, 32)?;
            self.a.vpor(ymm0, ymm0, ymm1)?;
            self.put64(inst.d, strip)?;
        }
        Ok(())
    }

    pub(super) fn split_halves(&mut self, inst: &Inst) -> Result<()> {
        for strip in Avx2::strips(false) {
            let a = self.raw(false, inst.a, strip)?;
            // The row may be one of the results.
            self.a.vpsrld(ymm1, a, 16)?;
            self.a.vpand(ymm0, a, constant!(half))?;
            if inst.d != NONE {
                self.put32(inst.d, strip)?;
            }
            if inst.b != NONE {
                self.a.vmovdqa(ymm0, ymm1)?;
                self.put32(inst.b, strip)?;
            }
        }
        Ok(())
    }

    pub(super) fn field(&mut self, inst: &Inst, lane: Lane) -> Result<()> {
        for strip in Avx2::strips(false) {
            let a = self.raw(false, inst.a, strip)?;
            let b = self.raw(false, inst.b, strip)?;
            let c = self.raw(false, inst.c, strip)?;
            self.a.vpand(ymm1, b, constant!(byte))?;
            self.a.vpand(ymm2, c, constant!(byte))?;
            self.a.vmovdqu(ymm3, constant!(width))?;
            self.a.vpminud(ymm2, ymm2, ymm3)?;
            self.a.vpsubd(ymm2, ymm3, ymm2)?;
            if lane == Lane::S32 {
                self.a.vpsravd(ymm0, a, ymm1)?;
                self.a.vpsllvd(ymm0, ymm0, ymm2)?;
                self.a.vpsravd(ymm0, ymm0, ymm2)?;
            } else {
                self.a.vpsrlvd(ymm0, a, ymm1)?;
                self.a.vpsllvd(ymm0, ymm0, ymm2)?;
                self.a.vpsrlvd(ymm0, ymm0, ymm2)?;
            }
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }

    pub(super) fn funnel(&mut self, inst: &Inst, left: bool, wrap: bool) -> Result<()> {
        for strip in Avx2::strips(false) {
            let low = self.raw(false, inst.a, strip)?;
            let high = self.raw(false, inst.b, strip)?;
            let by = self.raw(false, inst.c, strip)?;
            match wrap {
                true => self.a.vpand(ymm1, by, constant!(lane))?,
                false => self.a.vpminud(ymm1, by, constant!(width))?,
            }
            self.a.vmovdqu(ymm2, constant!(width))?;
            self.a.vpsubd(ymm2, ymm2, ymm1)?;
            let (up, down) = if left { (ymm1, ymm2) } else { (ymm2, ymm1) };
            self.a.vpsllvd(ymm0, high, up)?;
            self.a.vpsrlvd(ymm1, low, down)?;
            self.a.vpor(ymm0, ymm0, ymm1)?;
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }

    pub(super) fn permute(&mut self, inst: &Inst) -> Result<()> {
        if let Some(moves) = self.constant(inst.c).and_then(moved_bytes) {
            return self.move_bytes(inst, moves);
        }
        for strip in Avx2::strips(false) {
            let a = self.raw(false, inst.a, strip)?;
            let b = self.raw(false, inst.b, strip)?;
            let c = self.raw(false, inst.c, strip)?;
            // `ymm1`: a nibble in each byte.
            self.a.vpand(ymm1, c, constant!(half))?;
            self.a.vpslld(ymm2, ymm1, 8)?;
            self.a.vpor(ymm1, ymm1, ymm2)?;
            self.a.vpand(ymm1, ymm1, constant!(bytes))?;
            self.a.vpslld(ymm2, ymm1, 4)?;
            self.a.vpor(ymm1, ymm1, ymm2)?;
            self.a.vpand(ymm1, ymm1, constant!(nibbles))?;
            self.a.vpand(ymm3, ymm1, constant!(places))?;
            self.a.vpor(ymm3, ymm3, constant!(words))?;
            self.a.vpshufb(ymm0, a, ymm3)?;
            self.a.vpshufb(ymm3, b, ymm3)?;
            // The bits that say that a byte is one of `b`, and that its sign is wanted, become signs.
            self.a.vpslld(ymm2, ymm1, 5)?;
            self.a.vpblendvb(ymm0, ymm0, ymm3, ymm2)?;
            self.a.vpslld(ymm1, ymm1, 4)?;
            self.a.vpxor(ymm2, ymm2, ymm2)?;
            self.a.vpcmpgtb(ymm2, ymm2, ymm0)?;
            self.a.vpblendvb(ymm0, ymm0, ymm2, ymm1)?;
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }

    fn move_bytes(&mut self, inst: &Inst, [from_a, from_b]: [Option<u32>; 2]) -> Result<()> {
        for strip in Avx2::strips(false) {
            for (bytes, low, into) in [(from_a, xmm1, ymm1), (from_b, xmm3, ymm3)] {
                // A blend has made use of the latter.
                let Some(bytes) = bytes.filter(|_| strip == 0 || into == ymm3 && self.masked) else {
                    continue;
                };
                self.a.mov(eax, bytes)?;
                self.a.vmovd(low, eax)?;
                self.a.vpbroadcastd(into, low)?;
                self.a.vpor(into, into, constant!(words))?;
            }
            if from_a.is_some() {
                let a = self.raw(false, inst.a, strip)?;
                self.a.vpshufb(ymm0, a, ymm1)?;
            }
            if from_b.is_some() {
                let b = self.raw(false, inst.b, strip)?;
                self.a.vpshufb(if from_a.is_some() { ymm2 } else { ymm0 }, b, ymm3)?;
            }
            if from_a.is_some() && from_b.is_some() {
                self.a.vpor(ymm0, ymm0, ymm2)?;
            }
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }

    /// All lanes are there: see the handler for the rest.
    pub(super) fn shuffle(&mut self, index: usize, inst: &Inst, shuffle: ShuffleMode) -> Result<()> {
        let (members, valid) = (inst.imm as u32, (inst.imm >> 32) as u32);
        // They must name all.
        if members != NONE {
            let miss = self.miss(index, inst);
            self.fetch(ymm0, (false, members, 0))?;
            for strip in 1..4 {
                self.a.vpand(ymm0, ymm0, ymmword_ptr(row32(members, 32 * strip)))?;
            }
            self.a.vptest(ymm0, constant!(all))?;
            self.a.jae(miss)?;
        }
        for strip in Avx2::strips(false) {
            let b = self.raw(false, inst.b, strip)?;
            let c = self.raw(false, inst.c, strip)?;
            let lane = self.ramp(1, false, strip);
            // `ymm1`: what `b` says, `ymm2`: the lane up to which segments go, `ymm3`: which bits are a segment's.
            self.a.vpand(ymm1, b, constant!(lane))?;
            self.a.vpand(ymm2, c, constant!(lane))?;
            self.a.vpsrld(ymm3, c, 8)?;
            self.a.vpand(ymm3, ymm3, constant!(lane))?;
            self.a.vpand(ymm0, ymm3, lane)?;
            self.a.vpandn(ymm2, ymm3, ymm2)?;
            self.a.vpor(ymm2, ymm2, ymm0)?;
            match shuffle {
                ShuffleMode::Up => {
                    self.a.vmovdqu(ymm0, lane)?;
                    self.a.vpsubd(ymm0, ymm0, ymm1)?;
                }
                ShuffleMode::Down => self.a.vpaddd(ymm0, ymm1, lane)?,
                ShuffleMode::Bfly => self.a.vpxor(ymm0, ymm1, lane)?,
                ShuffleMode::Idx => {
                    self.a.vpandn(ymm1, ymm3, ymm1)?;
                    self.a.vpor(ymm0, ymm0, ymm1)?;
                }
            }
            // Whether there is no such lane: it is less than the lowest one, or above the highest.
            match shuffle {
                ShuffleMode::Up => self.a.vpcmpgtd(ymm2, ymm2, ymm0)?,
                _ => self.a.vpcmpgtd(ymm2, ymm0, ymm2)?,
            }
            self.gather_signs(ymm2, false, strip)?;
            self.a.vblendvps(ymm0, ymm0, lane, ymm2)?;
            // Eight lanes of each strip of `a`, of which two bits of the number choose one. There is no mask in `ymm4`.
            let strip_of_a = |strip| ymmword_ptr(row32(inst.a, 32 * strip));
            self.a.vpslld(ymm3, ymm0, 28)?;
            self.a.vpermd(ymm1, ymm0, strip_of_a(0))?;
            self.a.vpermd(ymm2, ymm0, strip_of_a(1))?;
            self.a.vblendvps(ymm1, ymm1, ymm2, ymm3)?;
            self.a.vpermd(ymm2, ymm0, strip_of_a(2))?;
            self.a.vpermd(ymm4, ymm0, strip_of_a(3))?;
            self.a.vblendvps(ymm2, ymm2, ymm4, ymm3)?;
            self.a.vpslld(ymm3, ymm0, 27)?;
            self.a.vblendvps(ymm0, ymm1, ymm2, ymm3)?;
            self.a.vmovdqu(ymmword_ptr(at(offset_of!(Frame, found) + 32 * strip as usize)), ymm0)?;
        }
        // The row may be the one of the results, so that they are put when all are there.
        if inst.d != NONE {
            for strip in Avx2::strips(false) {
                self.a.vmovdqu(ymm0, ymmword_ptr(at(offset_of!(Frame, found) + 32 * strip as usize)))?;
                self.put32(inst.d, strip)?;
            }
        }
        if valid != NONE {
            self.a.not(eax)?;
            self.set_predicate(valid, eax)?;
        }
        Ok(())
    }

    /// `eax` = the signs of the strips of a row, one after the other.
    pub(super) fn gather_signs(&mut self, register: AsmRegisterYmm, wide: bool, strip: i32) -> Result<()> {
        let into = if strip == 0 { eax } else { edx };
        of_width!(self, wide, vmovmskps | vmovmskpd(into, register));
        if strip != 0 {
            self.a.shl(edx, if wide { 4 } else { 8 } * strip)?;
            self.a.or(eax, edx)?;
        }
        Ok(())
    }
}
