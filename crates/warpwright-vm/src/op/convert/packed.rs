//! Conversions into and out of packed formats; `cvt.pack`.

use super::scalar::format;
use crate::decode::{Decoder, Rows};
use crate::num::convert::{self, Kind};
use crate::num::element::{Element, Packing};
use crate::num::exact::Value;
use crate::num::{Conversion, Direction, half};
use crate::op::lanes::direction;
use crate::simd::{lane_op, lanes};
use warpwright_ptx::ir::Type::*;
use warpwright_ptx::ir::{Dst, Src, Type};
use warpwright_ptx::op::convert::{Cvt, CvtPack, CvtScaledTwo};

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
    PackBf16(a: f32, b: f32) -> u32 { u32::from(half::f32_to_bf16(a)) << 16 | u32::from(half::f32_to_bf16(b)) }
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
