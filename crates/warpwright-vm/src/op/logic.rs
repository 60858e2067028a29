//! Bitwise logic, shifts and bit fields.

use super::lanes::flagged;
use crate::decode::{Decoder, Rows, immediate};
use crate::machine::{Inst, LANES, Machine, Step, map3};
use crate::num::bits::{self, permute};
use crate::simd::{Handler, LaneOp, Lanes, lane_op, lanes};
use warpwright_ptx::ir::Type::*;
use warpwright_ptx::ir::{BoolOp, Dst, Src, Type};
use warpwright_ptx::op::family::Logic as Op;
use warpwright_ptx::op::logic::{Lop3, PermuteMode, ShiftDirection, ShiftMode};

pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    match op {
        Op::And(op) if op.ty == Pred => predicates(d, op.d, &op.a, &op.b, |m, i| combine(m, i, |a, b| a & b)),
        Op::Or(op) if op.ty == Pred => predicates(d, op.d, &op.a, &op.b, |m, i| combine(m, i, |a, b| a | b)),
        Op::Xor(op) if op.ty == Pred => predicates(d, op.d, &op.a, &op.b, |m, i| combine(m, i, |a, b| a ^ b)),
        Op::Not(op) if op.ty == Pred => predicates(d, op.d, &op.a, &op.a, |m, i| combine(m, i, |a, _| !a)),
        Op::And(op) => {
            let handlers = if op.ty == B64 { lanes::<And64>() } else { lanes::<And32>() };
            d.emit_on(handlers, op.ty, op.d, [&op.a, &op.b]);
        }
        Op::Or(op) => {
            let handlers = if op.ty == B64 { lanes::<Or64>() } else { lanes::<Or32>() };
            d.emit_on(handlers, op.ty, op.d, [&op.a, &op.b]);
        }
        Op::Xor(op) => {
            let handlers = if op.ty == B64 { lanes::<Xor64>() } else { lanes::<Xor32>() };
            d.emit_on(handlers, op.ty, op.d, [&op.a, &op.b]);
        }
        Op::Not(op) => d.emit_on(
            sized(op.ty, lanes::<Not16>(), lanes::<Not32>(), lanes::<Not64>()),
            op.ty,
            op.d,
            [&op.a],
        ),
        Op::Cnot(op) => {
            let handlers = sized(op.ty, lanes::<Cnot16>(), lanes::<Cnot32>(), lanes::<Cnot64>());
            d.emit_on(handlers, op.ty, op.d, [&op.a]);
        }
        Op::Lop3(op) => lop3(op, d),
        Op::Shl(op) => {
            let handlers = sized(op.ty, lanes::<Shl16>(), lanes::<Shl32>(), lanes::<Shl64>());
            shift(d, handlers, op.ty, op.d, &op.a, &op.b);
        }
        Op::Shr(op) => {
            let handlers = if op.ty.is_signed() {
                sized(op.ty, lanes::<ShrS16>(), lanes::<ShrS32>(), lanes::<ShrS64>())
            } else {
                sized(op.ty, lanes::<ShrU16>(), lanes::<ShrU32>(), lanes::<ShrU64>())
            };
            shift(d, handlers, op.ty, op.d, &op.a, &op.b);
        }
        Op::Shf(op) => {
            let wrap = op.mode == ShiftMode::Wrap;
            let handlers = match op.direction {
                ShiftDirection::Left => flagged!(FunnelLeft, wrap),
                ShiftDirection::Right => flagged!(FunnelRight, wrap),
            };
            d.emit_on(handlers, B32, op.d, [&op.a, &op.b, &op.c]);
        }
        Op::Bfe(op) => {
            let handlers = match op.ty {
                U32 => lanes::<BfeU32>(),
                S32 => lanes::<BfeS32>(),
                U64 => lanes::<BfeU64>(),
                _ => lanes::<BfeS64>(),
            };
            let (a, b, c) = (d.source(&op.a, op.ty), d.src32(&op.b, U32), d.src32(&op.c, U32));
            let rows = Rows { d: d.dst(op.d), a, b, c, ..Rows::default() };
            d.emit(handlers, rows);
        }
        Op::Bfi(op) => {
            let length = d.src32(&op.length, U32);
            let (a, b, c) = (d.source(&op.a, op.ty), d.source(&op.b, op.ty), d.src32(&op.c, U32));
            let rows = Rows { d: d.dst(op.d), a, b, c, x: length, ..Rows::default() };
            d.emit(if op.ty == B64 { lanes::<Bfi64>() } else { lanes::<Bfi32>() }, rows);
        }
        Op::Popc(op) => {
            let handlers = if op.ty == B64 { lanes::<Popc64>() } else { lanes::<Popc32>() };
            d.emit_on(handlers, op.ty, op.d, [&op.a]);
        }
        Op::Clz(op) => {
            let handlers = if op.ty == B64 { lanes::<Clz64>() } else { lanes::<Clz32>() };
            d.emit_on(handlers, op.ty, op.d, [&op.a]);
        }
        Op::Brev(op) => {
            let handlers = if op.ty == B64 { lanes::<Brev64>() } else { lanes::<Brev32>() };
            d.emit_on(handlers, op.ty, op.d, [&op.a]);
        }
        Op::Bfind(op) => {
            let handlers = match op.ty {
                U32 => flagged!(BfindU32, op.shiftamt),
                S32 => flagged!(BfindS32, op.shiftamt),
                U64 => flagged!(BfindU64, op.shiftamt),
                _ => flagged!(BfindS64, op.shiftamt),
            };
            d.emit_on(handlers, op.ty, op.d, [&op.a]);
        }
        Op::Fns(op) => d.emit_on(lanes::<Fns>(), B32, op.d, [&op.mask, &op.base, &op.offset]),
        Op::Szext(op) => {
            let handlers = flagged!(Szext, op.mode == ShiftMode::Wrap, op.ty == S32);
            d.emit_on(handlers, U32, op.d, [&op.a, &op.b]);
        }
        Op::Bmsk(op) => d.emit_on(flagged!(Bmsk, op.mode == ShiftMode::Wrap), B32, op.d, [&op.a, &op.b]),
        Op::Prmt(op) => {
            let rows = d.rows(B32, op.d, [&op.a, &op.b, &op.c]);
            match op.mode {
                None => match &op.c {
                    Src::Imm(imm) => permute_by(d, rows, immediate(*imm, B32) as u32, [&op.a, &op.b]),
                    _ => d.emit(lanes::<Prmt>(), rows),
                },
                Some(mode) => {
                    let selectors = selectors(mode);
                    d.each3::<u32, u32, u32, u32>(rows, move |a, b, c| {
                        bits::prmt(a, b, selectors[c as usize & 3])
                    });
                }
            }
        }
    }
    true
}

