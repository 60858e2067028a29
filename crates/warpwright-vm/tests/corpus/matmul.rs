//! Matrix products of plain instructions: tiles in shared memory, matrix times vector, quantised
//! weights.

use crate::case::{Case, Expect, File, Source, exactly, launch, source, within};
use crate::data::{Format, Rng, bytes};
use Format::{F16, F32};

pub(crate) const SOURCES: &[Source] = &[
    source("matmul_tiled.nvcc", matmul_tiled),
    source("matmul.clang", matmul_clang),
    source("matmul.numba", matmul_numba),
    source("gemv.nvcc", gemv),
    source("dequant_gemv.nvcc", dequant_gemv),
    source("dequant_gemv.triton", dequant_gemv_triton),
    source("quantise_rows.triton", quantise_rows),
];

/// One element of a product, and `roundings` units of f32 times the sum of the sizes of its terms.
pub(crate) fn inner(terms: impl Iterator<Item = f64>, roundings: f64) -> (f64, f64) {
    let (value, size) = terms.fold((0.0, 0.0), |(value, size), x| (value + x, size + x.abs()));
    (value, roundings * F32.unit() * size)
}

fn product(a: &[f32], b: &[f32], n: usize, k: usize) -> Vec<(f64, f64)> {
    let rows = a.len() / k;
    let term = |i: usize, j: usize, at: usize| f64::from(a[i * k + at]) * f64::from(b[at * n + j]);
    (0..rows * n).map(|at| inner((0..k).map(|x| term(at / n, at % n, x)), k as f64 + 1.0)).collect()
}

fn matmul_tiled(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(601);
    let (m, n, k) = (37usize, 29usize, 41usize);
    let (a, b) = (rng.f32s(m * k, -1.0, 1.0), rng.f32s(k * n, -1.0, 1.0));
    let tiled = launch("matmul_tiled", (2, 3), (16, 16))
        .input(&a)
        .input(&b)
        .output(within(F32, product(&a, &b, n, k)));
    let tiled = tiled.scalar(m as i32).scalar(n as i32).scalar(k as i32);
    let (m, n, k) = (64usize, 128usize, 24usize);
    let (a, b) = (rng.f32s(m * k, -1.0, 1.0), rng.f32s(k * n, -1.0, 1.0));
    let blocked =
        launch("matmul_blocked", (2, 1), 256).input(&a).input(&b).output(within(F32, product(&a, &b, n, k)));
    vec![tiled, blocked.scalar(m as i32).scalar(n as i32).scalar(k as i32)]
}

fn matmul_clang(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(602);
    let (m, n, k) = (19usize, 35usize, 23usize);
    let (a, b) = (rng.f32s(m * k, -1.0, 1.0), rng.f32s(k * n, -1.0, 1.0));
    let case =
        launch("matmul", (3, 2), (16, 16)).input(&a).input(&b).output(within(F32, product(&a, &b, n, k)));
    vec![case.scalar(m as i32).scalar(n as i32).scalar(k as i32)]
}

fn matmul_numba(file: &File) -> Vec<Case> {
    let mut rng = Rng::new(603);
    let (m, n, k) = (21usize, 18usize, 33usize);
    let (a, b) = (rng.f32s(m * k, -1.0, 1.0), rng.f32s(k * n, -1.0, 1.0));
    let mut case = launch(&file.entries[0], (2, 2), (16, 16));
    let x = case.add(Some(bytes(&a)), Expect::Same);
    let y = case.add(Some(bytes(&b)), Expect::Same);
    let z = case.add(None, within(F32, product(&a, &b, n, k)));
    vec![case.matrix(x, m, k, 4).matrix(y, k, n, 4).matrix(z, m, n, 4)]
}

fn gemv(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(604);
    let (rows, cols) = (13usize, 200usize);
    let (a, x) = (rng.f32s(rows * cols, -1.0, 1.0), rng.f32s(cols, -1.0, 1.0));
    let single = launch("gemv_f32", 4, 128).input(&a).input(&x).output(within(F32, product(&a, &x, 1, cols)));
    let mut draw = |n| (0..n).map(|_| F16.round(rng.f64(-1.0, 1.0))).collect::<Vec<f64>>();
    let (a, x) = (draw(rows * cols), draw(cols));
    // A lane adds up to four products to each half, in f16.
    let want = a.chunks(cols).map(|row| {
        let (y, size) = inner(row.iter().zip(&x).map(|(a, x)| a * x), 1.0);
        (y, 4.0 * F16.unit() * size / F32.unit())
    });
    let half = launch("gemv_half", 4, (32, 4)).floats(F16, &a).floats(F16, &x).output(within(F16, want));
    vec![single.scalar(rows as i32).scalar(cols as i32 / 4), half.scalar(rows as i32).scalar(cols as i32 / 8)]
}

