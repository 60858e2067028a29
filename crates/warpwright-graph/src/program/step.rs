//! Steps: units of work that one launch may do.

use crate::graph::{AttentionMode, AttentionParams, NodeId, PenaltyParams, RopeParams, SampleParams, Tensor};
use warpwright_kernels::{Activation, Activations, TokenSequences};

/// A step, with the nodes whose work it does.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its operation.
    pub op: StepOp,
    /// The nodes whose work the step does, in the graph's order; none for a step that a pass has added.
    pub nodes: Vec<NodeId>,
}

/// The operation of a step.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StepOp {
    /// Rows of a table of weights.
    Embedding {
        /// The table.
        table: Tensor,
        /// Row numbers.
        ids: Tensor,
        /// The rows.
        out: Tensor,
    },
    /// Rows of a matrix of `f32`.
    SelectRows {
        /// The matrix.
        x: Tensor,
        /// Row numbers.
        rows: Tensor,
        /// The rows.
        out: Tensor,
    },
    /// Products of one matrix of activations with weight matrices.
    Products(Products),
    /// The norm of rows, or of heads.
    Norm(NormStep),
    /// Rotation, and the write into the cache.
    Rope(RopeStep),
    /// Attention over a cache.
    Attention(AttentionStep),
    /// An operation on elements.
    Elementwise {
        /// Which.
        op: Pointwise,
        /// The first operand.
        a: Tensor,
        /// The second, if there is one.
        b: Option<Tensor>,
        /// The result.
        out: Tensor,
    },
    /// Softmax over rows.
    SoftMax {
        /// The rows.
        x: Tensor,
        /// The result.
        out: Tensor,
    },
    /// A conversion, or a copy.
    Cast {
        /// The tensor to convert.
        x: Tensor,
        /// The result.
        out: Tensor,
    },
    /// Heads of another length.
    ResizeHeads {
        /// Elements of a head.
        from: u32,
        /// Elements of a head of the result.
        to: u32,
        /// The heads.
        x: Tensor,
        /// The result.
        out: Tensor,
    },
    /// Activations as `int8`, for integer products.
    Quantize {
        /// The activations.
        x: Tensor,
        /// The result.
        out: Tensor,
    },
    /// Activations as halves with a scale for each row, for the tensor cores.
    Scale {
        /// The activations.
        x: Tensor,
        /// The result.
        out: Tensor,
    },
    /// The index of each row's largest.
    ArgMax {
        /// The rows.
        x: Tensor,
        /// The indices.
        out: Tensor,
    },
    /// Penalties for recent tokens.
    Penalties(PenaltyStep),
    /// A draw from each row.
    Sample {
        /// How.
        params: SampleParams,
        /// The rows.
        logits: Tensor,
        /// Seeds of the rows.
        seeds: Tensor,
        /// Steps of the rows.
        steps: Tensor,
        /// Settings that are in buffers, in the order of the op.
        settings: Vec<Tensor>,
        /// The indices.
        out: Tensor,
    },
    /// States count up: each with its next version.
    Advance {
        /// The states.
        counters: Vec<(Tensor, Tensor)>,
    },
    /// A state takes a value.
    Assign {
        /// The state as it was.
        state: Tensor,
        /// The value.
        value: Tensor,
        /// The state's next version.
        out: Tensor,
    },
}

/// An operation on elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pointwise {
    /// `a + b`.
    Add,
    /// `a · b`.
    Mul,
    /// `activation(a)`.
    Activate(Activation),
    /// `activation(a) · b`.
    Glu(Activation),
}

impl Pointwise {
    /// Its name; that of an activation alone: `silu`.
    pub fn name(self) -> &'static str {
        match self {
            Pointwise::Add => "add",
            Pointwise::Mul => "mul",
            Pointwise::Activate(activation) => activation.name(),
            Pointwise::Glu(_) => "glu",
        }
    }
}

/// Products of the same activations: `outᵢ = Wᵢ · norm(x) + biasᵢ + residualᵢ`, or of two matrices
/// `out₀ = gate(W₀ · norm(x) + bias₀) · (W₁ · norm(x) + bias₁) + residual₀`.
#[derive(Clone, Debug, PartialEq)]
pub struct Products {
    /// The activations: `f32`, or what a step has made of them for these products (`int8`, scaled halves).
    pub x: Tensor,
    /// The norm that `x` goes through first.
    pub norm: Option<HeadNorm>,
    /// The matrices.
    pub matrices: Vec<Matrix>,
    /// The activation of the first of two matrices that make one result.
    pub gate: Option<Activation>,
    /// How `x` is multiplied: chosen by a pass, for the kernels that let one choose.
    pub activations: Option<Activations>,
}

/// Weights and epsilon of a norm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadNorm {
    /// The weights.
    pub weight: Tensor,
    /// Added to the mean square.
    pub epsilon: f32,
}

/// A matrix of [`Products`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matrix {
    /// The weights, `n × k`.
    pub weight: Tensor,
    /// The bias: added to each row of the result.
    pub bias: Option<Tensor>,
    /// The residual: added to the result.
    pub residual: Option<Tensor>,
    /// The result; none of the second matrix of a gated product.
    pub out: Option<Tensor>,
}

