//! Products, alone and with a sum.

use super::Rounded;
use crate::decode::{Decoder, Rows};
use crate::machine::Cell;
use crate::native::{self, Arithmetic, Binary};
use crate::num::float::Operation;
use crate::num::integer::{self, Integer};
use crate::num::{float, half};
use crate::op::lanes::{direction, flagged, integers, limit, limited, to_nearest};
use crate::simd::{Lanes, lane_op, lanes};
use warpwright_ptx::ir::Type::*;
use warpwright_ptx::ir::{MulHalf, Type};
use warpwright_ptx::op::arith::{Fma, Mad, Mul};
use warpwright_ptx::op::family::Products as Op;

pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    match op {
        Op::Mul(op) => mul(op, d),
        Op::Mad(op) => mad(op, d),
        Op::Fma(op) => fma(op, d),
        Op::Madc(op) => {
            let rows = d.rows(op.ty, op.d, [&op.a, &op.b, &op.c]);
            product_with_carry(d, op.half == Some(MulHalf::Hi), op.ty, rows, (true, op.cc))
        }
        Op::Mul24(op) => {
            let handlers = match (op.half, op.ty) {
                (MulHalf::Hi, U32) => lanes::<Mul24HighU32>(),
                (MulHalf::Hi, _) => lanes::<Mul24HighS32>(),
                (_, U32) => lanes::<Mul24LowU32>(),
                _ => lanes::<Mul24LowS32>(),
            };
            d.emit_on(handlers, op.ty, op.d, [&op.a, &op.b]);
            true
        }
        Op::Mad24(op) => {
            let handlers = match (op.half, op.ty, op.sat) {
                (MulHalf::Hi, U32, _) => lanes::<Mad24HighU32>(),
                (MulHalf::Hi, _, true) => lanes::<Mad24HighSat>(),
                (MulHalf::Hi, ..) => lanes::<Mad24HighS32>(),
                (_, U32, _) => lanes::<Mad24LowU32>(),
                _ => lanes::<Mad24LowS32>(),
            };
            d.emit_on(handlers, op.ty, op.d, [&op.a, &op.b, &op.c]);
            true
        }
        Op::Clmad(op) => {
            let rows = d.rows(op.ty, op.d, [&op.a, &op.b, &op.c]);
            let high = op.half == MulHalf::Hi;
            d.each3::<u64, u64, u64, u64>(rows, move |a, b, c| integer::clmad(high, a, b, c));
            true
        }
        Op::Dp4a(op) => {
            let handlers = flagged!(Dp4a, op.a_type == S32, op.b_type == S32);
            d.emit_on(handlers, U32, op.d, [&op.a, &op.b, &op.c]);
            true
        }
        Op::Dp2a(op) => {
            let handlers = flagged!(Dp2a, op.a_type == S32, op.b_type == S32, op.half == MulHalf::Hi);
            d.emit_on(handlers, U32, op.d, [&op.a, &op.b, &op.c]);
            true
        }
    }
}

fn mul(op: &Mul, d: &mut Decoder<'_, '_>) -> bool {
    if op.ty.is_float() && (!to_nearest(op.rounding) || op.ty == F32X2) {
        let Mul { rounding, ftz, sat, ty, .. } = *op;
        let rounded = Rounded { operation: Operation::Mul, rounding, ftz, sat, relu: false, ty };
        return rounded.emit(d, op.d, [&op.a, &op.b]);
    }
    let limit = limit(op.sat, false);
    let handlers = match (op.half, op.ty) {
        (_, F32) => flagged!(MulF32, op.ftz, op.sat),
        (_, F64) => lanes::<MulF64>(),
        (_, F16) => limited!(MulF16, op.ftz, limit),
        (_, F16X2) => limited!(MulF16x2, op.ftz, limit),
        (_, BF16) => lanes::<MulBf16>(),
        (_, BF16X2) => lanes::<MulBf16x2>(),
        (Some(half), ty) => match integer_product(half, ty) {
            Some(handlers) => handlers,
            None => return false,
        },
        _ => return false,
    };
    d.emit_on(handlers, op.ty, op.d, [&op.a, &op.b]);
    true
}

/// Integers that have a type of twice the width, which registers hold.
trait Words: Integer<Wide: Integer + Cell> {}
impl<T: Integer<Wide: Integer + Cell>> Words for T {}

/// The handlers of an operation on integers that have a type of twice the width.
macro_rules! words {
    ($op:ident, $ty:expr, else $other:expr) => {
        match $ty {
            U16 => lanes::<$op<u16>>(),
            S16 => lanes::<$op<i16>>(),
            U32 => lanes::<$op<u32>>(),
            S32 => lanes::<$op<i32>>(),
            _ => $other,
        }
    };
}

