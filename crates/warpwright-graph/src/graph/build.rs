//! The graph: tensors, and the nodes that make them.

use super::error::GraphError;
use super::infer::infer;
use super::op::TensorOp;
use super::tensor::{Role, Tensor, TensorType};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A node of a graph: its index in the list of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// Its index in the graph's list of nodes.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Properties of a tensor.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TensorInfo {
    /// Its name. Inputs, weights, states and outputs are found by it.
    pub name: String,
    /// Its elements and shape.
    pub ty: TensorType,
    /// Where it comes from.
    pub role: Role,
    /// For a version of a state, the state: the version has its memory.
    pub state: Option<Tensor>,
}

impl TensorInfo {
    /// Whether it is there before the first node.
    pub(crate) fn is_given(&self) -> bool {
        match self.role {
            Role::Input | Role::Weight => true,
            Role::State => self.state.is_none(),
            Role::Output | Role::Intermediate => false,
        }
    }

    /// Whether it is found by its name.
    pub(crate) fn is_named(&self) -> bool {
        self.is_given() || self.role == Role::Output
    }

    /// Of the state or version of one that `own` is, the state.
    fn root(&self, own: Tensor) -> Option<Tensor> {
        (self.role == Role::State).then(|| self.state.unwrap_or(own))
    }
}

/// An operation on tensors of the graph.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Node {
    /// Its name, for messages.
    pub name: String,
    /// What it computes.
    pub op: TensorOp,
    /// The tensors that it reads, in the order of the op.
    pub inputs: Vec<Tensor>,
    /// The tensors that it makes.
    pub outputs: Vec<Tensor>,
}

/// Both halves of a layer's KV cache, in the version of some node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KvCache {
    /// The keys.
    pub k: Tensor,
    /// The values.
    pub v: Tensor,
}

