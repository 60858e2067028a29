//! Quotients, roots and the functions that are approximated.

use super::{INTEGERS, directions, flag, rounding};
use crate::diag::Code;
use crate::ir::Type::*;
use crate::ir::*;
use crate::op::Check;
use crate::op::{Rule, instruction};

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
        };

    /// Remainder.
    pub struct Rem("rem") {
        ty: Type,
    }(d: Dst, a: Src, b: Src) -> pointwise;

    /// Reciprocal.
    pub struct Rcp("rcp") {
        approx: bool = "approx",
        rounding: Option<Rounding>,
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src) -> pointwise;

    /// Square root.
    pub struct Sqrt("sqrt") {
        approx: bool = "approx",
        rounding: Option<Rounding>,
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src) -> pointwise;

    /// Reciprocal of the square root.
    pub struct Rsqrt("rsqrt") {
        approx: bool = "approx",
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src) -> pointwise;

    /// Sine.
    pub struct Sin("sin") {
        approx: bool = "approx",
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src) -> pointwise;

    /// Cosine.
    pub struct Cos("cos") {
        approx: bool = "approx",
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src) -> pointwise;

    /// Logarithm to base 2.
    pub struct Lg2("lg2") {
        approx: bool = "approx",
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src) -> pointwise;

    /// Power of 2.
    pub struct Ex2("ex2") {
        approx: bool = "approx",
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src) -> pointwise,
        needs: |op, needs| {
            match op.ty {
                F16 | F16X2 => needs.both("`ex2` of `.f16`", (7, 0), 75),
                BF16 | BF16X2 => needs.both("`ex2` of `.bf16`", (7, 8), 90),
                _ => {}
            }
        };

    /// Hyperbolic tangent.
    pub struct Tanh("tanh") {
        approx: bool = "approx",
        ty: Type,
    }(d: Dst, a: Src) -> pointwise,
        needs: |op, needs| {
            match op.ty {
                BF16 | BF16X2 => needs.both("`tanh` of `.bf16`", (7, 8), 90),
                _ => needs.both("`tanh`", (7, 0), 75),
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
    check.combination(count == 1, &format!("exactly one of {choices} is needed: {count} given"));
}

fn unary(check: &mut Check<'_>, ty: Type, d: Dst, a: &Src) {
    check.dst("d", d, ty);
    check.src("a", a, ty);
}

/// The quotient and the remainder of integers by zero are whatever the machine makes of them.
fn not_by_zero(check: &mut Check<'_>, divisor: &Src) {
    if *divisor == Src::Imm(Imm::Int(0)) {
        check.report(Code::DivisionByZero, "the result of a division by zero is not specified");
    }
}

impl Rule for Div {
    fn check(&self, check: &mut Check<'_>) {
        const TYPES: &[Type] = &[U16, U32, U64, S16, S32, S64, F32, F64];
        if !check.type_among(self.ty, TYPES) {
            return;
        }
        rounding(check, self.rounding, self.ty, directions(self.ty));
        flag(check, self.approx, "approx", self.ty, &[F32]);
        flag(check, self.full, "full", self.ty, &[F32]);
        flag(check, self.ftz, "ftz", self.ty, &[F32]);
        let rounded = self.rounding.is_some();
        match self.ty {
            F32 => {
                let given = [self.approx, self.full, rounded];
                one_accuracy(check, &given, "`.approx`, `.full` and a rounding");
            }
            F64 => check.combination(rounded, "a rounding is needed: `.rn`, `.rz`, `.rm` or `.rp`"),
            _ => not_by_zero(check, &self.b),
        }
        unary(check, self.ty, self.d, &self.a);
        check.src("b", &self.b, self.ty);
    }
}

impl Rule for Rem {
    fn check(&self, check: &mut Check<'_>) {
        if !check.type_among(self.ty, INTEGERS) {
            return;
        }
        unary(check, self.ty, self.d, &self.a);
        check.src("b", &self.b, self.ty);
        not_by_zero(check, &self.b);
    }
}

impl Rule for Rcp {
    fn check(&self, check: &mut Check<'_>) {
        if !check.type_among(self.ty, &[F32, F64]) {
            return;
        }
        rounding(check, self.rounding, self.ty, directions(self.ty));
        one_accuracy(check, &[self.approx, self.rounding.is_some()], "`.approx` and a rounding");
        if self.ty == F64 {
            check.combination(
                self.approx == self.ftz,
                "the approximation in `.f64` is `.approx.ftz`, and nothing else in `.f64` takes `.ftz`",
            );
        }
        unary(check, self.ty, self.d, &self.a);
    }
}

impl Rule for Sqrt {
    fn check(&self, check: &mut Check<'_>) {
        if !check.type_among(self.ty, &[F32, F64]) {
            return;
        }
        rounding(check, self.rounding, self.ty, directions(self.ty));
        flag(check, self.approx, "approx", self.ty, &[F32]);
        flag(check, self.ftz, "ftz", self.ty, &[F32]);
        one_accuracy(check, &[self.approx, self.rounding.is_some()], "`.approx` and a rounding");
        unary(check, self.ty, self.d, &self.a);
    }
}

impl Rule for Rsqrt {
    fn check(&self, check: &mut Check<'_>) {
        if !check.type_among(self.ty, &[F32, F64]) {
            return;
        }
        approximate(check, self.approx);
        unary(check, self.ty, self.d, &self.a);
    }
}

impl Rule for Sin {
    fn check(&self, check: &mut Check<'_>) {
        if !check.type_among(self.ty, &[F32]) {
            return;
        }
        approximate(check, self.approx);
        unary(check, self.ty, self.d, &self.a);
    }
}

impl Rule for Cos {
    fn check(&self, check: &mut Check<'_>) {
        if !check.type_among(self.ty, &[F32]) {
            return;
        }
        approximate(check, self.approx);
        unary(check, self.ty, self.d, &self.a);
    }
}

impl Rule for Lg2 {
    fn check(&self, check: &mut Check<'_>) {
        if !check.type_among(self.ty, &[F32]) {
            return;
        }
        approximate(check, self.approx);
        unary(check, self.ty, self.d, &self.a);
    }
}

impl Rule for Ex2 {
    fn check(&self, check: &mut Check<'_>) {
        if !check.type_among(self.ty, EXPONENTIAL) {
            return;
        }
        match self.ty {
            F16 | F16X2 => check.combination(!self.ftz, "`.ftz` does not go with `.f16`"),
            BF16 | BF16X2 => check.combination(self.ftz, "`.bf16` needs `.ftz`"),
            _ => {}
        }
        approximate(check, self.approx);
        unary(check, self.ty, self.d, &self.a);
    }
}

impl Rule for Tanh {
    fn check(&self, check: &mut Check<'_>) {
        if !check.type_among(self.ty, EXPONENTIAL) {
            return;
        }
        approximate(check, self.approx);
        unary(check, self.ty, self.d, &self.a);
    }
}
