//! Arithmetic in single precision.

use super::super::{Vectors, at};
use super::{Avx2, Compiler, Frame, Result};
use crate::machine::Inst;
use crate::native::operation::Modifiers;
use crate::native::{Arithmetic, Lane};
use crate::num::exact::Direction;
use iced_x86::code_asm::*;
use std::mem::offset_of;

impl Compiler<'_> {
    /// A strip of a row of `f32`; `ftz`: without subnormal numbers, in another register.
    fn float(&mut self, other: AsmRegisterYmm, row: u32, strip: i32, ftz: bool) -> Result<AsmRegisterYmm> {
        let raw = self.raw(false, row, strip)?;
        if !ftz {
            return Ok(raw);
        }
        self.a.vmovdqa(other, raw)?;
        self.flush(other, ymm0)?;
        Ok(other)
    }

    /// Subnormal numbers become zeros of their sign.
    fn flush(&mut self, register: AsmRegisterYmm, spare: AsmRegisterYmm) -> Result<()> {
        self.a.vpand(spare, register, constant!(exponent))?;
        self.a.vpcmpeqd(spare, spare, constant!(zero))?;
        self.keep_signs(register, spare)
    }

    /// Of the elements of a register that are named, the signs are left.
    fn keep_signs(&mut self, register: AsmRegisterYmm, named: AsmRegisterYmm) -> Result<()> {
        self.a.vpand(named, named, constant!(magnitude))?;
        self.a.vpandn(register, named, register)
    }

    pub(super) fn floats(&mut self, inst: &Inst, arithmetic: Arithmetic, modifiers: Modifiers) -> Result<()> {
        let Modifiers { direction, ftz, sat } = modifiers;
        self.round_from_here(direction)?;
        for strip in Avx2::strips(false) {
            let x = self.float(ymm1, inst.a, strip, ftz)?;
            let y = self.float(ymm2, inst.b, strip, ftz)?;
            match arithmetic {
                Arithmetic::Add => self.a.vaddps(ymm0, x, y)?,
                Arithmetic::Sub => self.a.vsubps(ymm0, x, y)?,
                Arithmetic::Mul => self.a.vmulps(ymm0, x, y)?,
                Arithmetic::MulAdd => {
                    let z = self.float(ymm3, inst.c, strip, ftz)?;
                    self.a.vmovdqa(ymm0, x)?;
                    self.a.vfmadd213ps(ymm0, y, z)?;
                }
            }
            if ftz {
                self.flush_result(arithmetic)?;
            }
            match sat {
                true => self.saturate()?,
                false => self.canonical()?,
            }
            self.put32(inst.d, strip)?;
        }
        self.round_to_nearest_again(direction)
    }

    /// Instructions round as the thread does: in a direction from here on.
    pub(super) fn round_from_here(&mut self, direction: Direction) -> Result<()> {
        if direction == Direction::Nearest {
            return Ok(());
        }
        self.a.vldmxcsr(dword_ptr(at(offset_of!(Frame, modes)) + 4 * rounding(direction)))
    }

    /// As before they did so.
    pub(super) fn round_to_nearest_again(&mut self, direction: Direction) -> Result<()> {
        if direction == Direction::Nearest {
            return Ok(());
        }
        self.a.vldmxcsr(dword_ptr(at(offset_of!(Frame, modes))))
    }

    /// `ymm0`, which is made of `ymm1` to `ymm3`, becomes zero of its sign where it was too small for a normal number before
    /// it was rounded.
    fn flush_result(&mut self, arithmetic: Arithmetic) -> Result<()> {
        // The same is computed 2^64 times as large.
        let a = &mut self.a;
        match arithmetic {
            // Sums that are so small are exact.
            Arithmetic::Add | Arithmetic::Sub => return self.flush(ymm0, ymm1),
            Arithmetic::Mul => {
                a.vmulps(ymm1, ymm1, constant!(larger))?;
                a.vmulps(ymm2, ymm2, constant!(larger))?;
                a.vmulps(ymm1, ymm1, ymm2)?;
            }
            Arithmetic::MulAdd => {
                for register in [ymm1, ymm2, ymm3, ymm3] {
                    a.vmulps(register, register, constant!(larger))?;
                }
                a.vfmadd213ps(ymm1, ymm2, ymm3)?;
            }
        }
        a.vpand(ymm1, ymm1, constant!(magnitude))?;
        a.vcmpps(ymm1, ymm1, constant!(tiny), 0x11)?;
        self.keep_signs(ymm0, ymm1)?;
        self.flush(ymm0, ymm1)
    }

    /// `ymm0` is limited to 0 and 1; a NaN becomes 0.
    pub(super) fn saturate(&mut self) -> Result<()> {
        self.a.vmaxps(ymm0, ymm0, constant!(zero))?;
        self.a.vminps(ymm0, ymm0, constant!(one))
    }

    /// Every NaN of `ymm0` becomes the same one.
    pub(super) fn canonical(&mut self) -> Result<()> {
        self.a.vcmpps(ymm1, ymm0, ymm0, 3)?;
        self.a.vblendvps(ymm0, ymm0, constant!(nan), ymm1)
    }

    pub(super) fn extremum(&mut self, inst: &Inst, max: bool, nan: bool) -> Result<()> {
        for strip in Avx2::strips(false) {
            let x = self.raw(false, inst.a, strip)?;
            let y = self.raw(false, inst.b, strip)?;
            // Of zeros, the instruction takes the second one: both orders tell whether minus zero is there.
            if max {
                self.a.vmaxps(ymm0, x, y)?;
                self.a.vmaxps(ymm1, y, x)?;
                self.a.vpand(ymm0, ymm0, ymm1)?;
            } else {
                self.a.vminps(ymm0, x, y)?;
                self.a.vminps(ymm1, y, x)?;
                self.a.vpor(ymm0, ymm0, ymm1)?;
            }
            if nan {
                self.a.vcmpps(ymm1, x, y, 3)?;
                self.a.vblendvps(ymm0, ymm0, constant!(nan), ymm1)?;
            } else {
                for (is_nan, other) in [(x, y), (y, x)] {
                    self.a.vcmpps(ymm1, is_nan, is_nan, 3)?;
                    self.a.vblendvps(ymm0, ymm0, other, ymm1)?;
                }
                self.canonical()?;
            }
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }

    pub(super) fn integer_of(&mut self, inst: &Inst, lane: Lane, direction: Direction) -> Result<()> {
        self.unary(inst, lane, |of, number| {
            let a = &mut of.a;
            a.vroundps(ymm0, number, rounding(direction))?;
            if lane == Lane::S32 {
                // What is too small becomes the smallest, and what is too large the complement of that.
                a.vcmpps(ymm1, number, constant!(too_large), 0x1d)?;
                a.vcmpps(ymm2, number, number, 7)?;
                a.vcvttps2dq(ymm0, ymm0)?;
                a.vpxor(ymm0, ymm0, ymm1)?;
                return a.vpand(ymm0, ymm0, ymm2);
            }
            // A NaN becomes the second operand. From 2^31 on, that is subtracted, and added to the result again; there
            // what is too large becomes 2^31, too.
            a.vmaxps(ymm0, ymm0, constant!(zero))?;
            a.vcmpps(ymm1, ymm0, constant!(too_large), 0x1d)?;
            a.vpand(ymm2, ymm1, constant!(too_large))?;
            a.vsubps(ymm0, ymm0, ymm2)?;
            a.vpslld(ymm1, ymm1, 31)?;
            a.vcmpps(ymm2, ymm0, constant!(too_large), 0x1d)?;
            a.vcvttps2dq(ymm0, ymm0)?;
            a.vpxor(ymm0, ymm0, ymm1)?;
            a.vpor(ymm0, ymm0, ymm2)
        })
    }

    pub(super) fn float_of(&mut self, inst: &Inst, lane: Lane) -> Result<()> {
        self.unary(inst, Lane::F32, |of, number| {
            if lane != Lane::U32 {
                let number = of.extended(ymm0, lane, number)?;
                return of.a.vcvtdq2ps(ymm0, number);
            }
            // The halves are exact, and the sum is rounded once.
            of.a.vpsrld(ymm0, number, 16)?;
            of.a.vpand(ymm1, number, constant!(half))?;
            of.a.vcvtdq2ps(ymm0, ymm0)?;
            of.a.vcvtdq2ps(ymm1, ymm1)?;
            of.a.vmovups(ymm2, constant!(half_word))?;
            of.a.vfmadd213ps(ymm0, ymm2, ymm1)
        })
    }
}

/// A direction, as the processor numbers them.
fn rounding(direction: Direction) -> u32 {
    match direction {
        Direction::Down => 1,
        Direction::Up => 2,
        Direction::Zero => 3,
        _ => 0,
    }
}
