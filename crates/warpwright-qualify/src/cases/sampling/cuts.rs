//! Which tokens top-k, top-p and min-p keep, by themselves and one after the other.

use super::draw::{Draws, draw, rows};
use crate::common::ops::{full, held, kinds};
use std::collections::BTreeSet;
use warpwright_kernels::{Dtype, Sample, Setting};

fn rows_are_cut_as_their_settings_say() {
    let mut sizes = vec![(1, 32), (31, 32), (1000, 64), (3000, 128), (2048, 1024)];
    if full() {
        sizes.extend([(32_000, 1024), (128_256, 1024), (151_936, 1024)]);
    }
    for (i, (n, threads)) in sizes.into_iter().enumerate() {
        for input in Dtype::ALL {
            let count = if n > 4000 {
                5
            } else if n > 100 {
                20
            } else {
                99
            };
            let logits = crate::common::numbers(count * n, 50).iter().map(|x| x * 8.0).collect();
            let each = Setting::Buffer;
            let sample = Sample {
                input,
                temperature: each,
                top_k: Setting::Buffer,
                top_p: each,
                columns: threads,
                threads,
                ..Sample::new(n as u32)
            };
            draw([75, 80, 90][i % 3], &Sample { min_p: each, ..sample }, &rows(logits, count));
        }
    }
}

fn logits_of_every_kind_are_cut() {
    let n = 150;
    for (i, (_, logits)) in kinds(5 * n, 51).into_iter().enumerate() {
        for (j, (top_k, top_p, min_p)) in
            [(0, 0.9, 0.0), (0, 1.0, 0.1), (20, 0.7, 0.0), (7, 1.0, 0.02), (60, 0.95, 0.01)]
                .into_iter()
                .enumerate()
        {
            let sample = Sample {
                input: Dtype::ALL[(i + j) % 3],
                temperature: Setting::Fixed([1.0, 0.5, 3.0][j % 3]),
                top_k: Setting::Fixed(top_k),
                top_p: Setting::Fixed(top_p),
                min_p: Setting::Fixed(min_p),
                columns: 64,
                threads: 64,
                ..Sample::new(n as u32)
            };
            draw([75, 80, 90][i % 3], &sample, &rows(held(sample.input.ty(), &logits), 5));
        }
    }
}

/// What is drawn of one row in many steps.
fn drawn(sample: &Sample, row: &[f64], count: usize) -> BTreeSet<usize> {
    let draws = Draws { logits: row.repeat(count), ..rows(Vec::new(), count) };
    draw(80, sample, &draws).into_iter().collect()
}

/// Weights that are equal to the bit: the sum of so many of them reaches a share of eighths exactly, and of a
/// little more not.
fn shares_of_equals_are_exact() {
    let sample = Sample { columns: 32, threads: 32, ..Sample::new(40) };
    // Eight equals, others between them that weigh nothing.
    let mut row = vec![-200.0; 40];
    let equals: Vec<_> = (0..8).map(|i| 3 + 4 * i).collect();
    equals.iter().for_each(|&i| row[i] = 5.0);
    for eighths in 1..=7 {
        let share = eighths as f32 / 8.0;
        let kept = |top_p| drawn(&Sample { top_p: Setting::Fixed(top_p), ..sample }, &row, 100);
        let first = |count: usize| equals[..count].iter().copied().collect::<BTreeSet<_>>();
        assert_eq!(kept(share), first(eighths), "{eighths} / 8");
        assert_eq!(kept(share.next_up()), first(eighths + 1), "more than {eighths} / 8");
        assert_eq!(kept(share.next_down()), first(eighths), "less than {eighths} / 8");
    }
    // One is half of two, but less than half of two and a third that weighs a single unit, of 2⁻⁴⁴.
    let mut row = vec![f64::NEG_INFINITY; 40];
    row[..2].fill(0.0);
    let half = Sample { top_p: Setting::Fixed(0.5), ..sample };
    assert_eq!(drawn(&half, &row, 100), [0].into());
    row[2] = -30.3;
    assert_eq!(drawn(&half, &row, 100), [0, 1].into());
}

fn shares_are_of_what_the_step_before_has_left() {
    let sample = Sample { columns: 32, threads: 32, ..Sample::new(40) };
    let mut row = vec![-200.0; 40];
    let equals: Vec<_> = (0..8).map(|i| 3 + 4 * i).collect();
    equals.iter().for_each(|&i| row[i] = 5.0);
    // Equals are as likely as the most likely, so all are kept, whatever min_p is.
    for min_p in [1.0, 7.0] {
        let sample = Sample { min_p: Setting::Fixed(min_p), ..sample };
        assert_eq!(drawn(&sample, &row, 100), equals.iter().copied().collect());
    }
    // The share is of what top_k has left: half of six.
    let sample = Sample { top_k: Setting::Fixed(6), top_p: Setting::Fixed(0.5), ..sample };
    assert_eq!(drawn(&sample, &row, 100), equals[..3].iter().copied().collect());
}

