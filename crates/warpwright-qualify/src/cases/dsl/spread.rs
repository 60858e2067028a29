//! Words of the DSL that decode attention is made of, by their numbers, on the virtual GPU with every check on.

use super::{TARGETS, outputs};
use crate::common::{LaunchArg, wholes};
use warpwright_dsl::*;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::{Arch, Scope, Type};

fn sums_are_spread_over_runs_of_lanes() {
    for lanes in [1, 2, 4, 8, 16, 32u32] {
        for count in [1, 2, 3, 4, 7, 8, 16, 28, 33usize] {
            let x = wholes(32 * count, 7);
            let given = [
                LaunchArg::Input(Type::F32, &x),
                LaunchArg::Output(Type::F32, 32 * count),
                LaunchArg::Output(Type::F32, 32 * count),
                LaunchArg::Output(Type::F32, 32 * count),
            ];
            let found = outputs(80, (1, 32), &given, |k| {
                let at = |i: usize| k.lane() * count as u32 + i as u32;
                let x = k.ptr::<f32>("x");
                let values: Vec<_> = (0..count).map(|i| x.ld(at(i))).collect();
                let spread = k.spread(count, lanes);
                let sums = spread.sums(&values);
                assert_eq!(sums.len(), spread.slots());
                let numbered: Vec<_> = (0..count).map(|i| k.f32(i as f32)).collect();
                let own = spread.own(&numbered);
                let (y, z, w) = (k.ptr_mut::<f32>("y"), k.ptr_mut::<f32>("z"), k.ptr_mut::<f32>("w"));
                for (i, &value) in values.iter().enumerate() {
                    y.st(at(i), spread.get(&sums, i));
                    z.st(at(i), spread.get(&own, i));
                    w.st(at(i), spread.sum_over_runs(value));
                }
            });
            for lane in 0..32 {
                let first = lane / lanes as usize * lanes as usize;
                for i in 0..count {
                    let sum: f64 = (first..first + lanes as usize).map(|lane| x[lane * count + i]).sum();
                    let across = (lane % lanes as usize..32).step_by(lanes as usize);
                    let across: f64 = across.map(|lane| x[lane * count + i]).sum();
                    let found = [0, 1, 2].map(|output| found[output][lane * count + i]);
                    assert_eq!(found, [sum, i as f64, across], "{count} values over {lanes} lanes");
                }
            }
        }
    }
}

/// Each sum of each run is given out once, with its number.
fn each_sum_has_one_lane_that_stores_it() {
    for lanes in [1, 2, 4, 8, 32u32] {
        for count in [1, 2, 3, 4, 7, 8, 16, 24, 33usize] {
            let runs = (32 / lanes) as usize;
            let x = wholes(32 * count, 9);
            // Twice the sum, and one for each time that it was stored.
            let given =
                [LaunchArg::Input(Type::F32, &x), LaunchArg::InOut(Type::F32, &vec![0.0; runs * count])];
            let found = outputs(80, (1, 32), &given, |k| {
                let (x, y) = (k.ptr::<f32>("x"), k.ptr_mut::<f32>("y"));
                let values: Vec<_> = (0..count).map(|i| x.ld(k.lane() * count as u32 + i as u32)).collect();
                let run = k.lane() / lanes * count as u32;
                k.spread(count, lanes).each_sum(&values, |number, sum, here| {
                    let store = || _ = y.relaxed(Scope::Gpu).atomic_add(run + number, sum * 64.0 + 1.0);
                    match here {
                        Some(here) => k.when(here, store),
                        None => store(),
                    }
                });
            });
            for run in 0..runs {
                for i in 0..count {
                    let lanes = run * lanes as usize..(run + 1) * lanes as usize;
                    let sum: f64 = lanes.clone().map(|lane| x[lane * count + i]).sum();
                    assert_eq!(found[0][run * count + i], sum * 64.0 + 1.0, "{i} of {count} over {lanes:?}");
                }
            }
        }
    }
}

