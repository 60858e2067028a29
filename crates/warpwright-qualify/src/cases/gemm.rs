//! Products on the tensor cores against float64 on the virtual GPU with every check on.
//!
//! Errors are held to what the kernels' documentation derives, from the activations as they were before
//! `ScaleRows` and from the weights as the format defines them. Let `X` be the magnitude of an activation and `S`
//! that of a weight; of formats with a minimum, and 3/2 of that of the weight which their quant in the middle stands for.
//!
//! - An activation in one term of half precision is off by `u·X`, `u = 2⁻¹¹`; in two by `u²·X`; or by what the
//!   smallest half makes of the row's scale, 2⁻³⁹ of the row's largest.
//! - A decoded weight is off by `u·S` for each of its roundings.
//! - The tensor cores add with `(2·terms·k + 16)·2⁻²³` of the sum of magnitudes (`tests/matmul.rs` shows that this
//!   covers every generation).
//! - Scales are powers of two; the sums with bias and residual are rounded once each.

use crate::common::gguf::matrix;
use crate::common::ops::{Sample, full};
use crate::common::{assert_no_conflicts, f16, numbers, rounded, rounding};
use warpwright_dsl::{BuildError, any::AnyKernel, bf16_bits, f16_bits};
use warpwright_kernels::weights::{Repack, Weight, WeightFormat};
use warpwright_kernels::{Dtype, Gemm, QuantGemm, ScaleRows};
use warpwright_ptx::ir::Arch;
use warpwright_test::KernelTest;
use warpwright_testing::{Ran, RunHere};
use warpwright_vm::Options;

/// Inputs that are hard in different ways.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Class {
    Normal,
    Large,
    Cancelling,
    Constant,
    OneHot,
    Outliers,
    Denormal,
    Zero,
}

const CLASSES: [Class; 8] = [
    Class::Normal,
    Class::Large,
    Class::Cancelling,
    Class::Constant,
    Class::OneHot,
    Class::Outliers,
    Class::Denormal,
    Class::Zero,
];

impl Class {
    fn activations(self, tokens: usize, k: usize) -> Vec<f32> {
        let numbers = numbers(tokens * k, 11);
        let all = numbers.into_iter().enumerate().map(|(i, x)| match self {
            Class::Normal => x,
            Class::Large => x * 1e6,
            Class::Cancelling => (1e6 + x) * if i % 2 == 0 { 1.0 } else { -1.0 },
            Class::Constant => 0.7,
            Class::OneHot => f64::from(u8::from(i % k == (i / k * 7) % k)),
            Class::Outliers => x * if i % k % 29 == 3 { 1000.0 } else { 1.0 },
            Class::Denormal => x * 1e-41,
            Class::Zero => 0.0,
        });
        all.map(|x| x as f32).collect()
    }
}

/// The inputs of all products: activations, bias and residual.
struct ProductInputs {
    tokens: usize,
    x: Vec<f32>,
    bias: bool,
    residual: bool,
}

/// A matrix by rows: each weight and the magnitude of its parts.
struct Weights {
    n: usize,
    k: usize,
    values: Vec<f64>,
    parts: Vec<f64>,
}

/// What may be lost: of activations and weights, as parts of each product; of the row's largest activation; by
/// sums of so many products.
struct Loss {
    relative: f64,
    of_largest: f64,
    products: usize,
}

impl ProductInputs {
    fn bias(&self, n: usize) -> Vec<f32> {
        numbers(n, 5).into_iter().map(|x| x as f32).collect()
    }

    fn residual(&self, n: usize, out: Dtype) -> Vec<f64> {
        rounded(out.ty(), &numbers(self.tokens * n, 6))
    }

