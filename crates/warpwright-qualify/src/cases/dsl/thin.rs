//! Thin products by their numbers: on the tensor cores and on the lanes, with scales and without.

use super::outputs;
use crate::common::{LaunchArg, numbers, rounded};
use warpwright_dsl::*;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::{Arch, Type};

const VECTORS: u32 = 5;
const ROWS: u32 = 43;
const OTHER: f32 = -1e30;

/// Rows as a buffer has them, and what they mean.
struct Matrix {
    elements: Vec<f64>,
    scales: Vec<f64>,
    values: Vec<f64>,
}

fn matrix(ty: Type, width: u32, seed: u64) -> Matrix {
    let x = numbers((ROWS * width) as usize, seed);
    if ty != Type::S8 {
        let values = rounded(ty, &x);
        return Matrix { elements: values.clone(), scales: vec![0.0; 2], values };
    }
    let elements: Vec<_> = x.iter().map(|x| (x * 127.0).round()).collect();
    // Of all magnitudes, and some are zero.
    let scale = |(i, x): (usize, &f64)| if i % 7 == 3 { 0.0 } else { x.abs() * 2f64.powi(-(i as i32 % 16)) };
    let scales = numbers(elements.len() / 32, seed + 1);
    let scales = rounded(Type::F16, &scales.iter().enumerate().map(scale).collect::<Vec<_>>());
    let values = elements.iter().enumerate().map(|(i, x)| x * scales[i / 32]).collect();
    Matrix { elements, scales, values }
}

/// Of each step the largest product and the sum of the weights, powers of two relative to that; of two warps the sums of
/// rows with such weights.
fn run<'k, P: ThinProducts<'k>>(k: K<'k>, thin: &P, width: u32) {
    let [largest, totals, sums] = ["largest", "totals", "sums"].map(|name| k.ptr_mut::<f32>(name));
    let end = k.u32(ROWS);
    let steps = ROWS.div_ceil(thin.rows());
    let mut all = thin.zeros();
    for i in 0..steps {
        let row = k.u32(i * thin.rows());
        let step = ThinStep { row, wanted: None, end: Some(end) };
        let unwanted = ThinStep { row: row + k.tid(), wanted: Some(k.tid().ge(999)), end: None };
        let rows = thin.load_rows(unwanted, Some(thin.load_rows(step, None)));
        let addends = thin.load_addends(unwanted, Some(thin.load_addends(step, None)));
        let products = thin.multiply(rows, Some(step), OTHER);
        let most = products.row_max();
        most.each(|vector, most| largest.st_if(vector.lt(VECTORS), vector * steps + i, most));
        let weights = (products - most).exp2_ftz();
        let total = thin.fold(weights).row_sum();
        total.each(|vector, total| totals.st_if(vector.lt(VECTORS), vector * steps + i, total));
        all = thin.add(weights, addends, all);
    }
    thin.reduce_scatter(
        all,
        |vector| (vector + 1).f32(),
        |element, vector, here, neighbours| {
            for (i, &sum) in (0..).zip(neighbours) {
                sums.st_if(here, vector * width + element + i, sum);
            }
        },
    );
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Tensor,
    Lanes,
}

