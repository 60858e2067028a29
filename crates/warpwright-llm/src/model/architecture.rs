//! The architectures as declarations: how their layers consist of the blocks of [`ModelSpec`], and the names of their
//! parameters in files.
//!
//! Keys and names of tensors are those that llama.cpp reads.
//!
//! [`ModelSpec`]: super::ModelSpec

use super::error::ModelError;
use super::spec::{Around, Factors, GatedActivation, Gating, HeadNorms, NormKind};
use std::fmt;
use warpwright_kernels::{Activation, RopePairs};

/// The declaration of an architecture.
///
/// Every row begins with that of `llama` and states the differences. A key that a row does not use must be missing, or
/// have a value that changes nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Architecture {
    /// Its name in `general.architecture`, which is also the prefix of its parameters' keys.
    pub name: &'static str,
    pub(super) norm: NormKind,
    pub(super) mixer_norms: Around,
    pub(super) network_norms: Around,
    pub(super) output_norm: &'static str,
    pub(super) parallel: bool,
    /// Which elements of a head turn together, in the order that files of this architecture store rows of q and k.
    pub(super) pairs: RopePairs,
    pub(super) rotated: Rotated,
    pub(super) factors: Factors,
    /// Whether positions have several coordinates, by `rope.dimension_sections`.
    pub(super) sections: Option<Sections>,
    pub(super) windows: Windows,
    pub(super) head_norms: HeadNorms,
    pub(super) value_norms: bool,
    pub(super) keys_as_values: bool,
    pub(super) score_scale: ScoreScale,
    /// The cap of scores where `attn_logit_softcapping` is missing; without it the key is not read.
    pub(super) score_cap: Option<f32>,
    pub(super) sinks: bool,
    pub(super) gated_attention: bool,
    pub(super) fused_projections: bool,
    /// Whether `attention.shared_kv_layers` of the last layers see the cache of earlier ones.
    pub(super) shared_cache: bool,
    pub(super) latent: bool,
    pub(super) recurrent: Option<Recurrent>,
    pub(super) activation: GatedActivation,
    pub(super) fused_gate: bool,
    pub(super) experts: Option<Experts>,
    pub(super) embedding_scale: EmbeddingScale,
    /// Whether `residual_scale` is read.
    pub(super) residual_scale: bool,
    pub(super) output_scale: bool,
    /// Whether `embedding_length_per_layer_input` is read.
    pub(super) layer_embedding: bool,
    pub(super) logit_scale: LogitScale,
    pub(super) logit_cap: LogitCap,
    /// Whether `nextn_predict_layers` of the layers come behind the others.
    pub(super) predicting_layers: bool,
}

/// Which layers have heads that turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rotated {
    All,
    /// All but each layer of so many that is the last of them.
    ExceptEvery(u32),
    /// Those with a window; all where there are no windows.
    Windowed,
    /// All or none, as `rope.scaling.finetuned` says.
    Finetuned,
}

/// Whether `rope.dimension_sections` must be there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Sections {
    Optional,
    Required,
}

/// Which layers have the window of `attention.sliding_window`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Windows {
    /// All, where the key is there.
    All,
    /// As `attention.sliding_window_pattern` says, which lists layers, or has a number: of so many layers, the last one
    /// sees all tokens.
    Alternating {
        /// The pattern where the key is missing; without it the key must be there.
        period: Option<u32>,
        length: Length,
        local: Local,
    },
}

/// The length of windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Length {
    /// Without the key, or where it is 0, there are no windows.
    Optional,
    Required,
    Default(u32),
}

/// How layers with a window differ from the others besides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Local {
    /// The base of their rotations where `rope.freq_base_swa` is missing; without it, that of the others.
    pub(super) base: Option<f32>,
    /// Whether their rotations are scaled as those of the others.
    pub(super) scaled: bool,
    /// Whether they have factors of frequencies.
    pub(super) factors: bool,
    /// Whether `attention.key_length_swa` and `attention.value_length_swa` are the lengths of their heads, and
    /// `rope.dimension_count_swa` is what turns.
    pub(super) lengths: bool,
}

