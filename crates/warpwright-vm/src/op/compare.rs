//! Comparisons and selections.
//!
//! All comparisons of a type derive from a few: swapped operands and complements give the rest, including the
//! unordered comparisons of floating-point numbers.

use super::lanes::{flagged, integers, sized};
use crate::decode::{Decoder, Rows};
use crate::machine::{Cell, Inst, LANES, Machine, NONE, Step};
use crate::native::{self, Lane, Operation, Relation};
use crate::num::float::flush_if;
use crate::num::half::{bf16_to_f32, f16_to_f32, flush_f16};
use crate::num::integer::Integer;
use crate::simd::{LaneOp, Lanes, lane_op, lanes};
use std::marker::PhantomData;
use warpwright_ptx::ir::Type::*;
use warpwright_ptx::ir::{BoolOp, Cmp, DstPair, Src, Type};
use warpwright_ptx::op::compare::{Set, Setp, Slct};
use warpwright_ptx::op::family::Compare as Op;

pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    match op {
        Op::Setp(op) => setp(op, d),
        Op::Set(op) => set(op, d),
        Op::Selp(op) => {
            let mut rows = d.rows(op.ty, op.d, [&op.a, &op.b]);
            rows.c = d.predicate(&op.c);
            d.emit(if op.ty.bits() == 64 { lanes::<Select64>() } else { lanes::<Select32>() }, rows);
            true
        }
        Op::Slct(op) => slct(op, d),
    }
}

/// What a comparison is made of.
#[derive(Clone, Copy)]
struct Basis {
    relation: Relation,
    /// The operands change places.
    swapped: bool,
    /// The result is the opposite.
    complement: bool,
}

fn basis(cmp: Cmp) -> Basis {
    use Relation::*;
    let (relation, swapped, complement) = match cmp {
        Cmp::Eq => (Equal, false, false),
        Cmp::Ne => (Unequal, false, false),
        Cmp::Lt | Cmp::Lo => (Less, false, false),
        Cmp::Le | Cmp::Ls => (LessOrEqual, false, false),
        Cmp::Gt | Cmp::Hi => (Less, true, false),
        Cmp::Ge | Cmp::Hs => (LessOrEqual, true, false),
        Cmp::Equ => (Unequal, false, true),
        Cmp::Neu => (Equal, false, true),
        Cmp::Ltu => (LessOrEqual, true, true),
        Cmp::Leu => (Less, true, true),
        Cmp::Gtu => (LessOrEqual, false, true),
        Cmp::Geu => (Less, false, true),
        Cmp::Num => (Ordered, false, false),
        Cmp::Nan => (Ordered, false, true),
    };
    Basis { relation, swapped, complement }
}

/// The handlers of a relation between values of a type.
fn relation(relation: Relation, ty: Type, ftz: bool) -> Option<Lanes> {
    macro_rules! floats {
        ($equal:ident, $unequal:ident, $less:ident, $less_or_equal:ident, $ordered:ident $(, $flag:expr)?) => {
            match relation {
                Relation::Equal => floats!(@ $equal $(, $flag)?),
                Relation::Unequal => floats!(@ $unequal $(, $flag)?),
                Relation::Less => floats!(@ $less $(, $flag)?),
                Relation::LessOrEqual => floats!(@ $less_or_equal $(, $flag)?),
                Relation::Ordered => floats!(@ $ordered $(, $flag)?),
            }
        };
        (@ $op:ident) => { lanes::<$op>() };
        (@ $op:ident, $flag:expr) => { flagged!($op, $flag) };
    }
    Some(match (ty, relation) {
        (F32, _) => floats!(EqF32, NeF32, LtF32, LeF32, NumF32, ftz),
        (F64, _) => floats!(EqF64, NeF64, LtF64, LeF64, NumF64),
        (F16, _) => floats!(EqF16, NeF16, LtF16, LeF16, NumF16, ftz),
        (BF16, _) => floats!(EqBf16, NeBf16, LtBf16, LeBf16, NumBf16),
        (_, Relation::Equal) => sized!(Eq, ty),
        (_, Relation::Unequal) => sized!(Ne, ty),
        (_, Relation::Less) => integers!(Lt, ty, else return None),
        (_, Relation::LessOrEqual) => integers!(Le, ty, else return None),
        _ => return None,
    })
}

