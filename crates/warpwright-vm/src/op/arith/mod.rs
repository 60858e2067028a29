//! Integer and floating-point arithmetic.

use crate::decode::{Decoder, Rows};
use crate::simd::{Lanes, lane_op, lanes};
use warpwright_ptx::ir::Type::*;
use warpwright_ptx::op::Op;

pub(crate) fn decode(op: &Op, d: &mut Decoder<'_, '_>) -> bool {
    match op {
        Op::Add(op) if op.rounding.is_none() && !op.sat && !op.ftz => {
            let handlers = match op.ty {
                U32 | S32 => lanes::<AddInt32>(),
                U64 | S64 => lanes::<AddInt64>(),
                F32 => lanes::<AddF32>(),
                _ => return false,
            };
            binary(d, handlers, op.ty, op.d, &op.a, &op.b);
        }
        _ => return false,
    }
    true
}

fn binary(
    d: &mut Decoder<'_, '_>,
    handlers: Lanes,
    ty: warpwright_ptx::ir::Type,
    dst: warpwright_ptx::ir::Dst,
    a: &warpwright_ptx::ir::Src,
    b: &warpwright_ptx::ir::Src,
) {
    let rows = match ty.bits() {
        64 => Rows { a: d.src64(a, ty), b: d.src64(b, ty), ..Rows::default() },
        _ => Rows { a: d.src32(a, ty), b: d.src32(b, ty), ..Rows::default() },
    };
    let rows = Rows { d: d.dst(dst), ..rows };
    d.emit(handlers, rows);
}

lane_op! {
    AddInt32(a: u32, b: u32) -> u32 { a.wrapping_add(b) }
    AddInt64(a: u64, b: u64) -> u64 { a.wrapping_add(b) }
    AddF32(a: f32, b: f32) -> f32 { a + b }
}
