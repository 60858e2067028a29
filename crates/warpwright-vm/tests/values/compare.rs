//! Comparisons and selections.

use super::{NAN, NEGATIVE_TINY, NEGATIVE_ZERO, TINY, check, f, g, s};

/// Every comparison of floating-point numbers: for less, equal, greater and unordered operands.
const FLOATS: [(&str, [u64; 4]); 14] = [
    ("eq", [0, 1, 0, 0]),
    ("ne", [1, 0, 1, 0]),
    ("lt", [1, 0, 0, 0]),
    ("le", [1, 1, 0, 0]),
    ("gt", [0, 0, 1, 0]),
    ("ge", [0, 1, 1, 0]),
    ("equ", [0, 1, 0, 1]),
    ("neu", [1, 0, 1, 1]),
    ("ltu", [1, 0, 0, 1]),
    ("leu", [1, 1, 0, 1]),
    ("gtu", [0, 0, 1, 1]),
    ("geu", [0, 1, 1, 1]),
    ("num", [1, 1, 1, 0]),
    ("nan", [0, 0, 0, 1]),
];

#[test]
fn comparisons_of_numbers() {
    for (ty, register, one, two, nan) in [
        ("f32", 'r', f(1.0), f(2.0), NAN),
        ("f64", 'd', g(1.0), g(2.0), g(f64::NAN)),
        ("f16", 'h', 0x3c00, 0x4000, 0x7e01),
        ("bf16", 'h', 0x3f80, 0x4000, 0xffc1),
    ] {
        for (cmp, expected) in FLOATS {
            let text = format!("setp.{cmp}.{ty} p0, {register}1, {register}2");
            for (operands, expected) in [[one, two], [two, two], [two, one], [one, nan]].iter().zip(expected)
            {
                check(&[(&text, operands, expected)]);
            }
        }
    }
}

#[test]
fn comparisons_of_integers() {
    for (cmp, expected) in [
        ("eq", [0, 1, 0]),
        ("ne", [1, 0, 1]),
        ("lt", [1, 0, 0]),
        ("le", [1, 1, 0]),
        ("gt", [0, 0, 1]),
        ("ge", [0, 1, 1]),
    ] {
        for (bits, register) in [(16, 'h'), (32, 'r'), (64, 'd')] {
            // All ones: the largest unsigned number, and −1.
            let ones = u64::MAX >> (64 - bits);
            let signed = format!("setp.{cmp}.s{bits} p0, {register}1, {register}2");
            let unsigned = format!("setp.{cmp}.u{bits} p0, {register}1, {register}2");
            check(&[
                (&signed, &[ones, 1], expected[0]),
                (&signed, &[ones, ones], expected[1]),
                (&signed, &[1, ones], expected[2]),
                (&unsigned, &[1, ones], expected[0]),
                (&unsigned, &[1, 1], expected[1]),
                (&unsigned, &[ones, 1], expected[2]),
            ]);
        }
    }
    check(&[
        ("setp.lo.u32 p0, r1, r2", &[1, 2], 1),
        ("setp.ls.u32 p0, r1, r2", &[3, 2], 0),
        ("setp.hi.u64 p0, d1, d2", &[1 << 40, 2], 1),
        ("setp.hs.u16 p0, h1, h2", &[2, 2], 1),
        ("setp.eq.b32 p0, r1, r2", &[7, 7], 1),
        ("setp.ne.b16 p0, h1, h2", &[7, 7], 0),
    ]);
}

