//! Options of token sampling.

use std::hash::{BuildHasher, Hasher, RandomState};
use warpwright_llm::engine::SamplerOptions;

/// How tokens are chosen, in this order: penalties, top-k, top-p, min-p, temperature, a draw
#[derive(clap::Args)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct SamplingArguments {
    /// Seed of the random draws: the same seed gives the same text [default: a random one]
    #[arg(short, long, value_name = "SEED", value_parser = parse_seed, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Temperature; 0 takes the most likely token
    #[arg(long = "temp", value_name = "T", default_value_t = 0.8, allow_negative_numbers = true)]
    temperature: f32,
    /// Keep this many of the most likely tokens; 0 keeps all
    #[arg(long, value_name = "K", default_value_t = 40, allow_negative_numbers = true)]
    top_k: u32,
    /// Keep the fewest tokens that have this share of the probability; 1 keeps all
    #[arg(long, value_name = "P", default_value_t = 0.95, allow_negative_numbers = true)]
    top_p: f32,
    /// Keep tokens with at least this probability relative to the most likely; 0 keeps all
    #[arg(long, value_name = "P", default_value_t = 0.05, allow_negative_numbers = true)]
    min_p: f32,
    /// Divide the logits of recent tokens by this; 1 changes nothing
    #[arg(long, value_name = "X", default_value_t = 1.0, allow_negative_numbers = true)]
    repeat_penalty: f32,
    /// Number of recent tokens for penalties
    #[arg(long, value_name = "N", default_value_t = 64, allow_negative_numbers = true)]
    repeat_last_n: u32,
    /// Subtract this from the logits of recent tokens
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_negative_numbers = true)]
    presence_penalty: f32,
    /// Subtract this for each recent occurrence of a token
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_negative_numbers = true)]
    frequency_penalty: f32,
}

impl SamplingArguments {
    /// What they say, with a seed that is random if none is given.
    pub(crate) fn sampler(&self) -> SamplerOptions {
        SamplerOptions {
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            repeat_penalty: self.repeat_penalty,
            frequency_penalty: self.frequency_penalty,
            presence_penalty: self.presence_penalty,
            repeat_last_n: self.repeat_last_n,
            seed: self.seed.unwrap_or_else(random_seed),
        }
    }
}

fn parse_seed(text: &str) -> Result<u64, String> {
    let rule = format!("a seed is a whole number from 0 to {}; without one each run has another", u64::MAX);
    text.parse().map_err(|_| rule)
}

/// A seed that people can write down. The standard library's hasher has random keys.
fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish() >> 32
}
