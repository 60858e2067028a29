//! RMSNorm, layer norm and softmax against float64, on the virtual GPU with every check on, within the bounds that they
//! state.

use crate::common::ops::{Buffers, U, assert_within, full, held, hold, kinds, run};
use warpwright_dsl::{BuildError, any::AnyKernel};
use warpwright_kernels::{Dtype, LayerNorm, RmsNorm, Softmax};
use warpwright_ptx::ir::Arch;

const TARGETS: [u16; 3] = [75, 80, 90];

/// Runs a norm on rows, and holds all that it writes to the reference.
fn check_norm(sm: u16, norm: &RmsNorm, kind: &str, x: &[f64], stream: &[f64]) {
    let d = norm.d as usize;
    let rows = x.len() / d;
    let what = format!("{kind} of {} on sm_{sm}", norm.entry());
    let x = held(norm.input.ty(), x);
    let w = held(norm.weight.ty(), &crate::common::numbers(d, 77));
    let mut given = Buffers::from([("x", x.clone()), ("w", w.clone())]);
    let mut h = x;
    if let Some(dtype) = norm.residual {
        let stream = held(dtype.ty(), stream);
        h = h.iter().zip(&stream).map(|(x, r)| hold(dtype.ty(), f64::from(*x as f32 + *r as f32))).collect();
        given.insert("residual", stream);
    }
    let found = run(sm, norm, &[("rows", rows as u64)], &given);
    if norm.residual.is_some() {
        assert_eq!(found["residual"], h, "{what}: the residual stream");
    }
    let bound = ((d as f64 / f64::from(norm.threads)).ceil() / 2.0 + 11.0) * U;
    let exact: Vec<_> = (h.chunks(d))
        .flat_map(|row| {
            let mean = row.iter().map(|h| h * h).sum::<f64>() / d as f64;
            let root = (mean + f64::from(norm.epsilon)).max(f64::from(f32::MIN_POSITIVE)).sqrt();
            let y = row.iter().zip(&w).map(move |(h, w)| (h / root * w, w.abs() + 1.0));
            // Products below the smallest normal number are rounded to a multiple of 2⁻¹⁴⁹.
            y.map(|(y, w)| (y, bound * y.abs() + 2f64.powi(-149) * w))
        })
        .collect();
    if let Some(dtype) = norm.output {
        assert_within(&what, dtype.ty(), &found["y"], &exact);
    }
    if norm.int8 {
        let blocks = exact.chunks(32).zip(found["quants"].chunks(32));
        for (i, (exact, quants)) in blocks.enumerate() {
            let scale = found["scales"][i];
            let largest = exact.iter().map(|(y, _)| y.abs()).fold(0.0, f64::max);
            let near = (bound + 2.0 * U) * largest / 127.0 + 2f64.powi(-126);
            assert!((scale - largest / 127.0).abs() <= near, "{what}: scale {scale} of block {i}");
            for (&(y, slack), quant) in exact.iter().zip(quants) {
                assert!(quant.abs() <= 127.0, "{what}: quant {quant} in block {i}");
                let off = (scale * quant - y).abs();
                let slack = slack + 0.501 * scale + if scale == 0.0 { 2f64.powi(-119) } else { 0.0 };
                assert!(off <= slack, "{what}: {scale} · {quant}, not {y}, in block {i}");
            }
        }
    }
}

fn rows_of_every_kind_are_normalised() {
    let (rows, d) = (3, 288);
    for (i, (kind, x)) in kinds(rows * d, 1).into_iter().enumerate() {
        for (_, stream) in kinds(rows * d, 2).into_iter().take(3) {
            let norm = RmsNorm {
                residual: Some(Dtype::F32),
                int8: true,
                threads: 64,
                ..RmsNorm::new(d as u32, 1e-5)
            };
            check_norm(TARGETS[i % 3], &norm, kind, &x, &stream);
        }
        check_norm(80, &RmsNorm { threads: 32, ..RmsNorm::new(d as u32, 0.0) }, kind, &x, &[]);
        for dtype in [Dtype::F16, Dtype::Bf16] {
            let norm = RmsNorm {
                input: dtype,
                weight: dtype,
                residual: Some(dtype),
                output: Some(dtype),
                int8: true,
                ..RmsNorm::new(d as u32, 1e-6)
            };
            check_norm(TARGETS[i % 3], &norm, kind, &x, &x.iter().rev().map(|x| x / 2.0).collect::<Vec<_>>());
        }
    }
}

