//! Arithmetic on `.f16` and `.bf16`, on their bits.
//!
//! An operation is computed in a wider format of the host and narrowed. Where that would round twice, the first
//! rounding is *to odd*: the last bit of an inexact result is set to 1, which marks it as lying between two values,
//! so the second rounding is correct (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
//!
//! NaN is always the canonical one, `0x7fff` in both formats, except for `cvt` from double precision.

use super::exact::Format;
use super::float::saturate;

/// The bits of the NaN that operations of both formats return.
pub const NAN_HALF: u16 = Format::F16.nan_bits() as u16;

/// Replaces a subnormal `.f16` by the zero of its sign.
#[inline(always)]
pub fn flush_f16(bits: u16) -> u16 {
    if bits & 0x7c00 == 0 { bits & 0x8000 } else { bits }
}

/// `cvt.f32.f16`. NaN becomes the canonical one.
#[inline(always)]
pub fn f16_to_f32(bits: u16) -> f32 {
    const SCALE: f32 = 1.0 / (1 << 24) as f32;
    let (bits, sign) = (u32::from(bits), (u32::from(bits) & 0x8000) << 16);
    let magnitude = bits & 0x7fff;
    let normal = (magnitude << 13) + (112 << 23);
    let subnormal = (magnitude as i32 as f32 * SCALE).to_bits();
    let result = if magnitude < 0x0400 { subnormal } else { normal };
    let result = if magnitude >= 0x7c00 { 0x7f80_0000 } else { result };
    let result = result | sign;
    f32::from_bits(if magnitude > 0x7c00 { 0x7fff_ffff } else { result })
}

/// `cvt.rn.f16.f32`. NaN becomes the canonical one.
#[inline(always)]
pub fn f32_to_f16(x: f32) -> u16 {
    let bits = x.to_bits();
    let (magnitude, sign) = (bits & 0x7fff_ffff, (bits >> 16) & 0x8000);
    // Half of the last place, less one if the number is even; a carry goes into the exponent.
    let nearest = magnitude.wrapping_add(0xfff + ((magnitude >> 13) & 1));
    let normal = nearest.wrapping_sub(112 << 23) >> 13;
    // The last place of 0.5 is the last place of an `.f16` subnormal: the sum rounds for us.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let result = if magnitude < 0x3880_0000 { subnormal } else { normal };
    // 65520 and more round to infinity.
    let result = if magnitude >= 0x477f_f000 { 0x7c00 } else { result };
    (if magnitude > 0x7f80_0000 { NAN_HALF.into() } else { result | sign }) as u16
}

/// `cvt.rn.satfinite.f16.f32`: values that are too large become the largest finite number of their sign.
#[inline(always)]
pub fn f32_to_f16_finite(x: f32) -> u16 {
    let half = f32_to_f16(x);
    half - u16::from(half & 0x7fff == 0x7c00)
}

/// `cvt.f32.bf16`. NaN becomes the canonical one.
#[inline(always)]
pub fn bf16_to_f32(bits: u16) -> f32 {
    let wide = u32::from(bits) << 16;
    f32::from_bits(if wide & 0x7fff_ffff > 0x7f80_0000 { 0x7fff_ffff } else { wide })
}

/// `cvt.rn.bf16.f32`. NaN becomes the canonical one.
#[inline(always)]
pub fn f32_to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    let nearest = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    (if x.is_nan() { NAN_HALF.into() } else { nearest }) as u16
}

/// `cvt.rn.satfinite.bf16.f32`.
#[inline(always)]
pub fn f32_to_bf16_finite(x: f32) -> u16 {
    let half = f32_to_bf16(x);
    half - u16::from(half & 0x7fff == 0x7f80)
}

/// `x` rounded to `.f32`: exact, or the one of its two neighbours whose last bit is 1.
#[inline(always)]
pub fn f64_to_f32_odd(x: f64) -> f32 {
    let near = x as f32;
    let bits = near.to_bits();
    let back = f64::from(near);
    // An even result that is not exact: one step to the other side of `x`.
    let outside = back.abs() > x.abs();
    let inexact = back != x && !x.is_nan();
    let step = if outside { u32::MAX } else { 1 };
    f32::from_bits(if inexact && bits & 1 == 0 { bits.wrapping_add(step) } else { bits })
}

