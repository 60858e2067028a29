//! Words of the DSL that kernels of a model's small operations are made of, by their numbers, on the virtual
//! GPU with every check on.

use super::{TARGETS, outputs};
use crate::common::{LaunchArg, numbers};
use warpwright_dsl::*;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::{Arch, Type};

/// Neighbours are loaded and stored in any number, where a condition holds: by lanes of even numbers here.
fn any_number_of_neighbours() {
    fn copied<T: Data>(count: u32) {
        let x = numbers(32 * count as usize, 3);
        let x: Vec<f64> = x.iter().map(|x| (x * 100.0).round().abs()).collect();
        let given = [
            LaunchArg::Input(T::TYPE, &x),
            LaunchArg::InOut(T::TYPE, &vec![7.0; x.len()]),
            LaunchArg::Output(T::TYPE, x.len()),
        ];
        let found = outputs(80, (1, 32), &given, |k| {
            let (x, some, all) = (k.ptr::<T>("x"), k.ptr_mut::<T>("some"), k.ptr_mut::<T>("all"));
            let (at, even) = (k.lane() * count, (k.lane() & 1).eq(0));
            all.st_many(None, at, &x.ld_many(even, at, count, x.ld(1)));
            some.st_many(even, at, &x.ld_many(None, at, count, x.ld(1)));
        });
        for i in 0..x.len() {
            let even = (i as u32 / count).is_multiple_of(2);
            let expected = if even { [x[i]; 2] } else { [7.0, x[1]] };
            assert_eq!([found[0][i], found[1][i]], expected, "{i} of {count} of {}", T::TYPE);
        }
    }
    for count in [1, 2, 3, 4, 5, 6, 8, 12, 16, 24] {
        copied::<f32>(count);
        copied::<u32>(count);
        copied::<F16>(count);
        copied::<u8>(count);
        copied::<u64>(count);
    }
}

fn turns_have_cosines_and_sines() {
    // Every quarter and its neighbours, and steps of an odd number.
    let blocks = 64;
    let phases: Vec<u32> = (0..blocks * 256)
        .map(|i: u32| match i {
            0..4 => i << 30,
            4..260 => (i << 24).wrapping_add(i % 3).wrapping_sub(1),
            _ => i.wrapping_mul(0x9e37_79b1),
        })
        .collect();
    // Halves of the words: numbers that `f64` holds.
    let words: Vec<f64> = phases.iter().map(|&phase| phase.into()).collect();
    for sm in TARGETS {
        let given = [
            LaunchArg::Input(Type::U32, &words),
            LaunchArg::Output(Type::F32, words.len()),
            LaunchArg::Output(Type::F32, words.len()),
        ];
        let found = outputs(sm, (blocks, 256), &given, |k| {
            let i = k.global_tid();
            let phases = k.ptr::<u32>("phases");
            let [cosine, sine] = phases.ld(i).cos_sin_turns();
            k.ptr_mut::<f32>("cosines").st(i, cosine);
            k.ptr_mut::<f32>("sines").st(i, sine);
        });
        for (i, phase) in words.iter().enumerate() {
            let angle = phase * 2f64.powi(-32) * std::f64::consts::TAU;
            for (found, exact) in [(found[0][i], angle.cos()), (found[1][i], angle.sin())] {
                assert!((found - exact).abs() <= 2f64.powi(-23), "{phase} on sm_{sm}: {found}, not {exact}");
            }
        }
        let turns: Vec<_> = found[0].iter().copied().zip(found[1].iter().copied()).take(4).collect();
        assert_eq!(turns, [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)], "sm_{sm}");
    }
}

fn nibbles_are_looked_up_in_a_table() {
    let table: [u8; 16] = std::array::from_fn(|i| (i * 37 + 200) as u8);
    let words: Vec<u32> = (0..256u32).map(|i| i.wrapping_mul(0x9e37_79b1) ^ i).collect();
    let given_words: Vec<f64> = words.iter().map(|&word| word.into()).collect();
    for sm in TARGETS {
        let given = [
            LaunchArg::Input(Type::U32, &given_words),
            LaunchArg::Output(Type::U32, words.len()),
            LaunchArg::Output(Type::U32, words.len()),
        ];
        let found = outputs(sm, (1, 256), &given, |k| {
            let [low, high] = k.ptr::<u32>("words").ld(k.tid()).look_up(table);
            k.ptr_mut::<u32>("low").st(k.tid(), low);
            k.ptr_mut::<u32>("high").st(k.tid(), high);
        });
        for (i, word) in words.iter().enumerate() {
            for (which, shift) in [(0, 0), (1, 4)] {
                let bytes = word.to_le_bytes().map(|byte| table[usize::from(byte >> shift & 15)]);
                assert_eq!(found[which][i], f64::from(u32::from_le_bytes(bytes)), "{word:#x} on sm_{sm}");
            }
        }
    }
}

