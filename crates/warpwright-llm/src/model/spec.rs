//! What a model is: its layers, one by one, as data. Nothing below this knows the name of an architecture.
//!
//! ```text
//!  Architecture (a row of a table) ─┐
//!  metadata of a file ──────────────┴─► ModelSpec ─┬─► missing blocks   (missing.rs)
//!                                                  ├─► tensors, shapes  (tensors.rs)
//!                                                  └─► graphs           (graph.rs)
//! ```

use warpwright_graph::{RopeParams, SequenceState};
use warpwright_kernels::{Activation, CacheDtype};

/// A model: what is around its layers, and the layers.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSpec {
    /// Elements of the vector that stands for a token between layers.
    pub hidden: u32,
    /// Tokens of the vocabulary: rows of the table of embeddings.
    pub vocab: u32,
    /// The longest sequence of the training.
    pub context_length: u32,
    /// What embeddings are multiplied by.
    pub embedding_scale: f32,
    /// Elements that each layer has for each token in a second table of embeddings.
    pub layer_embedding: Option<u32>,
    /// The norm before the logits: the name of its tensor.
    pub output_norm: &'static str,
    /// What logits are multiplied by.
    pub logit_scale: f32,
    /// `c` where logits become `c · tanh(logits / c)`.
    pub logit_cap: Option<f32>,
    /// Whether logits may be products with the table of embeddings: they are where the file has no other matrix.
    pub tied: bool,
    /// Layers behind the others that predict more tokens.
    pub predicting_layers: u32,
    /// The norms of the model.
    pub norm: Norm,
    /// The layers, in their order.
    pub layers: Vec<LayerSpec>,
}

/// A layer: `x + mixer(x)`, then that plus its feed-forward network.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerSpec {
    /// What lets a token see others.
    pub mixer: Mixer,
    /// The norms around it.
    pub mixer_norms: Around,
    /// The feed-forward network.
    pub network: Network,
    /// The norms around it.
    pub network_norms: Around,
    /// Whether both have the same input and their sum is added: the network has no norm of its own then.
    pub parallel: bool,
    /// What both are multiplied by before they are added.
    pub residual_scale: f32,
    /// Whether the layer's result is multiplied by a number of the file, where that has one: `layer_output_scale`.
    pub output_scale: bool,
}

/// A norm of rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norm {
    /// What is computed.
    pub kind: NormKind,
    /// What is added to the mean square, or to the variance.
    pub epsilon: f32,
}

/// What a norm computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormKind {
    /// `x / √mean(x²)`, times weights.
    Rms,
    /// `(x - mean) / √variance`, times weights.
    Layer,
    /// The same, plus a bias.
    LayerBias,
}

/// The norms around a block: names of their tensors in a layer, where they are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Around {
    /// Before the block.
    pub before: Option<&'static str>,
    /// Behind it, before its result is added.
    pub after: Option<&'static str>,
}

/// What lets a token see others.
#[derive(Clone, Debug, PartialEq)]
pub enum Mixer {
    /// Attention over keys and values.
    Attention(AttentionSpec),
    /// Attention over keys and values that are products with a short vector: multi-head latent attention.
    Latent(LatentSpec),
    /// Mamba 2, a recurrence.
    Mamba2(RecurrenceSpec),
    /// A gated delta net: linear attention whose state forgets.
    DeltaNet(RecurrenceSpec),
    /// A gated convolution over so many tokens.
    ShortConvolution {
        /// Tokens that it sees.
        tokens: u32,
    },
}

/// Which tokens a token sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mask {
    /// No later ones.
    pub causal: bool,
    /// So many, itself among them.
    pub window: Option<u32>,
}

