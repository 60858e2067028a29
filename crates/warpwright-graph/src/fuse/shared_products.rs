//! Products of one input become one step.
//!
//! As many products of an input as possible become one step: all of them if accepted, otherwise fewer, the largest
//! group first. The remaining ones are grouped in the same way. For inputs with many products (experts, layers that
//! attend to an encoder) only runs of neighbours are tried, so that the number of queries grows linearly.

use super::Work;
use crate::graph::Tensor;
use crate::options::Fusion;
use crate::program::{HeadNorm, Products, StepOp};

/// Maximum number of products of which every group is tried; of more, only runs of neighbours.
const ALL_GROUPS: usize = 8;
/// The longest run that is not all of them.
const LONGEST_RUN: usize = 16;

pub(super) fn form(work: &mut Work<'_>) {
    let mut inputs: Vec<(Tensor, Option<HeadNorm>)> = Vec::new();
    for place in work.places() {
        // Each input comes up with the first of its products.
        if let Some(step) = joinable(work, place)
            && siblings(work, step.x, step.norm).first() == Some(&place)
        {
            inputs.push((step.x, step.norm));
        }
    }
    for (x, norm) in inputs {
        let mut size = siblings(work, x, norm).len();
        while size > 1 {
            let siblings = siblings(work, x, norm);
            if !groups(siblings.len(), size).any(|group| merge(work, &siblings, &group)) {
                size = if size > ALL_GROUPS { (size - 1).min(LONGEST_RUN) } else { size - 1 };
            }
        }
    }
}

fn joinable<'a>(work: &'a Work<'_>, place: usize) -> Option<&'a Products> {
    match work.op(place)? {
        StepOp::Products(step) if step.gate.is_none() && step.activations.is_none() => Some(step),
        _ => None,
    }
}

/// The steps of products of an input that could be one, in order.
fn siblings(work: &Work<'_>, x: Tensor, norm: Option<HeadNorm>) -> Vec<usize> {
    let alike = |&place: &usize| joinable(work, place).is_some_and(|step| (step.x, step.norm) == (x, norm));
    let mut places: Vec<usize> = work.uses().readers(x).iter().copied().filter(alike).collect();
    places.sort_unstable();
    places.dedup();
    places
}

fn merge(work: &mut Work<'_>, siblings: &[usize], group: &[usize]) -> bool {
    let parts: Vec<usize> = group.iter().map(|&i| siblings[i]).collect();
    let steps: Vec<&Products> = parts.iter().filter_map(|&part| joinable(work, part)).collect();
    let Some(&first) = steps.first() else { return false };
    let matrices = steps.iter().flat_map(|step| step.matrices.iter().copied()).collect();
    let op = StepOp::Products(Products { matrices, ..first.clone() });
    work.try_merge(Fusion::SharedProducts, &parts, op).is_some()
}

/// Groups of a size out of a number of products, each in ascending order.
fn groups(count: usize, size: usize) -> Box<dyn Iterator<Item = Vec<usize>>> {
    if count <= ALL_GROUPS {
        let sets = (0..1_u32 << count).filter(move |set| set.count_ones() as usize == size);
        return Box::new(sets.map(move |set| (0..count).filter(|i| set >> i & 1 == 1).collect()));
    }
    Box::new((size..=count).map(move |end| (end - size..end).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of few all groups, of many those of neighbours; each once, and ascending.
    #[test]
    fn groups_of_a_size() {
        let of_three: Vec<_> = groups(3, 2).collect();
        assert_eq!(of_three, [[0, 1], [0, 2], [1, 2]]);
        assert_eq!((2..=8).map(|size| groups(8, size).count()).sum::<usize>(), 256 - 8 - 1);
        let runs: Vec<_> = groups(100, 98).collect();
        assert_eq!(runs.len(), 3);
        assert!(runs.iter().enumerate().all(|(first, run)| run.iter().copied().eq(first..first + 98)));
        assert_eq!(groups(1, 2).count() + groups(9, 10).count(), 0);
    }
}
