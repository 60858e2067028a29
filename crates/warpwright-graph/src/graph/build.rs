//! The graph: tensors, and the nodes that make them.

use super::error::{GraphError, OpError};
use super::infer::infer;
use super::op::{AttentionParams, RopeParams, SampleParams, TensorOp};
use super::tensor::{Role, Tensor, TensorType};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use warpwright_kernels::{Dtype, TokenSequences};

/// A node of a graph: its place in the list of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// Its place in the list of the graph's nodes.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What is known of a tensor.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TensorInfo {
    /// Its name. Inputs, weights, states and outputs are found by it.
    pub name: String,
    /// Its elements and shape.
    pub ty: TensorType,
    /// Where it comes from.
    pub role: Role,
    /// Of a version of a state, the state: it has that one's memory.
    pub state: Option<Tensor>,
}

/// An operation on tensors of the graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its name, for people.
    pub name: String,
    /// What it computes.
    pub op: TensorOp,
    /// What it takes, in the order that the op says.
    pub inputs: Vec<Tensor>,
    /// What it makes.
    pub outputs: Vec<Tensor>,
}

/// Both halves of a layer's KV cache, as of some node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KvCache {
    /// The keys.
    pub k: Tensor,
    /// The values.
    pub v: Tensor,
}

/// What is computed: tensors, and operations that make some of others.
///
/// Nodes may be added in any order ([`declare`](Self::declare) gives a tensor before its node is there);
/// [`order`](Self::order) finds one in which they can run, or says why there is none.
///
/// ```
/// use warpwright_graph::{ComputeGraph, Element, TensorType};
/// use warpwright_kernels::WeightFormat;
///
/// # fn main() -> Result<(), warpwright_graph::GraphError> {
/// let mut graph = ComputeGraph::new();
/// let x = graph.input("x", TensorType::f32([1, 256]));
/// let norm = graph.weight("norm", TensorType::f32([256]));
/// let w = graph.weight("w", TensorType::new(Element::Weights(WeightFormat::Q4K), [64, 256]));
/// let h = graph.rms_norm("h", x, norm, 1e-5)?;
/// let y = graph.mat_mul("y", h, w, None)?;
/// graph.output(y)?;
/// assert_eq!(graph.ty(y)?, TensorType::f32([1, 64]));
///
/// // Rows of 256 do not go with weights of 64 columns: nothing is added, and the error says why.
/// assert!(graph.mat_mul("z", y, w, None).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ComputeGraph {
    id: u32,
    tensors: Vec<TensorInfo>,
    nodes: Vec<Node>,
}

impl Default for ComputeGraph {
    fn default() -> Self {
        Self::new()
    }
}

