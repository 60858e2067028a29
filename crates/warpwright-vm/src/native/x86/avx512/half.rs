//! Halves, which are computed in single precision.

use super::super::at;
use super::super::routine::multiply;
use super::{Compiler, Frame, Result};
use crate::machine::Inst;
use crate::native::Arithmetic;
use crate::op::matrix::Product;
use iced_x86::code_asm::*;
use std::mem::offset_of;

/// How the halves of a strip are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Halves {
    /// The low ones of sixteen words.
    Low,
    /// Both of the first or of the last eight words.
    Eight(u32),
}

impl Compiler<'_> {
    /// A product, by the routine that the handler has for it, too; by the interpreter where that has to be computed otherwise.
    /// Registers hold nothing behind the call.
    pub(super) fn multiply_fragments(&mut self, index: usize, inst: &Inst, bf16: bool) -> Result<()> {
        let miss = self.miss(index, inst);
        let product: *const Product = &self.code.matrix.products[inst.x as usize];
        let routine = if bf16 { multiply::<true> } else { multiply::<false> };
        let a = &mut self.a;
        a.mov(rdi, rbx)?;
        a.mov(rsi, product.addr() as u64)?;
        a.mov(rax, routine as *const () as u64)?;
        // The stack is aligned to sixteen bytes at a call.
        a.sub(rsp, 8)?;
        a.call(rax)?;
        a.add(rsp, 8)?;
        a.test(eax, eax)?;
        a.je(miss)?;
        self.held.clear();
        Ok(())
    }

    pub(super) fn halves(&mut self, inst: &Inst, arithmetic: Arithmetic, packed: bool) -> Result<()> {
        for strip in 0..2 {
            if packed {
                self.half(inst, arithmetic, strip, Halves::Eight(0), (ymm20, k2))?;
                self.half(inst, arithmetic, strip, Halves::Eight(1), (ymm21, k3))?;
                self.a.vinserti64x4(zmm0, zmm20, ymm21, 1)?;
                self.a.kunpckwd(k1, k3, k2)?;
                self.a.vpbroadcastw(zmm0.k1(), word_ptr(at(offset_of!(Frame, nan_half))))?;
            } else {
                self.half(inst, arithmetic, strip, Halves::Low, (ymm20, k1))?;
                self.a.vpmovzxwd(zmm0, ymm20)?;
                self.a.vpbroadcastd(zmm0.k1(), dword_ptr(at(offset_of!(Frame, nan_half))))?;
            }
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }

    /// A register = sixteen halves of the result, and a mask: which of them are NaNs.
    fn half(
        &mut self,
        inst: &Inst,
        arithmetic: Arithmetic,
        strip: i32,
        part: Halves,
        (into, nans): (AsmRegisterYmm, AsmRegisterK),
    ) -> Result<()> {
        self.widen(zmm1, ymm1, inst.a, strip, part)?;
        self.widen(zmm2, ymm2, inst.b, strip, part)?;
        match arithmetic {
            Arithmetic::Add => self.a.vaddps(zmm4, zmm1, zmm2)?,
            Arithmetic::Sub => self.a.vsubps(zmm4, zmm1, zmm2)?,
            Arithmetic::Mul => self.a.vmulps(zmm4, zmm1, zmm2)?,
            Arithmetic::MulAdd => {
                // Of the numbers below and above, the odd one: it is the same where the sum is exact. Then the second
                // rounding is right.
                self.widen(zmm3, ymm3, inst.c, strip, part)?;
                self.a.vmovdqa64(zmm4, zmm1)?;
                self.a.vfmadd213ps(zmm4, zmm2, zmm3.rd_sae())?;
                self.a.vfmadd213ps(zmm1, zmm2, zmm3.ru_sae())?;
                self.a.vptestmd(k1, zmm4, dword_bcst(at(offset_of!(Frame, first))))?;
                self.a.vpblendmd(zmm4.k1(), zmm1, zmm4)?;
            }
        }
        self.a.vcmpps(nans, zmm4, zmm4, 3)?;
        self.a.vcvtps2ph(into, zmm4, 0)
    }

    /// Halves of a strip in single precision, in a register whose lower half has another name.
    fn widen(
        &mut self,
        into: AsmRegisterZmm,
        low: AsmRegisterYmm,
        row: u32,
        strip: i32,
        part: Halves,
    ) -> Result<()> {
        let words = self.raw(false, row, strip)?;
        match part {
            Halves::Low => self.a.vpmovdw(low, words)?,
            Halves::Eight(eight) => self.a.vextracti64x4(low, words, eight)?,
        }
        self.a.vcvtph2ps(into, low)
    }

    /// A register = the nearest `bf16` of numbers that are in another one, with zeros above.
    pub(super) fn bf16_of(&mut self, into: AsmRegisterZmm, a: AsmRegisterZmm) -> Result<()> {
        let nan = at(offset_of!(Frame, nan_half));
        self.a.vcmpps(k1, a, a, 3)?;
        // Half of the last place, less one if the number is even.
        self.a.vpsrld(into, a, 16)?;
        self.a.vpandd(into, into, dword_bcst(at(offset_of!(Frame, first))))?;
        self.a.vpaddd(into, into, a)?;
        self.a.vpaddd(into, into, dword_bcst(nan))?;
        self.a.vpsrld(into, into, 16)?;
        self.a.vpbroadcastd(into.k1(), dword_ptr(nan))
    }

    fn f16_of(&mut self, into: AsmRegisterZmm, a: AsmRegisterZmm) -> Result<()> {
        self.a.vcmpps(k1, a, a, 3)?;
        self.a.vcvtps2ph(ymm6, a, 0)?;
        self.a.vpmovzxwd(into, ymm6)?;
        self.a.vpbroadcastd(into.k1(), dword_ptr(at(offset_of!(Frame, nan_half))))
    }

    pub(super) fn pack_floats(&mut self, inst: &Inst, bf16: bool) -> Result<()> {
        for strip in 0..2 {
            for (row, into) in [(inst.a, zmm1), (inst.b, zmm0)] {
                let value = self.raw(false, row, strip)?;
                if bf16 { self.bf16_of(into, value)? } else { self.f16_of(into, value)? }
            }
            self.a.vpslld(zmm1, zmm1, 16)?;
            self.a.vpord(zmm0, zmm0, zmm1)?;
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }
}
