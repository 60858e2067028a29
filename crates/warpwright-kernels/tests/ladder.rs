//! The steps of the ladder but its matrix products against float64, on the virtual GPU with every check on, within the
//! bounds that they state. The products have tests of their own.
//!
//! `u` is 2⁻²⁴, the relative error of one rounding to `f32`.

#[allow(dead_code, reason = "the products have tests of their own")]
#[path = "../examples/ladder/mod.rs"]
mod ladder;

use ladder::mat_vec::MatVec;
use ladder::rms_norm::RmsNorm;
use ladder::softmax::Softmax;
use ladder::transpose::Transpose;
use ladder::vector_add::VectorAdd;
use warpwright_dsl::{Bf16, F16, any::AnyKernel};
use warpwright_ptx::ir::{Arch, Type};
use warpwright_qualify::common::{LaunchArg, numbers, rounded, rounding, run_kernel};

const TARGETS: [u16; 5] = [75, 80, 89, 90, 120];
const TYPES: [(&str, Type); 3] =
    [("dtype=f32", Type::F32), ("dtype=f16", Type::F16), ("dtype=bf16", Type::BF16)];
const U: f64 = 1.0 / (1 << 24) as f64;

/// Runs a kernel; yields its one output.
fn output(
    sm: u16,
    kernel: &dyn AnyKernel,
    dims: &[(&'static str, usize)],
    given: &[LaunchArg<'_>],
) -> Vec<f64> {
    let dim = |name: &str| dims.iter().find(|dim| dim.0 == name).map(|dim| dim.1 as u64);
    let (mut outputs, _) = run_kernel(Arch::sm(sm), kernel, dim, given);
    outputs.remove(0)
}

/// A kernel that is generic over its element type.
macro_rules! of_type {
    ($ty:expr, $name:ident { $($field:ident),* } $new:tt) => {
        match $ty {
            Type::F16 => Box::new($name::<F16> { $($field,)* ..$name::new$new }) as Box<dyn AnyKernel>,
            Type::BF16 => Box::new($name::<Bf16> { $($field,)* ..$name::new$new }),
            _ => Box::new($name::<f32> { $($field,)* ..$name::new$new }),
        }
    };
}

/// Every number is within its bound of what is exact, and one rounding to the type.
fn assert_within(what: &str, ty: Type, found: &[f64], exact: impl Fn(usize) -> (f64, f64)) {
    for (i, found) in found.iter().enumerate() {
        let (exact, slack) = exact(i);
        let slack = slack + rounding(ty, exact.abs() + slack);
        assert!((found - exact).abs() <= slack, "{what}: {found} at {i}, not {exact} ± {slack:e}");
    }
}

#[test]
fn vectors_are_added() {
    for sm in TARGETS {
        for (dtype, ty) in TYPES {
            for (n, threads) in [(1, 32), (31, 32), (256, 256), (1000, 96), (1025, 1024)] {
                let [x, y] = [1, 2].map(|seed| rounded(ty, &numbers(n, seed)));
                let what = format!("{n} {dtype} on sm_{sm}");
                let kernel = of_type!(ty, VectorAdd {}(threads));
                let given = [
                    LaunchArg::Input(ty, &x),
                    LaunchArg::Input(ty, &y),
                    LaunchArg::Output(ty, n),
                    LaunchArg::Scalar(n as u32),
                ];
                let found = output(sm, &*kernel, &[("n", n)], &given);
                // A sum in f32; of halves it is exact or rounded as well.
                let first = if ty == Type::F32 { 0.0 } else { U };
                assert_within(&what, ty, &found, |i| (x[i] + y[i], first * (x[i] + y[i]).abs()));
            }
        }
    }
}

#[test]
fn rows_are_normalised() {
    let epsilon = 1e-5f32;
    for sm in TARGETS {
        for (dtype, ty) in TYPES {
            for (rows, d, threads) in [(1, 1, 32), (3, 33, 64), (2, 1000, 256), (5, 96, 1024), (2, 2049, 128)]
            {
                let x = rounded(ty, &numbers(rows * d, 1));
                let w = rounded(ty, &numbers(d, 2));
                let kernel = of_type!(ty, RmsNorm { threads }(d as u32, epsilon));
                let given =
                    [LaunchArg::Input(ty, &x), LaunchArg::Input(ty, &w), LaunchArg::Output(ty, rows * d)];
                let found = output(sm, &*kernel, &[("rows", rows)], &given);
                let bound = (d as f64 / f64::from(threads) + 12.0) * U;
                assert_within(&format!("{rows}x{d} {dtype} on sm_{sm}"), ty, &found, |i| {
                    let row = &x[i / d * d..][..d];
                    let mean = row.iter().map(|x| x * x).sum::<f64>() / d as f64;
                    let exact = x[i] / (mean + f64::from(epsilon)).sqrt() * w[i % d];
                    (exact, bound * exact.abs())
                });
            }
        }
    }
}

#[test]
fn matrices_are_transposed() {
    for sm in TARGETS {
        for (dtype, ty) in TYPES {
            for (rows, columns) in [(1, 1), (1, 70), (33, 31), (64, 32), (100, 65)] {
                let x = rounded(ty, &numbers(rows * columns, 1));
                let kernel = of_type!(ty, Transpose {}(rows as u32, columns as u32));
                let given = [LaunchArg::Input(ty, &x), LaunchArg::Output(ty, rows * columns)];
                let found = output(sm, &*kernel, &[], &given);
                let exact: Vec<_> =
                    (0..columns).flat_map(|column| x.iter().skip(column).step_by(columns).copied()).collect();
                assert_eq!(found, exact, "{rows}x{columns} {dtype} on sm_{sm}");
            }
        }
    }
}

#[test]
fn rows_become_probabilities() {
    for sm in TARGETS {
        for (dtype, ty) in TYPES {
            for (rows, d, threads) in [(1, 1, 32), (3, 33, 64), (2, 1000, 256), (5, 96, 1024), (2, 2049, 128)]
            {
                // Among them a row of large numbers, whose exponentials overflow.
                let x: Vec<_> = numbers(rows * d, 1).iter().map(|x| x * 8.0 + 200.0).collect();
                let x = rounded(ty, &x);
                let kernel = of_type!(ty, Softmax { threads }(d as u32));
                let given = [LaunchArg::Input(ty, &x), LaunchArg::Output(ty, rows * d)];
                let found = output(sm, &*kernel, &[("rows", rows)], &given);
                assert_within(&format!("{rows}x{d} {dtype} on sm_{sm}"), ty, &found, |i| {
                    let row = &x[i / d * d..][..d];
                    let max = row.iter().copied().fold(f64::MIN, f64::max);
                    let sum = row.iter().map(|x| (x - max).exp()).sum::<f64>();
                    let exact = (x[i] - max).exp() / sum;
                    let depth = 3.0 * (max - x[i] + (d as f64).ln());
                    (exact, (d as f64 / f64::from(threads) + depth + 21.0) * U * exact)
                });
            }
        }
    }
}

#[test]
fn rows_are_multiplied_by_a_vector() {
    for sm in TARGETS {
        for (dtype, ty) in TYPES {
            for (n, k) in [(1, 1), (8, 32), (9, 33), (30, 1000)] {
                let w = rounded(ty, &numbers(n * k, 1));
                let x = rounded(ty, &numbers(k, 2));
                let kernel = of_type!(ty, MatVec {}(n as u32, k as u32));
                let given =
                    [LaunchArg::Input(ty, &w), LaunchArg::Input(ty, &x), LaunchArg::Output(Type::F32, n)];
                let found = output(sm, &*kernel, &[], &given);
                let bound = (k as f64 / 32.0 + 8.0) * U;
                assert_within(&format!("{n}x{k} {dtype} on sm_{sm}"), Type::F32, &found, |i| {
                    let terms = w[i * k..][..k].iter().zip(&x).map(|(w, x)| w * x);
                    let (exact, size) =
                        terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
                    (exact, bound * size)
                });
            }
        }
    }
}
