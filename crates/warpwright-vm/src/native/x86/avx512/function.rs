//! Functions that are computed in double precision: step by step what [`approx`](crate::num::approx) does.

use super::super::at;
use super::{Compiler, Frame, Result};
use crate::machine::Inst;
use iced_x86::code_asm::*;
use std::mem::offset_of;

/// A constant of the frame, in all lanes.
macro_rules! wide {
    ($name:ident) => {
        qword_bcst(at(offset_of!(Frame, $name)))
    };
}

impl Compiler<'_> {
    /// `compute` makes `zmm4` of `zmm1`, eight lanes.
    pub(super) fn function(
        &mut self,
        inst: &Inst,
        ftz: bool,
        compute: impl Fn(&mut Self) -> Result<()>,
    ) -> Result<()> {
        for strip in 0..2 {
            let value = self.float(zmm2, inst.a, strip, ftz)?;
            self.a.vextracti64x4(ymm3, value, 1)?;
            self.a.vextracti64x4(ymm1, value, 0)?;
            self.a.vcvtps2pd(zmm1, ymm1)?;
            compute(self)?;
            self.a.vcvtpd2ps(ymm20, zmm4)?;
            self.a.vcvtps2pd(zmm1, ymm3)?;
            compute(self)?;
            self.a.vcvtpd2ps(ymm4, zmm4)?;
            self.a.vinsertf64x4(zmm0, zmm20, ymm4, 1)?;
            self.canonical()?;
            if ftz {
                self.flush(zmm0)?;
            }
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }

    pub(super) fn exponential(&mut self) -> Result<()> {
        let coefficient =
            |at_power: usize| qword_bcst(at(offset_of!(Frame, exponential) + size_of::<f64>() * at_power));
        // A NaN, the second operand, stays.
        for (bound, is_least) in
            [(offset_of!(Frame, least_exponent), true), (offset_of!(Frame, most_exponent), false)]
        {
            self.a.vbroadcastsd(zmm4, qword_ptr(at(bound)))?;
            match is_least {
                true => self.a.vmaxpd(zmm1, zmm4, zmm1)?,
                false => self.a.vminpd(zmm1, zmm4, zmm1)?,
            }
        }
        self.a.vaddpd(zmm5, zmm1, wide!(shifter))?;
        self.a.vsubpd(zmm6, zmm5, wide!(shifter))?;
        self.a.vsubpd(zmm1, zmm1, zmm6)?;
        self.a.vbroadcastsd(zmm4, qword_ptr(at(offset_of!(Frame, exponential) + 12 * size_of::<f64>())))?;
        for power in (0..12).rev() {
            self.a.vmulpd(zmm4, zmm4, zmm1)?;
            self.a.vaddpd(zmm4, zmm4, coefficient(power))?;
        }
        self.a.vpsllq(zmm5, zmm5, 52)?;
        self.a.vpaddq(zmm4, zmm4, zmm5)
    }

    pub(super) fn root_reciprocal(&mut self) -> Result<()> {
        self.a.vsqrtpd(zmm5, zmm1)?;
        self.a.vbroadcastsd(zmm4, qword_ptr(at(offset_of!(Frame, one_wide))))?;
        self.a.vdivpd(zmm4, zmm4, zmm5)
    }
}
