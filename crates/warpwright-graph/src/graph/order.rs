//! An order in which nodes can run.

use super::build::{ComputeGraph, NodeId};
use super::error::GraphError;
use super::tensor::{Role, Tensor};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// See [`ComputeGraph::order`].
pub(super) fn order(graph: &ComputeGraph) -> Result<Vec<NodeId>, GraphError> {
    let nodes = graph.nodes();
    let makers = makers(graph)?;
    let waits = waits(graph, &makers)?;
    let mut missing: Vec<usize> = vec![0; nodes.len()];
    let mut unlocks: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for &(before, after) in &waits {
        missing[after] += 1;
        unlocks[before].push(after);
    }
    // Of the nodes that can run, that which was added first.
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..nodes.len()).filter(|&node| missing[node] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(Reverse(node)) = ready.pop() {
        order.push(NodeId(node as u32));
        for &after in &unlocks[node] {
            missing[after] -= 1;
            if missing[after] == 0 {
                ready.push(Reverse(after));
            }
        }
    }
    if order.len() < nodes.len() {
        return Err(GraphError::Cycle { nodes: cycle(graph, &waits, &missing) });
    }
    Ok(order)
}

/// What makes each tensor; each is made once, and outputs are.
fn makers(graph: &ComputeGraph) -> Result<HashMap<Tensor, usize>, GraphError> {
    let mut makers: HashMap<Tensor, usize> = HashMap::new();
    for (i, node) in graph.nodes().iter().enumerate() {
        for &tensor in &node.outputs {
            let info = &graph.tensors()[tensor.index()];
            let by = match makers.insert(tensor, i) {
                Some(first) => format!("node `{}`", graph.nodes()[first].name),
                None if info.is_given() => "the host".into(),
                None => continue,
            };
            return Err(GraphError::MadeTwice { node: node.name.clone(), tensor: info.name.clone(), by });
        }
    }
    let mut outputs = graph.handles().zip(graph.tensors()).filter(|(_, info)| info.role == Role::Output);
    match outputs.find(|(tensor, _)| !makers.contains_key(tensor)) {
        Some((_, info)) => Err(GraphError::MissingOutput { tensor: info.name.clone() }),
        None => Ok(makers),
    }
}

/// Which nodes come before which: makers before users, and users of a version of a state before the node that
/// makes the next one.
fn waits(graph: &ComputeGraph, makers: &HashMap<Tensor, usize>) -> Result<Vec<(usize, usize)>, GraphError> {
    let nodes = graph.nodes();
    let mut waits = Vec::new();
    let mut changer: HashMap<Tensor, usize> = HashMap::new();
    for (i, node) in nodes.iter().enumerate() {
        for &tensor in &node.inputs {
            match makers.get(&tensor) {
                Some(&maker) => waits.push((maker, i)),
                None if graph.tensors()[tensor.index()].is_given() => {}
                None => {
                    return Err(GraphError::Missing {
                        node: node.name.clone(),
                        op: node.op.name(),
                        tensor: graph.tensors()[tensor.index()].name.clone(),
                    });
                }
            }
        }
        for (input, _) in node.op.changes(node.inputs.len()) {
            if let Some(first) = changer.insert(node.inputs[input], i) {
                return Err(GraphError::Forked {
                    state: graph.tensors()[node.inputs[input].index()].name.clone(),
                    first: nodes[first].name.clone(),
                    second: node.name.clone(),
                });
            }
        }
    }
    for (i, node) in nodes.iter().enumerate() {
        for tensor in &node.inputs {
            if let Some(&next) = changer.get(tensor)
                && next != i
            {
                waits.push((i, next));
            }
        }
    }
    Ok(waits)
}

/// Nodes that wait for one another: from any that is left, backwards until one comes again.
fn cycle(graph: &ComputeGraph, waits: &[(usize, usize)], missing: &[usize]) -> Vec<String> {
    let mut path: Vec<usize> = missing.iter().position(|&count| count > 0).into_iter().collect();
    while let Some(&last) = path.last() {
        let before = waits.iter().find(|&&(before, after)| after == last && missing[before] > 0);
        let Some(&(before, _)) = before else { break };
        if let Some(start) = path.iter().position(|&node| node == before) {
            path.drain(..start);
            break;
        }
        path.push(before);
    }
    path.reverse();
    path.into_iter().map(|node| graph.nodes()[node].name.clone()).collect()
}