/// What scores are multiplied by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ScoreScale {
    /// `1 / √head_dim`.
    Head,
    /// `attention.scale`; `1 / √head_dim` where it is 0 or missing.
    Parameter,
    /// `1 / √(hidden / heads)` in models of so many layers, `1 / √head_dim` in the others.
    HiddenWithLayers(u32),
    One,
}

/// Layers with something else than attention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Recurrent {
    /// Mamba 2, in layers without heads of keys and values.
    Mamba2,
    /// A short convolution, in layers without heads of keys and values.
    ShortConvolution,
    /// A gated delta net, in the layers that `attention.recurrent_layers` lists, or in all but each
    /// `full_attention_interval`-th, 4 where that is missing.
    DeltaNet,
}

/// Mixtures of experts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Experts {
    /// Whether models must have them; others have them where `expert_count` says so.
    pub(super) required: bool,
    pub(super) width: ExpertWidth,
    pub(super) gating: Gating,
    /// Whether `expert_gating_func`, `expert_weights_norm` and `expert_weights_scale` are read.
    pub(super) parameters: bool,
    pub(super) normalized: bool,
    pub(super) biases: bool,
    pub(super) choice_bias: bool,
    pub(super) norms: bool,
    pub(super) shared: Shared,
    /// Whether the first `leading_dense_block_count` layers have one network.
    pub(super) leading_dense: bool,
}

/// The width of an expert.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ExpertWidth {
    /// `feed_forward_length`.
    FeedForward,
    /// `expert_feed_forward_length`.
    Own,
    /// The same; where it is missing, `feed_forward_length` divided by how many are taken.
    OwnOrPart,
}

/// The expert that every token takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shared {
    None,
    /// As wide as `expert_shared_feed_forward_length` says, if it does.
    Optional,
    /// The same, or as wide as `feed_forward_length`, and with a gate.
    Gated,
    /// As wide as `expert_shared_count` experts.
    Count,
    /// The network of layers without experts, beside the experts.
    Network,
}

/// What embeddings are multiplied by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum EmbeddingScale {
    One,
    RootOfHidden,
    /// `embedding_scale`.
    Parameter,
}

/// What becomes of logits by `logit_scale`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LogitScale {
    None,
    Multiplied,
    Divided,
    /// The same, where the key is there.
    MaybeDivided,
}

/// The cap of logits, `final_logit_softcapping`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LogitCap {
    None,
    /// Where the key is there.
    Optional,
    /// So much where it is missing.
    Default(f32),
}

const fn around(before: Option<&'static str>, after: Option<&'static str>) -> Around {
    Around { before, after }
}

const BOTH: [Around; 2] =
    [around(Some("attn_norm"), Some("post_attention_norm")), around(Some("ffn_norm"), Some("post_ffw_norm"))];
const AFTER: [Around; 2] = [around(None, Some("post_attention_norm")), around(None, Some("post_ffw_norm"))];

const EXPERTS: Experts = Experts {
    required: true,
    width: ExpertWidth::OwnOrPart,
    gating: Gating::Softmax,
    parameters: false,
    normalized: true,
    biases: false,
    choice_bias: false,
    norms: false,
    shared: Shared::None,
    leading_dense: false,
};

const SAME: Local = Local { base: None, scaled: true, factors: true, lengths: false };

/// Llama 1 to 3.x, Mistral, Mixtral, and others that were converted to it.
const LLAMA: Architecture = Architecture {
    name: "llama",
    norm: NormKind::Rms,
    mixer_norms: around(Some("attn_norm"), None),
    network_norms: around(Some("ffn_norm"), None),
    output_norm: "output_norm",
    parallel: false,
    pairs: RopePairs::Interleaved,
    rotated: Rotated::All,
    factors: Factors::Optional,
    sections: None,
    windows: Windows::All,
    head_norms: HeadNorms::None,
    value_norms: false,
    keys_as_values: false,
    score_scale: ScoreScale::Head,
    score_cap: None,
    sinks: false,
    gated_attention: false,
    fused_projections: false,
    shared_cache: false,
    latent: false,
    recurrent: None,
    activation: GatedActivation::Gated(Activation::Silu),
    fused_gate: false,
    experts: Some(Experts { required: false, width: ExpertWidth::FeedForward, ..EXPERTS }),
    embedding_scale: EmbeddingScale::One,
    residual_scale: false,
    output_scale: false,
    layer_embedding: false,
    logit_scale: LogitScale::None,
    logit_cap: LogitCap::None,
    predicting_layers: false,
};