fn check(way: Way, sm: u16, ty: Type, width: u32, held: bool) {
    let what = format!("{way:?}, {ty} of {width}, held: {held}, on sm_{sm}");
    let d = width as usize;
    let x = rounded(Type::F32, &numbers((VECTORS * width) as usize, 9));
    let [rows, addends] = [1, 5].map(|seed| matrix(ty, width, seed));
    let step = if way == Way::Tensor { 16 } else { 2 };
    let lanes = (width * ty.bytes() / 16).clamp(1, 32).next_power_of_two();
    let of_step = if way == Way::Tensor { 16 } else { 2 * 32 / lanes };
    let steps = ROWS.div_ceil(of_step) as usize;
    let given = [
        LaunchArg::Input(Type::F32, &x),
        LaunchArg::Input(ty, &rows.elements),
        LaunchArg::Input(Type::F16, &rows.scales),
        LaunchArg::Input(ty, &addends.elements),
        LaunchArg::Input(Type::F16, &addends.scales),
        LaunchArg::Output(Type::F32, VECTORS as usize * steps),
        LaunchArg::Output(Type::F32, VECTORS as usize * steps),
        LaunchArg::Output(Type::F32, VECTORS as usize * d),
    ];
    let found = outputs(sm, (1, 64), &given, |k| {
        let x = k.ptr::<f32>("x");
        let shape =
            ThinShape { vectors: VECTORS, width, step, held, terms: if ty == Type::BF16 { 3 } else { 2 } };
        macro_rules! with {
            ($way:ident $ty:ty) => {{
                let matrices = [("r", "r_scales"), ("a", "a_scales")].map(|(elements, scales)| {
                    let (elements, scales) = (k.ptr::<$ty>(elements), k.ptr::<F16>(scales));
                    ThinRows { elements, scales: (ty == Type::S8).then_some(scales) }
                });
                let thin = k.$way(shape, k.f32(0.5), matrices, |vector, element, there, count| {
                    load(x.at(vector * width + element), there, count)
                });
                run(k, &thin, width)
            }};
        }
        match (way, ty) {
            (Way::Tensor, Type::S8) => with!(tensor_products i8),
            (Way::Tensor, Type::F16) => with!(tensor_products F16),
            (Way::Tensor, _) => with!(tensor_products Bf16),
            (Way::Lanes, Type::F32) => with!(lane_products f32),
            (Way::Lanes, Type::F16) => with!(lane_products F16),
            (Way::Lanes, _) => with!(lane_products Bf16),
        }
    });
    let of = |matrix: &Matrix, row: usize| matrix.values[row * d..][..d].to_vec();
    for vector in 0..VECTORS as usize {
        let x = &x[vector * d..][..d];
        let mut expected = vec![0.0; d];
        let mut weighed = vec![0.0; d];
        for first in (0..ROWS as usize).step_by(of_step as usize) {
            let own = first..(first + of_step as usize).min(ROWS as usize);
            let dot = |row: usize| of(&rows, row).iter().zip(x).map(|(r, x)| r * x).sum::<f64>() * 0.5;
            let scores: Vec<_> = own.clone().map(dot).collect();
            let most = scores.iter().copied().fold(f64::MIN, f64::max);
            let total: f64 = scores.iter().map(|score| (score - most).exp2()).sum();
            let at = vector * steps + first / of_step as usize;
            let found = [found[0][at], found[1][at]];
            assert!((found[0] - most).abs() < 2e-5 * (1.0 + most.abs()), "{what}: {found:?}, {most}");
            assert!((found[1] - total).abs() < 2e-5 * total, "{what}: {found:?}, {total}");
            for (row, score) in own.zip(scores) {
                for (i, addend) in of(&addends, row).iter().enumerate() {
                    let term = 2.0 * (vector + 1) as f64 * (score - most).exp2() * addend;
                    expected[i] += term;
                    weighed[i] += term.abs();
                }
            }
        }
        for i in 0..d {
            let (found, exact) = (found[2][vector * d + i], expected[i]);
            // Weights near 1, and not near `2^UNIT`, may lack 2^-24 of the largest.
            let bound = 5e-5 * weighed[i] + 1e-4;
            assert!((found - exact).abs() <= bound, "{what}, element {i}: {found}, {exact}");
        }
    }
}

fn load<'k>(x: Ptr<'k, Global, f32>, there: Option<Reg<'k, Pred>>, count: u32) -> Vec<Reg<'k, f32>> {
    (0..count).map(|i| x.ld_if(there, i, 0.0)).collect()
}

fn a_few_vectors_by_many_rows() {
    for sm in [75, 80, 90] {
        for (width, held) in [(32, true), (64, false), (96, true), (128, false), (256, false)] {
            check(Way::Tensor, sm, Type::S8, width, held);
            check(Way::Tensor, sm, Type::F16, width, held);
            check(Way::Lanes, sm, Type::F16, width, held);
            check(Way::Lanes, sm, Type::BF16, width, !held);
        }
    }
    for (width, held) in [(40, true), (80, false), (200, true)] {
        check(Way::Tensor, 80, Type::F16, width, held);
        check(Way::Tensor, 80, Type::BF16, width, !held);
        check(Way::Lanes, 80, Type::F32, width, held);
    }
}

fn scales_are_for_bytes_on_the_tensor_cores() {
    fn rows<T: Data>(k: K<'_>) -> [ThinRows<'_, T>; 2] {
        [("r", "r_scales"), ("a", "a_scales")].map(|(elements, scales)| ThinRows {
            elements: k.ptr::<T>(elements),
            scales: Some(k.ptr::<F16>(scales)),
        })
    }
    let shape = ThinShape { vectors: 1, width: 32, step: 16, held: true, terms: 1 };
    let codes = |body: fn(K<'_>, ThinShape)| {
        let built = build("body", &LaunchRule::new(32), Arch::sm(80), |k| body(k, shape));
        built.err().map_or(Vec::new(), |errors| errors.iter().map(|error| error.code).collect())
    };
    let tensor = |k: K<'_>, shape| {
        k.tensor_products(shape, k.f32(1.0), rows::<i8>(k), |_, _, _, n| vec![k.f32(0.0); n as usize]);
    };
    let halves = |k: K<'_>, shape| {
        k.tensor_products(shape, k.f32(1.0), rows::<F16>(k), |_, _, _, n| vec![k.f32(0.0); n as usize]);
    };
    let lanes = |k: K<'_>, shape| {
        k.lane_products(shape, k.f32(1.0), rows::<F16>(k), |_, _, _, n| vec![k.f32(0.0); n as usize]);
    };
    assert_eq!(codes(tensor), []);
    assert_eq!(codes(halves), [Code::ModifierCombination]);
    assert_eq!(codes(lanes), [Code::ModifierCombination]);
}

crate::case_list! {
    a_few_vectors_by_many_rows,
    scales_are_for_bytes_on_the_tensor_cores,
}
