//! Triton's matrix products: every operand type, pipelined copies, split k, problem lists.

use crate::case::{Case, Expect, File, Source, exactly, launch, source, within};
use crate::data::{Format, Rng};
use crate::tensor_cores::tf32;
use Format::{Bf16, E4m3, E5m2, F16, F32, F64};

pub(crate) const SOURCES: &[Source] = &[
    source("matmul_f16.triton", |file| vec![matmul(file, F16, F16, (64, 64), true)]),
    source("matmul_bf16.triton", |file| vec![matmul(file, Bf16, Bf16, (128, 64), false)]),
    source("matmul_tf32.triton", |file| vec![matmul(file, F32, F32, (64, 64), false)]),
    source("matmul_i8.triton", |file| vec![matmul_i8(file)]),
    source("matmul_f8.triton", |file| vec![matmul(file, E4m3, F16, (64, 64), false)]),
    source("matmul_f8e5.triton", |file| vec![matmul(file, E5m2, Bf16, (64, 64), false)]),
    source("matmul_f64.triton", |file| vec![matmul(file, F64, F64, (32, 32), false)]),
    source("matmul_small.triton", |file| vec![matmul(file, F16, F32, (16, 16), false)]),
    source("matmul_f16_4stage.triton", |file| vec![matmul(file, F16, F16, (128, 128), false)]),
    source("matmul_split_k.triton", |file| vec![split_k(file)]),
    source("grouped_gemm.triton", |file| vec![grouped(file)]),
    source("matmul_descriptor.triton", |file| vec![descriptor(file)]),
    source("dequant_matmul.triton", |file| vec![dequant(file)]),
];

/// Dynamic shared memory that is enough for any of these kernels on its target.
pub(crate) fn shared(file: &File) -> u32 {
    if file.arch < 80 { 64 << 10 } else { 98 << 10 }
}

struct Shape {
    m: usize,
    n: usize,
    k: usize,
    /// Elements from one row to the next.
    lda: usize,
    ldb: usize,
    ldc: usize,
}

/// Odd sizes, with rows that start at multiples of 16 elements.
const SHAPE: Shape = Shape { m: 83, n: 70, k: 101, lda: 112, ldb: 80, ldc: 96 };

impl Shape {
    fn pass(&self, case: Case) -> Case {
        let sizes = [self.m, self.n, self.k, self.lda, self.ldb, self.ldc];
        sizes.iter().fold(case, |case, &size| case.scalar(size as i32)).triton()
    }

    fn blocks(&self, tile: (usize, usize)) -> u32 {
        (self.m.div_ceil(tile.0) * self.n.div_ceil(tile.1)) as u32
    }

    /// Value and sum of sizes of each element; the gaps between rows stay 0.
    fn product(&self, a: &[f64], b: &[f64]) -> Vec<(f64, f64)> {
        let element = |i: usize, j: usize| {
            let terms = (0..self.k).map(|l| a[i * self.lda + l] * b[l * self.ldb + j]);
            terms.fold((0.0, 0.0), |(value, size), x: f64| (value + x, size + x.abs()))
        };
        let at = |at: usize| {
            if at % self.ldc < self.n { element(at / self.ldc, at % self.ldc) } else { (0.0, 0.0) }
        };
        (0..self.m * self.ldc).map(at).collect()
    }
}

/// Threads of a block, as the file requires.
fn width(file: &File) -> u32 {
    let line = file.text.lines().find(|line| line.contains(".reqntid")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|width| width.trim_matches(',').parse().ok()).unwrap_or(128)
}

/// How far off a tensor core may be, relative to the sum of sizes: a unit for each product of each
/// step, where the eight-bit formats keep 13 fraction bits on some chips.
fn looseness(format: Format, file: &File, k: usize) -> f64 {
    match format {
        F64 => k as f64 * F64.unit(),
        E4m3 if file.arch == 89 || file.text.contains("wgmma.") => {
            (k.div_ceil(16) as f64 + 4.0) * 2f64.powi(-13)
        }
        _ => k as f64 * 2.0 * F32.unit(),
    }
}

fn matmul(file: &File, from: Format, to: Format, tile: (usize, usize), relu: bool) -> Case {
    let mut rng = Rng::new(801);
    let shape = &SHAPE;
    let mut draw = |n: usize| (0..n).map(|_| from.round(rng.f64(-1.0, 1.0))).collect::<Vec<f64>>();
    let (a, b) = (draw(shape.m * shape.lda), draw(shape.k * shape.ldb));
    // f32 goes through tensor cores as tf32, rounded or cut.
    let short = from == F32;
    let cut = |x: &[f64]| x.iter().map(|&x| if short { tf32(x as f32) } else { x }).collect::<Vec<f64>>();
    let relative = looseness(from, file, shape.k) + if short { 2.0 * 2f64.powi(-10) } else { 0.0 };
    let want = shape.product(&cut(&a), &cut(&b)).into_iter().map(|(value, size)| {
        let value = if relu { value.max(0.0) } else { value };
        (value, relative * size)
    });
    let want = within(to, want.collect::<Vec<_>>());
    let zeros = to.store(&vec![0.0; shape.m * shape.ldc]);
    let bytes = if tile.0 * tile.1 > 64 * 128 { 132 << 10 } else { shared(file) };
    let case = launch("matmul", shape.blocks(tile), width(file)).shared(bytes);
    shape.pass(case.floats(from, &a).floats(from, &b).inout(&zeros, want))
}

