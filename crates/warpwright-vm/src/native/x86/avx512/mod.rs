//! AVX-512: rows of two or four strips, and masks in registers of their own: `k6` and `k7` are the lanes of an instruction,
//! those of the lower and of the upper half.
//!
//! Results for some lanes are blended with what the row holds, and stored whole: a row is the warp's own, and a store
//! under a mask would not be forwarded to the loads behind it. Memory is never written so.

/// A constant of the frame, in all lanes.
macro_rules! constant {
    ($name:ident) => {
        dword_bcst(at(offset_of!(Frame, $name)))
    };
}

mod access;
mod bits;
mod double;
mod float;
mod function;
mod half;
pub(super) mod note;
mod operation;

use super::access::{Noted, Together};
use super::held::Strip;
use super::{Frame, Result, Vectors};
use crate::machine::Inst;
use crate::memory::MemoryOp;
use crate::native::Operation;
use iced_x86::code_asm::*;
use std::ops::Range;

pub(super) struct Avx512;

type Compiler<'a> = super::Compiler<'a, Avx512>;

impl Vectors for Avx512 {
    type Register = AsmRegisterZmm;

    const BYTES: i32 = 64;
    const HOLD: &'static [AsmRegisterZmm] = &[
        zmm7, zmm8, zmm9, zmm10, zmm11, zmm12, zmm13, zmm14, zmm15, zmm16, zmm17, zmm18, zmm19, zmm28, zmm29,
        zmm30,
    ];
    const SOURCES: Range<usize> = 0..16;
    const RESULTS: Range<usize> = 0..16;
    const KEEPS_RESULTS: bool = true;
    const RESULT: AsmRegisterZmm = zmm0;
    const OLD: AsmRegisterZmm = zmm31;

    fn load(a: &mut CodeAssembler, into: AsmRegisterZmm, from: AsmMemoryOperand) -> Result<()> {
        a.vmovdqu64(into, zmmword_ptr(from))
    }

    fn store(a: &mut CodeAssembler, to: AsmMemoryOperand, from: AsmRegisterZmm) -> Result<()> {
        a.vmovdqu64(zmmword_ptr(to), from)
    }

    fn compare(a: &mut CodeAssembler, register: AsmRegisterZmm, with: AsmMemoryOperand) -> Result<()> {
        a.vpcmpeqd(k1, register, zmmword_ptr(with))?;
        a.kortestw(k1, k1)
    }

    fn copy(a: &mut CodeAssembler, into: AsmRegisterZmm) -> Result<()> {
        a.vmovdqa64(into, zmm0)
    }

    fn has(_: Operation) -> bool {
        true
    }

    fn mask(of: &mut Compiler<'_>) -> Result<()> {
        of.a.kmovd(k6, ecx)?;
        of.a.kshiftrd(k7, k6, 16)
    }

    fn blend(of: &mut Compiler<'_>, old: AsmRegisterZmm, (wide, _, strip): Strip) -> Result<()> {
        if wide {
            of.a.kshiftrd(k5, k6, 8 * strip as u32)?;
            return of.a.vpblendmq(zmm0.k5(), old, zmm0);
        }
        of.a.vpblendmd(if strip == 0 { zmm0.k6() } else { zmm0.k7() }, old, zmm0)
    }

    fn zeros_above_half(of: &mut Compiler<'_>) -> Result<()> {
        of.zeros_above_half(zmm0)
    }

    fn operation(of: &mut Compiler<'_>, index: usize, inst: &Inst, operation: Operation) -> Result<()> {
        of.compute(index, inst, operation)
    }

    fn access(of: &mut Compiler<'_>, index: usize, inst: &Inst, write: bool) -> Result<()> {
        of.access(index, inst, write)
    }

    fn compare_addresses(
        of: &mut Compiler<'_>,
        op: &MemoryOp,
        together: Together,
        unless: CodeLabel,
    ) -> Result<()> {
        of.compare_addresses(op, together, unless)
    }

    fn addresses(of: &mut Compiler<'_>, number: u32, miss: CodeLabel) -> Result<()> {
        of.addresses(number, miss)
    }

    fn keep_addresses(of: &mut Compiler<'_>) -> Result<()> {
        of.keep_addresses()
    }

    fn load_sixteen(of: &mut Compiler<'_>, rows: &[Option<u32>], transposed: bool) -> Result<()> {
        of.load_sixteen(rows, transposed)
    }

    fn note(of: &mut Compiler<'_>, noted: &Noted<'_>, miss: CodeLabel) -> Result<()> {
        of.note_shared(noted, miss)
    }

    fn keep(of: &mut Compiler<'_>, ascending: bool) -> Result<()> {
        if ascending { Ok(()) } else { of.keep_addresses() }
    }

    fn restore(of: &mut Compiler<'_>, ascending: bool) -> Result<()> {
        if ascending { Ok(()) } else { of.restore_addresses() }
    }

    fn noting(of: &mut Compiler<'_>) -> Result<()> {
        of.noting()
    }
}
