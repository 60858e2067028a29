//! A sum of neighbours, whose tiles come by asynchronous copies, one tile ahead.

use super::Day;
use warpwright_dsl::*;
use warpwright_ptx::ir::Type;
use warpwright_qualify::common::{LaunchArg, wholes};

const THREADS: u32 = 64;
/// A tile with two neighbours on either side.
const ROOM: u32 = THREADS + 4;

/// `y[i] = x[i−2] + … + x[i+2]`, what is outside being zero. Each block walks the row, a tile at a time.
fn stencil<'k>(k: K<'k>) {
    let (x, y, n) = (k.ptr::<f32>("x"), k.ptr_mut::<f32>("y"), k.scalar::<u32>("n"));
    let stages = k.shared::<f32>(2 * ROOM);
    let (t, stride) = (k.tid(), k.nctaid() * THREADS);
    let first = k.ctaid() * THREADS;
    let fetch = |tile: Reg<'k, u32>, stage: Reg<'k, u32>| {
        k.each(k.strided(ROOM), |i| {
            // Below zero it wraps, and is not below n.
            let from = tile + i - 2;
            k.cp_async_if(from.lt(n), stages.at(stage * ROOM + i), x.at(from.lt(n).select(from, 0)), 4);
        });
        k.cp_async_commit();
    };
    fetch(first, k.u32(0));
    k.fold(k.range(first..n).step(stride), k.u32(0), |tile, stage| {
        fetch(tile + stride, stage ^ 1);
        k.cp_async_wait(1);
        k.sync();
        let sum = (0..5).fold(k.f32(0.0), |sum, i| sum + stages.ld(stage * ROOM + t + i));
        y.st_if((tile + t).lt(n), tile + t, sum);
        k.sync();
        stage ^ 1
    });
}

pub(crate) fn day(n: usize) -> Day<'static> {
    let x = wholes(n, 3);
    let exact = (0..n).map(|i| x[i.saturating_sub(2)..(i + 3).min(n)].iter().sum()).collect();
    Day {
        body: stencil,
        shape: (2, THREADS),
        sm: 80,
        exact: vec![(exact, 0.0)],
        given: vec![
            LaunchArg::Input(Type::F32, x.leak()),
            LaunchArg::Output(Type::F32, n),
            LaunchArg::Scalar(n as u32),
        ],
    }
}

#[test]
fn neighbours_are_summed() {
    for n in [1, 63, 130, 777] {
        day(n).assert_right();
    }
}
