//! What of a model is not computed yet.

use super::spec::{
    Factors, GatedActivation, HeadNorms, LayerSpec, Mixer, ModelSpec, Network, NormKind, Rotary,
};
use std::fmt;

/// The most elements of a head that kernels of attention take.
const MOST_HEAD_DIM: u32 = 256;

/// A block that models have and that is not computed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Block {
    /// Attention to later tokens.
    Bidirectional,
    /// Windows in some layers, or of different lengths.
    Windows,
    /// Scores that take part in the softmax without a value.
    Sinks,
    /// A soft cap of scores.
    ScoreCap,
    /// Longer heads than kernels take.
    LongHeads,
    /// Norms of all heads of queries, and of keys, as one row.
    WholeHeadNorms,
    /// Norms of values.
    ValueNorms,
    /// Products of keys that are the values too.
    KeysAsValues,
    /// A gate on the result of attention.
    AttentionGate,
    /// Layers that see the cache of another layer.
    SharedCache,
    /// One matrix for queries, keys and values.
    FusedProjections,
    /// Layers whose heads do not turn.
    Unrotated,
    /// Different rotations in different layers.
    Rotations,
    /// Positions of several coordinates.
    RotarySections,
    /// Factors of frequencies that depend on the length of the context.
    ContextFactors,
    /// Multi-head latent attention.
    LatentAttention,
    /// Mamba 2.
    Mamba2,
    /// Gated delta nets.
    DeltaNet,
    /// Gated convolutions.
    ShortConvolution,
    /// Norms with a mean.
    LayerNorm,
    /// Blocks with a norm behind them, or none before.
    NormsAfter,
    /// Attention and network side by side.
    ParallelResiduals,
    /// Residuals that are scaled.
    ResidualScale,
    /// Layers whose result is scaled.
    OutputScale,
    /// Mixtures of experts.
    Experts,
    /// Networks without a gate.
    UngatedNetwork,
    /// A gate with limits.
    ClampedActivation,
    /// One matrix for gate and up.
    FusedGate,
    /// Layers of different sizes.
    UnequalLayers,
    /// Embeddings that are scaled.
    EmbeddingScale,
    /// Embeddings for each layer.
    LayerEmbeddings,
    /// Logits that are scaled.
    LogitScale,
    /// A soft cap of logits.
    LogitCap,
    /// Layers that predict several tokens.
    PredictingLayers,
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Block::Bidirectional => "attention to later tokens",
            Block::Windows => "attention with windows that differ by layer",
            Block::Sinks => "attention with sinks",
            Block::ScoreCap => "attention with a soft cap of scores",
            Block::LongHeads => "heads of more than 256 elements",
            Block::WholeHeadNorms => "norms of all heads as one row",
            Block::ValueNorms => "norms of values",
            Block::KeysAsValues => "keys that are the values too",
            Block::AttentionGate => "attention with a gate on its result",
            Block::SharedCache => "layers that share a cache",
            Block::FusedProjections => "one matrix for queries, keys and values",
            Block::Unrotated => "layers whose heads do not turn",
            Block::Rotations => "rotations that differ by layer",
            Block::RotarySections => "rotations by positions of several coordinates",
            Block::ContextFactors => "rotations with factors by the length of the context",
            Block::LatentAttention => "latent attention",
            Block::Mamba2 => "Mamba 2",
            Block::DeltaNet => "gated delta nets",
            Block::ShortConvolution => "short convolutions",
            Block::LayerNorm => "norms with a mean",
            Block::NormsAfter => "norms behind blocks",
            Block::ParallelResiduals => "attention and network side by side",
            Block::ResidualScale => "scaled residuals",
            Block::OutputScale => "layers with a scaled result",
            Block::Experts => "a mixture of experts",
            Block::UngatedNetwork => "feed-forward networks without a gate",
            Block::ClampedActivation => "a gate with limits",
            Block::FusedGate => "one matrix for gate and up",
            Block::UnequalLayers => "layers of different sizes",
            Block::EmbeddingScale => "scaled embeddings",
            Block::LayerEmbeddings => "embeddings for each layer",
            Block::LogitScale => "scaled logits",
            Block::LogitCap => "logits with a soft cap",
            Block::PredictingLayers => "layers that predict several tokens",
        })
    }
}

