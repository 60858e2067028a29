//! Bitwise logic, shifts and bit fields.

use super::lanes::{flagged, integers, sized};
use crate::decode::{Decoder, Rows, immediate};
use crate::machine::{Cell, Inst, LANES, Machine, Step, map3};
use crate::native::{self, Binary, Logic};
use crate::num::bits::{self, permute};
use crate::num::integer::Integer;
use crate::simd::{Handler, LaneOp, Lanes, lane_op, lanes};
use std::marker::PhantomData;
use warpwright_ptx::ir::Type::*;
use warpwright_ptx::ir::{BoolOp, Dst, Src, Type};
use warpwright_ptx::op::family::Logic as Op;
use warpwright_ptx::op::logic::{Lop3, PermuteMode, ShiftDirection, ShiftMode};

pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    match op {
        Op::And(op) if op.ty == Pred => {
            predicates(d, Logic::And, op.d, &op.a, &op.b, |m, i| combine(m, i, |a, b| a & b))
        }
        Op::Or(op) if op.ty == Pred => {
            predicates(d, Logic::Or, op.d, &op.a, &op.b, |m, i| combine(m, i, |a, b| a | b))
        }
        Op::Xor(op) if op.ty == Pred => {
            predicates(d, Logic::Xor, op.d, &op.a, &op.b, |m, i| combine(m, i, |a, b| a ^ b))
        }
        Op::Not(op) if op.ty == Pred => {
            predicates(d, Logic::Not, op.d, &op.a, &op.a, |m, i| combine(m, i, |a, _| !a))
        }
        Op::And(op) => d.emit_on(sized!(And, op.ty), op.ty, op.d, [&op.a, &op.b]),
        Op::Or(op) => d.emit_on(sized!(Or, op.ty), op.ty, op.d, [&op.a, &op.b]),
        Op::Xor(op) => d.emit_on(sized!(Xor, op.ty), op.ty, op.d, [&op.a, &op.b]),
        Op::Not(op) => d.emit_on(sized!(Complement, op.ty), op.ty, op.d, [&op.a]),
        Op::Cnot(op) => d.emit_on(sized!(Cnot, op.ty), op.ty, op.d, [&op.a]),
        Op::Lop3(op) => lop3(op, d),
        Op::Shl(op) => shift(d, sized!(ShiftLeft, op.ty), op.ty, op.d, &op.a, &op.b),
        Op::Shr(op) => {
            let handlers = integers!(ShiftRight, op.ty, else sized!(ShiftRight, op.ty));
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
            let (a, b, c) = (d.source(&op.a, op.ty), d.src32(&op.b, U32), d.src32(&op.c, U32));
            let rows = Rows { d: d.dst(op.d), a, b, c, ..Rows::default() };
            d.emit(integers!(Bfe, op.ty, else return false), rows);
        }
        Op::Bfi(op) => {
            let length = d.src32(&op.length, U32);
            let (a, b, c) = (d.source(&op.a, op.ty), d.source(&op.b, op.ty), d.src32(&op.c, U32));
            let rows = Rows { d: d.dst(op.d), a, b, c, x: length, ..Rows::default() };
            d.emit(sized!(Bfi, op.ty), rows);
        }
        Op::Popc(op) => d.emit_on(sized!(Popc, op.ty), op.ty, op.d, [&op.a]),
        Op::Clz(op) => d.emit_on(sized!(Clz, op.ty), op.ty, op.d, [&op.a]),
        Op::Brev(op) => d.emit_on(sized!(Brev, op.ty), op.ty, op.d, [&op.a]),
        Op::Bfind(op) => {
            let handlers = match op.shiftamt {
                true => integers!(ShiftOfHighest, op.ty, else return false),
                false => integers!(Highest, op.ty, else return false),
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
    d.is_native(native::Operation::Permute);
}

/// The amount of a shift is a word, whatever is shifted.
fn shift(d: &mut Decoder<'_, '_>, handlers: Lanes, ty: Type, dst: Dst, a: &Src, b: &Src) {
    let mut rows = d.rows(ty, dst, [a]);
    rows.b = d.src32(b, U32);
    d.emit(handlers, rows);
}

fn predicates(d: &mut Decoder<'_, '_>, logic: Logic, dst: Dst, a: &Src, b: &Src, run: Handler) {
    let rows = Rows { d: d.dst(dst), a: d.predicate(a), b: d.predicate(b), ..Rows::default() };
    d.emit_native(run, native::Operation::Predicates(logic), rows);
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
    const NATIVE: Option<native::Operation> = Some(native::Operation::Lop3);

    #[inline(always)]
    fn run(m: &mut Machine<'_>, i: &Inst) -> Step {
        let table = i.imm as u8;
        map3::<u32, u32, u32, u32>(m, i, |a, b, c| bits::lop3(a, b, c, table));
        Step::Next
    }
}

/// `bfi`: the row of the length is in the instruction's `x`.
struct Bfi<T>(PhantomData<T>);

impl<T: Integer + Cell> LaneOp for Bfi<T> {
    #[inline(always)]
    fn run(m: &mut Machine<'_>, i: &Inst) -> Step {
        let (a, b) = (T::row(&m.registers, i.a), T::row(&m.registers, i.b));
        let (starts, lengths) = (*m.registers.row32(i.c), *m.registers.row32(i.x));
        let mut out = T::out();
        for lane in 0..LANES {
            let value = T::get(&a, lane).into_field(T::get(&b, lane), starts[lane], lengths[lane]);
            T::put(&mut out, lane, value);
        }
        T::write(&mut m.registers, i.d, &out, m.mask);
        Step::Next
    }
}

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
    And<T: Integer>(a: T, b: T) -> T { a & b } => native::binary(Binary::And, T::LANE);
    Or<T: Integer>(a: T, b: T) -> T { a | b } => native::binary(Binary::Or, T::LANE);
    Xor<T: Integer>(a: T, b: T) -> T { a ^ b } => native::binary(Binary::Xor, T::LANE);
    Complement<T: Integer>(a: T) -> T { !a } => native::not(T::LANE);
    Cnot<T: Integer>(a: T) -> T { a.logical_not() }
    Xor3(a: u32, b: u32, c: u32) -> u32 { a ^ b ^ c }
    ShiftLeft<T: Integer>(a: T, b: u32) -> T { a.shifted_left(b) } => native::binary(Binary::ShiftLeft, T::LANE);
    ShiftRight<T: Integer>(a: T, b: u32) -> T { a.shifted_right(b) } => native::binary(Binary::ShiftRight, T::LANE);
    FunnelLeft[WRAP: bool](a: u32, b: u32, c: u32) -> u32 { bits::funnel_left::<WRAP>(a, b, c) }
        => Some(native::Operation::Funnel { left: true, wrap: WRAP });
    FunnelRight[WRAP: bool](a: u32, b: u32, c: u32) -> u32 { bits::funnel_right::<WRAP>(a, b, c) }
        => Some(native::Operation::Funnel { left: false, wrap: WRAP });
    Bfe<T: Integer>(a: T, b: u32, c: u32) -> T { a.field(b, c) } => native::field(T::LANE);
    Popc<T: Integer>(a: T) -> u32 { a.ones() }
    Clz<T: Integer>(a: T) -> u32 { a.zeros_above() }
    Brev<T: Integer>(a: T) -> T { a.reversed() }
    Highest<T: Integer>(a: T) -> u32 { a.highest::<false>() }
    ShiftOfHighest<T: Integer>(a: T) -> u32 { a.highest::<true>() }
    Fns(mask: u32, base: u32, offset: i32) -> u32 { bits::fns(mask, base, offset) }
    Szext[WRAP: bool, SIGNED: bool](a: u32, b: u32) -> u32 { bits::szext::<WRAP, SIGNED>(a, b) }
    Bmsk[WRAP: bool](a: u32, b: u32) -> u32 { bits::bmsk::<WRAP>(a, b) }
    Prmt(a: u32, b: u32, c: u32) -> u32 { bits::prmt(a, b, c) } => Some(native::Operation::Permute);
}
