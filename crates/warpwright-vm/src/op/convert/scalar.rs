//! `cvt` of single values.
//!
//! A conversion takes the value of the source's row to that of the destination's row. Sources may be in wider
//! registers, whose low bits count. Results are extended to the width of the destination, with the sign for a signed
//! type, otherwise with zeros.

use crate::decode::{Decoder, File, Rows};
use crate::machine::Cell;
use crate::native::{self, Lane, Operation};
use crate::num::convert::{self, Kind};
use crate::num::{Conversion, Direction, Format, float, half, integer};
use crate::op::lanes::{direction, flagged};
use crate::simd::{Lanes, lane_op, lanes};
use warpwright_ptx::ir::Type::*;
use warpwright_ptx::ir::{Rounding, Type};
use warpwright_ptx::op::convert::Cvt;

/// The format of a floating-point type; `None` for integers.
pub(super) fn format(ty: Type) -> Option<Format> {
    Some(match ty {
        F64 => Format::F64,
        F32 => Format::F32,
        TF32 => Format::TF32,
        F16 | F16X2 => Format::F16,
        BF16 | BF16X2 => Format::BF16,
        E4M3X2 | E4M3X4 => Format::E4M3,
        E5M2X2 | E5M2X4 => Format::E5M2,
        E2M3X2 | E2M3X4 => Format::E2M3,
        E3M2X2 | E3M2X4 => Format::E3M2,
        E2M1X2 | E2M1X4 => Format::E2M1,
        _ => return None,
    })
}

fn kind(ty: Type) -> Kind {
    format(ty).map_or(Kind::Integer { bits: ty.bits(), signed: ty.is_signed() }, Kind::Float)
}

/// The conversion that a `cvt` of single values describes.
fn conversion(op: &Cvt) -> Conversion {
    Conversion {
        integral: matches!(op.rounding, Some(Rounding::Rni | Rounding::Rzi | Rounding::Rmi | Rounding::Rpi)),
        ftz: op.ftz,
        sat: op.sat,
        satfinite: op.satfinite,
        relu: op.relu,
        positive_zero: op.positive_zero,
        ..Conversion::new(kind(op.d_type), kind(op.a_type), direction(op.rounding))
    }
}

pub(super) fn cvt(op: &Cvt, d: &mut Decoder<'_, '_>) {
    let (file, row) = d.register(op.d.0);
    // A result of up to 32 bits that goes into a wide register is extended at the end.
    let narrow = op.d_type.bits() <= 32 && file != File::Narrow;
    let target = if narrow { d.temporary32() } else { row };
    // A register of 8 or 16 bits holds zeros above them.
    let register_bits = if narrow { 32 } else { d.function.register_type(op.d.0).bits() };
    let extended = op.d_type.is_signed() && op.d_type.bits() < register_bits;
    let rows = Rows { d: target, a: d.source(&op.a, op.a_type), ..Rows::default() };
    if !op.d_type.is_float() && !op.a_type.is_float() {
        integers(op, d, rows);
    } else if let Some(handlers) = common(op) {
        d.emit(handlers, rows);
    } else if !small_integer(op, d, rows) {
        general(op, d, rows);
    }
    if extended && op.d_type.bits() < 32 {
        let handlers = if op.d_type == S8 { lanes::<Sext8>() } else { lanes::<Sext16>() };
        d.emit(handlers, Rows { d: target, a: target, ..Rows::default() });
        if register_bits == 16 {
            d.emit(lanes::<Zext16>(), Rows { d: target, a: target, ..Rows::default() });
        }
    }
    if narrow {
        let handlers = if op.d_type.is_signed() { lanes::<SextWide>() } else { lanes::<ZextWide>() };
        d.emit(handlers, Rows { d: row, a: target, ..Rows::default() });
    }
}

