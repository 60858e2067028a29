//! Integer and floating-point arithmetic.

use super::{Rule, instruction};
use crate::ir::{Dst, Needs, Rounding, Src, Type};
use crate::verify::Check;

instruction! {
    /// Sum.
    pub struct Add("add") {
        rounding: Option<Rounding>,
        ftz: bool = "ftz",
        sat: bool = "sat",
        cc: bool = "cc",
        ty: Type,
    }(d: Dst, a: Src, b: Src)

    /// Difference.
    pub struct Sub("sub") {
        rounding: Option<Rounding>,
        ftz: bool = "ftz",
        sat: bool = "sat",
        cc: bool = "cc",
        ty: Type,
    }(d: Dst, a: Src, b: Src)
}

impl Rule for Add {
    fn check(&self, check: &mut Check<'_>) {
        check.combination(!self.ftz || self.ty.is_float(), "`.ftz` is for floating point");
        check.dst("d", self.d, self.ty);
        check.src("a", &self.a, self.ty);
        check.src("b", &self.b, self.ty);
    }

    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Sub {
    fn check(&self, check: &mut Check<'_>) {
        check.dst("d", self.d, self.ty);
        check.src("a", &self.a, self.ty);
        check.src("b", &self.b, self.ty);
    }

    fn needs(&self, _needs: &mut Needs) {}
}
