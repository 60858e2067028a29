//! Products that another kernel calls: one code for all shapes of a class.

use crate::cases::gemv::case::{activations, quantised, weights};
use crate::common::called::Calls;
use crate::common::numbers;
use crate::common::ops::Sample;
use std::sync::Arc;
use warpwright_dsl::any::AnyKernel;
use warpwright_kernels::{Activation, Activations, Matrix, Op, QuantGemv, WeightFormat};
use warpwright_ptx::ir::Arch;

/// A product.
#[derive(Clone, Debug)]
struct Case {
    gemv: QuantGemv,
}

impl Case {
    fn kernel(&self) -> Box<dyn AnyKernel> {
        Box::new(self.gemv.clone())
    }

    /// The same code with another shape.
    fn other(&self) -> Case {
        let mut other = self.clone();
        // More rows, of which the last tile has as many; or as few as make no tile.
        let few = other.gemv.matrices.iter().any(|matrix| matrix.n < 16);
        for matrix in &mut other.gemv.matrices {
            matrix.n = if few { 16 - matrix.n % 8 - 9 } else { matrix.n + 32 };
        }
        // Slices more for each warp, where there are any, and the same rest.
        if other.gemv.k >= 512 {
            other.gemv.k += 8192;
        }
        other.gemv.epsilon = other.gemv.epsilon.map(|epsilon| epsilon * 3.0);
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
                "x_quants" => calls.input(arg.name, &quantised(&x).0),
                "x_scales" => calls.input(arg.name, &quantised(&x).1),
                "norm" => calls.input(arg.name, &small(k, 6)),
                "w" => calls.input(arg.name, &weights(matrices[i], k, 11 + i as u64).planes),
                "y" => calls.input(arg.name, &vec![f32::NAN; n as usize]),
                _ => calls.input(arg.name, &small(n, 31 + i as u64 + arg.name.len() as u64)),
            };
        }
        calls
    }

    fn check(&self) {
        let (kernel, other) = (self.kernel(), self.other().kernel());
        self.calls(&*kernel).with_code_of(&*other).check();
    }
}

/// One matrix, or two with a gate.
fn case(format: WeightFormat, n: u32, k: u32, gate: Option<Activation>) -> Case {
    let matrices = vec![Matrix::new(format, n); if gate.is_some() { 2 } else { 1 }];
    Case { gemv: QuantGemv { matrices, gate, ..QuantGemv::new(format, n, k) } }
}

/// How a format may take its activations.
fn paths(format: WeightFormat) -> impl Iterator<Item = Activations> {
    Activations::ALL.into_iter().filter(move |path| !format.is_float() || *path == Activations::Exact)
}

#[test]
fn every_format_path_and_epilogue() {
    let (mut turn, mut sample) = (0, Sample::one_in(3));
    for format in WeightFormat::ALL {
        for path in paths(format) {
            for (gated, norm) in [(false, false), (true, false), (false, true), (true, true)] {
                if norm && path == Activations::Int8 {
                    continue;
                }
                for (bias, residual) in [(false, false), (true, false), (false, true), (true, true)] {
                    // Another one for each addition, from format to format.
                    let gate = gated.then(|| Activation::ALL[(turn + turn / 4) % Activation::ALL.len()]);
                    let mut case = case(format, 35, if format.is_float() { 840 } else { 1280 }, gate);
                    case.gemv.matrices.iter_mut().for_each(|matrix| matrix.bias = bias);
                    case.gemv.matrices[0].residual = residual;
                    case.gemv.activations = path;
                    case.gemv.warps = Some(1 << (turn % 4));
                    case.gemv.epsilon = norm.then_some(1e-5);
                    if sample.takes() {
                        case.check();
                    }
                    turn += 1;
                }
            }
        }
    }
}

