//! Argmax and sampling, on the virtual GPU with every check on: indices exactly, draws against the distribution
//! in float64.

pub(crate) mod argmax;
pub(crate) mod cuts;
pub(crate) mod draw;

use crate::common::ops::{full, held, kinds};
use draw::{Draws, Settings, draw, probabilities, rows};
use warpwright_dsl::{BuildError, any::AnyKernel};
use warpwright_kernels::{Argmax, Dtype, Sample, Setting};
use warpwright_ptx::ir::Arch;

fn draws_are_where_their_random_numbers_are() {
    let mut sizes = vec![(1, 32), (31, 32), (1000, 32), (1024, 32), (3000, 128), (2048, 1024)];
    if full() {
        sizes.extend([(32_000, 1024), (128_256, 1024), (151_936, 1024)]);
    }
    for (i, (n, threads)) in sizes.into_iter().enumerate() {
        for input in Dtype::ALL {
            let count = if n > 4000 { 3 } else { 14 };
            let logits = crate::common::numbers(count * n, 30).iter().map(|x| x * 8.0).collect();
            let (temperature, top_k) = (Setting::Buffer, Setting::Buffer);
            let sample =
                Sample { input, temperature, top_k, columns: threads, threads, ..Sample::new(n as u32) };
            draw([75, 80, 90][i % 3], &sample, &rows(logits, count));
        }
    }
}

fn logits_of_every_kind_are_drawn_from() {
    let n = 200;
    for (i, (_, logits)) in kinds(6 * n, 31).into_iter().enumerate() {
        for input in Dtype::ALL {
            for (temperature, top_k) in [(1.0, 0), (0.5, 3), (0.0, 0), (1e4, 17)] {
                let sample = Sample {
                    input,
                    temperature: Setting::Fixed(temperature),
                    top_k: Setting::Fixed(top_k),
                    columns: 64,
                    threads: 64,
                    ..Sample::new(n as u32)
                };
                draw([75, 80, 90][i % 3], &sample, &rows(held(input.ty(), &logits), 6));
            }
        }
    }
}

fn ties_masks_and_infinities_have_their_places() {
    let n = 70;
    let mut logits = crate::common::numbers(9 * n, 32);
    for (row, x) in logits.chunks_mut(n).enumerate() {
        match row {
            // All alike: the first top_k.
            0 => x.fill(0.5),
            // More at the threshold than are wanted.
            1 => x.iter_mut().enumerate().for_each(|(i, x)| *x = if i % 2 == 0 { 1.0 } else { 2.0 }),
            2 => x.iter_mut().enumerate().for_each(|(i, x)| *x = if i % 2 == 0 { -0.0 } else { 0.0 }),
            3 => x.fill(f64::NEG_INFINITY),
            4 => x.fill(f64::NAN),
            5 => {
                x.fill(f64::NEG_INFINITY);
                x[69] = -3.0;
            }
            6 => x[60] = f64::INFINITY,
            7 => x[33] = f64::NAN,
            _ => x[..50].fill(f64::NEG_INFINITY),
        }
    }
    for top_k in [0, 1, 2, 5, 36, 69, 70, 71] {
        for step in 0..5 {
            let draws = Draws { steps: vec![f64::from(step); 9], ..rows(logits.clone(), 9) };
            let top_k = Setting::Fixed(top_k);
            draw(80, &Sample { top_k, columns: 32, threads: 32, ..Sample::new(n as u32) }, &draws);
        }
    }
}