/// The norm of rows of length `d`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NormStep {
    /// The rows: all elements, `d` by `d`.
    pub x: Tensor,
    /// Length of a row: that of the weights.
    pub d: u32,
    /// Weights and epsilon.
    pub norm: HeadNorm,
    /// The result as floats, if anything takes it.
    pub out: Option<Tensor>,
    /// The result as `int8`, if anything takes it.
    pub quants: Option<Tensor>,
}

/// Rotation of one tensor; of `q` and `k` and the way of `k` and `v` into the cache; or that way alone.
#[derive(Clone, Debug, PartialEq)]
pub struct RopeStep {
    /// How heads turn; `None` where nothing does.
    pub params: Option<RopeParams>,
    /// The epsilon of the norm of each head, where there is one.
    pub epsilon: Option<f32>,
    /// Positions of the tokens.
    pub positions: Tensor,
    /// Factors of the frequencies.
    pub factors: Option<Tensor>,
    /// What turns and goes nowhere else.
    pub rotate: Option<Rotate>,
    /// What goes into the cache.
    pub append: Option<Append>,
}

/// A tensor that turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rotate {
    /// The tensor.
    pub x: Tensor,
    /// The weights of its heads' norm.
    pub norm: Option<Tensor>,
    /// The result.
    pub out: Tensor,
}

/// Keys and values on their way into the cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Append {
    /// The keys: they turn if the step has parameters of a rotation.
    pub k: Tensor,
    /// The weights of the norm of the keys' heads.
    pub k_norm: Option<Tensor>,
    /// The values.
    pub v: Tensor,
    /// The cache of the keys, and its next version.
    pub k_cache: (Tensor, Tensor),
    /// The cache of the values, and its next version.
    pub v_cache: (Tensor, Tensor),
    /// Which sequence a token belongs to.
    pub sequences: TokenSequences,
    /// Where sequences are listed, the list.
    pub listed: Option<Tensor>,
}

/// Attention over a cache.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionStep {
    /// Heads and scale.
    pub params: AttentionParams,
    /// The queries.
    pub q: Tensor,
    /// The cache of the keys.
    pub k_cache: Tensor,
    /// The cache of the values.
    pub v_cache: Tensor,
    /// `lengths` for decoding; `q_starts` and `kv_lens` for prompts.
    pub lengths: Vec<Tensor>,
    /// The result.
    pub out: Tensor,
}

/// Logits of tokens that came lately are lowered.
#[derive(Clone, Debug, PartialEq)]
pub struct PenaltyStep {
    /// How far.
    pub params: PenaltyParams,
    /// The logits.
    pub logits: Tensor,
    /// The tokens that came lately.
    pub recent: Tensor,
    /// Where they are added to, their next version.
    pub next: Option<Tensor>,
    /// Where they are added to, the newest tokens and their positions.
    pub newest: Option<[Tensor; 2]>,
    /// Settings that are in buffers, in the order of the op.
    pub settings: Vec<Tensor>,
    /// The logits after that.
    pub out: Tensor,
}

/// What a step does with a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// It reads it.
    Read,
    /// It makes it.
    Write,
}

/// A tensor of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    /// The tensor.
    pub tensor: Tensor,
    /// What the step does with it.
    pub access: Access,
}

/// Steps that one method of a dispatcher is for, which has the family's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, warpwright_dsl::Choice)]
#[non_exhaustive]
pub enum Family {
    /// Embedding and selection of rows.
    Rows,
    /// Products, and what they make of their activations first.
    MatMul,
    /// Norms.
    Norm,
    /// Rotation and the way into the cache.
    Rope,
    /// Attention.
    Attention,
    /// Operations on elements, softmax, conversions, heads of another length.
    Elementwise,
    /// Penalties, argmax and sampling.
    Sampling,
    /// What changes states.
    State,
}

impl StepOp {
    /// The family that it belongs to.
    pub fn family(&self) -> Family {
        match self {
            StepOp::Embedding { .. } | StepOp::SelectRows { .. } => Family::Rows,
            StepOp::Products(_) | StepOp::Quantize { .. } | StepOp::Scale { .. } => Family::MatMul,
            StepOp::Norm(_) => Family::Norm,
            StepOp::Rope(_) => Family::Rope,
            StepOp::Attention(_) => Family::Attention,
            StepOp::Elementwise { .. }
            | StepOp::SoftMax { .. }
            | StepOp::Cast { .. }
            | StepOp::ResizeHeads { .. } => Family::Elementwise,
            StepOp::ArgMax { .. } | StepOp::Penalties(_) | StepOp::Sample { .. } => Family::Sampling,
            StepOp::Advance { .. } | StepOp::Assign { .. } => Family::State,
        }
    }

    /// The tensors that it reads and makes. What it changes in place it reads as one version and makes as
    /// the next.
    pub fn operands(&self) -> Vec<Operand> {
        let mut all = Vec::new();
        self.visit(&mut |tensor, access| all.push(Operand { tensor, access }));
        all
    }