/// `prmt` with a selector that is known: bytes that move alike move together, and zeros not at all.
fn permute_by(d: &mut Decoder<'_, '_>, rows: Rows, selector: u32, sources: [&Src; 2]) {
    let [a, b] = sources.map(|source| match source {
        Src::Imm(imm) => immediate(*imm, B32) as u32,
        _ => u32::MAX,
    });
    match bits::moves(selector, a, b).as_deref() {
        Some(&[one]) => moved(d, rows, [one]),
        Some(&[one, two]) => moved(d, rows, [one, two]),
        Some(&[one, two, three]) => moved(d, rows, [one, two, three]),
        Some(&[one, two, three, four]) => moved(d, rows, [one, two, three, four]),
        _ => d.emit(lanes::<Prmt>(), rows),
    }
}

fn moved<const N: usize>(d: &mut Decoder<'_, '_>, rows: Rows, moves: [bits::Move; N]) {
    d.each2::<u32, u32, u32>(
        rows,
        #[inline(always)]
        move |a, b| moves.iter().fold(0, |word, part| word | part.of(a, b)),
    );
}

/// The handlers of the width of a type.
fn sized(ty: Type, of16: Lanes, of32: Lanes, of64: Lanes) -> Lanes {
    match ty.bits() {
        16 => of16,
        64 => of64,
        _ => of32,
    }
}