    /// Runs a product with its operands, and holds what it makes to the loss.
    fn check(
        &self,
        kernel: &dyn AnyKernel,
        test: KernelTest<'_>,
        w: &Weights,
        out: Dtype,
        loss: &Loss,
        seed: Option<u64>,
    ) {
        let name = kernel.entry();
        let (tokens, n, k) = (self.tokens, w.n, w.k);
        // With every check and by an order of things, or, for the sizes of models, without.
        let test = match seed {
            Some(seed) => test.seed(seed),
            None => test.options(Options::default()),
        };
        let mut test = test.dim("tokens", tokens as u64);
        let (bias, residual) = (self.bias(n), self.residual(n, out));
        if self.bias {
            test = test.input("bias", &bias);
        }
        if self.residual {
            test = floats(test, "residual", out, &residual);
        }
        let test = floats(test, "y", out, &vec![f64::NAN; tokens * n]);
        let run = test.run_here().unwrap_or_else(|error| panic!("{name}, {tokens} tokens: {error}"));
        let found = read(&run, "y", out);
        assert_no_conflicts(&run.report, &name);
        for i in 0..tokens {
            let x: Vec<_> = self.x[i * k..][..k].iter().map(|&x| f64::from(x)).collect();
            let largest = x.iter().fold(0f64, |largest, x| largest.max(x.abs()));
            for j in 0..n {
                let (row, parts) = (&w.values[j * k..][..k], &w.parts[j * k..][..k]);
                let mut exact: f64 = x.iter().zip(row).map(|(x, w)| x * w).sum();
                let magnitudes: f64 = x.iter().zip(parts).map(|(x, w)| x.abs() * w).sum();
                let added = (2.0 * loss.products as f64 + 16.0) * 2f64.powi(-23);
                let mut slack = magnitudes * (loss.relative + added) * (1.0 + 2f64.powi(-9))
                    + largest * loss.of_largest * parts.iter().sum::<f64>();
                let mut add = |there: bool, number: f64| {
                    if there {
                        exact += number;
                        slack += (exact.abs() + slack) * 2f64.powi(-24);
                    }
                };
                add(self.bias, f64::from(bias[j]));
                add(self.residual, residual[i * n + j]);
                let slack = slack + rounding(out.ty(), exact.abs() + slack);
                let y = found[i * n + j];
                // What half precision cannot hold becomes its largest number.
                let most = if out == Dtype::F16 { 65_504.0 } else { f64::INFINITY };
                assert!(
                    y.abs() <= most && (y - exact.clamp(-most, most)).abs() <= slack,
                    "{name}, {tokens} tokens: {y} at ({i}, {j}), not {exact} ± {slack:e}"
                );
            }
        }
    }
}

/// Gives numbers as a buffer of the type.
fn floats<'a>(test: KernelTest<'a>, name: &str, dtype: Dtype, values: &[f64]) -> KernelTest<'a> {
    let halves = |bits: fn(f32) -> u16| values.iter().map(|&x| bits(x as f32)).collect::<Vec<_>>();
    match dtype {
        Dtype::F32 => test.input(name, &values.iter().map(|&x| x as f32).collect::<Vec<_>>()),
        Dtype::F16 => test.input(name, &halves(f16_bits)),
        Dtype::Bf16 => test.input(name, &halves(bf16_bits)),
    }
}

fn read(run: &Ran, name: &str, dtype: Dtype) -> Vec<f64> {
    let bf16 = |x: u16| f64::from(f32::from_bits(u32::from(x) << 16));
    match dtype {
        Dtype::F32 => run.output::<f32>(name).into_iter().map(f64::from).collect(),
        Dtype::F16 => run.output::<u16>(name).into_iter().map(f16).collect(),
        Dtype::Bf16 => run.output::<u16>(name).into_iter().map(bf16).collect(),
    }
}

/// What `ScaleRows` makes of activations.
fn scaled(arch: Arch, kernel: ScaleRows, tokens: usize, x: &[f32]) -> (Vec<u16>, Vec<f32>) {
    let halves = tokens * (kernel.terms * kernel.pitch()) as usize;
    let x: Vec<_> = x.iter().map(|&x| f64::from(x)).collect();
    let test = KernelTest::new(&kernel).arch(arch).dim("tokens", tokens as u64);
    let test = floats(test, "x", kernel.dtype, &x).input("halves", &vec![0x7fffu16; halves]);
    let run = test.run_here().unwrap_or_else(|error| panic!("{kernel:?}: {error}"));
    (run.output::<u16>("halves"), run.output::<f32>("scales"))
}

/// The loss of activations that were scaled.
fn of_activations(half: Dtype, terms: u32) -> (f64, f64) {
    let bits = if half == Dtype::Bf16 { 8 } else { 11 };
    let smallest = if half == Dtype::Bf16 { -147 } else { -39 };
    (2f64.powi(-bits * terms as i32), 2f64.powi(smallest))
}

