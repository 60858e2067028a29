//! Functions of numbers and bits.

use super::emit;
use super::reg::{Binary, IntoReg, Reg};
use super::types::*;
use std::panic::Location;
use warpwright_ptx::ir::{Dst, DstPair, Imm, MulHalf, Rounding, Src, Type};
use warpwright_ptx::op::arith::*;
use warpwright_ptx::op::logic::*;

/// Numbers with a fused multiply-add, which rounds once.
pub trait Fused: Number {}
impl Fused for f32 {}
impl Fused for f64 {}
impl Fused for F16 {}
impl Fused for Bf16 {}
impl Fused for F16x2 {}
impl Fused for Bf16x2 {}

impl<'k, T: Fused> Reg<'k, T> {
    /// `self · factor + addend`, rounded once.
    #[track_caller]
    pub fn mul_add(self, factor: impl IntoReg<'k, T>, addend: impl IntoReg<'k, T>) -> Self {
        let loc = Location::caller();
        let (b, c) = (factor.into_reg(self.k, loc), addend.into_reg(self.k, loc));
        self.ternary(b.id, c.id, loc, |d, a, b, c| emit::fma(T::TYPE, d, a, b, c))
    }
}

/// Declares functions of one value, by the fields of their instructions other than `d` and `a`.
macro_rules! functions {
    ($(($($t:ident: $bound:ident)?) $ty:ty, $result:ty: $($(#[$doc:meta])* $name:ident $op:ident { $($field:ident: $value:expr),* };)*)*) => {
        $(impl<'k $(, $t: $bound)?> Reg<'k, $ty> {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(self) -> Reg<'k, $result> {
                self.unary(Location::caller(), |d, a| $op { $($field: $value,)* d: Dst(d), a }.into())
            })*
        })*
    };
}

functions! {
    (T: Signed) T, T:
        /// The absolute value.
        abs Abs { ftz: false, ty: T::TYPE };
    () f32, f32:
        /// `1 / √x`, to 2⁻²²·⁹ relative.
        rsqrt Rsqrt { approx: true, ftz: false, ty: Type::F32 };
        /// `2ˣ`, to 2 ulp.
        exp2 Ex2 { approx: true, ftz: false, ty: Type::F32 };
        /// `log₂ x`, to 2⁻²² (absolute between 0.5 and 2, relative elsewhere).
        log2 Lg2 { approx: true, ftz: false, ty: Type::F32 };
        /// Sine, to 2⁻²⁰·⁵ absolute within ±2π.
        sin Sin { approx: true, ftz: false, ty: Type::F32 };
        /// Cosine, to 2⁻²⁰·⁵ absolute within ±2π.
        cos Cos { approx: true, ftz: false, ty: Type::F32 };
        /// Hyperbolic tangent, to 2⁻¹¹ of the result. It is one device instruction; [`tanh`](Self::tanh) takes some
        /// twenty.
        tanh_approx Tanh { approx: true, ty: Type::F32 };
        /// `2ˣ`, to 2 ulp; arguments and results below 2⁻¹²⁶ count as zero. It is one device instruction;
        /// [`exp2`](Self::exp2) takes several, to handle subnormal numbers.
        exp2_ftz Ex2 { approx: true, ftz: true, ty: Type::F32 };
        /// The logarithm to base 2, as accurate as [`log2`](Self::log2); arguments below 2⁻¹²⁶ count as zero, whose
        /// result is `-inf`. It is one device instruction.
        log2_ftz Lg2 { approx: true, ftz: true, ty: Type::F32 };
        /// `1 / x`, to 1 ulp.
        rcp_approx Rcp { approx: true, rounding: None, ftz: false, ty: Type::F32 };
        /// `1 / x`, to 1 ulp; arguments and results below 2⁻¹²⁶ count as zero. It is one device instruction;
        /// [`rcp_approx`](Self::rcp_approx) takes several, to handle subnormal numbers.
        rcp_ftz Rcp { approx: true, rounding: None, ftz: true, ty: Type::F32 };
        /// `√x`, to 2⁻²³ relative.
        sqrt_approx Sqrt { approx: true, rounding: None, ftz: false, ty: Type::F32 };
    (T: Rounded) T, T:
        /// `√x`, correctly rounded.
        sqrt Sqrt { approx: false, rounding: Some(Rounding::Rn), ftz: false, ty: T::TYPE };
        /// `1 / x`, correctly rounded.
        rcp Rcp { approx: false, rounding: Some(Rounding::Rn), ftz: false, ty: T::TYPE };
    (T: Wide) T, T:
        /// The bits in reverse order.
        brev Brev { ty: emit::bits_type(T::TYPE) };
    (T: Wide) T, u32:
        /// Number of one bits.
        popc Popc { ty: emit::bits_type(T::TYPE) };
        /// Number of leading zero bits.
        clz Clz { ty: emit::bits_type(T::TYPE) };
}

impl<'k> Reg<'k, f32> {
    /// `eˣ`, as a power of two.
    #[track_caller]
    pub fn exp(self) -> Self {
        (self * std::f32::consts::LOG2_E).exp2()
    }

    /// Natural logarithm.
    #[track_caller]
    pub fn ln(self) -> Self {
        self.log2() * std::f32::consts::LN_2
    }

    /// `self / other`, to 2 ulp for divisors between 2⁻¹²⁶ and 2¹²⁶.
    #[track_caller]
    pub fn div_approx(self, other: impl IntoReg<'k, f32>) -> Self {
        let loc = Location::caller();
        self.binary(Binary::DivApprox, other.into_reg(self.k, loc), loc)
    }

    /// Whether it is neither infinite nor NaN.
    #[track_caller]
    pub fn is_finite(self) -> Reg<'k, Pred> {
        self.abs().lt(f32::INFINITY)
    }
}

