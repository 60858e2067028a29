//! Arithmetic in single precision.

use super::super::at;
use super::{Compiler, Frame, Result};
use crate::machine::Inst;
use crate::native::operation::Modifiers;
use crate::native::{Arithmetic, Lane};
use crate::num::exact::Direction;
use iced_x86::code_asm::*;
use std::mem::offset_of;

impl Compiler<'_> {
    /// A strip of a row of `f32`; `ftz`: without subnormal numbers, in another register.
    pub(super) fn float(
        &mut self,
        other: AsmRegisterZmm,
        row: u32,
        strip: i32,
        ftz: bool,
    ) -> Result<AsmRegisterZmm> {
        let raw = self.raw(false, row, strip)?;
        if !ftz {
            return Ok(raw);
        }
        self.a.vmovdqa64(other, raw)?;
        self.flush(other)?;
        Ok(other)
    }

    /// Subnormal numbers become zeros of their sign.
    pub(super) fn flush(&mut self, register: AsmRegisterZmm) -> Result<()> {
        self.a.vptestnmd(k1, register, constant!(exponent))?;
        self.a.vpandd(register.k1(), register, constant!(sign))
    }

    pub(super) fn floats(&mut self, inst: &Inst, arithmetic: Arithmetic, modifiers: Modifiers) -> Result<()> {
        let Modifiers { direction, ftz, sat } = modifiers;
        let round = |register| rounded(register, direction);
        for strip in 0..2 {
            let x = self.float(zmm1, inst.a, strip, ftz)?;
            let y = self.float(zmm2, inst.b, strip, ftz)?;
            match arithmetic {
                Arithmetic::Add => self.a.vaddps(zmm0, x, round(y))?,
                Arithmetic::Sub => self.a.vsubps(zmm0, x, round(y))?,
                Arithmetic::Mul => self.a.vmulps(zmm0, x, round(y))?,
                Arithmetic::MulAdd => {
                    let z = self.float(zmm3, inst.c, strip, ftz)?;
                    self.a.vmovdqa64(zmm0, x)?;
                    self.a.vfmadd213ps(zmm0, y, round(z))?;
                    if ftz {
                        // What it would be, and were it smaller than a normal number, 2^64 times as large.
                        self.a.vmulps(zmm4, x, constant!(larger))?;
                        self.a.vmulps(zmm5, y, constant!(larger))?;
                        self.a.vmulps(zmm6, z, constant!(larger))?;
                        self.a.vmulps(zmm6, zmm6, constant!(larger))?;
                        self.a.vfmadd213ps(zmm4, zmm5, zmm6)?;
                        self.flush_by(zmm4)?;
                    }
                }
            }
            match (arithmetic, ftz) {
                (Arithmetic::Mul, true) => {
                    self.a.vmulps(zmm4, x, constant!(larger))?;
                    self.a.vmulps(zmm5, y, constant!(larger))?;
                    self.a.vmulps(zmm4, zmm4, zmm5)?;
                    self.flush_by(zmm4)?;
                }
                (Arithmetic::Add | Arithmetic::Sub, true) => self.flush(zmm0)?,
                _ => {}
            }
            match sat {
                true => self.saturate()?,
                false => self.canonical()?,
            }
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }

    /// `zmm0` becomes zero, with its sign, and subnormal numbers that it has are flushed, where the same 2^64 times as large
    /// says that it is too small for a normal number before it is rounded.
    fn flush_by(&mut self, larger: AsmRegisterZmm) -> Result<()> {
        self.a.vpandd(larger, larger, constant!(magnitude))?;
        self.a.vcmpps(k1, larger, constant!(tiny), 0x11)?;
        self.a.vpandd(zmm0.k1(), zmm0, constant!(sign))?;
        self.flush(zmm0)
    }

    /// `zmm0` is limited to 0 and 1; a NaN becomes 0.
    pub(super) fn saturate(&mut self) -> Result<()> {
        self.a.vpxord(zmm4, zmm4, zmm4)?;
        self.a.vmaxps(zmm0, zmm0, zmm4)?;
        self.a.vminps(zmm0, zmm0, constant!(one))
    }

    /// Every NaN of `zmm0` becomes the same one.
    pub(super) fn canonical(&mut self) -> Result<()> {
        self.a.vcmpps(k1, zmm0, zmm0, 3)?;
        self.a.vpbroadcastd(zmm0.k1(), dword_ptr(at(offset_of!(Frame, nan))))
    }

    pub(super) fn extremum(&mut self, inst: &Inst, max: bool, nan: bool) -> Result<()> {
        for strip in 0..2 {
            let x = self.raw(false, inst.a, strip)?;
            let y = self.raw(false, inst.b, strip)?;
            // Minus zero is less than plus zero; signalling NaNs are put right below.
            self.a.vrangeps(zmm0, x, y, if max { 5 } else { 4 })?;
            self.a.vcmpps(k1, x, x, 3)?;
            self.a.vcmpps(k2, y, y, 3)?;
            if nan {
                self.a.korw(k1, k1, k2)?;
                self.a.vpbroadcastd(zmm0.k1(), dword_ptr(at(offset_of!(Frame, nan))))?;
            } else {
                self.a.vmovdqa32(zmm0.k1(), y)?;
                self.a.vmovdqa32(zmm0.k2(), x)?;
                self.canonical()?;
            }
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }

    pub(super) fn integer_of(&mut self, inst: &Inst, lane: Lane, direction: Direction) -> Result<()> {
        for strip in 0..2 {
            let a = self.raw(false, inst.a, strip)?;
            let from = rounded(a, direction);
            if lane == Lane::S32 {
                // What is too small becomes the smallest.
                self.a.vcvtps2dq(zmm0, from)?;
                self.a.vcmpps(k1, a, constant!(too_large), 0x1d)?;
                self.a.vpbroadcastd(zmm0.k1(), dword_ptr(at(offset_of!(Frame, magnitude))))?;
                self.a.vcmpps(k1, a, a, 7)?;
            } else {
                // What is too large becomes the largest.
                self.a.vcvtps2udq(zmm0, from)?;
                self.a.vpxord(zmm4, zmm4, zmm4)?;
                self.a.vcmpps(k1, a, zmm4, 0x1d)?;
            }
            self.a.vmovdqa32(zmm0.k1().z(), zmm0)?;
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }
}

/// An operand of an instruction whose result is rounded in a direction.
pub(super) fn rounded(register: AsmRegisterZmm, direction: Direction) -> AsmRegisterZmm {
    match direction {
        Direction::Zero => register.rz_sae(),
        Direction::Down => register.rd_sae(),
        Direction::Up => register.ru_sae(),
        _ => register.rn_sae(),
    }
}
