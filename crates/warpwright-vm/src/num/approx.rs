//! Functions that hardware approximates: `.approx` of `.f32`, and the coarse ones of `.f64`.
//!
//! They are computed in double precision and rounded, so their errors are well below those that the ISA states; a
//! program must not rely on more than the ISA. The polynomials are this crate's own, not those of the system library,
//! so results have the same bits on every host, and loops over lanes become vector code.

use super::float::{NAN_F32, canonical, flush_if};

/// The bounds of errors that the ISA states for the approximations of `.f32` and of halves: hardware stays within them,
/// and so do the functions of this module.
pub mod bound {
    /// `div.approx.f32`.
    pub const DIV: &str = "2 ulp where 2^-126 <= |b| <= 2^126";
    /// `div.full.f32`.
    pub const DIV_FULL: &str = "2 ulp";
    /// `rcp.approx.f32`.
    pub const RCP: &str = "1 ulp";
    /// `sqrt.approx.f32`.
    pub const SQRT: &str = "2^-23, relative";
    /// `rsqrt.approx.f32`.
    pub const RSQRT: &str = "2^-22.9, relative";
    /// `sin.approx.f32` and `cos.approx.f32`.
    pub const SIN: &str = "2^-20.5, absolute, in [-2 pi, 2 pi]";
    /// `lg2.approx.f32`.
    pub const LG2: &str = "2^-22: absolute in (0.5, 2), relative elsewhere";
    /// `ex2.approx.f32`.
    pub const EX2: &str = "2 ulp";
    /// `ex2.approx.f16`.
    pub const EX2_F16: &str = "2^-9.9, relative";
    /// `ex2.approx.ftz.bf16`.
    pub const EX2_BF16: &str = "2^-7, relative";
    /// `tanh.approx.f32`.
    pub const TANH: &str = "2^-11, relative";
    /// `tanh.approx.f16`.
    pub const TANH_F16: &str = "2^-10.987, absolute";
    /// `tanh.approx.bf16`.
    pub const TANH_BF16: &str = "2^-8, absolute";
}

/// `Σ coefficients[k] · x^k`, without fused operations: the same bits with and without them.
#[inline(always)]
fn polynomial<const N: usize>(x: f64, coefficients: &[f64; N]) -> f64 {
    let mut sum = 0.0;
    let mut index = N;
    while index > 0 {
        index -= 1;
        sum = sum * x + coefficients[index];
    }
    sum
}

/// `scale^k · step(0)⋯step(k)`: the coefficients of a power series whose ratios are known.
const fn series<const N: usize>(first: f64, ratios: [f64; N]) -> [f64; N] {
    let mut terms = [first; N];
    let mut index = 1;
    while index < N {
        terms[index] = terms[index - 1] * ratios[index];
        index += 1;
    }
    terms
}

/// `e^(x·ln 2)`: of `|x| ≤ ½`, the terms beyond the twelfth are below 2⁻⁵⁰.
pub(crate) const EXPONENTIAL: [f64; 13] = {
    let mut ratios = [0.0; 13];
    let mut k = 1;
    while k < 13 {
        ratios[k] = std::f64::consts::LN_2 / k as f64;
        k += 1;
    }
    series(1.0, ratios)
};

/// The sum with 1.5·2⁵² has the integer nearest to a number in its low bits.
pub(crate) const SHIFTER: f64 = 6_755_399_441_055_744.0;

/// Beyond, powers of two are no `.f32`.
pub(crate) const MAX_EXPONENT: f64 = 200.0;

/// `2^x`, for a number in the range of the exponents of `.f64`, or NaN.
#[inline(always)]
fn exp2(x: f64) -> f64 {
    let shifted = x + SHIFTER;
    let whole = shifted - SHIFTER;
    let power = polynomial(x - whole, &EXPONENTIAL);
    f64::from_bits(power.to_bits().wrapping_add(shifted.to_bits() << 52))
}

/// `2^a`, for any `.f32`: results too large for an `.f32` become infinite when rounded to one.
#[inline(always)]
fn exp2_f32(a: f32) -> f64 {
    let x = f64::from(a);
    let x = if x < -MAX_EXPONENT { -MAX_EXPONENT } else { x };
    let x = if x > MAX_EXPONENT { MAX_EXPONENT } else { x };
    exp2(x)
}

