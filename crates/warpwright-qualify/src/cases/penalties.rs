//! Penalties for tokens that came lately, against float64, on the virtual GPU with every check on, within the bound
//! that they state.

use crate::common::ops::{Buffers, U, assert_within, hold, kinds, run};
use std::collections::HashMap;
use warpwright_dsl::{BuildError, any::AnyKernel};
use warpwright_kernels::{Dtype, Penalties, Setting};
use warpwright_ptx::ir::Arch;

fn numbers_of(words: &[u32]) -> Vec<f64> {
    words.iter().map(|&word| word.into()).collect()
}

/// Settings of each row: none, one of each, all, and such that make tokens likelier.
const REPEATS: [f64; 7] = [1.0, 1.25, 1.0, 1.0, 1.1, 0.5, 1000.0];
const FREQUENCIES: [f64; 7] = [0.0, 0.0, 0.75, 0.0, 0.1, -2.0, 0.0];
const PRESENCES: [f64; 7] = [0.0, 0.0, 0.0, 1.5, 0.2, -0.25, 1e6];
const ROWS: usize = REPEATS.len();

/// Tokens of each row: few different ones, none, ids that there are not.
fn recent(n: u32, window: usize) -> Vec<u32> {
    let mut state = u64::from(n) * 77 + window as u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    let each = |row: usize, id: u32| match (row, id % 5) {
        (1, _) => u32::MAX,
        (2, _) => id % n,
        (3, 0) => n,
        (4, 0) => n.saturating_add(id),
        (_, 4) => u32::MAX,
        _ => id % n.min(9),
    };
    (0..ROWS).flat_map(|row| (0..window).map(move |_| row)).map(|row| each(row, next())).collect()
}

fn check(sm: u16, penalties: &Penalties, kind: &str, logits: &[f64]) {
    let what = format!("{kind} of {} on sm_{sm}", penalties.entry());
    let (n, window, ty) = (penalties.n as usize, penalties.window as usize, penalties.input.ty());
    let logits: Vec<_> = logits.iter().map(|&x| if x.is_finite() { hold(ty, x) } else { x }).collect();
    let mut recent = recent(penalties.n, window);
    // The newest tokens, new ones and old ones and none, at the ends of the ring and beyond.
    let tokens: Vec<_> = (0..ROWS).map(|row| [0, recent[0], penalties.n - 1, u32::MAX, 3][row % 5]).collect();
    let positions: Vec<_> =
        (0..ROWS).map(|row| [0, window as u32 - 1, window as u32, u32::MAX, 1_000_003][row % 5]).collect();
    let given = Buffers::from([
        ("logits", logits.clone()),
        ("recent", numbers_of(&recent)),
        ("tokens", numbers_of(&tokens)),
        ("positions", numbers_of(&positions)),
        ("repeats", REPEATS.to_vec()),
        ("frequencies", FREQUENCIES.to_vec()),
        ("presences", PRESENCES.to_vec()),
    ]);
    let found = run(sm, penalties, &[("rows", ROWS as u64)], &given);
    if penalties.remembers {
        for (row, ring) in recent.chunks_mut(window).enumerate() {
            ring[positions[row] as usize % window] = tokens[row];
        }
    }
    assert_eq!(found["recent"], numbers_of(&recent), "{what}: the tokens of each row");
    for (row, logits) in logits.chunks(n).enumerate() {
        let number = |setting: Setting<f32>, each: &[f64]| match setting {
            Setting::Fixed(number) => f64::from(number),
            Setting::Buffer => f64::from(each[row] as f32),
        };
        let repeat = number(penalties.repeat, &REPEATS);
        let frequency = number(penalties.frequency, &FREQUENCIES);
        let presence = number(penalties.presence, &PRESENCES);
        let mut counts: HashMap<usize, f64> = HashMap::new();
        for &id in &recent[row * window..][..window] {
            *counts.entry(id as usize).or_default() += 1.0;
        }
        let found = &found["logits"][row * n..][..n];
        for (id, (&logit, &found)) in logits.iter().zip(found).enumerate() {
            let what = format!("{what}: token {id} of row {row}");
            match counts.get(&id) {
                Some(count) if logit.is_finite() => {
                    let scaled = if logit < 0.0 { logit * repeat } else { logit / repeat };
                    let slack = 2.0 * U * (scaled.abs() + count * frequency.abs() + presence.abs());
                    let exact = scaled - (count * frequency + presence);
                    assert_within(&what, ty, &[found], &[(exact, slack + 2f64.powi(-148))]);
                }
                _ => assert!(
                    found == logit || found.is_nan() && logit.is_nan(),
                    "{what}: {found}, not {logit}"
                ),
            }
        }
    }
}

