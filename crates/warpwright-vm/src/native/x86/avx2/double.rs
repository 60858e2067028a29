//! Arithmetic in double precision. Of operands that are NaN, the processor returns the first one, made quiet. Where another
//! one is to be the result, it is put there.

use super::super::{Vectors, at, row32};
use super::{Avx2, Compiler, Frame, Result};
use crate::machine::Inst;
use crate::native::{Double, Lane};
use crate::num::exact::Direction;
use iced_x86::code_asm::*;
use std::mem::offset_of;

impl Compiler<'_> {
    pub(super) fn doubles(&mut self, inst: &Inst, double: Double, direction: Direction) -> Result<()> {
        self.round_from_here(direction)?;
        for strip in Avx2::strips(true) {
            let x = self.raw(true, inst.a, strip)?;
            let y = if double.operands() > 1 { self.raw(true, inst.b, strip)? } else { x };
            match double {
                // Of two NaNs, `b` is the result.
                Double::Add => self.a.vaddpd(ymm0, y, x)?,
                Double::Mul => self.a.vmulpd(ymm0, y, x)?,
                Double::Sub => {
                    self.a.vsubpd(ymm0, x, y)?;
                    self.take_nan(y)?;
                }
                Double::MulAdd => {
                    let z = self.raw(true, inst.c, strip)?;
                    let mut done = self.a.create_label();
                    self.a.vmovdqa(ymm0, x)?;
                    self.a.vfmadd213pd(ymm0, y, z)?;
                    self.a.vcmppd(ymm1, ymm0, ymm0, 3)?;
                    self.a.vptest(ymm1, ymm1)?;
                    self.a.jz(done)?;
                    for operand in [x, z, y] {
                        self.take_nan(operand)?;
                    }
                    self.a.set_label(&mut done)?;
                    self.a.zero_bytes()?;
                }
                Double::Div => self.a.vdivpd(ymm0, x, y)?,
                Double::Root => self.a.vsqrtpd(ymm0, x)?,
                Double::Reciprocal => {
                    self.a.vbroadcastsd(ymm0, qword_ptr(at(offset_of!(Frame, one_wide))))?;
                    self.a.vdivpd(ymm0, ymm0, x)?;
                }
                Double::Negate => {
                    self.a.vpxor(ymm0, x, constant!(sign_wide))?;
                    self.take_nan(x)?;
                }
                Double::Absolute => {
                    self.a.vpsllq(ymm0, x, 1)?;
                    self.a.vpsrlq(ymm0, ymm0, 1)?;
                    self.take_nan(x)?;
                }
            }
            self.put64(inst.d, strip)?;
        }
        self.round_to_nearest_again(direction)
    }

    /// `ymm0` becomes an operand, made quiet, where that is a NaN.
    fn take_nan(&mut self, operand: AsmRegisterYmm) -> Result<()> {
        self.a.vcmppd(ymm1, operand, operand, 3)?;
        self.a.vpor(ymm2, operand, constant!(quiet_wide))?;
        self.a.vblendvpd(ymm0, ymm0, ymm2, ymm1)
    }

    pub(super) fn double_of(&mut self, inst: &Inst, lane: Lane) -> Result<()> {
        for strip in Avx2::strips(true) {
            let words = xmmword_ptr(row32(inst.a, 16 * strip));
            match lane {
                Lane::F32 => self.a.vcvtps2pd(ymm0, words)?,
                _ => self.a.vcvtdq2pd(ymm0, words)?,
            }
            self.put64(inst.d, strip)?;
        }
        Ok(())
    }

    pub(super) fn single_of(&mut self, inst: &Inst) -> Result<()> {
        for strip in Avx2::strips(false) {
            for (part, into) in [(0, xmm1), (1, xmm2)] {
                let numbers = self.raw(true, inst.a, 2 * strip + part)?;
                self.a.vcvtpd2ps(into, numbers)?;
            }
            self.a.vinserti128(ymm0, ymm1, xmm2, 1)?;
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }
}
