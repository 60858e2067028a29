//! Activations quantised to `int8`, on the virtual GPU with every check on, against the definition in `f64`.

use crate::common::{numbers, rounded};
use warpwright_dsl::{bf16_bits, f16_bits};
use warpwright_kernels::{Dtype, QuantizeInt8};
use warpwright_test::KernelTest;
use warpwright_testing::{Ran, RunHere, orders};

/// Runs rows of numbers of the type; yields the run and the numbers as the type holds them.
fn run(kernel: &QuantizeInt8, rows: u64, x: &[f64], seed: u64) -> (Ran, Vec<f64>) {
    let test = KernelTest::new(kernel).dim("rows", rows).seed(seed);
    let halves = |bits: fn(f32) -> u16| x.iter().map(|&v| bits(v as f32)).collect::<Vec<_>>();
    let test = match kernel.input {
        Dtype::F32 => test.input("x", &x.iter().map(|&v| v as f32).collect::<Vec<_>>()),
        Dtype::F16 => test.input("x", &halves(f16_bits)),
        Dtype::Bf16 => test.input("x", &halves(bf16_bits)),
    };
    let run = test.run_here().unwrap_or_else(|error| panic!("{kernel:?}, {rows} rows: {error}"));
    (run, rounded(kernel.input.ty(), x))
}

fn check(kernel: &QuantizeInt8, rows: u64, x: &[f64], seed: u64) {
    let (run, x) = run(kernel, rows, x, seed);
    let (quants, scales) = (run.output::<i8>("quants"), run.output::<f32>("scales"));
    assert_eq!(quants.len(), x.len());
    for (i, (block, quants)) in x.chunks_exact(32).zip(quants.chunks_exact(32)).enumerate() {
        let what = format!("{kernel:?}, block {i}");
        let most = block.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        let scale = f64::from(scales[i]);
        if most / 127.0 < f64::from(f32::MIN_POSITIVE) {
            assert!(scale == 0.0 && quants.iter().all(|&q| q == 0), "{what}");
            continue;
        }
        assert!((scale - most / 127.0).abs() <= most / 127.0 * 2f64.powi(-22), "{what}: scale {scale}");
        for (&v, &q) in block.iter().zip(quants) {
            let off = (v - scale * f64::from(q)).abs();
            assert!(off <= 0.501 * scale, "{what}: {v} is {q} times {scale}");
        }
    }
}

fn every_type_and_size() {
    for input in Dtype::ALL {
        for (d, rows, threads) in [(32, 1, 32), (32, 5, 128), (96, 3, 64), (1536, 2, 256), (2048, 3, 1024)] {
            let kernel = QuantizeInt8 { input, threads, ..QuantizeInt8::new(d) };
            for &seed in orders(&[1, 2]) {
                check(&kernel, rows, &numbers(d as usize * rows as usize, seed), seed);
            }
        }
    }
}

fn inputs_of_every_kind() {
    let kernel = QuantizeInt8::new(128);
    let of = |f: fn(usize, f64) -> f64| -> Vec<f64> {
        numbers(256, 7).into_iter().enumerate().map(|(i, v)| f(i, v)).collect()
    };
    let kinds: [fn(usize, f64) -> f64; 8] = [
        |_, v| v * 1e6,
        |_, v| v * 9e36,
        |i, v| if i % 97 == 5 { v * 1000.0 } else { v },
        |_, _| 0.75,
        |_, _| 0.0,
        |i, _| if i == 40 { 1.0 } else { 0.0 },
        |_, v| v * 1e-39,
        |_, v| v * 2e-36,
    ];
    for kind in kinds {
        check(&kernel, 2, &of(kind), 1);
    }
}

fn what_is_not_finite_is_not_lost() {
    for d in [32, 128] {
        for (at, value) in [(0, f64::NAN), (17, -f64::NAN), (31, f64::INFINITY), (5, f64::NEG_INFINITY)] {
            let mut x = numbers(2 * d, 3);
            x[d + at] = value;
            let (run, _) = run(&QuantizeInt8::new(d as u32), 2, &x, 1);
            let scales = run.output::<f32>("scales");
            // A product with the block is NaN, or infinite; the other blocks are as ever.
            let bad: Vec<_> = scales.iter().map(|scale| !scale.is_finite()).collect();
            assert_eq!(
                bad,
                (0..2 * d / 32).map(|block| block == d / 32).collect::<Vec<_>>(),
                "{value} of {d}"
            );
        }
    }
}

crate::case_list! {
    every_type_and_size,
    inputs_of_every_kind,
    what_is_not_finite_is_not_lost,
}
