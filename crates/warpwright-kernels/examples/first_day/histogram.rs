//! How many numbers fall into each bin.

use super::Day;
use warpwright_dsl::*;
use warpwright_ptx::ir::Type;
use warpwright_qualify::common::{LaunchArg, numbers};

const BINS: u32 = 40;

/// Counts the `n` numbers of 0 to 1 by `BINS` bins, first for the block in shared memory, then for the grid. `counts`
/// is added to.
fn histogram(k: K<'_>) {
    let (x, counts, n) = (k.ptr::<f32>("x"), k.ptr_mut::<u32>("counts"), k.scalar::<u32>("n"));
    let bins = k.shared::<u32>(BINS);
    k.each(k.strided(BINS), |bin| bins.st(bin, 0));
    k.sync();
    k.each(k.grid_strided(n), |i| {
        let bin = (x.ld(i) * BINS as f32).to::<u32>().min(BINS - 1);
        bins.reduce_add(bin, 1);
    });
    k.sync();
    k.each(k.strided(BINS), |bin| counts.reduce_add(bin, bins.ld(bin)));
}

pub(crate) fn day(n: usize) -> Day<'static> {
    let x: Vec<f64> = numbers(n, 2).iter().map(|x| f64::from((x * x) as f32)).collect();
    let mut counts: Vec<f64> = (0..BINS).map(f64::from).collect();
    let before = counts.clone();
    x.iter().for_each(|&x| counts[(x as f32 * BINS as f32) as usize] += 1.0);
    Day {
        body: histogram,
        shape: (3, 64),
        exact: vec![(counts, 0.0)],
        given: vec![
            LaunchArg::Input(Type::F32, x.leak()),
            LaunchArg::InOut(Type::U32, before.leak()),
            LaunchArg::Scalar(n as u32),
        ],
        ..Day::default()
    }
}

#[test]
fn numbers_are_counted() {
    for n in [0, 1, 191, 1000] {
        day(n).assert_right();
    }
}
