//! Choosing tokens: the largest logit, and draws.
//!
//! A draw is a function of logits, seed and step: [`warpwright_kernels::Sample`] says which. Near the edge of a
//! token's share of the distribution, rounding decides, as it does which token is the last that `top_p` or `min_p` keep; [`Draw::margin`] says how near it was, so that draws can be compared
//! where it was not.

/// Whether a row has a largest number, and tokens that can be drawn: it has neither NaN nor `+inf`.
fn is_sound(row: &[f64]) -> bool {
    row.iter().all(|&x| x < f64::INFINITY)
}

/// The index of the largest number, the first of several; `u32::MAX` where a row has none.
pub(super) fn argmax(row: &[f64]) -> u64 {
    let larger = |best: Option<(usize, f64)>, (i, &x): (usize, &f64)| match best {
        Some((_, largest)) if x <= largest => best,
        _ => Some((i, x)),
    };
    let best = row.iter().enumerate().fold(None, larger).filter(|_| is_sound(row));
    best.map_or(u32::MAX.into(), |(i, _)| i as u64)
}

/// Lowers the logits of tokens that are among `recent`: by a factor towards -∞, by `frequency` for each time that a
/// token is there, and once by `presence`. What is not finite stays as it is; ids that there are no logits for are
/// none.
pub(crate) fn penalise(logits: &mut [f64], recent: &[u64], repeat: f64, frequency: f64, presence: f64) {
    for (id, logit) in logits.iter_mut().enumerate().filter(|(_, logit)| logit.is_finite()) {
        let count = recent.iter().filter(|&&token| token == id as u64).count();
        if count > 0 {
            let scaled = if *logit < 0.0 { *logit * repeat } else { *logit / repeat };
            *logit = scaled - (count as f64 * frequency + presence);
        }
    }
}

/// What a temperature of 1 leaves of the largest is the smallest weight that is drawn.
const LEAST: f64 = 1.0 / (1u64 << 44) as f64;

/// What a row's draw is made with, as numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Settings {
    /// What logits are divided by. Zero or less, or NaN, leaves the largest alone.
    pub(crate) temperature: f64,
    /// How many of the largest are kept; 0 for all.
    pub(crate) top_k: u32,
    /// Which share of the probability is kept; all from 1 on, and for NaN.
    pub(crate) top_p: f64,
    /// How likely a token is at least, as a share of the most likely; any up to 0, and for NaN.
    pub(crate) min_p: f64,
}

impl Default for Settings {
    /// From all tokens, at a temperature of 1.
    fn default() -> Self {
        Settings { temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0 }
    }
}

/// The probability of each token, in proportion to `exp(logit / temperature)` for those that are kept: of the `top_k`
/// largest logits, of which those with lower indices come first among equals, as few as have at least `top_p`
/// of the sum of `exp(logit)`, and of these such as have at least `min_p` times that of the largest.
///
/// `-inf` is never kept; what is below 2⁻⁴⁴ of the most likely is not drawn either. All are zero where nothing can be
/// drawn: there is NaN or `+inf`, or nothing else than `-inf`.
pub(crate) fn probabilities(logits: &[f64], settings: &Settings) -> Vec<f64> {
    let drawable = |&i: &usize| logits[i] != f64::NEG_INFINITY;
    let mut order: Vec<usize> = (0..logits.len()).filter(drawable).collect();
    order.sort_by(|&i, &j| logits[j].total_cmp(&logits[i]).then(i.cmp(&j)));
    let Some(&first) = order.first().filter(|_| is_sound(logits)) else { return vec![0.0; logits.len()] };
    let weight = |i: usize, temperature: f64| {
        let weight = ((logits[i] - logits[first]) / temperature).exp();
        if weight < LEAST { 0.0 } else { weight }
    };

    let warm = settings.temperature > 0.0;
    let temperature = if warm { settings.temperature } else { 1.0 };
    match (warm, settings.top_k) {
        (false, _) => order.truncate(1),
        (true, 0) => {}
        (true, top_k) => order.truncate(top_k as usize),
    }
    if settings.top_p < 1.0 {
        let sum: f64 = order.iter().map(|&i| weight(i, 1.0)).sum();
        let mut kept = 0.0;
        let enough = order.iter().position(|&i| {
            kept += weight(i, 1.0);
            kept >= settings.top_p * sum
        });
        order.truncate(enough.map_or(order.len(), |last| last + 1));
    }
    if settings.min_p > 0.0 {
        order.retain(|&i| weight(i, 1.0) >= settings.min_p.min(1.0));
    }

    let mut weights = vec![0.0; logits.len()];
    order.iter().for_each(|&i| weights[i] = weight(i, temperature));
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= sum);
    weights
}

/// A token that was drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Draw {
    /// The token; `u32::MAX` where nothing can be drawn.
    pub(crate) token: u32,
    /// How much of the sum of probabilities could be added or missing before it, and another token would be drawn.
    pub(crate) margin: f64,
}

/// The token that a random number falls to: that of `seed` and `step`, in shares of probabilities which stand in the
/// order of their indices modulo `threads` and then of their indices.
pub(crate) fn draw(probabilities: &[f64], threads: u32, seed: u64, step: u32) -> Draw {
    let [low, high, ..] = philox([step, 0, 0, 0], [seed as u32, (seed >> 32) as u32]);
    let at = (f64::from(high) + f64::from(low) / 2f64.powi(32)) / 2f64.powi(32);
    let threads = threads.max(1) as usize;
    let shares: Vec<usize> = (0..threads.min(probabilities.len()))
        .flat_map(|thread| (thread..probabilities.len()).step_by(threads))
        .filter(|&i| probabilities[i] > 0.0)
        .collect();
    let mut before = 0.0;
    for (place, &i) in shares.iter().enumerate() {
        let (up_to, is_last) = (before + probabilities[i], place + 1 == shares.len());
        if at < up_to || is_last {
            // The first share has nothing before it, and the last nothing behind it.
            let below = if place == 0 { f64::INFINITY } else { at - before };
            let above = if is_last { f64::INFINITY } else { up_to - at };
            return Draw { token: i as u32, margin: below.min(above) };
        }
        before = up_to;
    }
    Draw { token: u32::MAX, margin: f64::INFINITY }
}

/// Philox4x32-10 (Salmon, Moraes, Dror and Shaw 2011).
pub(crate) fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let round = |([a, b, c, d], [k, l]): ([u32; 4], [u32; 2])| {
        let (p, q) = (u64::from(a) * 0xd251_1f53, u64::from(c) * 0xcd9e_8d57);
        let words = [(q >> 32) as u32 ^ b ^ k, q as u32, (p >> 32) as u32 ^ d ^ l, p as u32];
        (words, [k.wrapping_add(0x9e37_79b9), l.wrapping_add(0xbb67_ae85)])
    };
    (0..10).fold((counter, key), |state, _| round(state)).0
}
