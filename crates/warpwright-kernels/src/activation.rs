//! Activation functions: what each is on the device.
//!
//! Kernels, plans and models name an [`Activation`] and ask it. So a new one is a variant with its row of the table, and
//! an arm of the function; `tests/common/activation.rs` has what it is in `f64`, and how far the two may be apart.

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
/// To the own error come `2⁻¹²⁶ · (1 + |x|)` for what is flushed to zero, and the slope times the error of `x`. At minus
/// infinity each is zero, and NaN stays NaN.
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
}
