//! Products that another kernel calls: with all sizes open, one code for all shapes.

use super::case::{activations, q8_1, weights};
use crate::common::called::{Calls, called_ptx};
use crate::common::numbers;
use std::collections::HashSet;
use warpwright_dsl::{ArgDesc, BuildError, Called, K, LaunchRule, SizeValue, any::AnyKernel};
use warpwright_kernels::{Activations, FusedNormGemv, Matrix, QuantGemv, WeightFormat};
use warpwright_ptx::ir::Arch;

/// A product, normalised or not.
#[derive(Clone, Debug)]
struct Case {
    gemv: QuantGemv,
    epsilon: Option<f32>,
}

impl Case {
    fn kernel(&self) -> Box<dyn AnyKernel> {
        let gemv = self.gemv.clone();
        match self.epsilon {
            Some(epsilon) => Box::new(FusedNormGemv { gemv, epsilon }),
            None => Box::new(gemv),
        }
    }

    /// The same code with another shape.
    fn other(&self) -> Case {
        let mut other = self.clone();
        let block = other.gemv.matrices.iter().map(|matrix| matrix.format.block()).max().unwrap_or(1);
        let few = other.gemv.matrices.iter().map(|matrix| matrix.n).min() < Some(16);
        for matrix in &mut other.gemv.matrices {
            matrix.n = if few { 3 } else { matrix.n + 29 };
        }
        if few && other.gemv.swiglu {
            other.gemv.matrices.iter_mut().for_each(|matrix| matrix.n = 7);
        }
        // As many more as keep fours what they are.
        other.gemv.k += block.max(4) * 3;
        other.gemv.warps = other.gemv.warps.map(|warps| if warps == 2 { 4 } else { 2 });
        other.epsilon = other.epsilon.map(|epsilon| epsilon * 3.0);
        other
    }

    /// With what it is given.
    fn calls<'a>(&self, kernel: &'a dyn AnyKernel) -> Calls<'a> {
        let QuantGemv { k, ref matrices, .. } = self.gemv;
        let x = activations("normal", k as usize, 5);
        let small = |count: u32, seed: u64| -> Vec<f32> {
            numbers(count as usize, seed).iter().map(|v| *v as f32 * 3.0).collect()
        };
        let mut calls = Calls::new(kernel);
        for arg in kernel.args() {
            let i = arg.name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0);
            let Matrix { n, .. } = matrices[i];
            calls = match arg.name.trim_end_matches(|c: char| c.is_ascii_digit()) {
                "x" => calls.input(arg.name, &x),
                "x_quants" => calls.input(arg.name, &q8_1(&x).0),
                "x_scales" => calls.input(arg.name, &q8_1(&x).1),
                "x_sums" => calls.input(arg.name, &q8_1(&x).2),
                "norm" => calls.input(arg.name, &small(k, 6)),
                "w" => calls.input(arg.name, &weights(matrices[i], k, 11 + i as u64).planes),
                "y" => calls.input(arg.name, &vec![f32::NAN; n as usize]),
                _ => calls.input(arg.name, &small(n, 31 + i as u64 + arg.name.len() as u64)),
            };
        }
        calls
    }

    /// The warps of a team that suits it.
    fn team(&self) -> u32 {
        let parts = self.kernel().called(256).expect("no number of warps was said");
        let warps = parts[0].kernel.sizes().into_iter().find(|(name, _)| *name == "warps");
        warps.expect("open").1.bits() as u32
    }

    fn check(&self) {
        let (kernel, other) = (self.kernel(), self.other().kernel());
        self.calls(&*kernel).with_code_of(&*other).check();
    }
}

/// One matrix, or two of SwiGLU.
fn case(format: WeightFormat, n: u32, k: u32, swiglu: bool) -> Case {
    let matrices = vec![Matrix::new(format, n); if swiglu { 2 } else { 1 }];
    Case { gemv: QuantGemv { matrices, swiglu, ..QuantGemv::new(format, n, k) }, epsilon: None }
}

/// How a format may take its activations.
fn paths(format: WeightFormat) -> impl Iterator<Item = Activations> {
    Activations::ALL.into_iter().filter(move |path| !format.is_float() || *path == Activations::Exact)
}

