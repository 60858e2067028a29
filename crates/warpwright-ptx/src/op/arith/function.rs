//! Quotients, roots and approximated functions.

use super::{INTEGERS, directions, flag, rounding};
use crate::diag::Code;
use crate::ir::Type::*;
use crate::ir::*;
use crate::op::{Check, instruction};

instruction! {
    /// Quotient.
    pub struct Div("div") {
        approx: bool = "approx",
        full: bool = "full",
        rounding: Option<Rounding>,
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src, b: Src) -> |op, operands| {
            operands.of_thread(&op.a, matches!(op.b, Src::Imm(Imm::Int(n)) if n > 0 && n % 32 == 0))
        },
        check: |op, check| {
            const TYPES: &[Type] = &[U16, U32, U64, S16, S32, S64, F32, F64];
            if !check.operation(op.ty, TYPES, op.d, [&op.a, &op.b]) {
                return;
            }
            rounding(check, op.rounding, op.ty, directions(op.ty));
            flag(check, op.approx, "approx", op.ty, &[F32]);
            flag(check, op.full, "full", op.ty, &[F32]);
            flag(check, op.ftz, "ftz", op.ty, &[F32]);
            let rounded = op.rounding.is_some();
            match op.ty {
                F32 => {
                    let given = [op.approx, op.full, rounded];
                    one_accuracy(check, &given, "`.approx`, `.full` and a rounding");
                }
                F64 => check.combination(rounded, "a rounding is needed: `.rn`, `.rz`, `.rm` or `.rp`"),
                _ => not_by_zero(check, &op.b),
            }
        };

    /// Remainder.
    pub struct Rem("rem") {
        ty: Type,
    }(d: Dst, a: Src, b: Src) -> pointwise,
        check: |op, check| {
            if check.operation(op.ty, INTEGERS, op.d, [&op.a, &op.b]) {
                not_by_zero(check, &op.b);
            }
        };

    /// Reciprocal.
    pub struct Rcp("rcp") {
        approx: bool = "approx",
        rounding: Option<Rounding>,
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src) -> pointwise,
        check: |op, check| {
            if check.operation(op.ty, &[F32, F64], op.d, [&op.a]) {
                rounding(check, op.rounding, op.ty, directions(op.ty));
                one_accuracy(check, &[op.approx, op.rounding.is_some()], "`.approx` and a rounding");
                check.combination(
                    op.ty == F32 || op.approx == op.ftz,
                    "the approximation in `.f64` is `.approx.ftz`, and nothing else in `.f64` takes `.ftz`",
                );
            }
        };

    /// Square root.
    pub struct Sqrt("sqrt") {
        approx: bool = "approx",
        rounding: Option<Rounding>,
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src) -> pointwise,
        check: |op, check| {
            if check.operation(op.ty, &[F32, F64], op.d, [&op.a]) {
                rounding(check, op.rounding, op.ty, directions(op.ty));
                flag(check, op.approx, "approx", op.ty, &[F32]);
                flag(check, op.ftz, "ftz", op.ty, &[F32]);
                one_accuracy(check, &[op.approx, op.rounding.is_some()], "`.approx` and a rounding");
            }
        };

    /// Reciprocal of the square root.
    pub struct Rsqrt("rsqrt") {
        approx: bool = "approx",
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src) -> pointwise,
        check: |op, check| {
            if check.operation(op.ty, &[F32, F64], op.d, [&op.a]) {
                approximate(check, op.approx);
            }
        };

    /// Sine.
    pub struct Sin("sin")
    /// Cosine.
    pub struct Cos("cos")
    /// Logarithm to base 2.
    pub struct Lg2("lg2") {
        approx: bool = "approx",
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src) -> pointwise,
        check: |op, check| {
            if check.operation(op.ty, &[F32], op.d, [&op.a]) {
                approximate(check, op.approx);
            }
        };

    /// Power of 2.
    pub struct Ex2("ex2") {
        approx: bool = "approx",
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src) -> pointwise,
        needs: |op, needs| match op.ty {
            F16 | F16X2 => needs.both("`ex2` of `.f16`", (7, 0), 75),
            BF16 | BF16X2 => needs.both("`ex2` of `.bf16`", (7, 8), 90),
            _ => {}
        },
        check: |op, check| {
            if check.operation(op.ty, EXPONENTIAL, op.d, [&op.a]) {
                approximate(check, op.approx);
                match op.ty {
                    F16 | F16X2 => check.combination(!op.ftz, "`.ftz` does not go with `.f16`"),
                    BF16 | BF16X2 => check.combination(op.ftz, "`.bf16` needs `.ftz`"),
                    _ => {}
                }
            }
        };

    /// Hyperbolic tangent.
    pub struct Tanh("tanh") {
        approx: bool = "approx",
        ty: Type,
    }(d: Dst, a: Src) -> pointwise,
        needs: |op, needs| match op.ty {
            BF16 | BF16X2 => needs.both("`tanh` of `.bf16`", (7, 8), 90),
            _ => needs.both("`tanh`", (7, 0), 75),
        },
        check: |op, check| {
            if check.operation(op.ty, EXPONENTIAL, op.d, [&op.a]) {
                approximate(check, op.approx);
            }
        };
}

const EXPONENTIAL: &[Type] = &[F16, F16X2, BF16, BF16X2, F32];

/// An operation that is approximated says so.
fn approximate(check: &mut Check<'_>, approx: bool) {
    check.combination(approx, "only the approximation exists: `.approx` is needed");
}

/// How exact a result is must be said once.
fn one_accuracy(check: &mut Check<'_>, given: &[bool], choices: &str) {
    let count = given.iter().filter(|&&given| given).count();
    check.combination(count == 1, format_args!("exactly one of {choices} is needed: {count} given"));
}

/// The quotient and the remainder of integers by zero are whatever the machine makes of them.
fn not_by_zero(check: &mut Check<'_>, divisor: &Src) {
    if *divisor == Src::Imm(Imm::Int(0)) {
        check.report(Code::DivisionByZero, "the result of a division by zero is not specified");
    }
}