fn runs_of_lanes_reduce_by_themselves() {
    let x: Vec<f64> = (0..64).map(|i| f64::from(i * i % 37)).collect();
    for sm in TARGETS {
        for lanes in [1, 2, 4, 8, 16, 32u32] {
            let given = [
                LaunchArg::Input(Type::F32, &x),
                LaunchArg::Output(Type::F32, 64),
                LaunchArg::Output(Type::F32, 64),
            ];
            let found = outputs(sm, (1, 64), &given, |k| {
                let x = k.ptr::<f32>("x").ld(k.tid());
                k.ptr_mut::<f32>("sums").st(k.tid(), k.group_sum(x, lanes));
                k.ptr_mut::<f32>("most").st(k.tid(), k.group_max(x, lanes));
            });
            let lanes = lanes as usize;
            for (run, found) in x.chunks(lanes).zip(found[0].chunks(lanes).zip(found[1].chunks(lanes))) {
                let (sum, most) = (run.iter().sum::<f64>(), run.iter().copied().fold(0.0, f64::max));
                assert_eq!(found, (&vec![sum; lanes][..], &vec![most; lanes][..]), "{lanes} on sm_{sm}");
            }
        }
    }
}

fn runs_are_powers_of_two() {
    for lanes in [0, 3, 64] {
        let built = build("body", &LaunchRule::new(32), Arch::sm(80), |k| {
            k.group_sum(k.f32(1.0), lanes);
        });
        let mistakes = built.expect_err("no such runs");
        assert_eq!(
            mistakes.iter().map(|mistake| mistake.code).collect::<Vec<_>>(),
            [Code::ModifierCombination]
        );
    }
}

fn prefixes_of_the_block_are_summed() {
    for sm in TARGETS {
        for threads in [32, 64, 96, 1024u32] {
            let x: Vec<f64> = (0..threads).map(|i| f64::from(i.wrapping_mul(0x9e37_79b1) >> 16)).collect();
            let count = threads as usize;
            let given = [
                LaunchArg::Input(Type::U32, &x),
                LaunchArg::Output(Type::U32, count),
                LaunchArg::Output(Type::U32, count),
                LaunchArg::Output(Type::U32, count),
                LaunchArg::Output(Type::U32, count),
            ];
            let found = outputs(sm, (1, threads), &given, |k| {
                let x = k.ptr::<u32>("x").ld(k.tid());
                let [up_to, all] = k.block_scan(x);
                k.ptr_mut::<u32>("up_to").st(k.tid(), up_to);
                k.ptr_mut::<u32>("all").st(k.tid(), all);
                // In the upper halves of long words, with carries out of the lower ones.
                let [up_to, all] = k.block_scan(x.to::<u64>() << 24);
                k.ptr_mut::<u32>("long_up_to").st(k.tid(), (up_to >> 24).to());
                k.ptr_mut::<u32>("long_all").st(k.tid(), (all >> 24).to());
            });
            let mut sum = 0.0;
            let sums: Vec<f64> = (x.iter())
                .map(|x| {
                    sum += x;
                    sum
                })
                .collect();
            for i in 0..count {
                let found = [0, 1, 2, 3].map(|output| found[output][i]);
                assert_eq!(found, [sums[i], sum, sums[i], sum], "{i} of {threads} on sm_{sm}");
            }
        }
    }
}

fn halves_saturate() {
    let x = [1e6, -1e6, 65504.0, 65519.9, 65520.0, f64::INFINITY, f64::NEG_INFINITY, 1.5, f64::NAN, 2049.0];
    let halves = [65504.0, -65504.0, 65504.0, 65504.0, 65504.0, 65504.0, -65504.0, 1.5, f64::NAN, 2048.0];
    for sm in TARGETS {
        let given = [
            LaunchArg::Input(Type::F32, &x),
            LaunchArg::Output(Type::F16, 10),
            LaunchArg::Output(Type::F16, 20),
        ];
        let found = outputs(sm, (1, 10), &given, |k| {
            let x = k.ptr::<f32>("x").ld(k.tid());
            k.ptr_mut::<F16>("y").st(k.tid(), x.to_f16_saturating());
            k.ptr_mut::<F16x2>("pairs").st(k.tid(), x.pack_f16_saturating(-x));
        });
        let same = |found: f64, exact: f64| found == exact || found.is_nan() && exact.is_nan();
        for (i, &exact) in halves.iter().enumerate() {
            let all = [found[0][i], found[1][2 * i], -found[1][2 * i + 1]];
            assert!(all.iter().all(|&found| same(found, exact)), "{} on sm_{sm}: {all:?}", x[i]);
        }
    }
}

fn lanes_read_a_table_of_constants() {
    let values: Vec<u64> = (0..40).map(|i| u64::MAX / 3 - i).collect();
    for sm in TARGETS {
        let given = [LaunchArg::Output(Type::U32, 32)];
        let found = outputs(sm, (1, 32), &given, |k| {
            let table = k.global_table::<u64>(&values).at(3);
            k.ptr_mut::<u32>("y").st(k.tid(), (table.ld(k.tid()) >> 8).to());
        });
        for (lane, &found) in found[0].iter().enumerate() {
            assert_eq!(found, f64::from((values[lane + 3] >> 8) as u32), "on sm_{sm}");
        }
    }
}

crate::case_list! {
    any_number_of_neighbours,
    turns_have_cosines_and_sines,
    nibbles_are_looked_up_in_a_table,
    runs_of_lanes_reduce_by_themselves,
    runs_are_powers_of_two,
    prefixes_of_the_block_are_summed,
    halves_saturate,
    lanes_read_a_table_of_constants,
}
