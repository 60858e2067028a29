//! Element types of registers and memory, and the state spaces of pointers.

use super::convert::{ConvertFrom, ToF32};
use super::{IntoReg, K, Reg};
use std::panic::Location;
use warpwright_ptx::ir::{Imm, Space, Type};

mod sealed {
    pub trait Sealed {}
}
use sealed::Sealed;

/// The type of a register, or of memory elements.
pub trait Element: Copy + Sealed + 'static {
    /// The PTX type.
    const TYPE: Type;
}

/// Elements that can be stored in memory: all but predicates.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no element of memory",
    label = "not one of the integers, `f32`, `f64`, `F16`, `Bf16`, `F16x2` and `Bf16x2`",
    note = "a predicate is stored as a number: `p.u32()`, or `p.select(a, b)`"
)]
pub trait Data: Element {
    /// The host type with the same bits.
    type Host: bytemuck::Pod + Send + Sync;
}

/// Elements with `+`, `-`, `*`, minimum and maximum.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no arithmetic",
    label = "not a number",
    note = "bytes become numbers by `.to::<u32>()` or `.to::<i32>()`; predicates combine by `&`, `|`, `^` and `!`"
)]
pub trait Number: Data {
    /// The host type of literals: `x + 1.0`, `i * 4`.
    type Literal: Copy;
    /// The immediate for a literal.
    fn immediate(value: Self::Literal) -> Imm;
}

/// Numbers that are a single value, so that they can be compared.
pub trait Ordered: Number {}

/// Integers of 16, 32 or 64 bits.
pub trait Integer: Ordered {}

/// Floating-point numbers that are a single value: kernels that compute in `f32` can be generic over them.
pub trait Float: Ordered + ConvertFrom<f32> + ToF32 {}

/// Signed numbers.
pub trait Signed: Number {}

/// Elements whose bits can be combined: integers and predicates.
pub trait Bits: Element {}

/// 32-bit elements, which shuffles move as they are.
pub trait Word: Data {}

/// A predicate: true or false for each thread.
#[derive(Clone, Copy, Debug)]
pub struct Pred;
/// IEEE half precision.
#[derive(Clone, Copy, Debug)]
pub struct F16;
/// The upper half of an `f32`.
#[derive(Clone, Copy, Debug)]
pub struct Bf16;
/// Two [`F16`] in one register.
#[derive(Clone, Copy, Debug)]
pub struct F16x2;
/// Two [`Bf16`] in one register.
#[derive(Clone, Copy, Debug)]
pub struct Bf16x2;

macro_rules! elements {
    ($($ty:ty = $ptx:ident, $host:ty: $($trait:ident)*;)*) => {
        $(impl Sealed for $ty {}
        impl Element for $ty {
            const TYPE: Type = Type::$ptx;
        }
        impl Data for $ty {
            type Host = $host;
        }
        $(impl $trait for $ty {})*)*
    };
}

impl Sealed for Pred {}
impl Element for Pred {
    const TYPE: Type = Type::Pred;
}
impl Bits for Pred {}

elements! {
    u8 = U8, u8:;
    i8 = S8, i8:;
    u16 = U16, u16: Ordered Integer Bits;
    i16 = S16, i16: Ordered Integer Bits Signed;
    u32 = U32, u32: Ordered Integer Bits Word;
    i32 = S32, i32: Ordered Integer Bits Signed Word;
    u64 = U64, u64: Ordered Integer Bits;
    i64 = S64, i64: Ordered Integer Bits Signed;
    F16 = F16, half::f16: Ordered Float Signed;
    Bf16 = BF16, half::bf16: Ordered Float Signed;
    F16x2 = F16X2, [half::f16; 2]: Signed Word;
    Bf16x2 = BF16X2, [half::bf16; 2]: Signed Word;
    f32 = F32, f32: Ordered Float Signed Word;
    f64 = F64, f64: Ordered Float Signed;
}

macro_rules! literals {
    ($($ty:ty, $literal:ty, |$value:ident| $imm:expr;)*) => {
        $(impl Number for $ty {
            type Literal = $literal;
            fn immediate($value: $literal) -> Imm {
                $imm
            }
        }

        impl<'k> IntoReg<'k, $ty> for $literal {
            fn into_reg(self, k: K<'k>, _: &'static Location<'static>) -> Reg<'k, $ty> {
                k.constant(<$ty as Number>::immediate(self))
            }
        })*
    };
}

literals! {
    u16, u16, |v| Imm::Int(v.into());
    i16, i16, |v| Imm::Int(v.into());
    u32, u32, |v| Imm::Int(v.into());
    i32, i32, |v| Imm::Int(v.into());
    u64, u64, |v| i64::try_from(v).map_or(Imm::UInt(v), Imm::Int);
    i64, i64, |v| Imm::Int(v);
    F16, f32, |v| Imm::Int(f16_bits(v).into());
    Bf16, f32, |v| Imm::Int(bf16_bits(v).into());
    F16x2, f32, |v| Imm::Int(i64::from(f16_bits(v)) * 0x1_0001);
    Bf16x2, f32, |v| Imm::Int(i64::from(bf16_bits(v)) * 0x1_0001);
    f32, f32, |v| Imm::F32(v.to_bits());
    f64, f64, |v| Imm::F64(v.to_bits());
}

impl<'k> IntoReg<'k, Pred> for bool {
    fn into_reg(self, k: K<'k>, _: &'static Location<'static>) -> Reg<'k, Pred> {
        k.constant(Imm::Int(self.into()))
    }
}

/// Bits of the nearest half-precision number, ties to even.
pub fn f16_bits(value: f32) -> u16 {
    if value.is_nan() { 0x7fff } else { half::f16::from_f32(value).to_bits() }
}

/// Bits of the nearest bfloat16 number, ties to even.
pub fn bf16_bits(value: f32) -> u16 {
    if value.is_nan() { 0x7fff } else { half::bf16::from_f32(value).to_bits() }
}

/// A state space that a pointer points into.
pub trait PointerSpace: Copy + Sealed + 'static {
    /// The PTX state space.
    const SPACE: Space;
}

/// Memory of the device.
#[derive(Clone, Copy, Debug)]
pub struct Global;
/// Memory of the block.
#[derive(Clone, Copy, Debug)]
pub struct Shared;
/// Memory of the thread.
#[derive(Clone, Copy, Debug)]
pub struct Local;
/// Constants of the module.
#[derive(Clone, Copy, Debug)]
pub struct Const;

/// Spaces that can be written.
pub trait Writable: PointerSpace {}

/// Spaces that other threads see.
pub trait Visible: Writable {}

macro_rules! spaces {
    ($($name:ident: $($trait:ident)*;)*) => {
        $(impl Sealed for $name {}
        impl PointerSpace for $name {
            const SPACE: Space = Space::$name;
        }
        $(impl $trait for $name {})*)*
    };
}

spaces! {
    Global: Writable Visible;
    Shared: Writable Visible;
    Local: Writable;
    Const:;
}
