//! Sums, extremes and means: in shared memory, by shuffles, by the last block, by atomics.
//!
//! Inputs of float sums are integers or dyadic fractions, so that any order gives the exact sum.

use crate::case::{Case, Expect, File, Source, any_order, exactly, launch, source, within};
use crate::data::{Format, Number, Rng, bytes};
use Format::F32;

pub(crate) const SOURCES: &[Source] = &[
    source("reduce_shared.nvcc", reduce_shared),
    source("reduce_warp.nvcc", reduce_warp),
    source("reduce_last_block.nvcc", reduce_last_block),
    source("reduce_coop.nvcc", reduce_coop),
    source("reduce.clang", reduce_clang),
    source("reduce_sum.numba", reduce_sum),
    source("sum_rows.triton", sum_rows),
    source("sum_atomic.triton", sum_atomic),
    source("welford.triton", welford),
    source("argmax_rows.triton", argmax_rows),
    source("top_k.nvcc", top_k),
    source("complex_math.nvcc", complex_math),
    source("grid_sync.nvcc", grid_sync),
    source("inline_lines.nvcc", inline_lines),
];

/// Multiples of 1/8.
pub(crate) fn dyadic(rng: &mut Rng, n: usize) -> Vec<f32> {
    (0..n).map(|_| rng.int(-800, 800) as f32 / 8.0).collect()
}

/// What each of `blocks` adds in a grid-stride loop of `width` threads a block.
fn strided<T: Copy>(x: &[T], blocks: usize, width: usize, block: usize) -> impl Iterator<Item = T> {
    x.iter().enumerate().filter(move |(i, _)| i / width % blocks == block).map(|(_, &x)| x)
}

fn reduce_shared(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(101);
    let n = 3001;
    let x = dyadic(&mut rng, n);
    let sums: Vec<f32> = (0..4).map(|block| strided(&x, 4, 256, block).sum()).collect();
    let wide: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    let wide_sums: Vec<f64> = (0..3).map(|block| strided(&wide, 3, 64, block).sum()).collect();
    let n = n as i32;
    vec![
        launch("reduce_shared", 4, 256).input(&x).output(exactly(&sums)).scalar(n),
        launch("reduce_dynamic", 3, 64).shared(64 * 8).input(&wide).output(exactly(&wide_sums)).scalar(n),
    ]
}

