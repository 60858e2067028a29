//! Single and double precision.

use super::{NAN, NEGATIVE_TINY, NEGATIVE_ZERO, TINY, check, f, g};

const INF: f32 = f32::INFINITY;
/// Half of the last place of 1.
const HALF_ULP: u64 = f(f32::EPSILON / 2.0);
const HALF_ULP64: u64 = g(f64::EPSILON / 2.0);
const NEXT: u64 = f(1.0) + 1;
const NEXT64: u64 = g(1.0) + 1;

#[test]
fn roundings() {
    check(&[
        ("add.f32 r0, r1, r2", &[f(1.0), HALF_ULP], f(1.0)),
        ("add.rn.f32 r0, r1, r2", &[NEXT, HALF_ULP], NEXT + 1),
        ("add.rz.f32 r0, r1, r2", &[NEXT, HALF_ULP], NEXT),
        ("add.rm.f32 r0, r1, r2", &[f(-1.0), HALF_ULP ^ NEGATIVE_ZERO], f(-1.0) + 1),
        ("add.rp.f32 r0, r1, r2", &[f(1.0), HALF_ULP], NEXT),
        ("add.rm.f32 r0, r1, r2", &[f(1.0), f(-1.0)], NEGATIVE_ZERO),
        ("add.rn.f32 r0, r1, r2", &[f(1.0), f(-1.0)], 0),
        ("sub.rp.f32 r0, r1, r2", &[f(1.0), TINY], f(1.0)),
        ("sub.rz.f32 r0, r1, r2", &[f(1.0), TINY], f(1.0) - 1),
        ("mul.rp.f32 r0, r1, r2", &[NEXT, NEXT], f(1.0) + 3),
        ("mul.rn.f32 r0, r1, r2", &[NEXT, NEXT], f(1.0) + 2),
        ("mul.rz.f32 r0, r1, r2", &[f(f32::MAX), f(2.0)], f(f32::MAX)),
        ("mul.rn.f32 r0, r1, r2", &[f(f32::MAX), f(2.0)], f(INF)),
        ("fma.rn.f32 r0, r1, r2, r3", &[NEXT, NEXT, f(-1.0) + 2], f(2.0f32.powi(-46))),
        ("fma.rm.f32 r0, r1, r2, r3", &[f(3.0), f(5.0), TINY], f(15.0)),
        ("fma.rp.f32 r0, r1, r2, r3", &[f(3.0), f(5.0), TINY], f(15.0) + 1),
        ("mad.rz.f32 r0, r1, r2, r3", &[f(3.0), f(5.0), NEGATIVE_TINY], f(15.0) - 1),
        ("div.rn.f32 r0, r1, r2", &[f(1.0), f(3.0)], 0x3eaa_aaab),
        ("div.rz.f32 r0, r1, r2", &[f(1.0), f(3.0)], 0x3eaa_aaaa),
        ("rcp.rp.f32 r0, r1", &[f(-3.0)], 0xbeaa_aaaa),
        ("rcp.rm.f32 r0, r1", &[f(-3.0)], 0xbeaa_aaab),
        ("sqrt.rn.f32 r0, r1", &[f(2.0)], 0x3fb5_04f3),
        ("sqrt.rp.f32 r0, r1", &[f(2.0)], 0x3fb5_04f4),
        ("sqrt.rm.f32 r0, r1", &[f(4.0)], f(2.0)),
        ("add.f64 d0, d1, d2", &[g(1.0), HALF_ULP64], g(1.0)),
        ("add.rp.f64 d0, d1, d2", &[g(1.0), HALF_ULP64], NEXT64),
        ("mul.rz.f64 d0, d1, d2", &[NEXT64, NEXT64], g(1.0) + 2),
        ("fma.rn.f64 d0, d1, d2, d3", &[NEXT64, NEXT64, g(-1.0) + 2], g(2.0f64.powi(-104))),
        ("fma.rp.f64 d0, d1, d2, d3", &[g(3.0), g(5.0), 1], g(15.0) + 1),
        ("div.rm.f64 d0, d1, d2", &[g(-1.0), g(3.0)], g(-1.0 / 3.0) + 1),
        ("rcp.rn.f64 d0, d1", &[g(3.0)], g(1.0 / 3.0)),
        ("sqrt.rn.f64 d0, d1", &[g(2.0)], 0x3ff6_a09e_667f_3bcd),
        ("sqrt.rz.f64 d0, d1", &[g(2.0)], 0x3ff6_a09e_667f_3bcc),
    ]);
}

