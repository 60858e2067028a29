//! Minimum and maximum of floating-point numbers.
//!
//! Minus zero is less than plus zero. Of a number and a NaN the number is taken, or with `NAN` (the
//! modifier `.NaN`) the canonical NaN. With `XORSIGN` (`.xorsign.abs`) magnitudes are compared, and the
//! sign is the product of the operands' signs.

use super::exact::Format;
use super::float::{NAN_F32, NAN_F64, flush_if};
use super::half::flush_f16;

/// Bits of numbers in the order of their values: the sign's complement reverses the negative ones.
macro_rules! ordered {
    ($name:ident, $bits:ty, $signed:ty) => {
        #[inline(always)]
        fn $name(bits: $bits) -> $signed {
            let bits = bits as $signed;
            bits ^ (((bits >> (<$signed>::BITS - 1)) as $bits) >> 1) as $signed
        }
    };
}

ordered!(ordered_16, u16, i16);
ordered!(ordered_32, u32, i32);
ordered!(ordered_64, u64, i64);

/// `max` if `MAX`, else `min`, of the bits of two numbers.
macro_rules! extremum {
    ($name:ident, $bits:ty, $ordered:ident) => {
        #[inline(always)]
        fn $name<const MAX: bool, const NAN: bool, const XORSIGN: bool>(
            a: $bits,
            b: $bits,
            infinity: $bits,
            nan: $bits,
        ) -> $bits {
            const SIGN: $bits = 1 << (<$bits>::BITS - 1);
            let sign = (a ^ b) & SIGN;
            let (a_magnitude, b_magnitude) = (a & !SIGN, b & !SIGN);
            let (a_nan, b_nan) = (a_magnitude > infinity, b_magnitude > infinity);
            let (a, b) = if XORSIGN { (a_magnitude, b_magnitude) } else { (a, b) };
            let first = ($ordered(a) < $ordered(b)) != MAX;
            let number = if b_nan || (first && !a_nan) { a } else { b };
            let number = if XORSIGN { number | sign } else { number };
            let none = if NAN { a_nan || b_nan } else { a_nan && b_nan };
            if none { nan } else { number }
        }
    };
}

extremum!(pick_16, u16, ordered_16);
extremum!(pick_32, u32, ordered_32);
extremum!(pick_64, u64, ordered_64);

/// `min.f32` and `max.f32`.
#[inline(always)]
pub fn extremum_f32<const MAX: bool, const FTZ: bool, const NAN: bool, const XORSIGN: bool>(
    a: f32,
    b: f32,
) -> f32 {
    let (a, b) = (flush_if::<FTZ>(a).to_bits(), flush_if::<FTZ>(b).to_bits());
    f32::from_bits(pick_32::<MAX, NAN, XORSIGN>(a, b, f32::INFINITY.to_bits(), NAN_F32))
}

/// `min.f64` and `max.f64`.
#[inline(always)]
pub fn extremum_f64<const MAX: bool>(a: f64, b: f64) -> f64 {
    let infinity = f64::INFINITY.to_bits();
    f64::from_bits(pick_64::<MAX, false, false>(a.to_bits(), b.to_bits(), infinity, NAN_F64))
}

/// `min.f16` and `max.f16`, on bits.
#[inline(always)]
pub fn extremum_f16<const MAX: bool, const FTZ: bool, const NAN: bool, const XORSIGN: bool>(
    a: u16,
    b: u16,
) -> u16 {
    const INFINITY: u16 = 0x7c00;
    const CANONICAL: u16 = Format::F16.nan_bits() as u16;
    let (a, b) = if FTZ { (flush_f16(a), flush_f16(b)) } else { (a, b) };
    pick_16::<MAX, NAN, XORSIGN>(a, b, INFINITY, CANONICAL)
}

/// `min.bf16` and `max.bf16`, on bits.
#[inline(always)]
pub fn extremum_bf16<const MAX: bool, const NAN: bool, const XORSIGN: bool>(a: u16, b: u16) -> u16 {
    const INFINITY: u16 = 0x7f80;
    const CANONICAL: u16 = Format::BF16.nan_bits() as u16;
    pick_16::<MAX, NAN, XORSIGN>(a, b, INFINITY, CANONICAL)
}