/// Qwen1.5, Qwen2, Qwen2.5: with biases of q, k and v.
const QWEN2: Architecture = Architecture { name: "qwen2", pairs: RopePairs::Neox, experts: None, ..LLAMA };

const QWEN3: Architecture = Architecture { name: "qwen3", head_norms: HeadNorms::Each, ..QWEN2 };

/// Qwen3.5, with its parts of Qwen3-Next.
const QWEN35: Architecture = Architecture {
    name: "qwen35",
    network_norms: around(Some("post_attention_norm"), None),
    sections: Some(Sections::Required),
    gated_attention: true,
    recurrent: Some(Recurrent::DeltaNet),
    predicting_layers: true,
    factors: Factors::None,
    ..QWEN3
};

const GEMMA2: Architecture = Architecture {
    name: "gemma2",
    mixer_norms: BOTH[0],
    network_norms: BOTH[1],
    pairs: RopePairs::Neox,
    factors: Factors::None,
    windows: Windows::Alternating { period: Some(2), length: Length::Default(4096), local: SAME },
    score_scale: ScoreScale::HiddenWithLayers(46),
    score_cap: Some(50.0),
    activation: GatedActivation::Gated(Activation::GeluTanh),
    experts: None,
    embedding_scale: EmbeddingScale::RootOfHidden,
    logit_cap: LogitCap::Default(30.0),
    ..LLAMA
};

const GEMMA3: Architecture = Architecture {
    name: "gemma3",
    windows: Windows::Alternating {
        period: Some(6),
        length: Length::Optional,
        local: Local { base: Some(1e4), scaled: false, ..SAME },
    },
    head_norms: HeadNorms::Each,
    score_scale: ScoreScale::HiddenWithLayers(62),
    score_cap: None,
    logit_cap: LogitCap::Optional,
    ..GEMMA2
};

const GRANITE: Architecture = Architecture {
    name: "granite",
    rotated: Rotated::Finetuned,
    score_scale: ScoreScale::Parameter,
    experts: Some(Experts {
        required: false,
        width: ExpertWidth::FeedForward,
        shared: Shared::Optional,
        ..EXPERTS
    }),
    embedding_scale: EmbeddingScale::Parameter,
    residual_scale: true,
    logit_scale: LogitScale::Divided,
    ..LLAMA
};