/// Between integers. The result is cut to its width; what a wider register needs comes after.
fn integers(op: &Cvt, d: &mut Decoder<'_, '_>, rows: Rows) {
    let (to, from) = (op.d_type, op.a_type);
    if op.sat && from == U64 {
        return general(op, d, rows);
    }
    if op.sat {
        let (low, high) = integer::range(to.bits(), to.is_signed());
        let (low, high) = (low.max(i64::MIN.into()) as i64, high.min(i64::MAX.into()) as i64);
        let wide = to.bits() == 64;
        return match from {
            S8 => clamped(d, rows, wide, low, high, |a: i8| a.into()),
            U8 => clamped(d, rows, wide, low, high, |a: u8| a.into()),
            S16 => clamped(d, rows, wide, low, high, |a: i16| a.into()),
            U16 => clamped(d, rows, wide, low, high, |a: u16| a.into()),
            S32 => clamped(d, rows, wide, low, high, |a: i32| a.into()),
            U32 => clamped(d, rows, wide, low, high, |a: u32| a.into()),
            _ => clamped(d, rows, wide, low, high, |a: i64| a),
        };
    }
    let handlers = match (to.bits(), from) {
        (64, S8) => lanes::<Sext8Wide>(),
        (64, U8) => lanes::<Zext8Wide>(),
        (64, S16) => lanes::<Sext16Wide>(),
        (64, U16) => lanes::<Zext16Wide>(),
        (64, S32) => lanes::<SextWide>(),
        (64, U32) => lanes::<ZextWide>(),
        (64, _) => lanes::<super::Copy64>(),
        (_, U64 | S64) => lanes::<super::LowHalf>(),
        (32, S8) | (16, S8) => lanes::<Sext8>(),
        (32, S16) => lanes::<Sext16>(),
        (_, U8) => lanes::<Zext8>(),
        (_, U16) => lanes::<Zext16>(),
        _ => lanes::<super::Copy32>(),
    };
    d.emit(handlers, rows);
    // Above the result's own bits there are zeros.
    let cut = match to.bits() {
        8 => lanes::<Zext8>(),
        16 => lanes::<Zext16>(),
        _ => return,
    };
    if !(from == U8 || from == U16 && to.bits() == 16) {
        d.emit(cut, Rows { d: rows.d, a: rows.d, ..Rows::default() });
    }
}

/// Limits integers to a range; the result, cut to 32 bits or not.
fn clamped<A: Cell>(
    d: &mut Decoder<'_, '_>,
    rows: Rows,
    wide: bool,
    low: i64,
    high: i64,
    widen: impl Fn(A) -> i64 + Send + Sync + 'static,
) {
    if wide {
        d.each1::<A, i64>(rows, move |a| widen(a).clamp(low, high));
    } else {
        d.each1::<A, i32>(rows, move |a| widen(a).clamp(low, high) as i32);
    }
}

/// The number of a direction of integral rounding as a parameter.
macro_rules! in_direction {
    ($op:ident, $direction:expr) => {
        match $direction {
            Direction::Zero => lanes::<$op<{ convert::ZERO }>>(),
            Direction::Down => lanes::<$op<{ convert::DOWN }>>(),
            Direction::Up => lanes::<$op<{ convert::UP }>>(),
            _ => lanes::<$op<{ convert::NEAREST }>>(),
        }
    };
    ($op:ident, $direction:expr, $ftz:expr) => {
        match $direction {
            Direction::Zero => in_direction!(@ $op, { convert::ZERO }, $ftz),
            Direction::Down => in_direction!(@ $op, { convert::DOWN }, $ftz),
            Direction::Up => in_direction!(@ $op, { convert::UP }, $ftz),
            _ => in_direction!(@ $op, { convert::NEAREST }, $ftz),
        }
    };
    (@ $op:ident, $direction:expr, $ftz:expr) => {
        if $ftz { lanes::<$op<$direction, true>>() } else { lanes::<$op<$direction, false>>() }
    };
}

/// The conversions that programs are full of.
fn common(op: &Cvt) -> Option<Lanes> {
    let direction = direction(op.rounding);
    let integral = conversion(op).integral;
    if op.relu || op.positive_zero {
        return None;
    }
    if op.satfinite {
        let plain = direction == Direction::Nearest && !op.sat;
        return match (op.d_type, op.a_type) {
            (F16, F32) if plain => Some(flagged!(F32ToF16Finite, op.ftz)),
            (BF16, F32) if plain => Some(flagged!(F32ToBf16Finite, op.ftz)),
            _ => None,
        };
    }
    if op.sat && op.d_type.is_float() {
        let same = op.rounding.is_none() && op.a_type == op.d_type;
        return match op.d_type {
            F32 if same => Some(flagged!(SatF32, op.ftz)),
            F64 if same => Some(lanes::<SatF64>()),
            _ => None,
        };
    }
    let nearest = direction == Direction::Nearest;
    Some(match (op.d_type, op.a_type) {
        (S32, F32) => in_direction!(F32ToS32, direction, op.ftz),
        (U32, F32) => in_direction!(F32ToU32, direction, op.ftz),
        (S64, F32) => in_direction!(F32ToS64, direction, op.ftz),
        (U64, F32) => in_direction!(F32ToU64, direction, op.ftz),
        (S32, F64) => in_direction!(F64ToS32, direction),
        (U32, F64) => in_direction!(F64ToU32, direction),
        (S64, F64) => in_direction!(F64ToS64, direction),
        (U64, F64) => in_direction!(F64ToU64, direction),
        (F32, S8) if nearest => lanes::<S8ToF32>(),
        (F32, U8) if nearest => lanes::<U8ToF32>(),
        (F32, S16) if nearest => lanes::<S16ToF32>(),
        (F32, U16) if nearest => lanes::<U16ToF32>(),
        (F32, S32) if nearest => lanes::<S32ToF32>(),
        (F32, U32) if nearest => lanes::<U32ToF32>(),
        (F32, S64) if nearest => lanes::<S64ToF32>(),
        (F32, U64) if nearest => lanes::<U64ToF32>(),
        (F64, S32) => lanes::<S32ToF64>(),
        (F64, U32) => lanes::<U32ToF64>(),
        (F64, S64) if nearest => lanes::<S64ToF64>(),
        (F64, U64) if nearest => lanes::<U64ToF64>(),
        (F32, F32) if integral => in_direction!(RoundF32, direction, op.ftz),
        (F32, F32) if op.ftz => lanes::<CanonicalF32>(),
        (F32, F32) => lanes::<super::Copy32>(),
        (F64, F64) if integral => in_direction!(RoundF64, direction),
        (F64, F64) => lanes::<super::Copy64>(),
        (F32, F64) if nearest => flagged!(F64ToF32, op.ftz),
        (F64, F32) => flagged!(F32ToF64, op.ftz),
        (F32, F16) => lanes::<F16ToF32>(),
        (F32, BF16) => flagged!(Bf16ToF32, op.ftz),
        (F16, F32) if nearest => flagged!(F32ToF16, op.ftz),
        (BF16, F32) if nearest => flagged!(F32ToBf16, op.ftz),
        (F16, F64) if nearest => lanes::<F64ToF16>(),
        (BF16, F64) if nearest => lanes::<F64ToBf16>(),
        _ => return None,
    })
}

