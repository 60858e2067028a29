//! Conversions.

use super::{NAN, NEGATIVE_TINY, NEGATIVE_ZERO, check, f, g, s};

const INF: f32 = f32::INFINITY;

#[test]
fn integers() {
    check(&[
        ("cvt.u32.u8 r0, r1", &[0xfff], 0xff),
        ("cvt.s32.s8 r0, r1", &[0x80], s(-128)),
        ("cvt.u32.s8 r0, r1", &[0x80], s(-128)),
        ("cvt.u16.s8 h0, r1", &[0x80], 0xff80),
        ("cvt.s8.s32 r0, r1", &[0x180], s(-128)),
        ("cvt.u8.s32 r0, r1", &[0x180], 0x80),
        ("cvt.s16.s32 r0, r1", &[0x1_8000], s(-32768)),
        ("cvt.s16.s32 h0, r1", &[0x1_8000], 0x8000),
        ("cvt.u16.u64 r0, d1", &[0xffff_8000], 0x8000),
        ("cvt.s64.s32 d0, r1", &[s(-1)], u64::MAX),
        ("cvt.u64.u32 d0, r1", &[s(-1)], 0xffff_ffff),
        ("cvt.s64.u16 d0, h1", &[0xffff], 0xffff),
        ("cvt.s64.s16 d0, h1", &[0xffff], u64::MAX),
        ("cvt.s32.s64 r0, d1", &[0x1_0000_0005], 5),
        // Into a wider register.
        ("cvt.s32.s64 d0, d1", &[0x1_8000_0000], 0xffff_ffff_8000_0000),
        ("cvt.u32.s64 d0, d1", &[0x1_8000_0000], 0x8000_0000),
        ("cvt.s8.u32 d0, r1", &[0x80], 0xffff_ffff_ffff_ff80),
        ("cvt.sat.u8.s32 r0, r1", &[s(-5)], 0),
        ("cvt.sat.u8.s32 r0, r1", &[300], 255),
        ("cvt.sat.s8.s32 r0, r1", &[s(-300)], s(-128)),
        ("cvt.sat.s8.u32 r0, r1", &[s(-1)], 127),
        ("cvt.sat.s32.u32 r0, r1", &[s(-1)], s(i32::MAX)),
        ("cvt.sat.u32.s64 r0, d1", &[1 << 40], 0xffff_ffff),
        ("cvt.sat.s64.u64 d0, d1", &[u64::MAX], i64::MAX as u64),
        ("cvt.sat.u64.s8 d0, r1", &[0x80], 0),
        ("cvt.sat.u16.s16 h0, h1", &[0xffff], 0),
        ("cvt.u16.u32 h0, %ntid.x", &[], 1),
    ]);
}

#[test]
fn numbers_to_integers() {
    check(&[
        ("cvt.rzi.s32.f32 r0, r1", &[f(-2.7)], s(-2)),
        ("cvt.rmi.s32.f32 r0, r1", &[f(-2.3)], s(-3)),
        ("cvt.rpi.s32.f32 r0, r1", &[f(2.3)], 3),
        ("cvt.rni.s32.f32 r0, r1", &[f(2.5)], 2),
        ("cvt.rni.s32.f32 r0, r1", &[f(3.5)], 4),
        ("cvt.rzi.s32.f32 r0, r1", &[f(INF)], s(i32::MAX)),
        ("cvt.rzi.u32.f32 r0, r1", &[f(-5.0)], 0),
        ("cvt.rzi.s32.f32 r0, r1", &[NAN], 0),
        ("cvt.rzi.s64.f32 d0, r1", &[NAN], 1 << 63),
        ("cvt.rzi.u64.f32 d0, r1", &[f(-INF)], 0),
        ("cvt.rzi.s32.f64 r0, d1", &[g(f64::NAN)], 1 << 31),
        ("cvt.rzi.u32.f64 r0, d1", &[g(f64::NAN)], 1 << 31),
        ("cvt.rzi.s16.f64 h0, d1", &[g(f64::NAN)], 1 << 15),
        ("cvt.rni.s64.f64 d0, d1", &[g(-2.5)], (-2i64) as u64),
        ("cvt.rpi.ftz.s32.f32 r0, r1", &[1], 0),
        ("cvt.rpi.s32.f32 r0, r1", &[1], 1),
        ("cvt.rmi.ftz.s8.f32 r0, r1", &[NEGATIVE_TINY], 0),
        ("cvt.rni.s8.f32 r0, r1", &[f(-200.0)], s(-128)),
        ("cvt.rni.s8.f32 h0, r1", &[f(-3.0)], 0xfffd),
        ("cvt.rni.u8.f32 r0, r1", &[f(1.0e9)], 255),
        ("cvt.rzi.s16.f16 h0, h1", &[0xc500], 0xfffb),
        ("cvt.rni.u32.f16 r0, h1", &[0x7bff], 65504),
        ("cvt.rzi.u32.f16 r0, h1", &[0x7e00], 0),
        ("cvt.rzi.s32.bf16 r0, h1", &[0xc0e8], s(-7)),
        ("cvt.rpi.u64.bf16 d0, h1", &[0x3f81], 2),
        ("cvt.rzi.s64.f16 d0, h1", &[0x7e00], 1 << 63),
        ("cvt.rzi.s32.f32 d0, r1", &[f(-1.0)], u64::MAX),
    ]);
}

