//! Unsupported parts of models.

use super::spec::{
    Factors, GatedActivation, HeadNorms, LayerSpec, Mixer, ModelSpec, Network, NormKind, Rotary,
};
use std::fmt;

/// The longest head that the attention kernels take.
const MAX_HEAD_DIM: u32 = 256;

macro_rules! blocks {
    ($($name:ident: $text:literal;)*) => {
        /// A block that models have and that is not implemented yet.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Block {
            $(#[doc = concat!("Needs ", $text, ".")] $name,)*
        }

        impl fmt::Display for Block {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Block::$name => $text,)* })
            }
        }
    };
}

blocks! {
    Bidirectional: "bidirectional attention";
    Windows: "attention windows that differ by layer";
    Sinks: "attention sinks";
    ScoreCap: "a soft cap of attention scores";
    LongHeads: "heads of more than 256 elements";
    WholeHeadNorms: "norms of all heads as one row";
    ValueNorms: "norms of values";
    KeysAsValues: "keys that are also the values";
    AttentionGate: "a gate on the output of attention";
    SharedCache: "layers that share a cache";
    FusedProjections: "one matrix for q, k and v";
    Unrotated: "layers without RoPE";
    Rotations: "RoPE that differs by layer";
    RotarySections: "multi-dimensional RoPE positions";
    ContextFactors: "RoPE factors that depend on the context length";
    LatentAttention: "latent attention";
    Mamba2: "Mamba 2";
    DeltaNet: "gated delta nets";
    ShortConvolution: "short convolutions";
    LayerNorm: "LayerNorm";
    NormsAfter: "norms after blocks";
    ParallelResiduals: "attention and feed-forward network in parallel";
    ResidualScale: "scaled residuals";
    OutputScale: "scaled layer outputs";
    Experts: "a mixture of experts";
    UngatedNetwork: "feed-forward networks without a gate";
    ClampedActivation: "a clamped gate";
    FusedGate: "one matrix for gate and up";
    UnequalLayers: "layers of different sizes";
    EmbeddingScale: "scaled embeddings";
    LayerEmbeddings: "embeddings per layer";
    LogitScale: "scaled logits";
    LogitCap: "a soft cap of logits";
    PredictingLayers: "layers that predict further tokens";
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
                    let differs = rotary.zip(other.rotary).is_some_and(|(own, other)| differ(own, other));
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
                        (differs, Block::Rotations),
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

/// Whether two rotations differ in more than the head length, which [`Block::UnequalLayers`] reports.
fn differ(own: Rotary, other: Rotary) -> bool {
    let mut params = other.params;
    if params.head_dim != own.params.head_dim {
        (params.head_dim, params.rotary_dim) = (own.params.head_dim, own.params.rotary_dim);
    }
    own != Rotary { params, ..other }
}
