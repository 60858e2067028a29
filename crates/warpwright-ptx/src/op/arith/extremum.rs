//! The smaller and the larger of values.

use super::{flag, packed_needs, simple_bf16_needs};
use crate::ir::Type::*;
use crate::ir::*;
use crate::op::Check;
use crate::op::{Rule, instruction};

instruction! {
    /// Smaller of two (or three) values.
    pub struct Min("min") {
        ftz: bool = "ftz",
        nan: bool = "NaN",
        xorsign: bool = "xorsign",
        abs: bool = "abs",
        relu: bool = "relu",
        ty: Type,
    }(d: Dst, a: Src, b: Src, c: Option<Src>) -> pointwise,
        needs: |op, needs| op.form().needs(needs);

    /// Larger of two (or three) values.
    pub struct Max("max") {
        ftz: bool = "ftz",
        nan: bool = "NaN",
        xorsign: bool = "xorsign",
        abs: bool = "abs",
        relu: bool = "relu",
        ty: Type,
    }(d: Dst, a: Src, b: Src, c: Option<Src>) -> pointwise,
        needs: |op, needs| op.form().needs(needs);
}

const TYPES: &[Type] =
    &[U16, U32, U64, S16, S32, S64, F16, F16X2, BF16, BF16X2, F32, F64, U16X2, S16X2, U8X4, S8X4];
const FTZ: &[Type] = &[F16, F16X2, F32];
const NAN: &[Type] = &[F16, F16X2, BF16, BF16X2, F32];
const RELU: &[Type] = &[S32, S16X2, S8X4];

/// The modifiers and the type of a minimum or maximum.
struct Form {
    ftz: bool,
    nan: bool,
    xorsign: bool,
    abs: bool,
    relu: bool,
    ty: Type,
    three: bool,
}

impl Form {
    /// Reports what does not go together; whether the type is offered at all.
    fn check(&self, check: &mut Check<'_>) -> bool {
        if self.three {
            check.combination(self.ty == F32, "three values are compared in `.f32` only");
            check.combination(
                !self.xorsign && !self.relu,
                "with three values there is no `.xorsign` and no `.relu`",
            );
            return self.ty == F32;
        }
        let offered = check.type_among(self.ty, TYPES);
        if offered {
            flag(check, self.ftz, "ftz", self.ty, FTZ);
            flag(check, self.nan, "NaN", self.ty, NAN);
            flag(check, self.xorsign, "xorsign", self.ty, NAN);
            flag(check, self.relu, "relu", self.ty, RELU);
            check.combination(self.xorsign == self.abs, "`.xorsign` and `.abs` go together: `.xorsign.abs`");
        }
        offered
    }

    fn needs(&self, needs: &mut Needs) {
        packed_needs(needs, self.ty);
        simple_bf16_needs(needs, self.ty);
        if matches!(self.ty, F16 | F16X2) {
            needs.both("extrema of `.f16`", (7, 0), 80);
        }
        if self.nan {
            needs.both("`.NaN`", (7, 0), 80);
        }
        if self.xorsign {
            needs.both("`.xorsign.abs`", (7, 2), 86);
        }
        if self.relu {
            needs.both("`.relu` on integers", (8, 0), 90);
        }
        if self.three {
            needs.both("an extremum of three values", (8, 8), 100);
        }
    }
}

fn operands(check: &mut Check<'_>, ty: Type, d: Dst, [a, b]: [&Src; 2], c: Option<&Src>) {
    check.dst("d", d, ty);
    check.src("a", a, ty);
    check.src("b", b, ty);
    if let Some(c) = c {
        check.src("c", c, ty);
    }
}

impl Min {
    fn form(&self) -> Form {
        let Min { ftz, nan, xorsign, abs, relu, ty, .. } = *self;
        Form { ftz, nan, xorsign, abs, relu, ty, three: self.c.is_some() }
    }
}

impl Max {
    fn form(&self) -> Form {
        let Max { ftz, nan, xorsign, abs, relu, ty, .. } = *self;
        Form { ftz, nan, xorsign, abs, relu, ty, three: self.c.is_some() }
    }
}

impl Rule for Min {
    fn check(&self, check: &mut Check<'_>) {
        if self.form().check(check) {
            operands(check, self.ty, self.d, [&self.a, &self.b], self.c.as_ref());
        }
    }
}

impl Rule for Max {
    fn check(&self, check: &mut Check<'_>) {
        if self.form().check(check) {
            operands(check, self.ty, self.d, [&self.a, &self.b], self.c.as_ref());
        }
    }
}