fn rows_of_any_length_are_normalised() {
    let mut shapes =
        vec![(1, 1, 32), (2, 33, 64), (3, 31, 32), (1, 4095, 96), (2, 1000, 1024), (1, 5000, 32)];
    if full() {
        shapes.extend([(4, 2048, 256), (4, 1536, 192), (3, 4096, 512), (2, 14336, 1024), (1, 1 << 20, 1024)]);
    }
    for (rows, d, threads) in shapes {
        let (x, stream) = (crate::common::numbers(rows * d, 3), crate::common::numbers(rows * d, 4));
        for (input, residual, output) in [
            (Dtype::F32, None, Dtype::F32),
            (Dtype::F16, Some(Dtype::F32), Dtype::Bf16),
            (Dtype::Bf16, Some(Dtype::F16), Dtype::F16),
        ] {
            let norm =
                RmsNorm { input, residual, output: Some(output), threads, ..RmsNorm::new(d as u32, 1e-5) };
            check_norm(80, &norm, "normal", &x, &stream);
        }
    }
    // int8 alone, of rows that are kept and of rows that are read again, with lanes that have nothing.
    for (d, threads) in [(32, 32), (96, 32), (4128, 64), (4096, 32)] {
        let norm = RmsNorm { output: None, int8: true, threads, ..RmsNorm::new(d, 1e-5) };
        check_norm(80, &norm, "normal", &crate::common::numbers(2 * d as usize, 5), &[]);
    }
}

/// The norm of each head: rows are `tokens × heads`, and short.
fn heads_are_normalised_each_by_itself() {
    for (i, d) in [32, 64, 80, 96, 128, 160, 192, 256].into_iter().enumerate() {
        for (tokens, heads) in [(1, 1), (3, 5)] {
            for (j, (kind, x)) in kinds(tokens * heads * d, 9).into_iter().enumerate() {
                let dtype = Dtype::ALL[(i + j) % 3];
                let norm = RmsNorm { input: dtype, output: Some(dtype), ..RmsNorm::new(d as u32, 1e-6) };
                check_norm(TARGETS[i % 3], &norm, kind, &x, &[]);
            }
        }
    }
}

/// The field that a kernel refuses.
fn refused(kernel: &dyn AnyKernel) -> &'static str {
    match kernel.build(Arch::sm(80)) {
        Err(BuildError::Field { field, .. }) => field,
        other => panic!("{:?}", other.map(|_| ())),
    }
}

fn what_a_norm_cannot_be_is_said() {
    let norm = RmsNorm::new(48, 1e-5);
    assert_eq!(refused(&RmsNorm { d: 0, ..norm }), "d");
    assert_eq!(refused(&RmsNorm { int8: true, ..norm }), "d");
    assert_eq!(refused(&RmsNorm { epsilon: -1.0, ..norm }), "epsilon");
    assert_eq!(refused(&RmsNorm { epsilon: f32::NAN, ..norm }), "epsilon");
    assert_eq!(refused(&RmsNorm { output: None, ..norm }), "output");
    assert_eq!(refused(&RmsNorm { threads: 48, ..norm }), "threads");
    for columns in [0, 48, 1056] {
        assert_eq!(refused(&RmsNorm { columns: Some(columns), ..norm }), "columns");
        assert_eq!(refused(&Softmax { columns: Some(columns), ..Softmax::new(7) }), "columns");
    }
    assert_eq!(refused(&Softmax { threads: 0, ..Softmax::new(7) }), "threads");
    assert_eq!(refused(&Softmax::new(0)), "d");
    let layer = LayerNorm::new(48, 1e-5);
    assert_eq!(refused(&LayerNorm { d: 0, ..layer }), "d");
    assert_eq!(refused(&LayerNorm { epsilon: 0.0, ..layer }), "epsilon");
    assert_eq!(refused(&LayerNorm { threads: 48, ..layer }), "threads");
    assert_eq!(refused(&LayerNorm { columns: Some(48), ..layer }), "columns");
}