fn integer_product(half: MulHalf, ty: Type) -> Option<Lanes> {
    Some(match half {
        MulHalf::Lo => integers!(MulLow, ty, else return None),
        MulHalf::Hi => integers!(MulHigh, ty, else return None),
        MulHalf::Wide => words!(MulWide, ty, else return None),
    })
}

fn mad(op: &Mad, d: &mut Decoder<'_, '_>) -> bool {
    if op.ty.is_float() {
        let Mad { rounding, ftz, sat, ty, .. } = *op;
        if !to_nearest(rounding) {
            let rounded = Rounded { operation: Operation::Fma, rounding, ftz, sat, relu: false, ty };
            return rounded.emit(d, op.d, [&op.a, &op.b, &op.c]);
        }
        let handlers = if ty == F64 { lanes::<FmaF64>() } else { flagged!(FmaF32, ftz, sat) };
        d.emit_on(handlers, ty, op.d, [&op.a, &op.b, &op.c]);
        return true;
    }
    let wide = op.half == Some(MulHalf::Wide);
    let mut rows = d.rows(op.ty, op.d, [&op.a, &op.b]);
    let sum = match op.ty {
        U16 if wide => U32,
        S16 if wide => S32,
        U32 if wide => U64,
        S32 if wide => S64,
        ty => ty,
    };
    rows.c = d.source(&op.c, sum);
    if op.cc {
        return product_with_carry(d, op.half == Some(MulHalf::Hi), op.ty, rows, (false, true));
    }
    let handlers = match op.half {
        Some(MulHalf::Lo) => integers!(MadLow, op.ty, else return false),
        Some(MulHalf::Hi) if op.sat && op.ty == S32 => lanes::<MadHighSat>(),
        Some(MulHalf::Hi) => integers!(MadHigh, op.ty, else return false),
        Some(MulHalf::Wide) => words!(MadWide, op.ty, else return false),
        None => return false,
    };
    d.emit(handlers, rows);
    true
}

/// A half of a product and `c`, with the carry flag read or written.
fn product_with_carry(d: &mut Decoder<'_, '_>, high: bool, ty: Type, rows: Rows, flag: (bool, bool)) -> bool {
    match ty {
        U32 => carried::<u32>(d, high, rows, flag),
        S32 => carried::<i32>(d, high, rows, flag),
        U64 => carried::<u64>(d, high, rows, flag),
        S64 => carried::<i64>(d, high, rows, flag),
        _ => return false,
    }
    true
}

fn carried<T: Cell + Integer>(d: &mut Decoder<'_, '_>, high: bool, rows: Rows, flag: (bool, bool)) {
    d.each_with_carry::<T>(rows, flag, move |a, b, c, carry| {
        let product = if high { a.mul_high(b) } else { a.mul_low(b) };
        product.carry(c, carry)
    });
}

fn fma(op: &Fma, d: &mut Decoder<'_, '_>) -> bool {
    let Fma { rounding, ftz, sat, relu, oob, ty, a_type, .. } = *op;
    let sources = [&op.a, &op.b, &op.c];
    if oob {
        d.unsupported("fma.oob", "the ISA does not say which NaN it takes for one that is out of bounds");
        return true;
    }
    if let Some(a_type) = a_type {
        let mut rows = d.rows(a_type, op.d, [&op.a, &op.b]);
        rows.c = d.src32(&op.c, F32);
        let direction = direction(rounding);
        let widen = if a_type == F16 { half::f16_to_f32 } else { half::bf16_to_f32 };
        d.each3::<u16, u16, f32, f32>(rows, move |a, b, c| {
            float::directed_f32(Operation::Fma, direction, false, sat, [widen(a), widen(b), c])
        });
        return true;
    }
    if !to_nearest(rounding) || ty == F32X2 {
        return Rounded { operation: Operation::Fma, rounding, ftz, sat, relu, ty }.emit(d, op.d, sources);
    }
    let limit = limit(sat, relu);
    let handlers = match ty {
        F32 => flagged!(FmaF32, ftz, sat),
        F64 => lanes::<FmaF64>(),
        F16 => limited!(FmaF16, ftz, limit),
        F16X2 => limited!(FmaF16x2, ftz, limit),
        BF16 => limited!(FmaBf16, limit),
        BF16X2 => limited!(FmaBf16x2, limit),
        _ => return false,
    };
    d.emit_on(handlers, ty, op.d, sources);
    true
}