fn matmul_i8(file: &File) -> Case {
    let mut rng = Rng::new(802);
    let shape = &SHAPE;
    let (a, b) = (rng.bytes(shape.m * shape.lda), rng.bytes(shape.k * shape.ldb));
    let wide = |x: &[u8]| x.iter().map(|&x| f64::from(x as i8)).collect::<Vec<f64>>();
    let want: Vec<i32> = shape.product(&wide(&a), &wide(&b)).iter().map(|(value, _)| *value as i32).collect();
    let case = launch("matmul", shape.blocks((64, 64)), 128).shared(shared(file));
    let case = case.input(&a).input(&b).inout(&vec![0i32; want.len()], exactly(&want));
    shape.pass(case)
}

fn split_k(file: &File) -> Case {
    let mut rng = Rng::new(803);
    // Sizes are multiples of 16; b lies columns first. Quarters: sums by atomics are exact.
    let (m, n, k) = (48usize, 80usize, 112usize);
    let mut quarter = |n| (0..n).map(|_| rng.int(-8, 8) as f32 / 4.0).collect::<Vec<f32>>();
    let (a, b) = (quarter(m * k), quarter(n * k));
    let want: Vec<f32> =
        (0..m * n).map(|at| (0..k).map(|l| a[at / n * k + l] * b[at % n * k + l]).sum()).collect();
    let case = launch("matmul_split_k", (2, 3, 4), 128).shared(shared(file)).input(&a).input(&b);
    let case = case.inout(&vec![0f32; m * n], exactly(&want));
    case.scalar(m as i32).scalar(n as i32).scalar(k as i32).triton_with_scratch(4)
}

fn grouped(file: &File) -> Case {
    let mut rng = Rng::new(804);
    let problems = [(70usize, 40usize, 33usize), (20, 90, 64), (5, 6, 7)];
    let mut case = launch("grouped_gemm", 84, 128).shared(shared(file));
    let mut tables: [Vec<usize>; 3] = Default::default();
    for (m, n, k) in problems {
        let mut draw = |n: usize| (0..n).map(|_| F16.round(rng.f64(-1.0, 1.0))).collect::<Vec<f64>>();
        let (a, b) = (draw(m * k), draw(k * n));
        let shape = Shape { m, n, k, lda: k, ldb: n, ldc: n };
        let want =
            shape.product(&a, &b).into_iter().map(|(value, size)| (value, looseness(F16, file, k) * size));
        tables[0].push(case.add(Some(F16.store(&a)), Expect::Same));
        tables[1].push(case.add(Some(F16.store(&b)), Expect::Same));
        tables[2].push(case.add(None, within(F16, want.collect::<Vec<_>>())));
    }
    let sizes: Vec<i32> = problems.iter().flat_map(|&(m, n, k)| [m as i32, n as i32, k as i32]).collect();
    let case = case.table(&tables[0]).table(&tables[1]).table(&tables[2]);
    case.input(&sizes).scalar(problems.len() as i32).triton()
}

fn descriptor(file: &File) -> Case {
    let mut rng = Rng::new(805);
    let (m, n, k) = (80usize, 96usize, 112usize);
    let mut draw = |n: usize| (0..n).map(|_| F16.round(rng.f64(-1.0, 1.0))).collect::<Vec<f64>>();
    let (a, b) = (draw(m * k), draw(n * k));
    let turned: Vec<f64> = (0..k * n).map(|at| b[at % n * k + at / n]).collect();
    let shape = Shape { m, n, k, lda: k, ldb: n, ldc: n };
    let want =
        shape.product(&a, &turned).into_iter().map(|(value, size)| (value, looseness(F16, file, k) * size));
    let want = within(F16, want.collect::<Vec<_>>());
    let case = launch("matmul_descriptor", (2, 2), width(file)).shared(shared(file));
    let case = case.floats(F16, &a).floats(F16, &b).output(want);
    case.scalar(m as i32).scalar(n as i32).scalar(k as i32).triton_with_scratch(4)
}

fn dequant(file: &File) -> Case {
    let mut rng = Rng::new(806);
    let (m, n, k) = (48usize, 80usize, 96usize);
    let a: Vec<f64> = (0..m * k).map(|_| F16.round(rng.f64(-1.0, 1.0))).collect();
    let q = rng.bytes(k * n);
    let scales = rng.f32s(n, 0.001, 0.01);
    let wide: Vec<f64> = q.iter().map(|&q| f64::from(q as i8)).collect();
    let shape = Shape { m, n, k, lda: k, ldb: n, ldc: n };
    let want = shape.product(&a, &wide).into_iter().enumerate().map(|(at, (value, size))| {
        let scale = f64::from(scales[at % n]);
        (value * scale, looseness(F16, file, k) * size * scale)
    });
    let want = within(F16, want.collect::<Vec<_>>());
    let case = launch("dequant_matmul", (2, 2), width(file))
        .shared(shared(file))
        .floats(F16, &a)
        .input(&q)
        .input(&scales);
    let case = case.output(want).scalar(m as i32).scalar(n as i32).scalar(k as i32);
    case.triton()
}
