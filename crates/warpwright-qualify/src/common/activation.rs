//! Activation functions in `f64`, and how far what a device computes may be from that.

use std::f64::consts::{PI, SQRT_2};
use warpwright_kernels::Activation;

/// What an activation is.
pub trait Exact {
    /// Its definition.
    fn value(self, x: f64) -> f64;

    /// How far [`apply`](Activation::apply) of a number that is off by `of_x` may be from [`value`](Self::value) of `x`:
    /// the own error, and the slope times `of_x`.
    ///
    /// The own error changes with `x` by less than 30 `u` times the change: the slopes are rounded up by more than that.
    #[allow(dead_code, reason = "each test takes what it needs")]
    fn error(self, x: f64, of_x: f64) -> f64;
}

impl Exact for Activation {
    fn value(self, x: f64) -> f64 {
        match self {
            Activation::Silu => weighted(x, sigmoid(x)),
            Activation::Gelu => weighted(x, normal(x)),
            Activation::GeluTanh => weighted(x, sigmoid(twice_z(x))),
            Activation::Relu => weighted(x, if x < 0.0 { 0.0 } else { 1.0 }),
            other => panic!("{other} has no reference"),
        }
    }

    fn error(self, x: f64, of_x: f64) -> f64 {
        let (slope, units) = match self {
            Activation::Silu => (1.1, 1.25 * (-x).max(0.0) + 9.0),
            Activation::Gelu => (1.13, 1.25 * (-x).max(0.0).powi(2) + 26.0),
            Activation::GeluTanh => (1.13, 4.0 * (-twice_z(x)).max(0.0) + 9.0),
            Activation::Relu => (1.0, 0.0),
            other => panic!("{other} has no reference"),
        };
        let flushed = 2f64.powi(-126) * (1.0 + x.abs() + of_x);
        slope * of_x + weighted(2f64.powi(-24) * units, self.value(x).abs()) + flushed
    }
}

/// `x · factor`, zero where the factor is.
fn weighted(x: f64, factor: f64) -> f64 {
    if factor == 0.0 { 0.0 } else { x * factor }
}

/// `1 / (1 + e⁻ˣ)`, which is 0 and 1 at the infinities.
fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `2 z` of GELU with a tangent, whose share of `x` is the sigmoid of that.
fn twice_z(x: f64) -> f64 {
    (8.0 / PI).sqrt() * (x + 0.044715 * x * x * x)
}

/// The normal distribution.
fn normal(x: f64) -> f64 {
    let tail = erfc(x.abs() / SQRT_2) / 2.0;
    if x < 0.0 { tail } else { 1.0 - tail }
}

/// `erfc(z)` for `z ≥ 0`: the series of `erf` near zero, a continued fraction beyond (Abramowitz and Stegun 7.1.6 and
/// 7.1.14).
fn erfc(z: f64) -> f64 {
    let gaussian = (-z * z).exp() / PI.sqrt();
    if z < 2.5 {
        let (mut term, mut sum) = (z, z);
        for n in 1..80 {
            term *= 2.0 * z * z / f64::from(2 * n + 1);
            sum += term;
        }
        return 1.0 - 2.0 * gaussian * sum;
    }
    let fraction = (1..80).rev().fold(z, |fraction, n| z + f64::from(n) / 2.0 / fraction);
    gaussian / fraction
}
