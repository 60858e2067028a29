//! AVX2: rows of four or eight strips, and masks in vectors, where a lane's sign says whether it is there.
//!
//! | register | holds |
//! | --- | --- |
//! | `ymm0` | the result |
//! | `ymm1` to `ymm3` | whatever an operation needs; a result for some lanes is blended by the latter two |
//! | `ymm4` | the lanes of an instruction, in each element, where they are not all |
//! | `ymm5` to `ymm7` | what operations read; accesses use them, too |
//! | `ymm8` to `ymm15` | results |
//!
//! Results are read again soon, so these are what most registers hold. Memory is written by whole vectors, or lane by
//! lane.

/// A constant of the frame, in all lanes.
macro_rules! constant {
    ($name:ident) => {
        ymmword_ptr(at(offset_of!(Frame, $name)))
    };
}

mod access;
mod bits;
mod double;
mod float;
mod integer;

use super::access::{Noted, Together};
use super::held::Strip;
use super::routine::NoteShared;
use super::{Frame, Result, Vectors, at, pred, row32, row64};
use crate::machine::Inst;
use crate::memory::MemoryOp;
use crate::native::{Lane, Operation};
use iced_x86::code_asm::*;
use std::mem::offset_of;
use std::ops::Range;

pub(super) struct Avx2;

type Compiler<'a> = super::Compiler<'a, Avx2>;

impl Vectors for Avx2 {
    type Register = AsmRegisterYmm;

    const BYTES: i32 = 32;
    const HOLD: &'static [AsmRegisterYmm] =
        &[ymm5, ymm6, ymm7, ymm8, ymm9, ymm10, ymm11, ymm12, ymm13, ymm14, ymm15];
    const SOURCES: Range<usize> = 0..3;
    const RESULTS: Range<usize> = 3..11;
    const KEEPS_RESULTS: bool = false;
    const RESULT: AsmRegisterYmm = ymm0;
    const OLD: AsmRegisterYmm = ymm3;

    fn load(a: &mut CodeAssembler, into: AsmRegisterYmm, from: AsmMemoryOperand) -> Result<()> {
        a.vmovdqu(into, ymmword_ptr(from))
    }

    fn store(a: &mut CodeAssembler, to: AsmMemoryOperand, from: AsmRegisterYmm) -> Result<()> {
        a.vmovdqu(ymmword_ptr(to), from)
    }

    fn compare(a: &mut CodeAssembler, register: AsmRegisterYmm, with: AsmMemoryOperand) -> Result<()> {
        a.vpxor(ymm1, register, ymmword_ptr(with))?;
        a.vptest(ymm1, ymm1)?;
        // Zero is another flag.
        a.sete(al)?;
        a.bt(eax, 0)
    }

    fn copy(a: &mut CodeAssembler, into: AsmRegisterYmm) -> Result<()> {
        a.vmovdqa(into, ymm0)
    }

    /// Without instructions that round in a direction and masks, handlers are as fast.
    fn has(operation: Operation) -> bool {
        use Operation::*;
        !matches!(
            operation,
            Half(..)
                | ToBf16
                | PackFloats { .. }
                | Exponential(_)
                | RootReciprocal(_)
                | ToDouble(Lane::U32)
                | LoadMatrices { .. }
                | MultiplyFragments { .. }
        )
    }

    fn mask(of: &mut Compiler<'_>) -> Result<()> {
        of.a.vmovd(xmm4, ecx)?;
        of.a.vpbroadcastd(ymm4, xmm4)
    }

    fn blend(of: &mut Compiler<'_>, old: AsmRegisterYmm, (wide, _, strip): Strip) -> Result<()> {
        of.signs(ymm2, ymm4, wide, strip)?;
        of_width!(of, wide, vblendvps | vblendvpd(ymm0, old, ymm0, ymm2));
        Ok(())
    }

    fn zeros_above_half(of: &mut Compiler<'_>) -> Result<()> {
        of.a.vpand(ymm0, ymm0, constant!(half))
    }

    fn operation(of: &mut Compiler<'_>, index: usize, inst: &Inst, operation: Operation) -> Result<()> {
        of.compute(index, inst, operation)
    }