/// Steps in the order of llama.cpp: the share is that at a temperature of one, whatever the temperature.
fn the_temperature_comes_last() {
    // Shares of 1/2, 1/4, 1/8 and so on, the likely ones last.
    let row: Vec<_> = (0..20).rev().map(|i| -f64::from(i) * std::f64::consts::LN_2).collect();
    for temperature in [0.25, 1.0, 50.0] {
        let temperature = Setting::Fixed(temperature);
        let sample = Sample { temperature, columns: 32, threads: 32, ..Sample::new(20) };
        let kept = |sample| drawn(&sample, &row, 100);
        let last = |count: usize| (20 - count..20).collect::<BTreeSet<_>>();
        let kept_of = |found: BTreeSet<usize>, count: usize| {
            let all =
                if temperature == Setting::Fixed(50.0) { found == last(count) } else { found.contains(&19) };
            assert!(all && found.is_subset(&last(count)), "{temperature:?}: {found:?}, not {count}");
        };
        kept_of(kept(Sample { top_p: Setting::Fixed(0.7), ..sample }), 2);
        kept_of(kept(Sample { top_p: Setting::Fixed(0.8), ..sample }), 3);
        kept_of(kept(Sample { min_p: Setting::Fixed(0.2), ..sample }), 3);
        kept_of(kept(Sample { min_p: Setting::Fixed(0.13), ..sample }), 3);
        // Of three, the first has 4/7 and the first two have 6/7.
        let of_three = Sample { top_k: Setting::Fixed(3), ..sample };
        kept_of(kept(Sample { top_p: Setting::Fixed(0.57), ..of_three }), 1);
        kept_of(kept(Sample { top_p: Setting::Fixed(0.86), min_p: Setting::Fixed(0.4), ..of_three }), 2);
        kept_of(kept(Sample { top_p: Setting::Fixed(0.86), min_p: Setting::Fixed(0.6), ..of_three }), 1);
    }
}

fn what_is_off_changes_nothing() {
    let (n, count) = (150, 30);
    let logits: Vec<_> = crate::common::numbers(count * n, 52).iter().map(|x| x * 6.0).collect();
    let draws = |top_p: f64, min_p: f64| Draws {
        top_ps: vec![top_p; count],
        min_ps: vec![min_p; count],
        ..rows(logits.clone(), count)
    };
    let (temperature, top_k) = (Setting::Buffer, Setting::Buffer);
    let plain = Sample { temperature, top_k, columns: 32, threads: 32, ..Sample::new(n as u32) };
    let with = Sample { top_p: Setting::Buffer, min_p: Setting::Buffer, ..plain };
    let expected = draw(80, &plain, &draws(0.5, 0.5));
    for (top_p, min_p) in [(1.0, 0.0), (2.0, -1.0), (f64::INFINITY, f64::NEG_INFINITY), (f64::NAN, f64::NAN)]
    {
        assert_eq!(draw(80, &with, &draws(top_p, min_p)), expected, "{top_p} and {min_p}");
    }
    for (top_p, min_p) in [(1.0, 0.0), (1.5, -1.0), (f32::MAX, f32::MIN)] {
        let fixed = Sample { top_p: Setting::Fixed(top_p), min_p: Setting::Fixed(min_p), ..plain };
        assert_eq!(draw(80, &fixed, &draws(0.5, 0.5)), expected, "{top_p} and {min_p}");
    }
}

fn masks_and_infinities_are_cut_too() {
    let n = 70;
    let mut logits = crate::common::numbers(8 * n, 53);
    for (row, x) in logits.chunks_mut(n).enumerate() {
        match row {
            0 => x.fill(f64::NEG_INFINITY),
            1 => x.fill(f64::NAN),
            2 => {
                x.fill(f64::NEG_INFINITY);
                x[69] = -3.0;
            }
            3 => x[60] = f64::INFINITY,
            4 => x[33] = f64::NAN,
            5 => x[..50].fill(f64::NEG_INFINITY),
            6 => x.fill(f64::from(f32::MIN)),
            _ => x.iter_mut().enumerate().for_each(|(i, x)| *x = if i % 2 == 0 { -0.0 } else { 0.0 }),
        }
    }
    for top_k in [0, 1, 30] {
        for top_p in [1.0, 0.95, 0.4, 0.0] {
            for min_p in [0.0, 0.3, 1.0] {
                let sample = Sample {
                    top_k: Setting::Fixed(top_k),
                    top_p: Setting::Fixed(top_p),
                    min_p: Setting::Fixed(min_p),
                    columns: 32,
                    threads: 32,
                    ..Sample::new(n as u32)
                };
                draw(80, &sample, &rows(logits.clone(), 8));
            }
        }
    }
}

crate::case_list! {
    rows_are_cut_as_their_settings_say,
    logits_of_every_kind_are_cut,
    shares_of_equals_are_exact,
    shares_are_of_what_the_step_before_has_left,
    the_temperature_comes_last,
    what_is_off_changes_nothing,
    masks_and_infinities_are_cut_too,
}
