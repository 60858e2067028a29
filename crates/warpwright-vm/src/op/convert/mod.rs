//! Copies and conversions.

mod mov;
mod space;

pub(crate) use mov::{Copy32, Copy64};

use crate::decode::{Decoder, Rows};
use crate::simd::{lane_op, lanes};
use warpwright_ptx::op::Op;

pub(crate) fn decode(op: &Op, d: &mut Decoder<'_, '_>) -> bool {
    match op {
        Op::Mov(op) => mov::mov(op, d),
        Op::Cvta(op) => space::cvta(op, d),
        Op::Isspacep(op) => space::isspacep(op, d),
        _ => return false,
    }
    true
}

lane_op! {
    LowHalf(a: u64) -> u32 { a as u32 }
    Widen(a: u32) -> u64 { a.into() }
}

/// `row = the low 32 bits of from`.
pub(crate) fn low_half(d: &mut Decoder<'_, '_>, row: u32, from: u32) {
    d.emit(lanes::<LowHalf>(), Rows { d: row, a: from, ..Rows::default() });
}

/// `row = from`, with zeros above.
pub(crate) fn widen(d: &mut Decoder<'_, '_>, row: u32, from: u32) {
    d.emit(lanes::<Widen>(), Rows { d: row, a: from, ..Rows::default() });
}
