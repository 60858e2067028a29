//! `cvt` and `cvt.pack` of the evaluator.

use crate::evaluate::Frame;
use crate::float::{self, Format, direction};
use crate::integer;
use rustc_apfloat::ieee::{Float8E4M3FN, Float8E5M2, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round};
use warpwright_ptx::ir::*;
use warpwright_ptx::op::convert::{Cvt, CvtPack};

pub(crate) fn convert(frame: &mut Frame<'_>, cvt: &Cvt) {
    let (d, a) = (cvt.d_type, cvt.a_type);
    let round = direction(cvt.rounding);
    let value = frame.bits(&cvt.a, a);
    let result = match (d, a) {
        (Type::F16X2 | Type::BF16X2, Type::F32) => {
            let low = frame.bits(cvt.b.as_ref().expect("two values"), a);
            let half = |x: u128| u128::from(float_to_float(cvt, Format::of(d), Format::F32, round, x as u64));
            half(value) << 16 | half(low)
        }
        (Type::E4M3X2 | Type::E5M2X2, Type::F32) => {
            let low = frame.bits(cvt.b.as_ref().expect("two values"), a);
            let byte = |x: u128| u128::from(eight(d, cvt.relu, Single::from_bits(x)));
            byte(value) << 8 | byte(low)
        }
        (Type::E4M3X2 | Type::E5M2X2, Type::F16X2) => {
            let byte = |x: u128| u128::from(eight(d, cvt.relu, Half::from_bits(x & 0xffff)));
            byte(value >> 16) << 8 | byte(value)
        }
        (Type::F16X2, Type::E4M3X2 | Type::E5M2X2) => {
            let half = |x: u128| u128::from(of_eight(a, cvt.relu, x & 0xff));
            half(value >> 8) << 16 | half(value)
        }
        (Type::TF32, Type::F32) => tf32(cvt, value as u32).into(),
        (d, a) if d.is_float() && a.is_float() => {
            float_to_float(cvt, Format::of(d), Format::of(a), round, value as u64).into()
        }
        (d, a) if d.is_float() => {
            let format = Format::of(d);
            let x = float::of_integer(format, round, integer::wrap(value as i128, a));
            (if cvt.sat { float::saturate(format, x) } else { x }).into()
        }
        (d, a) if a.is_float() => {
            let format = Format::of(a);
            let x = format.flush(cvt.ftz && format == Format::F32, value as u64);
            float::to_integer(format, round, x, d.bits(), d.is_signed()) as u128
        }
        (d, a) => {
            let x = integer::wrap(value as i128, a);
            (if cvt.sat { integer::clamp(x, d) } else { x }) as u128
        }
    };
    frame.set(cvt.d, cvt.d_type, result as i128);
}

fn float_to_float(cvt: &Cvt, d: Format, a: Format, round: Round, x: u64) -> u64 {
    let x = a.flush(cvt.ftz && a == Format::F32, x);
    let integral =
        matches!(cvt.rounding, Some(Rounding::Rni | Rounding::Rzi | Rounding::Rmi | Rounding::Rpi));
    if d != a {
        // Single precision with `.ftz` does arithmetic, which has one NaN.
        let arithmetic = cvt.ftz && (a == Format::F32 || (d, a) == (Format::F32, Format::BF16));
        let x = if arithmetic && a.is_nan(x) { a.nan() } else { x };
        let result = float::convert(d, a, round, x);
        let result = if arithmetic && d == Format::F32 && d.is_nan(result) { d.nan() } else { result };
        // The smallest normal number is flushed where only the short fractions below it lead up to it.
        let rounded_up =
            |x: u64| f64::from_bits(x).abs() < f64::from(f32::MIN_POSITIVE) * (1.0 - 2f64.powi(-25));
        let tiny = |x: u64| match round {
            Round::NearestTiesToEven => rounded_up(x),
            Round::TowardNegative if f64::from_bits(x) < 0.0 => {
                -f64::from_bits(x) <= f64::from(f32::MIN_POSITIVE) * (1.0 - 2f64.powi(-24))
            }
            Round::TowardPositive if f64::from_bits(x) > 0.0 => {
                f64::from_bits(x) <= f64::from(f32::MIN_POSITIVE) * (1.0 - 2f64.powi(-24))
            }
            _ => f64::from_bits(x).abs() < f64::from(f32::MIN_POSITIVE),
        };
        let flushed = cvt.ftz && (d, a) == (Format::F32, Format::F64) && tiny(x);
        return finish(cvt, d, if flushed { result & 0x8000_0000 } else { result });
    }
    // Without a rounding it is a copy: a NaN keeps its bits where no arithmetic is needed for it, which
    // it is for `.ftz` and for the short formats.
    let copied = d == Format::F64 || d == Format::F32 && !cvt.ftz;
    finish(
        cvt,
        d,
        match () {
            () if integral => float::integral(d, round, x),
            () if d.is_nan(x) && !copied => d.nan(),
            () => x,
        },
    )
}