/// Floats with correctly rounded roots and reciprocals.
pub trait Rounded: Float {}
impl Rounded for f32 {}
impl Rounded for f64 {}

/// 32- and 64-bit integers, for counting and permuting bits.
pub trait Wide: Integer {}
impl Wide for u32 {}
impl Wide for i32 {}
impl Wide for u64 {}
impl Wide for i64 {}

impl<'k, T: Wide> Reg<'k, T> {
    /// `length` bits from bit `position` on, extended by the sign for signed types.
    #[track_caller]
    pub fn bfe(self, position: impl IntoReg<'k, u32>, length: impl IntoReg<'k, u32>) -> Self {
        let loc = Location::caller();
        let (b, c) = (position.into_reg(self.k, loc), length.into_reg(self.k, loc));
        self.ternary(b.id, c.id, loc, |d, a, b, c| Bfe { ty: T::TYPE, d: Dst(d), a, b, c }.into())
    }

    /// `into` with the low `length` bits of `self` inserted at bit `position`.
    #[track_caller]
    pub fn bfi(self, into: impl IntoReg<'k, T>, position: u32, length: u32) -> Self {
        let loc = Location::caller();
        let into = into.into_reg(self.k, loc);
        let ty = emit::bits_type(T::TYPE);
        let (c, length) = (Src::Imm(Imm::Int(position.into())), Src::Imm(Imm::Int(length.into())));
        self.ternary(into.id, into.id, loc, |d, a, b, _| Bfi { ty, d: Dst(d), a, b, c, length }.into())
    }

    /// `self · factor + addend`, the low bits.
    #[track_caller]
    pub fn mad(self, factor: impl IntoReg<'k, T>, addend: impl IntoReg<'k, T>) -> Self {
        let loc = Location::caller();
        let (b, c) = (factor.into_reg(self.k, loc), addend.into_reg(self.k, loc));
        self.ternary(b.id, c.id, loc, |d, a, b, c| emit::mad(MulHalf::Lo, T::TYPE, d, a, b, c))
    }
}

