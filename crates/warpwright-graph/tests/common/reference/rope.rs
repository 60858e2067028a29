//! Rotary position embedding (Su et al. 2021), from the papers.

use std::f64::consts::TAU;
use warpwright_graph::RopeParams;
use warpwright_kernels::{RopePairs, RopeScaling};

/// Rotates each head of `head_dim` of `x`: rows of heads, one for each position.
pub(super) fn rope(params: &RopeParams, x: &[f64], positions: &[u64], factors: Option<&[f64]>) -> Vec<f64> {
    let row = x.len() / positions.len();
    let (head_dim, pairs) = (params.head_dim as usize, params.rotary_dim as usize / 2);
    let magnitude = magnitude(params.scaling);
    let mut y = x.to_vec();
    for (y, &position) in y.chunks_mut(row).zip(positions) {
        for head in y.chunks_mut(head_dim) {
            for pair in 0..pairs {
                let (i, j) = match params.pairs {
                    RopePairs::Interleaved => (2 * pair, 2 * pair + 1),
                    RopePairs::Neox => (pair, pair + pairs),
                };
                let factor = factors.map_or(1.0, |factors| factors[pair]);
                let angle = position as f64 * (frequency(params, pair) / factor);
                let (sin, cos) = angle.sin_cos();
                let (a, b) = (head[i], head[j]);
                head[i] = magnitude * (a * cos - b * sin);
                head[j] = magnitude * (a * sin + b * cos);
            }
        }
    }
    y
}

/// What rotated vectors are multiplied by.
fn magnitude(scaling: RopeScaling) -> f64 {
    match scaling {
        RopeScaling::Yarn { attention_factor: Some(factor), .. } => factor.into(),
        RopeScaling::Yarn { factor, .. } => 0.1 * f64::from(factor).ln() + 1.0,
        _ => 1.0,
    }
}

/// By what angle a pair turns from one position to the next.
fn frequency(params: &RopeParams, pair: usize) -> f64 {
    let (dim, base) = (f64::from(params.rotary_dim), f64::from(params.base));
    let plain = base.powf(-2.0 * pair as f64 / dim);
    match params.scaling {
        RopeScaling::None => plain,
        RopeScaling::Linear { factor } => plain / f64::from(factor),
        RopeScaling::Yarn { factor, original_context, beta_fast, beta_slow, .. } => {
            // The pair that makes so many turns within the original context: base^(-2i/dim) · context = 2π · turns.
            let pair_of = |turns: f32| {
                dim / 2.0 * (f64::from(original_context) / (TAU * f64::from(turns))).ln() / base.ln()
            };
            let first = pair_of(beta_fast).floor().max(0.0);
            let last = pair_of(beta_slow).ceil().min(dim - 1.0);
            let interpolated = ((pair as f64 - first) / (last - first).max(0.001)).clamp(0.0, 1.0);
            plain * (1.0 - interpolated) + plain / f64::from(factor) * interpolated
        }
    }
}
