//! Integer arithmetic that the host does not offer as one function.
//!
//! The ISA leaves division by zero undefined. Here all bits of the quotient and of the remainder are set, as on
//! NVIDIA's hardware.

use std::cmp::Ordering;
use std::ops::{BitAnd, BitOr, BitXor, Not};
use warpwright_ptx::ir::Cmp;

/// The operations of PTX on an integer type.
pub trait Integer:
    Copy + Ord + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> + Not<Output = Self>
{
    /// The type of twice the width, and of the same sign.
    type Wide: Copy;
    /// The sum, without the carry.
    fn plus(self, other: Self) -> Self;
    /// The difference, without the borrow.
    fn minus(self, other: Self) -> Self;
    /// The sum and a carry, and whether it carries.
    fn carry(self, other: Self, carry: bool) -> (Self, bool);
    /// The difference less a borrow, and whether it borrows.
    fn borrow(self, other: Self, borrow: bool) -> (Self, bool);
    /// The whole product.
    fn mul_wide(self, other: Self) -> Self::Wide;
    /// The high half of the product.
    fn mul_high(self, other: Self) -> Self;
    /// The low half of the product.
    fn mul_low(self, other: Self) -> Self;
    /// The quotient, rounded toward zero. By zero: all bits set. Of the least value by −1: itself.
    fn quotient(self, other: Self) -> Self;
    /// The remainder, with the sign of the dividend. By zero: all bits set.
    fn remainder(self, other: Self) -> Self;
    /// `sad`: `sum` and the distance from `self` to `other`.
    fn distance_plus(self, other: Self, sum: Self) -> Self;
    /// The number of bits that are set.
    fn ones(self) -> u32;
    /// The number of zeros above the first bit that is set.
    fn zeros_above(self) -> u32;
    /// The bits in the other order.
    fn reversed(self) -> Self;
    /// `cnot`: one for zero, else zero.
    fn logical_not(self) -> Self;
    /// `shl`: zero where nothing is left.
    fn shifted_left(self, by: u32) -> Self;
    /// `shr`: the sign, or zero, where nothing is left.
    fn shifted_right(self, by: u32) -> Self;
    /// `bfe`: the field of `length` bits from `start` on (each counts modulo 256), extended by its sign if the type has
    /// one; that of the value where the field goes beyond it.
    fn field(self, start: u32, length: u32) -> Self;
    /// `bfi`: this in such a field of `other`.
    fn into_field(self, other: Self, start: u32, length: u32) -> Self;
    /// `bfind`: the position of the highest bit that is not the sign's, or by how much the value must be shifted left to
    /// have it at the top; all ones if there is none.
    fn highest<const SHIFT_AMOUNT: bool>(self) -> u32;
}

macro_rules! integers {
    ($($ty:ident $unsigned:ident $wide:ident;)*) => {$(
        impl Integer for $ty {
            type Wide = $wide;

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn carry(self, other: Self, carry: bool) -> (Self, bool) {
                let (sum, first) = (self as $unsigned).overflowing_add(other as $unsigned);
                let (sum, second) = sum.overflowing_add(carry.into());
                (sum as Self, first | second)
            }
            #[inline(always)]
            fn borrow(self, other: Self, borrow: bool) -> (Self, bool) {
                let (difference, first) = (self as $unsigned).overflowing_sub(other as $unsigned);
                let (difference, second) = difference.overflowing_sub(borrow.into());
                (difference as Self, first | second)
            }
            #[inline(always)]
            fn mul_wide(self, other: Self) -> $wide {
                $wide::from(self) * $wide::from(other)
            }
            #[inline(always)]
            fn mul_high(self, other: Self) -> Self {
                (self.mul_wide(other) >> Self::BITS) as Self
            }
            #[inline(always)]
            fn mul_low(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn quotient(self, other: Self) -> Self {
                if other == 0 { !0 } else { self.wrapping_div(other) }
            }
            #[inline(always)]
            fn remainder(self, other: Self) -> Self {
                if other == 0 { !0 } else { self.wrapping_rem(other) }
            }
            #[inline(always)]
            fn distance_plus(self, other: Self, sum: Self) -> Self {
                sum.wrapping_add(self.abs_diff(other) as Self)
            }
            #[inline(always)]
            fn ones(self) -> u32 {
                self.count_ones()
            }
            #[inline(always)]
            fn zeros_above(self) -> u32 {
                self.leading_zeros()
            }
            #[inline(always)]
            fn reversed(self) -> Self {
                self.reverse_bits()
            }
            #[inline(always)]
            fn logical_not(self) -> Self {
                (self == 0).into()
            }
            #[inline(always)]
            fn shifted_left(self, by: u32) -> Self {
                if by >= Self::BITS { 0 } else { self << (by & (Self::BITS - 1)) }
            }
            #[inline(always)]
            fn shifted_right(self, by: u32) -> Self {
                match Self::MIN {
                    0 if by >= Self::BITS => 0,
                    0 => self >> (by & (Self::BITS - 1)),
                    _ => self >> by.min(Self::BITS - 1),
                }
            }
            #[inline(always)]
            fn field(self, start: u32, length: u32) -> Self {
                let (start, length) = (start & 0xff, length & 0xff);
                let (moved, rest) = (self.shifted_right(start), Self::BITS.saturating_sub(length));
                if length == 0 { 0 } else { moved << rest >> rest }
            }
            #[inline(always)]
            fn into_field(self, other: Self, start: u32, length: u32) -> Self {
                let (start, length) = (start & 0xff, length & 0xff);
                let field = if length >= Self::BITS { !0 } else { !(!0 << length) };
                if start >= Self::BITS { other } else { other & !(field << start) | (self & field) << start }
            }
            #[inline(always)]
            fn highest<const SHIFT_AMOUNT: bool>(self) -> u32 {
                let a = if Self::MIN == 0 { self } else { self ^ (self >> (Self::BITS - 1)) };
                let above = a.leading_zeros();
                let position = if SHIFT_AMOUNT { above } else { (Self::BITS - 1).wrapping_sub(above) };
                if a == 0 { u32::MAX } else { position }
            }
        }
    )*};
}

integers! {
    u16 u16 u32;
    i16 u16 i32;
    u32 u32 u64;
    i32 u32 i64;
    u64 u64 u128;
    i64 u64 i128;
}

/// `mad.hi.sat.s32`: the high half of the product and `c`, limited to the range.
#[inline(always)]
pub fn mad_high_sat(a: i32, b: i32, c: i32) -> i32 {
    a.mul_high(b).saturating_add(c)
}

#[inline(always)]
fn product_24_unsigned(a: u32, b: u32) -> u64 {
    u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)
}