lane_op! {
    MulLow<T: Integer>(a: T, b: T) -> T { a.mul_low(b) } => native::binary(Binary::Mul, T::LANE);
    MulHigh<T: Integer>(a: T, b: T) -> T { a.mul_high(b) } => native::mul_high(T::LANE);
    MulWide<T: Words>(a: T, b: T) -> T::Wide { a.mul_wide(b) } => native::wide(T::LANE, false);
    MadLow<T: Integer>(a: T, b: T, c: T) -> T { a.mul_low(b).plus(c) } => native::binary(Binary::MulAdd, T::LANE);
    MadHigh<T: Integer>(a: T, b: T, c: T) -> T { a.mul_high(b).plus(c) }
    MadWide<T: Words>(a: T, b: T, c: T::Wide) -> T::Wide { a.mul_wide(b).plus(c) } => native::wide(T::LANE, true);
    MadHighSat(a: i32, b: i32, c: i32) -> i32 { integer::mad_high_sat(a, b, c) }
    Mul24LowU32(a: u32, b: u32) -> u32 { integer::mul24_low_u32(a, b) }
    Mul24HighU32(a: u32, b: u32) -> u32 { integer::mul24_high_u32(a, b) }
    Mul24LowS32(a: i32, b: i32) -> i32 { integer::mul24_low_s32(a, b) }
    Mul24HighS32(a: i32, b: i32) -> i32 { integer::mul24_high_s32(a, b) }
    Mad24LowU32(a: u32, b: u32, c: u32) -> u32 { integer::mul24_low_u32(a, b).wrapping_add(c) }
    Mad24HighU32(a: u32, b: u32, c: u32) -> u32 { integer::mul24_high_u32(a, b).wrapping_add(c) }
    Mad24LowS32(a: i32, b: i32, c: i32) -> i32 { integer::mul24_low_s32(a, b).wrapping_add(c) }
    Mad24HighS32(a: i32, b: i32, c: i32) -> i32 { integer::mul24_high_s32(a, b).wrapping_add(c) }
    Mad24HighSat(a: i32, b: i32, c: i32) -> i32 { integer::mul24_high_s32(a, b).saturating_add(c) }
    Dp4a[A: bool, B: bool](a: u32, b: u32, c: u32) -> u32 { integer::dp4a::<A, B>(a, b, c) }
        => Some(native::Operation::Dp4a([A, B]));
    Dp2a[A: bool, B: bool, HIGH: bool](a: u32, b: u32, c: u32) -> u32 {
        integer::dp2a::<A, B, HIGH>(a, b, c)
    }
    MulF32[FTZ: bool, SAT: bool](a: f32, b: f32) -> f32 { float::mul::<FTZ, SAT>(a, b) }
        => native::nearest(Arithmetic::Mul, FTZ, SAT);
    MulF64(a: f64, b: f64) -> f64 { float::mul_f64(a, b) } => native::nearest_double(native::Double::Mul);
    MulF16[FTZ: bool, LIMIT: u8](a: u16, b: u16) -> u16 { half::mul_f16::<FTZ, LIMIT>(a, b) }
        => native::half(Arithmetic::Mul, FTZ, LIMIT, false);
    MulF16x2[FTZ: bool, LIMIT: u8](a: u32, b: u32) -> u32 {
        half::both([a, b], #[inline(always)] |[a, b]| half::mul_f16::<FTZ, LIMIT>(a, b))
    } => native::half(Arithmetic::Mul, FTZ, LIMIT, true);
    MulBf16(a: u16, b: u16) -> u16 { half::mul_bf16::<{ half::PLAIN }>(a, b) }
    MulBf16x2(a: u32, b: u32) -> u32 {
        half::both([a, b], #[inline(always)] |[a, b]| half::mul_bf16::<{ half::PLAIN }>(a, b))
    }
    FmaF32[FTZ: bool, SAT: bool](a: f32, b: f32, c: f32) -> f32 { float::fma::<FTZ, SAT>(a, b, c) }
        => native::nearest(Arithmetic::MulAdd, FTZ, SAT);
    FmaF64(a: f64, b: f64, c: f64) -> f64 { float::fma_f64(a, b, c) } => native::nearest_double(native::Double::MulAdd);
    FmaF16[FTZ: bool, LIMIT: u8](a: u16, b: u16, c: u16) -> u16 { half::fma_f16::<FTZ, LIMIT>(a, b, c) }
        => native::half(Arithmetic::MulAdd, FTZ, LIMIT, false);
    FmaF16x2[FTZ: bool, LIMIT: u8](a: u32, b: u32, c: u32) -> u32 {
        half::both([a, b, c], #[inline(always)] |[a, b, c]| half::fma_f16::<FTZ, LIMIT>(a, b, c))
    } => native::half(Arithmetic::MulAdd, FTZ, LIMIT, true);
    FmaBf16[LIMIT: u8](a: u16, b: u16, c: u16) -> u16 { half::fma_bf16::<LIMIT>(a, b, c) }
    FmaBf16x2[LIMIT: u8](a: u32, b: u32, c: u32) -> u32 {
        half::both([a, b, c], #[inline(always)] |[a, b, c]| half::fma_bf16::<LIMIT>(a, b, c))
    }
}
