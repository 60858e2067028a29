//! What a graph means: a plain executor in `f64`, to hold plans to.
//!
//! It walks the nodes in the graph's order, one after the other, and knows neither steps nor kernels. It is written to
//! be read, not to be fast. Nothing is rounded but what a tensor's elements cannot hold: `f16` and `bf16`, and rows
//! of a KV cache as its type says. `f32` is not rounded: what a device's `f32` makes of a graph is what is held
//! against this.

#![allow(dead_code, unused_imports, reason = "each test takes what it needs")]

mod attention;
mod error;
mod memory;
mod ops;
mod rope;
pub(crate) mod sampling;
mod value;
mod weights;

pub(crate) use error::ReferenceError;
pub(crate) use memory::Memory;
pub(crate) use sampling::{Draw, Settings, draw, probabilities};
pub(crate) use value::Value;
pub(crate) use warpwright_qualify::common::activation::Exact;
pub(crate) use weights::dequantize;

use std::collections::HashMap;
use warpwright_graph::{ComputeGraph, Node, NodeId, Role, Tensor};

/// What a graph makes of its inputs, its weights and its states; these are changed as it says. Gives the outputs by
/// name.
///
/// # Errors
///
/// [`ReferenceError`] for graphs that cannot be run, and for weights, inputs and states that are missing or that are not
/// of their type. States are then as they were.
pub(crate) fn execute(
    graph: &ComputeGraph,
    memory: &mut Memory,
    inputs: &HashMap<String, Value>,
) -> Result<HashMap<String, Value>, ReferenceError> {
    execute_with(graph, memory, inputs, |_| {})
}

/// What a node took and made.
#[derive(Debug)]
pub(crate) struct Executed<'a> {
    /// The node's number.
    pub(crate) id: NodeId,
    /// The node.
    pub(crate) node: &'a Node,
    /// What it took.
    pub(crate) inputs: &'a [&'a Value],
    /// What it made. What this is changed to is what the nodes after it take.
    pub(crate) outputs: &'a mut [Value],
}

/// The same, and each node is shown as it has been executed: to compare with what a device has made of it, or to
/// see what becomes of an error.
///
/// # Errors
///
/// Those of [`execute`], and [`ReferenceError::Value`] where what a node made was changed to what is not of its type.
pub(crate) fn execute_with(
    graph: &ComputeGraph,
    memory: &mut Memory,
    inputs: &HashMap<String, Value>,
    mut see: impl FnMut(Executed<'_>),
) -> Result<HashMap<String, Value>, ReferenceError> {
    let order = graph.order()?;
    let mut values: HashMap<Tensor, Value> = HashMap::new();
    for (tensor, info) in graph.handles().zip(graph.tensors()) {
        let missing = || ReferenceError::Missing { role: info.role, name: info.name.clone() };
        let value = match info.role {
            Role::Input => inputs.get(&info.name).ok_or_else(missing)?.clone().held(info.ty.element),
            Role::State if info.state.is_none() => memory.state_of(&info.name, info.ty)?,
            _ => continue,
        };
        value.check(&info.name, info.ty)?;
        values.insert(tensor, value);
    }
    for id in order {
        let node = &graph.nodes()[id.index()];
        let types = node.inputs.iter().map(|&tensor| graph.ty(tensor)).collect::<Result<Vec<_>, _>>()?;
        let taken = (node.inputs.iter())
            .map(|&tensor| match values.get(&tensor) {
                Some(value) => Ok(value),
                None => memory.weight_of(graph.info(tensor)?),
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut made = ops::compute(node, &types, &taken)?;
        see(Executed { id, node, inputs: &taken, outputs: &mut made });
        for (&tensor, value) in node.outputs.iter().zip(made) {
            let info = graph.info(tensor)?;
            value.check(&info.name, info.ty)?;
            values.insert(tensor, value.held(info.ty.element));
        }
    }
    keep_states(graph, memory, &values);
    let outputs = graph.handles().zip(graph.tensors()).filter(|(_, info)| info.role == Role::Output);
    Ok(outputs.filter_map(|(tensor, info)| Some((info.name.clone(), values.remove(&tensor)?))).collect())
}

/// States become their last versions: those that no node changes.
fn keep_states(graph: &ComputeGraph, memory: &mut Memory, values: &HashMap<Tensor, Value>) {
    let changed = |node: &Node| -> Vec<Tensor> {
        node.op.changes(node.inputs.len()).map(|(input, _)| node.inputs[input]).collect()
    };
    let before: Vec<Tensor> = graph.nodes().iter().flat_map(changed).collect();
    for (tensor, info) in graph.handles().zip(graph.tensors()) {
        if info.role != Role::State || before.contains(&tensor) {
            continue;
        }
        let state = graph.tensors().get(info.state.unwrap_or(tensor).index());
        if let (Some(state), Some(value)) = (state, values.get(&tensor)) {
            memory.keep(&state.name, state.ty, value.clone());
        }
    }
}
