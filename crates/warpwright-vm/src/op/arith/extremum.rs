//! The smaller and the larger of values.

use crate::decode::{Decoder, Rows};
use crate::num::extremum::Extremum;
use crate::num::{half, integer};
use crate::op::lanes::flagged;
use crate::simd::{Lanes, lane_op, lanes};
use warpwright_ptx::ir::Type::*;
use warpwright_ptx::ir::{Dst, Src, Type};
use warpwright_ptx::op::family::Extrema as Op;

pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    match op {
        Op::Min(op) => {
            let form = Extremum { max: false, ftz: op.ftz, nan: op.nan, xorsign: op.xorsign, abs: op.abs };
            emit(d, form, op.relu, op.ty, op.d, [&op.a, &op.b], op.c.as_ref())
        }
        Op::Max(op) => {
            let form = Extremum { max: true, ftz: op.ftz, nan: op.nan, xorsign: op.xorsign, abs: op.abs };
            emit(d, form, op.relu, op.ty, op.d, [&op.a, &op.b], op.c.as_ref())
        }
    }
}

fn emit(
    d: &mut Decoder<'_, '_>,
    form: Extremum,
    relu: bool,
    ty: Type,
    dst: Dst,
    [a, b]: [&Src; 2],
    c: Option<&Src>,
) -> bool {
    if let Some(c) = c {
        let rows = d.rows(ty, dst, [a, b, c]);
        d.each3::<f32, f32, f32, f32>(rows, move |a, b, c| form.f32(form.f32(a, b), c));
        return true;
    }
    let rows = d.rows(ty, dst, [a, b]);
    if !relu && let Some(handlers) = handlers(form, ty) {
        d.emit(handlers, rows);
        return true;
    }
    match ty {
        F32 => d.each2::<f32, f32, f32>(rows, move |a, b| form.f32(a, b)),
        F16 => d.each2::<u16, u16, u16>(rows, move |a, b| form.f16(a, b)),
        BF16 => d.each2::<u16, u16, u16>(rows, move |a, b| form.bf16(a, b)),
        F16X2 => d.each2::<u32, u32, u32>(rows, move |a, b| half::both([a, b], |[a, b]| form.f16(a, b))),
        BF16X2 => d.each2::<u32, u32, u32>(rows, move |a, b| half::both([a, b], |[a, b]| form.bf16(a, b))),
        _ => return packed(d, form.max, relu, ty, rows),
    }
    true
}

/// The handlers of what programs use most.
fn handlers(form: Extremum, ty: Type) -> Option<Lanes> {
    Some(match (ty, form.max) {
        (U16, false) => lanes::<MinU16>(),
        (U16, true) => lanes::<MaxU16>(),
        (S16, false) => lanes::<MinS16>(),
        (S16, true) => lanes::<MaxS16>(),
        (U32, false) => lanes::<MinU32>(),
        (U32, true) => lanes::<MaxU32>(),
        (S32, false) => lanes::<MinS32>(),
        (S32, true) => lanes::<MaxS32>(),
        (U64, false) => lanes::<MinU64>(),
        (U64, true) => lanes::<MaxU64>(),
        (S64, false) => lanes::<MinS64>(),
        (S64, true) => lanes::<MaxS64>(),
        (F32, max) if !form.xorsign && !form.abs => flagged!(ExtremumF32, max, form.ftz, form.nan),
        (F64, max) => flagged!(ExtremumF64, max),
        _ => return None,
    })
}

/// Of packed integers, and of words with `.relu`, which limits the result from below by zero.
fn packed(d: &mut Decoder<'_, '_>, max: bool, relu: bool, ty: Type, rows: Rows) -> bool {
    let pick = move |[a, b]: [i32; 2]| {
        let picked = if max { a.max(b) } else { a.min(b) };
        if relu { picked.max(0) } else { picked }
    };
    match ty {
        S32 => d.each2::<i32, i32, i32>(rows, move |a, b| pick([a, b])),
        U16X2 => {
            d.each2::<u32, u32, u32>(rows, move |a, b| integer::packed::<16, false, 2>([a, b], pick));
        }
        S16X2 => {
            d.each2::<u32, u32, u32>(rows, move |a, b| integer::packed::<16, true, 2>([a, b], pick));
        }
        U8X4 => d.each2::<u32, u32, u32>(rows, move |a, b| integer::packed::<8, false, 2>([a, b], pick)),
        S8X4 => d.each2::<u32, u32, u32>(rows, move |a, b| integer::packed::<8, true, 2>([a, b], pick)),
        _ => return false,
    }
    true
}

lane_op! {
    MinU16(a: u16, b: u16) -> u16 { a.min(b) }
    MaxU16(a: u16, b: u16) -> u16 { a.max(b) }
    MinS16(a: i16, b: i16) -> i16 { a.min(b) }
    MaxS16(a: i16, b: i16) -> i16 { a.max(b) }
    MinU32(a: u32, b: u32) -> u32 { a.min(b) }
    MaxU32(a: u32, b: u32) -> u32 { a.max(b) }
    MinS32(a: i32, b: i32) -> i32 { a.min(b) }
    MaxS32(a: i32, b: i32) -> i32 { a.max(b) }
    MinU64(a: u64, b: u64) -> u64 { a.min(b) }
    MaxU64(a: u64, b: u64) -> u64 { a.max(b) }
    MinS64(a: i64, b: i64) -> i64 { a.min(b) }
    MaxS64(a: i64, b: i64) -> i64 { a.max(b) }
    ExtremumF32[MAX: bool, FTZ: bool, NAN: bool](a: f32, b: f32) -> f32 {
        Extremum { max: MAX, ftz: FTZ, nan: NAN, xorsign: false, abs: false }.f32(a, b)
    }
    ExtremumF64[MAX: bool](a: f64, b: f64) -> f64 {
        Extremum { max: MAX, ftz: false, nan: false, xorsign: false, abs: false }.f64(a, b)
    }
}
