//! Half precision, alone and in pairs.

use super::check;

/// Bits of `.f16` numbers.
const ONE: u64 = 0x3c00;
const TWO: u64 = 0x4000;
const THREE: u64 = 0x4200;
const HALF: u64 = 0x3800;
const MINUS: u64 = 0x8000;
const NAN: u64 = 0x7fff;

#[test]
fn sums_and_products() {
    check(&[
        ("add.f16 h0, h1, h2", &[ONE, TWO], THREE),
        ("add.rn.f16 h0, h1, h2", &[0x7bff, 0x7bff], 0x7c00),
        ("add.f16 h0, h1, h2", &[1, 1], 2),
        ("add.ftz.f16 h0, h1, h2", &[1 | MINUS, 1 | MINUS], MINUS),
        ("add.sat.f16 h0, h1, h2", &[ONE, TWO], ONE),
        ("add.ftz.sat.f16 h0, h1, h2", &[NAN, TWO], 0),
        ("sub.f16 h0, h1, h2", &[ONE, TWO], ONE | MINUS),
        ("sub.sat.f16 h0, h1, h2", &[ONE, TWO], 0),
        ("mul.f16 h0, h1, h2", &[THREE, THREE], 0x4880),
        ("mul.ftz.f16 h0, h1, h2", &[0x0400, HALF], 0),
        ("fma.rn.f16 h0, h1, h2, h3", &[THREE, THREE, 0xc880], 0),
        ("fma.rn.relu.f16 h0, h1, h2, h3", &[THREE, ONE | MINUS, ONE], 0),
        ("fma.rn.relu.f16 h0, h1, h2, h3", &[NAN, ONE, ONE], NAN),
        ("fma.rn.sat.f16 h0, h1, h2, h3", &[THREE, ONE, ONE], ONE),
        ("fma.rn.ftz.f16 h0, h1, h2, h3", &[1, 0x7bff, ONE], ONE),
        ("add.f16x2 r0, r1, r2", &[THREE << 16 | ONE, ONE << 16 | TWO], 0x4400_4200),
        ("sub.sat.f16x2 r0, r1, r2", &[THREE << 16 | ONE, ONE << 16 | TWO], ONE << 16),
        ("mul.f16x2 r0, r1, r2", &[THREE << 16 | ONE, TWO << 16 | TWO], 0x4600_4000),
        ("fma.rn.relu.f16x2 r0, r1, r2, r3", &[THREE << 16 | ONE, 0xbc00_3c00, ONE << 16 | ONE], TWO),
        // 1 and half of its last place, and a little: rounded once.
        ("fma.rn.f16 h0, h1, h2, h3", &[0x1000, ONE, ONE], ONE),
        ("fma.rn.f16 h0, h1, h2, h3", &[0x1001, ONE, ONE], ONE + 1),
    ]);
}

#[test]
fn brain_halves() {
    let (one, two, three) = (0x3f80, 0x4000, 0x4040);
    check(&[
        ("add.bf16 h0, h1, h2", &[one, two], three),
        ("sub.rn.bf16 h0, h1, h2", &[one, two], one | MINUS),
        ("mul.bf16 h0, h1, h2", &[three, three], 0x4110),
        ("add.bf16x2 r0, r1, r2", &[one << 16 | two, two << 16 | one], 0x4040_4040),
        ("fma.rn.bf16 h0, h1, h2, h3", &[three, three, 0xc110], 0),
        ("fma.rn.relu.bf16 h0, h1, h2, h3", &[three, one | MINUS, one], 0),
        ("fma.rn.bf16x2 r0, r1, r2, r3", &[three << 16 | one, two << 16 | two, 0], 0x40c0_4000),
        // 7 · 37 = 259: between 258 and 260, of which 260 is even.
        ("fma.rn.bf16 h0, h1, h2, h3", &[0x40e0, 0x4214, 0], 0x4382),
        ("fma.rn.bf16 h0, h1, h2, h3", &[0x40e0, 0x4214, 0x8001], 0x4381),
        ("fma.rz.bf16 h0, h1, h2, h3", &[0x40e0, 0x4214, 0], 0x4381),
        ("fma.rp.relu.bf16x2 r0, r1, r2, r3", &[0x40e0_40e0, 0x4214_c214, 0], 0x4382_0000),
        ("neg.bf16 h0, h1", &[one], one | MINUS),
        ("abs.bf16x2 r0, r1", &[0xbf80_ff80], 0x3f80_7f80),
    ]);
}

#[test]
fn signs_extrema_functions() {
    check(&[
        ("neg.f16 h0, h1", &[ONE], ONE | MINUS),
        ("neg.ftz.f16x2 r0, r1", &[0x0001_8001], 0x8000_0000),
        ("abs.f16 h0, h1", &[0xfc00], 0x7c00),
        ("abs.f16x2 r0, r1", &[0xbc00_4000], 0x3c00_4000),
        ("min.f16 h0, h1, h2", &[MINUS, 0], MINUS),
        ("max.f16 h0, h1, h2", &[0x7e00, ONE], ONE),
        ("max.NaN.f16 h0, h1, h2", &[0x7e00, ONE], NAN),
        ("max.ftz.f16 h0, h1, h2", &[1, MINUS], 0),
        ("min.xorsign.abs.f16 h0, h1, h2", &[THREE | MINUS, TWO], TWO | MINUS),
        ("max.f16x2 r0, r1, r2", &[0x3c00_4000, 0x4200_bc00], 0x4200_4000),
        ("min.NaN.bf16x2 r0, r1, r2", &[0x7fc0_3f80, 0x3f80_4000], 0x7fff_3f80),
        ("max.xorsign.abs.bf16 h0, h1, h2", &[0xc040, 0xc000], 0x4040),
        ("ex2.approx.f16 h0, h1", &[THREE], 0x4800),
        ("ex2.approx.f16x2 r0, r1", &[0xfc00_3c00], 0x0000_4000),
        ("ex2.approx.ftz.bf16 h0, h1", &[0x8001], 0x3f80),
        ("ex2.approx.ftz.bf16x2 r0, r1", &[0x4040_7f80], 0x4100_7f80),
        ("tanh.approx.f16 h0, h1", &[0xfc00], ONE | MINUS),
        ("tanh.approx.f16x2 r0, r1", &[0x7c00_8000], 0x3c00_8000),
        ("tanh.approx.bf16 h0, h1", &[0x7f80], 0x3f80),
        ("tanh.approx.bf16x2 r0, r1", &[0x7fc0_0000], 0x7fff_0000),
    ]);
}

#[test]
fn mixed_and_packed_sums() {
    let pair = |high: f32, low: f32| u64::from(high.to_bits()) << 32 | u64::from(low.to_bits());
    check(&[
        ("add.f32.f16 r0, h1, r2", &[ONE, super::f(0.5)], super::f(1.5)),
        ("sub.f32.bf16 r0, h1, r2", &[0x3f80, super::f(0.25)], super::f(0.75)),
        ("fma.rn.f32.bf16 r0, h1, h2, r3", &[0x4040, 0x4040, super::f(0.5)], super::f(9.5)),
        ("add.f32x2 d0, d1, d2", &[pair(1.0, 2.0), pair(0.5, 0.25)], pair(1.5, 2.25)),
        ("mul.f32x2 d0, d1, d2", &[pair(3.0, 2.0), pair(0.5, 0.25)], pair(1.5, 0.5)),
        ("fma.rn.f32x2 d0, d1, d2, d3", &[pair(3.0, 2.0), pair(3.0, 2.0), pair(1.0, -4.0)], pair(10.0, 0.0)),
    ]);
}