/// From numbers of up to 32 bits to integers of 8 or 16; from halves to any integer of up to 32.
fn small_integer(op: &Cvt, d: &mut Decoder<'_, '_>, rows: Rows) -> bool {
    let (to, from, ftz) = (op.d_type, op.a_type, op.ftz);
    if to.is_float() || to.bits() > 32 || to == U32 || !matches!(from, F32 | F16 | BF16) {
        return false;
    }
    let (low, high) = integer::range(to.bits(), to.is_signed());
    let (low, high) = (low as i32, high as i32);
    let whole = match direction(op.rounding) {
        Direction::Zero => convert::f32_to_s32::<{ convert::ZERO }, false>,
        Direction::Down => convert::f32_to_s32::<{ convert::DOWN }, false>,
        Direction::Up => convert::f32_to_s32::<{ convert::UP }, false>,
        _ => convert::f32_to_s32::<{ convert::NEAREST }, false>,
    };
    let mask = u32::MAX >> (32 - to.bits());
    let result = move |a: f32| whole(a).clamp(low, high) as u32 & mask;
    match from {
        F32 => d.each1::<f32, u32>(rows, move |a| result(if ftz { float::flush(a) } else { a })),
        F16 => d.each1::<u16, u32>(rows, move |a| result(half::f16_to_f32(a))),
        _ => d.each1::<u16, u32>(rows, move |a| result(half::bf16_to_f32(a))),
    }
    true
}

/// Any conversion, by its definition. The result is cut to its own width.
fn general(op: &Cvt, d: &mut Decoder<'_, '_>, rows: Rows) {
    let conversion = conversion(op);
    let mask = u64::MAX >> (64 - op.d_type.bits());
    match (op.a_type.bits() == 64, op.d_type.bits() == 64) {
        (false, false) => {
            d.each1::<u32, u32>(rows, move |a| (conversion.apply(a.into()) & mask) as u32);
        }
        (false, true) => d.each1::<u32, u64>(rows, move |a| conversion.apply(a.into())),
        (true, false) => d.each1::<u64, u32>(rows, move |a| (conversion.apply(a) & mask) as u32),
        (true, true) => d.each1::<u64, u64>(rows, move |a| conversion.apply(a)),
    }
}

const fn extend(bits: u32, signed: bool, wide: bool) -> Option<Operation> {
    Some(Operation::Extend { bits, signed, wide })
}