impl Architecture {
    /// The known architectures. [`ModelSpec::missing`](super::ModelSpec::missing) tells which models of them run.
    pub const ALL: &'static [Architecture] = &[
        LLAMA,
        QWEN2,
        QWEN3,
        Architecture {
            name: "qwen2moe",
            experts: Some(Experts { normalized: false, shared: Shared::Gated, ..EXPERTS }),
            factors: Factors::None,
            ..QWEN2
        },
        Architecture { name: "qwen3moe", experts: Some(EXPERTS), factors: Factors::None, ..QWEN3 },
        QWEN35,
        Architecture {
            name: "qwen35moe",
            experts: Some(Experts { shared: Shared::Gated, ..EXPERTS }),
            ..QWEN35
        },
        GEMMA2,
        GEMMA3,
        Architecture {
            name: "gemma4",
            factors: Factors::Required,
            windows: Windows::Alternating {
                period: None,
                length: Length::Required,
                local: Local { base: Some(1e4), scaled: false, factors: false, lengths: true },
            },
            value_norms: true,
            keys_as_values: true,
            score_scale: ScoreScale::One,
            shared_cache: true,
            experts: Some(Experts {
                required: false,
                width: ExpertWidth::Own,
                norms: true,
                shared: Shared::Network,
                ..EXPERTS
            }),
            output_scale: true,
            layer_embedding: true,
            logit_cap: LogitCap::Default(30.0),
            ..GEMMA3
        },
        Architecture {
            name: "phi3",
            pairs: RopePairs::Neox,
            factors: Factors::ByContext,
            fused_projections: true,
            fused_gate: true,
            experts: None,
            ..LLAMA
        },
        Architecture {
            name: "gpt-oss",
            network_norms: around(Some("post_attention_norm"), None),
            pairs: RopePairs::Neox,
            factors: Factors::None,
            windows: Windows::Alternating { period: Some(2), length: Length::Required, local: SAME },
            sinks: true,
            activation: GatedActivation::Clamped { alpha: 1.702, limit: 7.0 },
            experts: Some(Experts {
                width: ExpertWidth::Own,
                gating: Gating::ChosenSoftmax,
                normalized: false,
                biases: true,
                ..EXPERTS
            }),
            ..LLAMA
        },
        GRANITE,
        Architecture { name: "granitemoe", ..GRANITE },
        Architecture {
            name: "granitehybrid",
            recurrent: Some(Recurrent::Mamba2),
            logit_scale: LogitScale::MaybeDivided,
            ..GRANITE
        },
        Architecture {
            name: "glm4",
            mixer_norms: BOTH[0],
            network_norms: BOTH[1],
            factors: Factors::None,
            sections: Some(Sections::Optional),
            fused_gate: true,
            experts: None,
            predicting_layers: true,
            ..LLAMA
        },
        // OLMo 2 and 3. Windows came with the latter, whose rotations are scaled in layers without one.
        Architecture {
            name: "olmo2",
            mixer_norms: AFTER[0],
            network_norms: AFTER[1],
            pairs: RopePairs::Neox,
            factors: Factors::None,
            windows: Windows::Alternating {
                period: Some(4),
                length: Length::Optional,
                local: Local { scaled: false, ..SAME },
            },
            head_norms: HeadNorms::Whole,
            experts: None,
            ..LLAMA
        },
        Architecture {
            name: "exaone4",
            mixer_norms: AFTER[0],
            network_norms: AFTER[1],
            pairs: RopePairs::Neox,
            rotated: Rotated::Windowed,
            windows: Windows::Alternating { period: Some(4), length: Length::Optional, local: SAME },
            head_norms: HeadNorms::Each,
            experts: None,
            predicting_layers: true,
            ..LLAMA
        },
        Architecture {
            name: "lfm2",
            output_norm: "token_embd_norm",
            pairs: RopePairs::Neox,
            factors: Factors::None,
            head_norms: HeadNorms::Each,
            recurrent: Some(Recurrent::ShortConvolution),
            experts: None,
            ..LLAMA
        },
        Architecture {
            name: "deepseek2",
            factors: Factors::None,
            latent: true,
            experts: Some(Experts {
                width: ExpertWidth::Own,
                parameters: true,
                normalized: false,
                choice_bias: true,
                shared: Shared::Count,
                leading_dense: true,
                ..EXPERTS
            }),
            ..LLAMA
        },
        Architecture {
            name: "smollm3",
            rotated: Rotated::ExceptEvery(4),
            factors: Factors::None,
            experts: None,
            ..LLAMA
        },
        Architecture {
            name: "command-r",
            norm: NormKind::Layer,
            network_norms: around(None, None),
            parallel: true,
            factors: Factors::None,
            experts: None,
            logit_scale: LogitScale::Multiplied,
            ..LLAMA
        },
        Architecture {
            name: "starcoder2",
            norm: NormKind::LayerBias,
            pairs: RopePairs::Neox,
            factors: Factors::None,
            activation: GatedActivation::Plain(Activation::GeluTanh),
            experts: None,
            ..LLAMA
        },
    ];

    /// The architecture of that name.
    ///
    /// # Errors
    ///
    /// [`ModelError::Architecture`], which lists the known ones.
    pub fn named(name: &str) -> Result<&'static Architecture, ModelError> {
        let found = Self::ALL.iter().find(|architecture| architecture.name == name);
        found.ok_or_else(|| ModelError::Architecture {
            name: name.into(),
            known: Self::ALL.iter().map(|architecture| architecture.name).collect::<Vec<_>>().join(", "),
        })
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
