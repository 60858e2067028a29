//! Softmax, layer norm and RMS norm with their gradients, cross entropy, Adam, dropout.

use crate::case::{Case, File, Source, exactly, launch, source, within};
use crate::data::{Format, Rng, bytes};
use crate::integers::philox;
use Format::{Bf16, F16, F32};

pub(crate) const SOURCES: &[Source] = &[
    source("softmax.nvcc", softmax),
    source("softmax.triton", softmax_triton),
    source("softmax_rows.triton", softmax_rows),
    source("layer_norm.nvcc", layer_norm),
    source("layer_norm_fwd.triton", layer_norm_fwd),
    source("layer_norm_bwd.triton", layer_norm_bwd),
    source("rms_norm.triton", rms_norm),
    source("cross_entropy.nvcc", cross_entropy),
    source("cross_entropy.triton", cross_entropy_triton),
    source("dropout.triton", dropout),
    source("random_fill.triton", random_fill),
];

/// Softmax of a row. Exponentials of single precision: an error of a unit of the exponent's size
/// each, which `units` counts.
fn softmax_of(row: &[f64], units: f64) -> Vec<(f64, f64)> {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = row.iter().map(|x| (x - largest).exp()).sum();
    let near = |x: &f64| {
        let y = (x - largest).exp() / total;
        (y, units * F32.unit() * y * (1.0 + (x - largest).abs()))
    };
    row.iter().map(near).collect()
}

fn softmax(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(901);
    let (rows, cols) = (5usize, 333usize);
    let x = rng.f32s(rows * cols, -8.0, 8.0);
    let wide: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    let want =
        |units| within(F32, wide.chunks(cols).flat_map(|row| softmax_of(row, units)).collect::<Vec<_>>());
    let online = launch("softmax_online", 2, 96).input(&x).output(want(24.0)).scalar(rows as i32);
    vec![
        launch("softmax_block", rows as u32, 128).input(&x).output(want(24.0)).scalar(cols as i32),
        online.scalar(cols as i32),
    ]
}

fn softmax_triton(file: &File) -> Vec<Case> {
    let mut rng = Rng::new(902);
    let half = file.variant == "f16";
    let (rows, cols, from, to) = if half { (3usize, 301usize, 305, 311) } else { (3, 608, 640, 656) };
    let format = if half { F16 } else { F32 };
    let x: Vec<f64> = (0..rows * from).map(|_| format.round(rng.f64(-8.0, 8.0))).collect();
    let mut want = vec![(0.0, 0.0); rows * to];
    for r in 0..rows {
        want[r * to..][..cols].copy_from_slice(&softmax_of(&x[r * from..][..cols], 16.0));
    }
    let zeros = format.store(&vec![0.0; rows * to]);
    let width = if half { 64 } else { 128 };
    let case = launch("softmax", rows as u32, width).floats(format, &x).inout(&zeros, within(format, want));
    vec![case.scalar(from as i32).scalar(to as i32).scalar(cols as i32).triton()]
}

fn softmax_rows(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(903);
    // Sizes are multiples of 16 for this kernel.
    let (rows, cols) = (48usize, 96usize);
    let x = rng.f32s(rows * cols, -8.0, 8.0);
    let wide: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    let want = within(F32, wide.chunks(cols).flat_map(|row| softmax_of(row, 16.0)).collect::<Vec<_>>());
    let case = launch("softmax_rows", 3, 128).shared(32 << 10).input(&x).output(want);
    vec![case.scalar(rows as i32).scalar(cols as i32).triton()]
}

/// Mean and variance.
fn moments(row: &[f64]) -> (f64, f64) {
    let n = row.len() as f64;
    let mean = row.iter().sum::<f64>() / n;
    (mean, row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n)
}