fn draws_are_distributed_as_the_logits_say() {
    let (n, count) = (12, 6000);
    let row: Vec<_> = held(Dtype::F32.ty(), &crate::common::numbers(n, 33)).iter().map(|x| 2.0 * x).collect();
    // 99.9% of draws from the distribution itself stay below these, for 11 and 4 degrees of freedom.
    for (top_k, limit) in [(0, 31.264), (5, 18.467)] {
        let draws = Draws {
            logits: row.repeat(count),
            seeds: vec![42.0; count],
            steps: (0..count).map(|step| step as f64).collect(),
            ..rows(Vec::new(), 0)
        };
        let sample =
            Sample { top_k: Setting::Fixed(top_k), columns: 32, threads: 32, ..Sample::new(n as u32) };
        let tokens = draw(80, &sample, &draws);
        let settings = Settings { temperature: 1.0, top_k: top_k as usize, top_p: 1.0, min_p: 0.0 };
        let shares = probabilities(&row, settings).remove(0);
        let square: f64 = (0..n)
            .filter(|&token| shares[token] > 0.0)
            .map(|token| {
                let expected = shares[token] * count as f64;
                (tokens.iter().filter(|&&drawn| drawn == token).count() as f64 - expected).powi(2) / expected
            })
            .sum();
        assert!(square < limit, "top_k {top_k}: a chi square of {square}");
    }
}

fn draws_do_not_depend_on_the_threads() {
    let setting = |fixed: bool, number| if fixed { Setting::Fixed(number) } else { Setting::Buffer };
    let sizes = [1, 3, 31, 1000, 1023, 1024, 1025, 2048, 4099, 9000, 40_960];
    for (i, n) in sizes.into_iter().enumerate() {
        let count = if n > 2000 { 3 } else { 9 };
        let logits: Vec<f64> =
            crate::common::numbers(count * n, 70 + i as u64).iter().map(|x| x * 6.0).collect();
        let fixed = i % 3 == 0;
        let sample = Sample {
            input: Dtype::ALL[i % 3],
            temperature: setting(fixed, 0.8),
            top_k: if i % 2 == 0 { Setting::Buffer } else { Setting::Fixed(0) },
            top_p: setting(i % 4 == 0, [1.0, 0.95][i % 2]),
            min_p: setting(i % 4 < 3, [0.0, 0.01][i % 2]),
            ..Sample::new(n as u32)
        };
        let all = draw(80, &sample, &rows(logits.clone(), count));
        for (j, threads) in [32, 64, 128, 256, 512].into_iter().enumerate() {
            let fewer =
                draw([75, 80, 90][j % 3], &Sample { threads, ..sample }, &rows(logits.clone(), count));
            assert_eq!(fewer, all, "{n} logits, {threads} threads");
        }
    }
}

fn columns_of_more_numbers_than_threads_are_looked_through() {
    let (n, count) = (5000, 40);
    let logits: Vec<f64> = crate::common::numbers(count * n, 80).iter().map(|x| x * 3.0).collect();
    for (columns, threads) in [(32, 32), (64, 32), (128, 32)] {
        let sample = Sample { columns, threads, ..Sample::new(n as u32) };
        let tokens = draw(80, &sample, &rows(logits.clone(), count));
        // Some of them are those that a first look at the column does not reach.
        assert!(tokens.iter().any(|&token| token >= (columns * threads) as usize), "{columns} columns");
    }
}

fn what_sampling_cannot_be_is_said() {
    let refused = |kernel: &dyn AnyKernel| match kernel.build(Arch::sm(80)) {
        Err(BuildError::Field { field, .. }) => field,
        other => panic!("{:?}", other.map(|_| ())),
    };
    assert_eq!(refused(&Argmax::new(0)), "n");
    assert_eq!(refused(&Argmax { blocks: 0, ..Argmax::new(8) }), "blocks");
    assert_eq!(refused(&Argmax { threads: 16, ..Argmax::new(8) }), "threads");
    assert_eq!(refused(&Sample { threads: 96, ..Sample::new(8) }), "threads");
    assert_eq!(refused(&Sample { columns: 512, ..Sample::new(8) }), "columns");
    assert_eq!(refused(&Sample::new(0)), "n");
    assert_eq!(refused(&Sample::new(1 << 20)), "n");
}

crate::case_list! {
    draws_are_where_their_random_numbers_are,
    logits_of_every_kind_are_drawn_from,
    ties_masks_and_infinities_have_their_places,
    draws_are_distributed_as_the_logits_say,
    draws_do_not_depend_on_the_threads,
    columns_of_more_numbers_than_threads_are_looked_through,
    what_sampling_cannot_be_is_said,
}
