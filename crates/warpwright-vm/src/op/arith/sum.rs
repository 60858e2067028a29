//! Sums and differences.

use super::{Rounded, parts};
use crate::decode::{Decoder, Rows};
use crate::machine::Cell;
use crate::native::{self, Arithmetic, Binary};
use crate::num::float::Operation;
use crate::num::integer::{self, Integer};
use crate::num::{float, half};
use crate::op::lanes::{direction, flagged, integers, limit, limited, to_nearest};
use crate::simd::{Lanes, lane_op, lanes};
use warpwright_ptx::ir::Type::*;
use warpwright_ptx::ir::{Dst, Imm, Rounding, Src, Type};
use warpwright_ptx::op::family::Sums as Op;

pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    macro_rules! sum {
        ($op:ident, $subtract:literal) => {{
            let (rounding, ftz, sat, cc, ty) = ($op.rounding, $op.ftz, $op.sat, $op.cc, $op.ty);
            let sum = Sum { subtract: $subtract, rounding, ftz, sat, cc, ty, a_type: $op.a_type };
            sum.emit(d, $op.d, &$op.a, &$op.b)
        }};
    }
    match op {
        Op::Add(op) => sum!(op, false),
        Op::Sub(op) => sum!(op, true),
        Op::Addc(op) => carrying(d, op.ty, false, (true, op.cc), op.d, [&op.a, &op.b]),
        Op::Subc(op) => carrying(d, op.ty, true, (true, op.cc), op.d, [&op.a, &op.b]),
        Op::Sad(op) => {
            let sources = [&op.a, &op.b, &op.c];
            match op.ty {
                U16 => sad::<u16>(d, op.ty, op.d, sources),
                S16 => sad::<i16>(d, op.ty, op.d, sources),
                U32 => sad::<u32>(d, op.ty, op.d, sources),
                S32 => sad::<i32>(d, op.ty, op.d, sources),
                U64 => sad::<u64>(d, op.ty, op.d, sources),
                S64 => sad::<i64>(d, op.ty, op.d, sources),
                _ => return false,
            }
            true
        }
    }
}

/// `row = a + offset`, in as many bits as an integer register has.
pub(crate) fn plus_constant(d: &mut Decoder<'_, '_>, row: u32, a: u32, offset: i64, bits: u32) {
    let (handlers, b) = match bits {
        16 => (lanes::<AddInt<u16>>(), d.constant32(offset as u32 & 0xffff)),
        64 => (lanes::<AddInt<u64>>(), d.constant64(offset as u64)),
        _ => (lanes::<AddInt<u32>>(), d.constant32(offset as u32)),
    };
    d.emit(handlers, Rows { d: row, a, b, ..Rows::default() });
}

fn sad<T: Cell + Integer + 'static>(d: &mut Decoder<'_, '_>, ty: Type, dst: Dst, sources: [&Src; 3]) {
    let rows = d.rows(ty, dst, sources);
    d.each3::<T, T, T, T>(rows, |a, b, c| a.distance_plus(b, c));
}

/// A sum or difference.
struct Sum {
    subtract: bool,
    rounding: Option<Rounding>,
    ftz: bool,
    sat: bool,
    cc: bool,
    ty: Type,
    a_type: Option<Type>,
}

impl Sum {
    fn emit(self, d: &mut Decoder<'_, '_>, dst: Dst, a: &Src, b: &Src) -> bool {
        if let Some(a_type) = self.a_type {
            return self.mixed(d, a_type, dst, a, b);
        }
        if self.cc {
            return carrying(d, self.ty, self.subtract, (false, true), dst, [a, b]);
        }
        if !to_nearest(self.rounding) || self.ty == F32X2 {
            let operation = if self.subtract { Operation::Sub } else { Operation::Add };
            let Sum { rounding, ftz, sat, ty, .. } = self;
            return Rounded { operation, rounding, ftz, sat, relu: false, ty }.emit(d, dst, [a, b]);
        }
        match self.handlers() {
            Some(handlers) => d.emit_on(handlers, self.ty, dst, [a, b]),
            None => return self.packed(d, dst, a, b),
        }
        true
    }

