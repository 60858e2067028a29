//! Rotations of q and k and the write into the cache become one launch.
//!
//! The rotation of the queries is found through the reader of the cache: attention over the version that the keys make.
//! Both rotations must have the same parameters, positions and factors.

use super::Work;
use crate::graph::Tensor;
use crate::options::Fusion;
use crate::program::{Append, RopeStep, StepOp};

pub(super) fn form(work: &mut Work<'_>) {
    for place in work.places() {
        for (parts, op) in candidates(work, place).unwrap_or_default() {
            if work.try_merge(Fusion::RopeAppend, &parts, StepOp::Rope(op)).is_some() {
                break;
            }
        }
    }
}

/// For the way into the cache at a place, the ways to do it with the rotation of its keys and of queries.
fn candidates(work: &Work<'_>, place: usize) -> Option<Vec<([usize; 3], RopeStep)>> {
    let way = match work.op(place)? {
        StepOp::Rope(way) if way.params.is_none() && way.rotate.is_none() => way,
        _ => return None,
    };
    let append = way.append.filter(|append| append.k_norm.is_none())?;
    let (k_place, StepOp::Rope(keys)) = work.maker_of_inner(append.k)? else { return None };
    let turned = keys.rotate.filter(|_| keys.append.is_none() && keys.positions == way.positions)?;
    let joined = queries(work, &append).into_iter().filter_map(|q| {
        let q_place = work.uses().maker(q)?;
        let StepOp::Rope(queries) = work.op(q_place)? else { return None };
        let rotate = queries.rotate.filter(|_| queries.append.is_none() && q_place != k_place)?;
        let alike = (queries.params, queries.positions, queries.factors)
            == (keys.params, keys.positions, keys.factors);
        // One epsilon serves both norms, where there are any.
        let epsilons = queries.epsilon.is_none() || keys.epsilon.is_none() || queries.epsilon == keys.epsilon;
        (alike && epsilons).then_some(())?;
        let append = Append { k: turned.x, k_norm: turned.norm, ..append };
        let epsilon = queries.epsilon.or(keys.epsilon);
        let op = RopeStep { epsilon, rotate: Some(rotate), append: Some(append), ..queries.clone() };
        Some(([q_place, k_place, place], op))
    });
    Some(joined.collect())
}

/// What attends to the cache as it is afterwards.
fn queries(work: &Work<'_>, append: &Append) -> Vec<Tensor> {
    let readers = work.uses().readers(append.k_cache.1).iter();
    let mut queries: Vec<Tensor> = readers
        .filter_map(|&reader| match work.op(reader)? {
            StepOp::Attention(attention) => Some(attention.q),
            _ => None,
        })
        .collect();
    queries.dedup();
    queries
}
