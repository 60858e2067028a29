//! A step for each node.

use super::step::{
    Append, AttentionStep, HeadNorm, Matrix, NormStep, PenaltyStep, Pointwise, Products, RopeStep, Rotate,
    Step, StepOp,
};
use crate::graph::{ComputeGraph, NodeId, TensorOp};

/// The step that does a node's work. How many inputs a node has was checked when it was added.
pub(super) fn step(graph: &ComputeGraph, id: NodeId) -> Step {
    let node = &graph.nodes()[id.index()];
    let (inputs, out) = (&node.inputs, node.outputs[0]);
    let input = |i: usize| inputs[i];
    let elementwise = |op| StepOp::Elementwise { op, a: input(0), b: inputs.get(1).copied(), out };
    let op = match node.op {
        TensorOp::Embedding => StepOp::Embedding { table: input(0), ids: input(1), out },
        TensorOp::SelectRows => StepOp::SelectRows { x: input(0), rows: input(1), out },
        TensorOp::MatMul { .. } => {
            let bias = inputs.get(2).copied();
            let matrix = Matrix { weight: input(1), bias, residual: None, out: Some(out) };
            let (norm, gate, activations) = (None, None, None);
            StepOp::Products(Products { x: input(0), norm, matrices: vec![matrix], gate, activations })
        }
        TensorOp::RmsNorm { epsilon } | TensorOp::HeadNorm { epsilon, .. } => {
            let norm = HeadNorm { weight: input(1), epsilon };
            let d = graph.tensors()[norm.weight.index()].ty.shape.columns();
            StepOp::Norm(NormStep { x: input(0), d, norm, out: Some(out), quants: None })
        }
        TensorOp::Add => elementwise(Pointwise::Add),
        TensorOp::Mul => elementwise(Pointwise::Mul),
        TensorOp::Activate(activation) => elementwise(Pointwise::Activate(activation)),
        TensorOp::Glu(activation) => elementwise(Pointwise::Glu(activation)),
        TensorOp::Rope(params) => StepOp::Rope(RopeStep {
            params: Some(params),
            epsilon: None,
            positions: input(1),
            factors: inputs.get(2).copied(),
            rotate: Some(Rotate { x: input(0), norm: None, out }),
            append: None,
        }),
        TensorOp::KvAppend { sequences } => StepOp::Rope(RopeStep {
            params: None,
            epsilon: None,
            positions: input(4),
            factors: None,
            rotate: None,
            append: Some(Append {
                k: input(2),
                k_norm: None,
                v: input(3),
                k_cache: (input(0), node.outputs[0]),
                v_cache: (input(1), node.outputs[1]),
                sequences,
                listed: inputs.get(5).copied(),
            }),
        }),
        TensorOp::Attention(params) => StepOp::Attention(AttentionStep {
            params,
            q: input(0),
            k_cache: input(1),
            v_cache: input(2),
            lengths: inputs[3..].to_vec(),
            out,
        }),
        TensorOp::SoftMax => StepOp::SoftMax { x: input(0), out },
        TensorOp::Cast { .. } => StepOp::Cast { x: input(0), out },
        TensorOp::ResizeHeads { from, to } => StepOp::ResizeHeads { from, to, x: input(0), out },
        TensorOp::ArgMax => StepOp::ArgMax { x: input(0), out },
        TensorOp::Penalties(params) => {
            let (newest, settings) = inputs[2..].split_at(if params.remembers { 2 } else { 0 });
            StepOp::Penalties(PenaltyStep {
                params,
                logits: input(1),
                recent: input(0),
                next: params.remembers.then_some(out),
                newest: newest.try_into().ok(),
                settings: settings.to_vec(),
                out: node.outputs[usize::from(params.remembers)],
            })
        }
        TensorOp::Sample(params) => StepOp::Sample {
            params,
            logits: input(0),
            seeds: input(1),
            steps: input(2),
            settings: inputs[3..].to_vec(),
            out,
        },
        TensorOp::Advance => {
            let counters = inputs.iter().copied().zip(node.outputs.iter().copied()).collect();
            StepOp::Advance { counters }
        }
        TensorOp::Assign => StepOp::Assign { state: input(0), value: input(1), out },
    };
    Step { op, nodes: vec![id] }
}