fn logits_of_every_kind_are_lowered() {
    let n = 50;
    for (i, (kind, logits)) in kinds(ROWS * n, 60).into_iter().enumerate() {
        for (j, window) in [1, 7, 32, 64, 100].into_iter().enumerate() {
            let each = Setting::Buffer;
            let input = Dtype::ALL[(i + j) % 3];
            let penalties =
                Penalties { input, repeat: each, frequency: each, ..Penalties::new(n as u32, window) };
            let remembers = (i + j) % 2 == 1;
            check([75, 80, 90][i % 3], &Penalties { presence: each, remembers, ..penalties }, kind, &logits);
        }
    }
}

fn rows_of_any_length_and_windows_of_any_are_looked_at() {
    for (i, (n, window)) in [(1, 1), (2, 33), (3000, 1024), (33, 1000), (700, 64)].into_iter().enumerate() {
        for remembers in [false, true] {
            let penalties = Penalties {
                repeat: Setting::Fixed(1.3),
                frequency: Setting::Fixed(0.2),
                presence: Setting::Fixed(0.4),
                remembers,
                ..Penalties::new(n, window)
            };
            check([75, 80, 90][i % 3], &penalties, "normal", &crate::common::numbers(ROWS * n as usize, 61));
        }
    }
}

fn what_is_not_finite_stays() {
    let odd = [f64::NEG_INFINITY, f64::INFINITY, f64::NAN, -0.0, 0.0, 65504.0, -65504.0, 1.0, -1.0, 2.0];
    let logits: Vec<_> = (0..ROWS).flat_map(|_| odd).collect();
    for input in Dtype::ALL {
        let penalties = Penalties { input, repeat: Setting::Fixed(2.0), ..Penalties::new(10, 64) };
        check(80, &Penalties { presence: Setting::Fixed(0.5), ..penalties }, "odd", &logits);
        // Without penalties all of it stays.
        check(80, &Penalties { repeat: Setting::Fixed(1.0), ..penalties }, "odd", &logits);
    }
}

fn what_penalties_cannot_be_is_said() {
    let refused = |kernel: Penalties| match kernel.build(Arch::sm(80)) {
        Err(BuildError::Field { field, .. }) => field,
        other => panic!("{:?}", other.map(|_| ())),
    };
    let penalties = Penalties::new(8, 4);
    assert_eq!(refused(Penalties::new(0, 4)), "n");
    assert_eq!(refused(Penalties::new(8, 0)), "window");
    assert_eq!(refused(Penalties::new(8, 1025)), "window");
    assert_eq!(refused(Penalties { repeat: Setting::Fixed(0.0), ..penalties }), "repeat");
    assert_eq!(refused(Penalties { frequency: Setting::Fixed(f32::NAN), ..penalties }), "frequency");
    assert_eq!(refused(Penalties { presence: Setting::Fixed(-2e6), ..penalties }), "presence");
}

crate::case_list! {
    logits_of_every_kind_are_lowered,
    rows_of_any_length_and_windows_of_any_are_looked_at,
    what_is_not_finite_stays,
    what_penalties_cannot_be_is_said,
}