fn layer_norm(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(904);
    let (rows, cols) = (3usize, 250usize);
    let (x, gamma, beta) =
        (rng.f32s(rows * cols, -3.0, 5.0), rng.f32s(cols, 0.5, 1.5), rng.f32s(cols, -1.0, 1.0));
    let eps = 1e-5f32;
    let wide = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
    let (wx, wg, wb) = (wide(&x), wide(&gamma), wide(&beta));
    let want = wx.chunks(cols).flat_map(|row| {
        let (mean, variance) = moments(row);
        let scale = 1.0 / (variance + f64::from(eps)).sqrt();
        // A mean of numbers up to 5 in a few running steps and joins.
        (0..cols).map(|c| ((row[c] - mean) * scale * wg[c] + wb[c], 60.0 * F32.unit())).collect::<Vec<_>>()
    });
    let norm = launch("layer_norm", rows as u32, 96).input(&x).input(&gamma).input(&beta);
    let norm = norm.output(within(F32, want.collect::<Vec<_>>())).scalar(cols as i32).scalar(eps);

    let mut draw = |n| (0..n).map(|_| F16.round(rng.f64(-2.0, 2.0))).collect::<Vec<f64>>();
    let (x, w) = (draw(rows * cols), draw(cols));
    let want = x.chunks(cols).flat_map(|row| {
        let square = row.iter().map(|x| x * x).sum::<f64>() / cols as f64;
        let scale = 1.0 / (square + f64::from(eps)).sqrt();
        // Scale and first product are rounded to f16 too.
        let of = |c: usize| (row[c] * scale * w[c], 2.5 * F16.unit() * (row[c] * scale * w[c]).abs());
        (0..cols).map(of).collect::<Vec<_>>()
    });
    let want = within(F16, want.collect::<Vec<_>>());
    let rms = launch("rms_norm_half", rows as u32, 64).floats(F16, &x).floats(F16, &w).output(want);
    vec![norm, rms.scalar(cols as i32 / 2).scalar(eps)]
}

fn layer_norm_fwd(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(905);
    // More than one block of 1024 columns, the last one in part.
    let (rows, cols) = (3usize, 1280usize);
    let mut draw = |n, low, high| (0..n).map(|_| F16.round(rng.f64(low, high))).collect::<Vec<f64>>();
    let (x, w, b) = (draw(rows * cols, -3.0, 5.0), draw(cols, 0.5, 1.5), draw(cols, -1.0, 1.0));
    let eps = 1e-5f32;
    let stats: Vec<(f64, f64)> = x
        .chunks(cols)
        .map(|row| {
            let (mean, variance) = moments(row);
            (mean, 1.0 / (variance + f64::from(eps)).sqrt())
        })
        .collect();
    let y = (0..rows * cols).map(|at| {
        let ((mean, scale), c) = (stats[at / cols], at % cols);
        ((x[at] - mean) * scale * w[c] + b[c], 60.0 * F32.unit())
    });
    let y = within(F16, y.collect::<Vec<_>>());
    let means = within(F32, stats.iter().map(|(mean, _)| (*mean, 30.0 * F32.unit())));
    let scales = within(F32, stats.iter().map(|(_, scale)| (*scale, 30.0 * F32.unit() * scale)));
    vec![
        launch("layer_norm_fwd", rows as u32, 256)
            .floats(F16, &x)
            .output(y)
            .floats(F16, &w)
            .floats(F16, &b)
            .output(means)
            .output(scales)
            .scalar(cols as i32)
            .scalar(cols as i32)
            .scalar(eps)
            .triton(),
    ]
}

fn layer_norm_bwd(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(906);
    // More rows than the 64 groups: some share a lock.
    let (rows, cols, groups) = (70usize, 304usize, 64usize);
    let mut draw = |n, low, high| (0..n).map(|_| F16.round(rng.f64(low, high))).collect::<Vec<f64>>();
    let (x, dy, w) = (draw(rows * cols, -2.0, 2.0), draw(rows * cols, -1.0, 1.0), draw(cols, 0.5, 1.5));
    let (mut means, mut scales) = (Vec::new(), Vec::new());
    let mut dx = Vec::new();
    let (mut dw, mut db) = (vec![(0.0, 0.0); groups * cols], vec![(0.0, 0.0); groups * cols]);
    for (row, (x, dy)) in x.chunks(cols).zip(dy.chunks(cols)).enumerate() {
        let (mean, variance) = moments(x);
        let (mean, scale) = (mean as f32, (1.0 / variance.sqrt()) as f32);
        means.push(mean);
        scales.push(scale);
        let (mean, scale) = (f64::from(mean), f64::from(scale));
        let normal: Vec<f64> = x.iter().map(|x| (x - mean) * scale).collect();
        let pulled: Vec<f64> = dy.iter().zip(&w).map(|(dy, w)| dy * w).collect();
        let c1 = normal.iter().zip(&pulled).map(|(a, b)| a * b).sum::<f64>() / cols as f64;
        let c2 = pulled.iter().sum::<f64>() / cols as f64;
        for c in 0..cols {
            dx.push(((pulled[c] - (normal[c] * c1 + c2)) * scale, 60.0 * F32.unit()));
            let (dw, db) = (&mut dw[row % groups * cols + c], &mut db[row % groups * cols + c]);
            *dw = (dw.0 + dy[c] * normal[c], dw.1 + 8.0 * F32.unit());
            *db = (db.0 + dy[c], db.1 + 2.0 * F32.unit());
        }
    }
    let locks = [vec![0i32; groups], vec![1; groups]].concat();
    vec![
        launch("layer_norm_bwd", rows as u32, 128)
            .output(within(F16, dx))
            .floats(F16, &dy)
            .output(within(F32, dw))
            .output(within(F32, db))
            .floats(F16, &x)
            .floats(F16, &w)
            .input(&means)
            .input(&scales)
            .inout(&vec![0i32; 2 * groups], exactly(&locks))
            .scalar(cols as i32)
            .scalar(cols as i32)
            .triton(),
    ]
}

