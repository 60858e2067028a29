//! The eight largest numbers of each row, and where they are.

use super::Day;
use warpwright_dsl::*;
use warpwright_ptx::ir::Type;
use warpwright_qualify::common::{LaunchArg, wholes};

/// A number and its index in the row. Of equal ones the first counts as the larger.
#[derive(Clone, Copy, Carry)]
struct Candidate<'k> {
    value: Reg<'k, f32>,
    index: Reg<'k, u32>,
}

impl<'k> Candidate<'k> {
    fn above(self, other: Self) -> Reg<'k, Pred> {
        self.value.gt(other.value) | self.value.eq(other.value) & self.index.lt(other.index)
    }

    fn larger(self, other: Self) -> Self {
        other.above(self).choose(other, self)
    }
}

/// One block per row of `n` numbers, eight or more; each round takes the largest that is below the last.
fn top_8(k: K<'_>) {
    let (x, n) = (k.ptr::<f32>("x"), k.scalar::<u32>("n"));
    let x = x.at(k.ctaid() * n);
    let (values, indices) = (k.ptr_mut::<f32>("values"), k.ptr_mut::<u32>("indices"));
    let least = Candidate { value: k.f32(f32::NEG_INFINITY), index: k.u32(u32::MAX) };
    let most = Candidate { value: k.f32(f32::INFINITY), index: k.u32(0) };
    k.fold(k.range(0..8), most, |round, last| {
        let own = k.fold(k.strided(n), least, |index, best| {
            let candidate = Candidate { value: x.ld(index), index };
            (last.above(candidate) & candidate.above(best)).choose(candidate, best)
        });
        let best = k.block_reduce_by(own, Candidate::larger);
        k.when(k.tid().eq(0), || {
            values.st(k.ctaid() * 8 + round, best.value);
            indices.st(k.ctaid() * 8 + round, best.index);
        });
        best
    });
}

pub(crate) fn day(rows: usize, n: usize) -> Day<'static> {
    // With many that are equal.
    let x = wholes(rows * n, 7);
    let (mut values, mut indices) = (Vec::new(), Vec::new());
    for row in x.chunks(n) {
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
        values.extend(order[..8].iter().map(|&i| row[i]));
        indices.extend(order[..8].iter().map(|&i| i as f64));
    }
    Day {
        body: top_8,
        shape: (rows as u32, 64),
        exact: vec![(values, 0.0), (indices, 0.0)],
        given: vec![
            LaunchArg::Input(Type::F32, x.leak()),
            LaunchArg::Scalar(n as u32),
            LaunchArg::Output(Type::F32, rows * 8),
            LaunchArg::Output(Type::U32, rows * 8),
        ],
        ..Day::default()
    }
}

#[test]
fn the_largest_are_found() {
    for (rows, n) in [(2, 8), (3, 65), (1, 1001)] {
        day(rows, n).assert_right();
    }
}
