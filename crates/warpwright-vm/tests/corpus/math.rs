//! Functions that Rust's library lacks, in f64, by the plainest method that is accurate.

use std::f64::consts::PI;

/// The error function: its series, and a continued fraction for the tail.
pub(crate) fn erf(x: f64) -> f64 {
    if x.abs() < 3.0 {
        let (mut term, mut sum, mut n) = (x, x, 0.0);
        while term.abs() > 1e-18 * sum.abs() {
            n += 1.0;
            term *= -x * x / n;
            sum += term / (2.0 * n + 1.0);
        }
        sum * 2.0 / PI.sqrt()
    } else {
        x.signum() * (1.0 - erfc_tail(x.abs()))
    }
}

/// 1 − erf, without cancellation for large `x`.
pub(crate) fn erfc(x: f64) -> f64 {
    if x < 3.0 { 1.0 - erf(x) } else { erfc_tail(x) }
}

fn erfc_tail(x: f64) -> f64 {
    let fraction = (1..80).rev().fold(0.0, |below, k| f64::from(k) / 2.0 / (x + below));
    (-x * x).exp() / PI.sqrt() / (x + fraction)
}

/// The inverse of erf on (−1, 1), by bisection.
pub(crate) fn erf_inverse(y: f64) -> f64 {
    let (mut low, mut high) = (-6.0, 6.0);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if erf(middle) < y { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// ln Γ for positive `x`: Stirling's series above 15, reached by Γ(x + 1) = x Γ(x).
fn ln_gamma_positive(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < 15.0 {
        shift += x.ln();
        x += 1.0;
    }
    let inverse = 1.0 / (x * x);
    let series = (1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse / 1680.0))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * PI).ln() + series - shift
}

/// ln |Γ|.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    if x > 0.0 { ln_gamma_positive(x) } else { (PI / (PI * x).sin().abs()).ln() - ln_gamma_positive(1.0 - x) }
}

pub(crate) fn gamma(x: f64) -> f64 {
    if x > 0.0 {
        ln_gamma_positive(x).exp()
    } else {
        PI / ((PI * x).sin() * ln_gamma_positive(1.0 - x).exp())
    }
}

/// The Bessel function J₀: the mean of cos(x sin t), by the trapezoidal rule, which is exact here.
pub(crate) fn bessel_j0(x: f64) -> f64 {
    let steps = 200;
    (0..steps).map(|k| (x * (PI * (f64::from(k) + 0.5) / f64::from(steps)).sin()).cos()).sum::<f64>()
        / f64::from(steps)
}

/// x − n·y for the integer n nearest to x/y, ties to even.
pub(crate) fn remainder(x: f64, y: f64) -> (f64, i64) {
    let n = (x / y).round_ties_even();
    ((-n).mul_add(y, x), n as i64)
}

#[test]
fn known_values() {
    let close = |a: f64, b: f64| assert!((a - b).abs() <= 1e-13 * b.abs().max(1e-3), "{a} {b}");
    close(erf(0.5), 0.520_499_877_813_046_5);
    close(erfc(4.0), 1.541_725_790_028_002e-8);
    close(erf_inverse(0.5), 0.476_936_276_204_469_9);
    close(gamma(0.5), PI.sqrt());
    close(gamma(-1.5), 4.0 / 3.0 * PI.sqrt());
    close(ln_gamma(10.0), 362_880f64.ln());
    close(bessel_j0(2.0), 0.223_890_779_141_235_67);
}
