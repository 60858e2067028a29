//! An order in which nodes can run.

use super::build::{ComputeGraph, NodeId};
use super::error::GraphError;
use super::tensor::Tensor;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// See [`ComputeGraph::order`].
pub(super) fn order(graph: &ComputeGraph) -> Result<Vec<NodeId>, GraphError> {
    let nodes = graph.nodes();
    let waits = waits(graph)?;
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

/// Which nodes come before which: makers before users, and users of a version of a state before the node that
/// makes the next one.
fn waits(graph: &ComputeGraph) -> Result<Vec<(usize, usize)>, GraphError> {
    let nodes = graph.nodes();
    let mut waits = Vec::new();
    // Nodes take what those before them make.
    let mut makers: HashMap<Tensor, usize> = HashMap::new();
    let mut changer: HashMap<Tensor, usize> = HashMap::new();
    for (i, node) in nodes.iter().enumerate() {
        waits.extend(node.inputs.iter().filter_map(|tensor| Some((*makers.get(tensor)?, i))));
        makers.extend(node.outputs.iter().map(|&tensor| (tensor, i)));
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
