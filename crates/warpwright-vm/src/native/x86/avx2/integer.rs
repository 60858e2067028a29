//! Arithmetic and comparisons of integers.

use super::super::{Vectors, at, row32};
use super::{Avx2, Compiler, Frame, Result};
use crate::machine::Inst;
use crate::native::{Binary, Lane, Relation};
use iced_x86::code_asm::*;
use std::mem::offset_of;

impl Compiler<'_> {
    /// A strip of a row. Of 16 bits, those above are the sign or zeros, whatever the row has there: in another register.
    fn value(&mut self, other: AsmRegisterYmm, lane: Lane, row: u32, strip: i32) -> Result<AsmRegisterYmm> {
        let raw = self.raw(lane.is_wide(), row, strip)?;
        self.extended(other, lane, raw)
    }

    /// The same of a strip that is in a register.
    pub(super) fn extended(
        &mut self,
        other: AsmRegisterYmm,
        lane: Lane,
        raw: AsmRegisterYmm,
    ) -> Result<AsmRegisterYmm> {
        match lane {
            Lane::U16 => self.a.vpand(other, raw, constant!(half))?,
            Lane::S16 => {
                self.a.vpslld(other, raw, 16)?;
                self.a.vpsrad(other, other, 16)?;
            }
            _ => return Ok(raw),
        }
        Ok(other)
    }

    /// A register = four words of a row, with their sign or zeros above.
    pub(super) fn extend(&mut self, into: AsmRegisterYmm, lane: Lane, row: u32, strip: i32) -> Result<()> {
        let words = xmmword_ptr(row32(row, 16 * strip));
        match lane {
            Lane::S32 => self.a.vpmovsxdq(into, words),
            _ => self.a.vpmovzxdq(into, words),
        }
    }

    pub(super) fn binary(&mut self, inst: &Inst, binary: Binary, lane: Lane) -> Result<()> {
        let wide = lane.is_wide();
        let signed = matches!(lane, Lane::S16 | Lane::S32 | Lane::S64);
        let shifts = matches!(binary, Binary::ShiftLeft | Binary::ShiftRight);
        for strip in Avx2::strips(wide) {
            let x = self.value(ymm1, lane, inst.a, strip)?;
            let y = match (shifts, wide) {
                (true, true) => {
                    self.extend(ymm2, Lane::U32, inst.b, strip)?;
                    ymm2
                }
                (true, false) => self.raw(false, inst.b, strip)?,
                _ => self.value(ymm2, lane, inst.b, strip)?,
            };
            match binary {
                Binary::Add => of_width!(self, wide, vpaddd | vpaddq(ymm0, x, y)),
                Binary::Sub => of_width!(self, wide, vpsubd | vpsubq(ymm0, x, y)),
                Binary::Mul | Binary::MulAdd => {
                    match wide {
                        true => self.mul_wide(x, y)?,
                        false => self.a.vpmulld(ymm0, x, y)?,
                    }
                    if binary == Binary::MulAdd {
                        let z = self.raw(wide, inst.c, strip)?;
                        of_width!(self, wide, vpaddd | vpaddq(ymm0, ymm0, z));
                    }
                }
                Binary::And => self.a.vpand(ymm0, x, y)?,
                Binary::Or => self.a.vpor(ymm0, x, y)?,
                Binary::Xor => self.a.vpxor(ymm0, x, y)?,
                Binary::Min | Binary::Max if wide => {
                    self.greater_wide(signed, x, y)?;
                    let (greater, other) = if binary == Binary::Min { (y, x) } else { (x, y) };
                    self.a.vblendvpd(ymm0, other, greater, ymm0)?;
                }
                Binary::Min if signed => self.a.vpminsd(ymm0, x, y)?,
                Binary::Min => self.a.vpminud(ymm0, x, y)?,
                Binary::Max if signed => self.a.vpmaxsd(ymm0, x, y)?,
                Binary::Max => self.a.vpmaxud(ymm0, x, y)?,
                Binary::ShiftLeft => of_width!(self, wide, vpsllvd | vpsllvq(ymm0, x, y)),
                Binary::ShiftRight if signed && wide => {
                    // The complement of what is negative is shifted, and is that again.
                    self.a.vpxor(ymm1, ymm1, ymm1)?;
                    self.a.vpcmpgtq(ymm1, ymm1, x)?;
                    self.a.vpxor(ymm0, x, ymm1)?;
                    self.a.vpsrlvq(ymm0, ymm0, y)?;
                    self.a.vpxor(ymm0, ymm0, ymm1)?;
                }
                Binary::ShiftRight if signed => self.a.vpsravd(ymm0, x, y)?,
                Binary::ShiftRight => of_width!(self, wide, vpsrlvd | vpsrlvq(ymm0, x, y)),
            }
            self.put(lane, inst.d, strip)?;
        }
        Ok(())
    }

    /// `ymm0` = the low halves of products of 64 bits.
    fn mul_wide(&mut self, x: AsmRegisterYmm, y: AsmRegisterYmm) -> Result<()> {
        // The products of a low and a high word, whose sum is that of the high word.
        self.a.vpshufd(ymm1, y, 0xb1)?;
        self.a.vpmulld(ymm1, ymm1, x)?;
        self.a.vpsrlq(ymm3, ymm1, 32)?;
        self.a.vpaddd(ymm1, ymm1, ymm3)?;
        self.a.vpsllq(ymm1, ymm1, 32)?;
        self.a.vpmuludq(ymm0, x, y)?;
        self.a.vpaddq(ymm0, ymm0, ymm1)
    }

    /// `ymm0` = where one of 64 bits is greater than another.
    fn greater_wide(&mut self, signed: bool, x: AsmRegisterYmm, y: AsmRegisterYmm) -> Result<()> {
        if signed {
            return self.a.vpcmpgtq(ymm0, x, y);
        }
        self.a.vpxor(ymm0, x, constant!(sign_wide))?;
        self.a.vpxor(ymm3, y, constant!(sign_wide))?;
        self.a.vpcmpgtq(ymm0, ymm0, ymm3)
    }

    /// Bytes at even and at odd places are multiplied as half words, which are added in pairs.
    pub(super) fn dot_product(&mut self, inst: &Inst, signed: [bool; 2]) -> Result<()> {
        for strip in Avx2::strips(false) {
            for ((row, signed), (even, odd)) in
                [inst.a, inst.b].into_iter().zip(signed).zip([(ymm0, ymm1), (ymm2, ymm3)])
            {
                let bytes = self.raw(false, row, strip)?;
                self.a.vpsllw(even, bytes, 8)?;
                if signed {
                    self.a.vpsraw(even, even, 8)?;
                    self.a.vpsraw(odd, bytes, 8)?;
                } else {
                    self.a.vpsrlw(even, even, 8)?;
                    self.a.vpsrlw(odd, bytes, 8)?;
                }
            }
            let sum = self.raw(false, inst.c, strip)?;
            self.a.vpmaddwd(ymm0, ymm0, ymm2)?;
            self.a.vpmaddwd(ymm1, ymm1, ymm3)?;
            self.a.vpaddd(ymm0, ymm0, ymm1)?;
            self.a.vpaddd(ymm0, ymm0, sum)?;
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }

    /// A register = the whole products of the words at even places.
    fn products(
        &mut self,
        lane: Lane,
        into: AsmRegisterYmm,
        x: AsmRegisterYmm,
        y: AsmRegisterYmm,
    ) -> Result<()> {
        match lane {
            Lane::S32 => self.a.vpmuldq(into, x, y),
            _ => self.a.vpmuludq(into, x, y),
        }
    }

    pub(super) fn mul_high(&mut self, inst: &Inst, lane: Lane) -> Result<()> {
        for strip in Avx2::strips(false) {
            let x = self.raw(false, inst.a, strip)?;
            let y = self.raw(false, inst.b, strip)?;
            self.products(lane, ymm0, x, y)?;
            self.a.vpsrlq(ymm1, x, 32)?;
            self.a.vpsrlq(ymm2, y, 32)?;
            self.products(lane, ymm1, ymm1, ymm2)?;
            self.a.vpsrlq(ymm0, ymm0, 32)?;
            self.a.vpblendd(ymm0, ymm0, ymm1, 0xaa)?;
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }

    pub(super) fn wide(&mut self, inst: &Inst, lane: Lane, adds: bool) -> Result<()> {
        let wide = !lane.is_half();
        for strip in Avx2::strips(wide) {
            if wide {
                self.extend(ymm1, Lane::U32, inst.a, strip)?;
                self.extend(ymm2, Lane::U32, inst.b, strip)?;
                self.products(lane, ymm0, ymm1, ymm2)?;
            } else {
                let x = self.value(ymm1, lane, inst.a, strip)?;
                let y = self.value(ymm2, lane, inst.b, strip)?;
                self.a.vpmulld(ymm0, x, y)?;
            }
            if adds {
                let sum = self.raw(wide, inst.c, strip)?;
                of_width!(self, wide, vpaddd | vpaddq(ymm0, ymm0, sum));
            }
            self.put(if wide { Lane::U64 } else { Lane::U32 }, inst.d, strip)?;
        }
        Ok(())
    }

    pub(super) fn compare(&mut self, inst: &Inst, relation: Relation, lane: Lane) -> Result<()> {
        let wide = lane.is_wide();
        // Where the complement is what an instruction finds.
        let inverse = match (lane, relation) {
            (Lane::F32 | Lane::F64, _) => false,
            (Lane::U32, relation) => matches!(relation, Relation::Unequal | Relation::Less),
            (_, relation) => matches!(relation, Relation::Unequal | Relation::LessOrEqual),
        };
        for strip in Avx2::strips(wide) {
            let x = self.value(ymm1, lane, inst.a, strip)?;
            let y = self.value(ymm2, lane, inst.b, strip)?;
            match (lane, relation) {
                (Lane::F32 | Lane::F64, _) => {
                    // As the processor numbers them: those that hold for no NaN.
                    let number = match relation {
                        Relation::Equal => 0,
                        Relation::Unequal => 0x0c,
                        Relation::Less => 0x11,
                        Relation::LessOrEqual => 0x12,
                        Relation::Ordered => 7,
                    };
                    of_width!(self, wide, vcmpps | vcmppd(ymm0, x, y, number));
                }
                (_, Relation::Equal | Relation::Unequal) => {
                    of_width!(self, wide, vpcmpeqd | vpcmpeqq(ymm0, x, y));
                }
                (Lane::U32, _) => {
                    // One is not less than another if it is the larger one, and not greater if it is the lesser one.
                    match relation {
                        Relation::Less => self.a.vpmaxud(ymm0, x, y)?,
                        _ => self.a.vpminud(ymm0, x, y)?,
                    }
                    self.a.vpcmpeqd(ymm0, ymm0, x)?;
                }
                (_, relation) => {
                    let (x, y) = if relation == Relation::Less { (y, x) } else { (x, y) };
                    match wide {
                        true => self.greater_wide(lane == Lane::S64, x, y)?,
                        false => self.a.vpcmpgtd(ymm0, x, y)?,
                    }
                }
            }
            self.gather_signs(ymm0, wide, strip)?;
        }
        self.set_conditions(inst, inverse)
    }
}
