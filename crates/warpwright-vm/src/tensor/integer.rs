//! Products of integers and of single bits, with sums of 32 bits.

use super::{Left, Size};

/// Columns that are computed together.
const LANES: usize = 8;

/// The treatment of sums that exceed 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// The sum wraps.
    Wrap,
    /// The sum of `c` and all products is replaced by the nearest 32-bit number.
    Saturate,
}

/// `d = a · b + c`, where the factors hold numbers of at most eight bits.
///
/// # Panics
///
/// If a slice is shorter than `size` requires, or `n` is not a multiple of 8.
#[inline(always)]
pub fn product(overflow: Overflow, size: Size, a: Left<'_, i32>, b: &[i32], c: &[i32], d: &mut [i32]) {
    let Size { m, n, .. } = size;
    assert!(n % LANES == 0);
    let kept = a.values.len() / m;
    for row in 0..m {
        let values = &a.values[row * kept..][..kept];
        let stands = a.columns.map(|stands| &stands[row * kept..][..kept]);
        for first in (0..n).step_by(LANES) {
            // No sum of 256 products of eight bits leaves 32 bits; adding `c` may.
            let mut sums = [0_i32; LANES];
            for (index, &value) in values.iter().enumerate() {
                let stands = stands.map_or(index, |stands| usize::from(stands[index]));
                let others: &[i32; LANES] = b[stands * n + first..].first_chunk().expect("`b` is k × n");
                for lane in 0..LANES {
                    sums[lane] += value * others[lane];
                }
            }
            let at = row * n + first;
            for lane in 0..LANES {
                d[at + lane] = match overflow {
                    Overflow::Wrap => c[at + lane].wrapping_add(sums[lane]),
                    Overflow::Saturate => c[at + lane].saturating_add(sums[lane]),
                };
            }
        }
    }
}

/// The operation that replaces the product of two bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitProduct {
    /// Exclusive or.
    Xor,
    /// Conjunction.
    And,
}

/// `d = c +` number of ones among the products of the bits of a row of `a` and a column of `b`. The bits are in words
/// of 32 along k: `a` is m × k/32 words, `b` is k/32 × n. Sums wrap.
///
/// # Panics
///
/// If a slice is shorter than `size` requires.
#[inline(always)]
pub fn bit_product(op: BitProduct, size: Size, a: &[u32], b: &[u32], c: &[i32], d: &mut [i32]) {
    let Size { m, n, k } = size;
    let words = k / 32;
    for row in 0..m {
        let sums = &mut d[row * n..][..n];
        sums.copy_from_slice(&c[row * n..][..n]);
        for (&x, others) in a[row * words..][..words].iter().zip(b.chunks_exact(n)) {
            for (sum, &y) in sums.iter_mut().zip(others) {
                let products = match op {
                    BitProduct::Xor => x ^ y,
                    BitProduct::And => x & y,
                };
                *sum = sum.wrapping_add(products.count_ones() as i32);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_past_32_bits_wraps_or_saturates() {
        let size = Size { m: 1, n: 8, k: 2 };
        let (a, b) = ([127, -128], [127, -128, 1, 0, 127, -128, 1, 0, 127, -128, 1, 0, 127, -128, 1, 0]);
        let c = [i32::MAX, i32::MIN, i32::MAX, i32::MIN, 0, 0, -1, 5];
        let mut d = [0; 8];
        let expected = |c: i32, column: usize| {
            i64::from(c) + i64::from(a[0]) * i64::from(b[column]) + i64::from(a[1]) * i64::from(b[8 + column])
        };
        product(Overflow::Wrap, size, Left::dense(&a), &b, &c, &mut d);
        for column in 0..8 {
            assert_eq!(d[column], expected(c[column], column) as i32);
        }
        product(Overflow::Saturate, size, Left::dense(&a), &b, &c, &mut d);
        for column in 0..8 {
            let clamped = expected(c[column], column).clamp(i32::MIN.into(), i32::MAX.into());
            assert_eq!(i64::from(d[column]), clamped);
        }
        assert_eq!(d[1], i32::MIN + 128, "a sum that fits after all is not saturated on the way");
    }

    #[test]
    fn bits_are_counted_along_the_row_and_the_column() {
        let size = Size { m: 1, n: 2, k: 64 };
        let (a, b) = ([0xf0f0_0001, 0xffff_ffff], [0x0ff0_0001, 0, 0, 0x8000_0001]);
        let mut d = [0; 2];
        bit_product(BitProduct::And, size, &a, &b, &[10, i32::MAX], &mut d);
        assert_eq!(d, [10 + 5, i32::MIN + 1]);
        bit_product(BitProduct::Xor, size, &a, &b, &[0, 0], &mut d);
        assert_eq!(d, [8 + 32, 9 + 30]);
    }
}
