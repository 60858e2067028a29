//! The decoder's catalogue entry: its fields describe a model's decode step, and its ops follow from them.
//!
//! The ops of a real decoder come from a graph's plan. Those given here are of a typical model, so that tools can
//! print, assemble and measure the kernel.

use super::kernel::BLOCK_WARPS;
use super::{Assignment, Op, PersistentDecoder};
use crate::activation::Activation;
use crate::linear::gemv::{Activations, Matrix, QuantGemv};
use crate::{
    Advance, Argmax, CacheDtype, CopyBytes, Embedding, IncrementalAttention, Penalties, Publish, RmsNorm,
    Rope, RopePairs, Sample, Setting, WeightFormat,
};
use std::sync::Arc;
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::{Arch, BuildError, Choice, Config, Domain};

/// Rows of the embedding: one of the numbers in records, of which any would do.
const VOCABULARY: u32 = 128_256;
const MAX_SEQ_LEN: u32 = 8192;
/// Where ops are told apart: each is built again for the target that is asked for.
const TARGET: Arch = Arch::sm(80);
const EPSILON: f32 = 1e-5;

/// How a token is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
enum Sampler {
    Sample,
    Argmax,
}

/// [`PersistentDecoder`] as the catalogue has it.
#[derive(Config)]
#[config(
    name = "persistent_decoder",
    doc = "the whole of many steps of decoding in one cooperative launch: a schedule in memory over these ops",
    examples(
        "activations=int8 heads=12 kv_heads=2 pairs=neox bias=true",
        "format=q8_0 embedding=q8_0 heads=16 kv_heads=8 pairs=neox head_norm=true assignment=queue",
        "format=f16 embedding=f16 head_dim=64 freq_factors=true sampler=argmax penalties=false",
        "format=q4_0+q5_k+bf16 heads=32 kv_heads=32 head_dim=96 cache=q8_0 splits=1"
    )
)]
pub(crate) struct PersistentDecoderFields {
    /// How the weights of matrices are stored: any of these.
    #[field(max = 8, default = "q4_k+q6_k")]
    format: Vec<WeightFormat>,
    /// How those of the embedding are.
    #[field(default = "q6_k")]
    embedding: WeightFormat,
    /// f32, or where weights are quants bytes.
    #[field(domain = Domain::OneOf(&["exact", "int8"]), default = "exact")]
    activations: Activations,
    /// The activation of the gate.
    #[field(default = "silu")]
    gate: Activation,
    /// Heads of the query.
    #[field(range = 1..=256, default = 32)]
    heads: u32,
    /// Heads of the cache, which divide those of the query.
    #[field(range = 1..=256, default = 8)]
    kv_heads: u32,
    /// Elements of a head.
    #[field(range = 32..=256, multiple_of = 8, default = 128)]
    head_dim: u32,
    /// Element type of the cache.
    #[field(default = "f16")]
    cache: CacheDtype,
    /// Which elements of a head turn together.
    #[field(default = "interleaved")]
    pairs: RopePairs,
    /// Whether a buffer divides each pair's frequency.
    #[field(default = false)]
    freq_factors: bool,
    /// Whether each head of q and k is normalised.
    #[field(default = false)]
    head_norm: bool,
    /// Whether q, k and v have a bias.
    #[field(default = false)]
    bias: bool,
    /// Parts of a sequence in attention.
    #[field(range = 1..=256, default = 8)]
    splits: u32,
    /// Whether tokens that came lately become less likely.
    #[field(default = true)]
    penalties: bool,
    /// How a token is chosen.
    #[field(default = "sample")]
    sampler: Sampler,
    /// How items come to blocks: by a list for each, or by a queue.
    #[field(default = "static")]
    assignment: Assignment,
    /// Warps of a block.
    #[field(domain = BLOCK_WARPS, default = 8)]
    warps: u32,
}

/// Ops in the making.
struct Ops {
    ops: Vec<Op>,
    /// Warps of the decoder's blocks.
    warps: u32,
}

