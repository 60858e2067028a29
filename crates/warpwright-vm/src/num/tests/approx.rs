//! The approximations, against the host's library in double precision and the ISA's bounds.

use super::super::approx::*;
use super::super::half::{bf16_to_f32, f16_to_f32, f32_to_bf16};
use super::Random;

/// Units in the last place between a result and the value it stands for.
fn ulps(result: f32, exact: f64) -> f64 {
    if result.is_infinite() || exact == 0.0 || exact.abs() > f64::from(f32::MAX) {
        let near = exact as f32;
        return if near == result || result.is_infinite() && near == f32::MAX { 0.0 } else { f64::INFINITY };
    }
    let exponent = exact.abs().log2().floor().max(-126.0);
    (f64::from(result) - exact).abs() / (exponent - 23.0).exp2()
}

#[test]
fn results_are_within_the_bounds() {
    let mut random = Random::new(30);
    for _ in 0..100_000 {
        let a = random.f32();
        let x = f64::from(a);
        if a.is_finite() {
            assert!(ulps(ex2::<false>(a), x.exp2()) < 0.51, "ex2 {a:e}");
            if x > 0.0 {
                assert!(ulps(rsqrt::<false>(a), 1.0 / x.sqrt()) < 0.51, "rsqrt {a:e}");
                assert!(ulps(lg2::<false>(a), x.log2()) < 0.51, "lg2 {a:e}");
            }
            assert!(ulps(tanh(a), x.tanh()) < 0.51, "tanh {a:e}");
        }
        let b = f64::from(random.below(1 << 24) as u32) / f64::from(1u32 << 24);
        for range in [std::f64::consts::TAU, 100.0 * std::f64::consts::PI, 1.0e6] {
            let a = ((2.0 * b - 1.0) * range) as f32;
            let x = f64::from(a);
            assert!((f64::from(sin::<false>(a)) - x.sin()).abs() < 6.0e-8, "sin {a:e}");
            assert!((f64::from(cos::<false>(a)) - x.cos()).abs() < 6.0e-8, "cos {a:e}");
        }
        assert!(!a.is_finite() || sin::<false>(a).abs() <= 1.0, "sin {a:e}");
    }
}

#[test]
fn small_angles_keep_their_sign() {
    let tiny = f32::from_bits(0x8000_0001);
    assert_eq!(sin::<false>(tiny).to_bits(), tiny.to_bits());
    assert_eq!(sin::<true>(tiny).to_bits(), 0x8000_0000);
    assert_eq!(sin::<false>(-0.0).to_bits(), 0x8000_0000);
    assert_eq!(cos::<false>(tiny), 1.0);
    assert_eq!(tanh(tiny).to_bits(), tiny.to_bits());
    assert_eq!(tanh(-0.0).to_bits(), 0x8000_0000);
}

#[test]
fn corner_cases_are_those_of_the_tables() {
    const INF: f32 = f32::INFINITY;
    const NAN: f32 = f32::from_bits(0x7fff_ffff);
    let same = |got: f32, expected: f32| assert_eq!(got.to_bits(), expected.to_bits());
    for nan in [NAN, f32::from_bits(0xff80_0001)] {
        let functions: [fn(f32) -> f32; 6] =
            [ex2::<false>, lg2::<false>, sin::<false>, cos::<false>, rsqrt::<false>, tanh];
        functions.iter().for_each(|function| same(function(nan), NAN));
    }
    for (a, ex, lg, rs, th) in [
        (-INF, 0.0, NAN, NAN, -1.0),
        (-0.0, 1.0, -INF, -INF, -0.0),
        (0.0, 1.0, -INF, INF, 0.0),
        (INF, INF, INF, 0.0, 1.0),
    ] {
        same(ex2::<false>(a), ex);
        same(lg2::<false>(a), lg);
        same(rsqrt::<false>(a), rs);
        same(tanh(a), th);
    }
    same(sin::<false>(INF), NAN);
    same(cos::<false>(-INF), NAN);
    same(lg2::<false>(-1.0), NAN);
    same(rsqrt::<false>(-1.0), NAN);
    same(lg2::<false>(1.0), 0.0);
    same(lg2::<false>(f32::from_bits(1)), -149.0);
    same(lg2::<true>(f32::from_bits(1)), -INF);
    same(rsqrt::<true>(f32::from_bits(1)), INF);
    same(ex2::<false>(-149.0), f32::from_bits(1));
    same(ex2::<true>(-127.0), 0.0);
    same(ex2::<false>(128.0), INF);
    (-126..128).for_each(|n| same(ex2::<false>(n as f32), (n as f64).exp2() as f32));
}