/// Runs a layer norm on rows, and holds it to the reference.
fn check_layer_norm(sm: u16, norm: &LayerNorm, kind: &str, x: &[f64]) {
    let d = norm.d as usize;
    let what = format!("{kind} of {} on sm_{sm}", norm.entry());
    let x = held(norm.input.ty(), x);
    let w = held(norm.weight.ty(), &crate::common::numbers(d, 77));
    let b = if norm.bias { held(norm.weight.ty(), &crate::common::numbers(d, 78)) } else { vec![0.0; d] };
    let mut given = Buffers::from([("x", x.clone()), ("w", w.clone())]);
    if norm.bias {
        given.insert("b", b.clone());
    }
    let found = run(sm, norm, &[("rows", (x.len() / d) as u64)], &given);
    let n = (d as f64 / f64::from(norm.columns.unwrap_or(norm.threads))).ceil() + 7.0;
    let exact: Vec<_> = (x.chunks(d))
        .flat_map(|row| {
            let mean = |f: &dyn Fn(f64) -> f64| row.iter().map(|&x| f(x)).sum::<f64>() / d as f64;
            let (middle, size) = (mean(&|x| x), mean(&f64::abs));
            let root = (mean(&|x| (x - middle).powi(2)) + f64::from(norm.epsilon)).sqrt().recip();
            let e = (n + 12.0) * U * root * size;
            let numbers = row.iter().zip(&w).zip(&b);
            let exact = numbers.map(move |((x, w), b)| {
                let z = (x - middle) * root;
                let y = z * w + b;
                let rounded = ((n / 2.0 + 12.0) * (z * w).abs() + y.abs()) * U;
                // What is below the smallest normal number is rounded to a multiple of 2⁻¹⁴⁹.
                let least = 2f64.powi(-149) * (w.abs() * (root + 1.0) + 1.0);
                (y, rounded + w.abs() * e * (1.0 + z.abs() * e / 2.0) + least)
            });
            exact.collect::<Vec<_>>()
        })
        .collect();
    assert_within(&what, norm.output.ty(), &found["y"], &exact);
}

fn layers_of_every_kind_are_normalised() {
    let (rows, d) = (3, 292);
    for (i, (kind, x)) in kinds(rows * d, 11).into_iter().enumerate() {
        let norm = LayerNorm { threads: 64, ..LayerNorm::new(d as u32, 1e-5) };
        check_layer_norm(TARGETS[i % 3], &norm, kind, &x);
        check_layer_norm(80, &LayerNorm { bias: false, epsilon: 1e-12, threads: 32, ..norm }, kind, &x);
        for dtype in [Dtype::F16, Dtype::Bf16] {
            let halves = LayerNorm { input: dtype, weight: dtype, output: dtype, ..norm };
            check_layer_norm(TARGETS[i % 3], &halves, kind, &x);
        }
        // Far from zero, where the mean of squares less the square of the mean has no digits left.
        let far: Vec<_> = crate::common::numbers(rows * d, 12).iter().map(|x| 3000.0 + x).collect();
        check_layer_norm(TARGETS[i % 3], &norm, "far", &far);
    }
}

fn layers_of_any_length_are_normalised() {
    let mut shapes =
        vec![(1, 1, 32), (2, 33, 64), (3, 31, 32), (1, 4095, 96), (2, 1000, 1024), (1, 5004, 32)];
    if full() {
        shapes.extend([(4, 768, 192), (3, 5120, 512), (1, 1 << 20, 1024)]);
    }
    for (i, (rows, d, threads)) in shapes.into_iter().enumerate() {
        let x: Vec<_> = crate::common::numbers(rows * d, 13).iter().map(|x| x - 0.5).collect();
        for (j, input) in Dtype::ALL.into_iter().enumerate() {
            let (weight, output) = (Dtype::ALL[(i + j) % 3], Dtype::ALL[(i + 2 * j) % 3]);
            let columns = (i % 2 == 1).then_some(128);
            let norm =
                LayerNorm { input, weight, output, columns, threads, ..LayerNorm::new(d as u32, 1e-5) };
            check_layer_norm(80, &norm, "normal", &x);
        }
    }
}

