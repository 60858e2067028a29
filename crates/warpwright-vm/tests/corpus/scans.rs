//! Prefix sums: in shared memory, by shuffles, with decoupled look-back, and linear recurrences.

use crate::case::{Case, Expect, File, Source, exactly, launch, source, within};
use crate::data::{Format, Rng, bytes};
use crate::reductions::dyadic;
use Format::F32;

pub(crate) const SOURCES: &[Source] = &[
    source("scan.nvcc", scan),
    source("scan_lookback.nvcc", scan_lookback),
    source("cumsum.triton", cumsum),
    source("linear_scan.triton", linear_scan),
    source("warp_scan.numba", warp_scan),
    source("cub_block.nvcc", cub_block),
    source("cub_warp.nvcc", cub_warp),
];

/// Inclusive prefix sums of each chunk of `width`.
fn sums(x: &[i64], width: usize) -> Vec<i64> {
    let chunk = |x: &[i64]| {
        let add = |sum: &mut i64, &x: &i64| {
            *sum = sum.wrapping_add(x);
            Some(*sum)
        };
        x.iter().scan(0i64, add).collect::<Vec<i64>>()
    };
    x.chunks(width).flat_map(chunk).collect()
}

fn narrow(x: &[i64]) -> Vec<i32> {
    x.iter().map(|&x| x as i32).collect()
}

fn scan(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(201);
    let n = 1200usize;
    let x: Vec<i64> = (0..n).map(|_| rng.int(-1000, 1000)).collect();
    let f = dyadic(&mut rng, n);
    let mut exclusive = Vec::new();
    let mut totals = Vec::new();
    for chunk in f.chunks(256) {
        let mut sum = 0f32;
        for x in chunk {
            exclusive.push(sum);
            sum += x;
        }
        totals.push(sum);
    }
    let wide: Vec<i64> = (0..n).map(|_| rng.u64() as i64).collect();
    let n32 = n as i32;
    vec![
        launch("scan_hillis", 3, 512).input(&narrow(&x)).output(exactly(&narrow(&sums(&x, 512)))).scalar(n32),
        launch("scan_blelloch", 5, 128)
            .shared(256 * 4)
            .input(&f)
            .output(exactly(&exclusive))
            .output(exactly(&totals))
            .scalar(n32),
        launch("scan_blelloch", 5, 128)
            .shared(256 * 4)
            .input(&f)
            .output(exactly(&exclusive))
            .null()
            .scalar(n32),
        // All 32 warps: a smaller block reads sums of warps that are not there.
        launch("scan_warp", 2, 1024).input(&wide).output(exactly(&sums(&wide, 1024))).scalar(n32),
    ]
}

fn scan_lookback(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(202);
    let n = 2900usize;
    let tiles = n.div_ceil(256);
    let x: Vec<i64> = (0..n).map(|_| rng.int(0, 1 << 20)).collect();
    let all = sums(&x, n);
    let word = |total: i64| 2 << 32 | (total as u64 & 0xffff_ffff);
    let state: Vec<u64> = (0..tiles).map(|tile| word(all[n.min(256 * tile + 256) - 1])).collect();
    vec![
        launch("scan_lookback", tiles as u32, 256)
            .input(&narrow(&x))
            .output(exactly(&narrow(&all)))
            .inout(&vec![0u64; tiles], exactly(&state))
            .inout(&[0u32], exactly(&[tiles as u32]))
            .scalar(n as u32),
    ]
}

fn cumsum(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(203);
    let (rows, cols) = (3usize, 400usize);
    let x: Vec<i64> = (0..rows * cols).map(|_| rng.int(-1000, 1000)).collect();
    let want: Vec<i32> = x
        .chunks(cols)
        .flat_map(|row| {
            let total: i64 = row.iter().sum();
            // From the front, and from the back.
            sums(row, cols).iter().zip(row).map(|(sum, x)| (sum + total - sum + x) as i32).collect::<Vec<_>>()
        })
        .collect();
    vec![
        launch("cumsum", rows as u32, 128)
            .input(&narrow(&x))
            .output(exactly(&want))
            .scalar(cols as i32)
            .triton(),
    ]
}

