//! Conversions into and out of packed formats; `cvt.pack`.

use super::scalar::format;
use crate::decode::{Decoder, Rows};
use crate::native::Operation;
use crate::num::convert::{self, Kind};
use crate::num::element::{Element, Packing};
use crate::num::exact::Value;
use crate::num::{Conversion, Direction, Format, half};
use crate::op::lanes::direction;
use crate::simd::{lane_op, lanes};
use warpwright_ptx::ir::Type::*;
use warpwright_ptx::ir::{Dst, Src, Srcs, Type};
use warpwright_ptx::op::convert::{Cvt, CvtPack, CvtRs, CvtScaledTwo};

/// `cvt` of packed values, and to `.tf32`. `false` where the formats are not known here.
pub(super) fn cvt(op: &Cvt, d: &mut Decoder<'_, '_>) -> bool {
    let direction = direction(op.rounding);
    let finite = op.satfinite && !op.relu && !op.positive_zero;
    let plain = !op.satfinite && !op.relu && !op.positive_zero;
    let nearest = direction == Direction::Nearest;
    let (Some(to), Some(from)) = (format(op.d_type), format(op.a_type)) else {
        let how = Packing { direction, satfinite: op.satfinite, relu: op.relu };
        return elements(d, (op.d, op.d_type), (&op.a, op.b.as_ref(), op.a_type), None, how);
    };
    let conversion = Conversion {
        satfinite: op.satfinite,
        relu: op.relu,
        positive_zero: op.positive_zero,
        ..Conversion::new(Kind::Float(to), Kind::Float(from), direction)
    };
    let b = op.b.as_ref().map_or(0, |b| d.src32(b, op.a_type));
    let rows = Rows { d: d.row(op.d.0), a: d.src32(&op.a, op.a_type), b, ..Rows::default() };
    match (op.d_type, op.a_type) {
        (TF32, _) if direction == Direction::NearestAway && plain => d.emit(lanes::<ToTf32>(), rows),
        (TF32, _) => d.each1::<u32, u32>(rows, move |a| conversion.apply(a.into()) as u32),
        (F16X2, F32) if plain && nearest => d.emit(lanes::<PackF16>(), rows),
        (BF16X2, F32) if plain && nearest => d.emit(lanes::<PackBf16>(), rows),
        (F16X2, F32) if finite && nearest => d.emit(lanes::<PackF16Finite>(), rows),
        (BF16X2, F32) if finite && nearest => d.emit(lanes::<PackBf16Finite>(), rows),
        (F16X2, E4M3X2) if plain => d.emit(lanes::<UnpackE4m3>(), rows),
        (F16X2, E5M2X2) if plain => d.emit(lanes::<UnpackE5m2>(), rows),
        _ => {
            let mask = u64::from(u32::MAX >> (32 - from.width));
            let one = move |bits: u32, _| conversion.apply(u64::from(bits) & mask) as u32;
            pairs(d, rows, (op.d_type, op.a_type), one);
        }
    }
    true
}

/// `cvt` of packed values with a scale for each, which a result of `.bf16x2` is multiplied by, and what becomes
/// `.s2f6x2` is divided by. `false` where the formats are not known here.
pub(super) fn scaled(op: &CvtScaledTwo, d: &mut Decoder<'_, '_>) -> bool {
    let how = Packing { direction: direction(op.rounding), satfinite: op.satfinite, relu: op.relu };
    elements(d, (op.d, op.d_type), (&op.a, op.b.as_ref(), op.a_type), Some(&op.scale), how)
}

/// `cvt.rs`: a value is rounded away from zero if the sum of random bits and of what is cut off carries. The ISA says
/// which random bits two values have, or four share; *assumed* is the rest, for which no hardware was measured:
///
/// | result | random bits of a, b, e, f |
/// |---|---|
/// | `.f16x2` | 28..16, 12..0 |
/// | `.bf16x2` | 31..16, 15..0 |
/// | of 8 and 6 bits | a and b: 31..16, e and f: 15..0 |
/// | `.e2m1x4` | 31..24, 15..8, 23..16, 7..0 |
///
/// They are added to as many bits from the highest one on that is cut off, also of a result that is subnormal.
/// `false` where the formats are not known here.
pub(super) fn at_random(op: &CvtRs, d: &mut Decoder<'_, '_>) -> bool {
    // Bits of each; the positions of the lowest ones.
    let (count, shifts): (u32, [u32; 4]) = match op.d_type {
        F16X2 => (13, [16, 0, 0, 0]),
        BF16X2 => (16, [16, 0, 0, 0]),
        E2M1X4 => (8, [24, 8, 16, 0]),
        E4M3X4 | E5M2X4 | E2M3X4 | E3M2X4 => (16, [16, 16, 0, 0]),
        _ => return false,
    };
    let Some(format) = format(op.d_type) else { return false };
    let how = Packing { direction: Direction::Nearest, satfinite: op.satfinite, relu: op.relu };
    let one = move |a: u32, random: u32, shift: u32| {
        let value = Value::unpack(&Format::F32, a.into());
        let random = random >> shift & (u32::MAX >> (32 - count));
        // No more than an overflow is left to round.
        Element::Float(format).pack(value.rounded_at_random(&format, random, count), how) as u32
    };
    let random = d.src32(&op.random, B32);
    let two = |d: &mut Decoder<'_, '_>, row, a: &Src, b: &Src, width: u32, shifts: [u32; 2]| {
        let rows = Rows { d: row, a: d.src32(a, F32), b: d.src32(b, F32), c: random, ..Rows::default() };
        d.each3::<u32, u32, u32, u32>(rows, move |a, b, random| {
            one(a, random, shifts[0]) << width | one(b, random, shifts[1])
        });
    };
    let row = d.row(op.d.0);
    match (&op.a, &op.b) {
        (Srcs::One(a), Some(b)) => two(d, row, a, b, 16, [shifts[0], shifts[1]]),
        (Srcs::Many(values), None) => {
            let [a, b, e, f] = &values[..] else { return false };
            let width = op.d_type.bits() / 4;
            let (high, low) = (d.temporary32(), d.temporary32());
            two(d, high, a, b, width, [shifts[0], shifts[1]]);
            two(d, low, e, f, width, [shifts[2], shifts[3]]);
            let rows = Rows { d: row, a: high, b: low, ..Rows::default() };
            d.each2::<u32, u32, u32>(rows, move |high, low| high << (2 * width) | low);
        }
        _ => return false,
    }
    true
}

