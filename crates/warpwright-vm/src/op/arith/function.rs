//! Quotients, roots and approximated functions.

use super::Rounded;
use crate::decode::Decoder;
use crate::native;
use crate::num::float::Operation;
use crate::num::integer::Integer;
use crate::num::{approx, float, half};
use crate::op::lanes::{flagged, integers, to_nearest};
use crate::simd::{Lanes, lane_op, lanes};
use warpwright_ptx::ir::Type::*;
use warpwright_ptx::ir::{Dst, Rounding, Src, Type};
use warpwright_ptx::op::family::Functions as Op;

pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    match op {
        Op::Div(op) => {
            let sources = [&op.a, &op.b];
            if !to_nearest(op.rounding) {
                return rounded(d, Operation::Div, op.rounding, op.ftz, op.ty, op.d, sources);
            }
            let handlers = match op.ty {
                F32 if op.approx => flagged!(DivApproxF32, op.ftz),
                F32 => flagged!(DivF32, op.ftz),
                F64 => lanes::<DivF64>(),
                ty => integers!(Div, ty, else return false),
            };
            d.emit_on(handlers, op.ty, op.d, sources);
        }
        Op::Rem(op) => {
            let handlers = integers!(Rem, op.ty, else return false);
            d.emit_on(handlers, op.ty, op.d, [&op.a, &op.b]);
        }
        Op::Rcp(op) if !to_nearest(op.rounding) => {
            return rounded(d, Operation::Rcp, op.rounding, op.ftz, op.ty, op.d, [&op.a]);
        }
        Op::Rcp(op) => {
            let handlers = match op.ty {
                F32 => flagged!(RcpF32, op.ftz),
                F64 if op.approx => lanes::<RcpApproxF64>(),
                F64 => lanes::<RcpF64>(),
                _ => return false,
            };
            d.emit_on(handlers, op.ty, op.d, [&op.a]);
        }
        Op::Sqrt(op) if !to_nearest(op.rounding) => {
            return rounded(d, Operation::Sqrt, op.rounding, op.ftz, op.ty, op.d, [&op.a]);
        }
        Op::Sqrt(op) => {
            let handlers = if op.ty == F64 { lanes::<SqrtF64>() } else { flagged!(SqrtF32, op.ftz) };
            d.emit_on(handlers, op.ty, op.d, [&op.a]);
        }
        Op::Rsqrt(op) => {
            let handlers = match (op.ty, op.ftz) {
                (F64, true) => lanes::<RsqrtFtzF64>(),
                (F64, false) => lanes::<RsqrtF64>(),
                _ => flagged!(RsqrtF32, op.ftz),
            };
            d.emit_on(handlers, op.ty, op.d, [&op.a]);
        }
        Op::Sin(op) => d.emit_on(flagged!(SinF32, op.ftz), op.ty, op.d, [&op.a]),
        Op::Cos(op) => d.emit_on(flagged!(CosF32, op.ftz), op.ty, op.d, [&op.a]),
        Op::Lg2(op) => d.emit_on(flagged!(Lg2F32, op.ftz), op.ty, op.d, [&op.a]),
        Op::Ex2(op) => {
            let Some(handlers) = exponential(op.ty, op.ftz) else { return false };
            d.emit_on(handlers, op.ty, op.d, [&op.a]);
        }
        Op::Tanh(op) => {
            let handlers = match op.ty {
                F32 => lanes::<TanhF32>(),
                F16 => lanes::<TanhF16>(),
                F16X2 => lanes::<TanhF16x2>(),
                BF16 => lanes::<TanhBf16>(),
                BF16X2 => lanes::<TanhBf16x2>(),
                _ => return false,
            };
            d.emit_on(handlers, op.ty, op.d, [&op.a]);
        }
    }
    true
}

fn exponential(ty: Type, ftz: bool) -> Option<Lanes> {
    Some(match ty {
        F32 => flagged!(Ex2F32, ftz),
        F16 => lanes::<Ex2F16>(),
        F16X2 => lanes::<Ex2F16x2>(),
        BF16 => lanes::<Ex2Bf16>(),
        BF16X2 => lanes::<Ex2Bf16x2>(),
        _ => return None,
    })
}

fn rounded<const N: usize>(
    d: &mut Decoder<'_, '_>,
    operation: Operation,
    rounding: Option<Rounding>,
    ftz: bool,
    ty: Type,
    dst: Dst,
    sources: [&Src; N],
) -> bool {
    Rounded { operation, rounding, ftz, sat: false, relu: false, ty }.emit(d, dst, sources)
}

lane_op! {
    Div<T: Integer>(a: T, b: T) -> T { a.quotient(b) }
    Rem<T: Integer>(a: T, b: T) -> T { a.remainder(b) }
    DivF32[FTZ: bool](a: f32, b: f32) -> f32 { float::div::<FTZ>(a, b) } => native::unless(FTZ, native::Operation::Div);
    DivApproxF32[FTZ: bool](a: f32, b: f32) -> f32 { approx::div::<FTZ>(a, b) }
    DivF64(a: f64, b: f64) -> f64 { float::div_f64(a, b) } => native::nearest_double(native::Double::Div);
    RcpF32[FTZ: bool](a: f32) -> f32 { float::rcp::<FTZ>(a) } => native::unless(FTZ, native::Operation::Reciprocal);
    RcpF64(a: f64) -> f64 { float::rcp_f64(a) } => native::nearest_double(native::Double::Reciprocal);
    RcpApproxF64(a: f64) -> f64 { approx::rcp_f64(a) }
    SqrtF32[FTZ: bool](a: f32) -> f32 { float::sqrt::<FTZ>(a) } => native::unless(FTZ, native::Operation::Root);
    SqrtF64(a: f64) -> f64 { float::sqrt_f64(a) } => native::nearest_double(native::Double::Root);
    RsqrtF32[FTZ: bool](a: f32) -> f32 { approx::rsqrt::<FTZ>(a) } => Some(native::Operation::RootReciprocal(FTZ));
    RsqrtF64(a: f64) -> f64 { approx::rsqrt_f64(a) }
    RsqrtFtzF64(a: f64) -> f64 { approx::rsqrt_ftz_f64(a) }
    SinF32[FTZ: bool](a: f32) -> f32 { approx::sin::<FTZ>(a) }
    CosF32[FTZ: bool](a: f32) -> f32 { approx::cos::<FTZ>(a) }
    Lg2F32[FTZ: bool](a: f32) -> f32 { approx::lg2::<FTZ>(a) }
    Ex2F32[FTZ: bool](a: f32) -> f32 { approx::ex2::<FTZ>(a) } => Some(native::Operation::Exponential(FTZ));
    Ex2F16(a: u16) -> u16 { approx::ex2_f16(a) }
    Ex2F16x2(a: u32) -> u32 { half::both([a], #[inline(always)] |[a]| approx::ex2_f16(a)) }
    Ex2Bf16(a: u16) -> u16 { approx::ex2_bf16(a) }
    Ex2Bf16x2(a: u32) -> u32 { half::both([a], #[inline(always)] |[a]| approx::ex2_bf16(a)) }
    TanhF32(a: f32) -> f32 { approx::tanh(a) }
    TanhF16(a: u16) -> u16 { approx::tanh_f16(a) }
    TanhF16x2(a: u32) -> u32 { half::both([a], #[inline(always)] |[a]| approx::tanh_f16(a)) }
    TanhBf16(a: u16) -> u16 { approx::tanh_bf16(a) }
    TanhBf16x2(a: u32) -> u32 { half::both([a], #[inline(always)] |[a]| approx::tanh_bf16(a)) }
}