    fn handlers(&self) -> Option<Lanes> {
        let limit = limit(self.sat, false);
        Some(match (self.subtract, self.ty, self.sat) {
            (false, U32, true) => lanes::<AddSatU32>(),
            (false, S32, true) => lanes::<AddSatS32>(),
            (false, F32, _) => flagged!(AddF32, self.ftz, self.sat),
            (false, F64, _) => lanes::<AddF64>(),
            (false, F16, _) => limited!(AddF16, self.ftz, limit),
            (false, F16X2, _) => limited!(AddF16x2, self.ftz, limit),
            (false, BF16, _) => lanes::<AddBf16>(),
            (false, BF16X2, _) => lanes::<AddBf16x2>(),
            (true, S32, true) => lanes::<SubSatS32>(),
            (true, F32, _) => flagged!(SubF32, self.ftz, self.sat),
            (true, F64, _) => lanes::<SubF64>(),
            (true, F16, _) => limited!(SubF16, self.ftz, limit),
            (true, F16X2, _) => limited!(SubF16x2, self.ftz, limit),
            (true, BF16, _) => lanes::<SubBf16>(),
            (true, BF16X2, _) => lanes::<SubBf16x2>(),
            (false, ty, _) => integers!(AddInt, ty, else return None),
            (true, ty, _) => integers!(SubInt, ty, else return None),
        })
    }

    /// Of packed integers.
    fn packed(&self, d: &mut Decoder<'_, '_>, dst: Dst, a: &Src, b: &Src) -> bool {
        let rows = d.rows(self.ty, dst, [a, b]);
        let (sat, subtract) = (self.sat, self.subtract);
        let combine = move |[a, b]: [i32; 2], bits: u32, signed: bool| {
            let sum = if subtract { a - b } else { a + b };
            let (low, high) = integer::range(bits, signed);
            if sat { sum.clamp(low as i32, high as i32) } else { sum }
        };
        match self.ty {
            U16X2 => parts::<16, false>(d, rows, move |parts| combine(parts, 16, false)),
            S16X2 => parts::<16, true>(d, rows, move |parts| combine(parts, 16, true)),
            U8X4 => parts::<8, false>(d, rows, move |parts| combine(parts, 8, false)),
            S8X4 => parts::<8, true>(d, rows, move |parts| combine(parts, 8, true)),
            _ => return false,
        }
        true
    }

    /// Of an `.f32` and a half, in `.f32`.
    fn mixed(&self, d: &mut Decoder<'_, '_>, a_type: Type, dst: Dst, a: &Src, b: &Src) -> bool {
        let mut rows = d.rows(a_type, dst, [a]);
        rows.b = d.src32(b, F32);
        let operation = if self.subtract { Operation::Sub } else { Operation::Add };
        let (direction, sat) = (direction(self.rounding), self.sat);
        let widen = if a_type == F16 { half::f16_to_f32 } else { half::bf16_to_f32 };
        d.each2::<u16, f32, f32>(rows, move |a, b| {
            float::directed_f32(operation, direction, false, sat, [widen(a), b, 0.0])
        });
        true
    }
}

/// A sum or difference that reads or writes the carry flag. Signed types do the same as unsigned ones.
///
/// After a difference the flag is what hardware has, which adds the complement: set where nothing was
/// borrowed. The ISA calls it the borrow; but compilers' own divisions of 128 bits add it (`addc` after
/// `sub.cc`), so the two kinds of chain share it.
fn carrying(
    d: &mut Decoder<'_, '_>,
    ty: Type,
    subtract: bool,
    flag: (bool, bool),
    dst: Dst,
    [a, b]: [&Src; 2],
) -> bool {
    let zero = Src::Imm(Imm::Int(0));
    let rows = d.rows(ty, dst, [a, b, &zero]);
    match ty {
        U32 | S32 => carried::<u32>(d, rows, subtract, flag),
        U64 | S64 => carried::<u64>(d, rows, subtract, flag),
        _ => return false,
    }
    true
}