/// Attention over keys and values.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionSpec {
    /// Heads of queries.
    pub heads: u32,
    /// Heads of keys and values, a divisor of them.
    pub kv_heads: u32,
    /// Elements of a head.
    pub head_dim: u32,
    /// Which tokens are seen.
    pub mask: Mask,
    /// What `q · k` is multiplied by.
    pub scale: f32,
    /// `c` where scores become `c · tanh(score / c)`.
    pub score_cap: Option<f32>,
    /// Whether each head has a score that takes part in the softmax and has no value: `attn_sinks`.
    pub sinks: bool,
    /// Norms of queries and keys, before they turn.
    pub head_norms: HeadNorms,
    /// Whether values have a norm of heads, without weights.
    pub value_norms: bool,
    /// How queries and keys turn, if they do.
    pub rotary: Option<Rotary>,
    /// Whether products for queries, keys and values are one matrix: `attn_qkv`.
    pub fused: bool,
    /// Whether `attn_q` has a gate behind each head of queries: its sigmoid is multiplied with the head's result.
    pub gated: bool,
    /// Whether products of keys are the values too, where the file has no `attn_v`.
    pub keys_as_values: bool,
    /// The earlier layer whose keys and values are seen instead of own ones.
    pub shares: Option<u32>,
}

/// Norms of queries and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadNorms {
    /// None.
    None,
    /// Of each head, all with the same weights.
    Each,
    /// Of all heads as one row.
    Whole,
}

/// How elements of heads turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rotary {
    /// The rotation.
    pub params: RopeParams,
    /// Where the factors of frequencies are.
    pub factors: Factors,
    /// How many pairs turn by which coordinate of a position: for models that see pictures.
    pub sections: Option<[u32; 4]>,
}

/// Factors of frequencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factors {
    /// None.
    None,
    /// Those of `rope_freqs.weight`, where the file has them.
    Optional,
    /// Those of `rope_freqs.weight`.
    Required,
    /// Those of `rope_factors_long.weight` or `rope_factors_short.weight`, by the length of the context, where the
    /// file has them.
    ByContext,
}

/// Latent attention. Of each head, the last `rotary_dim` elements of queries and keys turn; those of keys are shared by
/// all heads.
#[derive(Clone, Debug, PartialEq)]
pub struct LatentSpec {
    /// Heads.
    pub heads: u32,
    /// Elements of the vector that queries are products with; without it they are products with the layer's input.
    pub query_rank: Option<u32>,
    /// Elements of the vector that keys and values are products with.
    pub kv_rank: u32,
    /// Elements of a head of queries and keys.
    pub key_dim: u32,
    /// Elements of a head of values.
    pub value_dim: u32,
    /// Whether the matrices for keys and for values are apart: `attn_k_b` and `attn_v_b`, else `attn_kv_b`.
    pub split: bool,
    /// Which tokens are seen.
    pub mask: Mask,
    /// What `q · k` is multiplied by.
    pub scale: f32,
    /// How heads turn.
    pub rotary: Rotary,
}

/// A recurrence with a convolution before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecurrenceSpec {
    /// Tokens that the convolution sees.
    pub tokens: u32,
    /// Elements of all heads.
    pub inner: u32,
    /// Elements of a state, for each element of a head.
    pub state: u32,
    /// Heads.
    pub heads: u32,
    /// Groups of heads that share what they read and write the state by.
    pub groups: u32,
}

/// A feed-forward network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Network {
    /// One.
    Dense(DenseSpec),
    /// Some of many, by token.
    Experts(ExpertsSpec),
}

/// One feed-forward network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DenseSpec {
    /// Elements between its products.
    pub width: u32,
    /// What is between its products.
    pub activation: GatedActivation,
    /// Whether gate and up are one matrix, in this order: `ffn_up`.
    pub fused: bool,
}

/// What is between the products of a feed-forward network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GatedActivation {
    /// `activation(gate) · up`.
    Gated(Activation),
    /// `activation(up)`, without a gate.
    Plain(Activation),
    /// `g · sigmoid(alpha · g) · (u + 1)`, where `g` is the gate, at most `limit`, and `u` is `up`, between `-limit` and
    /// `limit`.
    Clamped {
        /// What the gate is multiplied by in the sigmoid.
        alpha: f32,
        /// The limit.
        limit: f32,
    },
}

impl GatedActivation {
    /// Whether there is a matrix for a gate.
    pub fn is_gated(self) -> bool {
        !matches!(self, GatedActivation::Plain(_))
    }
}

