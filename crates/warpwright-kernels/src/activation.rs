//! Activation functions: what each is on the device, what it is in `f64`, and how far the two may be apart.
//!
//! Kernels, plans and models name an [`Activation`] and ask it; what tells one from another is here alone. So a new one
//! is a variant with its row of the table, and an arm of each function.

use std::f64::consts::{PI, SQRT_2};
use warpwright_dsl::{Choice, Reg};

/// An activation function.
///
/// On the device it is computed in `f32`, in the DSL's fast form; `u` is 2⁻²⁴.
///
/// | activation | definition | slope, at most | own error, in `u` of the result |
/// | --- | --- | --- | --- |
/// | `Silu` | `x / (1 + e⁻ˣ)` (Hendrycks and Gimpel 2016) | 1.1 | `1.25 max(-x, 0) + 9` |
/// | `Gelu` | `x · (1 + erf(x / √2)) / 2` (Hendrycks and Gimpel 2016) | 1.13 | `1.25 max(-x, 0)² + 26` |
/// | `GeluTanh` | `x / 2 · (1 + tanh z)` with `z = √(2 / π) · (x + 0.044715 x³)` | 1.13 | `4 max(-2 z, 0) + 9` |
/// | `Relu` | `max(x, 0)` | 1 | 0 |
///
/// To the own error come `2⁻¹²⁶ · (1 + |x|)` for what is flushed to zero. [`error`](Self::error) is both, and what an
/// error of `x` becomes. At minus infinity each is zero, and NaN stays NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Choice)]
#[non_exhaustive]
pub enum Activation {
    /// `x / (1 + e⁻ˣ)`: of SwiGLU (Shazeer 2020), the gate's.
    Silu,
    /// `x · Φ(x)` with the normal distribution's `Φ`.
    Gelu,
    /// GELU with a tangent.
    GeluTanh,
    /// `max(x, 0)`.
    Relu,
}

impl Activation {
    /// The instructions that compute it.
    #[track_caller]
    pub fn apply<'k>(self, x: Reg<'k, f32>) -> Reg<'k, f32> {
        match self {
            Activation::Silu => x.silu_approx(),
            Activation::Gelu => x.gelu_approx(),
            Activation::GeluTanh => x.gelu_tanh_approx(),
            // A maximum would lose NaN.
            Activation::Relu => x.lt(0.0).select(0.0, x),
        }
    }

    /// Its definition.
    pub fn value(self, x: f64) -> f64 {
        match self {
            Activation::Silu => weighted(x, sigmoid(x)),
            Activation::Gelu => weighted(x, normal(x)),
            Activation::GeluTanh => weighted(x, sigmoid(twice_z(x))),
            Activation::Relu => weighted(x, if x < 0.0 { 0.0 } else { 1.0 }),
        }
    }

    /// How far [`apply`](Self::apply) of a number that is off by `of_x` may be from [`value`](Self::value) of `x`: the
    /// own error, and the slope times `of_x`.
    ///
    /// The own error changes with `x` by less than 30 `u` times the change: the slopes are rounded up by more than that.
    pub fn error(self, x: f64, of_x: f64) -> f64 {
        let (slope, units) = match self {
            Activation::Silu => (1.1, 1.25 * (-x).max(0.0) + 9.0),
            Activation::Gelu => (1.13, 1.25 * (-x).max(0.0).powi(2) + 26.0),
            Activation::GeluTanh => (1.13, 4.0 * (-twice_z(x)).max(0.0) + 9.0),
            Activation::Relu => (1.0, 0.0),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of other programs: Python's `math` module.
    #[test]
    fn values_are_those_of_other_programs() {
        let known = [
            (-6.0, [-0.014_835_738_939_808_647, -5.919_525_870_226_207e-9, -8.439_646_700_762_31e-11]),
            (-3.0, [-0.142_277_619_532_700_35, -0.004_049_694_094_890_287, -0.003_637_392_081_773_019]),
            (-1.0, [-0.268_941_421_369_995_1, -0.158_655_253_931_457_07, -0.158_808_009_391_723_3]),
            (0.0, [0.0; 3]),
            (0.5, [0.311_229_665_600_927_3, 0.345_731_230_637_006_56, 0.345_714_009_825_143_94]),
            (2.0, [1.761_594_155_955_764_6, 1.954_499_736_103_641_6, 1.954_597_694_087_775_2]),
            (4.0, [3.928_055_160_151_634, 3.999_873_315_032_667_5, 3.999_929_754_051_807_5]),
        ];
        for (x, values) in known {
            let [silu, gelu, gelu_tanh] = values;
            for (activation, value) in [
                (Activation::Silu, silu),
                (Activation::Gelu, gelu),
                (Activation::GeluTanh, gelu_tanh),
                (Activation::Relu, if x < 0.0 { 0.0 } else { x }),
            ] {
                let off = (activation.value(x) - value).abs();
                assert!(off <= 1e-12 * value.abs(), "{activation} of {x}: {}", activation.value(x));
            }
        }
    }

    #[test]
    fn edges_are_no_accidents() {
        for activation in Activation::ALL {
            assert_eq!(activation.value(f64::NEG_INFINITY), 0.0, "{activation}");
            assert_eq!(activation.value(-1e300), 0.0, "{activation}");
            assert_eq!(activation.value(f64::INFINITY), f64::INFINITY, "{activation}");
            assert!(activation.value(f64::NAN).is_nan(), "{activation}");
            assert!(activation.error(-1e300, 1.0).is_finite(), "{activation}");
        }
    }

    /// What an error of `x` costs is in the bound at any distance, with the own error at both ends.
    #[test]
    fn slopes_bound_differences() {
        let numbers: Vec<f64> = (-800..=800).map(|i| f64::from(i) / 64.0).collect();
        for activation in Activation::ALL {
            for (&x, &other) in numbers.iter().flat_map(|x| numbers.iter().map(move |other| (x, other))) {
                let apart = (activation.value(other) - activation.value(x)).abs();
                let bound = activation.error(x, (other - x).abs());
                assert!(
                    apart + activation.error(other, 0.0) <= bound * (1.0 + 1e-12),
                    "{activation}: {x} and {other}"
                );
            }
        }
    }
}
