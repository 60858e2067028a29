//! Activation functions: sigmoid, SiLU, GELU, the hyperbolic tangent.
//!
//! Each has a fast form of a few instructions, `…_approx`, and one with a correctly rounded reciprocal, a subroutine
//! of some ten instructions and a branch. With `u = 2⁻²⁴`, the error bounds follow from those of the instructions
//! (`ex2.approx` 4 u, `rcp.approx` 2 u, both relative) and one `u` for each rounding. An exponent of `v` that is
//! rounded `r` times costs `r · |v| · u`, which is most of the error where the result is small. A function returns
//! NaN only for a NaN argument; infinities do not produce one.

use super::reg::Reg;
use super::types::Pred;
use std::f64::consts::LOG2_E;

/// How reciprocals and exponentials are taken.
#[derive(Clone, Copy)]
enum Form {
    Rounded,
    Fast,
}

impl Form {
    fn exp2<'k>(self, x: Reg<'k, f32>) -> Reg<'k, f32> {
        match self {
            Form::Rounded => x.exp2(),
            Form::Fast => x.exp2_ftz(),
        }
    }

    fn rcp<'k>(self, x: Reg<'k, f32>) -> Reg<'k, f32> {
        match self {
            Form::Rounded => x.rcp(),
            Form::Fast => x.rcp_ftz(),
        }
    }

    /// `1 / (1 + 2ˣ)`: an exponential that overflows to infinity has a reciprocal of zero.
    fn falling<'k>(self, x: Reg<'k, f32>) -> Reg<'k, f32> {
        self.rcp(self.exp2(x) + 1.0)
    }
}

