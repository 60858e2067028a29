//! Operations on tensors.

use std::fmt;
use warpwright_kernels::{Activation, Dtype, RopePairs, RopeScaling, Setting, TokenSequences};

/// The operation of a node. The op holds the parameters; tensors are the node's inputs and outputs, in this order:
///
/// | op | inputs | outputs |
/// | --- | --- | --- |
/// | `Embedding` | table `rows × d` of weights, ids `tokens` | `tokens × d` |
/// | `MatMul` | x `tokens × k`, weights `n × k`, with a bias `n` | `x · Wᵀ + bias`, `tokens × n` |
/// | `RmsNorm` | x `tokens × d`, weights `d` | the same shape |
/// | `HeadNorm` | x `tokens × heads · head_dim`, weights `head_dim` | the same shape |
/// | `Add`, `Mul` | a, b of one shape | the same shape |
/// | `Activate` | x | the same shape |
/// | `Glu` | gate, up of one shape | `activation(gate) · up` |
/// | `Rope` | x `tokens × heads · head_dim`, positions `tokens`, with factors `rotary_dim / 2` | the same shape |
/// | `KvAppend` | cache of keys, cache of values, k and v `tokens × kv_heads · head_dim`, positions `tokens`, where listed sequences `tokens` | both caches |
/// | `Attention`, decode | q `batch × heads · head_dim`, cache of keys, cache of values, lengths `batch` | like q |
/// | `Attention`, prefill | q `tokens × heads · head_dim`, both caches, q_starts `batch + 1`, kv_lens `batch` | like q |
/// | `SelectRows` | x `tokens × d`, rows `n` | `n × d` |
/// | `SoftMax` | x | the same shape |
/// | `Cast` | x | the same shape, of the other type: a copy where it is the same |
/// | `ResizeHeads` | x `tokens × heads · from` | `tokens × heads · to` |
/// | `ArgMax` | x `rows × n` | `rows` |
/// | `Penalties` | recent `rows × window` of `u32`, logits `rows × n`, where it remembers tokens `rows` and positions `rows`, then the settings that are in buffers, each `rows`: repeats, frequencies, presences | where it remembers recent, a state; logits |
/// | `Sample` | logits `rows × n`, seeds `rows`, steps `rows`, then the settings that are in buffers, each `rows`: temperatures, top_ks, top_ps, min_ps | `rows` |
/// | `Advance` | up to four states of `u32`, of one shape | the same states, each number one more |
/// | `Assign` | a state, a value of its type | the state |
///
/// An op that changes a state returns its next version: nodes that read the state afterwards take that one.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum TensorOp {
    /// Rows of a table by token id.
    Embedding,
    /// The product with a weight matrix.
    MatMul {
        /// Whether a bias is added.
        bias: bool,
    },
    /// Root-mean-square norm of rows.
    RmsNorm {
        /// Added to the mean square.
        epsilon: f32,
    },
    /// Root-mean-square norm of each head of a row.
    HeadNorm {
        /// Elements of a head.
        head_dim: u32,
        /// Added to the mean square.
        epsilon: f32,
    },
    /// The sum.
    Add,
    /// The product, element by element.
    Mul,
    /// An activation function.
    Activate(Activation),
    /// A gated linear unit, `activation(gate) · up`: with SiLU, SwiGLU.
    Glu(Activation),
    /// Rotary position embedding.
    Rope(RopeParams),
    /// Writes new keys and values into the cache.
    KvAppend {
        /// Which sequence a token belongs to.
        sequences: TokenSequences,
    },
    /// Attention over a cache.
    Attention(AttentionParams),
    /// Rows by number.
    SelectRows,
    /// Softmax over rows.
    SoftMax,
    /// A conversion, or a copy.
    Cast {
        /// The type of the result.
        to: Dtype,
    },
    /// Heads of another length: each truncated, or padded with zeros. Attention kernels support some lengths only;
    /// zeros at the end of queries, keys and values add only zeros to the result.
    ResizeHeads {
        /// Elements of a head.
        from: u32,
        /// Elements of a head of the result.
        to: u32,
    },
    /// The index of the largest number of a row.
    ArgMax,
    /// Lowers the logits of recent tokens.
    Penalties(PenaltyParams),
    /// A draw from the distribution of logits.
    Sample(SampleParams),
    /// Increments states.
    Advance,
    /// Assigns a value to a state.
    Assign,
}