impl Weights {
    fn quantised(format: WeightFormat, n: usize, k: usize, bytes: &[u8]) -> Self {
        let values = format.dequantize(n as u64, k as u32, bytes);
        // Where there are minima, decoding counts from the code in the middle: what rounds there is in every weight.
        let weights = format.weights(&bytes[..n * format.row_bytes(k as u32) as usize]);
        let largest = weights.iter().fold(0.0, |largest, weight| weight.quant.max(largest));
        let middle = has_minima(&weights).then_some((largest + 1.0) / 2.0);
        let of_middle = |w: &Weight| 1.5 * middle.map_or(0.0, |quant| Weight { quant, ..*w }.value().abs());
        let parts =
            values.iter().zip(&weights).map(|(value, weight)| value.abs() + of_middle(weight)).collect();
        Weights { n, k, values, parts }
    }

    fn halves(dtype: Dtype, n: usize, k: usize) -> Self {
        let values = rounded(dtype.ty(), &numbers(n * k, 31));
        let parts = values.iter().map(|x| x.abs()).collect();
        Weights { n, k, values, parts }
    }
}

fn has_minima(weights: &[Weight]) -> bool {
    weights.iter().any(|weight| weight.minimum != 0.0)
}

fn check_quantised(sm: u16, kernel: QuantGemm, tokens: usize, class: Class, seed: Option<u64>) {
    let (format, n, k) = (kernel.format, kernel.n as usize, kernel.k as usize);
    let bytes = matrix(format, kernel.n, kernel.k, 21);
    let repack = Repack::new(format, kernel.n, kernel.k);
    let planes =
        KernelTest::new(&repack).input("gguf", &bytes).run_here().expect("planes").output::<u8>("planes");
    let x = class.activations(tokens, k);
    let half = format.half();
    let rows = ScaleRows { terms: kernel.terms, half, ..ScaleRows::new(kernel.k) };
    let (halves, scales) = scaled(Arch::sm(sm), rows, tokens, &x);
    let (activations, of_largest) = of_activations(half, kernel.terms);
    let roundings = match format {
        // Powers of two times small numbers.
        WeightFormat::Mxfp4 | WeightFormat::Nvfp4 => 0.0,
        _ if format.block() == 256 || has_minima(&format.weights(&bytes)) => 2.0,
        _ => 1.0,
    };
    let loss = Loss {
        relative: activations + roundings * 2f64.powi(-11),
        of_largest: 2.0 * of_largest,
        products: kernel.terms as usize * k,
    };
    let given = ProductInputs { tokens, x, bias: kernel.bias, residual: kernel.residual };
    let test = KernelTest::new(&kernel).arch(Arch::sm(sm));
    let test = test.input("x", &halves).input("scales", &scales).input("w", &planes);
    let weights = Weights::quantised(format, n, k, &bytes);
    given.check(&kernel, test, &weights, kernel.out, &loss, seed);
}

fn check_halves(sm: u16, kernel: Gemm, tokens: usize, class: Class, seed: Option<u64>) {
    let (dtype, n, k) = (kernel.dtype, kernel.n as usize, kernel.k as usize);
    let weights = Weights::halves(dtype, n, k);
    // Rows filled up to a multiple of 8.
    let pitch = k.next_multiple_of(8);
    let mut w = vec![0.0; n * pitch];
    for (row, values) in w.chunks_exact_mut(pitch).zip(weights.values.chunks_exact(k)) {
        row[..k].copy_from_slice(values);
    }
    let test = KernelTest::new(&kernel).arch(Arch::sm(sm));
    let test = floats(test, "w", dtype, &w);
    let mut x = class.activations(tokens, k);
    let (test, relative, of_largest, terms) = match kernel.terms {
        0 => {
            let halves: Vec<_> = x.iter().map(|&x| f64::from(x)).collect();
            x = rounded(dtype.ty(), &halves).into_iter().map(|x| x as f32).collect();
            (floats(test, "x", dtype, &halves), 0.0, 0.0, 1)
        }
        terms => {
            let rows = ScaleRows { terms, half: dtype, ..ScaleRows::new(kernel.k) };
            let (halves, scales) = scaled(Arch::sm(sm), rows, tokens, &x);
            let (relative, of_largest) = of_activations(dtype, terms);
            (test.input("x", &halves).input("scales", &scales), relative, of_largest, terms)
        }
    };
    let loss = Loss { relative, of_largest, products: terms as usize * k };
    let given = ProductInputs { tokens, x, bias: kernel.bias, residual: kernel.residual };
    given.check(&kernel, test, &weights, kernel.out, &loss, seed);
}

fn quantised() -> impl Iterator<Item = WeightFormat> {
    WeightFormat::ALL.into_iter().filter(|format| !format.is_float())
}