impl ComputeGraph {
    /// A graph of nothing.
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        ComputeGraph { id: NEXT.fetch_add(1, Relaxed), tensors: Vec::new(), nodes: Vec::new() }
    }

    /// Its tensors, in the order of their handles.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// Its nodes, in the order in which they were added.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node of that number.
    pub fn node_of(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.index())
    }

    /// What is known of a tensor.
    pub fn info(&self, tensor: Tensor) -> Result<&TensorInfo, GraphError> {
        let foreign = || GraphError::Foreign { node: "(none)".into(), index: tensor.index() };
        if tensor.graph != self.id {
            return Err(foreign());
        }
        self.tensors.get(tensor.index()).ok_or_else(foreign)
    }

    /// Elements and shape of a tensor.
    pub fn ty(&self, tensor: Tensor) -> Result<TensorType, GraphError> {
        Ok(self.info(tensor)?.ty)
    }

    /// Handles of all tensors.
    pub fn handles(&self) -> impl Iterator<Item = Tensor> + use<> {
        let graph = self.id;
        (0..self.tensors.len() as u32).map(move |index| Tensor { graph, index })
    }

    fn add_tensor(&mut self, name: &str, ty: TensorType, role: Role, state: Option<Tensor>) -> Tensor {
        let tensor = Tensor { graph: self.id, index: self.tensors.len() as u32 };
        self.tensors.push(TensorInfo { name: name.into(), ty, role, state });
        tensor
    }

    /// A tensor that the host writes before each execution.
    pub fn input(&mut self, name: &str, ty: TensorType) -> Tensor {
        self.add_tensor(name, ty, Role::Input, None)
    }

    /// A tensor that never changes.
    pub fn weight(&mut self, name: &str, ty: TensorType) -> Tensor {
        self.add_tensor(name, ty, Role::Weight, None)
    }

    /// A tensor that stays from one execution to the next.
    pub fn state(&mut self, name: &str, ty: TensorType) -> Tensor {
        self.add_tensor(name, ty, Role::State, None)
    }

    /// Both halves of a cache, `batch × kv_heads × max_seq_len × head_dim`: states `name.k` and `name.v`.
    pub fn kv_cache(&mut self, name: &str, ty: TensorType) -> KvCache {
        KvCache { k: self.state(&format!("{name}.k"), ty), v: self.state(&format!("{name}.v"), ty) }
    }

    /// A tensor that a node will make which is added later, by [`define`](Self::define).
    pub fn declare(&mut self, name: &str, ty: TensorType) -> Tensor {
        self.add_tensor(name, ty, Role::Intermediate, None)
    }

    /// Marks a tensor that a node makes as one that the host reads after each execution.
    pub fn output(&mut self, tensor: Tensor) -> Result<(), GraphError> {
        self.info(tensor)?;
        let info = &mut self.tensors[tensor.index()];
        if info.role == Role::Intermediate {
            info.role = Role::Output;
        }
        Ok(())
    }

    /// Types of a node's inputs, and of what it makes of them.
    fn inferred(&self, name: &str, op: &TensorOp, inputs: &[Tensor]) -> Result<Vec<TensorType>, GraphError> {
        let foreign = |index| GraphError::Foreign { node: name.into(), index };
        let types = inputs.iter().enumerate().map(|(i, &tensor)| self.ty(tensor).map_err(|_| foreign(i)));
        let types: Vec<TensorType> = types.collect::<Result<_, _>>()?;
        let op_error = |error| GraphError::Op { node: name.into(), op: op.name(), error: Box::new(error) };
        infer(op, &types).map_err(op_error)
    }

    /// Adds a node, and gives what it makes.
    pub fn node(&mut self, name: &str, op: TensorOp, inputs: &[Tensor]) -> Result<Vec<Tensor>, GraphError> {
        let types = self.inferred(name, &op, inputs)?;
        let states = self.states_changed(name, &op, inputs)?;
        let several = types.len() > 1;
        let outputs: Vec<Tensor> = (types.into_iter().enumerate())
            .map(|(i, ty)| {
                let own = if several { format!("{name}.{i}") } else { name.into() };
                match states.iter().find(|&&(output, _)| output == i) {
                    Some(&(_, state)) => self.add_tensor(&own, ty, Role::State, Some(state)),
                    None => self.add_tensor(&own, ty, Role::Intermediate, None),
                }
            })
            .collect();
        self.nodes.push(Node { name: name.into(), op, inputs: inputs.into(), outputs: outputs.clone() });
        Ok(outputs)
    }

    /// The states that a node would change, by output.
    fn states_changed(
        &self,
        name: &str,
        op: &TensorOp,
        inputs: &[Tensor],
    ) -> Result<Vec<(usize, Tensor)>, GraphError> {
        let changed = op.changes(inputs.len()).map(|(input, output)| {
            let tensor = inputs[input];
            let info = self.info(tensor)?;
            if info.role != Role::State {
                let tensor = info.name.clone();
                return Err(GraphError::NoState { node: name.into(), op: op.name(), tensor });
            }
            Ok((output, info.state.unwrap_or(tensor)))
        });
        changed.collect()
    }

    /// Adds a node that makes tensors which were declared before. Types are held against what the op makes;
    /// that each tensor is made once, and that nodes do not wait for one another, is
    /// [`order`](Self::order)'s to find.
    pub fn define(
        &mut self,
        name: &str,
        op: TensorOp,
        inputs: &[Tensor],
        outputs: &[Tensor],
    ) -> Result<NodeId, GraphError> {
        let types = self.inferred(name, &op, inputs)?;
        let states = self.states_changed(name, &op, inputs)?;
        if types.len() != outputs.len() {
            let needed = ["0", "1", "2", "3", "4"][types.len().min(4)];
            let error = OpError::Parameter {
                parameter: "outputs",
                value: outputs.len().to_string(),
                rule: format!("{needed} tensors"),
            };
            return Err(GraphError::Op { node: name.into(), op: op.name(), error: Box::new(error) });
        }
        for (index, (&output, inferred)) in outputs.iter().zip(types).enumerate() {
            let declared = self.ty(output).map_err(|_| GraphError::Foreign { node: name.into(), index })?;
            if declared != inferred {
                return Err(GraphError::Output {
                    node: name.into(),
                    op: op.name(),
                    index,
                    declared,
                    inferred,
                });
            }
        }
        for (output, state) in states {
            let info = &mut self.tensors[outputs[output].index()];
            if info.role == Role::Intermediate {
                (info.role, info.state) = (Role::State, Some(state));
            }
        }
        self.nodes.push(Node { name: name.into(), op, inputs: inputs.into(), outputs: outputs.into() });
        Ok(NodeId(self.nodes.len() as u32 - 1))
    }

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

    /// `x / (1 + e⁻ˣ)`.
    pub fn silu(&mut self, name: &str, x: Tensor) -> Result<Tensor, GraphError> {
        self.one(name, TensorOp::Silu, &[x])
    }

    /// `silu(gate) · up`.
    pub fn swiglu(&mut self, name: &str, gate: Tensor, up: Tensor) -> Result<Tensor, GraphError> {
        self.one(name, TensorOp::SwiGlu, &[gate, up])
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

    /// Puts keys and values of tokens into the cache. `listed` has a sequence for each token; without it token
    /// `t` belongs to sequence `t`, or all to the only one.
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

    /// Attention of `q` over a cache. `lengths` is `lengths` for decoding, `q_starts` and `kv_lens` for prompts.
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

    /// The index of the largest number of each row.
    pub fn argmax(&mut self, name: &str, x: Tensor) -> Result<Tensor, GraphError> {
        self.one(name, TensorOp::ArgMax, &[x])
    }

    /// A draw from each row of logits; `settings` are the buffers that the parameters ask for.
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

    /// Counts up to four states up, each number by one; gives their next versions.
    pub fn advance(&mut self, name: &str, counters: &[Tensor]) -> Result<Vec<Tensor>, GraphError> {
        self.node(name, TensorOp::Advance, counters)
    }

    /// A state takes a value; gives the state's next version.
    pub fn assign(&mut self, name: &str, state: Tensor, value: Tensor) -> Result<Tensor, GraphError> {
        self.one(name, TensorOp::Assign, &[state, value])
    }

    /// An order in which the nodes can run: that in which they were added, where they can.
    ///
    /// Nodes that read a version of a state come before the one that makes the next.
    pub fn order(&self) -> Result<Vec<NodeId>, GraphError> {
        super::order::order(self)
    }

    /// What gives each tensor: the node that makes it.
    pub(crate) fn makers(&self) -> Result<HashMap<Tensor, usize>, GraphError> {
        let mut makers: HashMap<Tensor, usize> = HashMap::new();
        for (i, node) in self.nodes.iter().enumerate() {
            for &tensor in &node.outputs {
                let info = &self.tensors[tensor.index()];
                let given = matches!(info.role, Role::Input | Role::Weight)
                    || (info.role == Role::State && info.state.is_none());
                let by = match makers.insert(tensor, i) {
                    Some(first) => format!("`{}`", self.nodes[first].name),
                    None if given => "the host".into(),
                    None => continue,
                };
                return Err(GraphError::MadeTwice { node: node.name.clone(), tensor: info.name.clone(), by });
            }
        }
        Ok(makers)
    }

    /// Whether a tensor is there before the first node.
    pub(crate) fn is_given(&self, tensor: Tensor) -> bool {
        let info = &self.tensors[tensor.index()];
        match info.role {
            Role::Input | Role::Weight => true,
            Role::State => info.state.is_none(),
            Role::Output | Role::Intermediate => false,
        }
    }
}

impl TensorOp {
    /// Which inputs the op changes in place, and which outputs they become.
    pub fn changes(&self, inputs: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let count = match self {
            TensorOp::KvAppend { .. } => 2,
            TensorOp::Advance => inputs,
            TensorOp::Assign => 1,
            _ => 0,
        };
        (0..count).map(|i| (i, i))
    }
}
