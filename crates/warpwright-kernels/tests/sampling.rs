//! Argmax and sampling, on the virtual GPU with every check on: indices exactly, draws against the distribution
//! in float64.

mod common;

use common::ops::{Buffers, full, held, hold, kinds, run};
use warpwright_kernels::{Argmax, Dtype, Sample, Setting};
use warpwright_ptx::dsl::{BuildError, Kernel};
use warpwright_ptx::ir::Arch;

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
            let numbers = row.iter().enumerate().filter(|(_, x)| !x.is_nan());
            let best = numbers.fold(None, |best: Option<(usize, f64)>, (i, &x)| match best {
                Some((_, largest)) if largest >= x => best,
                _ => Some((i, x)),
            });
            best.map_or(0, |(i, _)| i) as f64
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

#[test]
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

#[test]
fn the_first_of_the_largest_is_found_anywhere() {
    let mut lengths = vec![1, 2, 31, 33, 1024, 4100];
    if full() {
        lengths.extend([32_000, 128_256, 151_936, 50_257]);
    }
    for n in lengths {
        // Rows whose largest is at the ends, twice, everywhere, zeros of both signs, infinities, NaN.
        let mut x = common::numbers(10 * n, 2);
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
                    x[n / 2] = f64::INFINITY;
                    x[n - 1] = f64::INFINITY;
                }
                _ => x[n / 2] = f64::NAN,
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

/// Philox4x32-10, from the paper.
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let product = |a: u32, b: u32| u64::from(a) * u64::from(b);
        let (p, q) = (product(counter[0], 0xd251_1f53), product(counter[2], 0xcd9e_8d57));
        counter = [
            (q >> 32) as u32 ^ counter[1] ^ key[0],
            q as u32,
            (p >> 32) as u32 ^ counter[3] ^ key[1],
            p as u32,
        ];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}