#[test]
fn large_divisors_of_the_approximate_quotient() {
    let (large, inf) = (1.5 * 2.0f32.powi(126), f32::INFINITY);
    assert_eq!(div::<false>(1.0, large).to_bits(), 0);
    assert_eq!(div::<false>(-1.0, large).to_bits(), 0x8000_0000);
    assert_eq!(div::<false>(1.0, -large).to_bits(), 0x8000_0000);
    assert_eq!(div::<false>(inf, large).to_bits(), 0x7fff_ffff);
    assert_eq!(div::<false>(1.0, inf), 0.0);
    assert_eq!(div::<false>(6.0, 3.0), 2.0);
    assert_eq!(div::<false>(large, 2.0f32.powi(126)), 1.5);
    assert_eq!(div::<true>(f32::from_bits(7), 0.5).to_bits(), 0);
}

#[test]
fn halves_are_within_their_bounds() {
    for bits in 0..=u16::MAX {
        let x = f64::from(f16_to_f32(bits));
        if x.is_finite() {
            let (got, exact) = (f64::from(f16_to_f32(ex2_f16(bits))), x.exp2());
            let overflow = got.is_infinite() && exact >= 65520.0;
            assert!(overflow || (got - exact).abs() <= (exact * 2.0f64.powf(-9.9)).max(2.0f64.powi(-25)));
            let got = f64::from(f16_to_f32(tanh_f16(bits)));
            assert!((got - x.tanh()).abs() <= 2.0f64.powf(-10.987), "{bits:04x}");
        }
        let x = f64::from(bf16_to_f32(bits));
        if x.is_finite() {
            let (got, exact) = (f64::from(bf16_to_f32(ex2_bf16(bits))), x.exp2());
            let flushed = got == 0.0 && exact < 2.0f64.powi(-126);
            let overflow = got.is_infinite() && exact > 3.38e38;
            assert!(flushed || overflow || (got - exact).abs() <= exact * 2.0f64.powi(-7), "{bits:04x}");
            assert!((f64::from(bf16_to_f32(tanh_bf16(bits))) - x.tanh()).abs() <= 2.0f64.powi(-8));
        }
    }
    assert_eq!(ex2_bf16(0x0001), f32_to_bf16(1.0));
    assert_eq!(ex2_f16(0xfc00), 0);
    assert_eq!(ex2_f16(0x7c00), 0x7c00);
    assert_eq!(ex2_f16(0x7e01), 0x7fff);
}

#[test]
fn crude_approximations_have_an_empty_low_word() {
    let mut random = Random::new(31);
    for _ in 0..10_000 {
        let a = random.f64();
        let (rcp, rsqrt) = (rcp_f64(a), rsqrt_ftz_f64(a));
        assert_eq!((rcp.to_bits() as u32, rsqrt.to_bits() as u32), (0, 0));
        if a.is_normal() && (1.0 / a).is_normal() {
            assert!((rcp * a - 1.0).abs() < 2.0f64.powi(-18), "{a:e}");
        }
        if a.is_normal() && a > 0.0 {
            assert!((rsqrt * a.sqrt() - 1.0).abs() < 2.0f64.powi(-18), "{a:e}");
        }
    }
    let subnormal = f64::from_bits(0x8000_0001_0000_0000);
    assert_eq!(rcp_f64(subnormal), f64::NEG_INFINITY);
    assert_eq!(rsqrt_ftz_f64(subnormal), f64::NEG_INFINITY);
    assert_eq!(rcp_f64(f64::NEG_INFINITY).to_bits(), 1 << 63);
    for nan in [rcp_f64(f64::NAN), rsqrt_ftz_f64(-1.0)] {
        assert_eq!(nan.to_bits(), 0x7fff_ffff_0000_0000);
    }
    assert_eq!(rsqrt_f64(0.25), 2.0);
    assert_eq!(rsqrt_f64(-1.0).to_bits(), 0xfff8_0000_0000_0000);
}
