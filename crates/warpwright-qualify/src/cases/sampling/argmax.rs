//! Indices of the largest, exactly.

use crate::common::ops::{Buffers, full, hold, kinds, run};
use warpwright_dsl::any::AnyKernel;
use warpwright_kernels::{Argmax, Dtype};

fn check_argmax(sm: u16, argmax: &Argmax, what: &str, x: &[f64]) {
    let n = argmax.n as usize;
    let rows = x.len() / n;
    let ty = argmax.input.ty();
    let x: Vec<_> = x.iter().map(|&x| if x.is_finite() { hold(ty, x) } else { x }).collect();
    let mut given = Buffers::from([("x", x.clone())]);
    if argmax.blocks > 1 {
        given.extend([("best", vec![0.0; rows]), ("arrived", vec![0.0; rows])]);
    }
    let found = run(sm, argmax, &[("rows", rows as u64)], &given);
    let exact: Vec<_> = (x.chunks(n))
        .map(|row| {
            let best = row.iter().enumerate().fold(None, |best: Option<(usize, f64)>, (i, &x)| match best {
                Some((_, largest)) if largest >= x => best,
                _ => Some((i, x)),
            });
            let sound = row.iter().all(|&x| x < f64::INFINITY);
            best.filter(|_| sound).map_or(f64::from(u32::MAX), |(i, _)| i as f64)
        })
        .collect();
    assert_eq!(found["indices"], exact, "{what}: {} on sm_{sm}", argmax.entry());
    // The next launch finds what this one found.
    for scratch in ["best", "arrived"] {
        assert!(
            found.get(scratch).is_none_or(|values| values.iter().all(|&x| x == 0.0)),
            "{what}: {scratch}"
        );
    }
}

fn the_largest_is_found_in_rows_of_every_kind() {
    let (rows, n) = (4, 301);
    for (i, (kind, x)) in kinds(rows * n, 1).into_iter().enumerate() {
        for input in Dtype::ALL {
            for blocks in [1, 3] {
                let argmax = Argmax { input, blocks, threads: 32, ..Argmax::new(n as u32) };
                check_argmax([75, 80, 90][i % 3], &argmax, kind, &x);
            }
        }
    }
}

fn the_first_of_the_largest_is_found_anywhere() {
    let mut lengths = vec![1, 2, 31, 33, 1024, 4100];
    if full() {
        lengths.extend([32_000, 128_256, 151_936, 50_257]);
    }
    for n in lengths {
        // Rows whose largest is at the ends, twice, everywhere, zeros of both signs, infinities, NaN.
        let mut x = crate::common::numbers(11 * n, 2);
        for (row, x) in x.chunks_mut(n).enumerate() {
            match row {
                0 => x[0] = 7.0,
                1 => x[n - 1] = 7.0,
                2 => [n / 3, n / 2, n - 1].into_iter().for_each(|i| x[i] = 7.0),
                3 => x.fill(-2.5),
                4 => x.iter_mut().enumerate().for_each(|(i, x)| *x = if i % 3 == 1 { 0.0 } else { -0.0 }),
                5 => x.fill(f64::NEG_INFINITY),
                6 => x.fill(f64::NAN),
                7 => {
                    x.fill(f64::NAN);
                    x[n / 2] = f64::NEG_INFINITY;
                }
                8 => {
                    x[n - 1] = f64::INFINITY;
                }
                9 => x[n / 2] = f64::NAN,
                _ => x[n / 3] = f64::NEG_INFINITY,
            }
        }
        for input in Dtype::ALL {
            let large = [(1, 1024), (9, 512)];
            let small = [(1, 32), (1, 128), (2, 64), (7, 32)];
            for &(blocks, threads) in if n > 8192 { &large[..] } else { &small } {
                check_argmax(80, &Argmax { input, blocks, threads, ..Argmax::new(n as u32) }, "ties", &x);
            }
        }
    }
}

crate::case_list! {
    the_largest_is_found_in_rows_of_every_kind,
    the_first_of_the_largest_is_found_anywhere,
}
