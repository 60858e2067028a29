//! The matrix products against float64 on the virtual GPU with every check on, at sizes that fit no tile.
//!
//! Errors are held to what the arithmetic allows, not to what looks small. Let `S` be `Σ|aᵢ||bᵢ|`.
//!
//! - Fused multiply-adds, one after the other: `k` roundings by `u = 2⁻²⁴` each, so `k·u/(1 − k·u) · S`
//!   (Higham, *Accuracy and Stability of Numerical Algorithms*, lemma 3.1).
//! - A tensor core takes `G` products and the running sum at a time, cuts each of the `G + 1` terms to
//!   `23 + n` bits below the largest exponent, whose power of two is no larger than `S` and what it has
//!   erred already, and cuts their sum to 24 bits: `δ = ((G + 1)/2ⁿ + 1) · 2⁻²³` a block, and
//!   `((1 + δ)^⌈k/G⌉ − 1) · S` in all. `G` and `n` are those of the hardware that the virtual GPU follows.
//! - Factors that are rounded to `tf32` are off by 2⁻¹¹ each.

#[allow(dead_code, reason = "the other steps have tests of their own")]
#[path = "../examples/ladder/mod.rs"]
mod ladder;

use ladder::matmul::Matmul;
use ladder::matmul_tiled::MatmulTiled;
use warpwright_dsl::{Bf16, BuildError, F16, any::AnyKernel};
use warpwright_kernels::Entry;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::{Arch, Type};
use warpwright_qualify::common::{LaunchArg, numbers, product, rounded, rounding, run_kernel};
use warpwright_vm::tensor::{FloatElement, TensorCore};

/// m, n, k.
const SIZES: [[usize; 3]; 9] = [
    [1, 1, 1],
    [2, 1, 300],
    [1, 8, 16],
    [3, 130, 33],
    [17, 5, 64],
    [64, 64, 40],
    [129, 131, 65],
    [130, 136, 96],
    [200, 24, 7],
];

struct Case<'a> {
    kernel: Entry,
    sm: u16,
    factor: Type,
    out: Type,
    fields: &'a [&'a str],
    adds: Adds,
}

/// How products are added.
#[derive(Clone, Copy)]
enum Adds {
    OneByOne,
    InBlocks(FloatElement),
}

impl Adds {
    /// The error, as a part of the sum of the products' magnitudes, for an inner dimension.
    fn bound(self, sm: u16, k: usize) -> f64 {
        match self {
            Adds::OneByOne => {
                let ku = k as f64 * 2f64.powi(-24);
                ku / (1.0 - ku)
            }
            Adds::InBlocks(element) => {
                let core = TensorCore::for_arch(Arch::sm(sm));
                let how = core.accumulation(element).expect("a core that exists");
                let block = how.block as f64;
                let cut = ((block + 1.0) / 2f64.powi(how.extra_bits) + 1.0) * 2f64.powi(-23);
                let added = (1.0 + cut).powf((k as f64 / block).ceil());
                let factor = if element == FloatElement::TF32 { 1.0 + 2f64.powi(-11) } else { 1.0 };
                added * factor * factor - 1.0
            }
        }
    }
}

fn check(case: &Case<'_>, size: [usize; 3], a: &[f64], b: &[f64]) {
    let [m, n, k] = size;
    let name = format!("{} {:?} on sm_{}, {m}x{n}x{k}", case.kernel.name, case.fields, case.sm);
    let sides = [format!("n={n}"), format!("k={k}")];
    let fields = sides.iter().map(String::as_str).chain(case.fields.iter().copied());
    let kernel = case.kernel.configure(fields).expect("a configuration");
    let given = [
        LaunchArg::Input(case.factor, a),
        LaunchArg::Input(case.factor, b),
        LaunchArg::Output(case.out, m * n),
        LaunchArg::Scalar(m as u32),
    ];
    let dims = |name: &str| (name == "m").then_some(m as u64);
    let (outputs, _) = run_kernel(Arch::sm(case.sm), kernel.as_ref(), dims, &given);
    let (a, b) = (rounded(case.factor, a), rounded(case.factor, b));
    let (exact, magnitudes) = product(&a, &b, size);
    for (i, (found, exact)) in outputs[0].iter().zip(&exact).enumerate() {
        let slack = case.adds.bound(case.sm, k) * magnitudes[i];
        let slack = slack + rounding(case.out, exact.abs() + slack);
        let (row, column) = (i / n, i % n);
        assert!(
            (found - exact).abs() <= slack,
            "{name}: {found} at ({row}, {column}), not {exact} ± {slack:e}"
        );
    }
}

fn check_all(case: &Case<'_>) {
    for size in SIZES {
        let [m, n, k] = size;
        check(case, size, &numbers(m * k, 1), &numbers(k * n, 2));
    }
    // Large factors, among them some that cancel.
    let [m, n, k] = [20, 12, 70];
    let large: Vec<_> = (0..m * k).map(|i| if i % 2 == 0 { 200.0 } else { -199.0 }).collect();
    check(case, [m, n, k], &large, &numbers(k * n, 3));
}

/// Products of halves.
fn halves() -> Entry {
    Entry::of::<Matmul<F16, f32>>()
}

const TARGETS: [u16; 7] = [75, 80, 86, 89, 90, 100, 120];