fn rms_norm(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(907);
    let (rows, cols) = (3usize, 1200usize);
    let x: Vec<f64> = (0..rows * cols).map(|_| Bf16.round(rng.f64(-2.0, 2.0))).collect();
    let w = rng.f32s(cols, 0.5, 1.5);
    let eps = 1e-6f32;
    let want = x.chunks(cols).flat_map(|row| {
        let square = row.iter().map(|x| x * x).sum::<f64>() / cols as f64;
        let scale = 1.0 / (square + f64::from(eps)).sqrt();
        let of = |c: usize| {
            let y = row[c] * scale * f64::from(w[c]);
            (y, 20.0 * F32.unit() * y.abs())
        };
        (0..cols).map(of).collect::<Vec<_>>()
    });
    let want = within(Bf16, want.collect::<Vec<_>>());
    let case = launch("rms_norm", rows as u32, 256).floats(Bf16, &x).input(&w).output(want);
    vec![case.scalar(cols as i32).scalar(eps).triton()]
}

fn loss(row: &[f64], target: usize) -> f64 {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    row.iter().map(|x| (x - largest).exp()).sum::<f64>().ln() + largest - row[target]
}

fn cross_entropy(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(908);
    let (rows, v) = (4usize, 700usize);
    let x = rng.f32s(rows * v, -8.0, 8.0);
    let wide: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    let targets = rng.ints(rows, 0, v as i64);
    let target = |r: usize| targets[r] as usize;
    let losses = (0..rows).map(|r| (loss(&wide[r * v..][..v], target(r)), 60.0 * F32.unit()));
    let losses = within(F32, losses.collect::<Vec<_>>());
    let gradients = (0..rows).flat_map(|r| {
        let mut row = softmax_of(&wide[r * v..][..v], 24.0);
        row[target(r)].0 -= 1.0;
        row[target(r)].1 += F32.unit();
        row
    });
    let gradients = within(F32, gradients.collect::<Vec<_>>());
    let entropy = launch("cross_entropy", rows as u32, 256).input(&x).input(&targets);
    let entropy = entropy.output(losses).output(gradients).scalar(v as i32);

    let n = 100usize;
    let (p, m, s) = (rng.f32s(n, -1.0, 1.0), rng.f32s(n, -0.1, 0.1), rng.f32s(n, 0.01, 0.1));
    let g: Vec<f64> = (0..n).map(|_| F16.round(rng.f64(-1.0, 1.0))).collect();
    let [lr, b1, b2, eps, wd] = [0.01f32, 0.9, 0.99, 1e-8, 0.1];
    let (step, of) = (3, |x: f32| f64::from(x));
    let first = |i: usize| of(b1) * of(m[i]) + (1.0 - of(b1)) * g[i];
    let second = |i: usize| of(b2) * of(s[i]) + (1.0 - of(b2)) * g[i] * g[i];
    let updated = |i: usize| {
        let (mh, vh) = (first(i) / (1.0 - of(b1).powi(step)), second(i) / (1.0 - of(b2).powi(step)));
        of(p[i]) - of(lr) * (mh / (vh.sqrt() + of(eps)) + of(wd) * of(p[i]))
    };
    // 1 − b2³ loses three of the digits of b2³, and shrinks under the root.
    let bound = 100.0 * F32.unit() * of(lr) * 4.0 + 2.0 * F32.unit();
    let near = |format, of: &dyn Fn(usize) -> f64, bound: f64| {
        within(format, (0..n).map(|i| (of(i), bound)).collect::<Vec<_>>())
    };
    let adam = launch("adam", 2, 64)
        .inout(&p, near(F32, &updated, bound))
        .floats(F16, &g)
        .inout(&m, near(F32, &first, 4.0 * F32.unit()))
        .inout(&s, near(F32, &second, 4.0 * F32.unit()))
        .output(near(F16, &updated, bound));
    let adam = [lr, b1, b2, eps, wd].into_iter().fold(adam, Case::scalar).scalar(step).scalar(n as i32);

    // Five ids, one of them none.
    let (vocabulary, dim8) = (9usize, 6usize);
    let table: Vec<[u32; 4]> = (0..vocabulary * dim8).map(|_| std::array::from_fn(|_| rng.u32())).collect();
    let ids = [3i32, 0, -1, 8, 3];
    let rows_of = |id: &i32| {
        let row = usize::try_from(*id).ok().filter(|&id| id < vocabulary);
        row.map_or(vec![[0; 4]; dim8], |row| table[row * dim8..][..dim8].to_vec())
    };
    let embedded: Vec<[u32; 4]> = ids.iter().flat_map(rows_of).collect();
    let embed = launch("embed", 5, 32).input(&ids).input(&table).output(exactly(&embedded));
    let embed = embed.scalar(dim8 as i32).scalar(vocabulary as i32);

    // Two pages of four slots; one token has no slot.
    let (page, dim) = (4usize, 40usize);
    let slots = [5i32, 0, -1, 7];
    let mut append = launch("kv_append", 4, 32);
    let mut tables = Vec::new();
    for _ in 0..2 {
        let tokens: Vec<u16> = (0..4 * dim).map(|_| rng.u32() as u16).collect();
        let mut pages = vec![vec![7u16; page * dim]; 2];
        for (token, &slot) in slots.iter().enumerate().filter(|(_, slot)| **slot >= 0) {
            let (p, at) = (slot as usize / page, slot as usize % page * dim);
            pages[p][at..at + dim].copy_from_slice(&tokens[token * dim..][..dim]);
        }
        let init = bytes(&vec![7u16; page * dim]);
        let added: Vec<usize> =
            pages.iter().map(|page| append.add(Some(init.clone()), exactly(page))).collect();
        tables.push(added);
        append = append.input(&tokens);
    }
    let append =
        append.table(&tables[0]).table(&tables[1]).input(&slots).scalar(page as i32).scalar(dim as i32);
    vec![entropy, adam, embed, append]
}