/// A comparison: of which type, and what is done with its result.
struct Comparison<'a> {
    cmp: Cmp,
    bool_op: Option<BoolOp>,
    ftz: bool,
    ty: Type,
    a: &'a Src,
    b: &'a Src,
    c: Option<&'a Src>,
}

/// The result is complemented.
const COMPLEMENT: u64 = 4;

impl Comparison<'_> {
    /// Emits the comparison into one predicate, and its complement into another ([`NONE`] for neither).
    fn emit(&self, d: &mut Decoder<'_, '_>, first: u32, second: u32) -> bool {
        let (a, b) = (d.source(self.a, self.ty), d.source(self.b, self.ty));
        let c = self.c.map_or(0, |c| d.predicate(c));
        let rows = Rows { d: first, a, b, c, x: second, imm: self.combination() };
        self.emit_rows(d, self.ty, rows)
    }

    /// What a result is combined with `c` by, as [`combined`] reads it.
    fn combination(&self) -> u64 {
        match self.bool_op {
            None => 0,
            Some(BoolOp::And) => 1,
            Some(BoolOp::Or) => 2,
            Some(BoolOp::Xor) => 3,
        }
    }

    fn emit_rows(&self, d: &mut Decoder<'_, '_>, ty: Type, rows: Rows) -> bool {
        let Basis { relation: base, swapped, complement } = basis(self.cmp);
        let Some(handlers) = relation(base, ty, self.ftz) else { return false };
        let (a, b) = if swapped { (rows.b, rows.a) } else { (rows.a, rows.b) };
        let imm = rows.imm | if complement { COMPLEMENT } else { 0 };
        d.emit(handlers, Rows { a, b, imm, ..rows });
        true
    }

    /// Emits the comparisons of the halves of packed values into two predicates. They are written
    /// together, at the end: one of them may be the guard, or `c`.
    fn emit_halves(&self, d: &mut Decoder<'_, '_>, low: u32, high: u32) -> bool {
        let ty = if self.ty == BF16X2 { BF16 } else { F16 };
        let (a, b) = (d.src32(self.a, self.ty), d.src32(self.b, self.ty));
        let [upper_a, upper_b] = [a, b].map(|row| {
            let half = d.temporary32();
            d.emit(lanes::<UpperHalf>(), Rows { d: half, a: row, ..Rows::default() });
            half
        });
        let holds = [d.temporary_predicate(), d.temporary_predicate()];
        for (d_row, (a, b)) in holds.into_iter().zip([(a, b), (upper_a, upper_b)]) {
            if !self.emit_rows(d, ty, Rows { d: d_row, a, b, x: NONE, ..Rows::default() }) {
                return false;
            }
        }
        let c = self.c.map_or(0, |c| d.predicate(c));
        let [a, b] = holds.map(|row| row << 1);
        let write = |m: &mut Machine<'_>, i: &Inst| {
            let values = [i.a, i.b].map(|operand| combined(m, i, m.registers.predicate(operand)));
            for (row, value) in [i.d, i.x].into_iter().zip(values) {
                if row != NONE {
                    m.registers.set_predicate(row, value, m.mask);
                }
            }
            Step::Next
        };
        d.emit_handler(write, Rows { d: low, a, b, c, x: high, imm: self.combination() });
        true
    }
}

fn setp(op: &Setp, d: &mut Decoder<'_, '_>) -> bool {
    let Setp { cmp, bool_op, ftz, ty, .. } = *op;
    let comparison = Comparison { cmp, bool_op, ftz, ty, a: &op.a, b: &op.b, c: op.c.as_ref() };
    let DstPair { first, second } = op.d;
    let [first, second] = [first, second.flatten()].map(|reg| reg.map_or(NONE, |reg| d.row(reg)));
    if matches!(ty, F16X2 | BF16X2) {
        return comparison.emit_halves(d, first, second);
    }
    comparison.emit(d, first, second)
}

