//! Products of quantised matrices with a few columns, on the virtual GPU with every check on, against `f64`.

mod common;

use common::gguf::{Weight, dequantized, weight};
use common::numbers;
use warpwright_kernels::weights::{Planes, Repack};
use warpwright_kernels::{Activations, FusedNormGemv, Matrix, QuantGemv, WeightFormat};
use warpwright_ptx::dsl::{Kernel, bf16_bits, f16_bits};
use warpwright_ptx::ir::Arch;
use warpwright_vm::testing::KernelTest;

/// Half a unit in the last place of 1.
const U: f64 = 1.0 / 16_777_216.0;
/// The smallest number above zero.
const TINY: f64 = 1e-45;

/// A matrix in the file's bytes, on the device, and as what its weights are made of.
struct Weights {
    planes: Vec<u8>,
    rows: Vec<Vec<Weight>>,
}

/// Rows of blocks with any quants and any scales, whose factors are of the size that models have.
fn weights(matrix: Matrix, k: u32, seed: u64) -> Weights {
    let Matrix { format, n, .. } = matrix;
    let bytes = u64::from(n) * format.row_bytes(k);
    let random = numbers(bytes as usize, seed);
    let mut file: Vec<u8> = random.iter().map(|x| ((x + 1.0) * 32_768.0) as u32 as u8).collect();
    for (block, x) in file.chunks_exact_mut(format.block_bytes() as usize).zip(&random) {
        let mut put = |at: usize, value: f64| {
            block[at..at + 2].copy_from_slice(&f16_bits(value as f32).to_le_bytes());
        };
        match format {
            WeightFormat::F32 => block.copy_from_slice(&(*x as f32).to_le_bytes()),
            WeightFormat::F16 => put(0, *x),
            WeightFormat::Bf16 => block.copy_from_slice(&bf16_bits(*x as f32).to_le_bytes()),
            WeightFormat::Q8_0 | WeightFormat::Q4_0 => put(0, *x / 64.0),
            WeightFormat::Q4K | WeightFormat::Q5K => {
                put(0, *x / 512.0);
                put(2, (x + 1.0) / 128.0);
            }
            WeightFormat::Q6K => put(208, *x / 1024.0),
        }
    }
    let kernel = Repack::new(format, n, k);
    let empty = vec![0u8; Planes::new(format, n, k).bytes() as usize];
    let run = KernelTest::new(&kernel).input("gguf", &file).input("planes", &empty).run();
    let planes = run.expect("planes").output::<u8>("planes");
    let of_row = |row: &[u8]| -> Vec<Weight> {
        if format.is_float() {
            let number = |scale| Weight { scale, quant: 1, minimum: 0.0 };
            return dequantized(format, row).into_iter().map(number).collect();
        }
        let blocks = row.chunks_exact(format.block_bytes() as usize);
        blocks.flat_map(|block| (0..format.block() as usize).map(|i| weight(format, block, i))).collect()
    };
    let rows = file.chunks_exact(format.row_bytes(k) as usize).map(of_row).collect();
    Weights { planes, rows }
}

/// Kinds of activations that go wrong in different ways.
const INPUTS: [&str; 8] =
    ["normal", "large", "cancelling", "constant", "one hot", "outliers", "denormal", "zero"];

fn activations(kind: &str, count: usize, seed: u64) -> Vec<f32> {
    let values = numbers(count, seed);
    let value = |(i, &v): (usize, &f64)| match kind {
        "large" => v * 1e6,
        "cancelling" => {
            if i % 2 == 0 {
                1000.0 + v / 1000.0
            } else {
                -1000.0
            }
        }
        "constant" => 0.75,
        "one hot" => f64::from(u8::from(i == count / 3)),
        "outliers" => v * if i % 97 == 5 { 1000.0 } else { 1.0 },
        "denormal" => v * 1e-39,
        "zero" => 0.0,
        _ => v,
    };
    values.iter().enumerate().map(|pair| value(pair) as f32).collect()
}

