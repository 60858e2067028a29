//! Conversions between integers, between floating-point formats, and from one to the other.
//!
//! The first part is for loops over lanes and covers the common conversions. The second, [`Conversion`], covers every
//! `cvt` of single values with every modifier; it is exact and slower.

use super::exact::{Direction, Format, Value};
use super::float::{canonical, flush, flush_if, quiet, saturate, saturate_f64};
use super::half;
use super::integer::range;

/// `cvt.rn.f32.f64`: a NaN is made quiet, and keeps its sign and the upper bits of its payload.
#[inline(always)]
pub fn f64_to_f32<const FTZ: bool>(a: f64) -> f32 {
    // From here on, the smallest normal number is the nearest one, if exponents went on below it.
    const NORMAL: f64 = f32::MIN_POSITIVE as f64 * (1.0 - 1.0 / (1 << 25) as f64);
    let bits = a.to_bits();
    let nan = (bits >> 32) as u32 & 0x8000_0000 | 0x7fc0_0000 | (bits >> 29) as u32 & 0x7f_ffff;
    let number = if FTZ && a.abs() < NORMAL { 0f32.copysign(a as f32) } else { a as f32 };
    f32::from_bits(if a.is_nan() { nan } else { number.to_bits() })
}

/// `cvt.f64.f32`: the payload of a NaN moves to the upper bits.
#[inline(always)]
pub fn f32_to_f64(a: f32) -> f64 {
    let bits = u64::from(a.to_bits());
    let nan = (bits & 0x8000_0000) << 32 | 0x7ff8_0000_0000_0000 | (bits & 0x7f_ffff) << 29;
    f64::from_bits(if bits & 0x7fff_ffff > 0x7f80_0000 { nan } else { f64::from(a).to_bits() })
}

/// `cvt.ftz.f64.f32`: an operation of single precision before the conversion, which makes a NaN canonical.
#[inline(always)]
pub fn flushed_f32_to_f64(a: f32) -> f64 {
    f32_to_f64(canonical(flush(a)))
}

/// Rounds to an integral value.
#[inline(always)]
pub fn integral_f32<const DIRECTION: u8>(a: f32) -> f32 {
    match DIRECTION {
        NEAREST => a.round_ties_even(),
        ZERO => a.trunc(),
        DOWN => a.floor(),
        _ => a.ceil(),
    }
}

/// Rounds to an integral value.
#[inline(always)]
pub fn integral_f64<const DIRECTION: u8>(a: f64) -> f64 {
    match DIRECTION {
        NEAREST => a.round_ties_even(),
        ZERO => a.trunc(),
        DOWN => a.floor(),
        _ => a.ceil(),
    }
}

/// A parameter `DIRECTION`: `.rni`.
pub const NEAREST: u8 = 0;
/// A parameter `DIRECTION`: `.rzi`.
pub const ZERO: u8 = 1;
/// A parameter `DIRECTION`: `.rmi`.
pub const DOWN: u8 = 2;
/// A parameter `DIRECTION`: `.rpi`.
pub const UP: u8 = 3;

/// `cvt.{rni,rzi,rmi,rpi}{.ftz}.f32.f32`.
#[inline(always)]
pub fn round_f32<const DIRECTION: u8, const FTZ: bool>(a: f32) -> f32 {
    canonical(integral_f32::<DIRECTION>(flush_if::<FTZ>(a)))
}

/// `cvt.{rni,rzi,rmi,rpi}.f64.f64`.
#[inline(always)]
pub fn round_f64<const DIRECTION: u8>(a: f64) -> f64 {
    if a.is_nan() { quiet(a) } else { integral_f64::<DIRECTION>(a) }
}

/// Conversions of floating-point numbers to an integer type, limited to its range. From `.f32` to a type of up to 32
/// bits, NaN becomes zero; otherwise it becomes the value with only the first bit set.
macro_rules! to_integer {
    ($($from_f32:ident $from_f64:ident $integer:ident $nan_f32:expr, $nan_f64:expr;)*) => {$(
        #[doc = concat!("`cvt` from `.f32` to `", stringify!($integer), "`.")]
        #[inline(always)]
        pub fn $from_f32<const DIRECTION: u8, const FTZ: bool>(a: f32) -> $integer {
            let whole = integral_f32::<DIRECTION>(flush_if::<FTZ>(a)) as $integer;
            if a.is_nan() { $nan_f32 } else { whole }
        }

        #[doc = concat!("`cvt` from `.f64` to `", stringify!($integer), "`.")]
        #[inline(always)]
        pub fn $from_f64<const DIRECTION: u8>(a: f64) -> $integer {
            let whole = integral_f64::<DIRECTION>(a) as $integer;
            if a.is_nan() { $nan_f64 } else { whole }
        }
    )*};
}

