//! Minimum and maximum of floating-point numbers.
//!
//! Minus zero is less than plus zero. If one operand is NaN, the result is the other, or with `nan` (the modifier
//! `.NaN`) the canonical NaN. If both are, it is the canonical NaN, and in `.f64` the second, made quiet. With
//! `xorsign` (`.xorsign.abs`), magnitudes are compared, and the sign is the product of the operands' signs.

use super::exact::Format;
use super::float::{NAN_F32, flush, quiet};
use super::half::flush_f16;

/// A minimum or a maximum with its modifiers. If these are constants, unneeded code disappears by inlining.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extremum {
    /// Takes the larger instead of the smaller.
    pub max: bool,
    /// Replaces subnormal operands by zeros.
    pub ftz: bool,
    /// The result is NaN where either operand is, instead of where both are.
    pub nan: bool,
    /// Compares magnitudes, and gives the result the product of the signs.
    pub xorsign: bool,
    /// Compares magnitudes.
    pub abs: bool,
}

/// The choice between the bits of two numbers.
macro_rules! pick {
    ($name:ident, $bits:ty, $signed:ty) => {
        #[inline(always)]
        fn $name(self, a: $bits, b: $bits, infinity: $bits, nan: $bits) -> $bits {
            const SIGN: $bits = 1 << (<$bits>::BITS - 1);
            // In the order of values: the complement reverses the negative ones.
            let ordered = |bits: $bits| {
                let bits = bits as $signed;
                bits ^ (((bits >> (<$signed>::BITS - 1)) as $bits) >> 1) as $signed
            };
            let sign = (a ^ b) & SIGN;
            let (a_magnitude, b_magnitude) = (a & !SIGN, b & !SIGN);
            let (a_nan, b_nan) = (a_magnitude > infinity, b_magnitude > infinity);
            let magnitudes = self.xorsign || self.abs;
            let (a, b) = if magnitudes { (a_magnitude, b_magnitude) } else { (a, b) };
            let first = (ordered(a) < ordered(b)) != self.max;
            let number = if b_nan || (first && !a_nan) { a } else { b };
            let number = if self.xorsign { number | sign } else { number };
            let none = if self.nan { a_nan || b_nan } else { a_nan && b_nan };
            if none { nan } else { number }
        }
    };
}

impl Extremum {
    pick!(pick_16, u16, i16);
    pick!(pick_32, u32, i32);
    pick!(pick_64, u64, i64);

    /// Of `.f32`.
    #[inline(always)]
    pub fn f32(self, a: f32, b: f32) -> f32 {
        let (a, b) = if self.ftz { (flush(a), flush(b)) } else { (a, b) };
        f32::from_bits(self.pick_32(a.to_bits(), b.to_bits(), f32::INFINITY.to_bits(), NAN_F32))
    }

    /// Of `.f64`.
    #[inline(always)]
    pub fn f64(self, a: f64, b: f64) -> f64 {
        f64::from_bits(self.pick_64(a.to_bits(), b.to_bits(), f64::INFINITY.to_bits(), quiet(b).to_bits()))
    }

    /// Of `.f16`, on bits.
    #[inline(always)]
    pub fn f16(self, a: u16, b: u16) -> u16 {
        let (a, b) = if self.ftz { (flush_f16(a), flush_f16(b)) } else { (a, b) };
        self.pick_16(a, b, 0x7c00, Format::F16.nan_bits() as u16)
    }

    /// Of `.bf16`, on bits.
    #[inline(always)]
    pub fn bf16(self, a: u16, b: u16) -> u16 {
        self.pick_16(a, b, 0x7f80, Format::BF16.nan_bits() as u16)
    }
}
