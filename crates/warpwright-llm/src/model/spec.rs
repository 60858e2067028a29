//! Specification of a model: its layers, one by one, as data. The modules below do not depend on the name of an
//! architecture.
//!
//! ```text
//!  Architecture (a row of a table) ─┐
//!  metadata of a file ──────────────┴─► ModelSpec ─┬─► missing blocks   (missing.rs)
//!                                                  ├─► tensors, shapes  (tensors.rs)
//!                                                  └─► graphs           (graph.rs)
//! ```

use warpwright_graph::{RopeParams, SequenceState};
use warpwright_kernels::{Activation, CacheDtype};

/// A model: its layers, and the parts around them.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSpec {
    /// Elements of a token's vector between layers.
    pub hidden: u32,
    /// Tokens of the vocabulary: rows of the embedding table.
    pub vocab: u32,
    /// The context length of the training.
    pub context_length: u32,
    /// The factor of embeddings.
    pub embedding_scale: f32,
    /// Elements per token and layer in a second embedding table.
    pub layer_embedding: Option<u32>,
    /// The name of the norm before the logits.
    pub output_norm: &'static str,
    /// The factor of logits.
    pub logit_scale: f32,
    /// `c`, if logits become `c · tanh(logits / c)`.
    pub logit_cap: Option<f32>,
    /// Whether the embedding table may be the matrix of the logits: it is if the file has no other.
    pub tied: bool,
    /// Additional layers at the end that predict more tokens.
    pub predicting_layers: u32,
    /// The norms of the model.
    pub norm: Norm,
    /// The layers, in order.
    pub layers: Vec<LayerSpec>,
}

/// A layer: `x + mixer(x)`, then that plus its feed-forward network.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerSpec {
    /// The part that lets tokens see one another.
    pub mixer: Mixer,
    /// The norms around it.
    pub mixer_norms: Around,
    /// The feed-forward network.
    pub network: Network,
    /// The norms around it.
    pub network_norms: Around,
    /// Whether both parts have the same input and their sum is added: then the network has no norm of its own.
    pub parallel: bool,
    /// The factor of both results before they are added.
    pub residual_scale: f32,
    /// Whether the layer's result is multiplied by `layer_output_scale`, if the file has it.
    pub output_scale: bool,
}

/// A norm of rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norm {
    /// What is computed.
    pub kind: NormKind,
    /// Added to the mean square, or to the variance.
    pub epsilon: f32,
}

/// The kind of a norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormKind {
    /// `x / √mean(x²)`, times weights.
    Rms,
    /// `(x - mean) / √variance`, times weights.
    Layer,
    /// The same, plus a bias.
    LayerBias,
}

/// The names of the norms around a block, in a layer; `None` if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Around {
    /// Before the block.
    pub before: Option<&'static str>,
    /// After the block, before its result is added.
    pub after: Option<&'static str>,
}

/// The part of a layer that lets tokens see one another.
#[derive(Clone, Debug, PartialEq)]
pub enum Mixer {
    /// Attention over keys and values.
    Attention(AttentionSpec),
    /// Attention over keys and values that are computed from a short vector: multi-head latent attention.
    Latent(LatentSpec),
    /// Mamba 2, a recurrence.
    Mamba2(RecurrenceSpec),
    /// A gated delta net: linear attention whose state forgets.
    DeltaNet(RecurrenceSpec),
    /// A gated convolution over this many tokens.
    ShortConvolution {
        /// Tokens that it sees.
        tokens: u32,
    },
}

/// Which tokens a token attends to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mask {
    /// Not to later ones.
    pub causal: bool,
    /// To this many, including itself.
    pub window: Option<u32>,
}

/// Attention over keys and values.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionSpec {
    /// Heads of queries.
    pub heads: u32,
    /// Heads of keys and values; a divisor of `heads`.
    pub kv_heads: u32,
    /// Elements of a head.
    pub head_dim: u32,
    /// Which tokens a token attends to.
    pub mask: Mask,
    /// The factor of `q · k`.
    pub scale: f32,
    /// `c`, if scores become `c · tanh(score / c)`.
    pub score_cap: Option<f32>,
    /// Whether each head has an additional score in the softmax without a value: `attn_sinks`.
    pub sinks: bool,
    /// Norms of queries and keys, before the rotation.
    pub head_norms: HeadNorms,
    /// Whether values have a norm per head, without weights.
    pub value_norms: bool,
    /// The rotation of queries and keys, if there is one.
    pub rotary: Option<Rotary>,
    /// Whether queries, keys and values have one matrix: `attn_qkv`.
    pub fused: bool,
    /// Whether `attn_q` has a gate after each head of queries: the head's result is multiplied by the gate's sigmoid.
    pub gated: bool,
    /// Whether keys are also the values if the file has no `attn_v`.
    pub keys_as_values: bool,
    /// The earlier layer whose keys and values are used instead of own ones.
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