#[test]
fn subnormals_and_saturation() {
    let smallest = f(f32::MIN_POSITIVE);
    check(&[
        ("add.f32 r0, r1, r2", &[TINY, TINY], 2),
        ("add.ftz.f32 r0, r1, r2", &[NEGATIVE_TINY, NEGATIVE_TINY], NEGATIVE_ZERO),
        ("sub.ftz.f32 r0, r1, r2", &[smallest + 1, smallest], 0),
        ("mul.ftz.f32 r0, r1, r2", &[smallest, f(-0.5)], NEGATIVE_ZERO),
        ("mul.f32 r0, r1, r2", &[smallest, f(0.5)], smallest / 2),
        ("add.rp.ftz.f32 r0, r1, r2", &[f(1.0), TINY], f(1.0)),
        ("fma.rn.ftz.f32 r0, r1, r2, r3", &[TINY, f(1.0e38), f(1.0)], f(1.0)),
        ("div.full.ftz.f32 r0, r1, r2", &[TINY, TINY], NAN),
        ("abs.ftz.f32 r0, r1", &[NEGATIVE_TINY], 0),
        ("neg.ftz.f32 r0, r1", &[TINY], NEGATIVE_ZERO),
        ("neg.f32 r0, r1", &[TINY], NEGATIVE_TINY),
        ("add.sat.f32 r0, r1, r2", &[f(0.75), f(0.75)], f(1.0)),
        ("sub.sat.f32 r0, r1, r2", &[f(0.25), f(0.75)], 0),
        ("mul.sat.f32 r0, r1, r2", &[0, f(INF)], 0),
        ("mul.rz.sat.f32 r0, r1, r2", &[f(3.0), f(3.0)], f(1.0)),
        ("fma.rn.sat.f32 r0, r1, r2, r3", &[f(0.5), f(0.5), f(0.25)], f(0.5)),
        ("fma.rm.sat.f32 r0, r1, r2, r3", &[f(INF), 0, 0], 0),
        ("add.ftz.sat.f32 r0, r1, r2", &[TINY, 0], 0),
    ]);
}

#[test]
fn nan() {
    let payload = 0xffc1_2345;
    let wide = 0x7ff0_0000_0000_0001;
    check(&[
        ("add.f32 r0, r1, r2", &[payload, f(1.0)], NAN),
        ("add.rz.f32 r0, r1, r2", &[f(INF), f(-INF)], NAN),
        ("mul.f32 r0, r1, r2", &[0, f(INF)], NAN),
        ("fma.rn.f32 r0, r1, r2, r3", &[f(1.0), f(1.0), payload], NAN),
        ("sqrt.rn.f32 r0, r1", &[f(-1.0)], NAN),
        ("sqrt.rn.f32 r0, r1", &[NEGATIVE_ZERO], NEGATIVE_ZERO),
        ("abs.f32 r0, r1", &[payload], NAN),
        ("add.f64 d0, d1, d2", &[g(1.0), wide], wide | 1 << 51),
        ("add.rm.f64 d0, d1, d2", &[g(1.0), wide], wide | 1 << 51),
        ("mul.f64 d0, d1, d2", &[0, g(f64::INFINITY)], 0xfff8 << 48),
        ("abs.f64 d0, d1", &[wide | 1 << 63], wide | 1 << 63 | 1 << 51),
        ("neg.f64 d0, d1", &[wide], wide | 1 << 51),
        ("copysign.f32 r0, r1, r2", &[f(-1.0), f(3.0)], f(-3.0)),
        ("copysign.f64 d0, d1, d2", &[g(1.0), g(-3.0)], g(3.0)),
    ]);
}

/// Which NaN an H200 returns.
#[test]
fn nan_of_an_operand() {
    let [a, b, c] = [0xfff0_0000_0000_0003, 0x7ff1_9999_9999_9999, 0x7ffa_aaaa_aaaa_aaaa];
    let [quiet_a, quiet_b] = [a | 1 << 51, b | 1 << 51];
    check(&[
        ("add.f64 d0, d1, d2", &[a, b], quiet_b),
        ("add.rz.f64 d0, d1, d2", &[a, b], quiet_b),
        ("sub.f64 d0, d1, d2", &[a, b], quiet_b),
        ("sub.rp.f64 d0, d1, d2", &[a, g(1.0)], quiet_a),
        ("mul.f64 d0, d1, d2", &[a, b], quiet_b),
        ("mul.rm.f64 d0, d1, d2", &[b, a], quiet_a),
        ("fma.rn.f64 d0, d1, d2, d3", &[a, b, c], quiet_b),
        ("fma.rn.f64 d0, d1, d2, d3", &[a, g(1.0), c], c),
        ("fma.rp.f64 d0, d1, d2, d3", &[a, g(1.0), c], c),
        ("mad.rn.f64 d0, d1, d2, d3", &[a, g(1.0), 0], quiet_a),
        ("fma.rn.f64 d0, d1, d2, d3", &[g(f64::INFINITY), 0, c], c),
        ("div.rn.f64 d0, d1, d2", &[a, b], quiet_a),
        ("min.f64 d0, d1, d2", &[a, b], quiet_b),
        ("max.f64 d0, d1, d2", &[c, a], quiet_a),
        ("neg.f64 d0, d1", &[c], c),
        ("abs.f64 d0, d1", &[u64::MAX], u64::MAX),
    ]);
}