fn dequant_gemv(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(605);
    let (rows, blocks) = (9usize, 45usize);
    let half = |rng: &mut Rng| F16.bits(rng.f64(0.01, 0.1)) as u16;
    let mut weights = Vec::new();
    for _ in 0..rows * blocks {
        weights.extend(half(&mut rng).to_le_bytes());
        weights.extend(rng.bytes(16));
    }
    let mut vector = Vec::new();
    for _ in 0..blocks {
        vector.extend(half(&mut rng).to_le_bytes());
        vector.extend(rng.bytes(32));
    }
    let scale = |block: &[u8]| F16.value(u64::from(u16::from_le_bytes([block[0], block[1]])));
    let want = weights.chunks(18 * blocks).map(|row| {
        let term = |w: &[u8], v: &[u8]| {
            let quant = |j: usize| i32::from(if j < 16 { w[2 + j] & 15 } else { w[2 + j - 16] >> 4 }) - 8;
            let dot: i32 = (0..32).map(|j| quant(j) * i32::from(v[2 + j] as i8)).sum();
            scale(w) * scale(v) * f64::from(dot)
        };
        inner(row.chunks(18).zip(vector.chunks(34)).map(|(w, v)| term(w, v)), 10.0)
    });
    let want: Vec<(f64, f64)> = want.collect();
    let gemv = launch("dequant_gemv", 3, (32, 4)).input(&weights).input(&vector).output(within(F32, want));

    let n = 70usize;
    let (a, b) = (rng.u32s(n), rng.u32s(n));
    let signed = |x: u32| x.to_le_bytes().map(|x| i32::from(x as i8));
    let plain = |x: u32| x.to_le_bytes().map(u32::from);
    let mut out = Vec::new();
    let mut uout = Vec::new();
    for i in 0..n {
        let dot: i32 = signed(a[i]).iter().zip(signed(b[i])).map(|(a, b)| a * b).sum();
        out.push(dot + i as i32 + i32::from(a[i] as i16) + i32::from((a[i] >> 16) as i16) * 2 + 5);
        let dot: u32 = plain(a[i]).iter().zip(plain(b[i])).map(|(a, b)| a * b).sum();
        let (low, high) = (a[i] & 0xffff, a[i] >> 16);
        uout.push((dot + 7).wrapping_add(low * (b[i] >> 16 & 255)).wrapping_add(high * (b[i] >> 24)));
    }
    let mixed = launch("dot_mixed", 3, 32).input(&a).input(&b).output(exactly(&out)).output(exactly(&uout));
    vec![gemv.scalar(rows as i32).scalar(blocks as i32), mixed.scalar(n as i32)]
}

fn dequant_gemv_triton(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(606);
    // The kernel needs columns in multiples of 128.
    let (rows, cols) = (32usize, 256usize);
    let q = rng.bytes(rows * cols / 2);
    let mut draw = |n, low, high| (0..n).map(|_| F16.round(rng.f64(low, high))).collect::<Vec<f64>>();
    let scales = draw(rows * cols / 32, 0.01, 0.1);
    let x = draw(cols, -1.0, 1.0);
    let used = 21usize;
    let want = (0..used).map(|r| {
        let weight = |c: usize| {
            let pair = q[r * cols / 2 + c / 2];
            let quant = if c.is_multiple_of(2) { pair & 15 } else { pair >> 4 };
            scales[r * cols / 32 + c / 32] * (f64::from(quant) - 8.0)
        };
        inner((0..cols).map(|c| weight(c) * x[c]), 20.0)
    });
    let want: Vec<(f64, f64)> = want.collect();
    let case = launch("dequant_gemv", 2, 128).input(&q).floats(F16, &scales).floats(F16, &x);
    vec![case.output(within(F16, want)).scalar(used as i32).scalar(cols as i32).triton()]
}

fn quantise_rows(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(607);
    let (rows, cols) = (3usize, 800usize);
    let x: Vec<f64> = (0..rows * cols).map(|_| Format::Bf16.round(rng.f64(-3.0, 3.0))).collect();
    let scale = |row: &[f64]| row.iter().fold(0.0, |m: f64, x| m.max(x.abs())) / 127.0;
    let scales: Vec<f64> = x.chunks(cols).map(scale).collect();
    let ratios: Vec<f64> =
        x.chunks(cols).zip(&scales).flat_map(|(row, s)| row.iter().map(move |x| x / s)).collect();
    let quants = crate::case::rule(rows * cols, move |got: &[i8]| {
        // Half a step, and the rounding of the division.
        let wrong = got.iter().zip(&ratios).position(|(&q, r)| (f64::from(q) - r).abs() > 0.50002);
        wrong.map_or(Ok(()), |i| Err(format!("number {i} is {}, expected {}", got[i], ratios[i])))
    });
    let scales = within(F32, scales.into_iter().map(|s| (s, 2.0 * F32.unit() * s)));
    let case =
        launch("quantise_rows", rows as u32, 128).floats(Format::Bf16, &x).output(quants).output(scales);
    vec![case.scalar(cols as i32).triton()]
}
