//! Products, alone and with a sum.

use super::{
    CARRYING, directions, flag, half, half_precision_needs, mixed, mixed_needs, packed_needs, product_type,
    rounding, simple_bf16_needs,
};
use crate::ir::Type::*;
use crate::ir::*;
use crate::op::{Carry, Check, instruction};

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
        },
        check: |op, check| {
            if !check.type_among(op.ty, MUL) {
                return;
            }
            half(check, op.half, op.ty);
            rounding(check, op.rounding, op.ty, directions(op.ty));
            flag(check, op.ftz, "ftz", op.ty, FTZ);
            flag(check, op.sat, "sat", op.ty, SAT);
            check.dst("d", op.d, product_type(op.half, op.ty));
            check.src("a", &op.a, op.ty);
            check.src("b", &op.b, op.ty);
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
        carry: |op| Carry { reads: false, writes: op.cc },
        check: |op, check| {
            if !check.type_among(op.ty, MAD) {
                return;
            }
            half(check, op.half, op.ty);
            rounding(check, op.rounding, op.ty, directions(op.ty));
            flag(check, op.ftz, "ftz", op.ty, &[F32]);
            flag(check, op.cc, "cc", op.ty, CARRYING);
            check.combination(
                !(op.cc && (op.sat || op.half == Some(MulHalf::Wide))),
                "`.cc` goes with `.lo` or `.hi`, and not with `.sat`",
            );
            if op.ty.is_float() {
                let module = check.module();
                let implied = op.ty == F32 && (module.target.arch.sm < 20 || module.version < Version::new(3, 2));
                check.combination(
                    implied || op.rounding.is_some(),
                    "a rounding is needed: `.rn`, `.rz`, `.rm` or `.rp`",
                );
                flag(check, op.sat, "sat", op.ty, &[F32]);
            } else {
                saturates_high(check, op.sat, op.half, op.ty);
            }
            let sum = product_type(op.half, op.ty);
            check.dst("d", op.d, sum);
            check.src("a", &op.a, op.ty);
            check.src("b", &op.b, op.ty);
            check.src("c", &op.c, sum);
        };

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
        /// If an element is a NaN that marks it as out of bounds, the product is zero.
        oob: bool = "oob",
        ty: Type,
        /// With mixed precision, the type of `a` and `b`.
        a_type: Option<Type>,
    }(d: Dst, a: Src, b: Src, c: Src) -> pointwise,
        needs: |op, needs| {
            packed_needs(needs, op.ty);
            simple_bf16_needs(needs, op.ty);
            mixed_needs(needs, op.a_type);
            needs.sm_if(matches!(op.ty, F16 | F16X2), "arithmetic on `.f16`", 53);
            needs.both_if(op.relu, "`.relu`", (7, 0), 80);
            needs.both_if(op.oob, "`.oob`", (8, 1), 90);
        },
        check: |op, check| {
            if !check.type_among(op.ty, FMA) {
                return;
            }
            // `ptxas` offers all directions for bf16, the ISA names the nearest only.
            let roundings = directions(if matches!(op.ty, BF16 | BF16X2) { F32 } else { op.ty });
            rounding(check, op.rounding, op.ty, roundings);
            check.combination(op.rounding.is_some(), "a rounding is needed");
            flag(check, op.ftz, "ftz", op.ty, FTZ);
            flag(check, op.sat, "sat", op.ty, SAT);
            flag(check, op.relu, "relu", op.ty, HALVES);
            flag(check, op.oob, "oob", op.ty, HALVES);
            check.combination(!(op.sat && op.relu), "`.sat` and `.relu` do not go together");
            check.combination(!(op.oob && op.ftz), "`.oob` and `.ftz` do not go together");
            mixed(check, op.a_type, op.ty, op.ftz);
            let factors = op.a_type.unwrap_or(op.ty);
            check.dst("d", op.d, op.ty);
            check.src("a", &op.a, factors);
            check.src("b", &op.b, factors);
            check.src("c", &op.c, op.ty);
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