/// Results whose rounding without a limit of exponents is below the smallest normal number, from an H200.
#[test]
fn flushed_results() {
    let smallest = f(f32::MIN_POSITIVE);
    let negative = smallest | NEGATIVE_ZERO;
    check(&[
        ("mul.ftz.f32 r0, r1, r2", &[0x00ff_ffff, 0x3f00_0000], 0),
        ("mul.f32 r0, r1, r2", &[0x00ff_ffff, 0x3f00_0000], smallest),
        ("mul.ftz.sat.f32 r0, r1, r2", &[0x8080_0000, 0xbf7f_ffff], 0),
        ("mul.rm.ftz.f32 r0, r1, r2", &[0x0080_0000, 0xbf7f_ffff], NEGATIVE_ZERO),
        ("mul.rp.ftz.f32 r0, r1, r2", &[0x3eff_ffff, 0x00ff_ffff], 0),
        ("div.rp.ftz.f32 r0, r1, r2", &[0x0080_0000, 0x3f80_0001], 0),
        ("fma.rn.ftz.f32 r0, r1, r2, r3", &[0xbf7f_ffff, 0x0080_0000, 0x8000_0001], NEGATIVE_ZERO),
        // More than half of the last place above the largest number that is flushed.
        ("fma.rn.ftz.f32 r0, r1, r2, r3", &[0x1f80_0000, 0x9380_0000, smallest], smallest),
        ("fma.rz.ftz.f32 r0, r1, r2, r3", &[0x1f80_0000, 0x9380_0000, smallest], 0),
        ("fma.rm.ftz.f32 r0, r1, r2, r3", &[0x1f80_0000, 0x1380_0000, negative], negative),
        ("fma.rp.ftz.f32 r0, r1, r2, r3", &[0x1f80_0000, 0x1380_0000, negative], NEGATIVE_ZERO),
        ("mul.ftz.f16 h0, h1, h2", &[0x07ff, 0xb800], 0x8000),
        ("mul.ftz.sat.f16 h0, h1, h2", &[0x2000, 0x1fff], 0),
        ("mul.ftz.f16x2 r0, r1, r2", &[0x97ff_9bff, 0x2800_4980], 0x8000_a97f),
        ("fma.rn.ftz.f16 h0, h1, h2, h3", &[0x2000, 0x9fff, 0x00ff], 0x8000),
        ("cvt.rn.ftz.f32.f64 r0, d1", &[0x380f_ffff_e8c9_d9fb], 0),
        ("cvt.rn.ftz.sat.f32.f64 r0, d1", &[0x380f_ffff_e8c9_d9fb], 0),
    ]);
}

#[test]
fn extrema() {
    check(&[
        ("min.f32 r0, r1, r2", &[NEGATIVE_ZERO, 0], NEGATIVE_ZERO),
        ("max.f32 r0, r1, r2", &[NEGATIVE_ZERO, 0], 0),
        ("min.f32 r0, r1, r2", &[NAN, f(3.0)], f(3.0)),
        ("max.f32 r0, r1, r2", &[f(-3.0), NAN], f(-3.0)),
        ("max.f32 r0, r1, r2", &[0xff80_0001, 0x7f80_0001], NAN),
        ("min.NaN.f32 r0, r1, r2", &[f(3.0), 0xffff_ffff], NAN),
        ("max.NaN.f32 r0, r1, r2", &[f(3.0), f(2.0)], f(3.0)),
        ("min.xorsign.abs.f32 r0, r1, r2", &[f(-3.0), f(2.0)], f(-2.0)),
        ("max.xorsign.abs.f32 r0, r1, r2", &[f(-3.0), f(-2.0)], f(3.0)),
        ("max.ftz.f32 r0, r1, r2", &[TINY, NEGATIVE_ZERO], 0),
        ("max.f32 r0, r1, r2", &[TINY, NEGATIVE_ZERO], TINY),
        ("min.ftz.NaN.f32 r0, r1, r2", &[NEGATIVE_TINY, 0], NEGATIVE_ZERO),
        ("min.f64 d0, d1, d2", &[1 << 63, 0], 1 << 63),
        ("max.f64 d0, d1, d2", &[g(f64::NAN), g(-3.0)], g(-3.0)),
        ("max.f32 r0, r1, r2, r3", &[f(1.0), f(5.0), f(3.0)], f(5.0)),
    ]);
}

