//! Signs and classes of numbers.

use super::{flag, packed_needs, simple_bf16_needs};
use crate::ir::Type::*;
use crate::ir::*;
use crate::op::{instruction, modifiers};

modifiers! {
    /// The class of floating-point numbers that `testp` tests for.
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
            needs.both_if(matches!(op.ty, F16 | F16X2), "`abs` of `.f16`", (6, 5), 53);
        },
        check: |op, check| {
            if check.operation(op.ty, ABS, op.d, [&op.a]) {
                flag(check, op.ftz, "ftz", op.ty, FTZ);
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
            needs.sm_if(matches!(op.ty, F16 | F16X2), "`neg` of `.f16`", 53);
        },
        check: |op, check| {
            if check.operation(op.ty, NEG, op.d, [&op.a]) {
                flag(check, op.ftz, "ftz", op.ty, FTZ);
            }
        };

    /// The magnitude of `b` with the sign of `a`.
    pub struct Copysign("copysign") {
        ty: Type,
    }(d: Dst, a: Src, b: Src) -> pointwise,
        check: |op, check| {
            check.operation(op.ty, &[F32, F64], op.d, [&op.a, &op.b]);
        };

    /// Whether a number is of a class.
    pub struct Testp("testp") {
        class: FloatClass,
        ty: Type,
    }(p: Dst, a: Src) -> pointwise,
        check: |op, check| {
            if check.type_among(op.ty, &[F32, F64]) {
                check.dst("p", op.p, Pred);
                check.src("a", &op.a, op.ty);
            }
        };
}

const ABS: &[Type] = &[S16, S32, S64, F16, F16X2, BF16, BF16X2, F32, F64];
const NEG: &[Type] = &[S16, S32, S64, F16, F16X2, BF16, BF16X2, F32, F64, S8X4];
const FTZ: &[Type] = &[F16, F16X2, F32];
