//! What each operation becomes.

use super::super::Vectors;
use super::super::at;
use super::{Avx512, Compiler, Frame, Result};
use crate::machine::{Inst, NONE};
use crate::native::{Binary, Lane, Operation, Relation};
use iced_x86::code_asm::*;
use std::mem::offset_of;

impl Compiler<'_> {
    pub(super) fn compute(&mut self, index: usize, inst: &Inst, operation: Operation) -> Result<()> {
        match operation {
            Operation::Arithmetic(arithmetic, modifiers) => self.floats(inst, arithmetic, modifiers),
            Operation::Double(double, direction) => self.doubles(inst, double, direction),
            Operation::ToDouble(lane) => self.double_of(inst, lane),
            Operation::FromDouble => self.single_of(inst),
            Operation::Binary(binary, lane) => self.binary(inst, binary, lane),
            Operation::Wide(lane, adds) => self.wide(inst, lane, adds),
            Operation::MulHigh(lane) => {
                for strip in 0..2 {
                    for (part, into) in [(0, ymm1), (1, ymm2)] {
                        self.product(inst, lane, 2 * strip + part)?;
                        self.a.vpsrlq(zmm4, zmm4, 32)?;
                        self.a.vpmovqd(into, zmm4)?;
                    }
                    self.a.vinserti64x4(zmm0, zmm1, ymm2, 1)?;
                    self.put32(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::Not(lane) => self.unary(inst, lane, |of, a| of.a.vpternlogd(zmm0, a, a, 0x55)),
            Operation::Copy(lane) => self.unary(inst, lane, |of, a| of.a.vmovdqa64(zmm0, a)),
            Operation::Lop3 => {
                for strip in 0..2 {
                    let a = self.raw(false, inst.a, strip)?;
                    let b = self.raw(false, inst.b, strip)?;
                    let c = self.raw(false, inst.c, strip)?;
                    self.a.vmovdqa64(zmm0, a)?;
                    self.a.vpternlogd(zmm0, b, c, inst.imm as u32)?;
                    self.put32(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::Select(lane) => {
                self.predicate(eax, inst.c)?;
                self.a.kmovd(k1, eax)?;
                for strip in Avx512::strips(lane.is_wide()) {
                    let a = self.raw(lane.is_wide(), inst.a, strip)?;
                    let b = self.raw(lane.is_wide(), inst.b, strip)?;
                    of_width!(self, lane.is_wide(), vpblendmd | vpblendmq(zmm0.k1(), b, a));
                    self.a.kshiftrd(k1, k1, if lane.is_wide() { 8 } else { 16 })?;
                    self.put(lane, inst.d, strip)?;
                }
                Ok(())
            }
            Operation::Extend { bits, signed, wide } => {
                for strip in Avx512::strips(wide) {
                    let a = match wide {
                        true => {
                            self.extend(zmm0, if signed { Lane::S32 } else { Lane::U32 }, inst.a, strip)?
                        }
                        false => self.raw(false, inst.a, strip)?,
                    };
                    let above = (if wide { 64 } else { 32 }) - bits;
                    if bits < 32 {
                        of_width!(self, wide, vpslld | vpsllq(zmm0, a, above));
                        match signed {
                            true => of_width!(self, wide, vpsrad | vpsraq(zmm0, zmm0, above)),
                            false => of_width!(self, wide, vpsrld | vpsrlq(zmm0, zmm0, above)),
                        }
                    }
                    self.put(if wide { Lane::U64 } else { Lane::U32 }, inst.d, strip)?;
                }
                Ok(())
            }
            Operation::LowHalf => {
                for strip in 0..2 {
                    self.words_of(inst.a, strip, 0)?;
                    self.put32(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::PackHalves => {
                for strip in 0..2 {
                    let a = self.value(zmm0, Lane::U16, inst.a, strip)?;
                    let b = self.raw(false, inst.b, strip)?;
                    self.a.vpslld(zmm1, b, 16)?;
                    self.a.vpord(zmm0, a, zmm1)?;
                    self.put32(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::PackWords => {
                for strip in 0..4 {
                    let a = self.extend(zmm0, Lane::U32, inst.a, strip)?;
                    let b = self.extend(zmm1, Lane::U32, inst.b, strip)?;
                    self.a.vpsllq(zmm1, b, 32)?;
                    self.a.vporq(zmm0, a, zmm1)?;
                    self.put64(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::SplitHalves => self.split_halves(inst),
            Operation::Field(lane) => self.field(inst, lane),
            Operation::Funnel { left, wrap } => self.funnel(inst, left, wrap),
            Operation::Permute => self.permute(inst),
            Operation::ToInteger(lane, direction) => self.integer_of(inst, lane, direction),
            Operation::SplitPair => {
                for strip in 0..2 {
                    for (to, shift) in [(inst.d, 0), (inst.b, 32)] {
                        if to != NONE {
                            self.words_of(inst.a, strip, shift)?;
                            self.put32(to, strip)?;
                        }
                    }
                }
                Ok(())
            }
            Operation::ToFloat(lane) => self.unary(inst, Lane::F32, |of, a| {
                let signed = matches!(lane, Lane::S16 | Lane::S32);
                let a = of.extended(zmm0, lane, a)?;
                if signed { of.a.vcvtdq2ps(zmm0, a) } else { of.a.vcvtudq2ps(zmm0, a) }
            }),
            Operation::FromBf16 => self.unary(inst, Lane::F32, |of, a| of.a.vpslld(zmm0, a, 16)),
            Operation::FromF16 => self.unary(inst, Lane::F32, |of, a| {
                of.a.vpmovdw(ymm0, a)?;
                of.a.vcvtph2ps(zmm0, ymm0)?;
                of.canonical()
            }),
            Operation::ToF16 => self.unary(inst, Lane::F32, |of, a| {
                of.a.vcvtps2ph(ymm1, a, 0)?;
                of.a.vpmovzxwd(zmm0, ymm1)?;
                of.a.vcmpps(k1, a, a, 3)?;
                of.a.vpbroadcastd(zmm0.k1(), dword_ptr(at(offset_of!(Frame, nan_half))))
            }),
            Operation::Half(arithmetic, packed) => self.halves(inst, arithmetic, packed),
            Operation::ToBf16 => self.unary(inst, Lane::F32, |of, a| of.bf16_of(zmm0, a)),
            Operation::PackFloats { bf16 } => self.pack_floats(inst, bf16),
            Operation::Exponential(ftz) => self.function(inst, ftz, Self::exponential),
            Operation::RootReciprocal(ftz) => self.function(inst, ftz, Self::root_reciprocal),
            Operation::Div => {
                for strip in 0..2 {
                    let x = self.raw(false, inst.a, strip)?;
                    let y = self.raw(false, inst.b, strip)?;
                    self.a.vdivps(zmm0, x, y)?;
                    self.canonical()?;
                    self.put32(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::Root => self.unary(inst, Lane::F32, |of, a| {
                of.a.vsqrtps(zmm0, a)?;
                of.canonical()
            }),
            Operation::Reciprocal => self.unary(inst, Lane::F32, |of, a| {
                of.a.vbroadcastss(zmm0, dword_ptr(at(offset_of!(Frame, one))))?;
                of.a.vdivps(zmm0, zmm0, a)?;
                of.canonical()
            }),
            Operation::MultiplyFragments { bf16 } => self.multiply_fragments(index, inst, bf16),
            Operation::Negate => self.unary(inst, Lane::F32, |of, a| {
                of.a.vpxord(zmm0, a, constant!(sign))?;
                of.canonical()
            }),
            Operation::Absolute => self.unary(inst, Lane::F32, |of, a| {
                of.a.vpandd(zmm0, a, constant!(magnitude))?;
                of.canonical()
            }),
            Operation::Saturate => self.unary(inst, Lane::F32, |of, a| {
                of.a.vmovdqa64(zmm0, a)?;
                of.saturate()
            }),
            Operation::Extremum { max, nan } => self.extremum(inst, max, nan),
            Operation::Dp4a(signed) => self.dot_product(inst, signed),
            Operation::Compare(relation, lane) => self.compare(inst, relation, lane),
            Operation::Shuffle(shuffle) => self.shuffle(index, inst, shuffle),
            Operation::Predicates(_)
            | Operation::CopyPredicate
            | Operation::Branch
            | Operation::ReconvergencePoint
            | Operation::Load
            | Operation::Store
            | Operation::LoadMatrices { .. }
            | Operation::Atomic(..)
            | Operation::Nothing => unreachable!("{operation:?} is the same at all levels"),
        }
    }

    /// A strip of a row. Of 16 bits, those above are the sign or zeros, whatever the row has there: in another register.
    pub(super) fn value(
        &mut self,
        other: AsmRegisterZmm,
        lane: Lane,
        row: u32,
        strip: i32,
    ) -> Result<AsmRegisterZmm> {
        let raw = self.raw(lane.is_wide(), row, strip)?;
        self.extended(other, lane, raw)
    }

    /// The same of a strip that is in a register.
    fn extended(&mut self, other: AsmRegisterZmm, lane: Lane, raw: AsmRegisterZmm) -> Result<AsmRegisterZmm> {
        match lane {
            Lane::U16 => self.a.vpandd(other, raw, constant!(half))?,
            Lane::S16 => {
                self.a.vpslld(other, raw, 16)?;
                self.a.vpsrad(other, other, 16)?;
            }
            _ => return Ok(raw),
        }
        Ok(other)
    }

    /// A register = eight words of a row, with their sign or zeros above.
    pub(super) fn extend(
        &mut self,
        into: AsmRegisterZmm,
        lane: Lane,
        row: u32,
        strip: i32,
    ) -> Result<AsmRegisterZmm> {
        let raw = self.raw(false, row, strip / 2)?;
        self.a.vextracti64x4(ymm6, raw, (strip % 2) as u32)?;
        match lane {
            Lane::S32 => self.a.vpmovsxdq(into, ymm6)?,
            _ => self.a.vpmovzxdq(into, ymm6)?,
        }
        Ok(into)
    }

    /// `zmm0` = the words of sixteen lanes of a row of 64 bits that begin at a bit.
    fn words_of(&mut self, row: u32, strip: i32, shift: u32) -> Result<()> {
        for (part, into) in [(0, ymm1), (1, ymm2)] {
            let mut pairs = self.raw(true, row, 2 * strip + part)?;
            if shift != 0 {
                self.a.vpsrlq(zmm4, pairs, shift)?;
                pairs = zmm4;
            }
            self.a.vpmovqd(into, pairs)?;
        }
        self.a.vinserti64x4(zmm0, zmm1, ymm2, 1)
    }

    /// Of 16 bits, those above become zeros.
    pub(super) fn zeros_above_half(&mut self, register: AsmRegisterZmm) -> Result<()> {
        self.a.vpandd(register, register, constant!(half))
    }

    fn binary(&mut self, inst: &Inst, binary: Binary, lane: Lane) -> Result<()> {
        let wide = lane.is_wide();
        let signed = matches!(lane, Lane::S16 | Lane::S32 | Lane::S64);
        let shifts = matches!(binary, Binary::ShiftLeft | Binary::ShiftRight);
        for strip in Avx512::strips(lane.is_wide()) {
            let x = self.value(zmm4, lane, inst.a, strip)?;
            let y = match (shifts, wide) {
                (true, true) => self.extend(zmm5, Lane::U32, inst.b, strip)?,
                (true, false) => self.raw(false, inst.b, strip)?,
                _ => self.value(zmm5, lane, inst.b, strip)?,
            };
            match binary {
                Binary::Add => of_width!(self, wide, vpaddd | vpaddq(zmm0, x, y)),
                Binary::Sub => of_width!(self, wide, vpsubd | vpsubq(zmm0, x, y)),
                Binary::Mul => of_width!(self, wide, vpmulld | vpmullq(zmm0, x, y)),
                Binary::MulAdd => {
                    of_width!(self, wide, vpmulld | vpmullq(zmm0, x, y));
                    let z = self.raw(wide, inst.c, strip)?;
                    of_width!(self, wide, vpaddd | vpaddq(zmm0, zmm0, z));
                }
                Binary::And => self.a.vpandd(zmm0, x, y)?,
                Binary::Or => self.a.vpord(zmm0, x, y)?,
                Binary::Xor => self.a.vpxord(zmm0, x, y)?,
                Binary::Min if signed => of_width!(self, wide, vpminsd | vpminsq(zmm0, x, y)),
                Binary::Min => of_width!(self, wide, vpminud | vpminuq(zmm0, x, y)),
                Binary::Max if signed => of_width!(self, wide, vpmaxsd | vpmaxsq(zmm0, x, y)),
                Binary::Max => of_width!(self, wide, vpmaxud | vpmaxuq(zmm0, x, y)),
                Binary::ShiftLeft => of_width!(self, wide, vpsllvd | vpsllvq(zmm0, x, y)),
                Binary::ShiftRight if signed => of_width!(self, wide, vpsravd | vpsravq(zmm0, x, y)),
                Binary::ShiftRight => of_width!(self, wide, vpsrlvd | vpsrlvq(zmm0, x, y)),
            }
            self.put(lane, inst.d, strip)?;
        }
        Ok(())
    }

    /// Bytes at even and at odd places are multiplied as half words, which are added in pairs.
    fn dot_product(&mut self, inst: &Inst, signed: [bool; 2]) -> Result<()> {
        for strip in 0..2 {
            for ((row, signed), (even, odd)) in
                [inst.a, inst.b].into_iter().zip(signed).zip([(zmm1, zmm4), (zmm5, zmm6)])
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
            self.a.vpmaddwd(zmm1, zmm1, zmm5)?;
            self.a.vpmaddwd(zmm4, zmm4, zmm6)?;
            self.a.vpaddd(zmm0, zmm1, zmm4)?;
            self.a.vpaddd(zmm0, zmm0, sum)?;
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }

    /// `zmm4` = the whole products of eight lanes.
    fn product(&mut self, inst: &Inst, lane: Lane, strip: i32) -> Result<()> {
        self.extend(zmm4, lane, inst.a, strip)?;
        self.extend(zmm5, lane, inst.b, strip)?;
        match lane {
            Lane::S32 => self.a.vpmuldq(zmm4, zmm4, zmm5),
            _ => self.a.vpmuludq(zmm4, zmm4, zmm5),
        }
    }

    fn wide(&mut self, inst: &Inst, lane: Lane, adds: bool) -> Result<()> {
        for strip in Avx512::strips(!lane.is_half()) {
            let wide = !lane.is_half();
            if wide {
                self.product(inst, lane, strip)?;
            } else {
                let x = self.value(zmm4, lane, inst.a, strip)?;
                let y = self.value(zmm5, lane, inst.b, strip)?;
                self.a.vpmulld(zmm4, x, y)?;
            }
            if adds {
                let sum = self.raw(wide, inst.c, strip)?;
                of_width!(self, wide, vpaddd | vpaddq(zmm0, zmm4, sum));
            } else {
                self.a.vmovdqa64(zmm0, zmm4)?;
            }
            self.put(if wide { Lane::U64 } else { Lane::U32 }, inst.d, strip)?;
        }
        Ok(())
    }

    fn compare(&mut self, inst: &Inst, relation: Relation, lane: Lane) -> Result<()> {
        // As the processor numbers them: of floating-point numbers, those that hold for no NaN.
        let number = match (lane, relation) {
            (Lane::F32 | Lane::F64, Relation::Equal) => 0,
            (Lane::F32 | Lane::F64, Relation::Unequal) => 0x0c,
            (Lane::F32 | Lane::F64, Relation::Less) => 0x11,
            (Lane::F32 | Lane::F64, Relation::LessOrEqual) => 0x12,
            (Lane::F32 | Lane::F64, Relation::Ordered) => 7,
            (_, Relation::Equal) => 0,
            (_, Relation::Unequal) => 4,
            (_, Relation::Less) => 1,
            (_, _) => 2u32,
        };
        for strip in Avx512::strips(lane.is_wide()) {
            let x = self.value(zmm0, lane, inst.a, strip)?;
            let y = self.value(zmm1, lane, inst.b, strip)?;
            let a = &mut self.a;
            match lane {
                Lane::F32 => a.vcmpps(k1, x, y, number)?,
                Lane::F64 => a.vcmppd(k1, x, y, number)?,
                Lane::S16 | Lane::S32 => a.vpcmpd(k1, x, y, number)?,
                Lane::S64 => a.vpcmpq(k1, x, y, number)?,
                Lane::U64 => a.vpcmpuq(k1, x, y, number)?,
                Lane::U16 | Lane::U32 => a.vpcmpud(k1, x, y, number)?,
            }
            let width = if lane.is_wide() { 8 } else { 16 };
            match strip {
                0 => a.kmovw(eax, k1)?,
                _ => {
                    a.kmovw(edx, k1)?;
                    a.shl(edx, width * strip as u32)?;
                    a.or(eax, edx)?;
                }
            }
        }
        self.set_conditions(inst, false)
    }
}
