//! Bits.

use super::{check, s};

#[test]
fn bitwise() {
    check(&[
        ("and.b16 h0, h1, h2", &[0xff0f, 0x0ff0], 0x0f00),
        ("or.b32 r0, r1, r2", &[0xff00_0000, 0x00ff_0000], 0xffff_0000),
        ("xor.b64 d0, d1, d2", &[u64::MAX, 1], u64::MAX - 1),
        ("not.b16 h0, h1", &[0xff0f], 0x00f0),
        ("not.b32 r0, r1", &[0], 0xffff_ffff),
        ("not.b64 d0, d1", &[1], u64::MAX - 1),
        ("and.pred p0, p1, p2", &[1, 1], 1),
        ("and.pred p0, p1, p2", &[1, 0], 0),
        ("and.pred p0, p1, !p2", &[1, 0], 1),
        ("or.pred p0, p1, p2", &[0, 1], 1),
        ("xor.pred p0, p1, p2", &[1, 1], 0),
        ("not.pred p0, p1", &[0], 1),
        ("cnot.b32 r0, r1", &[0], 1),
        ("cnot.b16 h0, h1", &[7], 0),
        ("cnot.b64 d0, d1", &[1 << 40], 0),
        ("lop3.b32 r0, r1, r2, r3, 0x96", &[0b1111, 0b1100, 0b1010], 0b1001),
        ("lop3.b32 r0, r1, r2, r3, 0xe8", &[0b1110, 0b1101, 0b1000], 0b1100),
        ("lop3.and.b32 r9|p0, r1, r2, r3, 0xc0, p4", &[4, 2, 0, 1], 0),
        ("lop3.or.b32 _|p0, r1, r2, r3, 0x80, p4", &[4, 4, 4, 0], 1),
        ("lop3.and.b32 _|p0, r1, r2, r3, 0xfe, !p4", &[4, 0, 0, 1], 0),
    ]);
}

#[test]
fn shifts() {
    check(&[
        ("shl.b16 h0, h1, r2", &[0x8001, 1], 2),
        ("shl.b32 r0, r1, r2", &[1, 31], 1 << 31),
        ("shl.b32 r0, r1, r2", &[1, 32], 0),
        ("shl.b64 d0, d1, r2", &[1, 63], 1 << 63),
        ("shl.b64 d0, d1, r2", &[1, 4_000_000_000], 0),
        ("shr.u32 r0, r1, r2", &[0x8000_0000, 40], 0),
        ("shr.s32 r0, r1, r2", &[0x8000_0000, 40], 0xffff_ffff),
        ("shr.s16 h0, h1, r2", &[0x8000, 3], 0xf000),
        ("shr.u16 h0, h1, r2", &[0x8000, 3], 0x1000),
        ("shr.b64 d0, d1, r2", &[1 << 63, 60], 8),
        ("shr.s64 d0, d1, r2", &[1 << 63, 60], (-8i64) as u64),
        ("shf.l.clamp.b32 r0, r1, r2, r3", &[0x8000_0000, 1, 1], 3),
        ("shf.l.clamp.b32 r0, r1, r2, r3", &[5, 1, 33], 5),
        ("shf.l.wrap.b32 r0, r1, r2, r3", &[5, 1, 33], 2),
        ("shf.r.wrap.b32 r0, r1, r2, r3", &[2, 1, 1], 0x8000_0001),
        ("shf.r.clamp.b32 r0, r1, r2, r3", &[2, 7, 99], 7),
    ]);
}

#[test]
fn fields() {
    check(&[
        ("bfe.u32 r0, r1, r2, r3", &[0x1234_5678, 8, 8], 0x56),
        ("bfe.s32 r0, r1, r2, r3", &[0x0000_8000, 8, 8], s(-128)),
        ("bfe.s32 r0, r1, r2, r3", &[0x8000_0000, 28, 8], s(-8)),
        ("bfe.s32 r0, r1, r2, r3", &[0x8000_0000, 40, 1], s(-1)),
        ("bfe.u64 d0, d1, r2, r3", &[0x1234_5678_9abc_def0, 60, 20], 1),
        ("bfe.s64 d0, d1, r2, r3", &[u64::MAX, 3, 0], 0),
        ("bfi.b32 r0, r1, r2, r3, r4", &[0xff, 0, 4, 4], 0xf0),
        ("bfi.b32 r0, r1, r2, r3, r4", &[0xff, 3, 32, 4], 3),
        ("bfi.b64 d0, d1, d2, r3, r4", &[u64::MAX, 0, 60, 20], 0xf << 60),
        ("popc.b32 r0, r1", &[0xf0f0], 8),
        ("popc.b64 r0, d1", &[u64::MAX], 64),
        ("clz.b32 r0, r1", &[0], 32),
        ("clz.b64 r0, d1", &[1], 63),
        ("brev.b32 r0, r1", &[1], 1 << 31),
        ("brev.b64 d0, d1", &[2], 1 << 62),
        ("bfind.u32 r0, r1", &[0x100], 8),
        ("bfind.s32 r0, r1", &[s(-1)], 0xffff_ffff),
        ("bfind.shiftamt.s64 r0, d1", &[1], 63),
        ("bfind.u64 r0, d1", &[1 << 40], 40),
        ("fns.b32 r0, r1, r2, r3", &[0xaaaa_aaaa, 2, 1], 3),
        ("fns.b32 r0, r1, r2, r3", &[0xaaaa_aaaa, 2, s(-1)], 1),
        ("fns.b32 r0, r1, r2, r3", &[0xaaaa_aaaa, 2, 0], 0xffff_ffff),
        ("szext.clamp.s32 r0, r1, r2", &[0xff, 8], s(-1)),
        ("szext.wrap.u32 r0, r1, r2", &[0xffff_ffff, 0], 0),
        ("szext.wrap.u32 r0, r1, r2", &[0xffff_ffff, 36], 0xf),
        ("szext.clamp.s32 r0, r1, r2", &[0x7fff_fff8, 36], 0x7fff_fff8),
        ("bmsk.wrap.b32 r0, r1, r2", &[1, 2], 6),
        ("bmsk.clamp.b32 r0, r1, r2", &[4, 40], 0xffff_fff0),
        ("bmsk.clamp.b32 r0, r1, r2", &[32, 1], 0),
        ("prmt.b32 r0, r1, r2, r3", &[0x3322_1180, 0x7766_5544, 0x8765], 0xff77_6655),
        ("prmt.b32.f4e r0, r1, r2, r3", &[0x3322_1100, 0x7766_5544, 1], 0x4433_2211),
        ("prmt.b32.b4e r0, r1, r2, r3", &[0x3322_1100, 0x7766_5544, 2], 0x7700_1122),
        ("prmt.b32.rc8 r0, r1, r2, r3", &[0x3322_1100, 0x7766_5544, 7], 0x3333_3333),
        ("prmt.b32.ecl r0, r1, r2, r3", &[0x3322_1100, 0x7766_5544, 1], 0x3322_1111),
        ("prmt.b32.ecr r0, r1, r2, r3", &[0x3322_1100, 0x7766_5544, 2], 0x2222_1100),
        ("prmt.b32.rc16 r0, r1, r2, r3", &[0x3322_1100, 0x7766_5544, 3], 0x3322_3322),
    ]);
}
