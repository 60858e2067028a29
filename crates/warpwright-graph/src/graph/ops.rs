//! Nodes, op by op.

use super::build::{ComputeGraph, KvCache};
use super::error::GraphError;
use super::op::{AttentionParams, PenaltyParams, RopeParams, SampleParams, TensorOp};
use super::tensor::Tensor;
use warpwright_kernels::{Activation, Dtype, TokenSequences};

/// What the inputs of each op must be is in the table of [`TensorOp`]; what does not go together is a
/// [`GraphError::Op`].
impl ComputeGraph {
    fn one(&mut self, name: &str, op: TensorOp, inputs: &[Tensor]) -> Result<Tensor, GraphError> {
        Ok(self.node(name, op, inputs)?[0])
    }

    /// Rows of a table by id: `tokens × d`.
    pub fn embedding(&mut self, name: &str, table: Tensor, ids: Tensor) -> Result<Tensor, GraphError> {
        self.one(name, TensorOp::Embedding, &[table, ids])
    }

    /// `x · Wᵀ`, and a bias.
    pub fn mat_mul(
        &mut self,
        name: &str,
        x: Tensor,
        w: Tensor,
        bias: Option<Tensor>,
    ) -> Result<Tensor, GraphError> {
        match bias {
            Some(bias) => self.one(name, TensorOp::MatMul { bias: true }, &[x, w, bias]),
            None => self.one(name, TensorOp::MatMul { bias: false }, &[x, w]),
        }
    }

    /// The norm of each row, times weights.
    pub fn rms_norm(&mut self, name: &str, x: Tensor, w: Tensor, epsilon: f32) -> Result<Tensor, GraphError> {
        self.one(name, TensorOp::RmsNorm { epsilon }, &[x, w])
    }

    /// The norm of each head of `head_dim`, times weights.
    pub fn head_norm(
        &mut self,
        name: &str,
        x: Tensor,
        w: Tensor,
        head_dim: u32,
        epsilon: f32,
    ) -> Result<Tensor, GraphError> {
        self.one(name, TensorOp::HeadNorm { head_dim, epsilon }, &[x, w])
    }

    /// `a + b`.
    pub fn add(&mut self, name: &str, a: Tensor, b: Tensor) -> Result<Tensor, GraphError> {
        self.one(name, TensorOp::Add, &[a, b])
    }

    /// `a · b`, element by element.
    pub fn mul(&mut self, name: &str, a: Tensor, b: Tensor) -> Result<Tensor, GraphError> {
        self.one(name, TensorOp::Mul, &[a, b])
    }

    /// An activation function of each element.
    pub fn activate(&mut self, name: &str, activation: Activation, x: Tensor) -> Result<Tensor, GraphError> {
        self.one(name, TensorOp::Activate(activation), &[x])
    }

    /// A gated linear unit: `activation(gate) · up`.
    pub fn glu(
        &mut self,
        name: &str,
        activation: Activation,
        gate: Tensor,
        up: Tensor,
    ) -> Result<Tensor, GraphError> {
        self.one(name, TensorOp::Glu(activation), &[gate, up])
    }

    /// `x / (1 + e⁻ˣ)`.
    pub fn silu(&mut self, name: &str, x: Tensor) -> Result<Tensor, GraphError> {
        self.activate(name, Activation::Silu, x)
    }

    /// `silu(gate) · up`.
    pub fn swiglu(&mut self, name: &str, gate: Tensor, up: Tensor) -> Result<Tensor, GraphError> {
        self.glu(name, Activation::Silu, gate, up)
    }

    /// Rotates the heads of `x` by their tokens' positions.
    pub fn rope(
        &mut self,
        name: &str,
        x: Tensor,
        positions: Tensor,
        factors: Option<Tensor>,
        params: RopeParams,
    ) -> Result<Tensor, GraphError> {
        let params = RopeParams { factors: factors.is_some(), ..params };
        let inputs: Vec<Tensor> = [x, positions].into_iter().chain(factors).collect();
        self.one(name, TensorOp::Rope(params), &inputs)
    }

