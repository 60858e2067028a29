//! Signs and classes of numbers.

use crate::decode::Decoder;
use crate::native;
use crate::num::{float, half, integer};
use crate::op::lanes::flagged;
use crate::simd::{lane_op, lanes};
use std::num::FpCategory;
use warpwright_ptx::ir::Type::*;
use warpwright_ptx::op::arith::FloatClass;
use warpwright_ptx::op::family::Signs as Op;

pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    match op {
        Op::Abs(op) => {
            let handlers = match op.ty {
                S16 => lanes::<AbsS16>(),
                S32 => lanes::<AbsS32>(),
                S64 => lanes::<AbsS64>(),
                F16 => flagged!(AbsF16, op.ftz),
                F16X2 => flagged!(AbsF16x2, op.ftz),
                BF16 => lanes::<AbsBf16>(),
                BF16X2 => lanes::<AbsBf16x2>(),
                F32 => flagged!(AbsF32, op.ftz),
                F64 => lanes::<AbsF64>(),
                _ => return false,
            };
            d.emit_on(handlers, op.ty, op.d, [&op.a]);
        }
        Op::Neg(op) => {
            let handlers = match op.ty {
                S16 => lanes::<NegS16>(),
                S32 => lanes::<NegS32>(),
                S64 => lanes::<NegS64>(),
                S8X4 => lanes::<NegS8x4>(),
                F16 => flagged!(NegF16, op.ftz),
                F16X2 => flagged!(NegF16x2, op.ftz),
                BF16 => lanes::<NegBf16>(),
                BF16X2 => lanes::<NegBf16x2>(),
                F32 => flagged!(NegF32, op.ftz),
                F64 => lanes::<NegF64>(),
                _ => return false,
            };
            d.emit_on(handlers, op.ty, op.d, [&op.a]);
        }
        Op::Copysign(op) => {
            let handlers = if op.ty == F64 { lanes::<CopysignF64>() } else { lanes::<CopysignF32>() };
            d.emit_on(handlers, op.ty, op.d, [&op.a, &op.b]);
        }
        Op::Testp(op) => {
            let rows = d.rows(op.ty, op.p, [&op.a]);
            let class = op.class;
            if op.ty == F64 {
                d.each1::<f64, bool>(rows, move |a| is_of(class, a.classify()));
            } else {
                d.each1::<f32, bool>(rows, move |a| is_of(class, a.classify()));
            }
        }
    }
    true
}

fn is_of(class: FloatClass, category: FpCategory) -> bool {
    use FpCategory::*;
    match class {
        FloatClass::Finite => !matches!(category, Infinite | Nan),
        FloatClass::Infinite => category == Infinite,
        FloatClass::Number => category != Nan,
        FloatClass::NotANumber => category == Nan,
        // Zeros count as normal numbers.
        FloatClass::Normal => matches!(category, Normal | Zero),
        FloatClass::Subnormal => category == Subnormal,
    }
}

lane_op! {
    AbsS16(a: i16) -> i16 { a.wrapping_abs() }
    AbsS32(a: i32) -> i32 { a.wrapping_abs() }
    AbsS64(a: i64) -> i64 { a.wrapping_abs() }
    AbsF16[FTZ: bool](a: u16) -> u16 { half::abs_f16::<FTZ>(a) }
    AbsF16x2[FTZ: bool](a: u32) -> u32 { half::both([a], #[inline(always)] |[a]| half::abs_f16::<FTZ>(a)) }
    AbsBf16(a: u16) -> u16 { half::abs_bf16(a) }
    AbsBf16x2(a: u32) -> u32 { half::both([a], #[inline(always)] |[a]| half::abs_bf16(a)) }
    AbsF32[FTZ: bool](a: f32) -> f32 { float::abs::<FTZ>(a) } => native::unless(FTZ, native::Operation::Absolute);
    AbsF64(a: f64) -> f64 { float::abs_f64(a) } => native::nearest_double(native::Double::Absolute);
    NegS16(a: i16) -> i16 { a.wrapping_neg() }
    NegS32(a: i32) -> i32 { a.wrapping_neg() }
    NegS64(a: i64) -> i64 { a.wrapping_neg() }
    NegS8x4(a: u32) -> u32 { integer::packed::<8, true, 1>([a], |[a]| -a) }
    NegF16[FTZ: bool](a: u16) -> u16 { half::neg_f16::<FTZ>(a) }
    NegF16x2[FTZ: bool](a: u32) -> u32 { half::both([a], #[inline(always)] |[a]| half::neg_f16::<FTZ>(a)) }
    NegBf16(a: u16) -> u16 { half::neg_bf16(a) }
    NegBf16x2(a: u32) -> u32 { half::both([a], #[inline(always)] |[a]| half::neg_bf16(a)) }
    NegF32[FTZ: bool](a: f32) -> f32 { float::neg::<FTZ>(a) } => native::unless(FTZ, native::Operation::Negate);
    NegF64(a: f64) -> f64 { float::neg_f64(a) } => native::nearest_double(native::Double::Negate);
    CopysignF32(a: f32, b: f32) -> f32 { float::copysign(a, b) }
    CopysignF64(a: f64, b: f64) -> f64 { float::copysign_f64(a, b) }
}