/// Softmax with what is said of infinities.
fn check_softmax(sm: u16, softmax: &Softmax, kind: &str, x: &[f64]) {
    let d = softmax.d as usize;
    // Halves that are infinite stay so.
    let ty = softmax.input.ty();
    let x: Vec<_> = x.iter().map(|&x| if x.is_infinite() { x } else { hold(ty, x) }).collect();
    let found = run(sm, softmax, &[("rows", (x.len() / d) as u64)], &Buffers::from([("x", x.clone())]));
    let sums = (d as f64 / f64::from(softmax.threads)).ceil();
    let exact: Vec<_> = (x.chunks(d))
        .flat_map(|row| {
            let row: Vec<_> = row.iter().map(|x| x.min(f64::from(f32::MAX))).collect();
            let max = row.iter().copied().fold(f64::from(f32::MIN), f64::max);
            let sum = row.iter().map(|x| (x - max).exp()).sum::<f64>();
            row.into_iter().map(move |x| {
                let y = if sum == 0.0 { 0.0 } else { (x - max).exp() / sum };
                let depth = if y == 0.0 { 0.0 } else { 3.0 * (max - x + (d as f64).ln()) };
                (y, (sums + depth + 23.0) * U * y + 2f64.powi(-126))
            })
        })
        .collect();
    assert_within(
        &format!("{kind} of {} on sm_{sm}", softmax.entry()),
        softmax.output.ty(),
        &found["y"],
        &exact,
    );
}

fn rows_become_probabilities() {
    let (rows, d) = (2, 200);
    for (i, (kind, x)) in kinds(rows * d, 6).into_iter().enumerate() {
        for input in Dtype::ALL {
            let output = Dtype::ALL[i % 3];
            check_softmax(
                TARGETS[i % 3],
                &Softmax { input, output, threads: 64, ..Softmax::new(d as u32) },
                kind,
                &x,
            );
        }
    }
    let mut shapes = vec![(1, 1, 32), (3, 33, 64), (1, 4097, 64), (1, 6000, 32), (2, 1024, 1024)];
    if full() {
        shapes.extend([(2, 128_256, 1024), (1, 151_936, 1024), (1, 1 << 20, 1024)]);
    }
    for (rows, d, threads) in shapes {
        let x: Vec<_> = crate::common::numbers(rows * d, 7).iter().map(|x| 200.0 + 8.0 * x).collect();
        check_softmax(80, &Softmax { threads, ..Softmax::new(d as u32) }, "normal", &x);
    }
}

fn masks_have_no_share_and_infinities_share_evenly() {
    let mask = f64::NEG_INFINITY;
    let mut x = crate::common::numbers(7 * 40, 8);
    let rows: Vec<&mut [f64]> = x.chunks_mut(40).collect();
    let [masked, one, some, top, tops, low, _plain] = <[_; 7]>::try_from(rows).expect("seven rows");
    masked.fill(mask);
    one.fill(mask);
    one[17] = -1e6;
    some.iter_mut().step_by(3).for_each(|x| *x = mask);
    top[5] = f64::INFINITY;
    tops[5] = f64::INFINITY;
    tops[39] = f64::INFINITY;
    tops[0] = mask;
    low.fill(f64::from(f32::MIN));
    low[3] = f64::from(f32::MAX);
    for input in Dtype::ALL {
        for threads in [32, 64] {
            check_softmax(80, &Softmax { input, threads, ..Softmax::new(40) }, "masked", &x);
        }
    }
    // A NaN makes its row NaN, and no other.
    let mut x = vec![0.5; 80];
    x[50] = f64::NAN;
    let found = run(80, &Softmax::new(40), &[("rows", 2)], &Buffers::from([("x", x)]));
    assert!(found["y"][..40].iter().all(|y| *y == f64::from(0.025_f32)));
    assert!(found["y"][40..].iter().all(|y| y.is_nan()));
}

crate::case_list! {
    rows_of_every_kind_are_normalised,
    rows_of_any_length_are_normalised,
    heads_are_normalised_each_by_itself,
    what_a_norm_cannot_be_is_said,
    layers_of_every_kind_are_normalised,
    layers_of_any_length_are_normalised,
    rows_become_probabilities,
    masks_have_no_share_and_infinities_share_evenly,
}