#[test]
fn every_format_path_and_epilogue() {
    let mut turn = 0;
    for format in WeightFormat::ALL {
        for path in paths(format) {
            for (swiglu, norm) in [(false, false), (true, false), (false, true), (true, true)] {
                if norm && path == Activations::Int8 {
                    continue;
                }
                for (bias, residual) in [(false, false), (true, false), (false, true), (true, true)] {
                    let mut case = case(format, 35, if format.is_float() { 840 } else { 1280 }, swiglu);
                    case.gemv.matrices.iter_mut().for_each(|matrix| matrix.bias = bias);
                    case.gemv.matrices[0].residual = residual;
                    case.gemv.activations = path;
                    case.gemv.warps = Some(1 << (turn % 4));
                    case.epsilon = norm.then_some(1e-5);
                    case.check();
                    turn += 1;
                }
            }
        }
    }
}

#[test]
fn every_length_by_every_team() {
    for format in WeightFormat::ALL {
        for k in super::lengths(format) {
            for warps in [1, 2, 4, 8] {
                for n in [5, 16, 49] {
                    let mut case = case(format, n, k, false);
                    case.gemv.warps = Some(warps);
                    case.check();
                }
            }
        }
    }
}

#[test]
fn every_length_in_bytes() {
    for format in WeightFormat::ALL.into_iter().filter(|format| !format.is_float()) {
        for k in super::lengths(format) {
            for (path, warps) in [(Activations::Int8, 4), (Activations::Rounded, 2)] {
                let mut case = case(format, 17, k, false);
                (case.gemv.activations, case.gemv.warps) = (path, Some(warps));
                case.check();
            }
        }
    }
}

/// The products of an attention's inputs: each matrix by itself, with teams of a number that suits it.
#[test]
fn several_matrices_are_called_one_by_one() {
    let formats = [WeightFormat::Q4K, WeightFormat::Q4K, WeightFormat::Q6K];
    for (bias, norm) in [(false, false), (true, true)] {
        let matrices = formats.iter().zip([64, 33, 17]).map(|(&format, n)| Matrix {
            bias,
            residual: n == 33,
            ..Matrix::new(format, n)
        });
        let gemv = QuantGemv { matrices: matrices.collect(), ..QuantGemv::new(formats[0], 64, 1536) };
        let case = Case { gemv, epsilon: norm.then_some(1e-6) };
        let kernel = case.kernel();
        // As many warps as the launch has: the sums are in the same order.
        let parts = kernel.called(256).expect("three parts");
        assert_eq!(parts.len(), 3);
        let warps = |kernel: &dyn AnyKernel| {
            kernel.sizes().into_iter().find_map(|(name, value)| (name == "warps").then_some(value))
        };
        let of_part = warps(&*parts[0].kernel).expect("open");
        assert!(parts.iter().all(|part| warps(&*part.kernel) == Some(of_part)));
        let mut alike = case.clone();
        alike.gemv.warps = Some(of_part.bits() as u32);
        let kernel = alike.kernel();
        alike.calls(&*kernel).check();
    }
}

/// Classes of the shape are all that tells texts apart.
#[test]
fn shapes_share_texts() {
    let mut seen = HashSet::new();
    let mut shapes = 0;
    for format in
        [WeightFormat::Q4K, WeightFormat::Q6K, WeightFormat::Q8_0, WeightFormat::Q4_0, WeightFormat::F16]
    {
        for path in paths(format) {
            for (k, n, warps) in
                [(256, 256, 1), (2048, 4099, 8), (1792, 16, 2), (14_336, 128_256, 3), (512, 9, 4)]
            {
                for swiglu in [false, true] {
                    for epsilon in [None, Some(1e-5), Some(1e-6)] {
                        if epsilon.is_some() && path == Activations::Int8 {
                            continue;
                        }
                        let mut case = case(format, n, k, swiglu);
                        (case.gemv.activations, case.gemv.warps, case.epsilon) = (path, Some(warps), epsilon);
                        let kernel = case.kernel();
                        // A number of warps that no team has: the part that is called has another.
                        let text = called_ptx(&*kernel, Arch::sm(80));
                        seen.insert(text);
                        shapes += 1;
                    }
                }
            }
        }
    }
    // For each format and path: plain and SwiGLU, with a norm or not, and few rows or not.
    assert!(seen.len() * 3 <= shapes, "{} texts of {shapes} shapes", seen.len());
}

/// What the virtual GPU alone finds and counts.
mod on_the_vm {
    use super::*;

    /// A kernel that lies about its sizes.
    struct Liar<'a> {
        kernel: &'a dyn AnyKernel,
        /// What it says instead of the list.
        sizes: Vec<(&'static str, SizeValue)>,
    }