#[test]
fn the_random_words_are_those_of_the_paper() {
    // The known answers of Random123.
    assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    assert_eq!(
        philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
        [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
    );
}

/// The fraction of the sum that a row draws at.
fn fraction(seed: u64, step: u32) -> f64 {
    let [low, high, ..] = philox([step, 0, 0, 0], [seed as u32, (seed >> 32) as u32]);
    (f64::from(high) + f64::from(low) * 2f64.powi(-32)) * 2f64.powi(-32)
}

/// The probability of each token.
fn probabilities(logits: &[f64], temperature: f64, top_k: usize) -> Vec<f64> {
    let finite = |&x: &f64| if x == f64::INFINITY { f64::from(f32::MAX) } else { x };
    let logits: Vec<_> = logits.iter().map(finite).collect();
    let mut order: Vec<_> = (0..logits.len()).filter(|&i| !logits[i].is_nan()).collect();
    order.sort_by(|&a, &b| logits[b].partial_cmp(&logits[a]).expect("numbers").then(a.cmp(&b)));
    let (temperature, count) = match (temperature > 0.0, top_k) {
        (false, _) => (1.0, 1),
        (true, 0) => (temperature, order.len()),
        (true, top_k) => (temperature, top_k.min(order.len())),
    };
    let max = order.first().map_or(0.0, |&i| logits[i]);
    let mut weights = vec![0.0; logits.len()];
    for &i in &order[..count] {
        let weight =
            if logits[i] == f64::NEG_INFINITY { 0.0 } else { ((logits[i] - max) / temperature).exp() };
        weights[i] = if weight < 2f64.powi(-44) { 0.0 } else { weight };
    }
    let sum = weights.iter().sum::<f64>();
    weights.into_iter().map(|weight| if sum == 0.0 { 0.0 } else { weight / sum }).collect()
}

/// Rows that are drawn from, each with its settings.
struct Draws {
    logits: Vec<f64>,
    temperatures: Vec<f64>,
    top_ks: Vec<f64>,
    seeds: Vec<f64>,
    steps: Vec<f64>,
}

/// Draws, and holds each token to the place in the sums of probabilities that its random number is at.
fn draw(sm: u16, sample: &Sample, draws: &Draws) -> Vec<usize> {
    let what = format!("{} on sm_{sm}", sample.entry());
    let (n, threads) = (sample.n as usize, sample.threads as usize);
    let ty = sample.input.ty();
    let logits: Vec<_> = draws.logits.iter().map(|&x| if x.is_finite() { hold(ty, x) } else { x }).collect();
    let mut given = Buffers::from([
        ("logits", logits.clone()),
        ("seeds", draws.seeds.clone()),
        ("steps", draws.steps.clone()),
    ]);
    if sample.temperature == Setting::Buffer {
        given.insert("temperatures", draws.temperatures.clone());
    }
    if sample.top_k == Setting::Buffer {
        given.insert("top_ks", draws.top_ks.clone());
    }
    let rows = logits.len() / n;
    let found = run(sm, sample, &[("rows", rows as u64)], &given);
    let tokens: Vec<_> = found["tokens"].iter().map(|&token| token as usize).collect();
    for (row, &token) in tokens.iter().enumerate() {
        let temperature = match sample.temperature {
            Setting::Fixed(temperature) => f64::from(temperature),
            Setting::Buffer => f64::from(draws.temperatures[row] as f32),
        };
        let top_k = match sample.top_k {
            Setting::Fixed(top_k) => top_k as usize,
            Setting::Buffer => draws.top_ks[row] as usize,
        };
        let shares = probabilities(&logits[row * n..][..n], temperature, top_k);
        if shares.iter().all(|&share| share == 0.0) {
            assert_eq!(token, 0, "{what}: row {row}, nothing to draw");
            continue;
        }
        assert!(
            token < n && shares[token] > 0.0,
            "{what}: row {row} drew {token}, which is not in its support"
        );
        let earlier = (0..n).filter(|&i| (i % threads, i) < (token % threads, token));
        let before = earlier.map(|i| shares[i]).sum::<f64>();
        let at = fraction(draws.seeds[row] as u64, draws.steps[row] as u32);
        let off = (before - at).max(at - before - shares[token]);
        assert!(off <= 1e-5, "{what}: row {row} drew {token}, which is {off} off");
    }
    tokens
}

/// Rows with different seeds and steps.
fn rows(logits: Vec<f64>, count: usize) -> Draws {
    Draws {
        logits,
        temperatures: (0..count).map(|row| [1.0, 0.7, 0.0, 2.5, -1.0, 1e-30, 1e30][row % 7]).collect(),
        top_ks: (0..count).map(|row| [0.0, 40.0, 1.0, 5.0, 2.0, 1e6, 3.0, 7.0][row % 8]).collect(),
        seeds: (0..count).map(|row| 123_456_789_012.0 * (row + 1) as f64).collect(),
        steps: (0..count).map(|row| (row * row) as f64).collect(),
    }
}

#[test]
fn draws_are_where_their_random_numbers_are() {
    let mut sizes = vec![(1, 32), (31, 32), (1000, 32), (1024, 32), (3000, 128), (2048, 1024)];
    if full() {
        sizes.extend([(32_000, 1024), (128_256, 1024), (151_936, 1024)]);
    }
    for (i, (n, threads)) in sizes.into_iter().enumerate() {
        for input in Dtype::ALL {
            let count = if n > 4000 { 3 } else { 14 };
            let logits = common::numbers(count * n, 30).iter().map(|x| x * 8.0).collect();
            let (temperature, top_k) = (Setting::Buffer, Setting::Buffer);
            let sample = Sample { input, temperature, top_k, threads, ..Sample::new(n as u32) };
            draw([75, 80, 90][i % 3], &sample, &rows(logits, count));
        }
    }
}

#[test]
fn logits_of_every_kind_are_drawn_from() {
    let n = 200;
    for (i, (_, logits)) in kinds(6 * n, 31).into_iter().enumerate() {
        for input in Dtype::ALL {
            for (temperature, top_k) in [(1.0, 0), (0.5, 3), (0.0, 0), (1e4, 17)] {
                let sample = Sample {
                    input,
                    temperature: Setting::Fixed(temperature),
                    top_k: Setting::Fixed(top_k),
                    threads: 64,
                    ..Sample::new(n as u32)
                };
                draw([75, 80, 90][i % 3], &sample, &rows(held(input.ty(), &logits), 6));
            }
        }
    }
}

#[test]
fn ties_masks_and_infinities_have_their_places() {
    let n = 70;
    let mut logits = common::numbers(9 * n, 32);
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
            6 => {
                x[11] = f64::INFINITY;
                x[60] = f64::INFINITY;
            }
            7 => x.iter_mut().step_by(2).for_each(|x| *x = f64::NAN),
            _ => x[..50].fill(f64::NEG_INFINITY),
        }
    }
    for top_k in [0, 1, 2, 5, 36, 69, 70, 71] {
        for step in 0..5 {
            let draws = Draws { steps: vec![f64::from(step); 9], ..rows(logits.clone(), 9) };
            let top_k = Setting::Fixed(top_k);
            draw(80, &Sample { top_k, threads: 32, ..Sample::new(n as u32) }, &draws);
        }
    }
}

#[test]
fn draws_are_distributed_as_the_logits_say() {
    let (n, count) = (12, 6000);
    let row: Vec<_> = held(Dtype::F32.ty(), &common::numbers(n, 33)).iter().map(|x| 2.0 * x).collect();
    // 99.9% of draws from the distribution itself stay below these, for 11 and 4 degrees of freedom.
    for (top_k, limit) in [(0, 31.264), (5, 18.467)] {
        let draws = Draws {
            logits: row.repeat(count),
            seeds: vec![42.0; count],
            steps: (0..count).map(|step| step as f64).collect(),
            ..rows(Vec::new(), 0)
        };
        let sample = Sample { top_k: Setting::Fixed(top_k), threads: 32, ..Sample::new(n as u32) };
        let tokens = draw(80, &sample, &draws);
        let shares = probabilities(&row, 1.0, top_k as usize);
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

#[test]
fn what_sampling_cannot_be_is_said() {
    let refused = |kernel: &dyn Kernel| match kernel.build(Arch::sm(80)) {
        Err(BuildError::Field { field, .. }) => field,
        other => panic!("{:?}", other.map(|_| ())),
    };
    assert_eq!(refused(&Argmax::new(0)), "n");
    assert_eq!(refused(&Argmax { blocks: 0, ..Argmax::new(8) }), "blocks");
    assert_eq!(refused(&Argmax { threads: 16, ..Argmax::new(8) }), "threads");
    assert_eq!(refused(&Sample { threads: 96, ..Sample::new(8) }), "threads");
    assert_eq!(refused(&Sample { threads: 32, ..Sample::new(1025) }), "n");
    assert_eq!(refused(&Sample::new(0)), "n");
}