#[test]
fn integers_to_numbers() {
    check(&[
        ("cvt.rn.f32.s32 r0, r1", &[s(-3)], f(-3.0)),
        ("cvt.rn.f32.u32 r0, r1", &[0xffff_ffff], f(4294967296.0)),
        ("cvt.rz.f32.u32 r0, r1", &[0xffff_ffff], f(4294967040.0)),
        ("cvt.rm.f32.s64 r0, d1", &[(-16777217i64) as u64], f(-16777218.0)),
        ("cvt.rp.f32.s64 r0, d1", &[(-16777217i64) as u64], f(-16777216.0)),
        ("cvt.rn.f32.u64 r0, d1", &[16777217], f(16777216.0)),
        ("cvt.rn.f64.s64 d0, d1", &[u64::MAX], g(-1.0)),
        ("cvt.rn.f64.u64 d0, d1", &[u64::MAX], g(18446744073709551616.0)),
        ("cvt.rz.f64.u64 d0, d1", &[u64::MAX], g(18446744073709549568.0)),
        ("cvt.rn.f64.u32 d0, r1", &[0xffff_ffff], g(4294967295.0)),
        ("cvt.rn.f32.u8 r0, r1", &[0x1ff], f(255.0)),
        ("cvt.rn.f32.s8 r0, r1", &[0x1ff], f(-1.0)),
        ("cvt.rn.f32.s16 r0, h1", &[0x8000], f(-32768.0)),
        ("cvt.rn.f16.s32 h0, r1", &[s(-2049)], 0xe800),
        ("cvt.rn.f16.u32 h0, r1", &[65520], 0x7c00),
        ("cvt.rz.f16.u32 h0, r1", &[65520], 0x7bff),
        ("cvt.rn.bf16.s32 h0, r1", &[259], 0x4382),
        ("cvt.rn.sat.f32.s32 r0, r1", &[s(-3)], 0),
        ("cvt.rz.sat.f16.u8 h0, r1", &[7], 0x3c00),
        ("cvt.rn.f16.s32 r0, r1", &[1], 0x3c00),
    ]);
}