    fn access(of: &mut Compiler<'_>, index: usize, inst: &Inst, write: bool) -> Result<()> {
        of.load_or_store(index, inst, write)
    }

    fn compare_addresses(
        of: &mut Compiler<'_>,
        op: &MemoryOp,
        together: Together,
        unless: CodeLabel,
    ) -> Result<()> {
        let (row, wide, bytes) = (op.address.row, op.address.wide, op.bytes * op.elements.len() as u32);
        let first = if wide { row64(row, 0) } else { row32(row, 0) };
        of_width!(of, wide, vpbroadcastd | vpbroadcastq(ymm1, first));
        let apart = (together == Together::Ascending).then_some(bytes);
        of.follow((wide, row), Avx2::strips(wide), apart)?;
        of.a.jnz(unless)
    }

    fn addresses(of: &mut Compiler<'_>, number: u32, miss: CodeLabel) -> Result<()> {
        of.offsets(number, miss)
    }

    /// They are there.
    fn keep_addresses(of: &mut Compiler<'_>) -> Result<()> {
        match of.masked {
            true => of.a.mov(r10d, ecx),
            false => of.a.mov(r10d, -1),
        }
    }

    fn load_sixteen(_: &mut Compiler<'_>, _: &[Option<u32>], _: bool) -> Result<()> {
        unreachable!("it is left to the interpreter")
    }

    fn note(of: &mut Compiler<'_>, noted: &Noted<'_>, miss: CodeLabel) -> Result<()> {
        // What is needed again is loaded then.
        of.held.clear();
        of.ask::<NoteShared>((noted.index, noted.number, noted.asked()), miss)
    }

    /// The frame has it.
    fn keep(_: &mut Compiler<'_>, _: bool) -> Result<()> {
        Ok(())
    }

    fn restore(_: &mut Compiler<'_>, _: bool) -> Result<()> {
        Ok(())
    }

    fn noting(_: &mut Compiler<'_>) -> Result<()> {
        Ok(())
    }
}

