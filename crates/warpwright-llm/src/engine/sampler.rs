//! How the next token is chosen.

use super::error::EngineError;
use crate::model::{Choice, Outcome};
use serde::Serialize;
use warpwright_graph::SampleParams;
use warpwright_kernels::Setting;

/// The most tokens that penalties look back on.
const MAX_LAST_N: u32 = 1024;

/// How the next token is chosen, in this order: penalties, `top_k`, `top_p`, `min_p`, temperature, a draw.
///
/// The kernels [`Penalties`](warpwright_kernels::Penalties) and [`Sample`](warpwright_kernels::Sample) define each step
/// exactly. At a temperature of 0 the token with the largest logit after penalties is taken, the first of several;
/// `top_k`, `top_p`, `min_p` and the seed are then ignored.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SamplerOptions {
    /// Seed of the draws: the same seed draws the same tokens.
    pub seed: u64,
    /// Logits are divided by it: 0 or more, where 0 takes the largest.
    pub temperature: f32,
    /// Keeps this many of the largest; 0 keeps all.
    pub top_k: u32,
    /// Keeps the fewest of the largest that have this share of the probability: from 0 to 1, where 1 keeps all.
    pub top_p: f32,
    /// Keeps tokens with at least this probability relative to the most likely: from 0 to 1, where 0 keeps all.
    pub min_p: f32,
    /// Divides the logits of recent tokens, or multiplies them if they are negative: from 0.001 to 1000, where 1
    /// changes nothing.
    pub repeat_penalty: f32,
    /// Number of recent tokens, up to 1024, including those of prompts; 0 for no penalties.
    pub repeat_last_n: u32,
    /// Subtracted once if a token is recent: from -10⁶ to 10⁶.
    pub presence_penalty: f32,
    /// Subtracted for each recent occurrence of a token: from -10⁶ to 10⁶.
    pub frequency_penalty: f32,
}

impl Default for SamplerOptions {
    /// A temperature of 0.8, `top_k` 40, `top_p` 0.95, `min_p` 0.05, no penalties, the seed 0.
    fn default() -> Self {
        SamplerOptions {
            temperature: 0.8,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            repeat_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            repeat_last_n: 64,
            seed: 0,
        }
    }
}

impl SamplerOptions {
    /// The most likely token, without penalties.
    pub fn greedy() -> Self {
        SamplerOptions { temperature: 0.0, ..SamplerOptions::default() }
    }

    /// Whether tokens are drawn at random.
    pub fn draws(&self) -> bool {
        self.temperature > 0.0
    }

    /// How many recent tokens penalties use; `None` without penalties.
    pub fn window(&self) -> Option<u32> {
        let neutral =
            self.repeat_penalty == 1.0 && self.frequency_penalty == 0.0 && self.presence_penalty == 0.0;
        (!neutral && self.repeat_last_n > 0).then_some(self.repeat_last_n)
    }

    /// Checks that all options are in range.
    ///
    /// # Errors
    ///
    /// [`EngineError::Option`] with the first that is not.
    pub fn check(&self) -> Result<(), EngineError> {
        let floats = [
            ("the temperature", self.temperature, 0.0..=f32::MAX, "0 or more, and finite"),
            ("top_p", self.top_p, 0.0..=1.0, "from 0 to 1"),
            ("min_p", self.min_p, 0.0..=1.0, "from 0 to 1"),
            ("the repeat penalty", self.repeat_penalty, 1e-3..=1e3, "from 0.001 to 1000"),
            ("the frequency penalty", self.frequency_penalty, -1e6..=1e6, "from -1e6 to 1e6"),
            ("the presence penalty", self.presence_penalty, -1e6..=1e6, "from -1e6 to 1e6"),
        ];
        for (option, value, range, rule) in floats {
            if !range.contains(&value) {
                return Err(EngineError::Option { option, value: value.to_string(), rule: rule.into() });
            }
        }
        if self.repeat_last_n > MAX_LAST_N {
            let (option, value) =
                ("the number of tokens that penalties look back on", self.repeat_last_n.to_string());
            return Err(EngineError::Option { option, value, rule: format!("from 0 to {MAX_LAST_N}") });
        }
        Ok(())
    }

    /// The graphs that choose so: numbers are in buffers, so that other ones need no other graph.
    pub(super) fn outcome(&self) -> Outcome {
        let setting = Setting::Buffer;
        let drawn = SampleParams {
            top_k: Setting::Buffer,
            top_p: setting,
            min_p: setting,
            ..SampleParams::new(setting)
        };
        let choice = if self.draws() { Choice::Sample(drawn) } else { Choice::ArgMax };
        Outcome::Token { choice, window: self.window() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_range_is_named() {
        let good = SamplerOptions::default();
        assert!(good.check().is_ok() && SamplerOptions::greedy().check().is_ok());
        let wrong = |options: SamplerOptions| match options.check() {
            Err(EngineError::Option { option, .. }) => option,
            other => panic!("{other:?}"),
        };
        assert_eq!(wrong(SamplerOptions { temperature: -0.1, ..good }), "the temperature");
        assert_eq!(wrong(SamplerOptions { temperature: f32::NAN, ..good }), "the temperature");
        assert_eq!(wrong(SamplerOptions { temperature: f32::INFINITY, ..good }), "the temperature");
        assert_eq!(wrong(SamplerOptions { top_p: 1.01, ..good }), "top_p");
        assert_eq!(wrong(SamplerOptions { min_p: -0.01, ..good }), "min_p");
        assert_eq!(wrong(SamplerOptions { repeat_penalty: 0.0, ..good }), "the repeat penalty");
        let last_n = "the number of tokens that penalties look back on";
        assert_eq!(wrong(SamplerOptions { repeat_last_n: 1025, ..good }), last_n);
    }

    #[test]
    fn there_are_penalties_where_they_do_something() {
        let none = SamplerOptions::default();
        assert_eq!(none.window(), None);
        assert_eq!(SamplerOptions { repeat_penalty: 1.1, ..none }.window(), Some(64));
        assert_eq!(SamplerOptions { presence_penalty: -1.0, repeat_last_n: 3, ..none }.window(), Some(3));
        assert_eq!(SamplerOptions { frequency_penalty: 1.0, repeat_last_n: 0, ..none }.window(), None);
    }
}