    impl AnyKernel for Liar<'_> {
        fn entry(&self) -> String {
            self.kernel.entry()
        }

        fn args(&self) -> Vec<ArgDesc> {
            self.kernel.args()
        }

        fn launch(&self) -> LaunchRule {
            self.kernel.launch()
        }

        fn body(&self, k: K<'_>) {
            self.kernel.body(k);
        }

        fn sizes(&self) -> Vec<(&'static str, SizeValue)> {
            self.sizes.clone()
        }

        fn called(&self, _: u32) -> Option<Vec<Called>> {
            None
        }

        fn check(&self) -> Result<(), BuildError> {
            self.kernel.check()
        }
    }

    /// Each size, left as the configuration has it, or off by its least step, is noticed.
    #[test]
    fn every_size_matters() {
        for format in
            [WeightFormat::Q4K, WeightFormat::Q5K, WeightFormat::Q6K, WeightFormat::Q8_0, WeightFormat::F32]
        {
            let mut case = case(format, 49, 1280, false);
            (case.gemv.warps, case.epsilon) = (Some(2), Some(1e-2));
            let (kernel, other) = (case.kernel(), case.other().kernel());
            for i in 0..kernel.sizes().len() {
                let (name, value) = kernel.sizes()[i];
                let left = |kernel: &'_ dyn AnyKernel| -> Vec<_> {
                    kernel.sizes().into_iter().filter(|(size, _)| *size != name).collect()
                };
                if name != "warps" && value != other.sizes()[i].1 {
                    let subject = Liar { kernel: &*kernel, sizes: left(&*kernel) };
                    let baked = Liar { kernel: &*other, sizes: left(&*other) };
                    let outcome = case.calls(&subject).with_another_code(&baked).agrees();
                    assert!(outcome.is_err(), "{} with {name} of {}", kernel.entry(), other.entry());
                }
                let wrong = match value {
                    SizeValue::U32(0) => SizeValue::U32(1),
                    SizeValue::U32(value) if name.ends_with("pitch") => SizeValue::U32(value - value.min(16)),
                    SizeValue::U32(value) if name == "rest" && format.block() == 32 => {
                        SizeValue::U32(value - 32)
                    }
                    SizeValue::U32(_) if name == "rest" => SizeValue::U32(0),
                    SizeValue::U32(1) => SizeValue::U32(2),
                    SizeValue::U32(value) => SizeValue::U32(value - 1),
                    SizeValue::U64(value) => SizeValue::U64(value - 256),
                    SizeValue::F32(value) => SizeValue::F32(value * 1.5),
                };
                // One more warp has nothing to do.
                if name == "warps" {
                    continue;
                }
                let mut sizes = kernel.sizes();
                sizes[i].1 = wrong;
                let outcome = case.calls(&Liar { kernel: &*kernel, sizes }).agrees();
                assert!(outcome.is_err(), "{} with {name} {wrong:?} for {value:?}", kernel.entry());
            }
        }
    }

    /// A tile of those that a team walks costs what it costs where the kernel is launched, within a twentieth: what one
    /// block more of the matrix costs, so that the caller's own beginning is not counted.
    #[test]
    fn a_tile_costs_no_more() {
        for format in [WeightFormat::Q4K, WeightFormat::Q6K] {
            for (k, swiglu, norm, residual) in [
                (256, false, true, false),
                (256, true, true, false),
                (768, false, false, true),
                (768, true, true, false),
                (2048, false, true, false),
            ] {
                for path in [Activations::Exact, Activations::Rounded] {
                    let instructions = |n: u32| {
                        let mut case = case(format, n, k, swiglu);
                        case.gemv.activations = path;
                        case.gemv.matrices[0].residual = residual;
                        case.epsilon = norm.then_some(1e-5);
                        case.gemv.warps = Some(case.team());
                        let kernel = case.kernel();
                        let reports = case.calls(&*kernel).reports();
                        (kernel.entry(), reports.map(|report| report.counters.warp_instructions))
                    };
                    let ((entry, [launched, called]), (_, [more_launched, more_called])) =
                        (instructions(512), instructions(1024));
                    let ratio = (more_called - called) as f64 / (more_launched - launched) as f64;
                    assert!(ratio <= 1.05, "{entry}: {ratio:.3} of the launch's instructions");
                }
            }
        }
    }
}