/// Converts elements of any formats. `false` where they are not known here.
fn elements(
    d: &mut Decoder<'_, '_>,
    (to_reg, to_type): (Dst, Type),
    (a, b, from_type): (&Src, Option<&Src>, Type),
    scale: Option<&Src>,
    how: Packing,
) -> bool {
    let (Some(to), Some(from)) = (element_of(to_type), element_of(from_type)) else { return false };
    let divides = to == Element::S2f6;
    let rows = Rows {
        d: d.row(to_reg.0),
        a: d.src32(a, from_type),
        b: b.map_or(0, |b| d.src32(b, from_type)),
        c: match scale {
            Some(scale) => d.src32(scale, B16),
            // One and one.
            None => d.constant32(0x7f7f),
        },
        ..Rows::default()
    };
    pairs(d, rows, (to_type, from_type), move |bits, scale| {
        let value = from.unpack(bits.into());
        let value = match (Element::Ue8m0.unpack(scale.into()), divides) {
            (Value::Nan, _) => Value::Nan,
            (power, true) => value.over(power),
            (power, false) => value.times(power),
        };
        to.pack(value, how) as u32
    });
    true
}

/// Converts two elements, of one register or of two `.f32`, by a function of their bits and of the bits of `c` from the
/// byte on that is theirs.
fn pairs(
    d: &mut Decoder<'_, '_>,
    rows: Rows,
    (to, from): (Type, Type),
    one: impl Fn(u32, u32) -> u32 + Send + Sync + 'static,
) {
    let width = element(to);
    let two = move |a, b, scale| one(a, scale >> 8) << width | one(b, scale);
    match from {
        F32 => d.each3::<u32, u32, u32, u32>(rows, two),
        _ => {
            let high = element(from);
            d.each2::<u32, u32, u32>(Rows { b: rows.c, ..rows }, move |a, scale| two(a >> high, a, scale));
        }
    }
}

/// The format of an element of a type; `None` for integers, and for formats that are not known here.
fn element_of(ty: Type) -> Option<Element> {
    match ty {
        UE8M0X2 => Some(Element::Ue8m0),
        S2F6X2 => Some(Element::S2f6),
        _ => format(ty).map(Element::Float),
    }
}

/// Bits that an element of a packed type takes: of the formats of six bits, a byte.
fn element(ty: Type) -> u32 {
    ty.bits() / 2
}

pub(super) fn pack(op: &CvtPack, d: &mut Decoder<'_, '_>) {
    let (bits, signed) = (op.d_type.bits(), op.d_type.is_signed());
    let (a, b) = (d.src32(&op.a, S32), d.src32(&op.b, S32));
    let c = match &op.c {
        Some(c) => d.src32(c, B32),
        None => d.constant32(0),
    };
    let (file, row) = d.register(op.d.0);
    let wide = file == crate::decode::File::Wide;
    let target = if wide { d.temporary32() } else { row };
    let rows = Rows { d: target, a, b, c, ..Rows::default() };
    d.each3::<i32, i32, u32, u32>(rows, move |a, b, c| convert::pack(bits, signed, a, b, c));
    if wide {
        super::widen(d, row, target);
    }
}

lane_op! {
    ToTf32(a: f32) -> u32 { convert::f32_to_tf32_away(a) }
    PackF16(a: f32, b: f32) -> u32 { u32::from(half::f32_to_f16(a)) << 16 | u32::from(half::f32_to_f16(b)) }
        => Some(Operation::PackFloats { bf16: false });
    PackBf16(a: f32, b: f32) -> u32 { u32::from(half::f32_to_bf16(a)) << 16 | u32::from(half::f32_to_bf16(b)) }
        => Some(Operation::PackFloats { bf16: true });
    PackF16Finite(a: f32, b: f32) -> u32 {
        u32::from(half::f32_to_f16_finite(a)) << 16 | u32::from(half::f32_to_f16_finite(b))
    }
    PackBf16Finite(a: f32, b: f32) -> u32 {
        u32::from(half::f32_to_bf16_finite(a)) << 16 | u32::from(half::f32_to_bf16_finite(b))
    }
    UnpackE4m3(a: u32) -> u32 {
        u32::from(convert::e4m3_to_f16((a >> 8) as u8)) << 16 | u32::from(convert::e4m3_to_f16(a as u8))
    }
    UnpackE5m2(a: u32) -> u32 {
        u32::from(convert::e5m2_to_f16((a >> 8) as u8)) << 16 | u32::from(convert::e5m2_to_f16(a as u8))
    }
}
