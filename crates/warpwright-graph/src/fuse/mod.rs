//! Fusion: merges the work of several nodes into one step if the dispatcher has a kernel for it.
//!
//! Each fusion is a pass in its own file. It looks for steps that a [`StepOp`] could do at once, builds that step and
//! asks the dispatcher; an accepted step replaces its parts. A pass only defines how to merge the work of the parts.
//! The program's schedule decides for all passes whether a merged tensor has other readers, and whether the steps can
//! be ordered around the new one.
//!
//! | fusion | from | to |
//! | --- | --- | --- |
//! | `glu` | gate and up products of one input, `activation(gate) · up` as one node or as two | one step with both matrices |
//! | `shared_products` | products of one input | one step with all matrices, or as few as are accepted |
//! | `residual` | a product, and the sum of its result and another tensor | a product with a residual |
//! | `norm_product` | a norm, and the only step of products that takes it | products that norm |
//! | `rope_append` | rotations of `q` and `k`, the write of `k` and `v` into the cache | one step |
//! | `head_norm_rope` | norms of heads, and the rotation that takes them | a rotation that norms |
//!
//! The order matters. A pair of gate and up is found before all products of their input are gathered, because a launch
//! with a gate has no room for other products. Products are gathered before their norm joins them, because a norm joins
//! one step only. Rotations merge before their norms join them, because kernels norm both or none. Passes repeat until
//! none of them changes anything, so fusing a fused program changes nothing.
//!
//! The passes do not depend on kernels: the dispatcher decides how many matrices a launch may have, and of which
//! formats.

mod glu;
mod head_norm_rope;
mod norm_product;
mod residual;
mod rope_append;
mod shared_products;

use crate::graph::{NodeId, Tensor};
use crate::options::{Fusion, Fusions};
use crate::program::{Program, Schedule, StepOp, Uses};
use std::mem;

/// Whether a dispatcher accepts a step that a fusion would form. The program is the one before fusion, for the types of
/// tensors.
pub type Accepts<'a> = dyn Fn(Fusion, &StepOp, &Program) -> bool + 'a;

/// A step that a fusion has formed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Formed {
    /// The fusion.
    pub fusion: Fusion,
    /// The nodes whose work the step did at that time, in the graph's order. Another fusion may have extended the step.
    pub nodes: Vec<NodeId>,
}

/// Forms the fusions of a set as far as they are accepted, and returns those that were formed, in order.
///
/// The computation does not change: outputs and states are made, and each node's work is done once.
/// [`Fusion::Quantize`] is not formed here: it is a choice among kernels.
pub fn fuse(program: &mut Program, fusions: Fusions, accepts: &Accepts<'_>) -> Vec<Formed> {
    let steps = program.steps().to_vec();
    let schedule = Schedule::new(program.tensors(), steps);
    let mut work = Work { program, schedule, accepts, formed: Vec::new() };
    let passes = [
        (Fusion::Glu, glu::form as fn(&mut Work<'_>)),
        (Fusion::SharedProducts, shared_products::form),
        (Fusion::Residual, residual::form),
        (Fusion::NormProduct, norm_product::form),
        (Fusion::RopeAppend, rope_append::form),
        (Fusion::HeadNormRope, head_norm_rope::form),
    ];
    loop {
        let before = work.formed.len();
        for (fusion, form) in passes {
            if fusions.contains(fusion) {
                form(&mut work);
            }
        }
        if work.formed.len() == before {
            break;
        }
    }
    let formed = mem::take(&mut work.formed);
    let steps = work.schedule.into_steps();
    *program.steps_mut() = steps;
    formed
}

/// A program while it is fused.
struct Work<'a> {
    program: &'a Program,
    schedule: Schedule<'a>,
    accepts: &'a Accepts<'a>,
    formed: Vec<Formed>,
}

impl Work<'_> {
    /// Places of steps; some may be gaps.
    fn places(&self) -> std::ops::Range<usize> {
        0..self.schedule.len()
    }

    fn op(&self, place: usize) -> Option<&StepOp> {
        self.schedule.op(place)
    }

    fn uses(&self) -> &Uses {
        self.schedule.uses()
    }

    /// What makes a tensor that is read in one place: if its maker and its reader are merged, no step needs it.
    /// Whether the host does is the schedule's to know.
    fn maker_of_inner(&self, tensor: Tensor) -> Option<(usize, &StepOp)> {
        self.uses().sole_reader(tensor)?;
        let place = self.uses().maker(tensor)?;
        Some((place, self.op(place)?))
    }

    /// Puts a step in the stead of others, if it can do what they do and is accepted. Gives its place.
    fn try_merge(&mut self, fusion: Fusion, parts: &[usize], op: StepOp) -> Option<usize> {
        let mut parts = parts.to_vec();
        parts.sort_unstable();
        parts.dedup();
        if !self.schedule.can_merge(&parts, &op) || !(self.accepts)(fusion, &op, self.program) {
            return None;
        }
        let place = self.schedule.merge(&parts, op)?;
        self.formed.push(Formed { fusion, nodes: self.schedule.nodes(&[place]) });
        Some(place)
    }
}
