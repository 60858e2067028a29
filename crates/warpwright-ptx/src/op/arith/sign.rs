//! Signs and classes of numbers.

use super::{flag, packed_needs, simple_bf16_needs};
use crate::ir::Type::*;
use crate::ir::*;
use crate::op::Check;
use crate::op::{Rule, instruction, modifiers};

modifiers! {
    /// What `testp` asks of a floating-point number.
    pub enum FloatClass {
        /// Neither infinite nor NaN.
        Finite = "finite",
        /// Infinite.
        Infinite = "infinite",
        /// Not NaN.
        Number = "number",
        /// NaN.
        NotANumber = "notanumber",
        /// Neither infinite, NaN, subnormal nor zero.
        Normal = "normal",
        /// Subnormal.
        Subnormal = "subnormal",
    }
}

instruction! {
    /// Absolute value.
    pub struct Abs("abs") {
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src) -> pointwise,
        needs: |op, needs| {
            simple_bf16_needs(needs, op.ty);
            if matches!(op.ty, F16 | F16X2) {
                needs.both("`abs` of `.f16`", (6, 5), 53);
            }
        };

    /// Negation.
    pub struct Neg("neg") {
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src) -> pointwise,
        needs: |op, needs| {
            packed_needs(needs, op.ty);
            simple_bf16_needs(needs, op.ty);
            if matches!(op.ty, F16 | F16X2) {
                needs.sm("`neg` of `.f16`", 53);
            }
        };

    /// The magnitude of `b` with the sign of `a`.
    pub struct Copysign("copysign") {
        ty: Type,
    }(d: Dst, a: Src, b: Src) -> pointwise;

    /// Whether a number is of a class.
    pub struct Testp("testp") {
        class: FloatClass,
        ty: Type,
    }(p: Dst, a: Src) -> pointwise;
}

const ABS: &[Type] = &[S16, S32, S64, F16, F16X2, BF16, BF16X2, F32, F64];
const NEG: &[Type] = &[S16, S32, S64, F16, F16X2, BF16, BF16X2, F32, F64, S8X4];
const FTZ: &[Type] = &[F16, F16X2, F32];

impl Rule for Abs {
    fn check(&self, check: &mut Check<'_>) {
        if !check.type_among(self.ty, ABS) {
            return;
        }
        flag(check, self.ftz, "ftz", self.ty, FTZ);
        check.dst("d", self.d, self.ty);
        check.src("a", &self.a, self.ty);
    }
}

impl Rule for Neg {
    fn check(&self, check: &mut Check<'_>) {
        if !check.type_among(self.ty, NEG) {
            return;
        }
        flag(check, self.ftz, "ftz", self.ty, FTZ);
        check.dst("d", self.d, self.ty);
        check.src("a", &self.a, self.ty);
    }
}

impl Rule for Copysign {
    fn check(&self, check: &mut Check<'_>) {
        if !check.type_among(self.ty, &[F32, F64]) {
            return;
        }
        check.dst("d", self.d, self.ty);
        check.src("a", &self.a, self.ty);
        check.src("b", &self.b, self.ty);
    }
}

impl Rule for Testp {
    fn check(&self, check: &mut Check<'_>) {
        if !check.type_among(self.ty, &[F32, F64]) {
            return;
        }
        check.dst("p", self.p, Pred);
        check.src("a", &self.a, self.ty);
    }
}