fn mistakes_of_spreads_are_reported() {
    let codes = |body: fn(K<'_>)| {
        let built = build("body", &LaunchRule::new(32), Arch::sm(80), body);
        built.expect_err("a mistake").iter().map(|mistake| mistake.code).collect::<Vec<_>>()
    };
    let wrong = vec![Code::ModifierCombination];
    assert_eq!(codes(|k| _ = k.spread(4, 6)), wrong);
    assert_eq!(codes(|k| _ = k.spread(0, 8)), wrong);
    assert_eq!(codes(|k| _ = k.spread(2, 8).sums(&[k.f32(1.0)])), wrong);
    assert_eq!(codes(|k| _ = k.spread(1, 8).get(&[k.f32(1.0)], 1)), wrong);
    let shape = vec![Code::VectorShape];
    assert_eq!(codes(|k| _ = k.accumulators_of(16, 8, &[k.f32(0.0)])), shape);
    // A list that changes its length on the way.
    let grows = |k: K<'_>| {
        let list = k.list([k.f32(1.0)]);
        k.fold(k.upto(k.tid()), list, |_, list| k.list(list.to_vec().into_iter().chain([k.f32(2.0)])));
    };
    assert_eq!(codes(grows), vec![Code::VectorShape]);
}

fn lists_go_around_loops_and_out_of_branches() {
    for sm in TARGETS {
        let given = [LaunchArg::Output(Type::U32, 32 * 5)];
        let found = outputs(sm, (1, 32), &given, |k| {
            let zeros = k.list((0..5).map(|_| k.u32(0)));
            let sums = k.fold(k.upto(k.lane()), zeros, |i, sums| {
                k.list((0..).zip(sums.to_vec()).map(|(j, sum): (u32, _)| sum + i * j))
            });
            let odd = (k.lane() & 1).ne(0);
            // A list that comes back in reverse.
            let turned = k.if_else(odd, || k.list(sums.to_vec().into_iter().rev()), || sums);
            let y = k.ptr_mut::<u32>("y");
            (0..).zip(turned.to_vec()).for_each(|(j, sum): (u32, _)| y.st(k.lane() * 5 + j, sum));
        });
        for lane in 0..32u32 {
            let sums: Vec<f64> = (0..5).map(|j| f64::from(j * (lane * lane.saturating_sub(1) / 2))).collect();
            let mut sums = sums;
            if lane % 2 == 1 {
                sums.reverse();
            }
            assert_eq!(found[0][lane as usize * 5..][..5], sums, "lane {lane} on sm_{sm}");
        }
    }
}

fn loads_keep_registers_where_the_predicate_does_not_hold() {
    let x: Vec<f64> = (0..256).map(f64::from).collect();
    for sm in TARGETS {
        let given = [
            LaunchArg::Input(Type::F32, &x),
            LaunchArg::Input(Type::F16, &x),
            LaunchArg::Output(Type::F32, 128),
            LaunchArg::Output(Type::F32, 256),
        ];
        let found = outputs(sm, (1, 32), &given, |k| {
            let wanted = k.lane().lt(20);
            let others = [1, 2, 3, 4].map(|i| (k.lane() * i).f32());
            let loaded = k.ptr::<f32>("x").ld_vec_or(wanted, k.lane() * 4, others);
            let other = [0, 1, 2, 3, 4, 5, 6, 7].map(|i| (k.lane() + i).to::<F16>());
            let halves = k.ptr::<F16>("halves").ld_vec_or(wanted, k.lane() * 8, other);
            k.ptr_mut::<f32>("y").st_vec(k.lane() * 4, loaded);
            let z = k.ptr_mut::<f32>("z").at(k.lane() * 8);
            (0..).zip(halves).for_each(|(i, half): (u32, _)| z.st(i, half.f32()));
        });
        for lane in 0..32 {
            for i in 0..4 {
                let exact = if lane < 20 { x[lane * 4 + i] } else { (lane * (i + 1)) as f64 };
                assert_eq!(found[0][lane * 4 + i], exact, "sm_{sm}");
            }
            for i in 0..8 {
                let exact = if lane < 20 { x[lane * 8 + i] } else { (lane + i) as f64 };
                assert_eq!(found[1][lane * 8 + i], exact, "sm_{sm}");
            }
        }
    }
}