lane_op! {
    Zext8(a: u8) -> u8 { a } => extend(8, false, false);
    Zext16(a: u16) -> u16 { a } => extend(16, false, false);
    Sext8(a: i8) -> i32 { a.into() } => extend(8, true, false);
    Sext16(a: i16) -> i32 { a.into() } => extend(16, true, false);
    Zext8Wide(a: u8) -> u64 { a.into() } => extend(8, false, true);
    Zext16Wide(a: u16) -> u64 { a.into() } => extend(16, false, true);
    ZextWide(a: u32) -> u64 { a.into() } => extend(32, false, true);
    Sext8Wide(a: i8) -> i64 { a.into() } => extend(8, true, true);
    Sext16Wide(a: i16) -> i64 { a.into() } => extend(16, true, true);
    SextWide(a: i32) -> i64 { a.into() } => extend(32, true, true);
    F32ToS32[TO: u8, FTZ: bool](a: f32) -> i32 { convert::f32_to_s32::<TO, FTZ>(a) }
        => native::to_integer(Lane::S32, TO, FTZ);
    F32ToU32[TO: u8, FTZ: bool](a: f32) -> u32 { convert::f32_to_u32::<TO, FTZ>(a) }
        => native::to_integer(Lane::U32, TO, FTZ);
    F32ToS64[TO: u8, FTZ: bool](a: f32) -> i64 { convert::f32_to_s64::<TO, FTZ>(a) }
    F32ToU64[TO: u8, FTZ: bool](a: f32) -> u64 { convert::f32_to_u64::<TO, FTZ>(a) }
    F64ToS32[TO: u8](a: f64) -> i32 { convert::f64_to_s32::<TO>(a) }
    F64ToU32[TO: u8](a: f64) -> u32 { convert::f64_to_u32::<TO>(a) }
    F64ToS64[TO: u8](a: f64) -> i64 { convert::f64_to_s64::<TO>(a) }
    F64ToU64[TO: u8](a: f64) -> u64 { convert::f64_to_u64::<TO>(a) }
    S8ToF32(a: i8) -> f32 { a.into() }
    U8ToF32(a: u8) -> f32 { a.into() }
    S16ToF32(a: i16) -> f32 { a.into() } => Some(Operation::ToFloat(Lane::S16));
    U16ToF32(a: u16) -> f32 { a.into() } => Some(Operation::ToFloat(Lane::U16));
    S32ToF32(a: i32) -> f32 { a as f32 } => Some(Operation::ToFloat(Lane::S32));
    U32ToF32(a: u32) -> f32 { a as f32 } => Some(Operation::ToFloat(Lane::U32));
    S64ToF32(a: i64) -> f32 { a as f32 }
    U64ToF32(a: u64) -> f32 { a as f32 }
    S32ToF64(a: i32) -> f64 { a.into() } => Some(Operation::ToDouble(Lane::S32));
    U32ToF64(a: u32) -> f64 { a.into() } => Some(Operation::ToDouble(Lane::U32));
    S64ToF64(a: i64) -> f64 { a as f64 }
    U64ToF64(a: u64) -> f64 { a as f64 }
    RoundF32[TO: u8, FTZ: bool](a: f32) -> f32 { convert::round_f32::<TO, FTZ>(a) }
    RoundF64[TO: u8](a: f64) -> f64 { convert::round_f64::<TO>(a) }
    CanonicalF32(a: f32) -> f32 { float::finish::<true, false>(a) }
    SatF32[FTZ: bool](a: f32) -> f32 { convert::sat_f32::<FTZ>(a) } => native::unless(FTZ, Operation::Saturate);
    SatF64(a: f64) -> f64 { convert::sat_f64(a) }
    F64ToF32[FTZ: bool](a: f64) -> f32 { convert::f64_to_f32::<FTZ>(a) } => native::unless(FTZ, Operation::FromDouble);
    F32ToF64[FTZ: bool](a: f32) -> f64 {
        if FTZ { convert::flushed_f32_to_f64(a) } else { convert::f32_to_f64(a) }
    } => native::unless(FTZ, Operation::ToDouble(Lane::F32));
    F16ToF32(a: u16) -> f32 { half::f16_to_f32(a) } => Some(Operation::FromF16);
    Bf16ToF32[FTZ: bool](a: u16) -> u32 {
        // The bits move; an operation of single precision makes a NaN canonical.
        if FTZ { float::flush(half::bf16_to_f32(a)).to_bits() } else { u32::from(a) << 16 }
    } => native::unless(FTZ, Operation::FromBf16);
    F32ToF16[FTZ: bool](a: f32) -> u16 { half::f32_to_f16(float::flush_if::<FTZ>(a)) }
        => native::unless(FTZ, Operation::ToF16);
    F32ToBf16[FTZ: bool](a: f32) -> u16 { half::f32_to_bf16(float::flush_if::<FTZ>(a)) }
        => native::unless(FTZ, Operation::ToBf16);
    F32ToF16Finite[FTZ: bool](a: f32) -> u16 { half::f32_to_f16_finite(float::flush_if::<FTZ>(a)) }
    F32ToBf16Finite[FTZ: bool](a: f32) -> u16 { half::f32_to_bf16_finite(float::flush_if::<FTZ>(a)) }
    F64ToF16(a: f64) -> u16 { half::cvt_f64_to_f16(a) }
    F64ToBf16(a: f64) -> u16 { half::cvt_f64_to_bf16(a) }
}
