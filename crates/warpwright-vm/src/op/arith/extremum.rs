//! Minimum and maximum.

use super::parts;
use crate::decode::{Decoder, Rows};
use crate::native::{self, Binary};
use crate::num::extremum::Extremum;
use crate::num::half;
use crate::num::integer::Integer;
use crate::op::lanes::{flagged, integers};
use crate::simd::{Lanes, lane_op};
use warpwright_ptx::ir::Type::*;
use warpwright_ptx::ir::{Dst, Src, Type};
use warpwright_ptx::op::family::Extrema as Op;

pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    macro_rules! extremum {
        ($op:ident, $max:literal) => {{
            let form = Extremum { max: $max, ftz: $op.ftz, nan: $op.nan, xorsign: $op.xorsign, abs: $op.abs };
            emit(d, form, $op.relu, $op.ty, $op.d, [&$op.a, &$op.b], $op.c.as_ref())
        }};
    }
    match op {
        Op::Min(op) => extremum!(op, false),
        Op::Max(op) => extremum!(op, true),
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
        (F32, max) if !form.xorsign && !form.abs => flagged!(ExtremumF32, max, form.ftz, form.nan),
        (F64, max) => flagged!(ExtremumF64, max),
        (ty, false) => integers!(Min, ty, else return None),
        (ty, true) => integers!(Max, ty, else return None),
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
        U16X2 => parts::<16, false>(d, rows, pick),
        S16X2 => parts::<16, true>(d, rows, pick),
        U8X4 => parts::<8, false>(d, rows, pick),
        S8X4 => parts::<8, true>(d, rows, pick),
        _ => return false,
    }
    true
}

lane_op! {
    Min<T: Integer>(a: T, b: T) -> T { a.min(b) } => native::binary(Binary::Min, T::LANE);
    Max<T: Integer>(a: T, b: T) -> T { a.max(b) } => native::binary(Binary::Max, T::LANE);
    ExtremumF32[MAX: bool, FTZ: bool, NAN: bool](a: f32, b: f32) -> f32 {
        Extremum { max: MAX, ftz: FTZ, nan: NAN, xorsign: false, abs: false }.f32(a, b)
    } => native::unless(FTZ, native::Operation::Extremum { max: MAX, nan: NAN });
    ExtremumF64[MAX: bool](a: f64, b: f64) -> f64 {
        Extremum { max: MAX, ftz: false, nan: false, xorsign: false, abs: false }.f64(a, b)
    }
}
