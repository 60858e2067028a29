//! Integer and floating-point arithmetic.
//!
//! One struct serves an opcode for all its types, as in the text; each rule states which modifiers are allowed with
//! which type. Rules that many of them share are here.

mod extremum;
mod function;
mod product;
mod sign;
mod sum;

pub use extremum::{Max, Min};
pub use function::{Cos, Div, Ex2, Lg2, Rcp, Rem, Rsqrt, Sin, Sqrt, Tanh};
pub use product::{Clmad, Dp2a, Dp4a, Fma, Mad, Mad24, Madc, Mul, Mul24};
pub use sign::{Abs, Copysign, FloatClass, Neg, Testp};
pub use sum::{Add, Addc, Sad, Sub, Subc};

use crate::ir::{MulHalf, Needs, Requirement, Rounding, Type};
use crate::op::Check;
use crate::op::check::list;
use Type::*;

/// The integer types of arithmetic, one value each.
const INTEGERS: &[Type] = &[U16, U32, U64, S16, S32, S64];

/// The types that can carry from one instruction to the next.
const CARRYING: &[Type] = &[U32, U64, S32, S64];

/// Four bytes in a register, and saturation of other unsigned and packed sums: of these targets only.
const BYTE_ARITHMETIC: Requirement = Requirement::family(&[107, 120]);

/// A modifier goes with some types only.
fn flag(check: &mut Check<'_>, present: bool, word: &str, ty: Type, allowed: &[Type]) {
    if present && !allowed.contains(&ty) {
        let names = list(allowed, ", ");
        check.combination(false, format_args!("`.{word}` does not go with `{ty}`; it goes with {names}"));
    }
}

/// The IEEE rounding directions, where `ty` has them.
fn directions(ty: Type) -> &'static [Rounding] {
    match ty {
        F32 | F64 | F32X2 => &[Rounding::Rn, Rounding::Rz, Rounding::Rm, Rounding::Rp],
        F16 | F16X2 | BF16 | BF16X2 => &[Rounding::Rn],
        _ => &[],
    }
}

/// A rounding must be one of `allowed`.
fn rounding(check: &mut Check<'_>, rounding: Option<Rounding>, ty: Type, allowed: &[Rounding]) {
    let Some(rounding) = rounding else { return };
    if allowed.is_empty() {
        check.combination(false, format_args!("type `{ty}` takes no rounding, and `{rounding}` is one"));
    } else if !allowed.contains(&rounding) {
        let message =
            format!("rounding `{rounding}` is not offered for `{ty}`; it takes {}", list(allowed, ", "));
        check.combination(false, message);
    }
}

/// Which half of a product is wanted must be said for integers, and only for them.
fn half(check: &mut Check<'_>, half: Option<MulHalf>, ty: Type) {
    let integer = ty.is_integer();
    check.combination(integer || half.is_none(), "`.lo`, `.hi` and `.wide` are for products of integers");
    check.combination(!integer || half.is_some(), "a product of integers needs `.lo`, `.hi` or `.wide`");
    check.combination(
        half != Some(MulHalf::Wide) || ty.bits() < 64,
        "`.wide` doubles the width, and no integer has 128 bits",
    );
}

/// The type of a product, and of what is added to it.
fn product_type(half: Option<MulHalf>, ty: Type) -> Type {
    match (half, ty) {
        (Some(MulHalf::Wide), U16) => U32,
        (Some(MulHalf::Wide), S16) => S32,
        (Some(MulHalf::Wide), U32) => U64,
        (Some(MulHalf::Wide), S32) => S64,
        _ => ty,
    }
}

/// `.f32` arithmetic with sources of half precision: `add.f32.bf16`.
fn mixed(check: &mut Check<'_>, a_type: Option<Type>, ty: Type, ftz: bool) {
    let Some(a_type) = a_type else { return };
    check.combination(
        ty == F32 && matches!(a_type, F16 | BF16),
        "mixed precision is `.f32` with sources of type `.f16` or `.bf16`",
    );
    check.combination(!ftz, "`.ftz` does not go with mixed precision");
}

/// What arithmetic on packed types needs.
fn packed_needs(needs: &mut Needs, ty: Type) {
    match ty {
        F32X2 => needs.both("arithmetic on `.f32x2`", (8, 6), 100),
        U16X2 | S16X2 => needs.both("arithmetic on packed 16-bit integers", (8, 0), 90),
        U8X4 | S8X4 => needs.targets("arithmetic on packed bytes", (9, 2), BYTE_ARITHMETIC),
        _ => {}
    }
}

/// What the sum or product of two values of half precision needs.
fn half_precision_needs(needs: &mut Needs, ty: Type) {
    match ty {
        F16 | F16X2 => needs.sm("arithmetic on `.f16`", 53),
        BF16 | BF16X2 => needs.both("sums and products of `.bf16`", (7, 8), 90),
        _ => {}
    }
}

/// What a simple operation on half precision needs: fma, sign, minimum.
fn simple_bf16_needs(needs: &mut Needs, ty: Type) {
    needs.both_if(matches!(ty, BF16 | BF16X2), "`.bf16`", (7, 0), 80);
}

/// What mixed precision needs.
fn mixed_needs(needs: &mut Needs, a_type: Option<Type>) {
    needs.both_if(a_type.is_some(), "mixed precision", (8, 6), 100);
}