/// Rows quantised to `q8_1`, 32 at a time: quants, scales, sums.
fn q8_1(x: &[f32]) -> (Vec<i8>, Vec<f32>, Vec<f32>) {
    let (mut quants, mut scales, mut sums) = (Vec::new(), Vec::new(), Vec::new());
    for block in x.chunks_exact(32) {
        let scale = block.iter().fold(0.0f32, |most, v| most.max(v.abs())) / 127.0;
        let inverse = if scale > 0.0 { 1.0 / f64::from(scale) } else { 0.0 };
        let of_block: Vec<_> =
            block.iter().map(|&v| (f64::from(v) * inverse).round_ties_even().clamp(-127.0, 127.0)).collect();
        sums.push((f64::from(scale) * of_block.iter().sum::<f64>()) as f32);
        scales.push(scale);
        quants.extend(of_block.iter().map(|&q| q as i8));
    }
    (quants, scales, sums)
}

/// A kernel with its product, and the epsilon where it normalises.
struct Subject<'a> {
    kernel: &'a dyn Kernel,
    gemv: &'a QuantGemv,
    epsilon: Option<f32>,
}

impl<'a> Subject<'a> {
    fn plain(gemv: &'a QuantGemv) -> Self {
        Subject { kernel: gemv, gemv, epsilon: None }
    }

    fn normalised(kernel: &'a FusedNormGemv) -> Self {
        Subject { kernel, gemv: &kernel.gemv, epsilon: Some(kernel.epsilon) }
    }
}

/// A value with what it may be off by.
#[derive(Clone, Copy)]
struct Held {
    value: f64,
    error: f64,
}

/// The steps of the format's factors on the exact path: see the kernel's page.
fn step(format: WeightFormat) -> f64 {
    match format {
        WeightFormat::Q4K | WeightFormat::Q4_0 => 1.0 / 8.0,
        WeightFormat::Q5K => 1.0 / 16.0,
        WeightFormat::Q6K => 1.0 / 32.0,
        WeightFormat::Q8_0 => 1.0 / 256.0,
        _ => 1.0,
    }
}

/// `Σ w x`, with the bound that the kernel states.
fn product(format: WeightFormat, row: &[Weight], x: &[f64], exact: bool) -> Held {
    let sum = |term: &dyn Fn(&Weight, f64) -> f64| row.iter().zip(x).map(|(w, &x)| term(w, x)).sum::<f64>();
    let value = sum(&|w, x| w.value() * x);
    let size = sum(&|w, x| (w.scale.abs() * f64::from(w.quant.abs()) + w.minimum.abs()) * x.abs());
    let k = row.len() as f64;
    let error = if format.is_float() {
        (k / 8.0 + 32.0) * U * size
    } else {
        let offset = if exact { sum(&|w, x| 256.0 * w.scale.abs() / step(format) * x.abs()) } else { 0.0 };
        let zero = match format {
            WeightFormat::Q4_0 => sum(&|w, x| 8.0 * w.scale.abs() * x.abs()),
            _ => 0.0,
        };
        (k / 256.0 + 48.0) * U * (size + zero) + U * offset
    };
    // Below the smallest normal number, roundings are not relative.
    Held { value, error: error + 64.0 * k * TINY }
}