/// `ex2.approx.f32`.
#[inline(always)]
pub fn ex2<const FTZ: bool>(a: f32) -> f32 {
    flush_if::<FTZ>(canonical(exp2_f32(flush_if::<FTZ>(a)) as f32))
}

/// `2/ln 2 · atanh(s) / s`, in `s²`: for mantissas around 1, `s² ≤ 0.0295`.
const LOGARITHM: [f64; 11] = {
    let mut terms = [0.0; 11];
    let mut k = 0;
    while k < 11 {
        terms[k] = 2.0 * std::f64::consts::LOG2_E / (2 * k + 1) as f64;
        k += 1;
    }
    terms
};

/// `lg2.approx.f32`.
#[inline(always)]
pub fn lg2<const FTZ: bool>(a: f32) -> f32 {
    let a = flush_if::<FTZ>(a);
    // In double precision no `.f32` is subnormal.
    let bits = f64::from(a).to_bits();
    // The exponent for which the mantissa lies in [√½, √2).
    const ROOT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    let exponent = (bits.wrapping_sub(ROOT_HALF) as i64) >> 52;
    let mantissa = f64::from_bits(bits.wrapping_sub((exponent as u64) << 52));
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let logarithm = (exponent as i32) as f64 + s * polynomial(s * s, &LOGARITHM);
    let result = if a < f32::INFINITY { logarithm as f32 } else { a };
    let result = if a == 0.0 { f32::NEG_INFINITY } else { result };
    let result = if a < 0.0 { f32::NAN } else { result };
    flush_if::<FTZ>(canonical(result))
}

/// `rsqrt.approx.f32`.
#[inline(always)]
pub fn rsqrt<const FTZ: bool>(a: f32) -> f32 {
    let a = flush_if::<FTZ>(a);
    flush_if::<FTZ>(canonical((1.0 / f64::from(a).sqrt()) as f32))
}

/// `div.approx.f32`: the reciprocal of a divisor above 2¹²⁶ counts as zero.
#[inline(always)]
pub fn div<const FTZ: bool>(a: f32, b: f32) -> f32 {
    const LARGE: f32 = f32::from_bits(0x7e80_0000);
    let (a, b) = (flush_if::<FTZ>(a), flush_if::<FTZ>(b));
    let quotient = if b.abs() > LARGE { a * (0.0 * b.signum()) } else { a / b };
    flush_if::<FTZ>(canonical(quotient))
}

/// The Taylor series of sine, over its argument, in the argument's square.
const SINE: [f64; 9] = {
    let mut ratios = [0.0; 9];
    let mut k = 1;
    while k < 9 {
        ratios[k] = -1.0 / ((2 * k) * (2 * k + 1)) as f64;
        k += 1;
    }
    series(1.0, ratios)
};

/// The Taylor series of cosine in the argument's square.
const COSINE: [f64; 9] = {
    let mut ratios = [0.0; 9];
    let mut k = 1;
    while k < 9 {
        ratios[k] = -1.0 / ((2 * k - 1) * (2 * k)) as f64;
        k += 1;
    }
    series(1.0, ratios)
};

/// Sine of an angle plus a number of quarter turns.
#[inline(always)]
fn sine(a: f32, quarters: u64) -> f64 {
    // π/2 in two parts: the product of the first with an integer of 20 bits is exact. The last term
    // is what `.f64` cannot hold of π/2.
    const QUARTER_HIGH: f64 = f64::from_bits(0x3ff9_21fb_5440_0000);
    const QUARTER_LOW: f64 = (std::f64::consts::FRAC_PI_2 - QUARTER_HIGH) + 6.123_233_995_736_766e-17;
    let angle = f64::from(a);
    // Beyond, the ISA promises nothing; whole turns are dropped first, so that the rest is in range.
    let angle = if angle.abs() < 1.0e6 { angle } else { angle % std::f64::consts::TAU };
    let shifted = angle * std::f64::consts::FRAC_2_PI + SHIFTER;
    let count = shifted - SHIFTER;
    let rest = (angle - count * QUARTER_HIGH) - count * QUARTER_LOW;
    let quadrant = shifted.to_bits().wrapping_add(quarters);
    let square = rest * rest;
    let (sine, cosine) = (rest * polynomial(square, &SINE), polynomial(square, &COSINE));
    let value = if quadrant & 1 == 0 { sine } else { cosine };
    f64::from_bits(value.to_bits() ^ (quadrant & 2) << 62)
}

