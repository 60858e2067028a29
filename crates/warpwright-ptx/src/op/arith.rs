//! Integer and floating-point arithmetic.

use super::{Rule, instruction};
use crate::ir::*;
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

    /// Sum with carry in.
    pub struct Addc("addc") {
        cc: bool = "cc",
        ty: Type,
    }(d: Dst, a: Src, b: Src)

    /// Difference with borrow in.
    pub struct Subc("subc") {
        cc: bool = "cc",
        ty: Type,
    }(d: Dst, a: Src, b: Src)

    /// Product.
    pub struct Mul("mul") {
        half: Option<MulHalf>,
        rounding: Option<Rounding>,
        ftz: bool = "ftz",
        sat: bool = "sat",
        ty: Type,
    }(d: Dst, a: Src, b: Src)

    /// Product and sum.
    pub struct Mad("mad") {
        half: Option<MulHalf>,
        rounding: Option<Rounding>,
        ftz: bool = "ftz",
        sat: bool = "sat",
        cc: bool = "cc",
        ty: Type,
    }(d: Dst, a: Src, b: Src, c: Src)

    /// Product and sum with carry in.
    pub struct Madc("madc") {
        half: Option<MulHalf>,
        cc: bool = "cc",
        ty: Type,
    }(d: Dst, a: Src, b: Src, c: Src)

    /// Product and sum, rounded once.
    pub struct Fma("fma") {
        rounding: Option<Rounding>,
        ftz: bool = "ftz",
        sat: bool = "sat",
        relu: bool = "relu",
        ty: Type,
    }(d: Dst, a: Src, b: Src, c: Src)

    /// Quotient.
    pub struct Div("div") {
        approx: bool = "approx",
        full: bool = "full",
        rounding: Option<Rounding>,
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src, b: Src)

    /// Remainder.
    pub struct Rem("rem") {
        ty: Type,
    }(d: Dst, a: Src, b: Src)

    /// Absolute value.
    pub struct Abs("abs") {
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src)

    /// Negation.
    pub struct Neg("neg") {
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src)

    /// Smaller of two (or three) values.
    pub struct Min("min") {
        ftz: bool = "ftz",
        nan: bool = "NaN",
        xorsign: bool = "xorsign",
        abs: bool = "abs",
        relu: bool = "relu",
        ty: Type,
    }(d: Dst, a: Src, b: Src, c: Option<Src>)

    /// Larger of two (or three) values.
    pub struct Max("max") {
        ftz: bool = "ftz",
        nan: bool = "NaN",
        xorsign: bool = "xorsign",
        abs: bool = "abs",
        relu: bool = "relu",
        ty: Type,
    }(d: Dst, a: Src, b: Src, c: Option<Src>)

    /// Reciprocal.
    pub struct Rcp("rcp") {
        approx: bool = "approx",
        rounding: Option<Rounding>,
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src)

    /// Square root.
    pub struct Sqrt("sqrt") {
        approx: bool = "approx",
        rounding: Option<Rounding>,
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src)

    /// Reciprocal of the square root.
    pub struct Rsqrt("rsqrt") {
        approx: bool = "approx",
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src)

    /// Sine.
    pub struct Sin("sin") {
        approx: bool = "approx",
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src)

    /// Cosine.
    pub struct Cos("cos") {
        approx: bool = "approx",
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src)

    /// Logarithm to base 2.
    pub struct Lg2("lg2") {
        approx: bool = "approx",
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src)

    /// Power of 2.
    pub struct Ex2("ex2") {
        approx: bool = "approx",
        ftz: bool = "ftz",
        ty: Type,
    }(d: Dst, a: Src)

    /// Hyperbolic tangent.
    pub struct Tanh("tanh") {
        approx: bool = "approx",
        ty: Type,
    }(d: Dst, a: Src)

    /// Dot product of four bytes, added to `c`.
    pub struct Dp4a("dp4a") {
        a_type: Type,
        b_type: Type,
    }(d: Dst, a: Src, b: Src, c: Src)

    /// Dot product of two halves of `a` with two bytes of `b`, added to `c`.
    pub struct Dp2a("dp2a") {
        half: MulHalf,
        a_type: Type,
        b_type: Type,
    }(d: Dst, a: Src, b: Src, c: Src)
}

impl Rule for Add {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Sub {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Addc {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Subc {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Mul {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Mad {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Madc {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Fma {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Div {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Rem {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Abs {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Neg {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Min {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Max {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Rcp {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Sqrt {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Rsqrt {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Sin {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Cos {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Lg2 {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Ex2 {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Tanh {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Dp4a {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Dp2a {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}