impl ModelSpec {
    /// The blocks of the model that are not computed yet, each once: none where the model runs.
    ///
    /// A window that all layers have is no such block: contexts end where it would begin to matter.
    pub fn missing(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut all = |is_there: &[(bool, Block)]| {
            blocks.extend(is_there.iter().filter(|(is_there, _)| *is_there).map(|&(_, block)| block));
        };
        let attention = |layer: &LayerSpec| match &layer.mixer {
            Mixer::Attention(attention) => Some(attention.clone()),
            _ => None,
        };
        let first = self.layers.first();
        for layer in &self.layers {
            match &layer.mixer {
                Mixer::Latent(_) => all(&[(true, Block::LatentAttention)]),
                Mixer::Mamba2(_) => all(&[(true, Block::Mamba2)]),
                Mixer::DeltaNet(_) => all(&[(true, Block::DeltaNet)]),
                Mixer::ShortConvolution { .. } => all(&[(true, Block::ShortConvolution)]),
                Mixer::Attention(own) => {
                    let rotary = own.rotary;
                    let other = first.and_then(attention).unwrap_or_else(|| own.clone());
                    let turns_otherwise =
                        rotary.zip(other.rotary).is_some_and(|(own, other)| turn_otherwise(own, other));
                    all(&[
                        (!own.mask.causal, Block::Bidirectional),
                        (own.mask.window != other.mask.window, Block::Windows),
                        (own.sinks, Block::Sinks),
                        (own.score_cap.is_some(), Block::ScoreCap),
                        (own.head_dim > MOST_HEAD_DIM, Block::LongHeads),
                        (own.head_norms == HeadNorms::Whole, Block::WholeHeadNorms),
                        (own.value_norms, Block::ValueNorms),
                        (own.keys_as_values, Block::KeysAsValues),
                        (own.gated, Block::AttentionGate),
                        (own.shares.is_some(), Block::SharedCache),
                        (own.fused, Block::FusedProjections),
                        (rotary.is_none(), Block::Unrotated),
                        (turns_otherwise, Block::Rotations),
                        (rotary.is_some_and(|rotary| rotary.sections.is_some()), Block::RotarySections),
                        (
                            rotary.is_some_and(|rotary| rotary.factors == Factors::ByContext),
                            Block::ContextFactors,
                        ),
                    ]);
                }
            }
            match layer.network {
                Network::Experts(_) => all(&[(true, Block::Experts)]),
                Network::Dense(_) => {}
            }
            let (activation, fused) = match layer.network {
                Network::Dense(dense) => (dense.activation, dense.fused),
                Network::Experts(experts) => (experts.activation, false),
            };
            let norms = [layer.mixer_norms, layer.network_norms];
            all(&[
                (!activation.is_gated(), Block::UngatedNetwork),
                (matches!(activation, GatedActivation::Clamped { .. }), Block::ClampedActivation),
                (fused, Block::FusedGate),
                (norms.iter().any(|norms| norms.after.is_some()), Block::NormsAfter),
                (!layer.parallel && norms.iter().any(|norms| norms.before.is_none()), Block::NormsAfter),
                (layer.parallel, Block::ParallelResiduals),
                (layer.residual_scale != 1.0, Block::ResidualScale),
                (layer.output_scale, Block::OutputScale),
            ]);
        }
        all(&[
            (self.unequal(), Block::UnequalLayers),
            (self.norm.kind != NormKind::Rms, Block::LayerNorm),
            (self.embedding_scale != 1.0, Block::EmbeddingScale),
            (self.layer_embedding.is_some(), Block::LayerEmbeddings),
            (self.logit_scale != 1.0, Block::LogitScale),
            (self.logit_cap.is_some(), Block::LogitCap),
            (self.predicting_layers > 0, Block::PredictingLayers),
        ]);
        blocks.sort_unstable();
        blocks.dedup();
        blocks
    }

    /// Whether layers of one kind have different sizes.
    fn unequal(&self) -> bool {
        let differ = |sizes: Vec<[u32; 3]>| sizes.windows(2).any(|pair| pair[0] != pair[1]);
        let heads = self.layers.iter().filter_map(|layer| match &layer.mixer {
            Mixer::Attention(own) => Some([own.heads, own.kv_heads, own.head_dim]),
            _ => None,
        });
        let widths = self.layers.iter().filter_map(|layer| match layer.network {
            Network::Dense(dense) => Some([dense.width, 0, 0]),
            Network::Experts(_) => None,
        });
        differ(heads.collect()) || differ(widths.collect())
    }
}

/// Whether two rotations differ in more than the length of heads, of which sizes say enough.
fn turn_otherwise(own: Rotary, other: Rotary) -> bool {
    let mut params = other.params;
    if params.head_dim != own.params.head_dim {
        (params.head_dim, params.rotary_dim) = (own.params.head_dim, own.params.rotary_dim);
    }
    own != Rotary { params, ..other }
}
