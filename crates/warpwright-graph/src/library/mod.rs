//! The kernel library as a dispatcher: whether it has a kernel for a step, which one, and its arguments.
//!
//! | step | kernel |
//! | --- | --- |
//! | products, up to eight tokens | [`QuantGemv`], with its norm |
//! | products, more tokens | [`ScaleRows`] once for their activations, then [`QuantGemm`] or [`Gemm`]; [`QuantGemv`] eight tokens at a time where there is no such kernel |
//! | norm | [`RmsNorm`] |
//! | rope, append | [`Rope`], whole or in parts |
//! | attention, decode | [`IncrementalAttention`], lengths in memory, split by what the cache has room for |
//! | attention, prefill | [`FlashAttention`], lengths in memory; a `q8_0` cache is first made `f16` by [`Cast`] |
//! | embedding, select rows | [`Embedding`] |
//! | add, mul, an activation, glu | [`Elementwise`] |
//! | resize heads | [`ResizeRows`] |
//! | penalties | a copy of the logits, and [`Penalties`] |
//! | softmax, cast, quantize, argmax, sample, advance | the kernel of that name |
//! | assign, a cast to the same type | a copy |
//!
//! The library chooses by shapes, formats and [`PlanOptions`] alone. It does not depend on memory or devices: launches
//! name tensors. The kernel itself validates its configuration in [`check`](warpwright_dsl::Kernel::check).
//!
//! [`QuantGemv`]: warpwright_kernels::QuantGemv
//! [`ScaleRows`]: warpwright_kernels::ScaleRows
//! [`QuantGemm`]: warpwright_kernels::QuantGemm
//! [`Gemm`]: warpwright_kernels::Gemm
//! [`RmsNorm`]: warpwright_kernels::RmsNorm
//! [`Rope`]: warpwright_kernels::Rope
//! [`IncrementalAttention`]: warpwright_kernels::IncrementalAttention
//! [`FlashAttention`]: warpwright_kernels::FlashAttention
//! [`Cast`]: warpwright_kernels::Cast
//! [`Embedding`]: warpwright_kernels::Embedding
//! [`Penalties`]: warpwright_kernels::Penalties
//! [`Elementwise`]: warpwright_kernels::Elementwise
//! [`ResizeRows`]: warpwright_kernels::ResizeRows

mod accepts;
mod attention;
mod choose;
mod gemm;
mod kernels;
mod lowering;
mod products;
mod rope;
mod rows;

pub use accepts::accepts;
pub use choose::choose;

use crate::launch::{PlanError, PlannedStep, Scratch, WeightLayout};
use crate::options::PlanOptions;
use crate::program::{Family, Program, Step, StepOp};
use kernels::Kernels;
use lowering::{Lowering, Result};
use warpwright_kernels::tune::Table;

/// The launches of a program.
#[derive(Clone, Debug, Default)]
pub struct Lowered {
    /// The actions of each step, in the program's order.
    pub steps: Vec<PlannedStep>,
    /// Memory that the launches need in addition to tensors.
    pub scratch: Vec<Scratch>,
    /// The choices made for the device.
    pub choices: Table,
}

/// The launches of each step, except for steps of overridden families.
///
/// # Errors
///
/// A step that the library has no kernel for is [`PlanError::Unsupported`].
pub fn lower(
    program: &Program,
    options: &PlanOptions,
    overridden: &dyn Fn(Family) -> bool,
) -> std::result::Result<Lowered, PlanError> {
    let mut kernels = Kernels::default();
    let mut lowered = Lowered::default();
    for (i, step) in program.steps().iter().enumerate() {
        if overridden(step.op.family()) {
            lowered.steps.push(PlannedStep { actions: Vec::new(), overridden: true });
            continue;
        }
        let kept = (&mut lowered.scratch, &mut lowered.choices);
        let mut lowering = Lowering::new(program, options, i, &mut kernels, kept);
        let launches = launches(step, &mut lowering);
        let actions = lowering.finish();
        launches.map_err(|reason| PlanError::Unsupported {
            nodes: step.nodes.iter().map(|&node| program.node(node).0.to_owned()).collect(),
            step: step.op.name(),
            reason,
        })?;
        lowered.steps.push(PlannedStep { actions, overridden: false });
    }
    Ok(lowered)
}

/// How weights lie that the library's kernels of a family read.
pub(crate) fn layout(family: Family) -> WeightLayout {
    if family == Family::Rows { WeightLayout::Rows } else { WeightLayout::Planes }
}

fn launches(step: &Step, lowering: &mut Lowering<'_>) -> Result<()> {
    match step.op {
        StepOp::Embedding { table, ids, out } => rows::embedding(lowering, table, ids, out),
        StepOp::SelectRows { x, rows, out } => rows::select_rows(lowering, x, rows, out),
        StepOp::Products(ref products) => products::lower(lowering, products),
        StepOp::Norm(ref norm) => rows::norm(lowering, norm),
        StepOp::Rope(ref rope) => rope::lower(lowering, rope),
        StepOp::Attention(ref attention) => attention::lower(lowering, attention),
        StepOp::Elementwise { op, a, b, out } => rows::elementwise(lowering, op, a, b, out),
        StepOp::SoftMax { x, out } => rows::softmax(lowering, x, out),
        StepOp::Cast { x, out } => rows::cast(lowering, x, out),
        StepOp::ResizeHeads { from, to, x, out } => rows::resize(lowering, [from, to], x, out),
        StepOp::Quantize { x, out } => rows::quantize(lowering, x, out),
        StepOp::Scale { x, out } => gemm::scale(lowering, x, out),
        StepOp::ArgMax { x, out } => rows::argmax(lowering, x, out),
        StepOp::Penalties(ref penalties) => rows::penalties(lowering, penalties),
        StepOp::Sample { ref params, logits, seeds, steps, ref settings, out } => {
            rows::sample(lowering, params, [logits, seeds, steps], settings, out)
        }
        StepOp::Advance { ref counters } => rows::advance(lowering, counters),
        StepOp::Assign { state, value, out } => {
            // What a state is already need not be copied over itself.
            if lowering.program.root(value) != lowering.program.root(state) {
                lowering.copy(value, out);
            }
            Ok(())
        }
    }
}
