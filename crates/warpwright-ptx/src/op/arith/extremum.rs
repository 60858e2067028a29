//! Minimum and maximum.

use super::{flag, packed_needs, simple_bf16_needs};
use crate::ir::Type::*;
use crate::ir::*;
use crate::op::instruction;

instruction! {
    /// Smaller of two (or three) values.
    pub struct Min("min")
    /// Larger of two (or three) values.
    pub struct Max("max") {
        ftz: bool = "ftz",
        nan: bool = "NaN",
        xorsign: bool = "xorsign",
        abs: bool = "abs",
        relu: bool = "relu",
        ty: Type,
    }(d: Dst, a: Src, b: Src, c: Option<Src>) -> pointwise,
        needs: |op, needs| {
            packed_needs(needs, op.ty);
            simple_bf16_needs(needs, op.ty);
            needs.both_if(matches!(op.ty, F16 | F16X2), "extrema of `.f16`", (7, 0), 80);
            needs.both_if(op.nan, "`.NaN`", (7, 0), 80);
            needs.both_if(op.xorsign, "`.xorsign.abs`", (7, 2), 86);
            needs.both_if(op.relu, "`.relu` on integers", (8, 0), 90);
            needs.both_if(op.c.is_some(), "an extremum of three values", (8, 8), 100);
        },
        check: |op, check| {
            if op.c.is_some() && op.ty != F32 {
                return check.combination(false, "three values are compared in `.f32` only");
            }
            if !check.operation(op.ty, TYPES, op.d, [&op.a, &op.b]) {
                return;
            }
            if let Some(c) = &op.c {
                check.src("c", c, op.ty);
                let plain = !op.xorsign && !op.relu;
                return check.combination(plain, "with three values there is no `.xorsign` and no `.relu`");
            }
            flag(check, op.ftz, "ftz", op.ty, FTZ);
            flag(check, op.nan, "NaN", op.ty, NAN);
            flag(check, op.xorsign, "xorsign", op.ty, NAN);
            flag(check, op.relu, "relu", op.ty, RELU);
            check.combination(op.xorsign == op.abs, "`.xorsign` and `.abs` go together: `.xorsign.abs`");
        };
}

const TYPES: &[Type] =
    &[U16, U32, U64, S16, S32, S64, F16, F16X2, BF16, BF16X2, F32, F64, U16X2, S16X2, U8X4, S8X4];
const FTZ: &[Type] = &[F16, F16X2, F32];
const NAN: &[Type] = &[F16, F16X2, BF16, BF16X2, F32];
const RELU: &[Type] = &[S32, S16X2, S8X4];