#[test]
fn combinations_and_second_results() {
    check(&[
        ("setp.lt.and.s32 p0, r1, r2, p3", &[1, 2, 0], 0),
        ("setp.lt.or.s32 p0, r1, r2, p3", &[2, 1, 1], 1),
        ("setp.lt.xor.s32 p0, r1, r2, p3", &[1, 2, 1], 0),
        ("setp.lt.and.s32 p0, r1, r2, !p3", &[1, 2, 0], 1),
        ("setp.lt.s32 p0|p9, r1, r2", &[1, 2], 1),
        ("setp.lt.s32 p0|p9, r1, r2", &[2, 1], 2),
        // Both results are combined.
        ("setp.lt.and.s32 p0|p9, r1, r2, p3", &[1, 2, 0], 0),
        ("setp.lt.or.s32 p0|p9, r1, r2, p3", &[1, 2, 1], 3),
        ("setp.ltu.f32 p0|p9, r1, r2", &[NAN, f(1.0)], 1),
        ("setp.lt.ftz.f32 p0, r1, r2", &[NEGATIVE_TINY, TINY], 0),
        ("setp.lt.f32 p0, r1, r2", &[NEGATIVE_TINY, TINY], 1),
        ("setp.eq.f32 p0, r1, r2", &[NEGATIVE_ZERO, 0], 1),
        ("setp.eq.ftz.f16 p0, h1, h2", &[1, 0x8001], 1),
        ("setp.lt.f16x2 p0|p9, r1, r2", &[0x3c00_4000, 0x4000_3c00], 2),
        ("setp.lt.and.f16x2 p0|p9, r1, r2, p3", &[0x3c00_3c00, 0x4000_4000, 0], 0),
        ("setp.gtu.bf16x2 p0|p9, r1, r2", &[0x7fc0_4000, 0x3f80_3f80], 3),
    ]);
}

#[test]
fn a_guard_may_be_overwritten() {
    check(&[
        ("@p1 setp.lt.f16x2 p1|p9, r2, r3; and.pred p0, p1, p1", &[1, 0x3c00_4000, 0x4000_3c00], 2),
        ("@p1 setp.lt.s32 p1|p9, r2, r3; and.pred p0, p1, p1", &[1, 2, 1], 2),
    ]);
}

#[test]
fn results_in_registers() {
    check(&[
        ("set.lt.u32.s32 r0, r1, r2", &[s(-1), 1], 0xffff_ffff),
        ("set.lt.s32.u32 r0, r1, r2", &[s(-1), 1], 0),
        ("set.eq.f32.b16 r0, h1, h2", &[5, 5], f(1.0)),
        ("set.gt.and.f32.f64 r0, d1, d2, p3", &[g(2.0), g(1.0), 1], f(1.0)),
        ("set.gt.and.f32.f64 r0, d1, d2, !p3", &[g(2.0), g(1.0), 1], 0),
        ("set.lt.ftz.u32.f32 r0, r1, r2", &[NEGATIVE_TINY, TINY], 0),
        ("set.eq.f16.f16 h0, h1, h2", &[0x3c00, 0x3c00], 0x3c00),
        ("set.eq.bf16.s64 h0, d1, d2", &[7, 7], 0x3f80),
        ("set.ne.u16.f16 h0, h1, h2", &[0x3c00, 0x4000], 0xffff),
        ("set.lt.f16x2.f16x2 r0, r1, r2", &[0x3c00_4000, 0x4000_3c00], 0x3c00_0000),
        ("set.lt.u32.f16x2 r0, r1, r2", &[0x3c00_3c00, 0x4000_4000], 0xffff_ffff),
        ("set.lt.s32.bf16x2 r0, r1, r2", &[0x4000_3f80, 0x3f80_4000], 0x0000_ffff),
        ("set.ge.bf16x2.bf16x2 r0, r1, r2", &[0x4000_3f80, 0x3f80_4000], 0x3f80_0000),
    ]);
}

#[test]
fn selections() {
    check(&[
        ("selp.b16 h0, h1, h2, p3", &[5, 6, 1], 5),
        ("selp.f32 r0, r1, r2, p3", &[0xffc0_0001, 6, 1], 0xffc0_0001),
        ("selp.u64 d0, d1, d2, p3", &[1 << 40, 6, 0], 6),
        ("selp.u32 r0, 7, r2, !p3", &[0, 6, 0], 7),
        ("slct.u32.s32 r0, r1, r2, r3", &[5, 6, s(-1)], 6),
        ("slct.b64.s32 d0, d1, d2, r3", &[5, 6, 0], 5),
        ("slct.f32.f32 r0, r1, r2, r3", &[5, 6, NEGATIVE_ZERO], 5),
        ("slct.u16.f32 h0, h1, h2, r3", &[5, 6, NEGATIVE_TINY], 6),
        ("slct.ftz.u16.f32 h0, h1, h2, r3", &[5, 6, NEGATIVE_TINY], 5),
        ("slct.u64.f32 d0, d1, d2, r3", &[5, 6, NAN], 6),
    ]);
}
