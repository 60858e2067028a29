//! Activation functions against their definitions in `f64`, at the bounds that their documentation states.

use super::{TARGETS, outputs};
use crate::common::LaunchArg;
use crate::common::activation::Exact;
use warpwright_dsl::*;
use warpwright_kernels::Activation;
use warpwright_ptx::ir::Type;

/// What is allowed at `x`: in units of 2⁻²⁴ of the result, and absolutely.
type Bound = fn(f64) -> (f64, f64);

struct Function {
    name: &'static str,
    device: for<'k> fn(Reg<'k, f32>) -> Reg<'k, f32>,
    exact: fn(f64) -> f64,
    bound: Bound,
}

/// What results that are flushed to zero cost.
fn flushed(x: f64) -> f64 {
    2f64.powi(-126) * if x.is_finite() { 1.0 + x.abs() } else { 1.0 }
}

/// `1 / (1 + e⁻ˣ)`, which is 0 and 1 at the infinities.
fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `2 z` of GELU with a tangent.
fn twice_z(x: f64) -> f64 {
    (8.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)
}

const FUNCTIONS: [Function; 10] = [
    Function {
        name: "sigmoid",
        device: |x| x.sigmoid(),
        exact: sigmoid,
        bound: |x| (1.25 * (-x).max(0.0) + 6.0, 2f64.powi(-126)),
    },
    Function {
        name: "sigmoid_approx",
        device: |x| x.sigmoid_approx(),
        exact: sigmoid,
        bound: |x| (1.25 * (-x).max(0.0) + 8.0, 2f64.powi(-126)),
    },
    Function {
        name: "silu",
        device: |x| x.silu(),
        exact: |x| Activation::Silu.value(x),
        bound: |x| (1.25 * (-x).max(0.0) + 7.0, flushed(x)),
    },
    Function {
        name: "silu_approx",
        device: |x| x.silu_approx(),
        exact: |x| Activation::Silu.value(x),
        bound: |x| (1.25 * (-x).max(0.0) + 9.0, flushed(x)),
    },
    Function {
        name: "gelu",
        device: |x| x.gelu(),
        exact: |x| Activation::Gelu.value(x),
        bound: |x| (1.25 * (-x).max(0.0).powi(2) + 24.0, flushed(x)),
    },
    Function {
        name: "gelu_approx",
        device: |x| x.gelu_approx(),
        exact: |x| Activation::Gelu.value(x),
        bound: |x| (1.25 * (-x).max(0.0).powi(2) + 26.0, flushed(x)),
    },
    Function {
        name: "gelu_tanh",
        device: |x| x.gelu_tanh(),
        exact: |x| Activation::GeluTanh.value(x),
        bound: |x| (4.0 * (-twice_z(x)).max(0.0) + 7.0, flushed(x)),
    },
    Function {
        name: "gelu_tanh_approx",
        device: |x| x.gelu_tanh_approx(),
        exact: |x| Activation::GeluTanh.value(x),
        bound: |x| (4.0 * (-twice_z(x)).max(0.0) + 9.0, flushed(x)),
    },
    Function { name: "tanh", device: |x| x.tanh(), exact: f64::tanh, bound: |_| (8.0, 2f64.powi(-149)) },
    Function {
        name: "tanh_approx",
        device: |x| x.tanh_approx(),
        exact: f64::tanh,
        bound: |_| (8192.0, 2f64.powi(-149)),
    },
];

/// Numbers of every size, densely where the functions bend, and the edges.
fn arguments() -> Vec<f32> {
    let mut list =
        vec![0.0, f32::MIN_POSITIVE, 1e-45, 1e-40, 0.55, 0.549_999_95, 1e6, 1e20, f32::MAX, f32::INFINITY];
    list.extend((0..40_000).map(|i| i as f32 / 40_000.0 * 18.0));
    list.extend((0..8000).map(|i| 18.0 + i as f32 / 8000.0 * 120.0));
    list.extend((0..8000).map(|i| f32::from_bits(i * 0x3_fc01 + 7)));
    list.extend(list.clone().iter().map(|x| -x));
    list.push(f32::NAN);
    list.resize(list.len().next_multiple_of(256), 0.0);
    list
}

fn activations_keep_their_bounds() {
    let x: Vec<f64> = arguments().into_iter().map(f64::from).collect();
    let shape = (x.len() as u32 / 256, 256);
    for sm in TARGETS {
        for function in &FUNCTIONS {
            let given = [LaunchArg::Input(Type::F32, &x), LaunchArg::Output(Type::F32, x.len())];
            let found = outputs(sm, shape, &given, |k| {
                let i = k.global_tid();
                let x = k.ptr::<f32>("x").ld(i);
                k.ptr_mut::<f32>("y").st(i, (function.device)(x));
            });
            for (&x, &found) in x.iter().zip(&found[0]) {
                let exact = (function.exact)(x);
                let (units, absolute) = (function.bound)(x);
                let allowed =
                    (if units.is_finite() { units } else { 0.0 }) * 2f64.powi(-24) * exact.abs() + absolute;
                let right = if x.is_nan() || exact.is_infinite() {
                    found.is_nan() == x.is_nan() && (x.is_nan() || found == exact)
                } else {
                    (found - exact).abs() <= allowed
                };
                assert!(right, "{} of {x:e} on sm_{sm}: {found:e}, not {exact:e}", function.name);
            }
        }
    }
}

crate::case_list! {
    activations_keep_their_bounds,
}