    /// The tensors that it reads.
    pub fn reads(&self) -> impl Iterator<Item = Tensor> {
        self.operands().into_iter().filter(|operand| operand.access == Access::Read).map(|o| o.tensor)
    }

    /// The tensors that it makes.
    pub fn writes(&self) -> impl Iterator<Item = Tensor> {
        self.operands().into_iter().filter(|operand| operand.access == Access::Write).map(|o| o.tensor)
    }

    pub(crate) fn visit(&self, see: &mut dyn FnMut(Tensor, Access)) {
        let mut all = |reads: &[Tensor], writes: &[Tensor]| {
            reads.iter().for_each(|&tensor| see(tensor, Access::Read));
            writes.iter().for_each(|&tensor| see(tensor, Access::Write));
        };
        match self {
            StepOp::Embedding { table, ids, out } => all(&[*table, *ids], &[*out]),
            StepOp::SelectRows { x, rows, out } => all(&[*x, *rows], &[*out]),
            StepOp::Products(products) => {
                all(&[products.x], &[]);
                products.norm.iter().for_each(|norm| all(&[norm.weight], &[]));
                for matrix in &products.matrices {
                    all(&[matrix.weight], &[]);
                    all(matrix.bias.as_slice(), &[]);
                    all(matrix.residual.as_slice(), matrix.out.as_slice());
                }
            }
            StepOp::Norm(step) => {
                all(&[step.x, step.norm.weight], step.out.as_slice());
                all(&[], step.quants.as_slice());
            }
            StepOp::Rope(step) => {
                all(&[step.positions], &[]);
                all(step.factors.as_slice(), &[]);
                if let Some(rotate) = &step.rotate {
                    all(&[rotate.x], &[rotate.out]);
                    all(rotate.norm.as_slice(), &[]);
                }
                if let Some(append) = &step.append {
                    all(&[append.k, append.v, append.k_cache.0, append.v_cache.0], &[]);
                    all(append.k_norm.as_slice(), &[append.k_cache.1, append.v_cache.1]);
                    all(append.listed.as_slice(), &[]);
                }
            }
            StepOp::Attention(step) => {
                all(&[step.q, step.k_cache, step.v_cache], &[step.out]);
                all(&step.lengths, &[]);
            }
            StepOp::Elementwise { a, b, out, .. } => {
                all(&[*a], &[*out]);
                all(b.as_slice(), &[]);
            }
            StepOp::SoftMax { x, out }
            | StepOp::Cast { x, out }
            | StepOp::ResizeHeads { x, out, .. }
            | StepOp::Quantize { x, out }
            | StepOp::Scale { x, out }
            | StepOp::ArgMax { x, out } => all(&[*x], &[*out]),
            StepOp::Penalties(step) => {
                all(&[step.recent, step.logits], &[step.out]);
                all(step.newest.as_ref().map_or(&[], |newest| newest), step.next.as_slice());
                all(&step.settings, &[]);
            }
            StepOp::Sample { logits, seeds, steps, settings, out, .. } => {
                all(&[*logits, *seeds, *steps], &[*out]);
                all(settings, &[]);
            }
            StepOp::Advance { counters } => {
                counters.iter().for_each(|&(before, after)| all(&[before], &[after]));
            }
            StepOp::Assign { state, value, out } => all(&[*state, *value], &[*out]),
        }
    }

    /// The states that it changes in place: versions before and after.
    pub fn changes(&self) -> Vec<(Tensor, Tensor)> {
        match self {
            StepOp::Rope(RopeStep { append: Some(append), .. }) => vec![append.k_cache, append.v_cache],
            StepOp::Penalties(PenaltyStep { recent, next: Some(next), .. }) => vec![(*recent, *next)],
            StepOp::Advance { counters } => counters.clone(),
            StepOp::Assign { state, out, .. } => vec![(*state, *out)],
            _ => Vec::new(),
        }
    }

    /// Its name: `products`, `rope`.
    pub fn name(&self) -> &'static str {
        match self {
            StepOp::Embedding { .. } => "embedding",
            StepOp::SelectRows { .. } => "select_rows",
            StepOp::Products(_) => "products",
            StepOp::Norm(_) => "norm",
            StepOp::Rope(RopeStep { params: None, .. }) => "append",
            StepOp::Rope(_) => "rope",
            StepOp::Attention(AttentionStep { params, .. }) => match params.mode {
                AttentionMode::Decode => "attention",
                AttentionMode::Prefill => "prefill_attention",
            },
            StepOp::Elementwise { op, .. } => op.name(),
            StepOp::SoftMax { .. } => "softmax",
            StepOp::Cast { .. } => "cast",
            StepOp::ResizeHeads { .. } => "resize_heads",
            StepOp::Quantize { .. } => "quantize",
            StepOp::Scale { .. } => "scale_rows",
            StepOp::ArgMax { .. } => "argmax",
            StepOp::Penalties(_) => "penalties",
            StepOp::Sample { .. } => "sample",
            StepOp::Advance { .. } => "advance",
            StepOp::Assign { .. } => "assign",
        }
    }
}
