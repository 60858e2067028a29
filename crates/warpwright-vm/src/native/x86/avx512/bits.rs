//! Operations that move bits and bytes.

use super::super::at;
use super::super::held::moved_bytes;
use super::{Compiler, Frame, Result};
use crate::machine::{Inst, NONE};
use crate::native::Lane;
use crate::native::frame::Ramps;
use iced_x86::code_asm::*;
use std::mem::offset_of;
use warpwright_ptx::op::warp::ShuffleMode;

impl Compiler<'_> {
    pub(super) fn split_halves(&mut self, inst: &Inst) -> Result<()> {
        for strip in 0..2 {
            let a = self.raw(false, inst.a, strip)?;
            // The row may be one of the results.
            self.a.vpsrld(zmm4, a, 16)?;
            self.a.vpandd(zmm0, a, constant!(half))?;
            if inst.d != NONE {
                self.put32(inst.d, strip)?;
            }
            if inst.b != NONE {
                self.a.vmovdqa64(zmm0, zmm4)?;
                self.put32(inst.b, strip)?;
            }
        }
        Ok(())
    }

    pub(super) fn field(&mut self, inst: &Inst, lane: Lane) -> Result<()> {
        for strip in 0..2 {
            let a = self.raw(false, inst.a, strip)?;
            let b = self.raw(false, inst.b, strip)?;
            let c = self.raw(false, inst.c, strip)?;
            self.a.vpandd(zmm1, b, constant!(byte))?;
            self.a.vpandd(zmm2, c, constant!(byte))?;
            self.a.vpminud(zmm2, zmm2, constant!(width))?;
            self.a.vpbroadcastd(zmm3, dword_ptr(at(offset_of!(Frame, width))))?;
            self.a.vpsubd(zmm2, zmm3, zmm2)?;
            if lane == Lane::S32 {
                self.a.vpsravd(zmm0, a, zmm1)?;
                self.a.vpsllvd(zmm0, zmm0, zmm2)?;
                self.a.vpsravd(zmm0, zmm0, zmm2)?;
            } else {
                self.a.vpsrlvd(zmm0, a, zmm1)?;
                self.a.vpsllvd(zmm0, zmm0, zmm2)?;
                self.a.vpsrlvd(zmm0, zmm0, zmm2)?;
            }
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }

    pub(super) fn funnel(&mut self, inst: &Inst, left: bool, wrap: bool) -> Result<()> {
        for strip in 0..2 {
            let low = self.raw(false, inst.a, strip)?;
            let high = self.raw(false, inst.b, strip)?;
            let by = self.raw(false, inst.c, strip)?;
            match wrap {
                true => self.a.vpandd(zmm1, by, constant!(lane))?,
                false => self.a.vpminud(zmm1, by, constant!(width))?,
            }
            self.a.vpbroadcastd(zmm2, dword_ptr(at(offset_of!(Frame, width))))?;
            self.a.vpsubd(zmm2, zmm2, zmm1)?;
            let (up, down) = if left { (zmm1, zmm2) } else { (zmm2, zmm1) };
            self.a.vpsllvd(zmm0, high, up)?;
            self.a.vpsrlvd(zmm4, low, down)?;
            self.a.vpord(zmm0, zmm0, zmm4)?;
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }

    pub(super) fn permute(&mut self, inst: &Inst) -> Result<()> {
        if let Some(moves) = self.constant(inst.c).and_then(moved_bytes) {
            return self.move_bytes(inst, moves);
        }
        for strip in 0..2 {
            let a = self.raw(false, inst.a, strip)?;
            let b = self.raw(false, inst.b, strip)?;
            let c = self.raw(false, inst.c, strip)?;
            // `zmm1`: a nibble in each byte.
            self.a.vpandd(zmm1, c, constant!(half))?;
            self.a.vpslld(zmm2, zmm1, 8)?;
            self.a.vpord(zmm1, zmm1, zmm2)?;
            self.a.vpandd(zmm1, zmm1, constant!(bytes))?;
            self.a.vpslld(zmm2, zmm1, 4)?;
            self.a.vpord(zmm1, zmm1, zmm2)?;
            self.a.vpandd(zmm1, zmm1, constant!(nibbles))?;
            self.a.vpbroadcastd(zmm4, dword_ptr(at(offset_of!(Frame, second))))?;
            self.a.vpbroadcastd(zmm5, dword_ptr(at(offset_of!(Frame, signs))))?;
            self.a.vptestmb(k1, zmm1, zmm4)?;
            self.a.vptestmb(k2, zmm1, zmm5)?;
            self.a.vpandd(zmm1, zmm1, constant!(places))?;
            self.a.vpord(zmm1, zmm1, zmmword_ptr(at(offset_of!(Frame, words))))?;
            self.a.vpshufb(zmm0, a, zmm1)?;
            self.a.vpshufb(zmm0.k1(), b, zmm1)?;
            self.a.vpmovb2m(k1, zmm0)?;
            self.a.vpmovm2b(zmm4, k1)?;
            self.a.vmovdqu8(zmm0.k2(), zmm4)?;
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }

    fn move_bytes(&mut self, inst: &Inst, [from_a, from_b]: [Option<u32>; 2]) -> Result<()> {
        for (bytes, into) in [(from_a, zmm1), (from_b, zmm2)] {
            let Some(bytes) = bytes else { continue };
            self.a.mov(eax, bytes)?;
            self.a.vpbroadcastd(into, eax)?;
            self.a.vpord(into, into, zmmword_ptr(at(offset_of!(Frame, words))))?;
        }
        for strip in 0..2 {
            if from_a.is_some() {
                let a = self.raw(false, inst.a, strip)?;
                self.a.vpshufb(zmm0, a, zmm1)?;
            }
            if from_b.is_some() {
                let b = self.raw(false, inst.b, strip)?;
                self.a.vpshufb(if from_a.is_some() { zmm4 } else { zmm0 }, b, zmm2)?;
            }
            if from_a.is_some() && from_b.is_some() {
                self.a.vpord(zmm0, zmm0, zmm4)?;
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
            let low = self.raw(false, members, 0)?;
            let high = self.raw(false, members, 1)?;
            self.a.vpandd(zmm0, low, high)?;
            self.a.vpcmpd(k1, zmm0, constant!(all), 4)?;
            self.a.kortestw(k1, k1)?;
            self.a.jne(miss)?;
        }
        let values = [self.raw(false, inst.a, 0)?, self.raw(false, inst.a, 1)?];
        // The results, until both are there.
        let results = [zmm20, zmm21];
        for (strip, result) in (0..).zip(results) {
            let lane =
                zmmword_ptr(at(offset_of!(Frame, ramps) + offset_of!(Ramps, narrow) + 64 * strip as usize));
            let b = self.raw(false, inst.b, strip)?;
            let c = self.raw(false, inst.c, strip)?;
            // `zmm1`: what `b` says, `zmm2`: the lane up to which segments go, `zmm3`: which bits are a segment's.
            self.a.vpandd(zmm1, b, constant!(lane))?;
            self.a.vpandd(zmm2, c, constant!(lane))?;
            self.a.vpsrld(zmm3, c, 8)?;
            self.a.vpandd(zmm3, zmm3, constant!(lane))?;
            self.a.vmovdqu32(zmm4, lane)?;
            self.a.vpandd(zmm5, zmm4, zmm3)?;
            self.a.vpandnd(zmm2, zmm3, zmm2)?;
            self.a.vpord(zmm2, zmm2, zmm5)?;
            match shuffle {
                ShuffleMode::Up => self.a.vpsubd(zmm0, zmm4, zmm1)?,
                ShuffleMode::Down => self.a.vpaddd(zmm0, zmm4, zmm1)?,
                ShuffleMode::Bfly => self.a.vpxord(zmm0, zmm4, zmm1)?,
                ShuffleMode::Idx => {
                    self.a.vpandnd(zmm0, zmm3, zmm1)?;
                    self.a.vpord(zmm0, zmm0, zmm5)?;
                }
            }
            // Whether there is such a lane: not less than the lowest one, or not above the highest.
            let relation = if shuffle == ShuffleMode::Up { 5 } else { 2 };
            self.a.vpcmpd(k1, zmm0, zmm2, relation)?;
            self.a.vpblendmd(zmm0.k1(), zmm4, zmm0)?;
            self.a.vmovdqa64(result, values[0])?;
            self.a.vpermt2d(result, zmm0, values[1])?;
            match strip {
                0 => self.a.kmovw(eax, k1)?,
                _ => {
                    self.a.kmovw(edx, k1)?;
                    self.a.shl(edx, 16)?;
                    self.a.or(eax, edx)?;
                }
            }
        }
        for (strip, result) in (0..).zip(results) {
            if inst.d != NONE {
                self.a.vmovdqa64(zmm0, result)?;
                self.put32(inst.d, strip)?;
            }
        }
        if valid != NONE {
            self.set_predicate(valid, eax)?;
        }
        Ok(())
    }
}
