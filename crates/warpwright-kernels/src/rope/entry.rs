//! Validation of the kernel's configuration, and its catalogue entry.

use super::{QkvLayout, Rope, RopePairs, RopeScaling, TokenSequences};
use crate::CacheDtype;
use crate::data::eight_bits::BLOCK;
use crate::data::floats::Dtype;
use warpwright_dsl::{BuildError, Choice, Config};

/// Whether the kernel has the configuration.
pub(super) fn check(rope: &Rope) -> Result<(), BuildError> {
    let Rope { heads, kv_heads, head_dim, rotary_dim, cache, max_seq_len, .. } = *rope;
    if heads == 0 && kv_heads == 0 {
        return Err(BuildError::field("heads", heads, "1 or more where there are no kv_heads"));
    }
    if rope.has_kv() && cache == CacheDtype::Q8_0 && !head_dim.is_multiple_of(BLOCK) {
        return Err(BuildError::field("head_dim", head_dim, "a multiple of 32 where the cache is q8_0"));
    }
    if rotary_dim > head_dim {
        let rule = format!("up to head_dim, which is {head_dim}");
        return Err(BuildError::field("rotary_dim", rotary_dim, rule));
    }
    if !rope.turns() && !rope.has_kv() && rope.norm.is_none() {
        let rule = "2 or more where there is neither a norm nor a cache: nothing would be done";
        return Err(BuildError::field("rotary_dim", rotary_dim, rule));
    }
    check_scaling(rope.scaling)?;
    if let QkvLayout::Fused { pitch } = rope.layout {
        let row = (heads + 2 * kv_heads) * head_dim;
        if !(row..=1 << 24).contains(&pitch) || !pitch.is_multiple_of(8) {
            let rule = format!("a multiple of 8 from the {row} elements of a row to 16777216");
            return Err(BuildError::field("pitch", pitch, rule));
        }
    }
    if rope.has_kv() && max_seq_len == 0 {
        return Err(BuildError::field("max_seq_len", max_seq_len, "1 or more"));
    }
    Ok(())
}

fn check_scaling(scaling: RopeScaling) -> Result<(), BuildError> {
    let factor_is = |factor: f32| {
        let rule = "from 1 to 1e6";
        (1.0..=1e6).contains(&factor).then_some(()).ok_or_else(|| BuildError::field("factor", factor, rule))
    };
    match scaling {
        RopeScaling::None => Ok(()),
        RopeScaling::Linear { factor } => factor_is(factor),
        RopeScaling::Yarn { factor, original_context, beta_fast, beta_slow, attention_factor } => {
            factor_is(factor)?;
            if original_context == 0 {
                return Err(BuildError::field("original_context", original_context, "1 or more"));
            }
            if !(beta_slow > 0.0 && beta_slow <= 1e6) {
                return Err(BuildError::field("beta_slow", beta_slow, "more than 0 and up to 1e6"));
            }
            if !(beta_fast >= beta_slow && beta_fast <= 1e6) {
                let rule = format!("from beta_slow, which is {beta_slow}, to 1e6");
                return Err(BuildError::field("beta_fast", beta_fast, rule));
            }
            match attention_factor {
                Some(factor) if !(factor > 0.0 && factor <= 1e6) => {
                    Err(BuildError::field("attention_factor", factor, "more than 0 and up to 1e6"))
                }
                _ => Ok(()),
            }
        }
    }
}

