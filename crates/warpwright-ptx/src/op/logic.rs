//! Bitwise logic, shifts and bit fields.

use super::{Rule, instruction, modifiers};
use crate::diag::Code;
use crate::ir::Type::*;
use crate::ir::*;
use crate::op::Check;

modifiers! {
    /// The direction of a funnel shift.
    pub enum ShiftDirection {
        /// Left: the high word of the result.
        Left = "l",
        /// Right: the low word of the result.
        Right = "r",
    }

    /// The treatment of shift amounts above 31.
    pub enum ShiftMode {
        /// It counts as 32.
        Clamp = "clamp",
        /// It is taken modulo 32.
        Wrap = "wrap",
    }

    /// A byte selection of `prmt` other than a selector of four nibbles.
    pub enum PermuteMode {
        /// Four bytes from a position on.
        F4e = "f4e",
        /// Four bytes down to a position.
        B4e = "b4e",
        /// One byte, four times.
        Rc8 = "rc8",
        /// Edge clamp left.
        Ecl = "ecl",
        /// Edge clamp right.
        Ecr = "ecr",
        /// One half, twice.
        Rc16 = "rc16",
    }
}

instruction! {
    /// Bitwise and.
    pub struct And("and") {
        ty: Type,
    }(d: Dst, a: Src, b: Src) -> |op, operands| {
            operands.of_thread(&op.a, bits(&op.b).is_some_and(|bits| bits & 31 == 0))
        },
        thread_index: |op, operands| {
            let remainder = |bits: u64| bits & 31 == 31 && bits & bits.wrapping_add(1) == 0;
            operands.is_thread_index(&op.a) && bits(&op.b).is_some_and(remainder)
        },
        check: |op, check| {
            check.operation(op.ty, LOGIC, op.d, [&op.a, &op.b]);
        };

    /// Bitwise or.
    pub struct Or("or")
    /// Bitwise exclusive or.
    pub struct Xor("xor") {
        ty: Type,
    }(d: Dst, a: Src, b: Src) -> pointwise,
        check: |op, check| {
            check.operation(op.ty, LOGIC, op.d, [&op.a, &op.b]);
        };

    /// Bitwise complement.
    pub struct Not("not") {
        ty: Type,
    }(d: Dst, a: Src) -> pointwise,
        check: |op, check| {
            check.operation(op.ty, LOGIC, op.d, [&op.a]);
        };

    /// 1 where `a` is zero, else 0.
    pub struct Cnot("cnot") {
        ty: Type,
    }(d: Dst, a: Src) -> pointwise,
        check: |op, check| {
            check.operation(op.ty, BITS, op.d, [&op.a]);
        };

    /// Any bitwise function of three values, by its truth table.
    pub struct Lop3("lop3") {
        bool_op: Option<BoolOp>,
        ty: Type,
    }(d: DstPair, a: Src, b: Src, c: Src, table: Src, q: Option<Src>) -> pointwise,
        needs: |op, needs| {
            needs.both_if(op.bool_op.is_some(), "`lop3` with a predicate", (8, 2), 70);
        };

    /// Shift left.
    pub struct Shl("shl") {
        ty: Type,
    }(d: Dst, a: Src, b: Src) -> pointwise,
        check: |op, check| {
            check.operation(op.ty, BITS, op.d, [&op.a]);
            check.word_src("b", &op.b);
        };

    /// Shift right, arithmetic for signed types.
    pub struct Shr("shr") {
        ty: Type,
    }(d: Dst, a: Src, b: Src) -> |op, operands| {
            operands.of_thread(&op.a, matches!(op.b, Src::Imm(Imm::Int(5..=31))))
        },
        check: |op, check| {
            check.operation(op.ty, SHIFTED, op.d, [&op.a]);
            check.word_src("b", &op.b);
        };

    /// Funnel shift.
    pub struct Shf("shf") {
        direction: ShiftDirection,
        mode: ShiftMode,
        ty: Type,
    }(d: Dst, a: Src, b: Src, c: Src) -> pointwise,
        check: |op, check| {
            check.operation(op.ty, &[B32], op.d, [&op.a, &op.b]);
            check.word_src("c", &op.c);
        };

    /// Bit field extract.
    pub struct Bfe("bfe") {
        ty: Type,
    }(d: Dst, a: Src, b: Src, c: Src) -> pointwise,
        check: |op, check| {
            check.operation(op.ty, FIELDS, op.d, [&op.a]);
            field(check, "b", &op.b);
            field(check, "c", &op.c);
        };

    /// Bit field insert.
    pub struct Bfi("bfi") {
        ty: Type,
    }(d: Dst, a: Src, b: Src, c: Src, length: Src) -> pointwise,
        check: |op, check| {
            check.operation(op.ty, WIDE_BITS, op.d, [&op.a, &op.b]);
            field(check, "c", &op.c);
            field(check, "length", &op.length);
        };

    /// Number of one bits.
    pub struct Popc("popc")
    /// Number of leading zero bits.
    pub struct Clz("clz") {
        ty: Type,
    }(d: Dst, a: Src) -> pointwise,
        check: |op, check| counting(check, op.ty, WIDE_BITS, op.d, &op.a);

    /// Bits in reverse order.
    pub struct Brev("brev") {
        ty: Type,
    }(d: Dst, a: Src) -> pointwise,
        check: |op, check| {
            check.operation(op.ty, WIDE_BITS, op.d, [&op.a]);
        };

    /// Position of the most significant non-sign bit.
    pub struct Bfind("bfind") {
        shiftamt: bool = "shiftamt",
        ty: Type,
    }(d: Dst, a: Src) -> pointwise,
        check: |op, check| counting(check, op.ty, FIELDS, op.d, &op.a);

    /// Position of the n-th one bit of `mask`, counted from `base`.
    pub struct Fns("fns") {
        ty: Type,
    }(d: Dst, mask: Src, base: Src, offset: Src) -> pointwise,
        check: |op, check| {
            if check.operation(op.ty, &[B32], op.d, []) {
                check.src("mask", &op.mask, B32);
                check.src("base", &op.base, B32);
                check.src("offset", &op.offset, B32);
            }
        };

    /// Sign or zero extension of the low `b` bits of `a`.
    pub struct Szext("szext") {
        mode: ShiftMode,
        ty: Type,
    }(d: Dst, a: Src, b: Src) -> pointwise,
        needs: |_, needs| needs.both("`szext`", (7, 6), 70),
        check: |op, check| {
            check.operation(op.ty, &[U32, S32], op.d, [&op.a]);
            check.word_src("b", &op.b);
        };

    /// A mask of `b` one bits from bit `a` on.
    pub struct Bmsk("bmsk") {
        mode: ShiftMode,
        ty: Type,
    }(d: Dst, a: Src, b: Src) -> pointwise,
        needs: |_, needs| needs.both("`bmsk`", (7, 6), 70),
        check: |op, check| {
            if !check.type_among(op.ty, &[B32]) {
                return;
            }
            check.word_dst("d", op.d);
            check.word_src("a", &op.a);
            check.word_src("b", &op.b);
        };

    /// Selects four of eight bytes.
    pub struct Prmt("prmt") {
        ty: Type,
        mode: Option<PermuteMode>,
    }(d: Dst, a: Src, b: Src, c: Src) -> pointwise,
        check: |op, check| {
            check.operation(op.ty, &[B32], op.d, [&op.a, &op.b, &op.c]);
        };
}

