//! The DSL's instructions: one function per shape, with modifiers at their defaults.

use warpwright_ptx::ir::*;
use warpwright_ptx::op::{Op, arith::*, compare::*, control::*, convert::*, logic::*, memory::Ld};

/// The type that a register of an element is declared with, and moved as.
pub(super) fn register_type(ty: Type) -> Type {
    match ty {
        Type::Pred | Type::F32 | Type::F64 => ty,
        _ => match ty.bits() {
            64 => Type::B64,
            32 => Type::B32,
            _ => Type::B16,
        },
    }
}

/// Untyped bits of the element's register.
pub(super) fn bits_type(ty: Type) -> Type {
    match ty.bits() {
        1 => Type::Pred,
        64 => Type::B64,
        32 => Type::B32,
        _ => Type::B16,
    }
}

/// The type of arithmetic and comparison: `.u16` for what is narrower.
pub(super) fn arithmetic_type(ty: Type) -> Type {
    match ty {
        Type::U8 => Type::U16,
        Type::S8 => Type::S16,
        ty => ty,
    }
}

pub(super) fn mov(ty: Type, d: Reg, a: Src) -> Op {
    Mov { vector: None, ty, d: Dsts::One(d), a: Srcs::One(a) }.into()
}

pub(super) fn pack(ty: Type, d: Reg, parts: impl IntoIterator<Item = Reg>) -> Op {
    let parts = parts.into_iter().map(Src::Reg).collect();
    Mov { vector: None, ty, d: Dsts::One(d), a: Srcs::Many(parts) }.into()
}

pub(super) fn unpack(ty: Type, parts: impl IntoIterator<Item = Option<Reg>>, a: Reg) -> Op {
    Mov { vector: None, ty, d: Dsts::Many(parts.into_iter().collect()), a: Srcs::One(Src::Reg(a)) }.into()
}

pub(super) fn mul(half: Option<MulHalf>, ty: Type, d: Reg, a: Src, b: Src) -> Op {
    Mul { half, rounding: None, ftz: false, sat: false, ty, d: Dst(d), a, b }.into()
}

pub(super) fn mad(half: MulHalf, ty: Type, d: Reg, a: Src, b: Src, c: Src) -> Op {
    let half = Some(half);
    Mad { half, rounding: None, ftz: false, sat: false, cc: false, ty, d: Dst(d), a, b, c }.into()
}

pub(super) fn fma(ty: Type, d: Reg, a: Src, b: Src, c: Src) -> Op {
    let rounding = Some(Rounding::Rn);
    Fma { rounding, ftz: false, sat: false, relu: false, oob: false, ty, a_type: None, d: Dst(d), a, b, c }
        .into()
}

pub(super) fn div(ty: Type, d: Reg, a: Src, b: Src, approx: bool) -> Op {
    let rounding = (ty.is_float() && !approx).then_some(Rounding::Rn);
    Div { approx, full: false, rounding, ftz: false, ty, d: Dst(d), a, b }.into()
}

macro_rules! of_two {
    ($($name:ident = $op:ident { $($modifier:ident: $value:expr),* };)*) => {
        $(pub(super) fn $name(ty: Type, d: Reg, a: Src, b: Src) -> Op {
            $op { $($modifier: $value,)* ty, d: Dst(d), a, b }.into()
        })*
    };
}

of_two! {
    add = Add { rounding: None, ftz: false, sat: false, cc: false, a_type: None };
    sub = Sub { rounding: None, ftz: false, sat: false, cc: false, a_type: None };
    min = Min { ftz: false, nan: false, xorsign: false, abs: false, relu: false, c: None };
    max = Max { ftz: false, nan: false, xorsign: false, abs: false, relu: false, c: None };
    rem = Rem {};
    and = And {};
    or = Or {};
    xor = Xor {};
    shl = Shl {};
    shr = Shr {};
}

pub(super) fn setp(cmp: Cmp, ty: Type, d: Reg, a: Src, b: Src) -> Op {
    let d = DstPair { first: Some(d), second: None };
    Setp { cmp, bool_op: None, ftz: false, ty, d, a, b, c: None }.into()
}

pub(super) fn selp(ty: Type, d: Reg, a: Src, b: Src, c: Reg) -> Op {
    Selp { ty, d: Dst(d), a, b, c: Src::Reg(c) }.into()
}

pub(super) fn cvt(rounding: Option<Rounding>, d_type: Type, a_type: Type, d: Reg, a: Src) -> Op {
    conversion(rounding, d_type, a_type, d, a).into()
}

/// A `cvt` that more may be said of.
pub(super) fn conversion(rounding: Option<Rounding>, d_type: Type, a_type: Type, d: Reg, a: Src) -> Cvt {
    let (ftz, sat, satfinite, positive_zero, relu) = (false, false, false, false, false);
    Cvt { rounding, ftz, sat, satfinite, positive_zero, relu, d_type, a_type, d: Dst(d), a, b: None }
}

pub(super) fn bra(target: LabelId) -> Op {
    Bra { uniform: false, target }.into()
}

/// A load of one element, through the read-only cache where that is said.
pub(super) fn ld(space: Space, nc: bool, ty: Type, d: Reg, address: Address) -> Op {
    Ld {
        mmio: false,
        semantics: None,
        scope: None,
        space: Some(space),
        cache: None,
        nc,
        l1_eviction: None,
        l2_eviction: None,
        cache_hint: false,
        prefetch: None,
        vector: None,
        ty,
        readonly: false,
        unified: Unified::default(),
        d: Dsts::One(d),
        address,
        policy: None,
    }
    .into()
}
