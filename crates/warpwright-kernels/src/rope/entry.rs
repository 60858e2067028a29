//! Which configurations the kernel has, and how the catalogue shows them.

use super::{QkvLayout, Rope, RopePairs, RopeScaling, TokenSequences};
use crate::CacheDtype;
use crate::data::eight_bits::BLOCK;
use crate::data::floats::Dtype;
use crate::entry::{DTYPES, Domain, Entry, Field, boxed};
use warpwright_dsl::BuildError;

/// Whether the kernel has the configuration.
pub(super) fn check(rope: &Rope) -> Result<(), BuildError> {
    let Rope { heads, kv_heads, head_dim, rotary_dim, base, cache, max_seq_len, rounds, .. } = *rope;
    if heads > 1024 {
        return Err(BuildError::field("heads", heads, "up to 1024"));
    }
    if kv_heads > 1024 {
        return Err(BuildError::field("kv_heads", kv_heads, "up to 1024"));
    }
    if heads == 0 && kv_heads == 0 {
        return Err(BuildError::field("heads", heads, "1 or more where there are no kv_heads"));
    }
    if !(8..=512).contains(&head_dim) || !head_dim.is_multiple_of(8) {
        return Err(BuildError::field("head_dim", head_dim, "a multiple of 8 from 8 to 512"));
    }
    if rope.has_kv() && cache == CacheDtype::Q8_0 && !head_dim.is_multiple_of(BLOCK) {
        return Err(BuildError::field("head_dim", head_dim, "a multiple of 32 where the cache is q8_0"));
    }
    if rotary_dim > head_dim || !rotary_dim.is_multiple_of(2) {
        let rule = format!("an even number up to head_dim, which is {head_dim}");
        return Err(BuildError::field("rotary_dim", rotary_dim, rule));
    }
    if !rope.turns() && !rope.has_kv() && rope.norm.is_none() {
        let rule = "2 or more where there is neither a norm nor a cache: nothing would be done";
        return Err(BuildError::field("rotary_dim", rotary_dim, rule));
    }
    if !(base > 1.0 && base <= 1e30) {
        return Err(BuildError::field("base", base, "more than 1 and up to 1e30"));
    }
    check_scaling(rope.scaling)?;
    if let Some(epsilon) = rope.norm
        && !(0.0..=1e30).contains(&epsilon)
    {
        return Err(BuildError::field("epsilon", epsilon, "from 0 to 1e30"));
    }
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
    if !(1..=16).contains(&rounds) {
        return Err(BuildError::field("rounds", rounds, "from 1 to 16"));
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

const fn field(name: &'static str, domain: Domain, default: &'static str, doc: &'static str) -> Field {
    Field { name, domain, default: Some(default), doc }
}

pub(crate) const ENTRY: Entry = Entry {
    name: "rope",
    doc: "q and k, normalised if wanted, turned by their positions; k and v into the KV cache; or parts of that",
    fields: &[
        field("heads", Domain::int(0, 1024), "32", "heads of q; 0 for no q"),
        field("kv_heads", Domain::int(0, 1024), "8", "heads of k and v; 0 for neither, and no cache"),
        field("head_dim", Domain::Int { from: 8, to: 512, multiple_of: 8 }, "128", "elements of a head"),
        field(
            "rotary_dim",
            Domain::Or { word: "auto", of: &Domain::Int { from: 0, to: 512, multiple_of: 2 } },
            "auto",
            "elements of a head that turn; auto for all",
        ),
        field("pairs", Domain::OneOf(&["neox", "interleaved"]), "neox", "which elements turn together"),
        field("base", Domain::Float { from: 1.001, to: 1e9 }, "10000", "base of the frequencies"),
        field("scaling", Domain::OneOf(&["none", "linear", "yarn"]), "none", "how frequencies are scaled"),
        field("factor", Domain::Float { from: 1.0, to: 1e4 }, "4", "by how much, with linear and yarn"),
        field("original_context", Domain::int(1, 1 << 24), "32768", "context of the training, with yarn"),
        field("beta_fast", Domain::Float { from: 0.01, to: 1e3 }, "32", "turns that are not interpolated"),
        field("beta_slow", Domain::Float { from: 0.01, to: 1e3 }, "1", "turns that are"),
        field(
            "attention_factor",
            Domain::Float { from: 0.0, to: 1e3 },
            "0",
            "what yarn multiplies q and k by; 0 for 0.1 ln(factor) + 1",
        ),
        field("freq_factors", Domain::FLAG, "false", "whether a buffer divides each pair's frequency"),
        field("norm", Domain::FLAG, "false", "whether each head of q and k is normalised"),
        field("epsilon", Domain::Float { from: 0.0, to: 1.0 }, "1e-6", "added to the norm's mean square"),
        field("dtype", DTYPES, "f32", "element type of q, k and v"),
        field(
            "layout",
            Domain::OneOf(&["separate", "fused"]),
            "separate",
            "q, k and v, or rows of all three",
        ),
        field("gap", Domain::Int { from: 0, to: 65536, multiple_of: 8 }, "0", "elements between fused rows"),
        field(
            "output",
            Domain::OneOf(&["f32", "f16", "bf16", "in_place"]),
            "f32",
            "element type of the rotated q, or back to where it was",
        ),
        field(
            "cache",
            <CacheDtype as warpwright_dsl::FieldValue>::DOMAIN,
            "f16",
            "element type of the cache",
        ),
        field("max_seq_len", Domain::int(1, 1 << 20), "4096", "positions of a sequence of the cache"),
        field(
            "sequences",
            Domain::OneOf(&["one", "each", "listed"]),
            "each",
            "all tokens to one sequence, each to its own, or as a buffer says",
        ),
        field("rounds", Domain::int(1, 16), "1", "heads that a lane takes with the same angles"),
    ],
    examples: &[
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
        "heads=0 kv_heads=2 rotary_dim=0 dtype=f16 cache=q8_0",
    ],
    make: |config| {
        let (heads, kv_heads, head_dim) =
            (config.u32("heads"), config.u32("kv_heads"), config.u32("head_dim"));
        let factor = config.f32("factor");
        let row = (heads + 2 * kv_heads) * head_dim;
        boxed(Rope {
            rotary_dim: config.auto_u32("rotary_dim").unwrap_or(head_dim),
            pairs: match config.text("pairs") {
                "interleaved" => RopePairs::Interleaved,
                _ => RopePairs::Neox,
            },
            base: config.f32("base"),
            scaling: match config.text("scaling") {
                "linear" => RopeScaling::Linear { factor },
                "yarn" => RopeScaling::Yarn {
                    factor,
                    original_context: config.u32("original_context"),
                    beta_fast: config.f32("beta_fast"),
                    beta_slow: config.f32("beta_slow"),
                    attention_factor: Some(config.f32("attention_factor")).filter(|&factor| factor != 0.0),
                },
                _ => RopeScaling::None,
            },
            freq_factors: config.flag("freq_factors"),
            norm: config.flag("norm").then(|| config.f32("epsilon")),
            input: config.dtype("dtype"),
            layout: match config.text("layout") {
                "fused" => QkvLayout::Fused { pitch: row + config.u32("gap") },
                _ => QkvLayout::Separate,
            },
            output: Dtype::from_name(config.text("output")),
            cache: CacheDtype::from_name(config.text("cache")).unwrap_or(CacheDtype::F16),
            sequences: match config.text("sequences") {
                "one" => TokenSequences::One,
                "listed" => TokenSequences::Listed,
                _ => TokenSequences::Each,
            },
            rounds: config.u32("rounds"),
            ..Rope::new(heads, kv_heads, head_dim, config.u32("max_seq_len"))
        })
    },
};
