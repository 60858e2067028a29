//! Conversions between types and between address spaces.

use super::{Rule, instruction};
use crate::ir::*;
use crate::verify::Check;

instruction! {
    /// Copies a register, constant, special register or address; packs and unpacks vectors.
    pub struct Mov("mov") {
        vector: Option<VectorWidth>,
        ty: Type,
    }(d: Dsts, a: Srcs)

    /// Converts between types.
    pub struct Cvt("cvt") {
        rounding: Option<Rounding>,
        ftz: bool = "ftz",
        sat: bool = "sat",
        satfinite: bool = "satfinite",
        relu: bool = "relu",
        d_type: Type,
        a_type: Type,
    }(d: Dst, a: Src, b: Option<Src>)

    /// Converts an address to generic, or from it.
    pub struct Cvta("cvta") {
        to: bool = "to",
        space: Space,
        ty: Type,
    }(d: Dst, a: Src)

    /// Whether a generic address lies in a space.
    pub struct Isspacep("isspacep") {
        space: Space,
    }(d: Dst, a: Src)
}

impl Rule for Mov {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Cvt {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Cvta {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Isspacep {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}
