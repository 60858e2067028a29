//! Products normalise their activations.
//!
//! A norm joins its reader if that is a single step of products. A norm with several readers stays a step of its own
//! and is done once.

use super::Work;
use crate::graph::Element;
use crate::options::Fusion;
use crate::program::{Products, StepOp};

pub(super) fn form(work: &mut Work<'_>) {
    for place in work.places() {
        if let Some((norm, products)) = normed(work, place) {
            work.try_merge(Fusion::NormProduct, &[norm, place], StepOp::Products(products));
        }
    }
}

/// The products at a place with the norm of their activations, and where that is.
fn normed(work: &Work<'_>, place: usize) -> Option<(usize, Products)> {
    let StepOp::Products(step) = work.op(place)? else { return None };
    if step.norm.is_some() || step.activations.is_some() {
        return None;
    }
    let (maker, StepOp::Norm(norm)) = work.maker_of_inner(step.x)? else { return None };
    // A norm of heads has rows of another length.
    let ty = work.program.ty(norm.x);
    if norm.quants.is_some() || norm.d != ty.shape.columns() || ty.element != Element::F32 {
        return None;
    }
    Some((maker, Products { x: norm.x, norm: Some(norm.norm), ..step.clone() }))
}
