//! What the warps of a block exchange, and loads that run ahead, by their numbers.

use super::{TARGETS, outputs, run_body};
use crate::common::{LaunchArg, assert_no_conflicts, wholes};
use warpwright_dsl::*;
use warpwright_ptx::ir::Type;

/// Sums over warps, in one go and in several, and each in one warp.
fn sums_over_warps_are_shared_out() {
    for (threads, at_once) in [(32, 0), (64, 1), (128, 2), (256, 4), (96, 100)] {
        let x = wholes(threads as usize * 20, 3);
        let given = [LaunchArg::Input(Type::F32, &x), LaunchArg::Output(Type::F32, 32 * 20)];
        let (found, report) = run_body(80, (1, threads), &given, |k| {
            let (x, y) = (k.ptr::<f32>("x"), k.ptr_mut::<f32>("y"));
            let vectors: Vec<[_; 4]> = (0..5).map(|i| x.ld_vec::<4>(k.tid() * 20 + i * 4)).collect();
            k.reduce_scatter(&vectors, at_once, |i, sums| y.st_vec(k.lane() * 20 + i * 4, sums));
        });
        let sum = |i: usize| (0..threads as usize / 32).map(|warp| x[warp * 640 + i]).sum::<f64>();
        assert_eq!(found[0], (0..640).map(sum).collect::<Vec<_>>(), "{threads} threads, {at_once} at once");
        assert_no_conflicts(&report, "shared out");
    }
}

/// A factor in registers and in shared memory is the same to every warp.
fn factors_are_kept_for_all_warps() {
    for sm in TARGETS {
        for held in [false, true] {
            let a = wholes(32 * 48, 1);
            let given = [LaunchArg::Input(Type::F32, &a), LaunchArg::Output(Type::F32, 3 * 32 * 8)];
            let (found, report) = run_body(sm, (1, 96), &given, |k| {
                let (a, y) = (k.ptr::<f32>("a"), k.ptr_mut::<f32>("y"));
                let tile =
                    || k.accumulators(32, 48).map_at(|row, column, _| a.ld(row * 48 + column)).as_a::<F16>();
                let kept = k.keep_a(held, [32, 48], tile);
                let ones = k.factor_b::<F16>(16, 8, 1.0);
                let first = kept.k_steps(0, 16).mma(ones, k.accumulators(32, 8));
                let sums = kept.k_steps(16, 32).mma(k.factor_b(32, 8, 2.0), first);
                sums.store(y.at(k.warp() * (32 * 8)).matrix(32, 8), 0, 0);
            });
            for (i, &found) in found[0].iter().enumerate() {
                let row = &a[i / 8 % 32 * 48..][..48];
                let exact: f64 = row.iter().enumerate().map(|(j, a)| if j < 16 { *a } else { 2.0 * a }).sum();
                assert_eq!(found, exact, "held: {held}, on sm_{sm}");
            }
            assert_no_conflicts(&report, "kept");
        }
    }
}

fn what_warps_publish_all_can_read() {
    let given = [LaunchArg::Output(Type::F32, 128 * 16), LaunchArg::Output(Type::F32, 128 * 16)];
    let found = outputs(80, (1, 128), &given, |k| {
        let (y, z) = (k.ptr_mut::<f32>("y"), k.ptr_mut::<f32>("z"));
        let own = |times: u32| k.rows_at(16, |row| (row * times + k.warp()).f32());
        let published = k.publish(16, [own(10), own(100)]);
        for row in 0..16 {
            let all = published.of_warps(k.u32(row));
            y.st(k.tid() * 16 + row, all.iter().fold(k.f32(0.0), |sum, [first, _]| sum + *first));
            let [_, second] = published.of_warp(k.warp(), k.u32(row));
            z.st(k.tid() * 16 + row, second);
        }
    });
    for (i, (&sum, &own)) in found[0].iter().zip(&found[1]).enumerate() {
        let (warp, row) = (i / 16 / 32, i % 16);
        assert_eq!([sum, own], [(40 * row + 6) as f64, (100 * row + warp) as f64]);
    }
}

/// Of the blocks of each counter one is the last, it sees what the others wrote, and counters are zero again.
fn one_block_is_the_last_to_arrive() {
    for sm in TARGETS {
        let zeros = [0.0; 2];
        let given = [
            LaunchArg::InOut(Type::U32, &zeros),
            LaunchArg::InOut(Type::U32, &[0.0; 8]),
            LaunchArg::Output(Type::U32, 2),
        ];
        let found = outputs(sm, (8, 64), &given, |k| {
            let (counters, parts) = (k.ptr_mut::<u32>("counters"), k.ptr_mut::<u32>("parts"));
            let sums = k.ptr_mut::<u32>("sums");
            let group = k.ctaid() & 1;
            k.when(k.tid().eq(3), || parts.st(k.ctaid(), k.ctaid() + 1));
            k.when(k.is_last_to_arrive(counters, group, k.u32(4)), || {
                let all = k.fold(k.range(group..k.u32(8)).step(2), k.u32(0), |i, sum| sum + parts.ld(i));
                k.when(k.tid().eq(40), || sums.st(group, all));
            });
        });
        assert_eq!(found[0], [0.0; 2], "sm_{sm}");
        assert_eq!(found[2], [16.0, 20.0], "sm_{sm}");
    }
}

/// What a lane needs for a step: one step more would be beyond the buffer.
fn row<'k>(x: Ptr<'k, Global, f32>, ahead: Ahead<'k>, before: Reg<'k, f32>) -> Reg<'k, f32> {
    x.ld_if(ahead.wanted, ahead.at * 32, before)
}

fn loads_run_a_step_ahead_and_no_further() {
    for steps in [0u32, 1, 2, 5] {
        let x = wholes(steps.max(1) as usize * 32, 8);
        let given =
            [LaunchArg::Input(Type::F32, &x), LaunchArg::Scalar(steps), LaunchArg::Output(Type::F32, 32)];
        let found = outputs(80, (1, 32), &given, |k| {
            let (x, n, y) = (k.ptr::<f32>("x"), k.scalar::<u32>("n"), k.ptr_mut::<f32>("y"));
            let sum = k.staged(
                k.range(k.u32(0)..n),
                k.f32(0.0),
                |first| row(x.at(k.lane()), first, k.f32(-1.0)),
                |ahead, before, sum| (row(x.at(k.lane()), ahead, before), sum.mul_add(2.0, before)),
            );
            y.st(k.lane(), sum);
        });
        for (lane, &found) in found[0].iter().enumerate() {
            let sum = (0..steps as usize).fold(0.0, |sum, step| 2.0 * sum + x[step * 32 + lane]);
            assert_eq!(found, sum, "{steps} steps");
        }
    }
}

crate::case_list! {
    sums_over_warps_are_shared_out,
    factors_are_kept_for_all_warps,
    what_warps_publish_all_can_read,
    one_block_is_the_last_to_arrive,
    loads_run_a_step_ahead_and_no_further,
}