const BITS: &[Type] = &[B16, B32, B64];
const WIDE_BITS: &[Type] = &[B32, B64];
const LOGIC: &[Type] = &[Pred, B16, B32, B64];
const SHIFTED: &[Type] = &[B16, B32, B64, U16, U32, U64, S16, S32, S64];
const FIELDS: &[Type] = &[U32, U64, S32, S64];

/// The bits of a constant.
fn bits(src: &Src) -> Option<u64> {
    src.imm().and_then(Imm::bits)
}

/// The bits of a position or length that count in a bit field.
const FIELD_BYTE: std::ops::RangeInclusive<i64> = 0..=255;

/// An operation on one value whose result is a count or a position.
fn counting(check: &mut Check<'_>, ty: Type, allowed: &[Type], d: Dst, a: &Src) {
    if !check.type_among(ty, allowed) {
        return;
    }
    check.word_dst("d", d);
    check.src("a", a, ty);
}

/// A position or length of a bit field: a byte.
fn field(check: &mut Check<'_>, name: &str, src: &Src) {
    check.word_src(name, src);
    check.imm_range(name, src, FIELD_BYTE);
}

impl Rule for Lop3 {
    fn check(&self, check: &mut Check<'_>) {
        if !check.type_among(self.ty, &[B32]) {
            return;
        }
        let pair = self.d.second;
        if self.bool_op.is_some() {
            check.combination(
                matches!(self.bool_op, Some(BoolOp::And | BoolOp::Or)),
                "the predicate is combined by `.and` or `.or`",
            );
            check.that(
                matches!(pair, Some(Some(_))) && self.q.is_some(),
                Code::OperandForm,
                "with `.and` or `.or`, the destination is `d|p`, and the last operand a predicate",
            );
        } else if pair.is_some() || self.q.is_some() {
            check.report(Code::OperandForm, "a predicate is written and read only with `.and` or `.or`");
        }
        if let Some(d) = self.d.first {
            check.reg("d", d, B32);
        }
        check.pred_dst("p", pair.flatten());
        for (name, src) in [("a", &self.a), ("b", &self.b), ("c", &self.c)] {
            check.src(name, src, B32);
        }
        if self.table.imm().is_some() {
            check.imm_range("table", &self.table, 0..=255);
        } else {
            check.report(Code::OperandForm, "the truth table is an integer constant");
        }
        check.src("q", &self.q, Pred);
    }
}
