//! Rows over lanes, and matrices whose rows are what is asked for, by their numbers.

use super::{TARGETS, outputs};
use crate::common::{LaunchArg, numbers, rounded, wholes};
use warpwright_dsl::*;
use warpwright_ptx::ir::Type;

/// `q·Kᵀ` by lanes, and the sums of the rows of K with the products as weights.
fn check<T: StripElement>(sm: u16, width: u32, there: u32) {
    let (heads, depth, d) = (3u32, 4u32, width as usize);
    let of_warp = |k: K<'_>| k.strips::<T>(width).rows() * depth;
    let bytes = width * T::TYPE.bytes();
    let keys = 32 / (bytes / 16).clamp(1, 32).next_power_of_two() * depth;
    let (q, x) = (wholes(3 * d, 1), wholes(keys as usize * d, 2));
    let given = [
        LaunchArg::Input(Type::F32, &q),
        LaunchArg::Input(T::TYPE, &x),
        LaunchArg::Output(Type::F32, (heads * keys) as usize),
        LaunchArg::Output(Type::F32, heads as usize * d),
    ];
    let found = outputs(sm, (1, 32), &given, |k| {
        assert_eq!(of_warp(k), keys);
        let (q, x) = (k.ptr::<f32>("q"), k.ptr::<T>("x").matrix(there, width));
        let (s, out) = (k.ptr_mut::<f32>("s"), k.ptr_mut::<f32>("out"));
        let strips = k.strips::<T>(width);
        let loaded = strips.load(x, k.u32(0), depth, None, None);
        let loaded = strips.load(x, k.lane() + 999, depth, k.lane().ge(77), Some(loaded));
        let vectors = strips.width() / 4;
        let query = |head: u32| -> Vec<_> {
            let load = |vector| {
                let (column, has) = strips.vector(vector);
                q.at(head * width).ld_vec_if::<4>(has, column, 0.0)
            };
            (0..vectors).flat_map(load).collect()
        };
        let mut parts = Vec::new();
        for query in (0..heads).map(query) {
            for key in 0..depth {
                let dot = loaded.values(key).into_iter().zip(&query);
                parts.push(dot.fold(k.f32(0.0), |sum, (x, &q)| x.mul_add(q, sum)));
            }
        }
        let scores = strips.spread(parts.len()).sum_tile(depth as usize, &parts);
        for head in 0..heads {
            let mut sums = vec![k.f32(0.0); strips.width() as usize];
            for key in 0..depth {
                let score = scores.get(head as usize, key as usize);
                s.st(strips.row() + (head * keys + key * strips.rows()), score);
                for (sum, x) in sums.iter_mut().zip(loaded.values(key)) {
                    *sum = score.mul_add(x, *sum);
                }
            }
            for (vector, sums) in (0..).zip(sums.chunks_exact(4)) {
                let (column, has) = strips.vector(k.u32(vector));
                let sums = [0, 1, 2, 3].map(|i: usize| strips.spread(1).sum_over_runs(sums[i]));
                out.st_vec_if([has, Some(strips.row().eq(0))], column + head * width, sums);
            }
        }
    });
    let row = |i: usize| if i < there as usize { x[i * d..][..d].to_vec() } else { vec![0.0; d] };
    for head in 0..heads as usize {
        let mut sums = vec![0.0; d];
        for key in 0..keys as usize {
            let score: f64 = row(key).iter().zip(&q[head * d..]).map(|(x, q)| x * q).sum();
            assert_eq!(found[0][head * keys as usize + key], score, "{} of {width} on sm_{sm}", T::TYPE);
            sums.iter_mut().zip(row(key)).for_each(|(sum, x)| *sum += score * x);
        }
        assert_eq!(found[1][head * d..][..d], sums, "{} of {width} on sm_{sm}", T::TYPE);
    }
}

fn rows_lie_over_runs_of_lanes() {
    for sm in TARGETS {
        for (width, there) in [(32, 99), (40, 3), (64, 7), (80, 99), (128, 5), (200, 2), (256, 99)] {
            check::<F16>(sm, width, there);
            check::<Bf16>(sm, width, there);
            check::<f32>(sm, width, there);
        }
    }
}

/// A softmax over the columns of all runs, by the words that both kinds of matrices have.
fn softmax<'k, M: RowWise<'k>>(scores: M, weigh: impl Fn(M::Rows, M)) {
    let weights = (scores - scores.row_max()).exp2_ftz();
    weigh(weights.row_sum(), weights + weights);
}

fn both_kinds_of_matrices_have_the_same_words() {
    for sm in TARGETS {
        let x = rounded(Type::F32, &numbers(8 * 16, 4)).iter().map(|x| x * 8.0).collect::<Vec<_>>();
        let given = [
            LaunchArg::Input(Type::F32, &x),
            LaunchArg::Output(Type::F32, 8),
            LaunchArg::Output(Type::F32, 8),
            LaunchArg::Output(Type::F32, 128),
        ];
        let found = outputs(sm, (1, 32), &given, |k| {
            let (x, y) = (k.ptr::<f32>("x"), k.ptr_mut::<f32>("y"));
            let (z, w) = (k.ptr_mut::<f32>("z"), k.ptr_mut::<f32>("w"));
            let tile = k.accumulators(8, 16).map_at(|row, column, _| x.ld(row * 16 + column));
            softmax(tile, |sums, doubled| {
                sums.each(|row, sum| y.st(row, sum));
                doubled.store(w.matrix(8, 16), 0, 0);
            });
            // Sixteen columns are four of each of four runs of eight lanes, of which one has the number.
            let run = k.lane() >> 3;
            let first = (k.lane() & 7).eq(0);
            let part = |i: u32| x.ld_if(first, i / 4 * 16 + i % 4 + run * 4, 0.0);
            let spread = k.spread(32, 8).sum_tile(4, &(0..32).map(part).collect::<Vec<_>>());
            let none = k.spread(32, 8).filled(4, -1e30).row_max();
            softmax(spread, |sums, doubled| {
                let large = doubled.any(|weight| weight.gt(1.5));
                let sums = (sums - none.max(sums - 1.0)).exp2_ftz();
                sums.each(|row, sum| z.st_if(large, row, sum));
                let negative = (doubled * sums).any(|weight| weight.lt(0.0));
                k.when(negative, || z.st(0, -1.0));
            });
        });
        for row in 0..8 {
            let scores = &x[row * 16..][..16];
            let most = scores.iter().copied().fold(f64::MIN, f64::max);
            let weights: Vec<f64> = scores.iter().map(|score| (score - most).exp2()).collect();
            let sum: f64 = weights.iter().sum();
            assert!((found[0][row] - sum).abs() < sum * 1e-6, "row {row} on sm_{sm}");
            // The spread's sums less themselves but one: two.
            assert_eq!(found[1][row], 2.0, "row {row} on sm_{sm}");
            for (found, weight) in found[2][row * 16..][..16].iter().zip(&weights) {
                assert!((found - 2.0 * weight).abs() < 1e-6, "row {row} on sm_{sm}");
            }
        }
    }
}

crate::case_list! {
    rows_lie_over_runs_of_lanes,
    both_kinds_of_matrices_have_the_same_words,
}
