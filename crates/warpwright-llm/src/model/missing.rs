//! Unsupported parts of models.

use super::spec::{
    Factors, GatedActivation, HeadNorms, LayerSpec, Mixer, ModelSpec, Network, NormKind, Rotary,
};
use std::fmt;

/// The most elements of a head that kernels of attention take.
const MAX_HEAD_DIM: u32 = 256;

macro_rules! blocks {
    ($($name:ident: $text:literal, $doc:literal;)*) => {
        /// A block that models have and that is not computed yet.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Block {
            $(#[doc = $doc] $name,)*
        }

        impl fmt::Display for Block {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Block::$name => $text,)* })
            }
        }
    };
}

blocks! {
    Bidirectional: "attention to later tokens", "Attention to later tokens.";
    Windows: "attention with windows that differ by layer", "Windows in some layers, or of different lengths.";
    Sinks: "attention with sinks", "Scores that take part in the softmax without a value.";
    ScoreCap: "attention with a soft cap of scores", "A soft cap of scores.";
    LongHeads: "heads of more than 256 elements", "Longer heads than kernels take.";
    WholeHeadNorms: "norms of all heads as one row", "Norms of all heads of queries, and of keys, as one row.";
    ValueNorms: "norms of values", "Norms of values.";
    KeysAsValues: "keys that are the values too", "Products of keys that are the values too.";
    AttentionGate: "attention with a gate on its result", "A gate on the result of attention.";
    SharedCache: "layers that share a cache", "Layers that see the cache of another layer.";
    FusedProjections: "one matrix for queries, keys and values", "One matrix for queries, keys and values.";
    Unrotated: "layers whose heads do not turn", "Layers whose heads do not turn.";
    Rotations: "rotations that differ by layer", "Different rotations in different layers.";
    RotarySections: "rotations by positions of several coordinates", "Positions of several coordinates.";
    ContextFactors: "rotations with factors by the length of the context", "Factors of frequencies that depend on the length of the context.";
    LatentAttention: "latent attention", "Multi-head latent attention.";
    Mamba2: "Mamba 2", "Mamba 2.";
    DeltaNet: "gated delta nets", "Gated delta nets.";
    ShortConvolution: "short convolutions", "Gated convolutions.";
    LayerNorm: "norms with a mean", "Norms with a mean.";
    NormsAfter: "norms behind blocks", "Blocks with a norm behind them, or none before.";
    ParallelResiduals: "attention and network side by side", "Attention and network side by side.";
    ResidualScale: "scaled residuals", "Residuals that are scaled.";
    OutputScale: "layers with a scaled result", "Layers whose result is scaled.";
    Experts: "a mixture of experts", "Mixtures of experts.";
    UngatedNetwork: "feed-forward networks without a gate", "Networks without a gate.";
    ClampedActivation: "a gate with limits", "A gate with limits.";
    FusedGate: "one matrix for gate and up", "One matrix for gate and up.";
    UnequalLayers: "layers of different sizes", "Layers of different sizes.";
    EmbeddingScale: "scaled embeddings", "Embeddings that are scaled.";
    LayerEmbeddings: "embeddings for each layer", "Embeddings for each layer.";
    LogitScale: "scaled logits", "Logits that are scaled.";
    LogitCap: "logits with a soft cap", "A soft cap of logits.";
    PredictingLayers: "layers that predict several tokens", "Layers that predict several tokens.";
}

impl ModelSpec {
    /// The unsupported blocks of the model, each once; none if the model runs.
    ///
    /// A window that all layers have does not count: the context is limited to it.
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
                        (own.head_dim > MAX_HEAD_DIM, Block::LongHeads),
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
