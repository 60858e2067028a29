//! Copies and conversions.

mod mov;
mod packed;
mod scalar;
mod space;

pub(crate) use space::shared_to_generic;

pub(crate) use mov::{Copy32, Copy64};

use crate::decode::{Decoder, Rows};
use crate::native::Operation;
use crate::simd::{lane_op, lanes};
use warpwright_ptx::op::convert::Cvt;
use warpwright_ptx::op::family::Convert as Op;

pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    match op {
        Op::Mov(op) => mov::mov(op, d),
        Op::Cvt(op) if is_scalar(op) => scalar::cvt(op, d),
        Op::Cvt(op) => return packed::cvt(op, d),
        Op::CvtPack(op) => packed::pack(op, d),
        Op::Cvta(op) => space::cvta(op, d),
        Op::Isspacep(op) => space::isspacep(op, d),
        Op::CvtScaledTwo(op) => return packed::scaled(op, d),
        Op::CvtRs(op) => return packed::at_random(op, d),
        Op::CvtScaledOne(_) => return false,
    }
    true
}

/// Whether single values are converted.
fn is_scalar(op: &Cvt) -> bool {
    use warpwright_ptx::ir::Type::*;
    [op.d_type, op.a_type].iter().all(|ty| ty.is_integer() || matches!(ty, F16 | BF16 | F32 | F64))
}

lane_op! {
    LowHalf(a: u64) -> u32 { a as u32 } => Some(Operation::LowHalf);
    Widen(a: u32) -> u64 { a.into() } => Some(Operation::Extend { bits: 32, signed: false, wide: true });
}

/// `row = the low 32 bits of from`.
pub(crate) fn low_half(d: &mut Decoder<'_, '_>, row: u32, from: u32) {
    d.emit(lanes::<LowHalf>(), Rows { d: row, a: from, ..Rows::default() });
}

/// `row = from`, both of 64 bits.
pub(crate) fn copy64(d: &mut Decoder<'_, '_>, row: u32, from: u32) {
    d.emit(lanes::<Copy64>(), Rows { d: row, a: from, ..Rows::default() });
}

/// `row = from`, with zeros above.
pub(crate) fn widen(d: &mut Decoder<'_, '_>, row: u32, from: u32) {
    d.emit(lanes::<Widen>(), Rows { d: row, a: from, ..Rows::default() });
}