/// [`Rope`] as the catalogue has it: in words and numbers.
#[derive(Config)]
#[config(
    name = "rope",
    doc = "q and k, normalised if wanted, turned by their positions; k and v into the KV cache; or parts of that",
    examples(
        "heads=32 kv_heads=8 head_dim=64 pairs=interleaved base=500000 freq_factors=true max_seq_len=131072",
        "heads=12 kv_heads=2 head_dim=128 base=1000000 layout=fused output=f16",
        "heads=32 kv_heads=8 head_dim=128 pairs=interleaved base=500000 dtype=f16 output=in_place cache=q8_0",
        "heads=16 kv_heads=8 norm=true base=1000000 output=bf16 dtype=bf16 cache=bf16 sequences=one rounds=4",
        "heads=28 kv_heads=4 scaling=yarn base=1000000 layout=fused output=in_place sequences=listed",
        "heads=32 kv_heads=32 head_dim=80 rotary_dim=20 dtype=f16 output=f16",
        "heads=4 kv_heads=1 head_dim=256 scaling=linear factor=8 cache=f32",
        "heads=5 kv_heads=3 head_dim=96 rotary_dim=94 cache=q8_0 rounds=2",
        "heads=32 kv_heads=0 pairs=interleaved base=500000 freq_factors=true output=in_place",
        "heads=8 kv_heads=0 norm=true base=1000000 dtype=f16 output=f16",
        "heads=0 kv_heads=8 rotary_dim=0 sequences=listed",
        "heads=0 kv_heads=2 rotary_dim=0 dtype=f16 cache=q8_0"
    )
)]
pub(crate) struct RopeFields {
    /// Heads of q; 0 for no q.
    #[field(range = 0..=1024, default = 32)]
    heads: u32,
    /// Heads of k and v; 0 for neither, and no cache.
    #[field(range = 0..=1024, default = 8)]
    kv_heads: u32,
    /// Elements of a head.
    #[field(range = 8..=512, multiple_of = 8, default = 128)]
    head_dim: u32,
    /// Elements of a head that turn; auto for all.
    #[field(none = "auto", range = 0..=512, multiple_of = 2, default = "auto")]
    rotary_dim: Option<u32>,
    /// Which elements turn together.
    #[field(default = "neox")]
    pairs: RopePairs,
    /// Base of the frequencies.
    #[field(range = 1.001..=1e9, default = "10000")]
    base: f32,
    /// How frequencies are scaled.
    #[field(default = "none")]
    scaling: Scaling,
    /// By how much, with linear and yarn.
    #[field(range = 1.0..=1e4, default = "4")]
    factor: f32,
    /// Context of the training, with yarn.
    #[field(range = 1..=1 << 24, default = 32768)]
    original_context: u32,
    /// Turns that are not interpolated.
    #[field(range = 0.01..=1e3, default = "32")]
    beta_fast: f32,
    /// Turns that are.
    #[field(range = 0.01..=1e3, default = "1")]
    beta_slow: f32,
    /// What yarn multiplies q and k by; 0 for 0.1 ln(factor) + 1.
    #[field(range = 0.0..=1e3, default = "0")]
    attention_factor: f32,
    /// Whether a buffer divides each pair's frequency.
    #[field(default = false)]
    freq_factors: bool,
    /// Whether each head of q and k is normalised.
    #[field(default = false)]
    norm: bool,
    /// Added to the norm's mean square.
    #[field(range = 0.0..=1.0, default = "1e-6")]
    epsilon: f32,
    /// Element type of q, k and v.
    #[field(default = "f32")]
    dtype: Dtype,
    /// In buffers of their own, or rows of all three.
    #[field(default = "separate")]
    layout: Layout,
    /// Elements between fused rows.
    #[field(range = 0..=65536, multiple_of = 8, default = 0)]
    gap: u32,
    /// Element type of the rotated q, or back to where it was.
    #[field(none = "in_place", default = "f32")]
    output: Option<Dtype>,
    /// Element type of the cache.
    #[field(default = "f16")]
    cache: CacheDtype,
    /// Positions of a sequence of the cache.
    #[field(range = 1..=1 << 20, default = 4096)]
    max_seq_len: u32,
    /// All tokens to one sequence, each to its own, or as a buffer says.
    #[field(default = "each")]
    sequences: TokenSequences,
    /// Heads that a lane takes with the same angles.
    #[field(range = 1..=16, default = 1)]
    rounds: u32,
}

/// The forms of [`RopeScaling`].
#[derive(Clone, Copy, Choice)]
enum Scaling {
    None,
    Linear,
    Yarn,
}

/// The forms of [`QkvLayout`].
#[derive(Clone, Copy, Choice)]
enum Layout {
    Separate,
    Fused,
}

impl From<RopeFields> for Rope {
    fn from(fields: RopeFields) -> Self {
        let RopeFields { heads, kv_heads, head_dim, factor, original_context, .. } = fields;
        let RopeFields { beta_fast, beta_slow, attention_factor, .. } = fields;
        let attention_factor = Some(attention_factor).filter(|&factor| factor != 0.0);
        Rope {
            heads,
            kv_heads,
            head_dim,
            rotary_dim: fields.rotary_dim.unwrap_or(head_dim),
            pairs: fields.pairs,
            base: fields.base,
            scaling: match fields.scaling {
                Scaling::None => RopeScaling::None,
                Scaling::Linear => RopeScaling::Linear { factor },
                Scaling::Yarn => {
                    RopeScaling::Yarn { factor, original_context, beta_fast, beta_slow, attention_factor }
                }
            },
            freq_factors: fields.freq_factors,
            norm: fields.norm.then_some(fields.epsilon),
            input: fields.dtype,
            layout: match fields.layout {
                Layout::Separate => QkvLayout::Separate,
                Layout::Fused => QkvLayout::Fused { pitch: (heads + 2 * kv_heads) * head_dim + fields.gap },
            },
            output: fields.output,
            cache: fields.cache,
            max_seq_len: fields.max_seq_len,
            sequences: fields.sequences,
            rounds: fields.rounds,
        }
    }
}