fn reduce_warp(_: &File) -> Vec<Case> {
    fn case<T: Number>(name: &str, x: &[T], identity: T, of: impl Fn(&[T]) -> T) -> Case {
        let (blocks, width) = (3, 160);
        let want: Vec<T> =
            (0..blocks).map(|block| of(&strided(x, blocks, width, block).collect::<Vec<T>>())).collect();
        let entry = format!("_Z11reduce_warpI{name}EvPKT_PS1_iS1_");
        let case = launch(&entry, blocks as u32, width as u32).input(x).output(exactly(&want));
        case.scalar(x.len() as i32).scalar(identity)
    }
    let mut rng = Rng::new(102);
    let n = 1111;
    let doubles = rng.f64s(n, -1.0, 1.0);
    let wide: Vec<i64> = (0..n).map(|_| rng.u64() as i64).collect();
    vec![
        case("f3Add", &dyadic(&mut rng, n), 0f32, |x| x.iter().sum()),
        case("d3Max", &doubles, f64::NEG_INFINITY, |x| x.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        case("i3Min", &rng.ints(n, -100_000, 100_000), i32::MAX, |x| {
            x.iter().copied().fold(i32::MAX, i32::min)
        }),
        case("x3Add", &wide, 0i64, |x| x.iter().copied().fold(0, i64::wrapping_add)),
    ]
}

fn reduce_last_block(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(103);
    let n = 2000;
    let x = dyadic(&mut rng, n);
    let partial: Vec<f32> = (0..7).map(|block| strided(&x, 7, 128, block).sum()).collect();
    let total: f32 = x.iter().sum();
    let case =
        launch("reduce_last_block", 7, 128).input(&x).output(exactly(&partial)).output(exactly(&[total]));
    vec![case.scalar(n as i32)]
}

fn reduce_coop(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(104);
    let n = 777usize;
    let x = rng.ints(n, -1000, 1000);
    let total: i32 = x.iter().sum();
    let f = rng.f32s(n, -10.0, 10.0);
    let largest: Vec<f32> = (0..16)
        .map(|tile| (0..n).filter(|i| i % 128 / 8 == tile).map(|i| f[i]).fold(f32::NEG_INFINITY, f32::max))
        .collect();
    let mut kept: Vec<i32> = x.iter().copied().filter(|&x| x > 0).collect();
    let count = kept.len() as i32;
    kept.resize(n, -1);
    let scan: Vec<i32> = (0..n)
        .map(|i| {
            let before: i32 = x[i / 16 * 16..i].iter().sum();
            (before + x[i]) * 1000 + before
        })
        .collect();
    let n32 = n as i32;
    vec![
        launch("reduce_coop", 3, 96).input(&x).inout(&[5i32], exactly(&[total + 5])).scalar(n32),
        launch("reduce_coop_f", 2, 64).input(&f).output(exactly(&largest)).scalar(n32),
        launch("coop_compact", 7, 128)
            .input(&x)
            .inout(&vec![-1i32; n], any_order(kept))
            .inout(&[0i32], exactly(&[count]))
            .scalar(n32),
        launch("coop_scan", 7, 128).input(&x).output(exactly(&scan)).scalar(n32),
    ]
}

fn reduce_clang(file: &File) -> Vec<Case> {
    let mut rng = Rng::new(105);
    let n = 2222;
    let x = rng.ints(n, -1000, 1000);
    let total: i32 = x.iter().sum();
    let mut cases =
        vec![launch("reduce", 3, 256).input(&x).inout(&[0i32], exactly(&[total])).scalar(n as i32)];
    if file.arch >= 70 {
        let f = rng.f32s(256, -10.0, 10.0);
        let largest: Vec<f32> =
            f.chunks(32).map(|w| w.iter().copied().fold(f32::NEG_INFINITY, f32::max)).collect();
        cases.push(launch("warp_max", 4, 64).input(&f).output(exactly(&largest)));
    }
    cases
}

fn reduce_sum(file: &File) -> Vec<Case> {
    let mut rng = Rng::new(106);
    let n = 1001;
    let x = dyadic(&mut rng, n);
    let total: f32 = x.iter().sum();
    let mut case = launch(&file.entries[0], 3, 128);
    let input = case.add(Some(bytes(&x)), Expect::Same);
    let sum = case.add(Some(bytes(&[0f32])), exactly(&[total]));
    vec![case.array(input, n, 4).array(sum, 1, 4)]
}

fn sum_rows(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(107);
    let (rows, cols) = (16usize, 208usize);
    let x = dyadic(&mut rng, rows * cols);
    let row = |r: usize| &x[r * cols..][..cols];
    // The masked columns are zeros to the extremes too.
    let extreme = |r: usize, of: fn(f32, f32) -> f32| row(r).iter().copied().fold(0.0, of);
    let sums: Vec<f32> = (0..rows).map(|r| row(r).iter().sum()).collect();
    let spreads = (0..rows).map(|r| sums[r] + extreme(r, f32::min) - extreme(r, f32::max));
    let want: Vec<f32> = sums.iter().copied().chain(spreads).collect();
    let case = launch("sum_rows", 2, 128).input(&x).output(exactly(&want));
    vec![case.scalar(rows as i32).scalar(cols as i32).triton()]
}

fn sum_atomic(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(108);
    let n = 2800;
    let x = dyadic(&mut rng, n);
    let total: f32 = x.iter().sum();
    vec![launch("sum_atomic", 3, 128).input(&x).inout(&[0f32], exactly(&[total])).scalar(n as i32).triton()]
}

fn welford(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(109);
    let n = 200usize;
    let x: Vec<f32> = rng.f32s(n, -50.0, 50.0);
    let of = |x: f32| f64::from(x);
    let mean = x.iter().map(|&x| of(x)).sum::<f64>() / n as f64;
    let variance = x.iter().map(|&x| (of(x) - mean).powi(2)).sum::<f64>() / n as f64;
    let xor = x.iter().fold(0, |bits, &x| bits ^ x as i32);
    // Sums of 256 terms in a tree: ten roundings.
    let want =
        [(mean, 50.0 * 10.0 * F32.unit()), (variance, 30.0 * F32.unit() * variance), (f64::from(xor), 0.0)];
    vec![launch("welford", 1, 64).input(&x).output(within(F32, want)).scalar(n as i32).triton()]
}

fn argmax_rows(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(110);
    let (rows, cols) = (5usize, 400usize);
    // Every number once.
    let distinct: Vec<f64> = (0..rows)
        .flat_map(|_| {
            let mut row: Vec<f64> = (0..512).map(|i| f64::from(i) - 256.0).collect();
            rng.shuffle(&mut row);
            row
        })
        .collect();
    let at = |row: &[f64], value| row.iter().position(|&x| x == value).unwrap_or(0);
    let largest: Vec<i64> = distinct.chunks(512).map(|row| at(row, 255.0) as i64).collect();
    let sums: Vec<f32> = distinct.chunks(512).map(|row| 255.0 + at(row, -256.0) as f32).collect();
    // Few values, so that there are ties.
    let x: Vec<f64> = (0..rows * cols).map(|_| rng.int(-40, 40) as f64).collect();
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    for row in x.chunks(cols) {
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        indices.push(row.iter().position(|&x| x == largest).unwrap_or(0) as i64);
        values.push(largest);
    }
    // The masked columns are −∞, and the least of a row is one of them: any, as ties may break so.
    let value = crate::case::rule(rows, move |got: &[f32]| {
        let wrong = got.iter().zip(&values).find(|(got, value)| {
            let at = f64::from(**got) - **value;
            !(400.0..512.0).contains(&at)
        });
        wrong.map_or(Ok(()), |(got, value)| Err(format!("{got} is no masked index more than {value}")))
    });
    vec![
        launch("argmax_rows", rows as u32, 128)
            .floats(Format::F16, &distinct)
            .output(exactly(&largest))
            .output(exactly(&sums))
            .scalar(512i32)
            .triton(),
        launch("argmax_rows", rows as u32, 128)
            .floats(Format::F16, &x)
            .output(exactly(&indices))
            .output(value)
            .scalar(cols as i32)
            .triton()
            .finds(
                "race",
                &["st", "st"],
                "`tie_break_left=False`: lanes hold different ones of equal minima",
            ),
    ]
}

fn top_k(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(111);
    let (rows, cols) = (3usize, 301usize);
    let mut x: Vec<f32> = (0..rows * cols).map(|i| i as f32 * 0.5 - 200.0).collect();
    rng.shuffle(&mut x);
    x[7] = x[200].max(500.0);
    x[200] = x[7];
    let row = |r: usize| &x[r * cols..][..cols];
    let ranked = |r: usize| {
        let mut order: Vec<usize> = (0..cols).collect();
        order.sort_by(|&a, &b| row(r)[b].total_cmp(&row(r)[a]).then(a.cmp(&b)));
        order
    };
    let best: Vec<i32> = (0..rows).map(|r| ranked(r)[0] as i32).collect();
    let value: Vec<f32> = (0..rows).map(|r| row(r)[ranked(r)[0]]).collect();
    // Without the tied row: equal numbers may come in another order.
    let untied = &x[cols..];
    let tops: Vec<i32> =
        (1..rows).flat_map(|r| ranked(r)[..4].iter().map(|&i| i as i32).collect::<Vec<_>>()).collect();
    let values: Vec<f32> =
        (1..rows).flat_map(|r| ranked(r)[..4].iter().map(|&i| row(r)[i]).collect::<Vec<_>>()).collect();
    let cols = cols as i32;
    vec![
        launch("argmax_rows", 3, 96).input(&x).output(exactly(&best)).output(exactly(&value)).scalar(cols),
        launch("top_k", 2, 64).input(untied).output(exactly(&tops)).output(exactly(&values)).scalar(cols),
    ]
}

fn complex_math(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(112);
    let (w, h, limit) = (24i32, 17i32, 60);
    let (cr, ci) = (-0.4f32, 0.6f32);
    // A point where rounding decides which step escapes may be off by one.
    let escape = move |x: i32, y: i32, radius: f64| {
        let (mut re, mut im) =
            (3.0 * f64::from(x) / f64::from(w) - 1.5, 3.0 * f64::from(y) / f64::from(h) - 1.5);
        let mut k = 0;
        while k < limit && re * re + im * im < radius {
            (re, im) = (re * re - im * im + f64::from(cr), 2.0 * re * im + f64::from(ci));
            k += 1;
        }
        k
    };
    let julia = crate::case::rule((w * h) as usize, move |got: &[i32]| {
        for y in 0..h {
            for x in 0..w {
                let (early, late) = (escape(x, y, 3.98), escape(x, y, 4.02));
                let got = got[(y * w + x) as usize];
                if !(early..=late).contains(&got) && early < 20 {
                    return Err(format!("pixel ({x}, {y}) has {got}, expected {early}"));
                }
            }
        }
        Ok(())
    });
    let n = 150usize;
    let mut draw = |n| (0..n).map(|_| [rng.f64(-1.0, 1.0), rng.f64(-1.0, 1.0)]).collect::<Vec<_>>();
    let (a, b) = (draw(n), draw(n));
    let re: f64 = a.iter().zip(&b).map(|(a, b)| a[0] * b[0] + a[1] * b[1]).sum();
    let im: f64 = a.iter().zip(&b).map(|(a, b)| a[0] * b[1] - a[1] * b[0]).sum();
    let scale = re.hypot(im) + 1.0;
    let dot = [(re / scale, 1e-13), (im / scale, 1e-13)];
    let z: Vec<[f32; 2]> = draw(60).iter().map(|z| z.map(|x| x as f32)).collect();
    let exponentials = z.iter().flat_map(|z| {
        let [x, y] = z.map(f64::from);
        let (re, im) = (x.exp() * y.cos(), x.exp() * y.sin());
        let size = (x + 1.0).powi(2) + y * y;
        let bound = 16.0 * F32.unit() * x.exp() / size.sqrt();
        [((re * (x + 1.0) + im * y) / size, bound), ((im * (x + 1.0) - re * y) / size, bound)]
    });
    let dims =
        launch("julia", (3, 3), (8, 8)).output(julia).scalar(w).scalar(h).scalar(cr).scalar(ci).scalar(limit);
    vec![
        dims,
        launch("complex_dot", 1, 32).input(&a).input(&b).output(within(Format::F64, dot)).scalar(n as i32),
        launch("complex_exp", 2, 32).input(&z).output(within(F32, exponentials)).scalar(60i32),
    ]
}

fn grid_sync(_: &File) -> Vec<Case> {
    let n = 500usize;
    let x: Vec<f32> = (0..n).map(|i| (i % 17) as f32 / 4.0).collect();
    let sum: f32 = x.iter().map(|x| x * x).sum();
    let want = x.iter().map(|&x| {
        let y = f64::from(x * x) / f64::from(sum).sqrt();
        (y, 4.0 * F32.unit() * y)
    });
    let case = launch("grid_sync", 4, 64).cooperative().inout(&x, within(F32, want));
    vec![case.inout(&[0f32], exactly(&[sum])).scalar(n as i32)]
}

fn inline_lines(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(113);
    // Quarters: sums and products of few bits are exact.
    let x: Vec<f32> = (0..100).map(|_| rng.int(-12, 12) as f32 / 4.0).collect();
    let poly = |x: f32| (x * x + 1.0) * (x * x + 1.0) - x + if x < 0.0 { (x + 1.0) * (x + 1.0) } else { 0.0 };
    let want: Vec<f32> = (0..32).map(|t| x.iter().skip(t).step_by(32).map(|&x| poly(x)).sum()).collect();
    vec![launch("inline_lines", 1, 32).input(&x).output(exactly(&want)).scalar(100i32)]
}
