//! Sums and differences.

use super::{
    BYTE_ARITHMETIC, CARRYING, INTEGERS, directions, flag, half_precision_needs, mixed, mixed_needs,
    packed_needs, rounding,
};
use crate::ir::Type::*;
use crate::ir::*;
use crate::op::{Carry, Check, Rule, instruction};

instruction! {
    /// Sum.
    pub struct Add("add") {
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
            saturation_needs(needs, op.sat, op.ty);
            mixed_needs(needs, op.a_type);
        },
        carry: |op| Carry { reads: false, writes: op.cc };

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
            mixed_needs(needs, op.a_type);
        },
        carry: |op| Carry { reads: false, writes: op.cc };

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

const ADD: &[Type] =
    &[U16, U32, U64, S16, S32, S64, F16, F16X2, BF16, BF16X2, F32, F64, F32X2, U16X2, S16X2, U8X4, S8X4];
const SUB: &[Type] = &[U16, U32, U64, S16, S32, S64, F16, F16X2, BF16, BF16X2, F32, F64, F32X2, U8X4, S8X4];
const ADD_SAT: &[Type] = &[U32, S32, U16X2, S16X2, U8X4, S8X4, F16, F16X2, F32];
const SUB_SAT: &[Type] = &[S32, U8X4, S8X4, F16, F16X2, F32];
const FTZ: &[Type] = &[F16, F16X2, F32, F32X2];

/// What a sum needs because it saturates. That of signed words and of floats is old.
fn saturation_needs(needs: &mut Needs, sat: bool, ty: Type) {
    if sat && matches!(ty, U32 | U16X2 | S16X2) {
        needs.version("saturating sums of this type", 9, 2);
        needs.add("saturating sums of this type", BYTE_ARITHMETIC);
    }
}

fn carry(check: &mut Check<'_>, cc: bool, sat: bool, ty: Type) {
    flag(check, cc, "cc", ty, CARRYING);
    check.combination(!(cc && sat), "`.cc` and `.sat` do not go together: what saturates does not carry");
}

impl Rule for Add {
    fn check(&self, check: &mut Check<'_>) {
        if !check.type_among(self.ty, ADD) {
            return;
        }
        rounding(check, self.rounding, self.ty, directions(self.ty));
        flag(check, self.ftz, "ftz", self.ty, FTZ);
        flag(check, self.sat, "sat", self.ty, ADD_SAT);
        carry(check, self.cc, self.sat, self.ty);
        mixed(check, self.a_type, self.ty, self.ftz);
        check.dst("d", self.d, self.ty);
        check.src("a", &self.a, self.a_type.unwrap_or(self.ty));
        check.src("b", &self.b, self.ty);
    }
}

impl Rule for Sub {
    fn check(&self, check: &mut Check<'_>) {
        if !check.type_among(self.ty, SUB) {
            return;
        }
        rounding(check, self.rounding, self.ty, directions(self.ty));
        flag(check, self.ftz, "ftz", self.ty, FTZ);
        flag(check, self.sat, "sat", self.ty, SUB_SAT);
        carry(check, self.cc, self.sat, self.ty);
        mixed(check, self.a_type, self.ty, self.ftz);
        check.dst("d", self.d, self.ty);
        check.src("a", &self.a, self.a_type.unwrap_or(self.ty));
        check.src("b", &self.b, self.ty);
    }
}