#[inline(always)]
fn product_24_signed(a: i32, b: i32) -> i64 {
    i64::from(a << 8 >> 8) * i64::from(b << 8 >> 8)
}

/// `mul24.lo.u32`: bits 0 to 31 of the product of the low 24 bits.
#[inline(always)]
pub fn mul24_low_u32(a: u32, b: u32) -> u32 {
    product_24_unsigned(a, b) as u32
}

/// `mul24.hi.u32`: bits 16 to 47 of the product of the low 24 bits.
#[inline(always)]
pub fn mul24_high_u32(a: u32, b: u32) -> u32 {
    (product_24_unsigned(a, b) >> 16) as u32
}

/// `mul24.lo.s32`.
#[inline(always)]
pub fn mul24_low_s32(a: i32, b: i32) -> i32 {
    product_24_signed(a, b) as i32
}

/// `mul24.hi.s32`.
#[inline(always)]
pub fn mul24_high_s32(a: i32, b: i32) -> i32 {
    (product_24_signed(a, b) >> 16) as i32
}

/// `clmad`: the low or high half of the product of polynomials over two elements, and `c`.
pub fn clmad(high: bool, a: u64, b: u64, c: u64) -> u64 {
    let mut product = 0u128;
    for bit in 0..64 {
        if a >> bit & 1 == 1 {
            product ^= u128::from(b) << bit;
        }
    }
    (if high { product >> 64 } else { product }) as u64 ^ c
}

/// Part `index` of a word that holds parts of `BITS` bits, extended.
#[inline(always)]
fn part<const BITS: u32, const SIGNED: bool>(word: u32, index: u32) -> i32 {
    let up = word << (32 - BITS - index * BITS);
    if SIGNED { (up as i32) >> (32 - BITS) } else { (up >> (32 - BITS)) as i32 }
}

/// `dp4a`: the sum of the products of bytes, plus `c`. `A` and `B` are true for signed bytes.
#[inline(always)]
pub fn dp4a<const A: bool, const B: bool>(a: u32, b: u32, c: u32) -> u32 {
    let product = |index| part::<8, A>(a, index) * part::<8, B>(b, index);
    let sum = product(0) + product(1) + product(2) + product(3);
    c.wrapping_add(sum as u32)
}

/// `dp2a`: the sum of the products of the half words of `a` with two bytes of `b`, plus `c`. `HIGH` selects the upper
/// two bytes.
#[inline(always)]
pub fn dp2a<const A: bool, const B: bool, const HIGH: bool>(a: u32, b: u32, c: u32) -> u32 {
    let first = if HIGH { 2 } else { 0 };
    let product = |index| part::<16, A>(a, index).wrapping_mul(part::<8, B>(b, first + index));
    c.wrapping_add(product(0) as u32).wrapping_add(product(1) as u32)
}

/// Applies a function to the parts of packed words: `BITS` bits each, extended according to `SIGNED`. Only the low
/// `BITS` bits of each result count.
#[inline(always)]
pub fn packed<const BITS: u32, const SIGNED: bool, const N: usize>(
    words: [u32; N],
    f: impl Fn([i32; N]) -> i32,
) -> u32 {
    let mask = u32::MAX >> (32 - BITS);
    (0..32 / BITS).fold(0, |word, index| {
        let result = f(words.map(|word| part::<BITS, SIGNED>(word, index)));
        word | (result as u32 & mask) << (index * BITS)
    })
}

/// The minimum and the maximum of an integer of `bits` bits, at most 64.
pub const fn range(bits: u32, signed: bool) -> (i128, i128) {
    if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// Whether a comparison holds between integers in that order; `None` if it is one of floating-point numbers alone.
pub fn holds(cmp: Cmp, order: Ordering) -> Option<bool> {
    Some(match cmp {
        Cmp::Eq => order.is_eq(),
        Cmp::Ne => order.is_ne(),
        Cmp::Lt | Cmp::Lo => order.is_lt(),
        Cmp::Le | Cmp::Ls => order.is_le(),
        Cmp::Gt | Cmp::Hi => order.is_gt(),
        Cmp::Ge | Cmp::Hs => order.is_ge(),
        _ => return None,
    })
}