/// `a + b`, exact or rounded to the one of its two neighbours whose last bit is 1.
macro_rules! sum_to_odd {
    ($name:ident, $float:ty, $bits:ty) => {
        #[inline(always)]
        fn $name(a: $float, b: $float) -> $float {
            let sum = a + b;
            let b_part = sum - a;
            // What the rounding dropped, exactly (Knuth's two-sum); NaN where the sum is not finite.
            let error = (a - (sum - b_part)) + (b - b_part);
            let bits = sum.to_bits();
            let outside = (error > 0.0) != (sum > 0.0);
            let inexact = error.abs() > 0.0;
            let step = if outside { <$bits>::MAX } else { 1 };
            <$float>::from_bits(if inexact && bits & 1 == 0 { bits.wrapping_add(step) } else { bits })
        }
    };
}

sum_to_odd!(sum_to_odd_f32, f32, u32);
sum_to_odd!(sum_to_odd_f64, f64, u64);

/// The nearest `.f16`. NaN becomes the canonical one.
#[inline(always)]
pub fn f64_to_f16(x: f64) -> u16 {
    f32_to_f16(f64_to_f32_odd(x))
}

/// The nearest `.bf16`. NaN becomes the canonical one.
#[inline(always)]
pub fn f64_to_bf16(x: f64) -> u16 {
    f32_to_bf16(f64_to_f32_odd(x))
}

/// `cvt.rn.f16.f64`: a NaN is made quiet, and keeps its sign and the upper bits of its payload.
#[inline(always)]
pub fn cvt_f64_to_f16(x: f64) -> u16 {
    if x.is_nan() { narrowed_nan(x, 0x7e00, 10) } else { f64_to_f16(x) }
}

/// `cvt.rn.bf16.f64`: a NaN is made quiet, and keeps its sign and the upper bits of its payload.
#[inline(always)]
pub fn cvt_f64_to_bf16(x: f64) -> u16 {
    if x.is_nan() { narrowed_nan(x, 0x7fc0, 7) } else { f64_to_bf16(x) }
}

/// The sign of a NaN and the upper bits of its fraction, in a format whose first quiet NaN is `quiet`.
#[inline(always)]
fn narrowed_nan(x: f64, quiet: u16, fraction_bits: u32) -> u16 {
    let bits = x.to_bits();
    let fraction = (bits & ((1 << 52) - 1)) >> (52 - fraction_bits);
    (bits >> 48) as u16 & 0x8000 | quiet | fraction as u16
}

/// A parameter `LIMIT`: the result is unchanged.
pub const PLAIN: u8 = 0;
/// A parameter `LIMIT`: the result is limited to `[0, 1]`, and NaN becomes plus zero (`.sat`).
pub const SAT: u8 = 1;
/// A parameter `LIMIT`: the result is limited from below by zero, and NaN stays (`.relu`).
pub const RELU: u8 = 2;

#[inline(always)]
fn limited<const LIMIT: u8>(x: f32) -> f32 {
    match LIMIT {
        SAT => saturate(x),
        // A NaN fails the comparison, and stays.
        RELU => {
            if x <= 0.0 {
                0.0
            } else {
                x
            }
        }
        _ => x,
    }
}

#[inline(always)]
fn read_f16<const FTZ: bool>(bits: u16) -> f32 {
    f16_to_f32(if FTZ { flush_f16(bits) } else { bits })
}

#[inline(always)]
fn write_f16<const FTZ: bool, const LIMIT: u8>(x: f32) -> u16 {
    let x = limited::<LIMIT>(x);
    let bits = f32_to_f16(x);
    // The smallest normal number less half of its neighbours' distance, if exponents went on below it: from there on
    // the result is rounded to that number. What is rounded to it below only is flushed.
    const NORMAL: f32 = (0.25 - 1.0 / (1 << 14) as f32) / (1 << 12) as f32;
    if FTZ && x.abs() < NORMAL { bits & 0x8000 } else { bits }
}

