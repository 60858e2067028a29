//! The steps that compute a graph.
//!
//! A [`Program`] has the graph's tensors, and steps instead of nodes: one for each node at first. Passes merge steps,
//! and add tensors and steps that only a method of computation needs, such as activations as `int8`. A step is a form
//! for which a kernel may exist; it computes the same as its nodes, up to rounding.

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

/// Steps that compute a graph, in an executable order.
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
    /// If the graph has no such node.
    pub fn node(&self, id: NodeId) -> (&str, TensorOp) {
        let (name, op) = &self.nodes[id.index()];
        (name, *op)
    }

    /// Whether a tensor belongs to this program.
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

    /// The maker and the readers of each tensor, as indices of steps.
    pub fn uses(&self) -> Uses {
        Uses::of(&self.steps, self.tensors.len())
    }

    /// Properties of the tensors: those of the graph, then those that passes have added.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// Handles of all tensors.
    pub fn handles(&self) -> impl Iterator<Item = Tensor> + use<> {
        let graph = self.graph;
        (0..self.tensors.len() as u32).map(move |index| Tensor { graph, index })
    }

    /// Properties of a tensor of this program.
    ///
    /// # Panics
    ///
    /// If the tensor belongs to another graph.
    pub fn info(&self, tensor: Tensor) -> &TensorInfo {
        assert_eq!(tensor.graph, self.graph, "the tensor is of another graph");
        &self.tensors[tensor.index()]
    }

    /// Elements and shape of a tensor of this program.
    ///
    /// # Panics
    ///
    /// If the tensor belongs to another graph.
    pub fn ty(&self, tensor: Tensor) -> TensorType {
        self.info(tensor).ty
    }

    /// The tensor that owns a tensor's memory: for a version of a state the state, otherwise the tensor itself.
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
