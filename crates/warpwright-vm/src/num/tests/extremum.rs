//! Minimum and maximum, against the ISA's definition.

use super::super::extremum::*;
use super::Random;

const NAN: u32 = 0x7fff_ffff;

/// The definition for two values, `.f32`.
fn defined(max: bool, nan: bool, xorsign: bool, a: f32, b: f32) -> u32 {
    let sign = (a.to_bits() ^ b.to_bits()) & 0x8000_0000;
    let (a, b) = if xorsign { (a.abs(), b.abs()) } else { (a, b) };
    let less = a < b || a == b && a.is_sign_negative() && b.is_sign_positive();
    let number = match (a.is_nan(), b.is_nan()) {
        (true, true) => return NAN,
        (true, false) | (false, true) if nan => return NAN,
        (true, false) => b,
        (false, true) => a,
        _ if less != max => a,
        _ => b,
    };
    if xorsign { number.to_bits() & 0x7fff_ffff | sign } else { number.to_bits() }
}

#[test]
fn single_precision_follows_the_definition() {
    let mut random = Random::new(6);
    let mut values: Vec<f32> = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1.0, -1.0].into();
    values.push(f32::from_bits(0xff80_0001));
    values.extend((0..120).map(|_| random.f32()));
    for &a in &values {
        for &b in &values {
            macro_rules! same {
                ($max:literal, $nan:literal, $xorsign:literal) => {
                    let op = Extremum { max: $max, nan: $nan, xorsign: $xorsign, ..Extremum::default() };
                    let got = op.f32(a, b).to_bits();
                    let expected = defined($max, $nan, $xorsign, a, b);
                    assert_eq!(got, expected, "max {} {a:e} {b:e}", $max);
                };
            }
            same!(false, false, false);
            same!(true, false, false);
            same!(false, true, false);
            same!(true, true, false);
            same!(false, false, true);
            same!(true, true, true);
        }
    }
}

#[test]
fn the_other_formats_are_alike() {
    let mut random = Random::new(7);
    for _ in 0..50_000 {
        let (a, b) = (random.float(16, 10) as u16, random.float(16, 10) as u16);
        let wide = |bits| super::super::half::f16_to_f32(bits);
        let narrow = |x: u32| super::super::half::f32_to_f16(f32::from_bits(x));
        assert_eq!(
            Extremum { max: true, ftz: false, nan: false, xorsign: false, abs: false }.f16(a, b),
            narrow(defined(true, false, false, wide(a), wide(b)))
        );
        assert_eq!(
            Extremum { max: false, ftz: false, nan: true, xorsign: true, abs: false }.f16(a, b),
            narrow(defined(false, true, true, wide(a), wide(b))),
            "{a:04x} {b:04x}"
        );
        let wide = |bits| super::super::half::bf16_to_f32(bits);
        let narrow = |x: u32| super::super::half::f32_to_bf16(f32::from_bits(x));
        assert_eq!(
            Extremum { max: false, ftz: false, nan: true, xorsign: false, abs: false }.bf16(a, b),
            narrow(defined(false, true, false, wide(a), wide(b)))
        );
    }
    assert_eq!(Extremum { max: false, ..Extremum::default() }.f64(0.0, -0.0).to_bits(), (-0.0f64).to_bits());
    assert_eq!(Extremum { max: true, ..Extremum::default() }.f64(-0.0, 0.0).to_bits(), 0);
    assert_eq!(Extremum { max: true, ..Extremum::default() }.f64(f64::NAN, -3.0), -3.0);
    assert_eq!(
        Extremum { max: false, ..Extremum::default() }.f64(f64::NAN, f64::NAN).to_bits(),
        0x7ff8_0000_0000_0000
    );
}

#[test]
fn subnormals_are_flushed_before() {
    let small = f32::from_bits(0x8000_0001);
    assert_eq!(
        Extremum { max: true, ftz: true, nan: false, xorsign: false, abs: false }.f32(small, -1.0).to_bits(),
        0x8000_0000
    );
    assert_eq!(
        Extremum { max: true, ftz: false, nan: false, xorsign: false, abs: false }.f32(small, -1.0).to_bits(),
        0x8000_0001
    );
    assert_eq!(
        Extremum { max: true, ftz: true, nan: false, xorsign: false, abs: false }.f16(0x0001, 0x8001),
        0
    );
}