to_integer! {
    f32_to_s32 f64_to_s32 i32 0, i32::MIN;
    f32_to_u32 f64_to_u32 u32 0, 1 << 31;
    f32_to_s64 f64_to_s64 i64 i64::MIN, i64::MIN;
    f32_to_u64 f64_to_u64 u64 1 << 63, 1 << 63;
}

/// The kind of a source or destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An integer.
    Integer {
        /// Its width: at most 64.
        bits: u32,
        /// Whether it is signed.
        signed: bool,
    },
    /// A floating-point number.
    Float(Format),
}

/// A `cvt` of a single value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// The kind of the result.
    pub d: Kind,
    /// The kind of the source.
    pub a: Kind,
    /// The rounding direction; the nearest if nothing is rounded.
    pub direction: Direction,
    /// Whether it is rounded to an integral value (`.rni` and its like).
    pub integral: bool,
    /// Replaces subnormal `.f32` operands and results by zeros.
    pub ftz: bool,
    /// Limits integers to their range, and floating-point numbers to `[0, 1]`.
    pub sat: bool,
    /// Replaces values that are too large by the largest finite number.
    pub satfinite: bool,
    /// Replaces values below zero by zero.
    pub relu: bool,
    /// Replaces minus zero by plus zero.
    pub positive_zero: bool,
}

impl Conversion {
    /// A conversion without modifiers.
    pub const fn new(d: Kind, a: Kind, direction: Direction) -> Self {
        let (integral, ftz, sat, satfinite, relu, positive_zero) = (false, false, false, false, false, false);
        Conversion { d, a, direction, integral, ftz, sat, satfinite, relu, positive_zero }
    }

    /// Converts the bits of a source to those of the result. Only the low bits of the source that its type has count.
    /// The result of a signed type is sign-extended to 64 bits, any other zero-extended.
    pub fn apply(&self, bits: u64) -> u64 {
        match (self.a, self.d) {
            (Kind::Integer { bits: width, signed }, d) => {
                let value = extend(bits, width, signed);
                match d {
                    Kind::Integer { bits, signed } => self.integer_result(value, bits, signed),
                    Kind::Float(format) => self.float_result(Value::integer(value), &format),
                }
            }
            (Kind::Float(source), d) => {
                let bits = self.flush(bits, &source);
                let value = Value::unpack(&source, bits);
                match d {
                    Kind::Integer { bits, signed } => self.rounded_integer(value, &source, bits, signed),
                    Kind::Float(format) if value == Value::Nan => self.nan_result(bits, &source, &format),
                    Kind::Float(format) => self.float_result(value, &format),
                }
            }
        }
    }

    fn flush(&self, bits: u64, format: &Format) -> u64 {
        if self.ftz && *format == Format::F32 && format.is_subnormal(bits) {
            bits & 0x8000_0000
        } else {
            bits
        }
    }

    fn integer_result(&self, value: i128, bits: u32, signed: bool) -> u64 {
        let (low, high) = range(bits, signed);
        let value = if self.sat { value.clamp(low, high) } else { value };
        extend(value as u64, bits, signed) as u64
    }

    fn rounded_integer(&self, value: Value, source: &Format, bits: u32, signed: bool) -> u64 {
        let (low, high) = range(bits, signed);
        let nan = if *source != Format::F64 && bits < 64 { 0 } else { 1 << (bits - 1) };
        match value.to_integer(self.direction, low, high) {
            Some(integer) => integer as u64,
            None => extend(nan, bits, signed) as u64,
        }
    }

    fn float_result(&self, value: Value, format: &Format) -> u64 {
        let direction = if self.integral { Direction::Nearest } else { self.direction };
        let value = if self.integral { value.integral(self.direction) } else { value };
        let value = match value {
            Value::Nan if self.sat => Value::Zero { negative: false },
            // Minus zero too: it is not below zero, and the larger of the two zeros is the other.
            _ if (self.relu || self.sat) && value.is_negative() => Value::Zero { negative: false },
            _ => value,
        };
        let flushed = self.ftz && *format == Format::F32 && value.is_tiny(format, direction);
        let value = if flushed { Value::Zero { negative: value.is_negative() } } else { value };
        let bits = value.round(format, direction, self.satfinite);
        let bits = if self.sat { limit_to_one(bits, format) } else { bits };
        let negative_zero = Value::unpack(format, bits) == Value::Zero { negative: true };
        if self.positive_zero && negative_zero { 0 } else { bits }
    }

