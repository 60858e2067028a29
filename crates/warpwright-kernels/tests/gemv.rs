//! Products of quantised matrices with a few columns, on the virtual GPU with every check on, against `f64`.

mod common;

use common::gguf::{Weight, dequantized, weight};
use common::numbers;
use warpwright_kernels::weights::{Planes, Repack};
use warpwright_kernels::{Activations, FusedNormGemv, Matrix, QuantGemv, WeightFormat};
use warpwright_ptx::dsl::{BuildError, Kernel, bf16_bits, f16_bits};
use warpwright_ptx::ir::Arch;
use warpwright_vm::Options;
use warpwright_vm::testing::KernelTest;

/// Half a unit in the last place of 1.
const U: f64 = 1.0 / 16_777_216.0;
/// The smallest number above zero.
const TINY: f64 = 1e-45;

/// A matrix as it is on the device and in the file.
struct Weights {
    planes: Vec<u8>,
    file: Vec<u8>,
    format: WeightFormat,
}

impl Weights {
    /// What the weights of a row of `k` are made of.
    fn row(&self, row: usize, k: u32) -> Vec<Weight> {
        let format = self.format;
        let bytes = format.row_bytes(k) as usize;
        let row = &self.file[row * bytes..][..bytes];
        if format.is_float() {
            let number = |scale| Weight { scale, quant: 1, minimum: 0.0 };
            return dequantized(format, row).into_iter().map(number).collect();
        }
        let blocks = row.chunks_exact(format.block_bytes() as usize);
        blocks.flat_map(|block| (0..format.block() as usize).map(|i| weight(format, block, i))).collect()
    }
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
    let test = KernelTest::new(&kernel).options(Options::default());
    let run = test.input("gguf", &file).input("planes", &empty).run();
    let planes = run.expect("planes").output::<u8>("planes");
    Weights { planes, file, format }
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
    options: Options,
    sm: u16,
}

impl<'a> Subject<'a> {
    fn plain(gemv: &'a QuantGemv) -> Self {
        Subject { kernel: gemv, gemv, epsilon: None, options: Options::checked(), sm: 80 }
    }

    fn normalised(kernel: &'a FusedNormGemv) -> Self {
        let epsilon = Some(kernel.epsilon);
        Subject { kernel, gemv: &kernel.gemv, epsilon, options: Options::checked(), sm: 80 }
    }

