//! Integer arithmetic that the host does not have under one name.
//!
//! Division by zero is left open by the ISA. Here the quotient then has all bits set, and the remainder
//! is the dividend.

/// Functions of each width, for a signed and an unsigned type.
macro_rules! widths {
    ($($signed:ident $unsigned:ident $wide_signed:ident $wide_unsigned:ident;)*) => {$(
        impl Integer for $unsigned {
            #[inline(always)]
            fn mul_high(self, other: Self) -> Self {
                ((self as $wide_unsigned * other as $wide_unsigned) >> Self::BITS) as Self
            }
            #[inline(always)]
            fn mul_low(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn quotient(self, other: Self) -> Self {
                self.checked_div(other).unwrap_or(Self::MAX)
            }
            #[inline(always)]
            fn remainder(self, other: Self) -> Self {
                self.checked_rem(other).unwrap_or(self)
            }
            #[inline(always)]
            fn distance_plus(self, other: Self, sum: Self) -> Self {
                sum.wrapping_add(self.abs_diff(other))
            }
        }

        impl Integer for $signed {
            #[inline(always)]
            fn mul_high(self, other: Self) -> Self {
                ((self as $wide_signed * other as $wide_signed) >> Self::BITS) as Self
            }
            #[inline(always)]
            fn mul_low(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn quotient(self, other: Self) -> Self {
                if other == 0 { -1 } else { self.wrapping_div(other) }
            }
            #[inline(always)]
            fn remainder(self, other: Self) -> Self {
                if other == 0 { self } else { self.wrapping_rem(other) }
            }
            #[inline(always)]
            fn distance_plus(self, other: Self, sum: Self) -> Self {
                sum.wrapping_add(self.abs_diff(other) as Self)
            }
        }
    )*};
}

/// What PTX asks of an integer type.
pub trait Integer: Copy {
    /// The high half of the product.
    fn mul_high(self, other: Self) -> Self;
    /// The low half of the product.
    fn mul_low(self, other: Self) -> Self;
    /// The quotient, rounded toward zero. By zero: all bits set. Of the least value by −1: itself.
    fn quotient(self, other: Self) -> Self;
    /// The remainder, with the sign of the dividend. By zero: the dividend.
    fn remainder(self, other: Self) -> Self;
    /// `sad`: `sum` and the distance from `self` to `other`.
    fn distance_plus(self, other: Self, sum: Self) -> Self;
}

widths! {
    i16 u16 i32 u32;
    i32 u32 i64 u64;
    i64 u64 i128 u128;
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

/// `dp4a`: the sum of the products of bytes, and `c`. `A` and `B` say whether the bytes are signed.
#[inline(always)]
pub fn dp4a<const A: bool, const B: bool>(a: u32, b: u32, c: u32) -> u32 {
    let product = |index| part::<8, A>(a, index) * part::<8, B>(b, index);
    let sum = product(0) + product(1) + product(2) + product(3);
    c.wrapping_add(sum as u32)
}

/// `dp2a`: the sum of the products of the half words of `a` with two bytes of `b`, and `c`. `HIGH`
/// says which two.
#[inline(always)]
pub fn dp2a<const A: bool, const B: bool, const HIGH: bool>(a: u32, b: u32, c: u32) -> u32 {
    let first = if HIGH { 2 } else { 0 };
    let product = |index| part::<16, A>(a, index).wrapping_mul(part::<8, B>(b, first + index));
    c.wrapping_add(product(0) as u32).wrapping_add(product(1) as u32)
}

/// Adds with carry in; the sum and the carry out.
#[inline(always)]
pub fn add_carry_u32(a: u32, b: u32, carry: bool) -> (u32, bool) {
    let sum = u64::from(a) + u64::from(b) + u64::from(carry);
    (sum as u32, sum >> 32 != 0)
}

/// Adds with carry in; the sum and the carry out.
#[inline(always)]
pub fn add_carry_u64(a: u64, b: u64, carry: bool) -> (u64, bool) {
    let sum = u128::from(a) + u128::from(b) + u128::from(carry);
    (sum as u64, sum >> 64 != 0)
}

/// Subtracts with borrow in; the difference and the borrow out.
#[inline(always)]
pub fn sub_borrow_u32(a: u32, b: u32, borrow: bool) -> (u32, bool) {
    let difference = i64::from(a) - i64::from(b) - i64::from(borrow);
    (difference as u32, difference < 0)
}

/// Subtracts with borrow in; the difference and the borrow out.
#[inline(always)]
pub fn sub_borrow_u64(a: u64, b: u64, borrow: bool) -> (u64, bool) {
    let difference = i128::from(a) - i128::from(b) - i128::from(borrow);
    (difference as u64, difference < 0)
}

/// Applies a function to the parts of packed words: `BITS` bits each, extended as `SIGNED` says. Of
/// each result the low `BITS` bits count.
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

/// The least and the largest value of an integer of `bits` bits, at most 64.
pub const fn range(bits: u32, signed: bool) -> (i128, i128) {
    if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}