impl Compiler<'_> {
    /// The signs of a register = the lanes of a strip, from a mask that is in each element.
    fn signs(&mut self, into: AsmRegisterYmm, mask: AsmRegisterYmm, wide: bool, strip: i32) -> Result<()> {
        let table = if wide { offset_of!(Frame, to_sign_wide) } else { offset_of!(Frame, to_sign) };
        let table = ymmword_ptr(at(table + 32 * strip as usize));
        of_width!(self, wide, vpsllvd | vpsllvq(into, mask, table));
        Ok(())
    }

    fn compute(&mut self, index: usize, inst: &Inst, operation: Operation) -> Result<()> {
        match operation {
            Operation::Arithmetic(arithmetic, modifiers) => self.floats(inst, arithmetic, modifiers),
            Operation::Double(double, direction) => self.doubles(inst, double, direction),
            Operation::ToDouble(lane) => self.double_of(inst, lane),
            Operation::FromDouble => self.single_of(inst),
            Operation::Binary(binary, lane) => self.binary(inst, binary, lane),
            Operation::Wide(lane, adds) => self.wide(inst, lane, adds),
            Operation::MulHigh(lane) => self.mul_high(inst, lane),
            Operation::Not(lane) => self.unary(inst, lane, |of, a| of.a.vpxor(ymm0, a, constant!(all))),
            Operation::Copy(lane) => self.unary(inst, lane, |of, a| of.a.vmovdqa(ymm0, a)),
            Operation::Lop3 => self.lop3(inst),
            Operation::Select(lane) => {
                let wide = lane.is_wide();
                let (holds, fails) = if inst.c & 1 == 0 { (inst.a, inst.b) } else { (inst.b, inst.a) };
                self.a.vpbroadcastd(ymm1, pred(inst.c >> 1))?;
                for strip in Avx2::strips(wide) {
                    let holds = self.raw(wide, holds, strip)?;
                    let fails = self.raw(wide, fails, strip)?;
                    self.signs(ymm0, ymm1, wide, strip)?;
                    of_width!(self, wide, vblendvps | vblendvpd(ymm0, fails, holds, ymm0));
                    self.put(lane, inst.d, strip)?;
                }
                Ok(())
            }
            Operation::Extend { bits, signed, wide } => self.extend_field(inst, bits, signed, wide),
            Operation::LowHalf => self.words_of(inst.a, 0, inst.d),
            Operation::PackHalves => self.pack_halves(inst),
            Operation::PackWords => self.pack_words(inst),
            Operation::SplitHalves => self.split_halves(inst),
            Operation::SplitPair => {
                self.words_of(inst.a, 0, inst.d)?;
                self.words_of(inst.a, 32, inst.b)
            }
            Operation::Field(lane) => self.field(inst, lane),
            Operation::Funnel { left, wrap } => self.funnel(inst, left, wrap),
            Operation::Permute => self.permute(inst),
            Operation::Dp4a(signed) => self.dot_product(inst, signed),
            Operation::Compare(relation, lane) => self.compare(inst, relation, lane),
            Operation::Shuffle(shuffle) => self.shuffle(index, inst, shuffle),
            Operation::ToInteger(lane, direction) => self.integer_of(inst, lane, direction),
            Operation::ToFloat(lane) => self.float_of(inst, lane),
            Operation::FromBf16 => self.unary(inst, Lane::F32, |of, a| of.a.vpslld(ymm0, a, 16)),
            Operation::FromF16 => self.unary(inst, Lane::F32, |of, a| {
                of.a.vpand(ymm0, a, constant!(half))?;
                of.a.vpackusdw(ymm0, ymm0, ymm0)?;
                of.a.vpermq(ymm0, ymm0, 0x08)?;
                of.a.vcvtph2ps(ymm0, xmm0)?;
                of.canonical()
            }),
            Operation::ToF16 => self.unary(inst, Lane::F32, |of, a| {
                of.a.vcvtps2ph(xmm1, a, 0)?;
                of.a.vpmovzxwd(ymm0, xmm1)?;
                of.a.vcmpps(ymm1, a, a, 3)?;
                of.a.vblendvps(ymm0, ymm0, constant!(nan_half), ymm1)
            }),
            Operation::Div => {
                for strip in Avx2::strips(false) {
                    let x = self.raw(false, inst.a, strip)?;
                    let y = self.raw(false, inst.b, strip)?;
                    self.a.vdivps(ymm0, x, y)?;
                    self.canonical()?;
                    self.put32(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::Root => self.unary(inst, Lane::F32, |of, a| {
                of.a.vsqrtps(ymm0, a)?;
                of.canonical()
            }),
            Operation::Reciprocal => self.unary(inst, Lane::F32, |of, a| {
                of.a.vmovups(ymm0, constant!(one))?;
                of.a.vdivps(ymm0, ymm0, a)?;
                of.canonical()
            }),
            Operation::Negate => self.unary(inst, Lane::F32, |of, a| {
                of.a.vpxor(ymm0, a, constant!(sign))?;
                of.canonical()
            }),
            Operation::Absolute => self.unary(inst, Lane::F32, |of, a| {
                of.a.vpand(ymm0, a, constant!(magnitude))?;
                of.canonical()
            }),
            Operation::Saturate => self.unary(inst, Lane::F32, |of, a| {
                of.a.vmovdqa(ymm0, a)?;
                of.saturate()
            }),
            Operation::Extremum { max, nan } => self.extremum(inst, max, nan),
            Operation::Predicates(_)
            | Operation::CopyPredicate
            | Operation::Branch
            | Operation::ReconvergencePoint
            | Operation::Load
            | Operation::Store
            | Operation::LoadMatrices { .. }
            | Operation::Atomic(..)
            | Operation::Nothing => unreachable!("{operation:?} is the same at all levels"),
            Operation::Half(..)
            | Operation::ToBf16
            | Operation::PackFloats { .. }
            | Operation::Exponential(_)
            | Operation::RootReciprocal(_)
            | Operation::MultiplyFragments { .. } => unreachable!("{operation:?} is left to the interpreter"),
        }
    }
}