fn quantised_products_of_any_size_are_within_their_bound() {
    let mut sample = Sample::one_in(3);
    for format in quantised() {
        let block = format.block();
        for (i, (tokens, n, blocks)) in
            [(1, 1, 1), (9, 33, 3), (17, 129, 2), (31, 128, 5), (33, 130, 1)].into_iter().enumerate()
        {
            let kernel = QuantGemm {
                rows: [16, 32, 64, 16, 128][i],
                columns: [128, 64][i % 2],
                terms: 1 + i as u32 % 2,
                ..QuantGemm::new(format, n, blocks * block)
            };
            for (sm, seed) in [(75, 1), (80, 2), (90, 3)] {
                if sm >= kernel.launch().min_sm && sample.takes() {
                    check_quantised(sm, kernel, tokens, Class::Normal, Some(seed));
                }
            }
        }
        let tall = QuantGemm { rows: 256, ..QuantGemm::new(format, 129, 2 * block) };
        if sample.takes() {
            check_quantised(80, tall, 259, Class::Normal, Some(5));
        }
        // A tile with all its warps, and another beside and below.
        for terms in [1, 2] {
            for columns in [64, 128] {
                let kernel = QuantGemm { terms, columns, ..QuantGemm::new(format, 136, 2 * block) };
                if sample.takes() {
                    check_quantised(80, kernel, 131, Class::Normal, Some(4));
                }
            }
        }
    }
    if full() {
        for (n, k) in [(2048, 2048), (512, 2048), (2048, 8192), (1536, 8960)] {
            for format in quantised() {
                check_quantised(80, QuantGemm::new(format, n, k), 65, Class::Normal, None);
            }
        }
    }
}

fn quantised_products_hold_any_activations() {
    for format in quantised() {
        for class in CLASSES {
            for terms in [1, 2] {
                let kernel = QuantGemm { rows: 16, terms, ..QuantGemm::new(format, 40, 512) };
                check_quantised(80, kernel, 10, class, Some(7));
            }
        }
    }
}

fn the_epilogue_adds_and_rounds() {
    for (bias, residual) in [(true, false), (false, true), (true, true)] {
        for out in Dtype::ALL {
            for n in [37, 64] {
                let quantised = QuantGemm::new(WeightFormat::Q4_0, n, 64);
                let kernel = QuantGemm { rows: 16, bias, residual, out, ..quantised };
                check_quantised(80, kernel, 19, Class::Normal, Some(3));
                let kernel = Gemm { rows: 32, bias, residual, out, ..Gemm::new(Dtype::F16, n, 64) };
                check_halves(80, kernel, 35, Class::Normal, Some(3));
            }
        }
    }
}

fn products_of_halves_of_any_size_are_within_their_bound() {
    for (i, (tokens, n, k)) in
        [(1, 1, 1), (9, 33, 50), (17, 129, 64), (40, 128, 200), (3, 5, 7), (131, 136, 72)]
            .into_iter()
            .enumerate()
    {
        let rows = [16, 32, 64, 32, 16, 128][i];
        for dtype in [Dtype::F16, Dtype::Bf16] {
            for terms in 0..3 {
                let stages = 1 + i as u32 % 3;
                let columns = [128, 64][terms as usize % 2];
                let kernel = Gemm { rows, columns, terms, stages, ..Gemm::new(dtype, n, k) };
                if kernel.check().is_err() {
                    continue;
                }
                for (sm, seed) in [(75, 1), (80, 2), (90, 3)] {
                    if sm >= kernel.launch().min_sm {
                        check_halves(sm, kernel, tokens, Class::Normal, Some(seed));
                    }
                }
            }
        }
    }
    if full() {
        for (n, k) in [(2048, 2048), (8192, 2048), (1536, 8960)] {
            for dtype in [Dtype::F16, Dtype::Bf16] {
                check_halves(80, Gemm::new(dtype, n, k), 65, Class::Normal, None);
            }
        }
    }
}

fn products_of_halves_hold_any_activations() {
    for class in CLASSES {
        for dtype in [Dtype::F16, Dtype::Bf16] {
            for terms in 0..3 {
                // Plain halves of `f16` end at 65504.
                let too_large = matches!(class, Class::Large | Class::Cancelling);
                if terms == 0 && dtype == Dtype::F16 && too_large {
                    continue;
                }
                let kernel = Gemm { rows: 16, terms, ..Gemm::new(dtype, 40, 300) };
                check_halves(80, kernel, 10, class, Some(5));
            }
        }
    }
}