    /// Without checks, for large sizes.
    fn unchecked(self) -> Self {
        Subject { options: Options::default(), ..self }
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
fn product(format: WeightFormat, row: &[Weight], x: &[f64], activations: Activations) -> Held {
    let exact = activations == Activations::Exact;
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
    // Half of the scale of each 32, or all of what is too small for one.
    let rounded = if activations == Activations::Rounded {
        let blocks = row.chunks_exact(32).zip(x.chunks_exact(32));
        let of_block = |(row, x): (&[Weight], &[f64])| {
            let weights = row.iter().map(|w| w.value().abs()).sum::<f64>();
            let scale = x.iter().fold(0.0f64, |most, x| most.max(x.abs())) / 127.0;
            weights * if scale < 1.2e-38 { 127.0 * scale } else { 0.502 * scale }
        };
        blocks.map(of_block).sum::<f64>()
    } else {
        0.0
    };
    // Below the smallest normal number, roundings are not relative.
    Held { value, error: error + rounded + 64.0 * k * TINY }
}

fn check(subject: &Subject<'_>, kind: &str, seed: u64) {
    let Subject { kernel, gemv, epsilon, options, sm } = subject;
    let (k, batch) = (gemv.k as usize, gemv.batch as usize);
    let all: Vec<_> =
        (gemv.matrices.iter().zip(11..)).map(|(&matrix, seed)| weights(matrix, gemv.k, seed)).collect();
    let x = activations(kind, batch * k, 5);
    let norm: Vec<f32> = numbers(k, 6).iter().map(|v| *v as f32 + 1.5).collect();
    let mut test = KernelTest::new(*kernel).arch(Arch::sm(*sm)).options(options.clone()).seed(seed);
    let mut columns: Vec<Vec<f64>> =
        x.chunks_exact(k).map(|c| c.iter().map(|&v| v.into()).collect()).collect();
    if gemv.activations != Activations::Int8 {
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
        for row in 0..matrix.n as usize {
            let pair = [i, 1].map(|which| {
                let used = which == i || gemv.swiglu;
                if used { all[which].row(row, gemv.k) } else { Vec::new() }
            });
            for (column, (x, factor)) in columns.iter().zip(&factors).enumerate() {
                let one = |which: usize| {
                    let Held { value, error } = product(matrix.format, &pair[which], x, gemv.activations);
                    // The mean of the squares, and the reciprocal root.
                    let of_factor = if epsilon.is_some() { (k as f64 / 128.0 + 16.0) * U } else { 0.0 };
                    let value = value * factor;
                    let error = error * factor * (1.0 + of_factor) + value.abs() * (of_factor + 2.0 * U);
                    let bias = &extras[if which == 0 { i } else { 1 }].0;
                    let value = value + f64::from(bias[row]);
                    Held { value, error: error + value.abs() * U }
                };
                let mut held = one(0);
                if gemv.swiglu {
                    let other = one(1);
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
                    "{what}: y{i}[{column}][{row}] is {found}, not {} within {bound:e}, by {off:e}",
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
                for activations in [Activations::Int8, Activations::Rounded] {
                    let kernel = QuantGemv { activations, ..gemv(format, n, k) };
                    check(&Subject::plain(&kernel), "normal", 1);
                }
            }
        }
    }
}

#[test]
fn every_kind_of_input() {
    for format in WeightFormat::ALL {
        for activations in Activations::ALL {
            if format.is_float() && activations != Activations::Exact {
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
            for activations in Activations::ALL {
                if !format.is_float() || activations == Activations::Exact {
                    let kernel = QuantGemv { batch, activations, ..gemv(format, 19, 1280) };
                    check(&Subject::plain(&kernel), "normal", 1);
                }
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
            if format.is_float() && activations != Activations::Exact {
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
            for activations in [Activations::Exact, Activations::Rounded] {
                if format.is_float() && activations != Activations::Exact {
                    continue;
                }
                kernel.gemv.activations = activations;
                for kind in INPUTS {
                    check(&Subject::normalised(&kernel), kind, 1);
                }
            }
        }
    }
    let mut kernel = FusedNormGemv::new(WeightFormat::Q4K, 8, 1024, 1e-6);
    kernel.gemv.matrices.push(Matrix::new(WeightFormat::Q4K, 8));
    kernel.gemv.swiglu = true;
    check(&Subject::normalised(&kernel), "normal", 1);
}

/// The matrices of a layer: `(format, n, k)`.
const LAYERS: [(WeightFormat, u32, u32); 12] = [
    // Llama-3.2-1B.
    (WeightFormat::Q4K, 2048, 2048),
    (WeightFormat::Q6K, 512, 2048),
    (WeightFormat::Q4K, 8192, 2048),
    (WeightFormat::Q6K, 2048, 8192),
    // Qwen2.5-1.5B.
    (WeightFormat::Q5K, 1536, 1536),
    (WeightFormat::Q8_0, 256, 1536),
    (WeightFormat::Q4_0, 8960, 1536),
    (WeightFormat::Q4K, 1536, 8960),
    // Llama-3-8B.
    (WeightFormat::Q4K, 4096, 4096),
    (WeightFormat::F16, 1024, 4096),
    (WeightFormat::Q4K, 14336, 4096),
    (WeightFormat::Q6K, 4096, 14336),
];

#[test]
fn rows_of_models() {
    let full = std::env::var_os("WARPWRIGHT_FULL").is_some();
    for (format, n, k) in LAYERS {
        // Without the time for all rows, those of a few tiles.
        let n = if full { n } else { 21 };
        for activations in Activations::ALL {
            if format.is_float() && activations != Activations::Exact {
                continue;
            }
            let kernel = QuantGemv { activations, ..gemv(format, n, k) };
            check(&Subject::plain(&kernel).unchecked(), "outliers", 1);
        }
        let normed = FusedNormGemv::new(format, n, k, 1e-5);
        check(&Subject::normalised(&normed).unchecked(), "normal", 1);
    }
}

#[test]
fn every_target() {
    for sm in [75, 86, 89, 90, 100, 120] {
        for format in WeightFormat::ALL {
            for activations in Activations::ALL {
                if !format.is_float() || activations == Activations::Exact {
                    let kernel = QuantGemv { activations, batch: 2, ..gemv(format, 18, 768) };
                    check(&Subject { sm, ..Subject::plain(&kernel) }, "normal", 1);
                }
            }
        }
        let normed = FusedNormGemv::new(WeightFormat::Q4K, 18, 768, 1e-5);
        check(&Subject { sm, ..Subject::normalised(&normed) }, "normal", 1);
    }
}

/// The field that a configuration is refused for; its description is asked for all the same.
fn refused(kernel: &dyn Kernel) -> &'static str {
    let _ = (kernel.entry(), kernel.args(), kernel.launch());
    match kernel.build(Arch::sm(80)) {
        Err(BuildError::Field { field, .. }) => field,
        other => panic!("{}: {:?}", kernel.entry(), other.map(|built| built.launch)),
    }
}

#[test]
fn what_is_not_a_product_is_refused_by_its_field() {
    let base = || gemv(WeightFormat::Q4K, 64, 1024);
    let matrix = |format, n| Matrix::new(format, n);
    let several = |matrices| QuantGemv { matrices, ..base() };
    let cases: [(QuantGemv, &str); 14] = [
        (several(vec![]), "matrices"),
        (several(vec![matrix(WeightFormat::Q4K, 8); 5]), "matrices"),
        (QuantGemv { batch: 0, ..gemv(WeightFormat::F16, 8, 8) }, "batch"),
        (QuantGemv { batch: u32::MAX, ..base() }, "batch"),
        (gemv(WeightFormat::F32, u32::MAX, u32::MAX), "k"),
        (gemv(WeightFormat::Q4K, 64, 0), "k"),
        (gemv(WeightFormat::Q4K, 64, 1056), "k"),
        (gemv(WeightFormat::Q8_0, 64, 1040), "k"),
        (gemv(WeightFormat::Q4K, 0, 1024), "n"),
        (gemv(WeightFormat::Q4K, u32::MAX, 1024), "n"),
        (QuantGemv { activations: Activations::Int8, ..gemv(WeightFormat::F16, 8, 64) }, "activations"),
        (QuantGemv { swiglu: true, ..base() }, "swiglu"),
        (
            QuantGemv {
                swiglu: true,
                ..several(vec![matrix(WeightFormat::Q4K, 8), matrix(WeightFormat::Q6K, 8)])
            },
            "swiglu",
        ),
        (QuantGemv { warps: Some(16), batch: 8, ..base() }, "warps"),
    ];
    for (kernel, field) in cases {
        assert_eq!(refused(&kernel), field, "{kernel:?}");
    }
    let residual = Matrix { residual: true, ..matrix(WeightFormat::Q4K, 8) };
    assert_eq!(refused(&QuantGemv { swiglu: true, ..several(vec![residual; 2]) }), "residual");
    let normed = FusedNormGemv::new(WeightFormat::Q4K, 8, 256, f32::NAN);
    assert_eq!(refused(&normed), "epsilon");
    let mut normed = FusedNormGemv::new(WeightFormat::Q4K, 8, 256, 1e-5);
    normed.gemv.activations = Activations::Int8;
    assert_eq!(refused(&normed), "activations");
}