#[test]
fn tiled_products_are_within_their_bound() {
    for sm in [75, 80, 90] {
        let case = |factor, kernel| {
            check_all(&Case { kernel, sm, factor, out: factor, fields: &[], adds: Adds::OneByOne });
        };
        case(Type::F32, Entry::of::<MatmulTiled<f32>>());
        case(Type::F16, Entry::of::<MatmulTiled<F16>>());
        case(Type::BF16, Entry::of::<MatmulTiled<Bf16>>());
    }
}

#[test]
fn tensor_core_products_are_within_their_bound() {
    for sm in TARGETS {
        let case = |kernel, factor, out, element| {
            check_all(&Case { kernel, sm, factor, out, fields: &[], adds: Adds::InBlocks(element) });
        };
        case(Entry::of::<Matmul<F16, f32>>(), Type::F16, Type::F32, FloatElement::F16);
        if sm >= 80 {
            case(Entry::of::<Matmul<Bf16, F16>>(), Type::BF16, Type::F16, FloatElement::BF16);
            case(Entry::of::<Matmul<f32, f32>>(), Type::F32, Type::F32, FloatElement::TF32);
        }
    }
}

#[test]
fn products_that_a_target_lacks_are_refused_when_built() {
    let kernels: [Box<dyn AnyKernel>; 2] =
        [Box::new(Matmul::<Bf16, f32>::default()), Box::new(Matmul::<f32, f32>::default())];
    for kernel in kernels {
        match kernel.build(Arch::sm(75)).map(|_| ()).expect_err("Turing multiplies f16 alone") {
            BuildError::Mistakes(mistakes) => {
                assert!(mistakes.iter().all(|mistake| mistake.code == Code::NeedsTarget), "{mistakes}");
            }
            other => panic!("{other}"),
        }
    }
}

/// What the kernels' documentation states covers every generation.
#[test]
fn the_stated_bound_covers_every_tensor_core() {
    let elements = [FloatElement::F16, FloatElement::BF16, FloatElement::TF32];
    for sm in TARGETS {
        for element in elements.into_iter().filter(|&element| sm >= 80 || element == FloatElement::F16) {
            for k in (1..600).chain([4096, 65_537, 1 << 20]) {
                let tf32 = if element == FloatElement::TF32 { 2f64.powi(-10) * 1.25 } else { 0.0 };
                let stated = (2.0 * k as f64 + 16.0) * 2f64.powi(-23) + tf32;
                let bound = Adds::InBlocks(element).bound(sm, k);
                assert!(bound <= stated, "{element:?} on sm_{sm}, {k}: {bound:e}, {stated:e}");
            }
        }
    }
}

#[test]
fn any_number_of_stages_gives_the_same() {
    for sm in [75, 90] {
        for fields in [&["stages=1"], &["stages=2"], &["stages=3"]] {
            let adds = Adds::InBlocks(FloatElement::F16);
            let case = Case { kernel: halves(), sm, factor: Type::F16, out: Type::F32, fields, adds };
            for size in [[16, 16, 1], [40, 17, 100], [130, 24, 160]] {
                let [m, n, k] = size;
                check(&case, size, &numbers(m * k, 4), &numbers(k * n, 5));
            }
        }
    }
}

#[test]
fn any_shape_of_a_block_gives_the_same() {
    for sm in [75, 86, 90] {
        for down in [1, 2] {
            for across in [1, 2, 3, 4] {
                let fields = [format!("warps_down={down}"), format!("warps_across={across}")];
                let fields = fields.each_ref().map(String::as_str);
                let adds = Adds::InBlocks(FloatElement::F16);
                let case =
                    Case { kernel: halves(), sm, factor: Type::F16, out: Type::F32, fields: &fields, adds };
                for size in [[1, 1, 40], [70, 72, 64], [130, 129, 33]] {
                    let [m, n, k] = size;
                    check(&case, size, &numbers(m * k, 6), &numbers(k * n, 7));
                }
            }
        }
    }
}

#[test]
fn blocks_that_cannot_be_are_refused() {
    for (warps_down, warps_across) in [(0, 1), (3, 3), (u32::MAX, 2)] {
        let kernel = Matmul::<F16, f32> { warps_down, warps_across, ..Matmul::new(64, 64) };
        let error = kernel.build(Arch::sm(80)).map(|_| ()).expect_err("no such block");
        assert!(matches!(error, BuildError::Field { field: "warps_down", .. }), "{error}");
    }
}

#[test]
fn a_sum_of_nothing_is_zero() {
    let kernels: [Box<dyn AnyKernel>; 2] =
        [Box::new(Matmul::<F16, f32>::new(24, 0)), Box::new(MatmulTiled::<f32>::new(24, 0))];
    for kernel in kernels {
        for sm in [75, 80] {
            let given = [
                LaunchArg::Input(Type::F32, &[]),
                LaunchArg::Input(Type::F32, &[]),
                LaunchArg::Output(Type::F32, 17 * 24),
                LaunchArg::Scalar(17),
            ];
            let dims = |name: &str| (name == "m").then_some(17);
            let (outputs, _) = run_kernel(Arch::sm(sm), kernel.as_ref(), dims, &given);
            assert_eq!(outputs[0], [0.0; 17 * 24], "{} on sm_{sm}", kernel.entry());
        }
    }
}