/// Parameters of a rotation: those of [`warpwright_kernels::Rope`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RopeParams {
    /// Elements of a head.
    pub head_dim: u32,
    /// Elements of a head that turn: an even number.
    pub rotary_dim: u32,
    /// Which elements are pairs.
    pub pairs: RopePairs,
    /// The base of the frequencies.
    pub base: f32,
    /// How frequencies are scaled.
    pub scaling: RopeScaling,
    /// Whether each pair's frequency is divided by a factor, an `f32` from a tensor.
    pub factors: bool,
}

impl RopeParams {
    /// Heads of `head_dim` that turn whole in NEOX pairs, with a base of 10⁴.
    pub fn new(head_dim: u32) -> Self {
        RopeParams {
            head_dim,
            rotary_dim: head_dim,
            pairs: RopePairs::Neox,
            base: 1e4,
            scaling: RopeScaling::None,
            factors: false,
        }
    }
}

/// Parameters of attention over a cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionParams {
    /// Query heads.
    pub heads: u32,
    /// Heads of the cache.
    pub kv_heads: u32,
    /// Elements of a head.
    pub head_dim: u32,
    /// The factor of `q·k`.
    pub scale: f32,
    /// The mapping of queries to sequences.
    pub mode: AttentionMode,
}

/// The mapping of queries to sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttentionMode {
    /// One query for each sequence, which attends to `lengths` tokens.
    Decode,
    /// The queries of a sequence are its last tokens; with `q_starts` and `kv_lens`, the queries of several sequences
    /// follow one another: prompts, whole or in chunks. Each query attends to the tokens up to itself.
    Prefill,
}

/// Parameters of a draw: those of [`warpwright_kernels::Sample`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleParams {
    /// The temperature.
    pub temperature: Setting<f32>,
    /// How many tokens are kept; 0 for all.
    pub top_k: Setting<u32>,
    /// The share of the probability that is kept; 1 for all.
    pub top_p: Setting<f32>,
    /// The minimum probability relative to the most likely token; 0 for any.
    pub min_p: Setting<f32>,
}

impl SampleParams {
    /// A draw from all tokens, with such a temperature.
    pub fn new(temperature: Setting<f32>) -> Self {
        let (top_k, top_p, min_p) = (Setting::Fixed(0), Setting::Fixed(1.0), Setting::Fixed(0.0));
        SampleParams { temperature, top_k, top_p, min_p }
    }
}

/// Parameters of penalties: those of [`warpwright_kernels::Penalties`], with the length of the rows of `recent` as the
/// window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PenaltyParams {
    /// Divides a logit, or multiplies it if it is negative; 1 changes nothing.
    pub repeat: Setting<f32>,
    /// Subtracted for each occurrence of the token: 0 for nothing.
    pub frequency: Setting<f32>,
    /// Subtracted once: 0 for nothing.
    pub presence: Setting<f32>,
    /// Whether each row's newest token is first written into `recent`, at its position modulo the window.
    pub remembers: bool,
}

impl PenaltyParams {
    /// Settings in buffers.
    pub fn in_buffers(remembers: bool) -> Self {
        let setting = Setting::Buffer;
        PenaltyParams { repeat: setting, frequency: setting, presence: setting, remembers }
    }
}

impl TensorOp {
    /// Its name: `mat_mul`, `rms_norm`; that of an activation alone: `silu`.
    pub fn name(&self) -> &'static str {
        match self {
            TensorOp::Embedding => "embedding",
            TensorOp::MatMul { .. } => "mat_mul",
            TensorOp::RmsNorm { .. } => "rms_norm",
            TensorOp::HeadNorm { .. } => "head_norm",
            TensorOp::Add => "add",
            TensorOp::Mul => "mul",
            TensorOp::Activate(activation) => activation.name(),
            TensorOp::Glu(_) => "glu",
            TensorOp::Rope(_) => "rope",
            TensorOp::KvAppend { .. } => "kv_append",
            TensorOp::Attention(_) => "attention",
            TensorOp::SelectRows => "select_rows",
            TensorOp::SoftMax => "softmax",
            TensorOp::Cast { .. } => "cast",
            TensorOp::ResizeHeads { .. } => "resize_heads",
            TensorOp::ArgMax => "argmax",
            TensorOp::Penalties(_) => "penalties",
            TensorOp::Sample(_) => "sample",
            TensorOp::Advance => "advance",
            TensorOp::Assign => "assign",
        }
    }

    /// The inputs that the op changes in place, and the outputs that they become.
    pub fn changes(&self, inputs: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let count = match self {
            TensorOp::KvAppend { .. } => 2,
            TensorOp::Advance => inputs,
            TensorOp::Assign | TensorOp::Penalties(PenaltyParams { remembers: true, .. }) => 1,
            _ => 0,
        };
        (0..count).map(|i| (i, i))
    }
}

impl fmt::Display for TensorOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