/// The amount of a shift is a word, whatever is shifted.
fn shift(d: &mut Decoder<'_, '_>, handlers: Lanes, ty: Type, dst: Dst, a: &Src, b: &Src) {
    let mut rows = d.rows(ty, dst, [a]);
    rows.b = d.src32(b, U32);
    d.emit(handlers, rows);
}

fn predicates(d: &mut Decoder<'_, '_>, dst: Dst, a: &Src, b: &Src, run: Handler) {
    let rows = Rows { d: d.dst(dst), a: d.predicate(a), b: d.predicate(b), ..Rows::default() };
    d.emit_handler(run, rows);
}

/// Predicates of all lanes are one word.
fn combine(m: &mut Machine<'_>, i: &Inst, f: impl Fn(u32, u32) -> u32) -> Step {
    let value = f(m.registers.predicate(i.a), m.registers.predicate(i.b));
    m.registers.set_predicate(i.d, value, m.mask);
    Step::Next
}

fn lop3(op: &Lop3, d: &mut Decoder<'_, '_>) {
    let table = op.table.imm().and_then(|imm| imm.bits()).unwrap_or(0) as u8;
    let (a, b, c) = (d.src32(&op.a, B32), d.src32(&op.b, B32), d.src32(&op.c, B32));
    let result = match op.d.first {
        Some(reg) => d.row(reg),
        None => d.temporary32(),
    };
    let rows = Rows { d: result, a, b, c, imm: table.into(), ..Rows::default() };
    // Tables that have an operation of their own.
    match table {
        0x96 => d.emit(lanes::<Xor3>(), rows),
        _ => d.emit(lanes::<AnyOf3>(), rows),
    }
    let (Some(Some(p)), Some(q)) = (op.d.second, &op.q) else { return };
    let rows = Rows { d: d.row(p), a: result, b: d.predicate(q), ..Rows::default() };
    let run: Handler = if op.bool_op == Some(BoolOp::And) {
        |m, i| any_bit(m, i, |any, q| any & q)
    } else {
        |m, i| any_bit(m, i, |any, q| any | q)
    };
    d.emit_handler(run, rows);
}

/// Combines a predicate with whether a word has a bit that is set.
fn any_bit(m: &mut Machine<'_>, i: &Inst, f: impl Fn(u32, u32) -> u32) -> Step {
    let words = m.registers.row32(i.a);
    let any = (0..LANES).fold(0, |all, lane| all | u32::from(words[lane] != 0) << lane);
    let value = f(any, m.registers.predicate(i.b));
    m.registers.set_predicate(i.d, value, m.mask);
    Step::Next
}

/// `lop3` with the table in the instruction's constant.
struct AnyOf3;

impl LaneOp for AnyOf3 {
    #[inline(always)]
    fn run(m: &mut Machine<'_>, i: &Inst) -> Step {
        let table = i.imm as u8;
        map3::<u32, u32, u32, u32>(m, i, |a, b, c| bits::lop3(a, b, c, table));
        Step::Next
    }
}

/// `bfi`: the row of the length is in the instruction's `x`.
macro_rules! insertion {
    ($name:ident, $row:ident, $set:ident, $insert:path) => {
        struct $name;

        impl LaneOp for $name {
            #[inline(always)]
            fn run(m: &mut Machine<'_>, i: &Inst) -> Step {
                let (a, b) = (*m.registers.$row(i.a), *m.registers.$row(i.b));
                let (starts, lengths) = (*m.registers.row32(i.c), *m.registers.row32(i.x));
                let mut out = [0; LANES];
                for lane in 0..LANES {
                    out[lane] = $insert(a[lane], b[lane], starts[lane], lengths[lane]);
                }
                m.registers.$set(i.d, &out, m.mask);
                Step::Next
            }
        }
    };
}

insertion!(Bfi32, row32, set32, bits::bfi_b32);
insertion!(Bfi64, row64, set64, bits::bfi_b64);

fn selectors(mode: PermuteMode) -> [u32; 4] {
    match mode {
        PermuteMode::F4e => permute::F4E,
        PermuteMode::B4e => permute::B4E,
        PermuteMode::Rc8 => permute::RC8,
        PermuteMode::Ecl => permute::ECL,
        PermuteMode::Ecr => permute::ECR,
        PermuteMode::Rc16 => permute::RC16,
    }
}