fn carried<T: Cell + Integer>(d: &mut Decoder<'_, '_>, rows: Rows, subtract: bool, flag: (bool, bool)) {
    if !subtract {
        return d.each_with_carry::<T>(rows, flag, |a, b, _, carry| a.carry(b, carry));
    }
    d.each_with_carry::<T>(rows, flag, move |a, b, _, carry| {
        let (difference, borrow) = a.borrow(b, flag.0 && !carry);
        (difference, !borrow)
    });
}

lane_op! {
    AddInt<T: Integer>(a: T, b: T) -> T { a.plus(b) } => native::binary(Binary::Add, T::LANE);
    SubInt<T: Integer>(a: T, b: T) -> T { a.minus(b) } => native::binary(Binary::Sub, T::LANE);
    AddSatU32(a: u32, b: u32) -> u32 { a.saturating_add(b) }
    AddSatS32(a: i32, b: i32) -> i32 { a.saturating_add(b) }
    AddF32[FTZ: bool, SAT: bool](a: f32, b: f32) -> f32 { float::add::<FTZ, SAT>(a, b) }
        => native::nearest(Arithmetic::Add, FTZ, SAT);
    AddF64(a: f64, b: f64) -> f64 { float::add_f64(a, b) } => native::nearest_double(native::Double::Add);
    AddF16[FTZ: bool, LIMIT: u8](a: u16, b: u16) -> u16 { half::add_f16::<FTZ, LIMIT>(a, b) }
        => native::half(Arithmetic::Add, FTZ, LIMIT, false);
    AddF16x2[FTZ: bool, LIMIT: u8](a: u32, b: u32) -> u32 {
        half::both([a, b], #[inline(always)] |[a, b]| half::add_f16::<FTZ, LIMIT>(a, b))
    } => native::half(Arithmetic::Add, FTZ, LIMIT, true);
    AddBf16(a: u16, b: u16) -> u16 { half::add_bf16::<{ half::PLAIN }>(a, b) }
    AddBf16x2(a: u32, b: u32) -> u32 {
        half::both([a, b], #[inline(always)] |[a, b]| half::add_bf16::<{ half::PLAIN }>(a, b))
    }
    SubSatS32(a: i32, b: i32) -> i32 { a.saturating_sub(b) }
    SubF32[FTZ: bool, SAT: bool](a: f32, b: f32) -> f32 { float::sub::<FTZ, SAT>(a, b) }
        => native::nearest(Arithmetic::Sub, FTZ, SAT);
    SubF64(a: f64, b: f64) -> f64 { float::sub_f64(a, b) } => native::nearest_double(native::Double::Sub);
    SubF16[FTZ: bool, LIMIT: u8](a: u16, b: u16) -> u16 { half::sub_f16::<FTZ, LIMIT>(a, b) }
        => native::half(Arithmetic::Sub, FTZ, LIMIT, false);
    SubF16x2[FTZ: bool, LIMIT: u8](a: u32, b: u32) -> u32 {
        half::both([a, b], #[inline(always)] |[a, b]| half::sub_f16::<FTZ, LIMIT>(a, b))
    } => native::half(Arithmetic::Sub, FTZ, LIMIT, true);
    SubBf16(a: u16, b: u16) -> u16 { half::sub_bf16::<{ half::PLAIN }>(a, b) }
    SubBf16x2(a: u32, b: u32) -> u32 {
        half::both([a, b], #[inline(always)] |[a, b]| half::sub_bf16::<{ half::PLAIN }>(a, b))
    }
}