#[test]
fn between_formats() {
    check(&[
        ("cvt.f32.f16 r0, h1", &[0x3c01], f(1.0 + 1.0 / 1024.0)),
        ("cvt.f32.f16 r0, h1", &[1], f(2.0f32.powi(-24))),
        ("cvt.f32.f16 r0, h1", &[0xfe01], NAN),
        ("cvt.f64.f16 d0, h1", &[0xbc00], g(-1.0)),
        ("cvt.f64.f32 d0, r1", &[f(0.1)], g(0.1f32 as f64)),
        ("cvt.ftz.f64.f32 d0, r1", &[NEGATIVE_TINY], 1 << 63),
        ("cvt.f32.bf16 r0, h1", &[0x3f81], 0x3f81_0000),
        ("cvt.rn.f16.f32 h0, r1", &[f(65519.0)], 0x7bff),
        ("cvt.rn.f16.f32 h0, r1", &[f(65520.0)], 0x7c00),
        ("cvt.rz.f16.f32 h0, r1", &[f(1.0e6)], 0x7bff),
        ("cvt.rn.satfinite.f16.f32 h0, r1", &[f(-INF)], 0xfbff),
        ("cvt.rn.relu.f16.f32 h0, r1", &[f(-1.0)], 0),
        ("cvt.rn.relu.satfinite.f16.f32 h0, r1", &[NAN], 0x7fff),
        ("cvt.rp.f16.f32 h0, r1", &[1], 1),
        ("cvt.rp.ftz.f16.f32 h0, r1", &[1], 0),
        ("cvt.rp.sat.f16.f32 h0, r1", &[f(5.0)], 0x3c00),
        ("cvt.rn.f16.f64 h0, d1", &[g(1.0 + 2.0f64.powi(-11))], 0x3c00),
        ("cvt.rn.f16.f64 h0, d1", &[g(1.0 + 2.0f64.powi(-11) + 2.0f64.powi(-40))], 0x3c01),
        ("cvt.rn.bf16.f32 h0, r1", &[0x3f80_8000], 0x3f80),
        ("cvt.rn.bf16.f32 h0, r1", &[0x3f81_8000], 0x3f82),
        ("cvt.rz.bf16.f32 h0, r1", &[0x3f81_ffff], 0x3f81),
        ("cvt.rn.relu.bf16.f32 h0, r1", &[f(-1.0)], 0),
        ("cvt.rn.bf16.f16 h0, h1", &[0x3c00], 0x3f80),
        ("cvt.rn.f16.bf16 h0, h1", &[0x7f7f], 0x7c00),
        ("cvt.rn.f32.f64 r0, d1", &[g(0.1)], f(0.1)),
        ("cvt.rm.f32.f64 r0, d1", &[g(0.1)], f(0.1) - 1),
        ("cvt.rn.ftz.f32.f64 r0, d1", &[g(-1.0e-40)], NEGATIVE_ZERO),
        ("cvt.rn.sat.f32.f64 r0, d1", &[g(7.0)], f(1.0)),
        ("cvt.rni.f32.f32 r0, r1", &[f(-0.5)], NEGATIVE_ZERO),
        ("cvt.rni.f32.f32 r0, r1", &[f(2.5)], f(2.0)),
        ("cvt.rpi.ftz.f32.f32 r0, r1", &[1], 0),
        ("cvt.rzi.sat.f32.f32 r0, r1", &[f(0.7)], 0),
        ("cvt.rmi.f64.f64 d0, d1", &[g(-0.1)], g(-1.0)),
        ("cvt.rpi.f16.f16 h0, h1", &[0x3c01], 0x4000),
        ("cvt.sat.f32.f32 r0, r1", &[NAN], 0),
        ("cvt.ftz.f32.f32 r0, r1", &[NEGATIVE_TINY], NEGATIVE_ZERO),
        ("cvt.f32.f32 r0, r1", &[NEGATIVE_TINY], NEGATIVE_TINY),
        ("cvt.f32.f32 r0, r1", &[0xff80_0001], 0xff80_0001),
        ("cvt.ftz.f32.f32 r0, r1", &[0xff80_0001], 0x7fff_ffff),
        ("cvt.rni.f32.f32 r0, r1", &[0xff80_0001], 0x7fff_ffff),
        ("cvt.sat.f64.f64 d0, d1", &[g(-1.0)], 0),
        ("cvt.f64.f64 d0, d1", &[0x7ff0_0000_0000_0001], 0x7ff0_0000_0000_0001),
        ("cvt.rni.f64.f64 d0, d1", &[0x7ff0_0000_0000_0001], 0x7ff8_0000_0000_0001),
        ("cvt.f16.f16 h0, h1", &[0x7e01], 0x7fff),
    ]);
}

/// Which NaN an H200 returns.
#[test]
fn nan_between_formats() {
    check(&[
        ("cvt.rn.f32.f64 r0, d1", &[0xfff0_0000_0000_0003], 0xffc0_0000),
        ("cvt.rz.f32.f64 r0, d1", &[0x7ff1_9999_9999_9999], 0x7fcc_cccc),
        ("cvt.rn.ftz.f32.f64 r0, d1", &[0x7ffa_aaaa_aaaa_aaaa], 0x7fd5_5555),
        ("cvt.rn.sat.f32.f64 r0, d1", &[0x7ffa_aaaa_aaaa_aaaa], 0),
        ("cvt.rn.f16.f64 h0, d1", &[0x7ff1_9999_9999_9999], 0x7e66),
        ("cvt.rz.f16.f64 h0, d1", &[u64::MAX], 0xffff),
        ("cvt.rn.bf16.f64 h0, d1", &[0x7ffa_aaaa_aaaa_aaaa], 0x7fd5),
        ("cvt.rp.bf16.f64 h0, d1", &[0xfff0_0000_0000_0003], 0xffc0),
        ("cvt.f64.f16 d0, h1", &[0xfc03], 0xfff8_0c00_0000_0000),
        ("cvt.f64.bf16 d0, h1", &[0x7f8d], 0x7ff9_a000_0000_0000),
        ("cvt.f32.bf16 r0, h1", &[0x7f81], 0x7f81_0000),
        ("cvt.ftz.f32.bf16 r0, h1", &[0x7f81], NAN),
        ("cvt.f64.f32 d0, r1", &[0xff80_0003], 0xfff8_0000_6000_0000),
        ("cvt.ftz.f64.f32 d0, r1", &[0xff80_0003], 0x7fff_ffff_e000_0000),
        ("cvt.rn.tf32.f32 r0, r1", &[0xff80_0003], 0x7fff_e000),
        ("cvt.rz.relu.tf32.f32 r0, r1", &[0xffff_ffff], 0x7fff_e000),
        ("cvt.rna.tf32.f32 r0, r1", &[0xffff_ffff], 0xffff_e000),
        ("cvt.rna.tf32.f32 r0, r1", &[0xff80_0003], 0xff80_0000),
        // NaN, as the ISA says; the card gives numbers for some.
        ("cvt.rna.satfinite.tf32.f32 r0, r1", &[0xff80_0003], 0x7fff_e000),
    ]);
}

