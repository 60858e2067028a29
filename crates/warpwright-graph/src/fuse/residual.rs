//! A product adds the residual to its result.
//!
//! Either product can take the sum of two products. The later one is tried first, because the result of the other one
//! exists by then.

use super::Work;
use crate::graph::Tensor;
use crate::options::Fusion;
use crate::program::{Pointwise, Products, StepOp};
use std::cmp::Reverse;

pub(super) fn form(work: &mut Work<'_>) {
    for place in work.places() {
        let Some(&StepOp::Elementwise { op: Pointwise::Add, a, b: Some(b), out }) = work.op(place) else {
            continue;
        };
        let mut ways = [(a, b), (b, a)];
        ways.sort_by_key(|&(product, _)| Reverse(work.uses().maker(product)));
        for (product, residual) in ways {
            if let Some((maker, products)) = with_residual(work, product, residual, out)
                && work.try_merge(Fusion::Residual, &[maker, place], StepOp::Products(products)).is_some()
            {
                break;
            }
        }
    }
}

/// The step that makes `product`, if that is a product which nothing is added to yet, making `out` of it.
fn with_residual(
    work: &Work<'_>,
    product: Tensor,
    residual: Tensor,
    out: Tensor,
) -> Option<(usize, Products)> {
    let (maker, StepOp::Products(step)) = work.maker_of_inner(product)? else { return None };
    let mut step = step.clone();
    let matrix = step.matrices.iter_mut().find(|matrix| matrix.out == Some(product))?;
    if matrix.residual.is_some() || step.activations.is_some() {
        return None;
    }
    (matrix.residual, matrix.out) = (Some(residual), Some(out));
    Some((maker, step))
}
