//! Attention in float64, and how far a result may be from it.
//!
//! Results are held to what the arithmetic allows, each by its own numbers. With `c = scale · log₂e`, for a
//! query, where the maxima are over the keys that it sees:
//!
//! - `A = c · max Σ|q||k|`. Scores begin at minus the reference, which is no larger than `A`, and are added by the
//!   tensor cores in blocks of `G` products, each cut to `δ = ((G + 1)/2ⁿ + 1) · 2⁻²³` of the largest
//!   magnitude: `2A · δ · ⌈d/G⌉`. A reference rises by at least 8, or in one of the four masked tiles, and
//!   is rounded then: `A · 2⁻²³ · (A/4 + 4)`. Rounding `c` and the argument of the exponential adds
//!   `2A · 2⁻²²`. Factors that are rounded
//!   from `f32` by `u` add `1.01 · u · A` each. The sum is `E`.
//! - So weights are off by a factor of `2^±E`, and by `u` for their own rounding, 2⁻²² for the exponential, and
//!   `(A/4 + 4) · 2⁻²²` for being scaled down: `η` in all. Those of half precision are off by 2⁻³² of the weight of
//!   the reference besides.
//! - A mean whose weights are off by `η` each is off by `η/(1 − η) · Σ pⱼ|vⱼ − out|`, and additions of the tensor
//!   cores cut `δ · ⌈n/G⌉ · (Σ pⱼ|vⱼ| + |out|)` off, above and below the fraction.
//! - Where scores are so large that this says nothing, one key still outweighs the others if its score
//!   does by more than `2E`: then the others matter by `2^(sⱼ − s + 2E) · |vⱼ − v|`.
//!
//! Whatever the scores, a mean does not leave the range of its values by more than the additions err.

use super::case::{Case, Tensor};
use crate::common::rounding;
use std::f64::consts::LOG2_E;
use warpwright_kernels::{Dtype, FlashAttention};
use warpwright_ptx::ir::Arch;
use warpwright_vm::tensor::{FloatElement, TensorCore};

/// The element type of the factors, and what rounding to it does.
fn factors(kernel: &FlashAttention) -> (FloatElement, f64) {
    match kernel.factors {
        Dtype::F16 => (FloatElement::F16, 2f64.powi(-11)),
        _ => (FloatElement::BF16, 2f64.powi(-8)),
    }
}

/// What a query gives: its result, the bound of its error, and the logarithm of the sum of its weights with its
/// bound.
pub(crate) struct Expected {
    pub(crate) out: Vec<(f64, f64)>,
    pub(crate) lse: (f64, f64),
}

pub(crate) fn expected(
    case: &Case<'_>,
    [q, k, v]: &[Tensor; 3],
    (token, head): (usize, usize),
    lens: (usize, usize),
) -> Expected {
    let kernel = &case.kernel;
    let (q_len, kv_len) = lens;
    let d = kernel.head_dim as usize;
    let kv_head = head / (kernel.heads / kernel.kv_heads) as usize;
    let seen = if kernel.causal { (kv_len + token + 1).saturating_sub(q_len) } else { kv_len };
    let (factor, u) = factors(kernel);
    let [q_rounds, v_rounds] = [kernel.q, kernel.kv].map(|dtype| if dtype == Dtype::F32 { u } else { 0.0 });
    if seen == 0 {
        return Expected { out: vec![(0.0, 0.0); d], lse: (-1e30, 1e24) };
    }
    let c = f64::from(kernel.score_scale()) * LOG2_E;
    let query = q.row(token, head);
    let (mut scores, mut most) = (Vec::new(), 0f64);
    for key in 0..seen {
        let terms = query.iter().zip(k.row(key, kv_head)).map(|(q, k)| q * k);
        scores.push(c * terms.clone().sum::<f64>());
        most = most.max(c * terms.map(f64::abs).sum::<f64>());
    }
    let how = TensorCore::for_arch(Arch::sm(case.sm)).accumulation(factor).expect("a core that exists");
    let block = how.block as f64;
    let cut = ((block + 1.0) / 2f64.powi(how.extra_bits) + 1.0) * 2f64.powi(-23);
    let rises = most / 4.0 + 4.0;
    let off = 2.0 * most * cut * (d as f64 / block).ceil()
        + most * 2f64.powi(-23) * rises
        + 2.0 * most * 2f64.powi(-22)
        + 1.01 * (q_rounds + v_rounds) * most;
    let weight = (off * std::f64::consts::LN_2).exp_m1() + u + (rises + 1.0) * 2f64.powi(-22);

    let top = (0..seen).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).expect("a key");
    let weights: Vec<_> = scores.iter().map(|s| (s - scores[top]).exp2()).collect();
    let total: f64 = weights.iter().sum();
    let vanishing = if factor == FloatElement::F16 { 2f64.powi(-32) } else { 0.0 };
    let additions = cut * (seen as f64 / block + 2.0);
    let out = (0..d).map(|column| {
        let value = |key: usize| v.row(key, kv_head)[column];
        let exact = (0..seen).map(|key| weights[key] * value(key)).sum::<f64>() / total;
        let size = (0..seen).map(|key| weights[key] * value(key).abs()).sum::<f64>() / total;
        let apart = |from: f64, each: &dyn Fn(usize) -> f64| {
            (0..seen).map(|key| each(key) * (value(key) - from).abs()).sum::<f64>()
        };
        let mean = apart(exact, &|key| weight * weights[key] / total + vanishing) / (1.0 - weight).max(0.0);
        let one = apart(value(top), &|key| {
            if key == top { 0.0 } else { (scores[key] - scores[top] + 2.0 * off).min(0.0).exp2() }
        });
        let all = (0..seen).map(|key| (value(key) - exact).abs()).fold(0.0, f64::max);
        let least = 2f64.powi(if factor == FloatElement::F16 { -25 } else { -134 });
        let converted = v_rounds * size + if v_rounds > 0.0 { least } else { 0.0 };
        let slack =
            mean.min(2.0 * one).min(all * (1.0 + weight.min(1.0))) + 2.0 * additions * size + converted;
        let slack = slack + size * 2f64.powi(-22) + 2f64.powi(-140);
        (exact, slack + rounding(kernel.out.ty(), exact.abs() + slack))
    });
    let lse = (scores[top] + total.log2()) / LOG2_E;
    let slack = (off + (weight + additions) * 2.0 + 2f64.powi(-20)) + lse.abs() * 2f64.powi(-22) + 1e-5;
    Expected { out: out.collect(), lse: (lse, slack + seen as f64 * vanishing) }
}