#[test]
fn packed() {
    check(&[
        ("cvt.rn.f16x2.f32 r0, r1, r2", &[f(1.0), f(-2.0)], 0x3c00_c000),
        ("cvt.rz.relu.f16x2.f32 r0, r1, r2", &[f(1.0), f(-2.0)], 0x3c00_0000),
        ("cvt.rn.satfinite.f16x2.f32 r0, r1, r2", &[f(INF), NAN], 0x7bff_7fff),
        ("cvt.rn.bf16x2.f32 r0, r1, r2", &[f(1.0), f(-2.0)], 0x3f80_c000),
        ("cvt.rz.bf16x2.f32 r0, r1, r2", &[0x3f81_ffff, 0xbf81_ffff], 0x3f81_bf81),
        ("cvt.rn.relu.bf16x2.f32 r0, r1, r2", &[f(-1.0), f(2.0)], 0x0000_4000),
        ("cvt.rna.tf32.f32 r0, r1", &[0x3f80_1000], 0x3f80_2000),
        ("cvt.rna.tf32.f32 r0, r1", &[0x3f80_0fff], 0x3f80_0000),
        ("cvt.rn.tf32.f32 r0, r1", &[0x3f80_1000], 0x3f80_0000),
        ("cvt.rz.relu.tf32.f32 r0, r1", &[0xbf80_1fff], 0),
        ("cvt.rna.satfinite.tf32.f32 r0, r1", &[f(INF)], 0x7f7f_e000),
        ("cvt.rn.satfinite.e4m3x2.f32 h0, r1, r2", &[f(1.0), f(-1000.0)], 0x38fe),
        ("cvt.rn.satfinite.relu.e4m3x2.f32 h0, r1, r2", &[f(1.0), f(-1000.0)], 0x3800),
        ("cvt.rn.satfinite.e5m2x2.f32 h0, r1, r2", &[f(1.0), f(INF)], 0x3c7b),
        ("cvt.rn.satfinite.e4m3x2.f32 h0, r1, r2", &[NAN, f(2.0f32.powi(-9))], 0x7f01),
        ("cvt.rn.satfinite.e5m2x2.f16x2 h0, r1", &[0x3c00_c100], 0x3cc1),
        ("cvt.rn.satfinite.relu.e4m3x2.f16x2 h0, r1", &[0x3c00_c000], 0x3800),
        ("cvt.rn.f16x2.e4m3x2 r0, h1", &[0x38fe], 0x3c00_df00),
        ("cvt.rn.relu.f16x2.e4m3x2 r0, h1", &[0x38fe], 0x3c00_0000),
        ("cvt.rn.f16x2.e5m2x2 r0, h1", &[0x3cfc], 0x3c00_fc00),
        ("cvt.rn.relu.f16x2.e5m2x2 r0, h1", &[0x7fbc], 0x7fff_0000),
        ("cvt.rn.satfinite.e2m3x2.f32 h0, r1, r2", &[f(1.0), f(-9.0)], 0x083f),
        ("cvt.rn.satfinite.e3m2x2.f32 h0, r1, r2", &[f(1.0), f(100.0)], 0x0c1f),
        ("cvt.rn.f16x2.e2m3x2 r0, h1", &[0x083f], 0x3c00_c780),
        ("cvt.pack.sat.s16.s32 r0, r1, r2", &[s(-40000), 5], 0x8000_0005),
        ("cvt.pack.sat.u8.s32.b32 r0, r1, r2, r3", &[s(-1), 300, 0x1234_5678], 0x5678_00ff),
        ("cvt.pack.sat.s4.s32.b32 r0, r1, r2, r3", &[7, s(-9), 0xab], 0xab78),
    ]);
}

