//! Bitwise logic, shifts and bit fields.

use super::{Rule, instruction, modifiers};
use crate::ir::*;
use crate::verify::Check;

modifiers! {
    /// Which way a funnel shift goes.
    pub enum ShiftDirection {
        /// Left: the high word of the result.
        Left = "l",
        /// Right: the low word of the result.
        Right = "r",
    }

    /// What a shift amount above 31 does.
    pub enum ShiftMode {
        /// It counts as 32.
        Clamp = "clamp",
        /// It is taken modulo 32.
        Wrap = "wrap",
    }

    /// How `prmt` picks bytes, other than by a selector of four nibbles.
    pub enum PermuteMode {
        /// Four bytes from a position on.
        F4e = "f4e",
        /// Four bytes down to a position.
        B4e = "b4e",
        /// One byte, four times.
        Rc8 = "rc8",
        /// Edge clamp left.
        Ecl = "ecl",
        /// Edge clamp right.
        Ecr = "ecr",
        /// One half, twice.
        Rc16 = "rc16",
    }
}

instruction! {
    /// Bitwise and.
    pub struct And("and") {
        ty: Type,
    }(d: Dst, a: Src, b: Src)

    /// Bitwise or.
    pub struct Or("or") {
        ty: Type,
    }(d: Dst, a: Src, b: Src)

    /// Bitwise exclusive or.
    pub struct Xor("xor") {
        ty: Type,
    }(d: Dst, a: Src, b: Src)

    /// Bitwise complement.
    pub struct Not("not") {
        ty: Type,
    }(d: Dst, a: Src)

    /// 1 where `a` is zero, else 0.
    pub struct Cnot("cnot") {
        ty: Type,
    }(d: Dst, a: Src)

    /// Any bitwise function of three values, by its truth table.
    pub struct Lop3("lop3") {
        bool_op: Option<BoolOp>,
        ty: Type,
    }(d: DstPair, a: Src, b: Src, c: Src, table: Src, q: Option<Src>)

    /// Shift left.
    pub struct Shl("shl") {
        ty: Type,
    }(d: Dst, a: Src, b: Src)

    /// Shift right, arithmetic for signed types.
    pub struct Shr("shr") {
        ty: Type,
    }(d: Dst, a: Src, b: Src)

    /// Funnel shift.
    pub struct Shf("shf") {
        direction: ShiftDirection,
        mode: ShiftMode,
        ty: Type,
    }(d: Dst, a: Src, b: Src, c: Src)

    /// Bit field extract.
    pub struct Bfe("bfe") {
        ty: Type,
    }(d: Dst, a: Src, b: Src, c: Src)

    /// Bit field insert.
    pub struct Bfi("bfi") {
        ty: Type,
    }(d: Dst, a: Src, b: Src, c: Src, length: Src)

    /// Number of one bits.
    pub struct Popc("popc") {
        ty: Type,
    }(d: Dst, a: Src)

    /// Number of leading zero bits.
    pub struct Clz("clz") {
        ty: Type,
    }(d: Dst, a: Src)

    /// Bits in reverse order.
    pub struct Brev("brev") {
        ty: Type,
    }(d: Dst, a: Src)

    /// Position of the most significant non-sign bit.
    pub struct Bfind("bfind") {
        shiftamt: bool = "shiftamt",
        ty: Type,
    }(d: Dst, a: Src)

    /// Picks four bytes out of eight.
    pub struct Prmt("prmt") {
        ty: Type,
        mode: Option<PermuteMode>,
    }(d: Dst, a: Src, b: Src, c: Src)
}

impl Rule for And {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Or {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Xor {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Not {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Cnot {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Lop3 {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Shl {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Shr {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Shf {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Bfe {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Bfi {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Popc {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Clz {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Brev {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Bfind {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Prmt {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}