fn check(subject: &Subject<'_>, kind: &str, seed: u64) {
    let Subject { kernel, gemv, epsilon } = subject;
    let (k, batch) = (gemv.k as usize, gemv.batch as usize);
    let exact = gemv.activations == Activations::Exact;
    let all: Vec<_> =
        (gemv.matrices.iter().zip(11..)).map(|(&matrix, seed)| weights(matrix, gemv.k, seed)).collect();
    let x = activations(kind, batch * k, 5);
    let norm: Vec<f32> = numbers(k, 6).iter().map(|v| *v as f32 + 1.5).collect();
    let mut test = KernelTest::new(*kernel).arch(Arch::sm(80)).seed(seed);
    let mut columns: Vec<Vec<f64>> =
        x.chunks_exact(k).map(|c| c.iter().map(|&v| v.into()).collect()).collect();
    if exact {
        test = test.input("x", &x);
    } else {
        let (quants, scales, sums) = q8_1(&x);
        let rounded: Vec<f64> =
            (0..x.len()).map(|i| f64::from(quants[i]) * f64::from(scales[i / 32])).collect();
        columns = rounded.chunks_exact(k).map(<[f64]>::to_vec).collect();
        test = test.input("x_quants", &quants).input("x_scales", &scales).input("x_sums", &sums);
    }
    let mut factors = vec![1.0; batch];
    if let Some(epsilon) = epsilon {
        test = test.input("norm", &norm);
        for (column, factor) in columns.iter_mut().zip(&mut factors) {
            let mean = column.iter().map(|v| v * v).sum::<f64>() / k as f64;
            *factor = 1.0 / (mean + f64::from(*epsilon)).sqrt();
            column.iter_mut().zip(&norm).for_each(|(v, &w)| *v *= f64::from(w));
        }
    }
    let mut extras = Vec::new();
    for (i, (matrix, weights)) in gemv.matrices.iter().zip(&all).enumerate() {
        let n = matrix.n as usize;
        let small = |count: usize, seed: u64| -> Vec<f32> {
            numbers(count, seed).iter().map(|v| *v as f32 * 3.0).collect()
        };
        test = test.input(&format!("w{i}"), &weights.planes);
        let bias = if matrix.bias { small(n, 31 + i as u64) } else { vec![0.0; n] };
        let residual = if matrix.residual { small(batch * n, 41 + i as u64) } else { vec![0.0; batch * n] };
        if matrix.bias {
            test = test.input(&format!("bias{i}"), &bias);
        }
        if matrix.residual {
            test = test.input(&format!("residual{i}"), &residual);
        }
        if !(gemv.swiglu && i > 0) {
            test = test.input(&format!("y{i}"), &vec![f32::NAN; batch * n]);
        }
        extras.push((bias, residual));
    }
    let what = format!("{}, {kind}, seed {seed}", kernel.entry());
    let run = test.run().unwrap_or_else(|error| panic!("{what}: {error}"));
    for (i, matrix) in gemv.matrices.iter().enumerate().take(if gemv.swiglu { 1 } else { usize::MAX }) {
        let y = run.output::<f32>(&format!("y{i}"));
        for (column, x) in columns.iter().enumerate() {
            let one = |which: usize, row: usize| {
                let Held { value, error } = product(matrix.format, &all[which].rows[row], x, exact);
                let factor = factors[column];
                // The mean of the squares, and the reciprocal root.
                let of_factor = if epsilon.is_some() { (k as f64 / 128.0 + 16.0) * U } else { 0.0 };
                let value = value * factor;
                let error = error * factor * (1.0 + of_factor) + value.abs() * (of_factor + 2.0 * U);
                let value = value + f64::from(extras[which].0[row]);
                Held { value, error: error + value.abs() * U }
            };
            for row in 0..matrix.n as usize {
                let mut held = one(i, row);
                if gemv.swiglu {
                    let other = one(1, row);
                    let gate = held.value / (1.0 + (-held.value).exp());
                    // The slope of silu is at most 1.1, its own error a few roundings.
                    let of_gate = 1.1 * held.error + (8.0 + held.value.abs()) * U * gate.abs() + TINY;
                    let value = gate * other.value;
                    let error = of_gate * (other.value.abs() + other.error) + gate.abs() * other.error;
                    held = Held { value, error: error + value.abs() * U };
                }
                let at = column * matrix.n as usize + row;
                held.value += f64::from(extras[i].1[at]);
                let found = f64::from(y[at]);
                let off = (found - held.value).abs();
                let bound = held.error + held.value.abs() * U;
                assert!(
                    off <= bound,
                    "{what}: y{i}[{column}][{row}] is {found}, should be {} within {bound:e}, off by {off:e}",
                    held.value
                );
            }
        }
    }
}

fn gemv(format: WeightFormat, n: u32, k: u32) -> QuantGemv {
    QuantGemv::new(format, n, k)
}

/// Lengths of rows: a block, less than a slice, slices and a part of one, more slices than warps.
fn lengths(format: WeightFormat) -> Vec<u32> {
    match format.block() {
        1 => vec![1, 7, 64, 100, 513, 1030],
        32 => vec![32, 96, 256, 512, 1056, 2784],
        _ => vec![256, 512, 1280, 4864],
    }
}

#[test]
fn every_format_and_length() {
    for format in WeightFormat::ALL {
        for k in lengths(format) {
            for n in [1, 5, 16, 35] {
                check(&Subject::plain(&gemv(format, n, k)), "normal", 1);
            }
        }
    }
}

