//! The matrix products against float64, within the bounds that they state, at sizes that fit no tile.

mod common;

use common::{Given, numbers, product, rounded, rounding, run_kernel};
use warpwright_kernels::find;
use warpwright_ptx::ir::{Arch, Type};

/// m, n, k.
const SIZES: [[usize; 3]; 8] = [
    [1, 1, 1],
    [1, 8, 16],
    [3, 130, 33],
    [17, 5, 64],
    [64, 64, 40],
    [129, 131, 65],
    [130, 136, 96],
    [200, 24, 7],
];

struct Case {
    kernel: &'static str,
    sm: u16,
    factor: Type,
    out: Type,
    fields: &'static [&'static str],
    /// The bound: this times the sum of the products' magnitudes, for an inner dimension.
    bound: fn(f64) -> f64,
}

fn check(case: &Case, size: [usize; 3], a: &[f64], b: &[f64]) {
    let [m, n, k] = size;
    let name = format!("{} {:?} on sm_{}, {m}x{n}x{k}", case.kernel, case.fields, case.sm);
    let sides = [format!("n={n}"), format!("k={k}")];
    let fields = sides.iter().map(String::as_str).chain(case.fields.iter().copied());
    let kernel = find(case.kernel).expect("a kernel").configure(fields).expect("a configuration");
    let given = [
        Given::Input(case.factor, a),
        Given::Input(case.factor, b),
        Given::Output(case.out, m * n),
        Given::Scalar(m as u32),
    ];
    let dims = |name: &str| (name == "m").then_some(m as u64);
    let (outputs, _) = run_kernel(Arch::sm(case.sm), kernel.as_ref(), dims, &given);
    let (a, b) = (rounded(case.factor, a), rounded(case.factor, b));
    let (exact, magnitudes) = product(&a, &b, size);
    for (i, (found, exact)) in outputs[0].iter().zip(&exact).enumerate() {
        let slack = (case.bound)(k as f64) * magnitudes[i];
        let slack = slack + rounding(case.out, exact.abs() + slack);
        let (row, column) = (i / n, i % n);
        assert!(
            (found - exact).abs() <= slack,
            "{name}: {found} at ({row}, {column}), not {exact} ± {slack:e}"
        );
    }
}

fn check_all(case: &Case) {
    for size in SIZES {
        let [m, n, k] = size;
        check(case, size, &numbers(m * k, 1), &numbers(k * n, 2));
    }
    // Large factors, among them some that cancel.
    let [m, n, k] = [20, 12, 70];
    let large: Vec<_> = (0..m * k).map(|i| if i % 2 == 0 { 200.0 } else { -199.0 }).collect();
    check(case, [m, n, k], &large, &numbers(k * n, 3));
}

fn one_at_a_time(k: f64) -> f64 {
    k * 2f64.powi(-24)
}

fn in_blocks(k: f64) -> f64 {
    (2.0 * k + 16.0) * 2f64.powi(-23)
}

fn in_tf32(k: f64) -> f64 {
    in_blocks(k) + 2f64.powi(-10)
}

#[test]
fn tiled_products_are_within_their_bound() {
    let kernel = "matmul_tiled";
    for sm in [75, 90] {
        let case = |factor, fields| Case { kernel, sm, factor, out: factor, fields, bound: one_at_a_time };
        check_all(&case(Type::F32, &["dtype=f32"]));
        check_all(&case(Type::F16, &["dtype=f16"]));
        check_all(&case(Type::BF16, &["dtype=bf16"]));
    }
}

#[test]
fn tensor_core_products_are_within_their_bound() {
    let kernel = "matmul";
    for sm in [75, 80, 89, 90, 120] {
        let case = |factor, out, fields, bound| Case { kernel, sm, factor, out, fields, bound };
        check_all(&case(Type::F16, Type::F32, &["dtype=f16"], in_blocks));
        if sm >= 80 {
            check_all(&case(Type::BF16, Type::F16, &["dtype=bf16", "out=f16"], in_blocks));
            check_all(&case(Type::F32, Type::F32, &["dtype=f32"], in_tf32));
        }
    }
}

#[test]
fn any_number_of_stages_gives_the_same() {
    for sm in [75, 90] {
        for fields in [&["stages=1"], &["stages=2"], &["stages=3"]] {
            let case =
                Case { kernel: "matmul", sm, factor: Type::F16, out: Type::F32, fields, bound: in_blocks };
            for size in [[16, 16, 1], [40, 17, 100], [130, 24, 160]] {
                let [m, n, k] = size;
                check(&case, size, &numbers(m * k, 4), &numbers(k * n, 5));
            }
        }
    }
}