impl Ops {
    /// What is called in place of launching the kernel, where it is not there yet.
    fn add(&mut self, kernel: impl AnyKernel + Send + Sync + 'static) -> Result<(), BuildError> {
        let kernel: Arc<dyn AnyKernel + Send + Sync> = Arc::new(kernel);
        for op in Op::of(&kernel, self.warps, TARGET)? {
            if !self.ops.contains(&op) {
                self.ops.push(op);
            }
        }
        Ok(())
    }
}

impl TryFrom<PersistentDecoderFields> for PersistentDecoder {
    type Error = BuildError;

    /// The decoder of a step: the embedding, layers, logits, a token.
    fn try_from(fields: PersistentDecoderFields) -> Result<Self, BuildError> {
        let PersistentDecoderFields { heads, kv_heads, head_dim, cache, warps, .. } = fields;
        let hidden = heads * head_dim;
        let mut ops = Ops { ops: Vec::new(), warps };

        ops.add(Embedding::new(fields.embedding, VOCABULARY, hidden))?;
        let int8 = fields.activations == Activations::Int8;
        if int8 {
            ops.add(RmsNorm { int8: true, output: None, ..RmsNorm::new(hidden, EPSILON) })?;
            if fields.format.iter().any(|format| format.is_float()) {
                ops.add(RmsNorm { int8: true, ..RmsNorm::new(hidden, EPSILON) })?;
            }
        }
        for &format in &fields.format {
            let product = |n: u32, k: u32| QuantGemv::new(format, n, k);
            // Of normalised activations: of the layer, the logits; gate and up.
            let mut normed = |gemv: QuantGemv| match (int8, format.is_float()) {
                (true, false) => ops.add(QuantGemv { activations: Activations::Int8, ..gemv }),
                (true, true) => ops.add(gemv),
                (false, _) => ops.add(QuantGemv { epsilon: Some(EPSILON), ..gemv }),
            };
            normed(product(hidden, hidden))?;
            if fields.bias {
                let matrix = Matrix { bias: true, ..Matrix::new(format, hidden) };
                normed(QuantGemv { matrices: vec![matrix], ..product(hidden, hidden) })?;
            }
            let gate = Matrix::new(format, 4 * hidden);
            normed(QuantGemv {
                matrices: vec![gate; 2],
                gate: Some(fields.gate),
                ..product(4 * hidden, hidden)
            })?;
            // Onto the residual stream: what attention and the feed-forward network give.
            let matrix = Matrix { residual: true, ..Matrix::new(format, hidden) };
            let activations =
                if int8 && !format.is_float() { Activations::Rounded } else { Activations::Exact };
            ops.add(QuantGemv { matrices: vec![matrix], activations, ..product(hidden, 4 * hidden) })?;
        }

        ops.add(Rope {
            pairs: fields.pairs,
            freq_factors: fields.freq_factors,
            norm: fields.head_norm.then_some(EPSILON),
            cache,
            ..Rope::new(heads, kv_heads, head_dim, MAX_SEQ_LEN)
        })?;
        let attention = IncrementalAttention::new(heads, kv_heads, head_dim, MAX_SEQ_LEN);
        let splits = fields.splits;
        ops.add(IncrementalAttention { cache, lengths_in_memory: true, splits, ..attention })?;

        if fields.penalties {
            let (repeat, frequency, presence) = (Setting::Buffer, Setting::Buffer, Setting::Buffer);
            let penalties = Penalties::new(VOCABULARY, 64);
            ops.add(Penalties { repeat, frequency, presence, remembers: true, ..penalties })?;
        }
        match fields.sampler {
            Sampler::Argmax => ops.add(Argmax::new(VOCABULARY))?,
            Sampler::Sample => ops.add(Sample {
                temperature: Setting::Buffer,
                top_k: Setting::Buffer,
                top_p: Setting::Buffer,
                min_p: Setting::Buffer,
                ..Sample::new(VOCABULARY)
            })?,
        }
        ops.add(Advance::new(3))?;
        ops.add(CopyBytes::new(4))?;
        ops.add(Publish::new(1024, 2))?;
        Ok(PersistentDecoder { ops: ops.ops, warps, assignment: fields.assignment })
    }
}
