//! A product in one configuration, run and held to `f64` within the bound that the kernel states.

use crate::common::activation::Exact;
use crate::common::gguf;
use crate::common::numbers;
use warpwright_dsl::any::AnyKernel;
use warpwright_kernels::weights::{Planes, Repack, Weight};
use warpwright_kernels::{Activations, Matrix, QuantGemv, WeightFormat};
use warpwright_ptx::ir::Arch;
use warpwright_test::KernelTest;
use warpwright_testing::RunHere;
use warpwright_vm::Options;

/// Half a unit in the last place of 1.
const U: f64 = 1.0 / 16_777_216.0;
/// The smallest number above zero.
const TINY: f64 = 1e-45;

/// A matrix as it is on the device and in the file.
pub(crate) struct Weights {
    pub(crate) planes: Vec<u8>,
    file: Vec<u8>,
    format: WeightFormat,
}

impl Weights {
    /// What the weights of a row of `k` are made of.
    fn row(&self, row: usize, k: u32) -> Vec<Weight> {
        let bytes = self.format.row_bytes(k) as usize;
        let of_matrix = match self.format.has_tensor_scale() {
            true => f32::from_le_bytes(*self.file.last_chunk().expect("a scale of the matrix")).into(),
            false => 1.0,
        };
        let scaled = |weight: Weight| Weight {
            scale: weight.scale * of_matrix,
            minimum: weight.minimum * of_matrix,
            ..weight
        };
        self.format.weights(&self.file[row * bytes..][..bytes]).into_iter().map(scaled).collect()
    }
}

/// Rows of blocks with any quants and any scales, whose factors are of the size that models have.
pub(crate) fn weights(matrix: Matrix, k: u32, seed: u64) -> Weights {
    let Matrix { format, n, .. } = matrix;
    let file = gguf::matrix(format, n, k, seed);
    let kernel = Repack::new(format, n, k);
    let empty = vec![0u8; Planes::new(format, n, k).bytes() as usize];
    let test = KernelTest::new(&kernel).options(Options::default());
    let run = test.input("gguf", &file).input("planes", &empty).run_here();
    let planes = run.expect("planes").output::<u8>("planes");
    Weights { planes, file, format }
}

/// Kinds of activations that go wrong in different ways.
pub(crate) const INPUTS: [&str; 8] =
    ["normal", "large", "cancelling", "constant", "one hot", "outliers", "denormal", "zero"];

pub(crate) fn activations(kind: &str, count: usize, seed: u64) -> Vec<f32> {
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

/// Rows quantised to bytes, 32 at a time: quants and scales.
pub(crate) fn quantised(x: &[f32]) -> (Vec<i8>, Vec<f32>) {
    let (mut quants, mut scales) = (Vec::new(), Vec::new());
    for block in x.chunks_exact(32) {
        let scale = block.iter().fold(0.0f32, |most, v| most.max(v.abs())) / 127.0;
        let inverse = if scale > 0.0 { 1.0 / f64::from(scale) } else { 0.0 };
        let of_block: Vec<_> =
            block.iter().map(|&v| (f64::from(v) * inverse).round_ties_even().clamp(-127.0, 127.0)).collect();
        scales.push(scale);
        quants.extend(of_block.iter().map(|&q| q as i8));
    }
    (quants, scales)
}

/// A product, and how it is run.
pub(crate) struct Subject<'a> {
    gemv: &'a QuantGemv,
    options: Options,
    sm: u16,
}

impl<'a> Subject<'a> {
    pub(crate) fn plain(gemv: &'a QuantGemv) -> Self {
        Subject { gemv, options: Options::checked(), sm: 80 }
    }

    /// On another target than `sm_80`.
    pub(crate) fn on(self, sm: u16) -> Self {
        Subject { sm, ..self }
    }

    /// Without checks, for large sizes.
    pub(crate) fn unchecked(self) -> Self {
        Subject { options: Options::default(), ..self }
    }
}

/// A value with what it may be off by.
#[derive(Clone, Copy)]
struct Held {
    value: f64,
    error: f64,
}

/// The steps of the format's factors on the exact path, by the bits of its codes: see the kernel's page.
fn step(format: WeightFormat) -> f64 {
    let bits = match format {
        WeightFormat::Q2K => 2,
        WeightFormat::Q3K => 3,
        WeightFormat::Q4K | WeightFormat::Q4_0 | WeightFormat::Q4_1 => 4,
        WeightFormat::Q5K | WeightFormat::Q5_0 | WeightFormat::Q5_1 => 5,
        WeightFormat::Mxfp4 | WeightFormat::Nvfp4 => 5,
        WeightFormat::Q6K => 6,
        // Eight bits, and what counts as them; floats have none.
        WeightFormat::Q8_0 | WeightFormat::Iq4Nl | WeightFormat::Iq4Xs => 7,
        WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 => 1,
    };
    2f64.powi(1 - bits)
}