    /// The treatment of NaN, which is that of hardware. Conversions to or from `.f64`, and plain copies, keep
    /// payloads: for a copy, with neither rounding nor `.ftz`, hardware moves `.f32` and `.f64`, and adds zero to the
    /// shorter ones. From `.bf16` to `.f32` the bits move. An `.f32` with `.ftz` goes through an operation that makes
    /// it canonical.
    fn nan_result(&self, bits: u64, source: &Format, format: &Format) -> u64 {
        match (*source, *format) {
            _ if self.sat => 0,
            (Format::F32, Format::F32) if !self.integral && !self.ftz => bits,
            (Format::F64, Format::F64) if !self.integral => bits,
            (Format::F64, Format::F64) => quiet(f64::from_bits(bits)).to_bits(),
            (Format::F32, Format::F64) if self.ftz => {
                flushed_f32_to_f64(f32::from_bits(bits as u32)).to_bits()
            }
            (Format::BF16, Format::F32) if !self.ftz => bits << 16,
            (Format::F64, _) | (_, Format::F64) => quiet_nan(bits, source, format),
            // Only `.rna` cuts off the lower bits, also where that leaves infinity.
            (_, Format::TF32) if self.direction == Direction::NearestAway && !self.satfinite => {
                bits & !0x1fff
            }
            _ => format.nan_bits(),
        }
    }
}

/// A NaN of one format in another: quiet, with its sign and as much of its payload as fits.
fn quiet_nan(bits: u64, source: &Format, format: &Format) -> u64 {
    let parts = |format: &Format| (format.width - 1, format.precision - 1);
    let ((sign_from, from), (sign_to, to)) = (parts(source), parts(format));
    let fraction = bits & ((1 << from) - 1);
    let fraction = if to > from { fraction << (to - from) } else { fraction >> (from - to) };
    (bits >> sign_from & 1) << sign_to | format.infinity.unwrap_or(0) | 1 << (to - 1) | fraction
}

/// The smaller of a number that is not below zero and one.
fn limit_to_one(bits: u64, format: &Format) -> u64 {
    bits.min(Value::integer(1).round(format, Direction::Nearest, false))
}

/// The low `width` bits, extended.
fn extend(bits: u64, width: u32, signed: bool) -> i128 {
    let up = bits << (64 - width);
    if signed { ((up as i64) >> (64 - width)).into() } else { (up >> (64 - width)).into() }
}

/// `cvt.sat.f32.f32`, with or without `.ftz`.
#[inline(always)]
pub fn sat_f32<const FTZ: bool>(a: f32) -> f32 {
    saturate(flush_if::<FTZ>(a))
}

/// `cvt.sat.f64.f64`.
#[inline(always)]
pub fn sat_f64(a: f64) -> f64 {
    saturate_f64(a)
}

/// `cvt.rna.tf32.f32`. The lower bits of a NaN are cut off, even where that leaves infinity.
#[inline(always)]
pub fn f32_to_tf32_away(a: f32) -> u32 {
    let bits = a.to_bits();
    // A carry goes into the exponent, and out of the largest one to infinity.
    let nearest = bits.wrapping_add(0x1000) & !0x1fff;
    if bits & 0x7f80_0000 == 0x7f80_0000 { bits & !0x1fff } else { nearest }
}

/// `.e5m2` to `.f16`: its upper half.
#[inline(always)]
pub fn e5m2_to_f16(a: u8) -> u16 {
    let wide = u16::from(a) << 8;
    if wide & 0x7fff > 0x7c00 { half::NAN_HALF } else { wide }
}

/// `.e4m3` to `.f16`, which represents all of its values.
#[inline(always)]
pub fn e4m3_to_f16(a: u8) -> u16 {
    // Shifted, the number has the exponent's offset of `.f16` but for a factor of 2⁸.
    const FACTOR: f32 = 256.0;
    let (magnitude, sign) = (u16::from(a & 0x7f), u16::from(a & 0x80) << 8);
    let number = half::f32_to_f16(half::f16_to_f32(magnitude << 7) * FACTOR);
    if magnitude == 0x7f { half::NAN_HALF } else { number | sign }
}

/// `cvt.rn.satfinite.{e4m3,e5m2}`, or another small format without infinities as results.
#[inline(always)]
pub fn to_small(format: &Format, direction: Direction, relu: bool, a: f32) -> u8 {
    let value = Value::unpack(format_f32(), a.to_bits().into());
    let value = if relu && value.is_negative() { Value::Zero { negative: false } } else { value };
    value.round(format, direction, true) as u8
}

const fn format_f32() -> &'static Format {
    &Format::F32
}

/// `cvt.pack`: `a` and `b`, limited to the range of `bits` bits, above them the low bits of `c`.
#[inline(always)]
pub fn pack(bits: u32, signed: bool, a: i32, b: i32, c: u32) -> u32 {
    let (low, high) = if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
    let mask = (1u32 << bits) - 1;
    let (a, b) = (a.clamp(low, high) as u32 & mask, b.clamp(low, high) as u32 & mask);
    let packed = a << bits | b;
    if bits == 16 { packed } else { c << (2 * bits) | packed }
}
