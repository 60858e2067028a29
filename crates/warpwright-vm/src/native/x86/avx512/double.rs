//! Arithmetic in double precision. Of operands that are NaN, the processor returns the first one, made quiet. Where another
//! one is to be the result, it is put there.

use super::super::at;
use super::float::rounded;
use super::{Compiler, Frame, Result};
use crate::machine::Inst;
use crate::native::{Double, Lane};
use crate::num::exact::Direction;
use iced_x86::code_asm::*;
use std::mem::offset_of;

impl Compiler<'_> {
    pub(super) fn doubles(&mut self, inst: &Inst, double: Double, direction: Direction) -> Result<()> {
        let round = |register| rounded(register, direction);
        for strip in 0..4 {
            let x = self.raw(true, inst.a, strip)?;
            let y = if double.operands() > 1 { self.raw(true, inst.b, strip)? } else { x };
            match double {
                // Of two NaNs, `b` is the result.
                Double::Add => self.a.vaddpd(zmm0, y, round(x))?,
                Double::Mul => self.a.vmulpd(zmm0, y, round(x))?,
                Double::Sub => {
                    self.a.vsubpd(zmm0, x, round(y))?;
                    self.take_nan(y)?;
                }
                Double::MulAdd => {
                    let z = self.raw(true, inst.c, strip)?;
                    let mut done = self.a.create_label();
                    self.a.vmovdqa64(zmm0, x)?;
                    self.a.vfmadd213pd(zmm0, y, round(z))?;
                    self.a.vcmppd(k1, zmm0, zmm0, 3)?;
                    self.a.kortestb(k1, k1)?;
                    self.a.jz(done)?;
                    for operand in [x, z, y] {
                        self.take_nan(operand)?;
                    }
                    self.a.set_label(&mut done)?;
                    self.a.zero_bytes()?;
                }
                Double::Div => self.a.vdivpd(zmm0, x, round(y))?,
                Double::Root => self.a.vsqrtpd(zmm0, round(x))?,
                Double::Reciprocal => {
                    self.a.vbroadcastsd(zmm0, qword_ptr(at(offset_of!(Frame, one_wide))))?;
                    self.a.vdivpd(zmm0, zmm0, round(x))?;
                }
                Double::Negate => {
                    self.a.vpxorq(zmm0, x, qword_bcst(at(offset_of!(Frame, sign_wide))))?;
                    self.take_nan(x)?;
                }
                Double::Absolute => {
                    self.a.vpsllq(zmm0, x, 1)?;
                    self.a.vpsrlq(zmm0, zmm0, 1)?;
                    self.take_nan(x)?;
                }
            }
            self.put64(inst.d, strip)?;
        }
        Ok(())
    }

    /// `zmm0` becomes an operand, made quiet, where that is a NaN.
    fn take_nan(&mut self, operand: AsmRegisterZmm) -> Result<()> {
        self.a.vcmppd(k1, operand, operand, 3)?;
        self.a.vporq(zmm0.k1(), operand, qword_bcst(at(offset_of!(Frame, quiet_wide))))
    }

    pub(super) fn double_of(&mut self, inst: &Inst, lane: Lane) -> Result<()> {
        for strip in 0..4 {
            let words = self.raw(false, inst.a, strip / 2)?;
            self.a.vextracti64x4(ymm6, words, (strip % 2) as u32)?;
            match lane {
                Lane::F32 => self.a.vcvtps2pd(zmm0, ymm6)?,
                Lane::S32 => self.a.vcvtdq2pd(zmm0, ymm6)?,
                _ => self.a.vcvtudq2pd(zmm0, ymm6)?,
            }
            self.put64(inst.d, strip)?;
        }
        Ok(())
    }

    pub(super) fn single_of(&mut self, inst: &Inst) -> Result<()> {
        for strip in 0..2 {
            for (part, into) in [(0, ymm1), (1, ymm2)] {
                let numbers = self.raw(true, inst.a, 2 * strip + part)?;
                self.a.vcvtpd2ps(into, numbers)?;
            }
            self.a.vinserti64x4(zmm0, zmm1, ymm2, 1)?;
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }
}