#[test]
fn classes() {
    let values = [0, TINY, f(1.0), f(INF), NAN];
    // Which of zero, a subnormal, a normal number, infinity and NaN are of the class.
    for (class, expected) in [
        ("finite", [1, 1, 1, 0, 0]),
        ("infinite", [0, 0, 0, 1, 0]),
        ("number", [1, 1, 1, 1, 0]),
        ("notanumber", [0, 0, 0, 0, 1]),
        // Zeros are considered normal numbers.
        ("normal", [1, 0, 1, 0, 0]),
        ("subnormal", [0, 1, 0, 0, 0]),
    ] {
        let text = format!("testp.{class}.f32 p0, r1");
        let wide = format!("testp.{class}.f64 p0, d1");
        for (value, expected) in values.into_iter().zip(expected) {
            let x = f32::from_bits(value as u32);
            // A subnormal of single precision is a normal number of double precision.
            let double = if value == TINY { 1 } else { g(x.into()) };
            check(&[(&text, &[value], expected), (&wide, &[double], expected)]);
        }
    }
}

#[test]
fn approximations_in_their_corners() {
    let inf = f(INF);
    check(&[
        ("rcp.approx.f32 r0, r1", &[NEGATIVE_ZERO], f(-INF)),
        ("rcp.approx.f32 r0, r1", &[inf], 0),
        ("rcp.approx.ftz.f32 r0, r1", &[TINY], inf),
        ("rcp.approx.ftz.f32 r0, r1", &[f(f32::MAX)], 0),
        ("div.approx.f32 r0, r1, r2", &[inf, f(2.0f32.powi(127))], NAN),
        ("div.approx.f32 r0, r1, r2", &[f(-1.0), f(1.5 * 2.0f32.powi(126))], NEGATIVE_ZERO),
        ("div.full.f32 r0, r1, r2", &[f(2.0f32.powi(127)), f(2.0f32.powi(127))], f(1.0)),
        ("sqrt.approx.f32 r0, r1", &[f(-1.0)], NAN),
        ("sqrt.approx.f32 r0, r1", &[f(9.0)], f(3.0)),
        ("rsqrt.approx.f32 r0, r1", &[f(0.25)], f(2.0)),
        ("rsqrt.approx.ftz.f32 r0, r1", &[NEGATIVE_TINY], f(-INF)),
        ("rsqrt.approx.f64 d0, d1", &[g(16.0)], g(0.25)),
        ("rsqrt.approx.ftz.f64 d0, d1", &[1], g(f64::INFINITY)),
        ("rcp.approx.ftz.f64 d0, d1", &[g(0.5)], g(2.0)),
        ("rcp.approx.ftz.f64 d0, d1", &[g(f64::NAN)], 0x7fff_ffff_0000_0000),
        ("sin.approx.f32 r0, r1", &[NEGATIVE_ZERO], NEGATIVE_ZERO),
        ("sin.approx.f32 r0, r1", &[inf], NAN),
        ("cos.approx.f32 r0, r1", &[0], f(1.0)),
        ("lg2.approx.f32 r0, r1", &[f(8.0)], f(3.0)),
        ("lg2.approx.f32 r0, r1", &[NEGATIVE_ZERO], f(-INF)),
        ("lg2.approx.f32 r0, r1", &[TINY], f(-149.0)),
        ("lg2.approx.ftz.f32 r0, r1", &[TINY], f(-INF)),
        ("lg2.approx.f32 r0, r1", &[f(-1.0)], NAN),
        ("ex2.approx.f32 r0, r1", &[f(-149.0)], TINY),
        ("ex2.approx.ftz.f32 r0, r1", &[f(-149.0)], 0),
        ("ex2.approx.f32 r0, r1", &[f(-INF)], 0),
        ("ex2.approx.f32 r0, r1", &[f(10.0)], f(1024.0)),
        ("tanh.approx.f32 r0, r1", &[f(-INF)], f(-1.0)),
        ("tanh.approx.f32 r0, r1", &[NEGATIVE_ZERO], NEGATIVE_ZERO),
    ]);
}