    /// Writes keys and values of tokens into the cache. `listed` has a sequence for each token; without it, token `t`
    /// belongs to sequence `t`, or all tokens to the only sequence.
    pub fn kv_append(
        &mut self,
        name: &str,
        cache: KvCache,
        [k, v]: [Tensor; 2],
        positions: Tensor,
        sequences: TokenSequences,
        listed: Option<Tensor>,
    ) -> Result<KvCache, GraphError> {
        let inputs: Vec<Tensor> = [cache.k, cache.v, k, v, positions].into_iter().chain(listed).collect();
        let outputs = self.node(name, TensorOp::KvAppend { sequences }, &inputs)?;
        Ok(KvCache { k: outputs[0], v: outputs[1] })
    }

    /// Attention of `q` over a cache. For decoding, `lengths` is the op's `lengths`; for prompts it is `q_starts` and
    /// `kv_lens`.
    pub fn attention(
        &mut self,
        name: &str,
        q: Tensor,
        cache: KvCache,
        lengths: &[Tensor],
        params: AttentionParams,
    ) -> Result<Tensor, GraphError> {
        let inputs: Vec<Tensor> = [q, cache.k, cache.v].into_iter().chain(lengths.iter().copied()).collect();
        self.one(name, TensorOp::Attention(params), &inputs)
    }

    /// Rows of `x` by number.
    pub fn select_rows(&mut self, name: &str, x: Tensor, rows: Tensor) -> Result<Tensor, GraphError> {
        self.one(name, TensorOp::SelectRows, &[x, rows])
    }

    /// Softmax over rows.
    pub fn softmax(&mut self, name: &str, x: Tensor) -> Result<Tensor, GraphError> {
        self.one(name, TensorOp::SoftMax, &[x])
    }

    /// A conversion, or a copy.
    pub fn cast(&mut self, name: &str, x: Tensor, to: Dtype) -> Result<Tensor, GraphError> {
        self.one(name, TensorOp::Cast { to }, &[x])
    }

    /// Heads of `to` elements instead of `from`: truncated, or padded with zeros.
    pub fn resize_heads(&mut self, name: &str, x: Tensor, from: u32, to: u32) -> Result<Tensor, GraphError> {
        self.one(name, TensorOp::ResizeHeads { from, to }, &[x])
    }

    /// The index of the largest number of each row.
    pub fn argmax(&mut self, name: &str, x: Tensor) -> Result<Tensor, GraphError> {
        self.one(name, TensorOp::ArgMax, &[x])
    }

    /// Lowers the logits of tokens among `recent`. With `newest`, each row's newest token and its position, the token
    /// is first written into `recent`, which is a state then. Returns the logits, and the state's next version.
    /// `settings` are the buffers that the parameters require.
    pub fn penalties(
        &mut self,
        name: &str,
        logits: Tensor,
        recent: Tensor,
        newest: Option<[Tensor; 2]>,
        settings: &[Tensor],
        params: PenaltyParams,
    ) -> Result<(Tensor, Option<Tensor>), GraphError> {
        let params = PenaltyParams { remembers: newest.is_some(), ..params };
        let newest = newest.into_iter().flatten();
        let inputs: Vec<Tensor> =
            [recent, logits].into_iter().chain(newest).chain(settings.iter().copied()).collect();
        match self.node(name, TensorOp::Penalties(params), &inputs)?[..] {
            [recent, logits] => Ok((logits, Some(recent))),
            ref others => Ok((others[0], None)),
        }
    }

    /// A draw from each row of logits; `settings` are the buffers that the parameters require.
    pub fn sample(
        &mut self,
        name: &str,
        logits: Tensor,
        [seeds, steps]: [Tensor; 2],
        settings: &[Tensor],
        params: SampleParams,
    ) -> Result<Tensor, GraphError> {
        let inputs: Vec<Tensor> =
            [logits, seeds, steps].into_iter().chain(settings.iter().copied()).collect();
        self.one(name, TensorOp::Sample(params), &inputs)
    }

    /// Increments up to four states, each number by one, and returns their next versions.
    pub fn advance(&mut self, name: &str, counters: &[Tensor]) -> Result<Vec<Tensor>, GraphError> {
        self.node(name, TensorOp::Advance, counters)
    }

    /// Assigns a value to a state, and returns the state's next version.
    pub fn assign(&mut self, name: &str, state: Tensor, value: Tensor) -> Result<Tensor, GraphError> {
        self.one(name, TensorOp::Assign, &[state, value])
    }
}