impl<'k> Reg<'k, u32> {
    /// The whole product.
    #[track_caller]
    pub fn mul_wide(self, other: impl IntoReg<'k, u32>) -> Reg<'k, u64> {
        let loc = Location::caller();
        let other = other.into_reg(self.k, loc);
        self.ternary(other.id, other.id, loc, |d, a, b, _| emit::mul(Some(MulHalf::Wide), Type::U32, d, a, b))
    }

    /// Any bitwise function of three values: bit `4·a + 2·b + c` of `table` is the result for the bits `a`, `b`, `c`.
    /// To get `table`, apply the function to `0xf0`, `0xcc`, `0xaa`.
    #[track_caller]
    pub fn lop3(self, b: impl IntoReg<'k, u32>, c: impl IntoReg<'k, u32>, table: u8) -> Self {
        let loc = Location::caller();
        let (b, c) = (b.into_reg(self.k, loc), c.into_reg(self.k, loc));
        let table = Src::Imm(Imm::Int(table.into()));
        self.ternary(b.id, c.id, loc, |d, a, b, c| {
            let d = DstPair { first: Some(d), second: None };
            Lop3 { bool_op: None, ty: Type::B32, d, a, b, c, table, q: None }.into()
        })
    }

    /// Selects four of the eight bytes of `self` (0 to 3) and `high` (4 to 7), each by one nibble of the selector.
    #[track_caller]
    pub fn prmt(self, high: impl IntoReg<'k, u32>, selector: impl IntoReg<'k, u32>) -> Self {
        let loc = Location::caller();
        let (b, c) = (high.into_reg(self.k, loc), selector.into_reg(self.k, loc));
        self.ternary(b.id, c.id, loc, |d, a, b, c| {
            Prmt { ty: Type::B32, mode: None, d: Dst(d), a, b, c }.into()
        })
    }

    fn funnel(
        self,
        high: impl IntoReg<'k, u32>,
        amount: impl IntoReg<'k, u32>,
        direction: ShiftDirection,
        loc: super::state::Loc,
    ) -> Self {
        let (b, c) = (high.into_reg(self.k, loc), amount.into_reg(self.k, loc));
        self.ternary(b.id, c.id, loc, |d, a, b, c| {
            Shf { direction, mode: ShiftMode::Wrap, ty: Type::B32, d: Dst(d), a, b, c }.into()
        })
    }

    /// The high word of `high:self` shifted left by `amount` modulo 32.
    #[track_caller]
    pub fn shf_left(self, high: impl IntoReg<'k, u32>, amount: impl IntoReg<'k, u32>) -> Self {
        self.funnel(high, amount, ShiftDirection::Left, Location::caller())
    }

    /// The low word of `high:self` shifted right by `amount` modulo 32.
    #[track_caller]
    pub fn shf_right(self, high: impl IntoReg<'k, u32>, amount: impl IntoReg<'k, u32>) -> Self {
        self.funnel(high, amount, ShiftDirection::Right, Location::caller())
    }

    /// The word as bytes.
    #[track_caller]
    pub fn bytes(self) -> [Reg<'k, u32>; 4] {
        [0, 8, 16, 24].map(|position| self.bfe(position, 8))
    }
}

/// 32-bit integers that can be used as four bytes.
pub trait Bytes: Integer {}
impl Bytes for u32 {}
impl Bytes for i32 {}

impl<'k, T: Bytes> Reg<'k, T> {
    /// The dot product of the four bytes of `self` and `other`, added to `sum`. Bytes are signed if their register's
    /// type is.
    #[track_caller]
    pub fn dp4a<U: Bytes, S: Bytes>(self, other: Reg<'k, U>, sum: impl IntoReg<'k, S>) -> Reg<'k, S> {
        let loc = Location::caller();
        let sum = sum.into_reg(self.k, loc);
        self.ternary(other.id, sum.id, loc, |d, a, b, c| {
            Dp4a { a_type: T::TYPE, b_type: U::TYPE, d: Dst(d), a, b, c }.into()
        })
    }

    /// The dot product of the two halves of `self` with the low (or high) two bytes of `other`, added
    /// to `sum`.
    #[track_caller]
    pub fn dp2a<U: Bytes, S: Bytes>(
        self,
        other: Reg<'k, U>,
        high: bool,
        sum: impl IntoReg<'k, S>,
    ) -> Reg<'k, S> {
        let loc = Location::caller();
        let sum = sum.into_reg(self.k, loc);
        let half = if high { MulHalf::Hi } else { MulHalf::Lo };
        self.ternary(other.id, sum.id, loc, |d, a, b, c| {
            Dp2a { half, a_type: T::TYPE, b_type: U::TYPE, d: Dst(d), a, b, c }.into()
        })
    }
}
