//! In which steps a graph is computed.
//!
//! A [`Program`] has the graph's tensors, and steps instead of nodes: one for each node at first. Passes
//! merge steps, and add tensors and steps that only a way of computing needs, such as activations as `int8`. A step
//! is a form for which a kernel may exist; what it does is what its nodes do, but for rounding.

mod check;
mod convert;
mod schedule;
mod step;
mod uses;

pub use check::ProgramError;
pub(crate) use schedule::Schedule;
pub use step::{
    Access, Append, AttentionStep, Family, HeadNorm, Matrix, NormStep, Operand, PenaltyStep, Pointwise,
    Products, RopeStep, Rotate, Step, StepOp,
};
pub use uses::Uses;

use crate::graph::{ComputeGraph, GraphError, NodeId, Role, Tensor, TensorInfo, TensorOp, TensorType};
use std::sync::Arc;

/// Steps that compute a graph, in an order in which they can run.
#[derive(Clone, Debug)]
pub struct Program {
    graph: u32,
    tensors: Vec<TensorInfo>,
    nodes: Arc<[(String, TensorOp)]>,
    steps: Vec<Step>,
}

impl Program {
    /// One step for each node.
    pub fn new(graph: &ComputeGraph) -> Result<Self, GraphError> {
        let order = graph.order()?;
        let id = graph.handles().next().map_or(0, |tensor| tensor.graph);
        let steps = order.into_iter().map(|id| convert::step(graph, id)).collect();
        let nodes = graph.nodes().iter().map(|node| (node.name.clone(), node.op)).collect();
        Ok(Program { graph: id, tensors: graph.tensors().to_vec(), nodes, steps })
    }

    /// Name and op of a node of the graph.
    ///
    /// # Panics
    ///
    /// Where the graph has no such node.
    pub fn node(&self, id: NodeId) -> (&str, TensorOp) {
        let (name, op) = &self.nodes[id.index()];
        (name, *op)
    }

    /// Whether a tensor is one of this program's.
    pub fn has(&self, tensor: Tensor) -> bool {
        tensor.graph == self.graph && tensor.index() < self.tensors.len()
    }

    /// The steps, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The steps, for a pass to change.
    pub(crate) fn steps_mut(&mut self) -> &mut Vec<Step> {
        &mut self.steps
    }

    /// Who makes and who reads each tensor, by the places of the steps.
    pub fn uses(&self) -> Uses {
        Uses::of(&self.steps, self.tensors.len())
    }

    /// What is known of the tensors: those of the graph, and behind them those that passes have added.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// Handles of all tensors.
    pub fn handles(&self) -> impl Iterator<Item = Tensor> + use<> {
        let graph = self.graph;
        (0..self.tensors.len() as u32).map(move |index| Tensor { graph, index })
    }

    /// What is known of a tensor of this program.
    ///
    /// # Panics
    ///
    /// Where the tensor is another graph's.
    pub fn info(&self, tensor: Tensor) -> &TensorInfo {
        assert_eq!(tensor.graph, self.graph, "the tensor is of another graph");
        &self.tensors[tensor.index()]
    }

    /// Elements and shape of a tensor of this program.
    ///
    /// # Panics
    ///
    /// Where the tensor is another graph's.
    pub fn ty(&self, tensor: Tensor) -> TensorType {
        self.info(tensor).ty
    }

    /// The tensor whose memory a tensor has: the state, of its versions; else itself.
    pub fn root(&self, tensor: Tensor) -> Tensor {
        self.info(tensor).state.unwrap_or(tensor)
    }

    /// A tensor that only this way of computing needs.
    pub(crate) fn add_tensor(&mut self, name: String, ty: TensorType) -> Tensor {
        let tensor = Tensor { graph: self.graph, index: self.tensors.len() as u32 };
        self.tensors.push(TensorInfo { name, ty, role: Role::Intermediate, state: None });
        tensor
    }
}