#[test]
fn every_format_and_length_in_bytes() {
    for format in WeightFormat::ALL.into_iter().filter(|format| !format.is_float()) {
        for k in lengths(format) {
            for n in [1, 5, 16, 35] {
                let kernel = QuantGemv { activations: Activations::Int8, ..gemv(format, n, k) };
                check(&Subject::plain(&kernel), "normal", 1);
            }
        }
    }
}

#[test]
fn every_kind_of_input() {
    for format in WeightFormat::ALL {
        for activations in Activations::ALL {
            if format.is_float() && activations == Activations::Int8 {
                continue;
            }
            for kind in INPUTS {
                for seed in [1, 2] {
                    let kernel = QuantGemv { activations, ..gemv(format, 20, 768) };
                    check(&Subject::plain(&kernel), kind, seed);
                }
            }
        }
    }
}

#[test]
fn every_batch() {
    for format in
        [WeightFormat::Q4K, WeightFormat::Q6K, WeightFormat::Q8_0, WeightFormat::F16, WeightFormat::Q4_0]
    {
        for batch in 1..=8 {
            let kernel = QuantGemv { batch, ..gemv(format, 19, 1280) };
            check(&Subject::plain(&kernel), "normal", 1);
            if !format.is_float() {
                check(&Subject::plain(&QuantGemv { activations: Activations::Int8, ..kernel }), "normal", 2);
            }
        }
    }
    // Rows whose columns do not begin at multiples of 16 bytes.
    check(&Subject::plain(&QuantGemv { batch: 3, ..gemv(WeightFormat::Bf16, 18, 203) }), "normal", 1);
}

#[test]
fn every_number_of_warps() {
    for warps in [1, 2, 3, 5, 16] {
        for format in [WeightFormat::Q4K, WeightFormat::Q4_0] {
            let kernel = QuantGemv { warps: Some(warps), ..gemv(format, 17, 2816) };
            check(&Subject::plain(&kernel), "normal", 3);
        }
    }
}

#[test]
fn additions_and_several_matrices() {
    let (bias, residual) = (true, true);
    let of = |format, n| Matrix::new(format, n);
    for activations in Activations::ALL {
        let kernel = QuantGemv {
            matrices: vec![
                Matrix { bias, ..of(WeightFormat::Q4K, 40) },
                Matrix { residual, ..of(WeightFormat::Q6K, 7) },
                Matrix { bias, residual, ..of(WeightFormat::Q8_0, 16) },
                of(WeightFormat::Q5K, 33),
            ],
            batch: 2,
            activations,
            ..gemv(WeightFormat::Q4K, 1, 768)
        };
        for seed in [1, 2, 3] {
            check(&Subject::plain(&kernel), "normal", seed);
        }
    }
}

#[test]
fn gated_products() {
    for format in WeightFormat::ALL {
        for activations in Activations::ALL {
            if format.is_float() && activations == Activations::Int8 {
                continue;
            }
            for (batch, n, bias) in [(1, 8, false), (1, 21, true), (6, 5, false)] {
                let matrix = Matrix { bias, ..Matrix::new(format, n) };
                let first = Matrix { residual: bias, ..matrix };
                let kernel = QuantGemv {
                    matrices: vec![first, matrix],
                    swiglu: true,
                    batch,
                    activations,
                    ..gemv(format, 1, 768)
                };
                check(&Subject::plain(&kernel), "normal", 1);
            }
        }
    }
}

#[test]
fn normalised_products() {
    for format in WeightFormat::ALL {
        for (n, k, batch) in [(18, 768, 1), (5, 1280, 3)] {
            let mut kernel = FusedNormGemv::new(format, n, k, 1e-5);
            kernel.gemv.batch = batch;
            for kind in INPUTS {
                check(&Subject::normalised(&kernel), kind, 1);
            }
        }
    }
    let mut kernel = FusedNormGemv::new(WeightFormat::Q4K, 8, 1024, 1e-6);
    kernel.gemv.matrices.push(Matrix::new(WeightFormat::Q4K, 8));
    kernel.gemv.swiglu = true;
    check(&Subject::normalised(&kernel), "normal", 1);
}
