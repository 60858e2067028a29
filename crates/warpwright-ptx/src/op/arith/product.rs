//! Products, alone and with a sum.

use super::{
    CARRYING, directions, flag, half, half_precision_needs, mixed, mixed_needs, packed_needs, product_type,
    rounding, simple_bf16_needs,
};
use crate::ir::Type::*;
use crate::ir::*;
use crate::op::{Carry, Check, Rule, instruction};

instruction! {
    /// Product.
    pub struct Mul("mul") {
        half: Option<MulHalf>,
        rounding: Option<Rounding>,
        ftz: bool = "ftz",
        sat: bool = "sat",
        ty: Type,
    }(d: Dst, a: Src, b: Src) -> pointwise,
        needs: |op, needs| {
            packed_needs(needs, op.ty);
            half_precision_needs(needs, op.ty);
        };

    /// Product of the low 24 bits.
    pub struct Mul24("mul24") {
        half: MulHalf,
        ty: Type,
    }(d: Dst, a: Src, b: Src) -> pointwise,
        check: |op, check| {
            if check.operation(op.ty, &[U32, S32], op.d, [&op.a, &op.b]) {
                narrow(check, op.half);
            }
        };

    /// Product and sum.
    pub struct Mad("mad") {
        half: Option<MulHalf>,
        rounding: Option<Rounding>,
        ftz: bool = "ftz",
        sat: bool = "sat",
        cc: bool = "cc",
        ty: Type,
    }(d: Dst, a: Src, b: Src, c: Src) -> pointwise,
        carry: |op| Carry { reads: false, writes: op.cc };

    /// Product of the low 24 bits, and sum.
    pub struct Mad24("mad24") {
        half: MulHalf,
        sat: bool = "sat",
        ty: Type,
    }(d: Dst, a: Src, b: Src, c: Src) -> pointwise,
        check: |op, check| {
            if check.operation(op.ty, &[U32, S32], op.d, [&op.a, &op.b, &op.c]) {
                narrow(check, op.half);
                saturates_high(check, op.sat, Some(op.half), op.ty);
            }
        };

    /// Product and sum with carry in.
    pub struct Madc("madc") {
        half: Option<MulHalf>,
        cc: bool = "cc",
        ty: Type,
    }(d: Dst, a: Src, b: Src, c: Src) -> pointwise,
        carry: |op| Carry { reads: true, writes: op.cc },
        check: |op, check| {
            if check.operation(op.ty, CARRYING, op.d, [&op.a, &op.b, &op.c]) {
                let one = matches!(op.half, Some(MulHalf::Lo | MulHalf::Hi));
                check.combination(one, "one of `.lo` and `.hi` is needed");
            }
        };

    /// Product and sum, rounded once.
    pub struct Fma("fma") {
        rounding: Option<Rounding>,
        ftz: bool = "ftz",
        sat: bool = "sat",
        relu: bool = "relu",
        /// A NaN that marks an element out of bounds makes the product zero.
        oob: bool = "oob",
        ty: Type,
        /// With mixed precision, the type of `a` and `b`.
        a_type: Option<Type>,
    }(d: Dst, a: Src, b: Src, c: Src) -> pointwise,
        needs: |op, needs| {
            packed_needs(needs, op.ty);
            simple_bf16_needs(needs, op.ty);
            mixed_needs(needs, op.a_type);
            if matches!(op.ty, F16 | F16X2) {
                needs.sm("arithmetic on `.f16`", 53);
            }
            if op.relu {
                needs.both("`.relu`", (7, 0), 80);
            }
            if op.oob {
                needs.both("`.oob`", (8, 1), 90);
            }
        };

    /// Product and sum without carries: of polynomials over two elements.
    pub struct Clmad("clmad") {
        half: MulHalf,
        ty: Type,
    }(d: Dst, a: Src, b: Src, c: Src) -> pointwise,
        needs: |_, needs| needs.both("`clmad`", (9, 3), 80),
        check: |op, check| {
            if check.operation(op.ty, &[U64], op.d, [&op.a, &op.b, &op.c]) {
                narrow(check, op.half);
            }
        };

    /// Dot product of four bytes, added to `c`.
    pub struct Dp4a("dp4a") {
        a_type: Type,
        b_type: Type,
    }(d: Dst, a: Src, b: Src, c: Src) -> pointwise,
        needs: |_, needs| needs.sm("`dp4a`", 61),
        check: |op, check| {
            let sources = [("a", &op.a), ("b", &op.b), ("c", &op.c)];
            dot_product(check, [op.a_type, op.b_type], op.d, sources);
        };

    /// Dot product of two halves of `a` with two bytes of `b`, added to `c`.
    pub struct Dp2a("dp2a") {
        half: MulHalf,
        a_type: Type,
        b_type: Type,
    }(d: Dst, a: Src, b: Src, c: Src) -> pointwise,
        needs: |_, needs| needs.sm("`dp2a`", 61),
        check: |op, check| {
            narrow(check, op.half);
            let sources = [("a", &op.a), ("b", &op.b), ("c", &op.c)];
            dot_product(check, [op.a_type, op.b_type], op.d, sources);
        };
}