fn linear_scan(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(204);
    let (steps, channels) = (50usize, 64usize);
    let (a, b) = (rng.f32s(steps * channels, -1.0, 1.0), rng.f32s(steps * channels, -1.0, 1.0));
    let mut want = vec![(0.0, 0.0); steps * channels];
    for c in 0..channels {
        let (mut y, mut size) = (0.0, 0.0);
        for t in 0..steps {
            let at = t * channels + c;
            y = y * f64::from(a[at]) + f64::from(b[at]);
            size = size * f64::from(a[at]).abs() + f64::from(b[at]).abs();
            want[at] = (y, 20.0 * F32.unit() * size);
        }
    }
    let case = launch("linear_scan", 2, 128).input(&a).input(&b).output(within(F32, want));
    vec![case.scalar(steps as i32).triton()]
}

fn warp_scan(file: &File) -> Vec<Case> {
    let mut rng = Rng::new(205);
    let x: Vec<i64> = (0..128).map(|_| rng.int(-100, 100)).collect();
    let sums = sums(&x, 32);
    let want: Vec<i32> = sums
        .chunks(32)
        .flat_map(|warp| {
            let ballot = (0..32).filter(|&lane| warp[lane] > 0).fold(0u32, |mask, lane| mask | 1 << lane);
            warp.iter().map(|&sum| (sum as i32).wrapping_add(ballot as i32)).collect::<Vec<i32>>()
        })
        .collect();
    let mut case = launch(&file.entries[0], 2, 64);
    let (input, output) = (case.add(Some(bytes(&narrow(&x))), Expect::Same), case.add(None, exactly(&want)));
    vec![case.array(input, 128, 4).array(output, 128, 4)]
}

fn cub_block(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(206);
    let f = dyadic(&mut rng, 200);
    let totals: Vec<f32> = f.chunks(128).map(|x| x.iter().sum()).collect();
    let x: Vec<i64> = (0..1024).map(|_| rng.int(-1000, 1000)).collect();
    let exclusive: Vec<i64> = sums(&x, 512).iter().zip(&x).map(|(sum, x)| sum - x).collect();
    let keys: Vec<u32> = (0..256).map(|i| if i % 4 == 0 { rng.u32() % 8 } else { rng.u32() }).collect();
    let values: Vec<i32> = (0..256).collect();
    let mut sorted: Vec<(u32, i32)> = keys.iter().copied().zip(values.iter().copied()).collect();
    sorted.chunks_mut(128).for_each(|block| block.sort());
    let (sorted_keys, sorted_values): (Vec<u32>, Vec<i32>) = sorted.into_iter().unzip();
    vec![
        launch("cub_reduce", 2, 128).input(&f).output(exactly(&totals)).scalar(200i32),
        launch("cub_scan", 2, 128).input(&narrow(&x)).output(exactly(&narrow(&exclusive))),
        launch("cub_sort", 2, 64).inout(&keys, exactly(&sorted_keys)).inout(&values, exactly(&sorted_values)),
    ]
}

fn cub_warp(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(207);
    let x: Vec<f64> = (0..256).map(|_| rng.int(-1000, 1000) as f64).collect();
    let totals: Vec<f64> = x.chunks(32).map(|x| x.iter().sum()).collect();
    let keys = rng.ints(512, -1000, 1000);
    let mut want = Vec::new();
    for warp in keys.chunks(64) {
        let mut sorted = warp.to_vec();
        sorted.sort();
        let total: i32 = sorted.iter().step_by(2).sum();
        let mut sum = 0;
        for pair in sorted.chunks(2) {
            sum += pair[0];
            want.extend([sum + total, pair[1]]);
        }
    }
    vec![launch("cub_warp", 2, 128).input(&x).output(exactly(&totals)).inout(&keys, exactly(&want))]
}