/// `sin.approx.f32`.
#[inline(always)]
pub fn sin<const FTZ: bool>(a: f32) -> f32 {
    let a = flush_if::<FTZ>(a);
    let result = if a == 0.0 { a } else { sine(a, 0) as f32 };
    flush_if::<FTZ>(canonical(result))
}

/// `cos.approx.f32`.
#[inline(always)]
pub fn cos<const FTZ: bool>(a: f32) -> f32 {
    flush_if::<FTZ>(canonical(sine(flush_if::<FTZ>(a), 1) as f32))
}

/// Hyperbolic tangent in double precision, of any `.f32`.
#[inline(always)]
fn hyperbolic_tangent(a: f32) -> f64 {
    const SMALL: [f64; 5] = [1.0, -1.0 / 3.0, 2.0 / 15.0, -17.0 / 315.0, 62.0 / 2835.0];
    let x = f64::from(a);
    let magnitude = x.abs();
    // Beyond 20, one is the nearest `.f32`.
    let limited = if magnitude > 20.0 { 20.0 } else { magnitude };
    let power = exp2(limited * (2.0 * std::f64::consts::LOG2_E));
    let large = 1.0 - 2.0 / (power + 1.0);
    let small = magnitude * polynomial(x * x, &SMALL);
    let result = if magnitude < 0.0625 { small } else { large };
    if x.is_nan() { x } else { super::float::copysign_f64(x, result) }
}

/// `tanh.approx.f32`.
#[inline(always)]
pub fn tanh(a: f32) -> f32 {
    canonical(hyperbolic_tangent(a) as f32)
}

/// `ex2.approx.f16`.
#[inline(always)]
pub fn ex2_f16(a: u16) -> u16 {
    super::half::f64_to_f16(exp2_f32(super::half::f16_to_f32(a)))
}

/// `ex2.approx.ftz.bf16`.
#[inline(always)]
pub fn ex2_bf16(a: u16) -> u16 {
    let x = flush_if::<true>(super::half::bf16_to_f32(a));
    let result = super::half::f64_to_bf16(exp2_f32(x));
    if result & 0x7f80 == 0 { result & 0x8000 } else { result }
}

/// `tanh.approx.f16`.
#[inline(always)]
pub fn tanh_f16(a: u16) -> u16 {
    super::half::f64_to_f16(hyperbolic_tangent(super::half::f16_to_f32(a)))
}

/// `tanh.approx.bf16`.
#[inline(always)]
pub fn tanh_bf16(a: u16) -> u16 {
    super::half::f64_to_bf16(hyperbolic_tangent(super::half::bf16_to_f32(a)))
}

/// The NaN that the crude approximations of `.f64` make.
const NAN_HIGH: f64 = f64::from_bits((NAN_F32 as u64) << 32);

/// Common to both coarse approximations of `.f64`: only the high words of operand and result count, and subnormal
/// numbers are zeros.
fn crude(a: f64, f: impl Fn(f64) -> f64) -> f64 {
    const HIGH: u64 = 0xffff_ffff_0000_0000;
    let flushed = |x: f64| if x.is_subnormal() { 0.0f64.copysign(x) } else { x };
    let result = f(flushed(f64::from_bits(a.to_bits() & HIGH)));
    if a.is_nan() || result.is_nan() {
        return NAN_HIGH;
    }
    flushed(f64::from_bits(result.to_bits() & HIGH))
}

/// `rcp.approx.ftz.f64`.
pub fn rcp_f64(a: f64) -> f64 {
    crude(a, |x| 1.0 / x)
}

/// `rsqrt.approx.ftz.f64`.
pub fn rsqrt_ftz_f64(a: f64) -> f64 {
    crude(a, |x| 1.0 / x.sqrt())
}

/// `rsqrt.approx.f64`.
#[inline(always)]
pub fn rsqrt_f64(a: f64) -> f64 {
    super::float::propagate(1.0 / a.sqrt(), a, a)
}