/// A computation: tensors, and operations that make tensors from others.
///
/// Add a node after those whose results it takes. A node that changes a state may be added before nodes that read the
/// old version: [`order`](Self::order) finds an order in which all can run, or reports why there is none. A clone has
/// the same handles. If you add a tensor to one of two clones, its handle is invalid in the other, or refers to a
/// different tensor there.
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
    /// An empty graph.
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

    /// Properties of a tensor.
    ///
    /// # Errors
    ///
    /// [`GraphError::OtherGraph`] for a tensor of another graph.
    pub fn info(&self, tensor: Tensor) -> Result<&TensorInfo, GraphError> {
        let own = (tensor.graph == self.id).then(|| self.tensors.get(tensor.index())).flatten();
        own.ok_or(GraphError::OtherGraph { index: tensor.index() })
    }

    /// Elements and shape of a tensor.
    ///
    /// # Errors
    ///
    /// [`GraphError::OtherGraph`] for a tensor of another graph.
    pub fn ty(&self, tensor: Tensor) -> Result<TensorType, GraphError> {
        Ok(self.info(tensor)?.ty)
    }

    /// Handles of all tensors.
    pub fn handles(&self) -> impl Iterator<Item = Tensor> + use<> {
        let graph = self.id;
        (0..self.tensors.len() as u32).map(move |index| Tensor { graph, index })
    }

    /// The input, weight, state or output of that name.
    pub fn named(&self, name: &str) -> Option<Tensor> {
        let found = self.tensors.iter().position(|info| info.is_named() && info.name == name)?;
        Some(Tensor { graph: self.id, index: found as u32 })
    }

    fn add_tensor(&mut self, name: &str, ty: TensorType, role: Role, state: Option<Tensor>) -> Tensor {
        let tensor = Tensor { graph: self.id, index: self.tensors.len() as u32 };
        self.tensors.push(TensorInfo { name: name.into(), ty, role, state });
        tensor
    }

    /// A tensor that the host writes before each execution: floats or integers.
    pub fn input(&mut self, name: &str, ty: TensorType) -> Tensor {
        self.add_tensor(name, ty, Role::Input, None)
    }

    /// A read-only tensor: floats, integers, or a weight matrix.
    pub fn weight(&mut self, name: &str, ty: TensorType) -> Tensor {
        self.add_tensor(name, ty, Role::Weight, None)
    }

    /// A tensor that persists from one execution to the next: floats, integers, or half of a cache. It is zero at
    /// first.
    pub fn state(&mut self, name: &str, ty: TensorType) -> Tensor {
        self.add_tensor(name, ty, Role::State, None)
    }

    /// Both halves of a cache, `batch × kv_heads × max_seq_len × head_dim`: states `name.k` and `name.v`.
    pub fn kv_cache(&mut self, name: &str, ty: TensorType) -> KvCache {
        KvCache { k: self.state(&format!("{name}.k"), ty), v: self.state(&format!("{name}.v"), ty) }
    }

    /// Marks a tensor that a node makes as an output: the host reads it after each execution, by its name.
    ///
    /// # Errors
    ///
    /// [`GraphError::NoOutput`] for a tensor that no node makes, and for a state, which the host can read anyway;
    /// [`GraphError::OtherGraph`] for a tensor of another graph.
    pub fn output(&mut self, tensor: Tensor) -> Result<(), GraphError> {
        let TensorInfo { role, name, .. } = self.info(tensor)?;
        if !matches!(role, Role::Intermediate | Role::Output) {
            return Err(GraphError::NoOutput { tensor: name.clone(), role: *role });
        }
        self.tensors[tensor.index()].role = Role::Output;
        Ok(())
    }

    /// Adds a node, and returns its outputs.
    ///
    /// # Errors
    ///
    /// [`GraphError::Op`] if the op does not accept the inputs, [`GraphError::Foreign`] for tensors of another graph,
    /// and for changes of states [`GraphError::NoState`] and [`GraphError::ChangedTwice`].
    pub fn node(&mut self, name: &str, op: TensorOp, inputs: &[Tensor]) -> Result<Vec<Tensor>, GraphError> {
        let types = self.inferred(name, &op, inputs)?;
        let states = self.states_changed(name, &op, inputs)?;
        let several = types.len() > 1;
        let outputs: Vec<Tensor> = (types.into_iter().enumerate())
            .map(|(i, ty)| {
                let own = if several { format!("{name}.{i}") } else { name.into() };
                match states.get(i) {
                    Some(&state) => self.add_tensor(&own, ty, Role::State, Some(state)),
                    None => self.add_tensor(&own, ty, Role::Intermediate, None),
                }
            })
            .collect();
        self.nodes.push(Node { name: name.into(), op, inputs: inputs.into(), outputs: outputs.clone() });
        Ok(outputs)
    }

    /// Types of what a node makes of its inputs.
    fn inferred(&self, name: &str, op: &TensorOp, inputs: &[Tensor]) -> Result<Vec<TensorType>, GraphError> {
        let foreign = |index| GraphError::Foreign { node: name.into(), index };
        let types = inputs.iter().enumerate().map(|(i, &tensor)| self.ty(tensor).map_err(|_| foreign(i)));
        let types: Vec<TensorType> = types.collect::<Result<_, _>>()?;
        let op_error = |error| GraphError::Op { node: name.into(), op: op.name(), error: Box::new(error) };
        infer(op, &types).map_err(op_error)
    }

    /// The states that a node would change: those of its first inputs, which become its first outputs.
    fn states_changed(
        &self,
        name: &str,
        op: &TensorOp,
        inputs: &[Tensor],
    ) -> Result<Vec<Tensor>, GraphError> {
        let mut states = Vec::new();
        for (input, _) in op.changes(inputs.len()) {
            let (node, op, tensor) = (String::from(name), op.name(), inputs[input]);
            let info = self.info(tensor)?;
            let Some(state) = info.root(tensor) else {
                return Err(GraphError::NoState { node, op, tensor: info.name.clone() });
            };
            if states.contains(&state) {
                let state = self.tensors[state.index()].name.clone();
                return Err(GraphError::ChangedTwice { node, op, state });
            }
            states.push(state);
        }
        Ok(states)
    }

    /// An order in which the nodes can run: the order in which they were added, except that nodes which read a version
    /// of a state come before the node that makes the next version.
    ///
    /// # Errors
    ///
    /// Whatever [`check`](Self::check) finds.
    pub fn order(&self) -> Result<Vec<NodeId>, GraphError> {
        super::check::check(self)?;
        super::order::order(self)
    }

    /// Whether the graph can be run. A node's inputs were checked when it was added; this checks the whole graph:
    ///
    /// - inputs, weights, states and outputs have unique names, and so have nodes;
    /// - inputs, weights and states have elements that their role allows, and at least one;
    /// - no version of a state is changed twice;
    /// - nodes do not wait for one another in a cycle.
    pub fn check(&self) -> Result<(), GraphError> {
        self.order().map(drop)
    }
}
