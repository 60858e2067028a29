//! Mistakes that a fusion could make, planted into the graph that the device runs: each must be seen.

use crate::case::Case;
use crate::device::{Mode, follow};
use crate::trace::Trace;
use std::collections::HashMap;
use warpwright_graph::{Arithmetic, ComputeGraph, Role, Tensor};

/// What it is, the node, and what that takes instead: which inputs, by name.
type Mistake = (&'static str, &'static str, &'static [(usize, &'static str)]);

/// The graph, but that a node takes other tensors, by name.
fn changed(graph: &ComputeGraph, node: &str, inputs: &[(usize, &str)]) -> ComputeGraph {
    let mut copy = ComputeGraph::new();
    let mut tensors: HashMap<Tensor, Tensor> = HashMap::new();
    for (info, tensor) in graph.tensors().iter().zip(graph.handles()) {
        let given = match (info.role, info.state) {
            (Role::Input, _) => copy.input(&info.name, info.ty),
            (Role::Weight, _) => copy.weight(&info.name, info.ty),
            (Role::State, None) => copy.state(&info.name, info.ty),
            _ => continue,
        };
        tensors.insert(tensor, given);
    }
    let named = |name: &str| {
        let found = graph.handles().zip(graph.tensors()).find(|(_, info)| info.name == name);
        found.unwrap_or_else(|| panic!("no tensor `{name}`")).0
    };
    for other in graph.nodes() {
        let mut taken = other.inputs.clone();
        if other.name == node {
            inputs.iter().for_each(|&(i, name)| taken[i] = named(name));
        }
        let taken: Vec<Tensor> = taken.iter().map(|tensor| tensors[tensor]).collect();
        let made = copy.node(&other.name, other.op, &taken).expect("the same types");
        for (&theirs, &own) in other.outputs.iter().zip(&made) {
            if graph.info(theirs).expect("its own").role == Role::Output {
                copy.output(own).expect("an output");
            }
            tensors.insert(theirs, own);
        }
    }
    copy
}

#[test]
fn mistakes_are_seen() {
    let case = Case::with_everything(2);
    let mistakes: [Mistake; 9] = [
        ("nothing at all", "embedding", &[]),
        ("the residual of another layer", "blk.1.attn_residual", &[(0, "embedding")]),
        ("the residual before attention", "blk.1.ffn_residual", &[(0, "blk.0.ffn_residual")]),
        ("the norm of another layer", "blk.1.ffn_norm", &[(1, "blk.0.ffn_norm.weight")]),
        ("the cache before the token", "blk.1.attention", &[(1, "blk.1.cache.k"), (2, "blk.1.cache.v")]),
        ("keys anywhere", "blk.0.rope_k", &[(1, "ids")]),
        ("keys one token on", "blk.0.rope_k", &[(1, "lengths")]),
        ("queries that do not turn", "blk.1.attention", &[(0, "blk.1.attn_q_norm")]),
        ("gate and up in each other's place", "blk.0.swiglu", &[(0, "blk.0.ffn_up"), (1, "blk.0.ffn_gate")]),
    ];
    for arithmetic in [Arithmetic::Exact, Arithmetic::Int8] {
        let trace = Trace::new(&case, arithmetic);
        for (what, node, inputs) in mistakes {
            if arithmetic == Arithmetic::Int8 && what == "keys one token on" {
                // Less than what bytes round, for the few tokens that are decoded.
                continue;
            }
            let mode = Mode { arithmetic, ..Mode::default() };
            // Prompts are as they should be.
            let found = follow(&case, &trace, mode, |graph| match graph.named("prompt") {
                None => changed(graph, node, inputs),
                Some(_) => graph.clone(),
            });
            assert_eq!(found.is_ok(), inputs.is_empty(), "{what}, {arithmetic:?}: {:?}", found.map(|_| ()));
        }
    }
}
