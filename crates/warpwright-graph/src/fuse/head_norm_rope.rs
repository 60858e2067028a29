//! A rotation normalises the heads first.
//!
//! Kernels normalise both queries and keys or neither. Both norms join the rotation at once if they can; otherwise a
//! single one may.

use super::Work;
use crate::graph::Tensor;
use crate::options::Fusion;
use crate::program::{Append, HeadNorm, RopeStep, Rotate, StepOp};

pub(super) fn form(work: &mut Work<'_>) {
    for place in work.places() {
        // With both joined, there is none left to join.
        while join(work, place) {}
    }
}

/// A norm of heads, with what it takes and where it is.
struct Normed {
    place: usize,
    x: Tensor,
    norm: HeadNorm,
}

fn join(work: &mut Work<'_>, place: usize) -> bool {
    let Some(StepOp::Rope(step)) = work.op(place) else { return false };
    let Some(params) = step.params else { return false };
    let step = step.clone();
    let normed = |x: Tensor, has: Option<Tensor>| -> Option<Normed> {
        let (place, StepOp::Norm(norm)) = work.maker_of_inner(x).filter(|_| has.is_none())? else {
            return None;
        };
        let fits = norm.d == params.head_dim && norm.quants.is_none();
        let epsilons = step.epsilon.is_none_or(|epsilon| epsilon == norm.norm.epsilon);
        (fits && epsilons).then_some(Normed { place, x: norm.x, norm: norm.norm })
    };
    let q = step.rotate.and_then(|rotate| normed(rotate.x, rotate.norm));
    let k = step.append.and_then(|append| normed(append.k, append.k_norm));
    let ways = match (&q, &k) {
        (Some(one), Some(other)) if one.norm.epsilon == other.norm.epsilon => {
            vec![(Some(one), Some(other)), (Some(one), None), (None, Some(other))]
        }
        _ => vec![(q.as_ref(), None), (None, k.as_ref())],
    };
    ways.into_iter().any(|(q, k)| {
        let Some((parts, op)) = with_norms(&step, place, q, k) else { return false };
        work.try_merge(Fusion::HeadNormRope, &parts, StepOp::Rope(op)).is_some()
    })
}

/// The rotation with such norms.
fn with_norms(
    step: &RopeStep,
    place: usize,
    q: Option<&Normed>,
    k: Option<&Normed>,
) -> Option<(Vec<usize>, RopeStep)> {
    let epsilon = Some(q.or(k)?.norm.epsilon);
    let mut op = RopeStep { epsilon, ..step.clone() };
    if let Some(Normed { x, norm, .. }) = q {
        op.rotate = op.rotate.map(|rotate| Rotate { x: *x, norm: Some(norm.weight), ..rotate });
    }
    if let Some(Normed { x, norm, .. }) = k {
        op.append = op.append.map(|append| Append { k: *x, k_norm: Some(norm.weight), ..append });
    }
    Some((q.into_iter().chain(k).map(|normed| normed.place).chain([place]).collect(), op))
}