/// What follows the rounding of a conversion to a format.
fn finish(cvt: &Cvt, d: Format, x: u64) -> u64 {
    let x = d.flush(cvt.ftz && d == Format::F32, x);
    if cvt.relu {
        float::relu(d, finite(cvt.satfinite, d, x))
    } else if cvt.sat {
        float::saturate(d, x)
    } else {
        finite(cvt.satfinite, d, x)
    }
}

/// With `.satfinite`, the largest number in place of an infinity: its bits are those just below.
fn finite(satfinite: bool, format: Format, x: u64) -> u64 {
    if satfinite && format.is_infinite(x) { x - 1 } else { x }
}

/// To an 8-bit format: beyond the largest number, the largest number.
fn eight<F>(ty: Type, relu: bool, x: F) -> u8
where
    F: Float + FloatConvert<Float8E4M3FN> + FloatConvert<Float8E5M2> + FloatConvert<Single>,
{
    if x.is_nan() {
        return 0x7f;
    }
    if relu && x.is_negative() {
        return 0;
    }
    let (largest, code) = if ty == Type::E4M3X2 { (448, 0x7e) } else { (57344, 0x7b) };
    let wide: Single = x.convert(&mut false).value;
    let sign = if x.is_negative() { 0x80 } else { 0 };
    if wide.abs() >= Single::from_u128(largest).value {
        return sign | code;
    }
    match ty {
        Type::E4M3X2 => {
            let result: Float8E4M3FN = x.convert(&mut false).value;
            result.to_bits() as u8
        }
        _ => {
            let result: Float8E5M2 = x.convert(&mut false).value;
            result.to_bits() as u8
        }
    }
}

fn of_eight(ty: Type, relu: bool, x: u128) -> u64 {
    let half: Half = match ty {
        Type::E4M3X2 => Float8E4M3FN::from_bits(x).convert(&mut false).value,
        _ => Float8E5M2::from_bits(x).convert(&mut false).value,
    };
    let bits = if half.is_nan() { Format::F16.nan() } else { half.to_bits() as u64 };
    if relu { float::relu(Format::F16, bits) } else { bits }
}

/// To 10 explicit bits of mantissa; the 13 below them are zero.
fn tf32(cvt: &Cvt, x: u32) -> u32 {
    let magnitude = x & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        let cut = cvt.rounding == Some(Rounding::Rna) && !cvt.satfinite;
        return if cut { x & !0x1fff } else { 0x7fff_e000 };
    }
    let half = match cvt.rounding {
        Some(Rounding::Rz) => 0,
        Some(Rounding::Rna) => 0x1000,
        _ => 0x0fff + (magnitude >> 13 & 1),
    };
    let rounded = if magnitude == 0x7f80_0000 { magnitude } else { (magnitude + half) & !0x1fff };
    let rounded = if cvt.satfinite { rounded.min(0x7f7f_e000) } else { rounded };
    if cvt.relu && x >> 31 == 1 { 0 } else { rounded | x & 0x8000_0000 }
}

/// `cvt.pack`: two integers clamped to `d_type`, below the low bits of `c`.
pub(crate) fn pack(frame: &mut Frame<'_>, cvt: &CvtPack) {
    let bits = cvt.d_type.bits();
    let clamped = |src: &Src| integer::low(integer::clamp(frame.int(src, cvt.a_type), cvt.d_type), bits);
    let pair = clamped(&cvt.a) << bits | clamped(&cvt.b);
    let above = cvt.c.as_ref().map_or(0, |c| frame.bits(c, Type::B32) << (2 * bits));
    frame.set(cvt.d, Type::U32, (pair | above) as i128);
}