#[test]
fn every_length_by_every_team() {
    let mut sample = Sample::one_in(3);
    for format in WeightFormat::ALL {
        for k in crate::cases::gemv::lengths(format) {
            for warps in [1, 2, 4, 8] {
                for n in [5, 16, 49].into_iter().filter(|_| sample.takes()) {
                    let mut case = case(format, n, k, None);
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
        for k in crate::cases::gemv::lengths(format) {
            for (path, warps) in [(Activations::Int8, 4), (Activations::Rounded, 2)] {
                let mut case = case(format, 17, k, None);
                (case.gemv.activations, case.gemv.warps) = (path, Some(warps));
                case.check();
            }
        }
    }
}

/// The products of an attention's inputs: each matrix by itself.
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
        // As many warps as the launch has: the sums are in the same order.
        let gemv = QuantGemv { warps: Some(2), ..gemv };
        let case = Case { gemv: QuantGemv { epsilon: norm.then_some(1e-6), ..gemv } };
        let kernel = case.kernel();
        case.calls(&*kernel).check();
    }
}

/// A piece of a launch is the same code as a launch of its own.
#[test]
fn pieces_and_whole_launches_are_one_op() {
    let ops = |kernel: QuantGemv| {
        let kernel: Arc<dyn AnyKernel + Send + Sync> = Arc::new(kernel);
        Op::of(&kernel, 8, Arch::sm(80)).expect("ops")
    };
    let formats = [WeightFormat::Q4K, WeightFormat::Q4K, WeightFormat::Q6K];
    let matrices = formats.iter().zip([64, 32, 128]).map(|(&format, n)| Matrix::new(format, n));
    let several = QuantGemv { matrices: matrices.collect(), ..QuantGemv::new(formats[0], 64, 2048) };
    let pieces = ops(QuantGemv { warps: Some(4), ..several });
    assert_eq!(pieces.len(), 3);
    assert!(pieces[0] == pieces[1] && pieces[1] != pieces[2]);
    let alone = |format| ops(QuantGemv { warps: Some(4), ..QuantGemv::new(format, 4096, 4096) });
    assert!(alone(formats[0])[..] == pieces[..1] && alone(formats[2])[..] == pieces[2..]);
    let names = |op: &Op| op.args().map(|arg| arg.name).collect::<Vec<_>>();
    assert_eq!(names(&pieces[1]), ["x", "w1", "y1"]);
    assert_eq!(
        pieces.iter().map(|op| op.grid(|_| None)).collect::<Vec<_>>(),
        [4, 2, 8].map(|n| Some([n, 1, 1]))
    );
}

/// Each number of a record, off by a little, is noticed.
#[test]
fn every_number_matters() {
    for format in
        [WeightFormat::Q4K, WeightFormat::Q5K, WeightFormat::Q6K, WeightFormat::Q8_0, WeightFormat::F32]
    {
        let mut case = case(format, 49, 1280, None);
        (case.gemv.warps, case.gemv.epsilon) = (Some(2), Some(1e-2));
        let kernel = case.kernel();
        let numbers = case.calls(&*kernel).numbers();
        assert!(numbers.len() >= 5, "{numbers:?}");
        for (i, &bits) in numbers.iter().enumerate() {
            // Those of floats are large.
            let wrong = if bits >> 24 > 0x30 {
                u64::from((f32::from_bits(bits as u32) * 1.5).to_bits())
            } else {
                bits + 16
            };
            let outcome = case.calls(&*kernel).with_number(i, wrong).agrees();
            assert!(outcome.is_err(), "{} with {wrong} for {bits}", kernel.entry());
        }
    }
}

/// A tile of those that a team walks costs what it costs where the kernel is launched, up to a fiftieth. That is what one
/// block more of the matrix costs, so that the caller's own beginning is not counted.
#[test]
fn a_tile_costs_no_more() {
    for format in [WeightFormat::Q4K, WeightFormat::Q6K] {
        for (k, gate, norm, residual) in [
            (256, None, true, false),
            (256, Some(Activation::Silu), true, false),
            (768, None, false, true),
            (768, Some(Activation::Gelu), true, false),
            (2048, None, true, false),
        ] {
            for path in [Activations::Exact, Activations::Rounded] {
                let instructions = |n: u32| {
                    let mut case = case(format, n, k, gate);
                    case.gemv.activations = path;
                    case.gemv.matrices[0].residual = residual;
                    case.gemv.epsilon = norm.then_some(1e-5);
                    case.gemv.warps = case.kernel().launch().team_warps(8);
                    let kernel = case.kernel();
                    let reports = case.calls(&*kernel).reports();
                    (format!("{case:?}"), reports.map(|report| report.counters.warp_instructions))
                };
                let ((case, [launched, called]), (_, [more_launched, more_called])) =
                    (instructions(512), instructions(1024));
                let ratio = (more_called - called) as f64 / (more_launched - launched) as f64;
                assert!(ratio <= 1.02, "{case}: {ratio:.3} of the launch's instructions");
            }
        }
    }
}