fn cross_entropy_triton(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(909);
    let (rows, v, stride) = (4usize, 1600usize, 1616usize);
    let x = rng.f32s(rows * stride, -8.0, 8.0);
    let wide: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    let targets: Vec<i64> = (0..rows).map(|_| rng.int(0, v as i64)).collect();
    let losses = (0..rows).map(|r| (loss(&wide[r * stride..][..v], targets[r] as usize), 60.0 * F32.unit()));
    let case = launch("cross_entropy", rows as u32, 128).input(&x).input(&targets);
    let case = case.output(within(F32, losses.collect::<Vec<_>>()));
    vec![case.scalar(v as i32).scalar(stride as i32).triton()]
}

/// Triton's uniform number of the first word: bits folded to 31, scaled to [0, 1).
fn uniform(word: u32) -> f64 {
    let x = word as i32;
    let x = if x < 0 { -x - 1 } else { x };
    f64::from(x) * f64::from(4.656_612_7e-10_f32)
}

fn dropout(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(910);
    let (n, p, seed) = (400usize, 0.3f32, 12345i32);
    let x = rng.f32s(n, -1.0, 1.0);
    let want: Vec<(f64, f64)> = (0..n)
        .map(|i| {
            let random = philox([i as u32, 0, 0, 0], [seed as u32, 0])[0];
            assert!((uniform(random) - f64::from(p)).abs() > 1e-6, "no draw is at the edge");
            let y = f64::from(x[i]) / (1.0 - f64::from(p));
            if uniform(random) > f64::from(p) { (y, 3.0 * F32.unit() * y.abs()) } else { (0.0, 0.0) }
        })
        .collect();
    let case = launch("dropout", 2, 128).input(&x).output(within(F32, want));
    vec![case.scalar(n as i32).scalar(p).scalar(seed).triton()]
}

fn random_fill(_: &File) -> Vec<Case> {
    let n = 256usize;
    let seed = 0x1234_5678_9abc_def0u64;
    let words = |i: usize| philox([i as u32, 0, 0, 0], [seed as u32, (seed >> 32) as u32]);
    let xor: Vec<u32> = (0..n).map(|i| words(i).iter().fold(0, |xor, word| xor ^ word)).collect();
    let normal = (0..n).map(|i| {
        let [a, b, ..] = words(i);
        let size = (-2.0 * uniform(a).max(1e-7).ln()).sqrt();
        (size * (2.0 * std::f64::consts::PI * uniform(b)).cos(), 2e-6 * size.max(1.0) + 2e-6)
    });
    let normal = within(F32, normal.collect::<Vec<_>>());
    vec![launch("random_fill", 2, 128).output(exactly(&xor)).output(normal).scalar(seed).triton()]
}