/// Scales are powers of two, terms are what is left, rounded, and what is beyond the row is zero.
fn rows_are_scaled_as_it_is_said() {
    for (d, tokens) in [(1usize, 3usize), (8, 1), (33, 2), (64, 2), (2056, 2), (4100, 1)] {
        for class in CLASSES {
            for (half, terms) in [(Dtype::F16, 1), (Dtype::F16, 2), (Dtype::Bf16, 1), (Dtype::Bf16, 2)] {
                for dtype in Dtype::ALL {
                    if dtype == Dtype::F16 && matches!(class, Class::Large | Class::Cancelling) {
                        continue;
                    }
                    let kernel = ScaleRows { dtype, half, terms, ..ScaleRows::new(d as u32) };
                    check_scaled(kernel, tokens, class);
                }
            }
        }
    }
}

fn check_scaled(kernel: ScaleRows, tokens: usize, class: Class) {
    let ScaleRows { d, dtype, half, terms } = kernel;
    let (d, pitch) = (d as usize, kernel.pitch() as usize);
    let x = class.activations(tokens, d);
    let (halves, scales) = scaled(Arch::sm(80), kernel, tokens, &x);
    let x = rounded(dtype.ty(), &x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
    for (row, (x, scale)) in x.chunks_exact(d).zip(scales).enumerate() {
        let largest = x.iter().fold(0f64, |largest, x| largest.max(x.abs()));
        let exponent = if largest == 0.0 { -126 } else { (largest.log2().floor() as i32 - 14).max(-126) };
        assert_eq!(f64::from(scale), 2f64.powi(exponent), "{kernel:?} {class:?}");
        let halves = &halves[row * terms as usize * pitch..];
        for i in 0..pitch {
            let mut rest = x.get(i).map_or(0.0, |x| x / f64::from(scale));
            for term in 0..terms as usize {
                let bits = halves[term * pitch + i];
                let found = match half {
                    Dtype::F16 => f16(bits),
                    _ => f32::from_bits(u32::from(bits) << 16).into(),
                };
                assert_eq!(found, rounded(half.ty(), &[rest])[0], "{kernel:?} {class:?}, term {term} of {i}");
                rest -= found;
            }
            let (relative, of_largest) = of_activations(half, terms);
            let slack = (x.get(i).copied().unwrap_or(0.0).abs() * relative).max(largest * of_largest);
            assert!(rest.abs() * f64::from(scale) <= slack, "{kernel:?} {class:?}: {rest:e} is left");
        }
    }
}

fn configurations_that_cannot_be_name_their_field() {
    let field = |kernel: &dyn AnyKernel| match kernel.build(Arch::sm(80)).map(|_| ()) {
        Err(BuildError::Field { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    let quantised = QuantGemm::new(WeightFormat::Q4K, 64, 256);
    assert_eq!(field(&QuantGemm { k: 128, ..quantised }), "k");
    assert_eq!(field(&QuantGemm { n: 0, ..quantised }), "n");
    assert_eq!(field(&QuantGemm { rows: 48, ..quantised }), "rows");
    assert_eq!(field(&QuantGemm { columns: 32, ..quantised }), "columns");
    assert_eq!(field(&QuantGemm { terms: 3, ..quantised }), "terms");
    assert_eq!(field(&QuantGemm { rows: 256, columns: 64, ..quantised }), "rows");
    assert_eq!(field(&QuantGemm { rows: 256, terms: 2, ..quantised }), "terms");
    assert_eq!(field(&QuantGemm { format: WeightFormat::F16, ..quantised }), "format");
    let halves = Gemm::new(Dtype::F16, 64, 64);
    assert_eq!(field(&Gemm { dtype: Dtype::F32, ..halves }), "dtype");
    assert_eq!(field(&Gemm { k: 0, ..halves }), "k");
    assert_eq!(field(&Gemm { stages: 4, ..halves }), "stages");
    assert_eq!(field(&Gemm { terms: 3, ..halves }), "terms");
    assert_eq!(field(&Gemm { stages: u32::MAX, rows: u32::MAX, ..halves }), "rows");
    assert_eq!(field(&ScaleRows { half: Dtype::F32, ..ScaleRows::new(64) }), "half");
}

crate::case_list! {
    the_epilogue_adds_and_rounds,
    quantised_products_of_any_size_are_within_their_bound,
    quantised_products_hold_any_activations,
    products_of_halves_of_any_size_are_within_their_bound,
    products_of_halves_hold_any_activations,
    rows_are_scaled_as_it_is_said,
    configurations_that_cannot_be_name_their_field,
}
