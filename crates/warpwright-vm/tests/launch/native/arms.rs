//! Arms of branches: lanes that do not branch, and meet the others.

use super::{ROUNDS, THREADS, accesses_agree, agree, both, offsets, rounds};
use crate::*;

/// Accesses of lanes that may be left out; `%p0` holds for those.
const BODIES: [&str; 6] = [
    // A load and a store, each of which the interpreter may have to do.
    "@%p0 bra past;\nld.global.u32 %r20, [%rd8];\nadd.u32 %r30, %r30, %r20;\nadd.u32 %r20, %r20, 3;\n\
     st.global.u32 [%rd8], %r20;\npast:\nadd.u32 %r30, %r30, 1;\n",
    "@!%p0 bra past;\nxor.b32 %r30, %r30, 5;\npast:\n@%p0 bra behind;\nld.shared.u32 %r20, [%r8];\nadd.u32 %r30, %r30, %r20;\n\
     behind:\n",
    // With guards in the arm, that hold for some of its lanes, for none and for all.
    "and.b32 %r21, %r1, 3;\nsetp.eq.u32 %p2, %r21, 1;\n@%p0 bra past;\n@%p2 ld.global.u32 %r20, [%rd8];\n\
     @%p2 add.u32 %r30, %r30, %r20;\n@%p0 add.u32 %r30, %r30, 7;\n@!%p0 xor.b32 %r30, %r30, %r7;\nsetp.lt.u32 %p3, %r30, %r7;\n\
     @%p3 st.shared.u32 [%r8], %r30;\npast:\n",
    // One in another, with ends apart and at one place.
    "and.b32 %r21, %r1, 5;\nsetp.eq.u32 %p2, %r21, 1;\n@%p0 bra past;\nadd.u32 %r30, %r30, 11;\n@%p2 bra within;\n\
     ld.shared.u32 %r20, [%r8];\nxor.b32 %r30, %r30, %r20;\nwithin:\nmul.lo.u32 %r30, %r30, 31;\npast:\n",
    "and.b32 %r21, %r1, 5;\nsetp.eq.u32 %p2, %r21, 1;\n@%p0 bra past;\nadd.u32 %r30, %r30, 11;\n@%p2 bra past;\n\
     ld.global.u32 %r20, [%rd8];\nxor.b32 %r30, %r30, %r20;\npast:\nmul.lo.u32 %r30, %r30, 31;\n",
    // In one of two parts of a path.
    "and.b32 %r21, %r1, 5;\nsetp.eq.u32 %p2, %r21, 1;\n@%p2 bra other;\nadd.u32 %r30, %r30, 11;\n@%p0 bra one;\n\
     ld.shared.u32 %r20, [%r8];\nxor.b32 %r30, %r30, %r20;\none:\nadd.u32 %r30, %r30, 2;\nbra both;\nother:\n\
     xor.b32 %r30, %r30, 6;\n@%p0 bra two;\nst.global.u32 [%rd8], %r30;\ntwo:\nadd.u32 %r30, %r30, 1;\nboth:\n",
];

#[test]
fn what_is_executed_in_an_arm_is_that_of_the_interpreter() {
    for (at, body) in BODIES.into_iter().enumerate() {
        accesses_agree(&rounds(body), 4, &offsets(4, at as u32));
    }
}

/// Turns end where they would, and orders are the same.
#[test]
fn turns_end_within_arms_as_they_do_for_the_interpreter() {
    let offsets: Vec<u32> = (0..ROUNDS * THREADS)
        .map(|at| (at * 28 + at / 5 * 4) % 1020 + (at.wrapping_mul(0x9e37_79b9) & (1 << 31)))
        .collect();
    for body in BODIES {
        for seed in 0..6 {
            let options = Options { schedule: Schedule::Seeded(seed), ..Options::default() };
            agree(&options, &rounds(body), &offsets);
            let options = Options { max_instructions: 3000 + 37 * seed, ..Options::default() };
            agree(&options, &rounds(body), &offsets);
        }
    }
}

/// A loop whose lanes do nothing but go through an arm hangs, whoever executes it, after as many instructions.
#[test]
fn loops_with_arms_that_do_nothing_are_hangs() {
    let text = kernel(
        "    mov.u32 %r1, %tid.x;
        and.b32 %r2, %r1, 1;
        setp.eq.u32 %p1, %r2, 0;
        mov.u32 %r3, 0;
        again:
        add.u32 %r3, %r3, 1;
        and.b32 %r3, %r3, 7;
        @%p1 bra even;
        xor.b32 %r2, %r2, 2;
        even:
        bra again;",
    );
    let options = Options { max_instructions: 50_000_000, ..Options::default() };
    let [interpreted, compiled] = both(&text, 32, &options).map(|(report, _)| {
        assert_eq!(report.trap.as_ref().map(|trap| trap.kind), Some(TrapKind::Deadlock), "{report}");
        super::counted(&report)
    });
    assert_eq!(interpreted, compiled);
}