macro_rules! forms {
    ($($(#[doc = $doc:literal])* $name:ident $fast:ident $of:ident $bound:literal $fast_bound:literal;)*) => {
        impl<'k> Reg<'k, f32> {
            $($(#[doc = $doc])*
            ///
            #[doc = $bound]
            #[track_caller]
            pub fn $name(self) -> Self {
                self.k.on_line(std::panic::Location::caller(), || $of(self, Form::Rounded))
            }

            $(#[doc = $doc])*
            ///
            #[doc = $fast_bound]
            #[track_caller]
            pub fn $fast(self) -> Self {
                self.k.on_line(std::panic::Location::caller(), || $of(self, Form::Fast))
            })*
        }
    };
}

forms! {
    /// `1 / (1 + e⁻ˣ)`.
    sigmoid sigmoid_approx sigmoid
        "With `m = max(-x, 0)`, `|err| ≤ (1.25 m + 6) · 2⁻²⁴` of the result, and 2⁻¹²⁶."
        "With `m = max(-x, 0)`, `|err| ≤ (1.25 m + 8) · 2⁻²⁴` of the result, and 2⁻¹²⁶. Four instructions.";
    /// SiLU: `x / (1 + e⁻ˣ)` (Hendrycks and Gimpel 2016).
    silu silu_approx silu
        "With `m = max(-x, 0)`, `|err| ≤ (1.25 m + 7) · 2⁻²⁴` of the result, and 2⁻¹²⁶ · (1 + |x|)."
        "With `m = max(-x, 0)`, `|err| ≤ (1.25 m + 9) · 2⁻²⁴` of the result, and 2⁻¹²⁶ · (1 + |x|). Six instructions.";
    /// GELU: `x · Φ(x)` with the normal distribution's `Φ(x) = (1 + erf(x / √2)) / 2` (Hendrycks and Gimpel 2016).
    gelu gelu_approx gelu
        "With `m = max(-x, 0)`, `|err| ≤ (1.25 m² + 24) · 2⁻²⁴` of the result, and 2⁻¹²⁶ · (1 + |x|)."
        "With `m = max(-x, 0)`, `|err| ≤ (1.25 m² + 26) · 2⁻²⁴` of the result, and 2⁻¹²⁶ · (1 + |x|). Some twenty \
         instructions.";
    /// GELU with a tangent: `x / 2 · (1 + tanh z)` with `z = √(2 / π) · (x + 0.044715 x³)`, which is
    /// `x / (1 + e⁻²ᶻ)`.
    gelu_tanh gelu_tanh_approx gelu_tanh
        "With `m = max(-2z, 0)`, `|err| ≤ (4 m + 7) · 2⁻²⁴` of the result, and 2⁻¹²⁶ · (1 + |x|)."
        "With `m = max(-2z, 0)`, `|err| ≤ (4 m + 9) · 2⁻²⁴` of the result, and 2⁻¹²⁶ · (1 + |x|). \
         Eight instructions.";
}

fn sigmoid(x: Reg<'_, f32>, form: Form) -> Reg<'_, f32> {
    form.falling(x * (-LOG2_E) as f32)
}

/// The factor is not infinite where the sigmoid is zero.
fn silu(x: Reg<'_, f32>, form: Form) -> Reg<'_, f32> {
    x.max(-128.0) * sigmoid(x, form)
}

fn gelu_tanh(x: Reg<'_, f32>, form: Form) -> Reg<'_, f32> {
    // √(8 / π), as a power of two.
    const LINEAR: f64 = -1.595_769_121_605_730_7 * LOG2_E;
    const CUBIC: f64 = 0.044715 * LINEAR;
    let exponent = (x * x).mul_add(CUBIC as f32, LINEAR as f32) * x;
    x.max(-16.0) * form.falling(exponent)
}

/// `max(x, 0) - |x| · Φ(-|x|)`, where `Φ(-a) = e^(-a²/2) · Q(1 / (1 + p a))` with a polynomial `Q`: that of the least
/// relative error, 2 · 2⁻²⁴, for `a` up to 13.5.
fn gelu(x: Reg<'_, f32>, form: Form) -> Reg<'_, f32> {
    const P: f32 = 39.0 / 128.0;
    const Q: [f32; 8] = [
        0.121_513_225,
        0.122_373_395,
        0.103_113_726,
        0.121_800_5,
        -0.039_569_642,
        0.187_730_45,
        -0.153_711_72,
        0.036_750_12,
    ];
    let a = x.abs();
    // NaN goes through the polynomial, and infinity through it as zero.
    let t = form.rcp(a.mul_add(P, 1.0));
    let polynomial = horner(t, &Q) * t;
    let a = a.min(16.0);
    let exponential = form.exp2(a * a * (-LOG2_E / 2.0) as f32);
    (-a * exponential).mul_add(polynomial, x.max(0.0))
}

/// The polynomial with these coefficients, of the constant first.
fn horner<'k>(x: Reg<'k, f32>, coefficients: &[f32]) -> Reg<'k, f32> {
    let [rest @ .., last] = coefficients else { return x.kernel().f32(0.0) };
    rest.iter().rev().fold(x.kernel().f32(*last), |sum, &coefficient| sum.mul_add(x, coefficient))
}

impl<'k> Reg<'k, f32> {
    /// The hyperbolic tangent, to `8 · 2⁻²⁴` of the result.
    #[track_caller]
    pub fn tanh(self) -> Self {
        self.k.on_line(std::panic::Location::caller(), || {
            // `x + x · s · P(s)` with `s = x²` near zero: 0.7 · 2⁻²⁴ with the polynomial of the least relative error.
            const NEAR: f32 = 0.55;
            const P: [f32; 4] = [-0.333_329_47, 0.133_207_25, -0.052_671_812, 0.016_437_58];
            let (a, s) = (self.abs(), self * self);
            let near = (horner(s, &P) * s).mul_add(self, self);
            let far = (a * (2.0 * LOG2_E) as f32).exp2() + 1.0;
            let far = far.rcp().mul_add(-2.0, 1.0);
            let negative: Reg<'k, Pred> = self.lt(0.0);
            a.lt(NEAR).select(near, negative.select(-far, far))
        })
    }
}
