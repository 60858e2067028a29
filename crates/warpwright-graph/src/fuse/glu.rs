//! Gate and up products yield `activation(gate) · up`: SwiGLU, GeGLU.
//!
//! In a graph that is one node, or two: `mul(activation(gate), up)` in either order. If the products cannot take part,
//! because their results have other readers or because no kernel does such a step, the two nodes still become one step.

use super::Work;
use crate::graph::Tensor;
use crate::options::Fusion;
use crate::program::{Matrix, Pointwise, Products, StepOp};
use warpwright_kernels::Activation;

/// `out = activation(gate) · up`, and the steps that make it of the two.
struct Gated {
    activation: Activation,
    gate: Tensor,
    up: Tensor,
    out: Tensor,
    parts: Vec<usize>,
}

pub(super) fn form(work: &mut Work<'_>) {
    for place in work.places() {
        for gated in gated(work, place) {
            let Gated { activation, gate, up, out, .. } = gated;
            if let Some((parts, products)) = products(work, &gated)
                && work.try_merge(Fusion::Glu, &parts, StepOp::Products(products)).is_some()
            {
                break;
            }
            let op = StepOp::Elementwise { op: Pointwise::Glu(activation), a: gate, b: Some(up), out };
            if gated.parts.len() > 1 && work.try_merge(Fusion::Glu, &gated.parts, op).is_some() {
                break;
            }
        }
    }
}

/// The ways to see a step as the end of a gated linear unit.
fn gated(work: &Work<'_>, place: usize) -> Vec<Gated> {
    let Some(&StepOp::Elementwise { op, a, b: Some(b), out }) = work.op(place) else { return Vec::new() };
    match op {
        Pointwise::Glu(activation) => vec![Gated { activation, gate: a, up: b, out, parts: vec![place] }],
        Pointwise::Mul => [(a, b), (b, a)]
            .into_iter()
            .filter_map(|(activated, up)| match work.maker_of_inner(activated)? {
                (maker, &StepOp::Elementwise { op: Pointwise::Activate(activation), a: gate, .. }) => {
                    Some(Gated { activation, gate, up, out, parts: vec![maker, place] })
                }
                _ => None,
            })
            .collect(),
        Pointwise::Add | Pointwise::Activate(_) => Vec::new(),
    }
}

/// The products that would make it: those of gate and up, if they are of one input and for nothing else.
fn products(work: &Work<'_>, gated: &Gated) -> Option<(Vec<usize>, Products)> {
    let (gate_place, StepOp::Products(gate_step)) = work.maker_of_inner(gated.gate)? else { return None };
    let (up_place, StepOp::Products(up_step)) = work.maker_of_inner(gated.up)? else { return None };
    let matrices = if gate_place == up_place { 2 } else { 1 };
    for step in [gate_step, up_step] {
        if step.matrices.len() != matrices || step.gate.is_some() || step.activations.is_some() {
            return None;
        }
    }
    if (gate_step.x, gate_step.norm) != (up_step.x, up_step.norm) {
        return None;
    }
    let making = |step: &Products, out| -> Option<Matrix> {
        step.matrices.iter().find(|matrix| matrix.out == Some(out) && matrix.residual.is_none()).copied()
    };
    let gate = Matrix { out: Some(gated.out), ..making(gate_step, gated.gate)? };
    let up = Matrix { out: None, ..making(up_step, gated.up)? };
    let activation = Some(gated.activation);
    let products = Products { matrices: vec![gate, up], gate: activation, ..gate_step.clone() };
    Some(([gate_place, up_place].into_iter().chain(gated.parts.iter().copied()).collect(), products))
}