/// `add.f16`. A sum of two halves in `.f32` is exact or rounds the same: 24 bits are 2·11 + 2.
#[inline(always)]
pub fn add_f16<const FTZ: bool, const LIMIT: u8>(a: u16, b: u16) -> u16 {
    write_f16::<FTZ, LIMIT>(read_f16::<FTZ>(a) + read_f16::<FTZ>(b))
}

/// `sub.f16`.
#[inline(always)]
pub fn sub_f16<const FTZ: bool, const LIMIT: u8>(a: u16, b: u16) -> u16 {
    write_f16::<FTZ, LIMIT>(read_f16::<FTZ>(a) - read_f16::<FTZ>(b))
}

/// `mul.f16`. The product in `.f32` is exact.
#[inline(always)]
pub fn mul_f16<const FTZ: bool, const LIMIT: u8>(a: u16, b: u16) -> u16 {
    write_f16::<FTZ, LIMIT>(read_f16::<FTZ>(a) * read_f16::<FTZ>(b))
}

/// `fma.f16`.
#[inline(always)]
pub fn fma_f16<const FTZ: bool, const LIMIT: u8>(a: u16, b: u16, c: u16) -> u16 {
    let product = read_f16::<FTZ>(a) * read_f16::<FTZ>(b);
    write_f16::<FTZ, LIMIT>(sum_to_odd_f32(product, read_f16::<FTZ>(c)))
}

/// `add.bf16`.
#[inline(always)]
pub fn add_bf16<const LIMIT: u8>(a: u16, b: u16) -> u16 {
    f32_to_bf16(limited::<LIMIT>(bf16_to_f32(a) + bf16_to_f32(b)))
}

/// `sub.bf16`.
#[inline(always)]
pub fn sub_bf16<const LIMIT: u8>(a: u16, b: u16) -> u16 {
    f32_to_bf16(limited::<LIMIT>(bf16_to_f32(a) - bf16_to_f32(b)))
}

/// `mul.bf16`. The product of small numbers needs the exponent range of `.f64` to be exact.
#[inline(always)]
pub fn mul_bf16<const LIMIT: u8>(a: u16, b: u16) -> u16 {
    let product = f64::from(bf16_to_f32(a)) * f64::from(bf16_to_f32(b));
    f32_to_bf16(limited::<LIMIT>(f64_to_f32_odd(product)))
}

/// `fma.bf16`.
#[inline(always)]
pub fn fma_bf16<const LIMIT: u8>(a: u16, b: u16, c: u16) -> u16 {
    let product = f64::from(bf16_to_f32(a)) * f64::from(bf16_to_f32(b));
    let sum = sum_to_odd_f64(product, f64::from(bf16_to_f32(c)));
    f32_to_bf16(limited::<LIMIT>(f64_to_f32_odd(sum)))
}

/// `neg.f16`, without `.ftz`.
#[inline(always)]
pub fn neg_f16<const FTZ: bool>(a: u16) -> u16 {
    let a = if FTZ { flush_f16(a) } else { a };
    if a & 0x7fff > 0x7c00 { NAN_HALF } else { a ^ 0x8000 }
}

/// `abs.f16`.
#[inline(always)]
pub fn abs_f16<const FTZ: bool>(a: u16) -> u16 {
    let a = if FTZ { flush_f16(a) } else { a };
    if a & 0x7fff > 0x7c00 { NAN_HALF } else { a & 0x7fff }
}

/// `neg.bf16`.
#[inline(always)]
pub fn neg_bf16(a: u16) -> u16 {
    if a & 0x7fff > 0x7f80 { NAN_HALF } else { a ^ 0x8000 }
}

/// `abs.bf16`.
#[inline(always)]
pub fn abs_bf16(a: u16) -> u16 {
    if a & 0x7fff > 0x7f80 { NAN_HALF } else { a & 0x7fff }
}

/// Applies a function to both halves of words.
#[inline(always)]
pub fn both<const N: usize>(words: [u32; N], f: impl Fn([u16; N]) -> u16) -> u32 {
    let low = f(words.map(|word| word as u16));
    let high = f(words.map(|word| (word >> 16) as u16));
    u32::from(low) | u32::from(high) << 16
}
