//! Comparisons and selections.

use super::{Rule, instruction};
use crate::ir::*;
use crate::verify::Check;

instruction! {
    /// Compares, into a predicate (and its complement).
    pub struct Setp("setp") {
        cmp: Cmp,
        bool_op: Option<BoolOp>,
        ftz: bool = "ftz",
        ty: Type,
    }(d: DstPair, a: Src, b: Src, c: Option<Src>)

    /// Compares, into a register.
    pub struct Set("set") {
        cmp: Cmp,
        bool_op: Option<BoolOp>,
        ftz: bool = "ftz",
        d_type: Type,
        ty: Type,
    }(d: Dst, a: Src, b: Src, c: Option<Src>)

    /// `a` where the predicate `c` holds, else `b`.
    pub struct Selp("selp") {
        ty: Type,
    }(d: Dst, a: Src, b: Src, c: Src)

    /// `a` where `c` is not negative, else `b`.
    pub struct Slct("slct") {
        ftz: bool = "ftz",
        ty: Type,
        c_type: Type,
    }(d: Dst, a: Src, b: Src, c: Src)
}

impl Rule for Setp {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Set {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Selp {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Slct {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}
