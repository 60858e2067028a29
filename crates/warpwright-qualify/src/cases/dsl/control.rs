//! Loops that are left from the middle, chains of branches, guards that may be absent: by their numbers.

use super::{TARGETS, outputs};
use crate::common::LaunchArg;
use warpwright_dsl::*;
use warpwright_ptx::ir::Type;

/// Runs a body that stores two numbers for each of 96 threads; yields the pairs.
fn pairs(sm: u16, body: impl for<'k> Fn(K<'k>, Reg<'k, u32>) -> [Reg<'k, u32>; 2]) -> Vec<(u32, u32)> {
    let given = [LaunchArg::Output(Type::U32, 96), LaunchArg::Output(Type::U32, 96)];
    let found = outputs(sm, (1, 96), &given, |k| {
        let (x, y) = (k.ptr_mut::<u32>("x"), k.ptr_mut::<u32>("y"));
        let [a, b] = body(k, k.tid());
        x.st(k.tid(), a);
        y.st(k.tid(), b);
    });
    found[0].iter().zip(&found[1]).map(|(&a, &b)| (a as u32, b as u32)).collect()
}

#[track_caller]
fn assert_pairs(
    body: impl for<'k> Fn(K<'k>, Reg<'k, u32>) -> [Reg<'k, u32>; 2],
    exact: impl Fn(u32) -> (u32, u32),
) {
    for sm in TARGETS {
        assert_eq!(pairs(sm, &body), (0..96).map(&exact).collect::<Vec<_>>(), "sm_{sm}");
    }
}

/// `3n + 1`, halved while even.
fn collatz(n: u32) -> u32 {
    if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 }
}

fn a_loop_yields_what_it_broke_with() {
    assert_pairs(
        |k, t| {
            // Down to 1, or to a multiple of 7; with the number of steps.
            let (n, steps) = k.loop_((t + 1, k.u32(0)), |out, (n, steps)| {
                out.break_if(n.eq(1), (n, steps + 1000));
                let next = (n & 1).eq(0).select(n >> 1, n * 3 + 1);
                out.break_if((n % 7).eq(0), (n, steps));
                (next, steps + 1)
            });
            [n, steps]
        },
        |t| {
            let (mut n, mut steps) = (t + 1, 0);
            loop {
                if n == 1 {
                    break (n, steps + 1000);
                }
                let next = collatz(n);
                if n.is_multiple_of(7) {
                    break (n, steps);
                }
                (n, steps) = (next, steps + 1);
            }
        },
    );
}

/// The value of a break is that of the time of the break, though what follows it counts on in its register.
fn a_break_keeps_the_value_that_it_had() {
    assert_pairs(
        |k, t| {
            let i = k.loop_(k.u32(0), |out, i| {
                let next = i + 1;
                out.break_if(next.gt(t), i);
                next
            });
            let both = k.loop_((k.u32(0), k.u32(1)), |out, (a, b)| {
                out.break_if(b.gt(t), (a, b));
                (b, a + b)
            });
            [i, both.0 * 1000 + both.1]
        },
        |t| {
            let (mut a, mut b) = (0, 1);
            while b <= t {
                (a, b) = (b, a + b);
            }
            (t, a * 1000 + b)
        },
    );
}

fn inner_loops_leave_outer_blocks() {
    assert_pairs(
        |k, t| {
            // The first pair of factors, from an unrolled loop in a loop, in a branch.
            let (a, b) = k.labelled(|out| {
                k.when(t.gt(3), || {
                    k.each(k.range(2..10), |a| {
                        k.each(k.range(2..60).unroll(2), |b| {
                            k.when((a * b).eq(t), || out.break_((a, b)));
                        });
                    });
                });
                (t, k.u32(1))
            });
            [a, b]
        },
        |t| {
            let pair = (2..10).flat_map(|a| (2..60).map(move |b| (a, b))).find(|(a, b)| a * b == t);
            pair.filter(|_| t > 3).unwrap_or((t, 1))
        },
    );
}

/// Threads that have left meet the others behind the loop: they shuffle together.
fn lanes_meet_behind_a_loop() {
    assert_pairs(
        |k, t| {
            let turns = k.loop_(k.u32(0), |out, i| {
                out.break_if(i.eq(k.lane()), i * 2);
                out.break_if(i.eq(20), i + 100);
                i + 1
            });
            [k.shuffle_xor(turns, 31), t]
        },
        |t| {
            let lane = (t % 32) ^ 31;
            (if lane <= 20 { lane * 2 } else { 120 }, t)
        },
    );
}

fn a_chain_runs_one_branch() {
    assert_pairs(
        |k, t| {
            let seen = k.var::<u32>(0);
            let (a, b) = k
                .if_(t.lt(10), || (t * 2, k.u32(1)))
                .else_if(
                    || {
                        seen.set(seen.get() + 1);
                        t.lt(20)
                    },
                    || (t * 3, k.u32(2)),
                )
                .else_if(
                    || {
                        seen.set(seen.get() + 1);
                        (t & 1).eq(0)
                    },
                    || (t, k.u32(3)),
                )
                .else_(|| (k.u32(0), k.u32(4)));
            k.if_(t.lt(5), || seen.set(seen.get() + 100)).else_if(|| t.lt(15), || seen.set(seen.get() + 200));
            [a * 10 + b, seen.get()]
        },
        |t| {
            let (a, b, tried) = match t {
                0..10 => (t * 2, 1, 0),
                10..20 => (t * 3, 2, 1),
                _ if t % 2 == 0 => (t, 3, 2),
                _ => (0, 4, 2),
            };
            (
                a * 10 + b,
                tried
                    + if t < 5 {
                        100
                    } else if t < 15 {
                        200
                    } else {
                        0
                    },
            )
        },
    );
}

fn absent_guards_let_all_threads_through() {
    assert_pairs(
        |k, t| {
            let shared = k.shared::<u32>(96 * 2);
            let low = t.lt(40);
            let reach = |guard| {
                shared.st_vec(t * 2, [t, t]);
                shared.st_if(guard, t * 2, 7);
                let [a, b] = shared.ld_vec_if(guard, t * 2, 50);
                let before = shared.atomic_add_if(guard, t * 2, 1, 60);
                shared.reduce_max_if(guard, t * 2, 20);
                let swapped = shared.atomic_cas_if(guard, t * 2 + 1, t, 3, 70);
                k.when(guard, || shared.reduce_add(t * 2, 100));
                a + b * 2 + before * 3 + swapped * 5 + shared.ld(t * 2) * 7 + shared.ld(t * 2 + 1) * 11
            };
            [Some(low), None].map(reach)
        },
        |t| {
            let all = 7 + t * 2 + 7 * 3 + t * 5 + 120 * 7 + 3 * 11;
            let none = 50 + 50 * 2 + 60 * 3 + 70 * 5 + t * 7 + t * 11;
            (if t < 40 { all } else { none }, all)
        },
    );
}

crate::case_list! {
    a_loop_yields_what_it_broke_with,
    a_break_keeps_the_value_that_it_had,
    inner_loops_leave_outer_blocks,
    lanes_meet_behind_a_loop,
    a_chain_runs_one_branch,
    absent_guards_let_all_threads_through,
}
