//! Integers.

use super::{check, s};

const ALL32: u64 = 0xffff_ffff;
const MIN32: u64 = 0x8000_0000;
const MIN64: u64 = 1 << 63;

#[test]
fn sums_and_differences() {
    check(&[
        ("add.u16 h0, h1, h2", &[0xffff, 2], 1),
        ("add.s16 h0, h1, h2", &[0x7fff, 1], 0x8000),
        ("add.u32 r0, r1, r2", &[ALL32, 2], 1),
        ("add.s64 d0, d1, d2", &[u64::MAX, 2], 1),
        ("add.sat.s32 r0, r1, r2", &[s(i32::MAX), 1], s(i32::MAX)),
        ("add.sat.s32 r0, r1, r2", &[MIN32, s(-1)], MIN32),
        ("add.u32 r0, r1, 5", &[7], 12),
        ("add.u16x2 r0, r1, r2", &[0xffff_0001, 0x0001_0001], 0x0000_0002),
        ("add.s16x2 r0, r1, r2", &[0x7fff_ffff, 0x0001_0001], 0x8000_0000),
        ("sub.u16 h0, h1, h2", &[1, 2], 0xffff),
        ("sub.s32 r0, r1, r2", &[1, 2], ALL32),
        ("sub.u64 d0, d1, d2", &[1, 2], u64::MAX),
        ("sub.sat.s32 r0, r1, r2", &[MIN32, 1], MIN32),
        ("sub.sat.s32 r0, r1, r2", &[s(i32::MAX), s(-1)], s(i32::MAX)),
        ("sad.u32 r0, r1, r2, r3", &[3, 10, 100], 107),
        ("sad.s32 r0, r1, r2, r3", &[s(-3), 10, 100], 113),
        ("sad.s32 r0, r1, r2, r3", &[MIN32, s(i32::MAX), 1], 0),
        ("sad.u16 h0, h1, h2, h3", &[0xffff, 0, 2], 1),
        ("sad.s64 d0, d1, d2, d3", &[u64::MAX, 5, 7], 13),
    ]);
}

#[test]
fn carries() {
    check(&[
        ("add.cc.u32 r9, r1, r2; addc.u32 r0, r3, r4", &[ALL32, 1, 10, 20], 31),
        ("add.cc.u32 r9, r1, r2; addc.u32 r0, r3, r4", &[ALL32, 0, 10, 20], 30),
        ("add.cc.s32 r9, r1, r2; addc.cc.s32 r9, r3, r4; addc.u32 r0, 0, 0", &[MIN32, MIN32, ALL32, 0], 1),
        ("add.cc.u64 d9, d1, d2; addc.u64 d0, d3, d4", &[u64::MAX, 1, 1, 1], 3),
        ("sub.cc.u32 r9, r1, r2; subc.u32 r0, r3, r4", &[0, 1, 10, 3], 6),
        ("sub.cc.u32 r9, r1, r2; subc.u32 r0, r3, r4", &[1, 1, 10, 3], 7),
        ("sub.cc.u64 d9, d1, d2; subc.cc.u64 d9, d3, d4; subc.u64 d0, 0, 0", &[0, 1, 0, 0], u64::MAX),
        ("mad.lo.cc.u32 r9, r1, r2, r3; madc.hi.u32 r0, r1, r2, 0", &[ALL32, ALL32, ALL32], ALL32),
        ("mad.hi.cc.u32 r9, r1, r2, r3; addc.u32 r0, 0, 0", &[ALL32, ALL32, 2], 1),
        ("mad.lo.cc.u64 d9, d1, d2, d3; madc.hi.u64 d0, d1, d2, 0", &[u64::MAX, u64::MAX, 1], u64::MAX - 1),
        ("add.cc.u32 r9, r1, r2; madc.lo.s32 r0, r3, r4, 5", &[ALL32, 1, s(-3), 2], 0),
        ("add.cc.u32 r9, r1, r2; madc.hi.s64 d0, d3, d4, 0", &[ALL32, 1, u64::MAX, 2], 0),
    ]);
}