fn set(op: &Set, d: &mut Decoder<'_, '_>) -> bool {
    let Set { cmp, bool_op, ftz, ty, d_type, .. } = *op;
    let comparison = Comparison { cmp, bool_op, ftz, ty, a: &op.a, b: &op.b, c: op.c.as_ref() };
    let dst = d.dst(op.d);
    let holds = d.temporary_predicate();
    let zero = d.constant32(0);
    if matches!(ty, F16X2 | BF16X2) {
        let high = d.temporary_predicate();
        if !comparison.emit_halves(d, holds, high) {
            return false;
        }
        let one = match d_type {
            F16X2 => 0x3c00,
            BF16X2 => 0x3f80,
            _ => 0xffff,
        };
        let part = d.temporary32();
        let (low_one, high_one) = (d.constant32(one), d.constant32(one << 16));
        let rows = Rows { d: part, a: low_one, b: zero, c: holds << 1, ..Rows::default() };
        d.emit(lanes::<Select32>(), rows);
        let rows = Rows { d: dst, a: high_one, b: part, c: high << 1, ..Rows::default() };
        d.emit(lanes::<OrIf>(), rows);
        return true;
    }
    if !comparison.emit(d, holds, NONE) {
        return false;
    }
    let one = match d_type {
        F32 => 1.0f32.to_bits(),
        F16 => 0x3c00,
        BF16 => 0x3f80,
        U16 | S16 => 0xffff,
        _ => u32::MAX,
    };
    let one = d.constant32(one);
    d.emit(lanes::<Select32>(), Rows { d: dst, a: one, b: zero, c: holds << 1, ..Rows::default() });
    true
}

fn slct(op: &Slct, d: &mut Decoder<'_, '_>) -> bool {
    let mut rows = d.rows(op.ty, op.d, [&op.a, &op.b]);
    rows.c = d.src32(&op.c, op.c_type);
    let handlers = match (op.ty.bits(), op.c_type) {
        (64, F32) => flagged!(SlctF32Of64, op.ftz),
        (64, _) => lanes::<SlctS32Of64>(),
        (_, F32) => flagged!(SlctF32Of32, op.ftz),
        _ => lanes::<SlctS32Of32>(),
    };
    d.emit(handlers, rows);
    true
}

/// The result of a comparison, combined with the predicate `c`.
#[inline(always)]
fn combined(m: &Machine<'_>, i: &Inst, value: u32) -> u32 {
    match i.imm & 3 {
        0 => value,
        1 => value & m.registers.predicate(i.c),
        2 => value | m.registers.predicate(i.c),
        _ => value ^ m.registers.predicate(i.c),
    }
}

/// Writes the result of a comparison to `d`, and of its complement to `x`.
#[inline(always)]
fn finish(m: &mut Machine<'_>, i: &Inst, holds: u32) {
    let holds = if i.imm & COMPLEMENT == 0 { holds } else { !holds };
    let (first, second) = (combined(m, i, holds), combined(m, i, !holds));
    if i.d != NONE {
        m.registers.set_predicate(i.d, first, m.mask);
    }
    if i.x != NONE {
        m.registers.set_predicate(i.x, second, m.mask);
    }
}

/// One bit for each lane in which a relation holds.
#[inline(always)]
fn compare<T: Cell>(m: &mut Machine<'_>, i: &Inst, f: impl Fn(T, T) -> bool) -> Step {
    let (a, b) = (T::row(&m.registers, i.a), T::row(&m.registers, i.b));
    let mut bits = [0u32; LANES];
    for (lane, bit) in bits.iter_mut().enumerate() {
        *bit = u32::from(f(T::get(&a, lane), T::get(&b, lane))) << lane;
    }
    finish(m, i, bits.iter().fold(0, |all, bit| all | bit));
    Step::Next
}

