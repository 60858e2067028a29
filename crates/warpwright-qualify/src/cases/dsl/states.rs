//! States as one: chosen, moved between lanes, and combined by operators of the kernel's own.

use super::{TARGETS, outputs};
use crate::common::{LaunchArg, numbers};
use warpwright_dsl::*;
use warpwright_ptx::ir::Type;

/// A register of each size, and what they are inside.
#[derive(Clone, Copy, Carry)]
struct Every<'k, T: Element, C> {
    generic: Reg<'k, T>,
    long: Reg<'k, u64>,
    double: Reg<'k, f64>,
    short: Reg<'k, i16>,
    half: Reg<'k, F16>,
    holds: Reg<'k, Pred>,
    nested: C,
}

/// A struct without a lifetime of its own, and one without names.
#[derive(Clone, Copy, Carry)]
struct Pair<A, B>(A, B);

type State<'k> = Every<'k, f32, Pair<Reg<'k, i32>, [Reg<'k, u32>; 2]>>;

fn state<'k>(k: K<'k>, t: Reg<'k, u32>) -> State<'k> {
    Every {
        generic: t.f32(),
        long: (t.to::<u64>() << 33) + t.to::<u64>(),
        double: t.to::<f64>() * 0.5,
        short: k.value::<i16>(0) - t.to::<i16>(),
        half: t.f32().to::<F16>(),
        holds: (t & 4).ne(0),
        nested: Pair(k.i32(-5) - t.to::<i32>(), [t * 3, t * 5]),
    }
}

/// A number that depends on every register.
fn digest<'k>(s: State<'k>) -> Reg<'k, f32> {
    let Pair(a, [b, c]) = s.nested;
    let long = (s.long >> 33).f32() * 3.0 + s.long.to::<u32>().f32() * 5.0;
    let rest = s.half.f32() * 7.0 + a.f32() * 11.0 + b.f32() * 13.0 + c.f32() * 17.0;
    s.generic + long + s.double.to::<f32>() * 2.0 + s.short.f32() * 19.0 + s.holds.select(0.25, 0.0) + rest
}

fn exact_digest(t: usize) -> f64 {
    let quarter = if t & 4 != 0 { 0.25 } else { 0.0 };
    let t = t as f64;
    t + 8.0 * t + t + 7.0 * t + 11.0 * (-5.0 - t) + 39.0 * t + 85.0 * t - 19.0 * t + quarter
}

#[track_caller]
fn assert_digests(body: impl for<'k> Fn(K<'k>, State<'k>) -> State<'k>, from: impl Fn(usize) -> usize) {
    let threads = 96;
    for sm in TARGETS {
        let found = outputs(sm, (1, threads), &[LaunchArg::Output(Type::F32, threads as usize)], |k| {
            k.ptr_mut::<f32>("y").st(k.tid(), digest(body(k, state(k, k.tid()))));
        });
        let exact: Vec<_> = (0..threads as usize).map(|t| exact_digest(from(t))).collect();
        assert_eq!(found[0], exact, "sm_{sm}");
    }
}

fn states_move_between_lanes() {
    assert_digests(|k, s| k.shuffle_xor(s, 5), |t| t ^ 5);
    assert_digests(|k, s| k.shuffle_up(s, 3), |t| if t % 32 < 3 { t } else { t - 3 });
    assert_digests(|k, s| k.shuffle_down(s, 9), |t| if t % 32 > 22 { t } else { t + 9 });
    assert_digests(|k, s| k.broadcast(s, 6), |t| t / 32 * 32 + 6);
    assert_digests(|k, s| k.shuffle_idx(s, (k.tid() * 7) & 31), |t| t / 32 * 32 + t * 7 % 32);
}

fn states_are_chosen_and_carried() {
    assert_digests(
        |k, s| k.tid().lt(17).choose(s, state(k, k.tid() + 1)),
        |t| if t < 17 { t } else { t + 1 },
    );
    assert_digests(
        |k, s| {
            k.loop_((s, k.u32(0)), |out, (s, i)| {
                out.break_if(i.ge(k.tid() & 3), s);
                (state(k, k.tid() + i + 1), i + 1)
            })
        },
        |t| t + t % 4,
    );
    assert_digests(
        |k, s| k.if_(k.tid().lt(9), || s).else_if(|| k.tid().lt(20), || state(k, k.tid() * 2)).else_(|| s),
        |t| if (9..20).contains(&t) { 2 * t } else { t },
    );
}

/// The operator that keeps the left state, or the right: associative, and far from commutative.
fn states_are_combined_in_order() {
    assert_digests(|k, s| k.warp_reduce_by(s, |a, _| a), |t| t / 32 * 32);
    assert_digests(|k, s| k.warp_reduce_by(s, |_, b| b), |t| t / 32 * 32 + 31);
    assert_digests(|k, s| k.block_reduce_by(s, |a, _| a), |_| 0);
    assert_digests(|k, s| k.block_reduce_by(s, |_, b| b), |_| 95);
    assert_digests(|k, s| k.warp_scan_by(s, |a, _| a), |t| t / 32 * 32);
    assert_digests(|k, s| k.block_scan_by(s, |a, _| a).0, |_| 0);
    assert_digests(|k, s| k.block_scan_by(s, |_, b| b).0, |t| t);
    assert_digests(|k, s| k.block_scan_by(s, |_, b| b).1, |_| 95);
}

/// `x ↦ a·x + b`, one after the other: what linear recurrences are scanned by. Modulo 2³², so that it is exact.
fn after<'k>([a, b]: [Reg<'k, u32>; 2], [c, d]: [Reg<'k, u32>; 2]) -> [Reg<'k, u32>; 2] {
    [a * c, b * c + d]
}

fn recurrences_are_scanned() {
    for sm in TARGETS {
        for threads in [32, 64, 96, 160, 1024u32] {
            let x: Vec<f64> =
                numbers(threads as usize, 3).iter().map(|x| ((x + 1.0) * 1e9).floor()).collect();
            let outputs_of = || LaunchArg::Output(Type::U32, threads as usize);
            let given = [LaunchArg::Input(Type::U32, &x), outputs_of(), outputs_of(), outputs_of()];
            let found = outputs(sm, (1, threads), &given, |k| {
                let [x, each, all, in_warp] = ["x", "each", "all", "warp"].map(|name| k.ptr_mut::<u32>(name));
                let i = k.tid();
                let map = [x.ld(i) | 1, x.ld(i) >> 3];
                // Twice, through the same scratch.
                let ([_, b], [_, total]) = k.block_scan_by(map, after);
                let [_, again] = k.block_reduce_by(map, after);
                each.st(i, b);
                all.st(i, total.eq(again).select(total, 0));
                in_warp.st(i, k.warp_reduce_by(map, after)[1]);
            });
            let step = |y: u32, x: f64| y.wrapping_mul(x as u32 | 1).wrapping_add(x as u32 >> 3);
            let prefix = |of: &[f64]| of.iter().fold(0, |y, &x| step(y, x));
            for i in 0..threads as usize {
                let warp = i / 32 * 32;
                let exact = [prefix(&x[..=i]), prefix(&x), prefix(&x[warp..warp + 32])].map(f64::from);
                assert_eq!([0, 1, 2].map(|y| found[y][i]), exact, "{i} of {threads} on sm_{sm}");
            }
        }
    }
}

crate::case_list! {
    states_move_between_lanes,
    states_are_chosen_and_carried,
    states_are_combined_in_order,
    recurrences_are_scanned,
}