#[test]
fn products() {
    check(&[
        ("mul.lo.u16 h0, h1, h2", &[300, 300], 90_000 & 0xffff),
        ("mul.hi.u16 h0, h1, h2", &[300, 300], 1),
        ("mul.hi.s16 h0, h1, h2", &[0xffff, 1], 0xffff),
        ("mul.wide.u16 r0, h1, h2", &[0xffff, 0xffff], 0xfffe_0001),
        ("mul.wide.s16 r0, h1, h2", &[0xffff, 5], s(-5)),
        ("mul.lo.s32 r0, r1, r2", &[s(-3), 5], s(-15)),
        ("mul.hi.u32 r0, r1, r2", &[ALL32, ALL32], ALL32 - 1),
        ("mul.hi.s32 r0, r1, r2", &[ALL32, ALL32], 0),
        ("mul.wide.u32 d0, r1, r2", &[ALL32, ALL32], 0xffff_fffe_0000_0001),
        ("mul.wide.s32 d0, r1, r2", &[ALL32, 3], (-3i64) as u64),
        ("mul.lo.u64 d0, d1, d2", &[1 << 40, 1 << 40], 0),
        ("mul.hi.u64 d0, d1, d2", &[1 << 40, 1 << 40], 1 << 16),
        ("mul.hi.s64 d0, d1, d2", &[u64::MAX, 2], u64::MAX),
        ("mad.lo.s32 r0, r1, r2, r3", &[s(-3), 5, 16], 1),
        ("mad.hi.u32 r0, r1, r2, r3", &[ALL32, ALL32, 3], 1),
        ("mad.hi.sat.s32 r0, r1, r2, r3", &[MIN32, MIN32, s(i32::MAX)], s(i32::MAX)),
        ("mad.hi.s32 r0, r1, r2, r3", &[MIN32, MIN32, s(i32::MAX)], 0xbfff_ffff),
        (
            "mad.wide.u32 d0, r1, r2, d3",
            &[ALL32, ALL32, 1 << 40],
            0xffff_fffe_0000_0001u64.wrapping_add(1 << 40),
        ),
        ("mad.wide.s32 d0, r1, r2, d3", &[ALL32, 1, 1], 0),
        ("mad.wide.s16 r0, h1, h2, r3", &[0xffff, 7, 10], 3),
        ("mad.lo.u16 h0, h1, h2, h3", &[3, 4, 5], 17),
        ("mad.lo.s64 d0, d1, d2, d3", &[3, u64::MAX, 5], 2),
        ("mul24.lo.u32 r0, r1, r2", &[0xff00_0003, 5], 15),
        ("mul24.lo.s32 r0, r1, r2", &[0x00ff_ffff, 5], s(-5)),
        ("mul24.hi.u32 r0, r1, r2", &[0x0080_0000, 0x0080_0000], 1 << 30),
        ("mad24.lo.s32 r0, r1, r2, r3", &[0x00ff_ffff, 5, 7], 2),
        ("mad24.hi.sat.s32 r0, r1, r2, r3", &[0x0080_0000, 0x0080_0000, s(i32::MAX)], s(i32::MAX)),
        ("dp4a.u32.u32 r0, r1, r2, r3", &[0x0102_03ff, 0x0101_01ff, 1], 1 + 6 + 255 * 255),
        ("dp4a.s32.s32 r0, r1, r2, r3", &[0x0102_03ff, 0x0101_01ff, 1], 8),
        ("dp4a.u32.s32 r0, r1, r2, r3", &[0xff, 0xff, 0], s(-255)),
        ("dp2a.lo.u32.u32 r0, r1, r2, r3", &[0x0002_ffff, 0x0403_0201, 1], 65535 + 4 + 1),
        ("dp2a.hi.s32.u32 r0, r1, r2, r3", &[0x0002_ffff, 0x0403_0201, 1], 8 + 1 - 3),
    ]);
}

#[test]
fn quotients() {
    check(&[
        ("div.u32 r0, r1, r2", &[17, 5], 3),
        ("div.s32 r0, r1, r2", &[s(-17), 5], s(-3)),
        ("div.s32 r0, r1, r2", &[MIN32, ALL32], MIN32),
        ("div.u16 h0, h1, h2", &[0xffff, 16], 0xfff),
        ("div.s16 h0, h1, h2", &[0xfff0, 4], 0xfffc),
        ("div.s64 d0, d1, d2", &[MIN64, 2], 0xc000_0000_0000_0000),
        ("rem.u32 r0, r1, r2", &[17, 5], 2),
        ("rem.s32 r0, r1, r2", &[s(-17), 5], s(-2)),
        ("rem.s32 r0, r1, r2", &[17, s(-5)], 2),
        ("rem.s64 d0, d1, d2", &[MIN64, u64::MAX], 0),
        // By zero, as the crate documents it.
        ("div.u32 r0, r1, r2", &[17, 0], ALL32),
        ("div.s64 d0, d1, d2", &[17, 0], u64::MAX),
        ("rem.u32 r0, r1, r2", &[17, 0], ALL32),
        ("rem.s16 h0, h1, h2", &[0x7fff, 0], 0xffff),
        ("rem.u64 d0, d1, d2", &[MIN64, 0], u64::MAX),
    ]);
}

#[test]
fn signs_and_extrema() {
    check(&[
        ("abs.s16 h0, h1", &[0xfffb], 5),
        ("abs.s32 r0, r1", &[s(-5)], 5),
        ("abs.s32 r0, r1", &[MIN32], MIN32),
        ("abs.s64 d0, d1", &[u64::MAX], 1),
        ("neg.s16 h0, h1", &[1], 0xffff),
        ("neg.s32 r0, r1", &[MIN32], MIN32),
        ("neg.s64 d0, d1", &[5], (-5i64) as u64),
        ("min.u16 h0, h1, h2", &[0xffff, 1], 1),
        ("min.s16 h0, h1, h2", &[0xffff, 1], 0xffff),
        ("max.u32 r0, r1, r2", &[ALL32, 1], ALL32),
        ("max.s32 r0, r1, r2", &[ALL32, 1], 1),
        ("min.u64 d0, d1, d2", &[u64::MAX, 1], 1),
        ("min.s64 d0, d1, d2", &[u64::MAX, 1], u64::MAX),
        ("max.s16x2 r0, r1, r2", &[0xffff_0003, 0x0001_0002], 0x0001_0003),
        ("max.u16x2 r0, r1, r2", &[0xffff_0003, 0x0001_0002], 0xffff_0003),
        ("min.relu.s32 r0, r1, r2", &[s(-5), 3], 0),
        ("max.relu.s16x2 r0, r1, r2", &[0xffff_0003, 0xfffe_0002], 0x0000_0003),
    ]);
}