/// Declares relations.
macro_rules! relations {
    ($($name:ident $(<$t:ident>)? $([$flag:ident])? ($a:ident, $b:ident: $ty:ty) $body:expr $(=> $native:expr)?;)*) => {$(
        struct $name $(<$t>(PhantomData<$t>))? $(<const $flag: bool>)?;

        impl $(<$t: Integer + Cell>)? $(<const $flag: bool>)? LaneOp for $name $(<$t>)? $(<$flag>)? {
            $(const NATIVE: Option<Operation> = $native;)?

            #[inline(always)]
            fn run(m: &mut Machine<'_>, i: &Inst) -> Step {
                compare::<$ty>(m, i, #[inline(always)] |$a, $b| $body)
            }
        }
    )*};
}

const fn floats(ftz: bool, relation: Relation) -> Option<Operation> {
    native::unless(ftz, Operation::Compare(relation, Lane::F32))
}

#[inline(always)]
fn half<const FTZ: bool>(bits: u16) -> f32 {
    f16_to_f32(if FTZ { flush_f16(bits) } else { bits })
}

relations! {
    Eq<T>(a, b: T) a == b => native::compare(Relation::Equal, T::LANE);
    Ne<T>(a, b: T) a != b => native::compare(Relation::Unequal, T::LANE);
    Lt<T>(a, b: T) a < b => native::compare(Relation::Less, T::LANE);
    Le<T>(a, b: T) a <= b => native::compare(Relation::LessOrEqual, T::LANE);
    EqF32[FTZ](a, b: f32) flush_if::<FTZ>(a) == flush_if::<FTZ>(b) => floats(FTZ, Relation::Equal);
    NeF32[FTZ](a, b: f32) {
        let (a, b) = (flush_if::<FTZ>(a), flush_if::<FTZ>(b));
        (a < b) | (a > b)
    } => floats(FTZ, Relation::Unequal);
    LtF32[FTZ](a, b: f32) flush_if::<FTZ>(a) < flush_if::<FTZ>(b) => floats(FTZ, Relation::Less);
    LeF32[FTZ](a, b: f32) flush_if::<FTZ>(a) <= flush_if::<FTZ>(b) => floats(FTZ, Relation::LessOrEqual);
    NumF32[FTZ](a, b: f32) flush_if::<FTZ>(a).partial_cmp(&flush_if::<FTZ>(b)).is_some()
        => floats(FTZ, Relation::Ordered);
    EqF64(a, b: f64) a == b => native::compare(Relation::Equal, Some(Lane::F64));
    NeF64(a, b: f64) (a < b) | (a > b) => native::compare(Relation::Unequal, Some(Lane::F64));
    LtF64(a, b: f64) a < b => native::compare(Relation::Less, Some(Lane::F64));
    LeF64(a, b: f64) a <= b => native::compare(Relation::LessOrEqual, Some(Lane::F64));
    NumF64(a, b: f64) a.partial_cmp(&b).is_some() => native::compare(Relation::Ordered, Some(Lane::F64));
    EqF16[FTZ](a, b: u16) half::<FTZ>(a) == half::<FTZ>(b);
    NeF16[FTZ](a, b: u16) half::<FTZ>(a) < half::<FTZ>(b) || half::<FTZ>(a) > half::<FTZ>(b);
    LtF16[FTZ](a, b: u16) half::<FTZ>(a) < half::<FTZ>(b);
    LeF16[FTZ](a, b: u16) half::<FTZ>(a) <= half::<FTZ>(b);
    NumF16[FTZ](a, b: u16) !half::<FTZ>(a).is_nan() && !half::<FTZ>(b).is_nan();
    EqBf16(a, b: u16) bf16_to_f32(a) == bf16_to_f32(b);
    NeBf16(a, b: u16) bf16_to_f32(a) < bf16_to_f32(b) || bf16_to_f32(a) > bf16_to_f32(b);
    LtBf16(a, b: u16) bf16_to_f32(a) < bf16_to_f32(b);
    LeBf16(a, b: u16) bf16_to_f32(a) <= bf16_to_f32(b);
    NumBf16(a, b: u16) !bf16_to_f32(a).is_nan() && !bf16_to_f32(b).is_nan();
}

lane_op! {
    UpperHalf(a: u32) -> u32 { a >> 16 }
    Select32(a: u32, b: u32, c: bool) -> u32 { if c { a } else { b } } => Some(Operation::Select(Lane::U32));
    Select64(a: u64, b: u64, c: bool) -> u64 { if c { a } else { b } } => Some(Operation::Select(Lane::U64));
    /// `a | b` where `c` holds, else `b`.
    OrIf(a: u32, b: u32, c: bool) -> u32 { if c { a | b } else { b } }
    SlctS32Of32(a: u32, b: u32, c: i32) -> u32 { if c >= 0 { a } else { b } }
    SlctS32Of64(a: u64, b: u64, c: i32) -> u64 { if c >= 0 { a } else { b } }
    SlctF32Of32[FTZ: bool](a: u32, b: u32, c: f32) -> u32 { if flush_if::<FTZ>(c) >= 0.0 { a } else { b } }
    SlctF32Of64[FTZ: bool](a: u64, b: u64, c: f32) -> u64 { if flush_if::<FTZ>(c) >= 0.0 { a } else { b } }
}