#[test]
fn powers_of_two_and_fixed_point() {
    check(&[
        ("cvt.rz.ue8m0x2.f32 h0, r1, r2", &[f(1.0), f(-6.0)], 0x7f81),
        ("cvt.rp.ue8m0x2.f32 h0, r1, r2", &[f(1.0), f(-6.0)], 0x7f82),
        ("cvt.rp.ue8m0x2.f32 h0, r1, r2", &[0x0040_0001, f(0.0)], 0x0100),
        ("cvt.rp.ue8m0x2.f32 h0, r1, r2", &[f(INF), f(f32::MAX)], 0xffff),
        ("cvt.rp.satfinite.ue8m0x2.f32 h0, r1, r2", &[f(INF), NAN], 0xfeff),
        ("cvt.rz.ue8m0x2.bf16x2 h0, r1", &[0x3fff_0001], 0x7f00),
        ("cvt.rp.ue8m0x2.bf16x2 h0, r1", &[0x3fff_7fc0], 0x80ff),
        ("cvt.rn.bf16x2.ue8m0x2 r0, h1", &[0x7f80], 0x3f80_4000),
        ("cvt.rn.bf16x2.ue8m0x2 r0, h1", &[0x00ff], 0x0040_7fff),
        ("cvt.rn.satfinite.s2f6x2.f32 h0, r1, r2", &[f(1.0), f(-0.25)], 0x40f0),
        ("cvt.rn.satfinite.s2f6x2.f32 h0, r1, r2", &[f(2.5 / 64.0), f(3.5 / 64.0)], 0x0204),
        ("cvt.rn.satfinite.s2f6x2.f32 h0, r1, r2", &[f(9.0), f(-9.0)], 0x7f80),
        ("cvt.rn.satfinite.relu.s2f6x2.f32 h0, r1, r2", &[NAN, f(-9.0)], 0x7f00),
        ("cvt.rn.satfinite.s2f6x2.bf16x2 h0, r1", &[0x3f80_bf80], 0x40c0),
        ("cvt.rn.bf16x2.s2f6x2 r0, h1", &[0x40c0], 0x3f80_bf80),
        ("cvt.rn.bf16x2.s2f6x2 r0, h1", &[0x8001], 0xc000_3c80),
        ("cvt.rn.relu.bf16x2.s2f6x2 r0, h1", &[0x7fff], 0x3ffe_0000),
        ("cvt.rn.satfinite.scaled::n2::ue8m0.s2f6x2.f32 h0, r1, r2, h3", &[f(4.0), f(-0.25), 0x817e], 0x40e0),
        ("cvt.rn.satfinite.scaled::n2::ue8m0.s2f6x2.f32 h0, r1, r2, h3", &[f(4.0), f(-0.25), 0xff7e], 0x7fe0),
        ("cvt.rn.satfinite.scaled::n2::ue8m0.s2f6x2.bf16x2 h0, r1, h2", &[0x3f80_bf80, 0x8080], 0x20e0),
        ("cvt.rn.scaled::n2::ue8m0.bf16x2.s2f6x2 r0, h1, h2", &[0x40c0, 0x807e], 0x4000_bf00),
        ("cvt.rn.scaled::n2::ue8m0.bf16x2.e4m3x2 r0, h1, h2", &[0x38b8, 0x807e], 0x4000_bf00),
        ("cvt.rn.scaled::n2::ue8m0.bf16x2.e4m3x2 r0, h1, h2", &[0x387f, 0xffff], 0x7fff_7fff),
        ("cvt.rn.scaled::n2::ue8m0.bf16x2.e5m2x2 r0, h1, h2", &[0x7b7c, 0xfe7f], 0x7f80_7f80),
        ("cvt.rn.satfinite.scaled::n2::ue8m0.bf16x2.e5m2x2 r0, h1, h2", &[0x7bfb, 0xfefe], 0x7f7f_ff7f),
        ("cvt.rn.relu.scaled::n2::ue8m0.bf16x2.e2m3x2 r0, h1, h2", &[0x0828, 0x8080], 0x4000_0000),
        ("cvt.rn.scaled::n2::ue8m0.bf16x2.e3m2x2 r0, h1, h2", &[0x0c2c, 0x7f00], 0x3f80_8040),
    ]);
}