lane_op! {
    And32(a: u32, b: u32) -> u32 { a & b }
    And64(a: u64, b: u64) -> u64 { a & b }
    Or32(a: u32, b: u32) -> u32 { a | b }
    Or64(a: u64, b: u64) -> u64 { a | b }
    Xor32(a: u32, b: u32) -> u32 { a ^ b }
    Xor64(a: u64, b: u64) -> u64 { a ^ b }
    Not16(a: u16) -> u16 { !a }
    Not32(a: u32) -> u32 { !a }
    Not64(a: u64) -> u64 { !a }
    Cnot16(a: u16) -> u16 { u16::from(a == 0) }
    Cnot32(a: u32) -> u32 { u32::from(a == 0) }
    Cnot64(a: u64) -> u64 { u64::from(a == 0) }
    Xor3(a: u32, b: u32, c: u32) -> u32 { a ^ b ^ c }
    Shl16(a: u16, b: u32) -> u16 { bits::shl_u16(a, b) }
    Shl32(a: u32, b: u32) -> u32 { bits::shl_u32(a, b) }
    Shl64(a: u64, b: u32) -> u64 { bits::shl_u64(a, b) }
    ShrU16(a: u16, b: u32) -> u16 { bits::shr_u16(a, b) }
    ShrU32(a: u32, b: u32) -> u32 { bits::shr_u32(a, b) }
    ShrU64(a: u64, b: u32) -> u64 { bits::shr_u64(a, b) }
    ShrS16(a: i16, b: u32) -> i16 { bits::shr_s16(a, b) }
    ShrS32(a: i32, b: u32) -> i32 { bits::shr_s32(a, b) }
    ShrS64(a: i64, b: u32) -> i64 { bits::shr_s64(a, b) }
    FunnelLeft[WRAP: bool](a: u32, b: u32, c: u32) -> u32 { bits::funnel_left::<WRAP>(a, b, c) }
    FunnelRight[WRAP: bool](a: u32, b: u32, c: u32) -> u32 { bits::funnel_right::<WRAP>(a, b, c) }
    BfeU32(a: u32, b: u32, c: u32) -> u32 { bits::bfe_u32(a, b, c) }
    BfeS32(a: i32, b: u32, c: u32) -> i32 { bits::bfe_s32(a, b, c) }
    BfeU64(a: u64, b: u32, c: u32) -> u64 { bits::bfe_u64(a, b, c) }
    BfeS64(a: i64, b: u32, c: u32) -> i64 { bits::bfe_s64(a, b, c) }
    Popc32(a: u32) -> u32 { a.count_ones() }
    Popc64(a: u64) -> u32 { a.count_ones() }
    Clz32(a: u32) -> u32 { a.leading_zeros() }
    Clz64(a: u64) -> u32 { a.leading_zeros() }
    Brev32(a: u32) -> u32 { a.reverse_bits() }
    Brev64(a: u64) -> u64 { a.reverse_bits() }
    BfindU32[SHIFT: bool](a: u32) -> u32 { bits::bfind_u32::<SHIFT>(a) }
    BfindS32[SHIFT: bool](a: i32) -> u32 { bits::bfind_s32::<SHIFT>(a) }
    BfindU64[SHIFT: bool](a: u64) -> u32 { bits::bfind_u64::<SHIFT>(a) }
    BfindS64[SHIFT: bool](a: i64) -> u32 { bits::bfind_s64::<SHIFT>(a) }
    Fns(mask: u32, base: u32, offset: i32) -> u32 { bits::fns(mask, base, offset) }
    Szext[WRAP: bool, SIGNED: bool](a: u32, b: u32) -> u32 { bits::szext::<WRAP, SIGNED>(a, b) }
    Bmsk[WRAP: bool](a: u32, b: u32) -> u32 { bits::bmsk::<WRAP>(a, b) }
    Prmt(a: u32, b: u32, c: u32) -> u32 { bits::prmt(a, b, c) }
}
