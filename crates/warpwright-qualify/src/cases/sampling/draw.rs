//! Draws, and what float64 says of them.

use crate::common::ops::{Buffers, hold, run};
use warpwright_dsl::any::AnyKernel;
use warpwright_kernels::{Sample, Setting};

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

/// How a row is drawn from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) temperature: f64,
    pub(crate) top_k: usize,
    pub(crate) top_p: f64,
    pub(crate) min_p: f64,
}

/// The probability of each token: of the settings in turn, one where rounding cannot decide otherwise, else all
/// that are as right.
pub(crate) fn probabilities(logits: &[f64], settings: Settings) -> Vec<Vec<f64>> {
    let Settings { temperature, top_k, top_p, min_p } = settings;
    if logits.iter().any(|x| x.is_nan() || *x == f64::INFINITY) {
        return vec![vec![0.0; logits.len()]];
    }
    let mut order: Vec<_> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].partial_cmp(&logits[a]).expect("numbers").then(a.cmp(&b)));
    let (temperature, top_k) = match (temperature > 0.0, top_k) {
        (false, _) => (1.0, 1),
        (true, 0) => (temperature, order.len()),
        (true, top_k) => (temperature, top_k.min(order.len())),
    };
    order.truncate(top_k);
    let max = order.first().map_or(0.0, |&i| logits[i]);
    let weight = |i: usize, temperature: f64| match logits[i] {
        f64::NEG_INFINITY => 0.0,
        x => ((x - max) / temperature).exp(),
    };
    let weights: Vec<_> = order.iter().map(|&i| weight(i, 1.0)).collect();
    // What each weight may be off.
    let slack = |place: usize| {
        let depth = max - logits[order[place]];
        if depth < 200.0 {
            weights[place] * (3.0 * depth + 6.0) * 2f64.powi(-24) + 2f64.powi(-43)
        } else {
            0.0
        }
    };

    let [mut fewest, mut most] = [order.len(); 2];
    if top_p < 1.0 {
        let (total, off) = (weights.iter().sum::<f64>(), (0..order.len()).map(slack).sum::<f64>());
        let reached = |wanted: f64| {
            let mut sum = 0.0;
            let enough = weights.iter().position(|weight| {
                sum += weight;
                sum >= wanted
            });
            enough.map_or(order.len(), |last| last + 1)
        };
        (fewest, most) = (reached(top_p * total - off), reached(top_p * total + off));
        assert!(logits.len() > 4096 || most - fewest <= 1, "{settings:?}: from {fewest} to {most} tokens");
    }
    if min_p > 0.0 {
        let count = |side: f64| {
            let kept = |&place: &usize| weights[place] + side * slack(place) >= min_p.min(1.0);
            (0..order.len()).filter(kept).count()
        };
        // The largest is exactly 1.
        (fewest, most) = (fewest.min(count(-1.0)).max(1), most.min(count(1.0)));
    }
    let shares = |count: usize| {
        let mut shares = vec![0.0; logits.len()];
        for &i in &order[..count] {
            let weight = weight(i, temperature);
            shares[i] = if weight < 2f64.powi(-44) { 0.0 } else { weight };
        }
        let sum = shares.iter().sum::<f64>();
        shares.into_iter().map(|share| if sum == 0.0 { 0.0 } else { share / sum }).collect()
    };
    (fewest.min(most)..=most).map(shares).collect()
}

/// Rows that are drawn from, each with its settings.
pub(crate) struct Draws {
    pub(crate) logits: Vec<f64>,
    pub(crate) temperatures: Vec<f64>,
    pub(crate) top_ks: Vec<f64>,
    pub(crate) top_ps: Vec<f64>,
    pub(crate) min_ps: Vec<f64>,
    pub(crate) seeds: Vec<f64>,
    pub(crate) steps: Vec<f64>,
}

/// Draws, and holds each token to the place in the sums of probabilities that its random number is at.
pub(crate) fn draw(sm: u16, sample: &Sample, draws: &Draws) -> Vec<usize> {
    let what = format!("{} on sm_{sm}", sample.entry());
    let (n, columns) = (sample.n as usize, sample.columns as usize);
    let ty = sample.input.ty();
    let logits: Vec<_> = draws.logits.iter().map(|&x| if x.is_finite() { hold(ty, x) } else { x }).collect();
    // Settings that are fixed have no buffer, and what is given for it is not looked at.
    let given = Buffers::from([
        ("logits", logits.clone()),
        ("temperatures", draws.temperatures.clone()),
        ("top_ks", draws.top_ks.clone()),
        ("top_ps", draws.top_ps.clone()),
        ("min_ps", draws.min_ps.clone()),
        ("seeds", draws.seeds.clone()),
        ("steps", draws.steps.clone()),
    ]);
    let rows = logits.len() / n;
    let found = run(sm, sample, &[("rows", rows as u64)], &given);
    let tokens: Vec<_> = found["tokens"].iter().map(|&token| token as usize).collect();
    for (row, &token) in tokens.iter().enumerate() {
        let number = |setting: Setting<f32>, each: &[f64]| match setting {
            Setting::Fixed(number) => f64::from(number),
            Setting::Buffer => f64::from(each[row] as f32),
        };
        let settings = Settings {
            temperature: number(sample.temperature, &draws.temperatures),
            top_k: match sample.top_k {
                Setting::Fixed(top_k) => top_k as usize,
                Setting::Buffer => draws.top_ks[row] as usize,
            },
            top_p: number(sample.top_p, &draws.top_ps),
            min_p: number(sample.min_p, &draws.min_ps),
        };
        let mut wrong = None;
        let right = probabilities(&logits[row * n..][..n], settings).into_iter().any(|shares| {
            if shares.iter().all(|&share| share == 0.0) {
                return token == u32::MAX as usize;
            }
            if token >= n || shares[token] == 0.0 {
                return false;
            }
            let earlier = (0..n).filter(|&i| (i % columns, i) < (token % columns, token));
            let before = earlier.map(|i| shares[i]).sum::<f64>();
            let at = fraction(draws.seeds[row] as u64, draws.steps[row] as u32);
            let off = (before - at).max(at - before - shares[token]);
            wrong = Some(off);
            off <= 1e-5
        });
        assert!(right, "{what}: row {row} drew {token} with {settings:?}, off {wrong:?}");
    }
    tokens
}

/// Rows with different seeds and steps.
pub(crate) fn rows(logits: Vec<f64>, count: usize) -> Draws {
    let each = |values: &[f64]| values.iter().copied().cycle().take(count).collect();
    Draws {
        logits,
        temperatures: each(&[1.0, 0.7, 0.0, 2.5, -1.0, 1e-30, 1e30]),
        top_ks: each(&[0.0, 40.0, 1.0, 5.0, 2.0, 1e6, 3.0, 7.0]),
        top_ps: each(&[1.0, 0.9, 0.5, 0.0, 0.99, f64::NAN, 0.3, -1.0, 2.0]),
        min_ps: each(&[0.0, 0.05, 0.0, 0.3, 1.0, -2.0, 1e-3, f64::NAN, 3.0, 1e-6, 0.0]),
        seeds: (0..count).map(|row| 123_456_789_012.0 * (row + 1) as f64).collect(),
        steps: (0..count).map(|row| (row * row) as f64).collect(),
    }
}

crate::case_list! {
    the_random_words_are_those_of_the_paper,
}
