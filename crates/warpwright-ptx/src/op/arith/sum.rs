//! Sums and differences.

use super::{
    BYTE_ARITHMETIC, CARRYING, INTEGERS, directions, flag, half_precision_needs, mixed, mixed_needs,
    packed_needs, rounding,
};
use crate::ir::Type::*;
use crate::ir::*;
use crate::op::{Carry, Check, instruction};

instruction! {
    /// Sum.
    pub struct Add("add")
    /// Difference.
    pub struct Sub("sub") {
        rounding: Option<Rounding>,
        ftz: bool = "ftz",
        sat: bool = "sat",
        cc: bool = "cc",
        ty: Type,
        /// With mixed precision, the type of `a`.
        a_type: Option<Type>,
    }(d: Dst, a: Src, b: Src) -> pointwise,
        needs: |op, needs| {
            packed_needs(needs, op.ty);
            half_precision_needs(needs, op.ty);
            saturation_needs(needs, op.sat && Self::SATURATING.contains(&op.ty), op.ty);
            mixed_needs(needs, op.a_type);
        },
        carry: |op| Carry { reads: false, writes: op.cc },
        check: |op, check| {
            if !check.type_among(op.ty, Self::TYPES) {
                return;
            }
            rounding(check, op.rounding, op.ty, directions(op.ty));
            flag(check, op.ftz, "ftz", op.ty, FTZ);
            flag(check, op.sat, "sat", op.ty, Self::SATURATING);
            carry(check, op.cc, op.sat, op.ty);
            mixed(check, op.a_type, op.ty, op.ftz);
            check.dst("d", op.d, op.ty);
            check.src("a", &op.a, op.a_type.unwrap_or(op.ty));
            check.src("b", &op.b, op.ty);
        };

    /// Sum with carry in.
    pub struct Addc("addc")
    /// Difference with borrow in.
    pub struct Subc("subc") {
        cc: bool = "cc",
        ty: Type,
    }(d: Dst, a: Src, b: Src) -> pointwise,
        carry: |op| Carry { reads: true, writes: op.cc },
        check: |op, check| {
            check.operation(op.ty, CARRYING, op.d, [&op.a, &op.b]);
        };

    /// Sum of `c` and the absolute difference of `a` and `b`.
    pub struct Sad("sad") {
        ty: Type,
    }(d: Dst, a: Src, b: Src, c: Src) -> pointwise,
        check: |op, check| {
            check.operation(op.ty, INTEGERS, op.d, [&op.a, &op.b, &op.c]);
        };
}

impl Add {
    const TYPES: &[Type] =
        &[U16, U32, U64, S16, S32, S64, F16, F16X2, BF16, BF16X2, F32, F64, F32X2, U16X2, S16X2, U8X4, S8X4];
    const SATURATING: &[Type] = &[U32, S32, U16X2, S16X2, U8X4, S8X4, F16, F16X2, F32];
}

impl Sub {
    const TYPES: &[Type] =
        &[U16, U32, U64, S16, S32, S64, F16, F16X2, BF16, BF16X2, F32, F64, F32X2, U8X4, S8X4];
    const SATURATING: &[Type] = &[S32, U8X4, S8X4, F16, F16X2, F32];
}

const FTZ: &[Type] = &[F16, F16X2, F32, F32X2];

/// What a sum needs because it saturates. That of signed words and of floats is old.
fn saturation_needs(needs: &mut Needs, sat: bool, ty: Type) {
    if sat && matches!(ty, U32 | U16X2 | S16X2) {
        needs.targets("saturating sums of this type", (9, 2), BYTE_ARITHMETIC);
    }
}

fn carry(check: &mut Check<'_>, cc: bool, sat: bool, ty: Type) {
    flag(check, cc, "cc", ty, CARRYING);
    check.combination(!(cc && sat), "`.cc` and `.sat` do not go together: what saturates does not carry");
}