/// Experts: feed-forward networks of which each token takes some.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpertsSpec {
    /// How many there are.
    pub count: u32,
    /// How many a token takes.
    pub used: u32,
    /// Groups of experts and how many of them a token takes experts from.
    pub groups: Option<[u32; 2]>,
    /// Elements between the products of one.
    pub width: u32,
    /// What is between them.
    pub activation: GatedActivation,
    /// How scores become weights.
    pub gating: Gating,
    /// Whether weights of those that are taken are divided by their sum.
    pub normalized: bool,
    /// What weights are multiplied by.
    pub scale: f32,
    /// Whether the products have biases: of the router and of each expert.
    pub biases: bool,
    /// Whether a bias may be added to scores for the choice alone: `exp_probs_b`.
    pub choice_bias: bool,
    /// Whether router, experts and the shared expert have norms and scales of their own.
    pub norms: bool,
    /// The expert that every token takes.
    pub shared: Option<SharedExpert>,
}

/// How scores of experts become weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gating {
    /// A softmax over all.
    Softmax,
    /// The sigmoid of each.
    Sigmoid,
    /// A softmax over those that are taken.
    ChosenSoftmax,
}

/// An expert that every token takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedExpert {
    /// Elements between its products.
    pub width: u32,
    /// Whether its result is multiplied by a sigmoid: of a product with `ffn_gate_inp_shexp`.
    pub gated: bool,
    /// How its tensors' names end, behind `ffn_gate` and the like.
    pub suffix: &'static str,
}

impl LayerSpec {
    /// What it keeps of the tokens of a sequence, with caches of such elements: nothing where it sees what another layer
    /// keeps, and what its convolution and its recurrence need.
    pub fn states(&self, cache: CacheDtype, hidden: u32) -> Vec<SequenceState> {
        match self.mixer {
            Mixer::Attention(AttentionSpec { shares: Some(_), .. }) => Vec::new(),
            Mixer::Attention(AttentionSpec { kv_heads, head_dim, mask, .. }) => {
                vec![SequenceState::KeysValues {
                    dtype: cache,
                    kv_heads,
                    head_dim: head_dim_of_cache(head_dim, cache),
                    window: mask.window,
                    page: None,
                }]
            }
            Mixer::Latent(LatentSpec { kv_rank, rotary, .. }) => {
                vec![SequenceState::Latent {
                    dtype: cache,
                    rank: kv_rank,
                    rotary_dim: rotary.params.rotary_dim,
                }]
            }
            Mixer::Mamba2(spec) | Mixer::DeltaNet(spec) => {
                let RecurrenceSpec { tokens, inner, state, heads, groups } = spec;
                // Values, and what each group reads and writes the state by, go through the convolution.
                let read_and_written = groups.saturating_mul(state).saturating_mul(2);
                vec![
                    SequenceState::Convolution {
                        channels: inner.saturating_add(read_and_written),
                        tokens: tokens.saturating_sub(1),
                    },
                    SequenceState::Recurrence { heads, rows: inner / heads.max(1), columns: state },
                ]
            }
            Mixer::ShortConvolution { tokens } => {
                vec![SequenceState::Convolution { channels: hidden, tokens: tokens.saturating_sub(1) }]
            }
        }
    }
}

/// The length of heads that kernels of attention take of every kind, and that has room for a model's: a multiple of 16,
/// from 32 on, and of 32 where a cache has a scale for each 32.
pub(super) fn head_dim_of_cache(head_dim: u32, cache: CacheDtype) -> u32 {
    let multiple = if cache == CacheDtype::Q8_0 { 32 } else { 16 };
    head_dim.next_multiple_of(multiple).max(32)
}

impl ModelSpec {
    /// Bytes that a sequence with room for so many tokens takes, in all layers.
    pub fn state_bytes(&self, cache: CacheDtype, max_seq_len: u32) -> u64 {
        let states = self.layers.iter().flat_map(|layer| layer.states(cache, self.hidden));
        states.fold(0, |sum: u64, state| sum.saturating_add(state.bytes(1, max_seq_len)))
    }

    /// What all layers of a model that runs have: attention with its rotation, and the width of the network.
    pub(super) fn parts(&self) -> Option<(AttentionSpec, RopeParams, u32)> {
        let first = self.layers.first()?;
        match (&first.mixer, first.network) {
            (Mixer::Attention(attention), Network::Dense(dense)) => {
                Some((attention.clone(), attention.rotary?.params, dense.width))
            }
            _ => None,
        }
    }
}
