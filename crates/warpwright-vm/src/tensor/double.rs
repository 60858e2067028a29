//! Products of `f64` factors: a chain of fused multiply-adds in the order of k.

use super::Size;

/// `d = a · b + c`, where `fma(x, y, z)` is `x · y + z` rounded once, in the direction and with the NaNs of the
/// instruction.
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
                *sum = fma(x, y, *sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
