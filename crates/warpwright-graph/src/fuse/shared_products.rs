//! Products of one input are one step.
//!
//! Of the products of an input as many as can be become one step: all of them if they may, else fewer, the
//! largest group first. What is left is grouped the same way.

use super::Work;
use crate::graph::Tensor;
use crate::plan::Fusion;
use crate::program::{HeadNorm, Products, StepOp};

/// Up to so many products, every group of them is tried; of more, runs of neighbours.
const ALL_GROUPS: usize = 8;
/// The longest run.
const LONGEST_RUN: usize = 64;

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
        loop {
            let siblings = siblings(work, x, norm);
            if !groups(siblings.len()).any(|group| merge(work, &siblings, &group)) {
                break;
            }
        }
    }
}

fn joinable<'a>(work: &'a Work<'_>, place: usize) -> Option<&'a Products> {
    match work.op(place)? {
        StepOp::Products(step) if !step.swiglu && step.activations.is_none() => Some(step),
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

/// Groups of two or more out of so many, the largest first, each in ascending order.
fn groups(count: usize) -> Box<dyn Iterator<Item = Vec<usize>>> {
    if count <= ALL_GROUPS {
        let of_size = move |size: usize| {
            let sets = (0..1_u32 << count).filter(move |set| set.count_ones() as usize == size);
            sets.map(move |set| (0..count).filter(|i| set >> i & 1 == 1).collect())
        };
        return Box::new((2..=count).rev().flat_map(of_size));
    }
    let run = |size: usize, first: usize| (first..first + size).collect();
    let of_size = move |size: usize| (0..=count - size).map(move |first| run(size, first));
    Box::new((2..=count.min(LONGEST_RUN)).rev().flat_map(of_size))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each group once, ascending, from all of them down to pairs.
    #[test]
    fn groups_come_largest_first() {
        assert_eq!(groups(0).count() + groups(1).count(), 0);
        let three: Vec<_> = groups(3).collect();
        assert_eq!(three, [vec![0, 1, 2], vec![0, 1], vec![0, 2], vec![1, 2]]);
        assert_eq!(groups(8).count(), 256 - 8 - 1);
        let many: Vec<_> = groups(100).collect();
        assert_eq!((many[0].len(), many[0][0]), (LONGEST_RUN, 0));
        assert_eq!(many.last(), Some(&vec![98, 99]));
        assert!(many.is_sorted_by(|a, b| a.len() >= b.len()));
    }
}
