//! Activation functions on the device.
//!
//! Kernels, plans and models refer to an [`Activation`] by name. To add one, add a variant with its row of the table
//! and an arm of the function; add its `f64` definition and its error bound to `tests/common/activation.rs`.

use warpwright_dsl::{Choice, Reg};

/// An activation function.
///
/// The device computes it in `f32`, in the DSL's fast form; `u` is 2⁻²⁴.
///
/// | activation | definition | slope, at most | own error, in `u` of the result |
/// | --- | --- | --- | --- |
/// | `Silu` | `x / (1 + e⁻ˣ)` (Hendrycks and Gimpel 2016) | 1.1 | `1.25 max(-x, 0) + 9` |
/// | `Gelu` | `x · (1 + erf(x / √2)) / 2` (Hendrycks and Gimpel 2016) | 1.13 | `1.25 max(-x, 0)² + 26` |
/// | `GeluTanh` | `x / 2 · (1 + tanh z)` with `z = √(2 / π) · (x + 0.044715 x³)` | 1.13 | `4 max(-2 z, 0) + 9` |
/// | `Relu` | `max(x, 0)` | 1 | 0 |
///
/// Add `2⁻¹²⁶ · (1 + |x|)` for flushing to zero, and the slope times the error of `x`. At minus infinity each is zero,
/// and NaN stays NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Choice)]
#[non_exhaustive]
pub enum Activation {
    /// `x / (1 + e⁻ˣ)`: the gate's activation in SwiGLU (Shazeer 2020).
    Silu,
    /// `x · Φ(x)` with the normal distribution's `Φ`.
    Gelu,
    /// GELU by its tanh approximation.
    GeluTanh,
    /// `max(x, 0)`.
    Relu,
}

impl Activation {
    /// Emits the instructions that compute it.
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
}