fn signed_bytes_become_floats() {
    let words: Vec<f64> =
        (0..64u32).map(|i| f64::from(u32::from_le_bytes([0, 1, 2, 3].map(|j| (4 * i + j) as u8)))).collect();
    for sm in TARGETS {
        let given = [LaunchArg::Input(Type::U32, &words), LaunchArg::Output(Type::F32, 256)];
        let found = outputs(sm, (1, 64), &given, |k| {
            let bytes = k.ptr::<u32>("x").ld(k.tid()).signed_bytes_f32();
            k.ptr_mut::<f32>("y").st_vec(k.tid() * 4, bytes);
        });
        let exact: Vec<f64> = (0..=255u8).map(|byte| f64::from(byte as i8)).collect();
        assert_eq!(found[0], exact, "sm_{sm}");
    }
}

fn powers_of_two_without_subnormals() {
    let x: Vec<f64> = (0..64).map(|i| f64::from(i) * 4.25 - 140.0).collect();
    for sm in TARGETS {
        let given = [LaunchArg::Input(Type::F32, &x), LaunchArg::Output(Type::F32, 64)];
        let found = outputs(sm, (1, 64), &given, |k| {
            let x = k.ptr::<f32>("x").ld(k.tid());
            k.ptr_mut::<f32>("y").st(k.tid(), x.exp2_ftz());
        });
        for (x, y) in x.iter().zip(&found[0]) {
            let exact = x.exp2();
            let bound = if exact < 2f64.powi(-126) { 2f64.powi(-126) } else { exact * 2f64.powi(-22) };
            assert!((y - exact).abs() <= bound, "2^{x} is {y} on sm_{sm}");
        }
    }
}

/// 96 threads count to 96: one of them is the last, and the counter is as it was.
fn counters_wrap() {
    for sm in TARGETS {
        let given = [LaunchArg::Output(Type::U32, 96), LaunchArg::Output(Type::U32, 1)];
        let found = outputs(sm, (1, 96), &given, |k| {
            let (y, z) = (k.ptr_mut::<u32>("y"), k.ptr_mut::<u32>("z"));
            let counter = k.shared::<u32>(1);
            k.when(k.tid().eq(0), || counter.st(0, 0u32));
            k.sync();
            y.st(k.tid(), counter.atomic_count(0, 95));
            k.sync();
            k.when(k.tid().eq(0), || z.st(0, counter.ld(0)));
        });
        let mut before = found[0].clone();
        before.sort_by(f64::total_cmp);
        assert_eq!(before, (0..96).map(f64::from).collect::<Vec<_>>(), "sm_{sm}");
        assert_eq!(found[1], [0.0], "sm_{sm}");
    }
}

crate::case_list! {
    sums_are_spread_over_runs_of_lanes,
    each_sum_has_one_lane_that_stores_it,
    mistakes_of_spreads_are_reported,
    lists_go_around_loops_and_out_of_branches,
    loads_keep_registers_where_the_predicate_does_not_hold,
    signed_bytes_become_floats,
    powers_of_two_without_subnormals,
    counters_wrap,
}

/// What the virtual GPU alone counts.
#[cfg(test)]
mod on_the_vm {
    use super::*;
    use crate::common::numbers;

    /// As many sums as lanes take fewer shuffles than a butterfly for each.
    #[test]
    fn spread_sums_share_their_shuffles() {
        let built = build("body", &LaunchRule::new(32), Arch::sm(80), |k| {
            let x = k.ptr::<f32>("x");
            let values: Vec<_> = (0..16).map(|i| x.ld(k.lane() * 16 + i)).collect();
            k.ptr_mut::<f32>("y").st(k.lane(), k.spread(16, 16).sums(&values)[0]);
        })
        .expect("a kernel");
        let x = numbers(512, 1);
        let given = [LaunchArg::Input(Type::F32, &x), LaunchArg::Output(Type::F32, 32)];
        let (_, report) = crate::common::run(Arch::sm(80), "body", &built, (1, 1, 1), &given);
        let report = report.expect("the report of a virtual GPU");
        assert_eq!(report.counters.by_opcode["shfl.sync"] / 32, 15);
    }
}
