//! What each operation becomes.

use super::{Compiler, Frame, Result, at, pred, row32, row32_eight, row64};
use crate::machine::{Inst, NONE};
use crate::native::{Arithmetic, Binary, Lane, Logic, Operation, Relation};
use iced_x86::code_asm::*;
use std::mem::offset_of;

impl Compiler<'_> {
    pub(super) fn operation(&mut self, index: usize, inst: &Inst, operation: Operation) -> Result<()> {
        match operation {
            Operation::Arithmetic(arithmetic) => self.floats(inst, arithmetic),
            Operation::Binary(binary, lane) if lane.is_wide() => self.binary64(inst, binary, lane),
            Operation::Binary(binary, lane) => self.binary32(inst, binary, lane),
            Operation::Wide(lane, adds) => self.wide(inst, lane, adds),
            Operation::MulHigh(lane) => {
                for strip in 0..2 {
                    for (part, into) in [(0, ymm0), (1, ymm1)] {
                        self.product(inst, lane, 2 * strip + part)?;
                        self.a.vpsrlq(zmm4, zmm4, 32)?;
                        self.a.vpmovqd(into, zmm4)?;
                    }
                    self.a.vinserti64x4(zmm0, zmm0, ymm1, 1)?;
                    self.put32(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::Not(lane) => {
                self.a.vpternlogd(zmm5, zmm5, zmm5, 0xff)?;
                for strip in self.strips(lane) {
                    match lane.is_wide() {
                        true => self.a.vpxorq(zmm0, zmm5, zmmword_ptr(row64(inst.a, strip)))?,
                        false => self.a.vpxord(zmm0, zmm5, zmmword_ptr(row32(inst.a, strip)))?,
                    }
                    self.put(lane, inst.d, strip)?;
                }
                Ok(())
            }
            Operation::Copy(lane) => {
                for strip in self.strips(lane) {
                    self.load(zmm0, lane, inst.a, strip)?;
                    self.put(lane, inst.d, strip)?;
                }
                Ok(())
            }
            Operation::Lop3 => {
                for strip in 0..2 {
                    self.load(zmm0, Lane::U32, inst.a, strip)?;
                    self.load(zmm1, Lane::U32, inst.b, strip)?;
                    self.a.vpternlogd(zmm0, zmm1, zmmword_ptr(row32(inst.c, strip)), inst.imm as u32)?;
                    self.put32(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::Select(lane) => {
                self.predicate(eax, inst.c)?;
                self.a.kmovd(k1, eax)?;
                for strip in self.strips(lane) {
                    self.load(zmm0, lane, inst.b, strip)?;
                    match lane.is_wide() {
                        true => self.a.vmovdqu64(zmm0.k1(), zmmword_ptr(row64(inst.a, strip)))?,
                        false => self.a.vmovdqu32(zmm0.k1(), zmmword_ptr(row32(inst.a, strip)))?,
                    }
                    self.a.kshiftrd(k1, k1, if lane.is_wide() { 8 } else { 16 })?;
                    self.put(lane, inst.d, strip)?;
                }
                Ok(())
            }
            Operation::Extend { bits, signed, wide: false } => {
                for strip in 0..2 {
                    self.a.vpslld(zmm0, zmmword_ptr(row32(inst.a, strip)), 32 - bits)?;
                    match signed {
                        true => self.a.vpsrad(zmm0, zmm0, 32 - bits)?,
                        false => self.a.vpsrld(zmm0, zmm0, 32 - bits)?,
                    }
                    self.put32(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::Extend { bits, signed, wide: true } => {
                for strip in 0..4 {
                    self.extend(zmm0, if signed { Lane::S32 } else { Lane::U32 }, inst.a, strip)?;
                    if bits < 32 {
                        self.a.vpsllq(zmm0, zmm0, 64 - bits)?;
                        match signed {
                            true => self.a.vpsraq(zmm0, zmm0, 64 - bits)?,
                            false => self.a.vpsrlq(zmm0, zmm0, 64 - bits)?,
                        }
                    }
                    self.put64(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::LowHalf => {
                for strip in 0..2 {
                    self.low_words(inst.a, strip)?;
                    self.put32(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::PackHalves => {
                for strip in 0..2 {
                    self.load(zmm0, Lane::U16, inst.a, strip)?;
                    self.a.vpslld(zmm1, zmmword_ptr(row32(inst.b, strip)), 16)?;
                    self.a.vpord(zmm0, zmm0, zmm1)?;
                    self.put32(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::PackWords => {
                for strip in 0..4 {
                    self.extend(zmm0, Lane::U32, inst.a, strip)?;
                    self.extend(zmm1, Lane::U32, inst.b, strip)?;
                    self.a.vpsllq(zmm1, zmm1, 32)?;
                    self.a.vporq(zmm0, zmm0, zmm1)?;
                    self.put64(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::SplitPair => {
                for strip in 0..2 {
                    if inst.d != NONE {
                        self.low_words(inst.a, strip)?;
                        self.put32(inst.d, strip)?;
                    }
                    if inst.b != NONE {
                        for (part, into) in [(0, ymm0), (1, ymm1)] {
                            self.load(zmm2, Lane::U64, inst.a, 2 * strip + part)?;
                            self.a.vpsrlq(zmm2, zmm2, 32)?;
                            self.a.vpmovqd(into, zmm2)?;
                        }
                        self.a.vinserti64x4(zmm0, zmm0, ymm1, 1)?;
                        self.put32(inst.b, strip)?;
                    }
                }
                Ok(())
            }
            Operation::ToFloat(lane) => {
                for strip in 0..2 {
                    self.load(zmm0, lane, inst.a, strip)?;
                    match lane {
                        Lane::S16 | Lane::S32 => self.a.vcvtdq2ps(zmm0, zmm0)?,
                        _ => self.a.vcvtudq2ps(zmm0, zmm0)?,
                    }
                    self.put32(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::FromBf16 => {
                for strip in 0..2 {
                    self.a.vpslld(zmm0, zmmword_ptr(row32(inst.a, strip)), 16)?;
                    self.put32(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::Negate => {
                for strip in 0..2 {
                    self.a.vpternlogd(zmm1, zmm1, zmm1, 0xff)?;
                    self.a.vpslld(zmm1, zmm1, 31)?;
                    self.a.vpxord(zmm0, zmm1, zmmword_ptr(row32(inst.a, strip)))?;
                    self.canonical()?;
                    self.put32(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::Extremum { max, nan } => self.extremum(inst, max, nan),
            Operation::Dp4a(signed) => self.dot_product(inst, signed),
            Operation::Compare(relation, lane) => self.compare(inst, relation, lane),
            Operation::Predicates(logic) => {
                self.predicate(eax, inst.a)?;
                self.predicate(edx, inst.b)?;
                match logic {
                    Logic::And => self.a.and(eax, edx)?,
                    Logic::Or => self.a.or(eax, edx)?,
                    Logic::Xor => self.a.xor(eax, edx)?,
                    Logic::Not => self.a.not(eax)?,
                }
                self.set_predicate(inst.d, eax)
            }
            Operation::CopyPredicate => {
                self.predicate(eax, inst.a)?;
                self.set_predicate(inst.d, eax)
            }
            Operation::ReconvergencePoint => {
                let exit = self.exit(index, self.needs[index]);
                self.a.cmp(
                    dword_ptr(at(offset_of!(Frame, reconverges_at))),
                    self.first as i32 + index as i32,
                )?;
                self.a.je(exit)
            }
            Operation::Load => self.access(index, inst, false),
            Operation::Store => self.access(index, inst, true),
            Operation::Nothing => Ok(()),
            // It ends a segment.
            Operation::Branch => Ok(()),
        }
    }

    /// The strips of a row.
    fn strips(&self, lane: Lane) -> std::ops::Range<i32> {
        if lane.is_wide() { 0..4 } else { 0..2 }
    }

    /// A strip of a row. Of 16 bits, those above are the sign or zeros, whatever the row has there.
    pub(super) fn load(&mut self, into: AsmRegisterZmm, lane: Lane, row: u32, strip: i32) -> Result<()> {
        match lane {
            Lane::U64 | Lane::S64 => self.a.vmovdqu64(into, zmmword_ptr(row64(row, strip))),
            Lane::U16 => {
                self.a.vmovdqu32(into, zmmword_ptr(row32(row, strip)))?;
                self.a.vpandd(into, into, dword_bcst(at(offset_of!(Frame, half))))
            }
            Lane::S16 => {
                self.a.vpslld(into, zmmword_ptr(row32(row, strip)), 16)?;
                self.a.vpsrad(into, into, 16)
            }
            Lane::U32 | Lane::S32 | Lane::F32 => self.a.vmovdqu32(into, zmmword_ptr(row32(row, strip))),
        }
    }

    /// Eight words of a row, with their sign or zeros above.
    pub(super) fn extend(&mut self, into: AsmRegisterZmm, lane: Lane, row: u32, strip: i32) -> Result<()> {
        match lane {
            Lane::S32 => self.a.vpmovsxdq(into, ymmword_ptr(row32_eight(row, strip))),
            _ => self.a.vpmovzxdq(into, ymmword_ptr(row32_eight(row, strip))),
        }
    }

    /// `zmm0` = the low words of sixteen lanes of a row of 64 bits.
    fn low_words(&mut self, row: u32, strip: i32) -> Result<()> {
        for (part, into) in [(0, ymm0), (1, ymm1)] {
            self.load(zmm2, Lane::U64, row, 2 * strip + part)?;
            self.a.vpmovqd(into, zmm2)?;
        }
        self.a.vinserti64x4(zmm0, zmm0, ymm1, 1)
    }

    /// The lanes of `zmm0` become a strip of a row.
    fn put(&mut self, lane: Lane, row: u32, strip: i32) -> Result<()> {
        if lane.is_half() {
            self.a.vpandd(zmm0, zmm0, dword_bcst(at(offset_of!(Frame, half))))?;
        }
        if lane.is_wide() { self.put64(row, strip) } else { self.put32(row, strip) }
    }

    pub(super) fn put32(&mut self, row: u32, strip: i32) -> Result<()> {
        let to = zmmword_ptr(row32(row, strip));
        if !self.masked {
            return self.a.vmovdqu32(to, zmm0);
        }
        self.a.vmovdqu32(zmm31, to)?;
        match strip {
            0 => self.a.vmovdqa32(zmm31.k6(), zmm0)?,
            _ => self.a.vmovdqa32(zmm31.k7(), zmm0)?,
        }
        self.a.vmovdqu32(to, zmm31)
    }

    pub(super) fn put64(&mut self, row: u32, strip: i32) -> Result<()> {
        let to = zmmword_ptr(row64(row, strip));
        if !self.masked {
            return self.a.vmovdqu64(to, zmm0);
        }
        self.a.kshiftrd(k5, k6, 8 * strip as u32)?;
        self.a.vmovdqu64(zmm31, to)?;
        self.a.vmovdqa64(zmm31.k5(), zmm0)?;
        self.a.vmovdqu64(to, zmm31)
    }

    fn binary32(&mut self, inst: &Inst, binary: Binary, lane: Lane) -> Result<()> {
        let signed = matches!(lane, Lane::S16 | Lane::S32);
        let shifts = matches!(binary, Binary::ShiftLeft | Binary::ShiftRight);
        for strip in 0..2 {
            self.load(zmm0, lane, inst.a, strip)?;
            self.load(zmm1, if shifts { Lane::U32 } else { lane }, inst.b, strip)?;
            let a = &mut self.a;
            match binary {
                Binary::Add => a.vpaddd(zmm0, zmm0, zmm1)?,
                Binary::Sub => a.vpsubd(zmm0, zmm0, zmm1)?,
                Binary::Mul => a.vpmulld(zmm0, zmm0, zmm1)?,
                Binary::MulAdd => {
                    a.vpmulld(zmm0, zmm0, zmm1)?;
                    a.vpaddd(zmm0, zmm0, zmmword_ptr(row32(inst.c, strip)))?;
                }
                Binary::And => a.vpandd(zmm0, zmm0, zmm1)?,
                Binary::Or => a.vpord(zmm0, zmm0, zmm1)?,
                Binary::Xor => a.vpxord(zmm0, zmm0, zmm1)?,
                Binary::Min if signed => a.vpminsd(zmm0, zmm0, zmm1)?,
                Binary::Min => a.vpminud(zmm0, zmm0, zmm1)?,
                Binary::Max if signed => a.vpmaxsd(zmm0, zmm0, zmm1)?,
                Binary::Max => a.vpmaxud(zmm0, zmm0, zmm1)?,
                Binary::ShiftLeft => a.vpsllvd(zmm0, zmm0, zmm1)?,
                Binary::ShiftRight if signed => a.vpsravd(zmm0, zmm0, zmm1)?,
                Binary::ShiftRight => a.vpsrlvd(zmm0, zmm0, zmm1)?,
            }
            self.put(lane, inst.d, strip)?;
        }
        Ok(())
    }

    fn binary64(&mut self, inst: &Inst, binary: Binary, lane: Lane) -> Result<()> {
        let signed = lane == Lane::S64;
        for strip in 0..4 {
            self.load(zmm0, lane, inst.a, strip)?;
            let b = zmmword_ptr(row64(inst.b, strip));
            if matches!(binary, Binary::ShiftLeft | Binary::ShiftRight) {
                self.extend(zmm1, Lane::U32, inst.b, strip)?;
            }
            let a = &mut self.a;
            match binary {
                Binary::Add => a.vpaddq(zmm0, zmm0, b)?,
                Binary::Sub => a.vpsubq(zmm0, zmm0, b)?,
                Binary::Mul => a.vpmullq(zmm0, zmm0, b)?,
                Binary::MulAdd => {
                    a.vpmullq(zmm0, zmm0, b)?;
                    a.vpaddq(zmm0, zmm0, zmmword_ptr(row64(inst.c, strip)))?;
                }
                Binary::And => a.vpandq(zmm0, zmm0, b)?,
                Binary::Or => a.vporq(zmm0, zmm0, b)?,
                Binary::Xor => a.vpxorq(zmm0, zmm0, b)?,
                Binary::Min if signed => a.vpminsq(zmm0, zmm0, b)?,
                Binary::Min => a.vpminuq(zmm0, zmm0, b)?,
                Binary::Max if signed => a.vpmaxsq(zmm0, zmm0, b)?,
                Binary::Max => a.vpmaxuq(zmm0, zmm0, b)?,
                Binary::ShiftLeft => a.vpsllvq(zmm0, zmm0, zmm1)?,
                Binary::ShiftRight if signed => a.vpsravq(zmm0, zmm0, zmm1)?,
                Binary::ShiftRight => a.vpsrlvq(zmm0, zmm0, zmm1)?,
            }
            self.put64(inst.d, strip)?;
        }
        Ok(())
    }

    fn floats(&mut self, inst: &Inst, arithmetic: Arithmetic) -> Result<()> {
        for strip in 0..2 {
            self.load(zmm0, Lane::F32, inst.a, strip)?;
            let b = zmmword_ptr(row32(inst.b, strip));
            let a = &mut self.a;
            match arithmetic {
                Arithmetic::Add => a.vaddps(zmm0, zmm0, b)?,
                Arithmetic::Sub => a.vsubps(zmm0, zmm0, b)?,
                Arithmetic::Mul => a.vmulps(zmm0, zmm0, b)?,
                Arithmetic::MulAdd => {
                    a.vmovdqu32(zmm1, b)?;
                    a.vfmadd213ps(zmm0, zmm1, zmmword_ptr(row32(inst.c, strip)))?;
                }
            }
            self.canonical()?;
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }

    /// Every NaN of `zmm0` becomes the same one.
    fn canonical(&mut self) -> Result<()> {
        self.a.vcmpps(k1, zmm0, zmm0, 3)?;
        self.a.vpbroadcastd(zmm0.k1(), dword_ptr(at(offset_of!(Frame, nan))))
    }

    fn extremum(&mut self, inst: &Inst, max: bool, nan: bool) -> Result<()> {
        for strip in 0..2 {
            self.load(zmm1, Lane::F32, inst.a, strip)?;
            self.load(zmm4, Lane::F32, inst.b, strip)?;
            let a = &mut self.a;
            // Minus zero is less than plus zero; signalling NaNs are put right below.
            a.vrangeps(zmm0, zmm1, zmm4, if max { 5 } else { 4 })?;
            a.vcmpps(k1, zmm1, zmm1, 3)?;
            a.vcmpps(k2, zmm4, zmm4, 3)?;
            if nan {
                a.korw(k1, k1, k2)?;
                a.vpbroadcastd(zmm0.k1(), dword_ptr(at(offset_of!(Frame, nan))))?;
            } else {
                a.vmovdqa32(zmm0.k1(), zmm4)?;
                a.vmovdqa32(zmm0.k2(), zmm1)?;
                self.canonical()?;
            }
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }

    /// Bytes at even and at odd places are multiplied as half words, which are added in pairs.
    fn dot_product(&mut self, inst: &Inst, signed: [bool; 2]) -> Result<()> {
        for strip in 0..2 {
            for ((row, signed), (even, odd)) in
                [inst.a, inst.b].into_iter().zip(signed).zip([(zmm1, zmm4), (zmm5, zmm6)])
            {
                self.load(odd, Lane::U32, row, strip)?;
                self.a.vpsllw(even, odd, 8)?;
                if signed {
                    self.a.vpsraw(even, even, 8)?;
                    self.a.vpsraw(odd, odd, 8)?;
                } else {
                    self.a.vpsrlw(even, even, 8)?;
                    self.a.vpsrlw(odd, odd, 8)?;
                }
            }
            self.a.vpmaddwd(zmm1, zmm1, zmm5)?;
            self.a.vpmaddwd(zmm4, zmm4, zmm6)?;
            self.a.vpaddd(zmm0, zmm1, zmm4)?;
            self.a.vpaddd(zmm0, zmm0, zmmword_ptr(row32(inst.c, strip)))?;
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
        if !lane.is_half() {
            for strip in 0..4 {
                self.product(inst, lane, strip)?;
                match adds {
                    true => self.a.vpaddq(zmm0, zmm4, zmmword_ptr(row64(inst.c, strip)))?,
                    false => self.a.vmovdqa64(zmm0, zmm4)?,
                }
                self.put64(inst.d, strip)?;
            }
            return Ok(());
        }
        for strip in 0..2 {
            for (into, row) in [(zmm0, inst.a), (zmm1, inst.b)] {
                self.load(into, lane, row, strip)?;
            }
            self.a.vpmulld(zmm0, zmm0, zmm1)?;
            if adds {
                self.a.vpaddd(zmm0, zmm0, zmmword_ptr(row32(inst.c, strip)))?;
            }
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }

    /// The lanes of `value` become those of a predicate.
    fn set_predicate(&mut self, row: u32, value: AsmRegister32) -> Result<()> {
        let a = &mut self.a;
        if self.masked {
            // The lanes of the instruction are still in `ecx`.
            a.mov(r8d, pred(row))?;
            a.xor(value, r8d)?;
            a.and(value, ecx)?;
            a.xor(value, r8d)?;
        }
        a.mov(pred(row), value)
    }

    fn compare(&mut self, inst: &Inst, relation: Relation, lane: Lane) -> Result<()> {
        // As the processor numbers them: of floating-point numbers, those that hold for no NaN.
        let number = match (lane, relation) {
            (Lane::F32, Relation::Equal) => 0,
            (Lane::F32, Relation::Unequal) => 0x0c,
            (Lane::F32, Relation::Less) => 0x11,
            (Lane::F32, Relation::LessOrEqual) => 0x12,
            (Lane::F32, Relation::Ordered) => 7,
            (_, Relation::Equal) => 0,
            (_, Relation::Unequal) => 4,
            (_, Relation::Less) => 1,
            (_, _) => 2u32,
        };
        for strip in self.strips(lane) {
            self.load(zmm0, lane, inst.a, strip)?;
            self.load(zmm1, lane, inst.b, strip)?;
            let a = &mut self.a;
            match lane {
                Lane::F32 => a.vcmpps(k1, zmm0, zmm1, number)?,
                Lane::S16 | Lane::S32 => a.vpcmpd(k1, zmm0, zmm1, number)?,
                Lane::S64 => a.vpcmpq(k1, zmm0, zmm1, number)?,
                Lane::U64 => a.vpcmpuq(k1, zmm0, zmm1, number)?,
                Lane::U16 | Lane::U32 => a.vpcmpud(k1, zmm0, zmm1, number)?,
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
        let a = &mut self.a;
        // A complement, and what it is combined with: see the handler.
        if inst.imm & 4 != 0 {
            a.not(eax)?;
        }
        a.mov(esi, eax)?;
        a.not(esi)?;
        if inst.imm & 3 != 0 {
            self.predicate(edx, inst.c)?;
            for value in [eax, esi] {
                match inst.imm & 3 {
                    1 => self.a.and(value, edx)?,
                    2 => self.a.or(value, edx)?,
                    _ => self.a.xor(value, edx)?,
                }
            }
        }
        if inst.d != NONE {
            self.set_predicate(inst.d, eax)?;
        }
        if inst.x != NONE {
            self.set_predicate(inst.x, esi)?;
        }
        Ok(())
    }
}