/// `Σ w x`, with the bound that the kernel states.
fn product(format: WeightFormat, row: &[Weight], x: &[f64], activations: Activations) -> Held {
    let exact = activations == Activations::Exact;
    let sum = |term: &dyn Fn(&Weight, f64) -> f64| row.iter().zip(x).map(|(w, &x)| term(w, x)).sum::<f64>();
    let value = sum(&|w, x| w.value() * x);
    let size = sum(&|w, x| (w.scale.abs() * w.quant.abs() + w.minimum.abs()) * x.abs());
    let k = row.len() as f64;
    let error = if format.is_float() {
        (k / 8.0 + 32.0) * U * size
    } else {
        let offset = if exact { sum(&|w, x| 256.0 * w.scale.abs() / step(format) * x.abs()) } else { 0.0 };
        (k / 256.0 + 48.0) * U * size + U * offset
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

pub(crate) fn check(subject: &Subject<'_>, kind: &str, seed: u64) {
    let Subject { gemv, options, sm } = subject;
    let (k, batch) = (gemv.k as usize, gemv.batch as usize);
    let all: Vec<_> =
        (gemv.matrices.iter().zip(11..)).map(|(&matrix, seed)| weights(matrix, gemv.k, seed)).collect();
    let x = activations(kind, batch * k, 5);
    let norm: Vec<f32> = numbers(k, 6).iter().map(|v| *v as f32 + 1.5).collect();
    let mut test = KernelTest::new(*gemv).arch(Arch::sm(*sm)).options(*options).seed(seed);
    let mut columns: Vec<Vec<f64>> =
        x.chunks_exact(k).map(|c| c.iter().map(|&v| v.into()).collect()).collect();
    if gemv.activations != Activations::Int8 {
        test = test.input("x", &x);
    } else {
        let (quants, scales) = quantised(&x);
        let rounded: Vec<f64> =
            (0..x.len()).map(|i| f64::from(quants[i]) * f64::from(scales[i / 32])).collect();
        columns = rounded.chunks_exact(k).map(<[f64]>::to_vec).collect();
        test = test.input("x_quants", &quants).input("x_scales", &scales);
    }
    let mut factors = vec![1.0; batch];
    if let Some(epsilon) = gemv.epsilon {
        test = test.input("norm", &norm);
        for (column, factor) in columns.iter_mut().zip(&mut factors) {
            let mean = column.iter().map(|v| v * v).sum::<f64>() / k as f64;
            *factor = 1.0 / (mean + f64::from(epsilon)).sqrt();
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
        if !(gemv.gate.is_some() && i > 0) {
            test = test.input(&format!("y{i}"), &vec![f32::NAN; batch * n]);
        }
        extras.push((bias, residual));
    }
    let what = format!("{}, {kind}, seed {seed}", gemv.entry());
    let run = test.run_here().unwrap_or_else(|error| panic!("{what}: {error}"));
    for (i, matrix) in gemv.matrices.iter().enumerate().take(if gemv.gate.is_some() { 1 } else { usize::MAX })
    {
        let y = run.output::<f32>(&format!("y{i}"));
        for row in 0..matrix.n as usize {
            let pair = [i, 1].map(|which| {
                let used = which == i || gemv.gate.is_some();
                if used { all[which].row(row, gemv.k) } else { Vec::new() }
            });
            for (column, (x, factor)) in columns.iter().zip(&factors).enumerate() {
                let one = |which: usize| {
                    let Held { value, error } = product(matrix.format, &pair[which], x, gemv.activations);
                    // The mean of the squares, and the reciprocal root.
                    let of_factor = if gemv.epsilon.is_some() { (k as f64 / 128.0 + 16.0) * U } else { 0.0 };
                    let value = value * factor;
                    let error = error * factor * (1.0 + of_factor) + value.abs() * (of_factor + 2.0 * U);
                    let bias = &extras[if which == 0 { i } else { 1 }].0;
                    let value = value + f64::from(bias[row]);
                    Held { value, error: error + value.abs() * U }
                };
                let mut held = one(0);
                if let Some(activation) = gemv.gate {
                    let other = one(1);
                    let gate = activation.value(held.value);
                    let of_gate = activation.error(held.value, held.error);
                    let value = gate * other.value;
                    let error = of_gate * (other.value.abs() + other.error) + gate.abs() * other.error;
                    held = Held { value, error: error + value.abs() * U + TINY };
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