const MUL: &[Type] = &[U16, U32, U64, S16, S32, S64, F16, F16X2, BF16, BF16X2, F32, F64, F32X2];
const MAD: &[Type] = &[U16, U32, U64, S16, S32, S64, F32, F64];
const FMA: &[Type] = &[F16, F16X2, BF16, BF16X2, F32, F64, F32X2];
const HALVES: &[Type] = &[F16, F16X2, BF16, BF16X2];
const FTZ: &[Type] = &[F16, F16X2, F32, F32X2];
const SAT: &[Type] = &[F16, F16X2, F32];

/// The product is one word: not wide.
fn narrow(check: &mut Check<'_>, half: MulHalf) {
    check.combination(half != MulHalf::Wide, "`.wide` is not offered; it takes `.lo` or `.hi`");
}

/// A sum that saturates: of the high half, for signed words.
fn saturates_high(check: &mut Check<'_>, sat: bool, half: Option<MulHalf>, ty: Type) {
    check.combination(
        !sat || (half == Some(MulHalf::Hi) && ty == S32),
        "`.sat` on integers goes with `.hi` and `.s32` only",
    );
}

impl Rule for Mul {
    fn check(&self, check: &mut Check<'_>) {
        if !check.type_among(self.ty, MUL) {
            return;
        }
        half(check, self.half, self.ty);
        rounding(check, self.rounding, self.ty, directions(self.ty));
        flag(check, self.ftz, "ftz", self.ty, FTZ);
        flag(check, self.sat, "sat", self.ty, SAT);
        check.dst("d", self.d, product_type(self.half, self.ty));
        check.src("a", &self.a, self.ty);
        check.src("b", &self.b, self.ty);
    }
}

impl Rule for Mad {
    fn check(&self, check: &mut Check<'_>) {
        if !check.type_among(self.ty, MAD) {
            return;
        }
        half(check, self.half, self.ty);
        rounding(check, self.rounding, self.ty, directions(self.ty));
        flag(check, self.ftz, "ftz", self.ty, &[F32]);
        flag(check, self.cc, "cc", self.ty, CARRYING);
        check.combination(
            !(self.cc && (self.sat || self.half == Some(MulHalf::Wide))),
            "`.cc` goes with `.lo` or `.hi`, and not with `.sat`",
        );
        if self.ty.is_float() {
            check.combination(self.rounding.is_some(), "a rounding is needed: `.rn`, `.rz`, `.rm` or `.rp`");
            flag(check, self.sat, "sat", self.ty, &[F32]);
        } else {
            saturates_high(check, self.sat, self.half, self.ty);
        }
        let sum = product_type(self.half, self.ty);
        check.dst("d", self.d, sum);
        check.src("a", &self.a, self.ty);
        check.src("b", &self.b, self.ty);
        check.src("c", &self.c, sum);
    }
}

impl Rule for Fma {
    fn check(&self, check: &mut Check<'_>) {
        if !check.type_among(self.ty, FMA) {
            return;
        }
        // `ptxas` offers all directions for bf16, the ISA names the nearest only.
        let roundings = directions(if matches!(self.ty, BF16 | BF16X2) { F32 } else { self.ty });
        rounding(check, self.rounding, self.ty, roundings);
        check.combination(self.rounding.is_some(), "a rounding is needed");
        flag(check, self.ftz, "ftz", self.ty, FTZ);
        flag(check, self.sat, "sat", self.ty, SAT);
        flag(check, self.relu, "relu", self.ty, HALVES);
        flag(check, self.oob, "oob", self.ty, HALVES);
        check.combination(!(self.sat && self.relu), "`.sat` and `.relu` do not go together");
        check.combination(!(self.oob && self.ftz), "`.oob` and `.ftz` do not go together");
        mixed(check, self.a_type, self.ty, self.ftz);
        let factors = self.a_type.unwrap_or(self.ty);
        check.dst("d", self.d, self.ty);
        check.src("a", &self.a, factors);
        check.src("b", &self.b, factors);
        check.src("c", &self.c, self.ty);
    }
}

/// The operands of a dot product: packed words, and a sum.
fn dot_product(check: &mut Check<'_>, types: [Type; 2], d: Dst, sources: [(&str, &Src); 3]) {
    for ty in types {
        check.type_among(ty, &[U32, S32]);
    }
    check.word_dst("d", d);
    let [a, b, c] = sources;
    for (name, src) in [a, b] {
        check.src(name, src, U32);
    }
    check.word_src(c.0, c.1);
}
