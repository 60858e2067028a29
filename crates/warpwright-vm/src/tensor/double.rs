//! Products of `f64` factors: a chain of fused multiply-adds in the order of k.
//!
//! A multiply-add that is not a number is a quiet NaN with the sign and payload of the first NaN among the factor from
//! `b`, the running value and the factor from `a`. If none of them is a NaN, it is the default one. Measured on an H200
//! for every shape; the same for every core here.

use super::Size;
use crate::num::float::propagate;

/// `d = a · b + c`, where `fma(x, y, z)` is `x · y + z` rounded once, in the direction of the instruction.
///
/// # Panics
///
/// If a slice is shorter than `size` requires.
#[inline(always)]
pub fn product(
    fma: impl Fn(f64, f64, f64) -> f64,
    size: Size,
    a: &[f64],
    b: &[f64],
    c: &[f64],
    d: &mut [f64],
) {
    let Size { m, n, k } = size;
    for row in 0..m {
        let sums = &mut d[row * n..][..n];
        sums.copy_from_slice(&c[row * n..][..n]);
        for (&x, others) in a[row * k..][..k].iter().zip(b.chunks_exact(n)) {
            for (sum, &y) in sums.iter_mut().zip(others) {
                *sum = with_nan(fma(x, y, *sum), x, y, *sum);
            }
        }
    }
}

/// `result`, with the NaN that stands for it.
#[inline(always)]
fn with_nan(result: f64, x: f64, y: f64, z: f64) -> f64 {
    propagate(result, y, if z.is_nan() { z } else { x })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factor_from_b_is_the_first_whose_nan_is_kept() {
        let nan = |payload: u64| f64::from_bits(0x7ff8_0000_0000_0000 | payload);
        let found = |a: [f64; 2], b: [f64; 2], c: f64| {
            let mut d = [0.0];
            product(f64::mul_add, Size { m: 1, n: 1, k: 2 }, &a, &b, &[c], &mut d);
            d[0].to_bits()
        };
        assert_eq!(found([nan(1), 1.0], [nan(2), 1.0], nan(3)), nan(2).to_bits());
        assert_eq!(found([nan(1), 1.0], [1.0, 1.0], nan(3)), nan(3).to_bits());
        assert_eq!(found([nan(1), nan(4)], [1.0, 1.0], 1.0), nan(1).to_bits());
        assert_eq!(
            found([nan(1), 1.0], [1.0, f64::from_bits(0xfff0_0000_0000_0005)], 1.0),
            (-nan(5)).to_bits()
        );
        assert_eq!(found([f64::INFINITY, nan(1)], [0.0, 1.0], 1.0), 0xfff8_0000_0000_0000);
    }

    #[test]
    fn each_product_is_added_with_one_rounding_in_order() {
        let tiny = 2f64.powi(-53);
        let (a, b, c) = ([1.0 + 2.0 * tiny, tiny, 1.0], [1.0 - tiny, 1.0, -1.0], [0.0]);
        let mut d = [0.0];
        product(f64::mul_add, Size { m: 1, n: 1, k: 3 }, &a, &b, &c, &mut d);
        // (1 + 2u)(1 − u) = 1 + u − 2u² rounds to 1; 1 + u ties to 1; the rest cancels.
        assert_eq!(d, [0.0]);
        product(f64::mul_add, Size { m: 1, n: 1, k: 2 }, &[1.0, tiny], &[1.0, tiny], &[-1.0], &mut d);
        assert_eq!(d, [tiny * tiny]);
    }
}