/// The rotation of heads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rotary {
    /// The rotation.
    pub params: RopeParams,
    /// The frequency factors.
    pub factors: Factors,
    /// How many pairs turn by each coordinate of a position, in models that process pictures.
    pub sections: Option<[u32; 4]>,
}

/// Frequency factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factors {
    /// None.
    None,
    /// Those of `rope_freqs.weight`, if the file has them.
    Optional,
    /// Those of `rope_freqs.weight`.
    Required,
    /// Those of `rope_factors_long.weight` or `rope_factors_short.weight`, depending on the length of the context, if
    /// the file has them.
    ByContext,
}

/// Latent attention. The last `rotary_dim` elements of each head of queries and keys are rotated; those of the keys are
/// shared by all heads.
#[derive(Clone, Debug, PartialEq)]
pub struct LatentSpec {
    /// Heads.
    pub heads: u32,
    /// Elements of the vector from which queries are computed; `None` if they are computed from the layer's input.
    pub query_rank: Option<u32>,
    /// Elements of the vector from which keys and values are computed.
    pub kv_rank: u32,
    /// Elements of a head of queries and keys.
    pub key_dim: u32,
    /// Elements of a head of values.
    pub value_dim: u32,
    /// Whether keys and values have separate matrices: `attn_k_b` and `attn_v_b` instead of `attn_kv_b`.
    pub split: bool,
    /// Which tokens a token attends to.
    pub mask: Mask,
    /// The factor of `q · k`.
    pub scale: f32,
    /// The rotation of heads.
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
    /// Groups of heads that share the vectors for reading and writing the state.
    pub groups: u32,
}

/// A feed-forward network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Network {
    /// A single one.
    Dense(DenseSpec),
    /// Several experts, of which each token uses some.
    Experts(ExpertsSpec),
}

/// One feed-forward network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DenseSpec {
    /// Elements between its products.
    pub width: u32,
    /// The activation between its products.
    pub activation: GatedActivation,
    /// Whether gate and up are one matrix, in this order: `ffn_up`.
    pub fused: bool,
}

/// The operation between the products of a feed-forward network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GatedActivation {
    /// `activation(gate) · up`.
    Gated(Activation),
    /// `activation(up)`, without a gate.
    Plain(Activation),
    /// `g · sigmoid(alpha · g) · (u + 1)`, with `g` the gate, capped at `limit`, and `u` the value of `up`, clamped to
    /// `-limit` … `limit`.
    Clamped {
        /// What the gate is multiplied by in the sigmoid.
        alpha: f32,
        /// The limit.
        limit: f32,
    },
}

impl GatedActivation {
    /// Whether the network has a gate matrix.
    pub fn is_gated(self) -> bool {
        !matches!(self, GatedActivation::Plain(_))
    }
}

/// Experts: feed-forward networks, of which each token uses some.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpertsSpec {
    /// Number of experts.
    pub count: u32,
    /// Number of experts that a token uses.
    pub used: u32,
    /// Number of groups of experts, and of groups that a token takes experts from.
    pub groups: Option<[u32; 2]>,
    /// Elements between the products of an expert.
    pub width: u32,
    /// The activation between them.
    pub activation: GatedActivation,
    /// How scores become weights.
    pub gating: Gating,
    /// Whether the weights of the chosen experts are divided by their sum.
    pub normalized: bool,
    /// The factor of the weights.
    pub scale: f32,
    /// Whether the router and the experts have biases.
    pub biases: bool,
    /// Whether a bias may be added to scores, only for the choice: `exp_probs_b`.
    pub choice_bias: bool,
    /// Whether the router, the experts and the shared expert have norms and scales of their own.
    pub norms: bool,
    /// The expert that every token uses.
    pub shared: Option<SharedExpert>,
}

/// How scores of experts become weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gating {
    /// A softmax over all.
    Softmax,
    /// The sigmoid of each.
    Sigmoid,
    /// A softmax over the chosen experts.
    ChosenSoftmax,
}

/// An expert that every token uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedExpert {
    /// Elements between its products.
    pub width: u32,
    /// Whether its result is multiplied by the sigmoid of a product with `ffn_gate_inp_shexp`.
    pub gated: bool,
    /// The suffix of its tensors' names, after `ffn_gate` and the like.
    pub suffix: &'static str,
}

impl LayerSpec {
    /// The states that it keeps of a sequence, with this element type of caches: none if it uses another layer's, and
    /// those of its convolution and its recurrence.
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
    /// Bytes of a sequence's states in all layers, with a capacity of this many tokens.
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
