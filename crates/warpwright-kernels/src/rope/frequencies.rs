//! The frequencies at which the pairs of a head turn, and their scaling for contexts longer than those of the training.

use std::f64::consts::TAU;

/// How rotation frequencies are scaled for long contexts.
#[derive(Clone, Copy, Debug, Default, PartialEq, warpwright_dsl::KeyPart)]
pub enum RopeScaling {
    /// Not scaled.
    #[default]
    None,
    /// Positions are divided: position interpolation (Chen et al. 2023).
    Linear {
        /// By how much.
        factor: f32,
    },
    /// YaRN (Peng et al. 2023): pairs that turn often within the original context keep their frequency, pairs that turn
    /// less than about once are interpolated, and a ramp over the pairs connects the two; scores are sharpened.
    ///
    /// Pair `i` of `d / 2` turns `original_context / (2π) · base^(−2i/d)` times. The ramp goes from the last
    /// pair (rounded down) with `beta_fast` turns to the first (rounded up) with `beta_slow`, linearly in `i`,
    /// as in the authors' program, which models are trained with; the paper writes it in turns.
    Yarn {
        /// How much longer the context is than in training.
        factor: f32,
        /// The context of the training.
        original_context: u32,
        /// Turns from which on a pair is not interpolated: 32 in the paper.
        beta_fast: f32,
        /// Turns below which it is: 1 in the paper.
        beta_slow: f32,
        /// What `q` and `k` are multiplied by: `0.1 · ln(factor) + 1` where nothing else is said.
        attention_factor: Option<f32>,
    },
}

impl RopeScaling {
    /// YaRN with the paper's constants.
    pub fn yarn(factor: f32, original_context: u32) -> Self {
        let (beta_fast, beta_slow) = (32.0, 1.0);
        RopeScaling::Yarn { factor, original_context, beta_fast, beta_slow, attention_factor: None }
    }

    /// What rotated vectors are multiplied by.
    pub(super) fn magnitude(self) -> f32 {
        match self {
            RopeScaling::Yarn { attention_factor: Some(factor), .. } => factor,
            RopeScaling::Yarn { factor, .. } if factor > 1.0 => (0.1 * f64::from(factor).ln() + 1.0) as f32,
            _ => 1.0,
        }
    }

    /// How much of a turn pair `pair` makes from one position to the next: less than one.
    pub(super) fn turns(self, pair: u32, rotary_dim: u32, base: f32) -> f64 {
        let (base, dim) = (f64::from(base), f64::from(rotary_dim));
        let plain = base.powf(-2.0 * f64::from(pair) / dim) / TAU;
        match self {
            RopeScaling::None => plain,
            RopeScaling::Linear { factor } => plain / f64::from(factor),
            RopeScaling::Yarn { factor, original_context, beta_fast, beta_slow, .. } => {
                // The pair that makes so many turns within the original context, as a fraction.
                let pair_of = |turns: f32| {
                    dim * (f64::from(original_context) / (f64::from(turns) * TAU)).ln() / (2.0 * base.ln())
                };
                let first = pair_of(beta_fast).floor().max(0.0);
                let last = pair_of(beta_slow).ceil().min(dim - 1.0);
                let ramp = ((f64::from(pair) - first) / (last - first).max(0.001)).clamp(0.0, 1.0);
                plain * (1.0 - ramp) + plain / f64::from(factor) * ramp
            }
        }
    }
}
