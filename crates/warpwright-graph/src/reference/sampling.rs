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
pub(super) fn penalise(logits: &mut [f64], recent: &[u64], repeat: f64, frequency: f64, presence: f64) {
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
pub struct Settings {
    /// What logits are divided by. Zero or less, or NaN, leaves the largest alone.
    pub temperature: f64,
    /// How many of the largest are kept; 0 for all.
    pub top_k: u32,
    /// Which share of the probability is kept; all from 1 on, and for NaN.
    pub top_p: f64,
    /// How likely a token is at least, as a share of the most likely; any up to 0, and for NaN.
    pub min_p: f64,
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
pub fn probabilities(logits: &[f64], settings: &Settings) -> Vec<f64> {
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
#[non_exhaustive]
pub struct Draw {
    /// The token; `u32::MAX` where nothing can be drawn.
    pub token: u32,
    /// How much of the sum of probabilities could be added or missing before it, and another token would be drawn.
    pub margin: f64,
}

/// The token that a random number falls to: that of `seed` and `step`, in shares of probabilities which stand in the
/// order of their indices modulo `threads` and then of their indices.
pub fn draw(probabilities: &[f64], threads: u32, seed: u64, step: u32) -> Draw {
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
fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let round = |([a, b, c, d], [k, l]): ([u32; 4], [u32; 2])| {
        let (p, q) = (u64::from(a) * 0xd251_1f53, u64::from(c) * 0xcd9e_8d57);
        let words = [(q >> 32) as u32 ^ b ^ k, q as u32, (p >> 32) as u32 ^ d ^ l, p as u32];
        (words, [k.wrapping_add(0x9e37_79b9), l.wrapping_add(0xbb67_ae85)])
    };
    (0..10).fold((counter, key), |state, _| round(state)).0
}

#[cfg(test)]
mod tests {
    use super::{Settings, draw, penalise, philox, probabilities};

    #[test]
    fn what_came_lately_is_lowered() {
        let (inf, logits) = (f64::INFINITY, [3.0, -3.0, 1.0, f64::INFINITY]);
        let lowered = |recent: &[u64], [repeat, frequency, presence]: [f64; 3]| {
            let mut lowered = logits;
            penalise(&mut lowered, recent, repeat, frequency, presence);
            lowered
        };
        assert_eq!(lowered(&[], [2.0, 1.0, 1.0]), logits);
        assert_eq!(lowered(&[0, 1, 3, 3, 9], [2.0, 0.0, 0.0]), [1.5, -6.0, 1.0, inf]);
        assert_eq!(lowered(&[1, 0, 1], [1.0, 0.5, 0.25]), [2.25, -4.25, 1.0, inf]);
        assert_eq!(lowered(&[2, 2, 2, u64::from(u32::MAX)], [4.0, 1.0, 0.0]), [3.0, -3.0, -2.75, inf]);
    }

    /// The known answers of Random123.
    #[test]
    fn the_random_words_are_those_of_the_paper() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        let counter = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        let words = [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1];
        assert_eq!(philox(counter, [0xa409_3822, 0x299f_31d0]), words);
    }

    #[test]
    fn what_is_kept_is_kept_step_by_step() {
        // Of 20 parts.
        let weights = [4.0, 1.0, 8.0, 4.0, 0.0, 2.0, 1.0f64];
        let logits = weights.map(f64::ln);
        // Shares, of so many parts.
        let of = |parts: f64, settings: Settings| -> Vec<f64> {
            let shares = probabilities(&logits, &settings);
            shares.into_iter().map(|share| (share * parts * 1e9).round() / 1e9).collect()
        };
        let largest = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0];
        let three = [1.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0];
        let all = Settings::default();
        assert_eq!(of(20.0, all), weights);
        assert_eq!(of(1.0, Settings { temperature: 0.0, ..all }), largest);
        assert_eq!(of(3.0, Settings { top_k: 2, ..all }), [1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0]);
        // 8 + 4 are 60%, and 4 more 80%.
        assert_eq!(of(4.0, Settings { top_p: 0.79, ..all }), three);
        assert_eq!(of(1.0, Settings { top_p: -1.0, ..all }), largest);
        assert_eq!(of(20.0, Settings { top_p: f64::NAN, ..all }), weights);
        assert_eq!(of(4.0, Settings { min_p: 0.4, ..all }), three);
        assert_eq!(of(1.0, Settings { min_p: 7.0, ..all }), largest);
        // The temperature comes last, and squares the weights of those that are kept.
        let cool = Settings { temperature: 0.5, top_p: 0.79, ..all };
        assert_eq!(of(6.0, cool), [1.0, 0.0, 4.0, 1.0, 0.0, 0.0, 0.0]);
        let none = [f64::NEG_INFINITY, f64::NAN];
        assert_eq!(probabilities(&none, &all), [0.0, 0.0]);
    }

    #[test]
    fn a_margin_is_what_it_takes_to_draw_another() {
        let logits: Vec<f64> = (0..40).map(|i| f64::from(i * 7 % 11) / 3.0).collect();
        let mut compared = 0;
        for step in 0..200 {
            let settings = Settings { temperature: 0.8, top_k: 25, ..Settings::default() };
            let shares = probabilities(&logits, &settings);
            let drawn = draw(&shares, 8, 99, step);
            let place = |i: usize| (i % 8, i);
            let own = drawn.token as usize;
            for (by, same) in [(0.99, true), (1.01, false)] {
                // A share that grows or shrinks before the token moves it along.
                let earlier = (0..40)
                    .filter(|&i| place(i) < place(own))
                    .max_by(|&i, &j| shares[i].total_cmp(&shares[j]));
                let Some(earlier) = earlier.filter(|&i| shares[i] > 2.0 * drawn.margin) else { continue };
                compared += 1;
                let moved = |sign: f64| {
                    let mut moved = shares.clone();
                    moved[earlier] += sign * by * drawn.margin;
                    draw(&moved, 8, 99, step).token == drawn.token
                };
                assert_eq!(moved(1.0) && moved(-1.0), same, "step {step}");
            }
        }
        assert!(compared > 100, "{compared}");
    }
}
