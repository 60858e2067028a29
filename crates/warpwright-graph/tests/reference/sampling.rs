//! What the reference says of choosing tokens: known answers, and numbers worked out by hand.

use crate::reference::sampling::{Settings, draw, penalise, philox, probabilities};

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
            let earlier =
                (0..40).filter(|&i| place(i) < place(own)).max_by(|&i, &j| shares[i].total_cmp(&shares[j]));
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
