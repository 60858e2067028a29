//! Conversions: exhaustive for small formats, against the reference library for large ones.

use super::super::convert::*;
use super::super::exact::{Direction, Format};
use super::super::half::*;
use super::{DIRECTIONS, Random};
use rustc_apfloat::ieee::{BFloat, Double, Float8E4M3FN, Float8E5M2, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

const INTEGERS: [(u32, bool); 8] =
    [(8, false), (16, false), (32, false), (64, false), (8, true), (16, true), (32, true), (64, true)];

fn integer(bits: u32, signed: bool) -> Kind {
    Kind::Integer { bits, signed }
}

fn range(bits: u32, signed: bool) -> (i128, i128) {
    super::super::integer::range(bits, signed)
}

fn extend(bits: u64, width: u32, signed: bool) -> i128 {
    let value = i128::from(bits) & ((1 << width) - 1);
    if signed && value >> (width - 1) == 1 { value - (1 << width) } else { value }
}

#[test]
fn integers_are_cut_or_limited() {
    let mut random = Random::new(40);
    for _ in 0..50_000 {
        let (a_bits, a_signed) = INTEGERS[random.below(8) as usize];
        let (d_bits, d_signed) = INTEGERS[random.below(8) as usize];
        let bits = random.integer();
        let value = extend(bits, a_bits, a_signed);
        let cut = Conversion::new(integer(d_bits, d_signed), integer(a_bits, a_signed), Direction::Nearest);
        assert_eq!(cut.apply(bits), extend(value as u64, d_bits, d_signed) as u64);
        let (low, high) = range(d_bits, d_signed);
        assert_eq!(Conversion { sat: true, ..cut }.apply(bits), value.clamp(low, high) as u64);
    }
}

fn check_to_integer<F: Float>(random: &mut Random, format: Format, fraction: u32) {
    for _ in 0..60_000 {
        let mut bits = random.float(format.width, fraction);
        if random.below(2) == 0 {
            // Values that are near integers of every size.
            let near = F::from_i128(i128::from(random.integer() as i64)).value;
            bits = (near.to_bits() as u64).wrapping_add(random.below(3)).wrapping_sub(1);
        }
        let (width, signed) = INTEGERS[random.below(8) as usize];
        let (direction, round) = DIRECTIONS[[0, 2, 3, 4][random.below(4) as usize]];
        let convert = Conversion::new(integer(width, signed), Kind::Float(format), direction);
        let value = F::from_bits(bits.into());
        let expected = if value.is_nan() {
            let nan = if format != Format::F64 && width < 64 { 0 } else { 1u64 << (width - 1) };
            extend(nan, width, signed) as u64
        } else if signed {
            value.to_i128_r(width as usize, round, &mut false).value as u64
        } else {
            value.to_u128_r(width as usize, round, &mut false).value as u64
        };
        assert_eq!(convert.apply(bits), expected, "{bits:x} {convert:?}");
    }
}

#[test]
fn numbers_become_integers_in_every_direction() {
    let mut random = Random::new(41);
    check_to_integer::<Double>(&mut random, Format::F64, 52);
    check_to_integer::<Single>(&mut random, Format::F32, 23);
    check_to_integer::<Half>(&mut random, Format::F16, 10);
    check_to_integer::<BFloat>(&mut random, Format::BF16, 7);
}

#[test]
fn integers_become_numbers_in_every_direction() {
    let mut random = Random::new(42);
    for _ in 0..100_000 {
        let (width, signed) = INTEGERS[random.below(8) as usize];
        let bits = random.integer();
        let value = extend(bits, width, signed);
        let (direction, round) = DIRECTIONS[[0, 2, 3, 4][random.below(4) as usize]];
        let result =
            |format| Conversion::new(Kind::Float(format), integer(width, signed), direction).apply(bits);
        let single = Single::from_i128_r(value, round).value.to_bits() as u64;
        assert_eq!(result(Format::F32), single, "{value} {direction:?}");
        assert_eq!(result(Format::F64), Double::from_i128_r(value, round).value.to_bits() as u64);
        assert_eq!(result(Format::F16), Half::from_i128_r(value, round).value.to_bits() as u64);
        assert_eq!(result(Format::BF16), BFloat::from_i128_r(value, round).value.to_bits() as u64);
    }
}

fn check_between<A, B>(random: &mut Random, a: Format, b: Format)
where
    A: Float + FloatConvert<B>,
    B: Float,
{
    for _ in 0..50_000 {
        let bits = random.float(a.width, a.precision - 1);
        let (direction, round) = DIRECTIONS[random.below(5) as usize];
        let value = A::from_bits(bits.into());
        if value.is_nan() {
            continue;
        }
        let expected = value.convert_r(round, &mut false).value.to_bits() as u64;
        let convert = Conversion::new(Kind::Float(b), Kind::Float(a), direction);
        assert_eq!(convert.apply(bits), expected, "{bits:x} {convert:?}");
    }
}

#[test]
fn formats_are_converted_in_every_direction() {
    let mut random = Random::new(43);
    check_between::<Double, Single>(&mut random, Format::F64, Format::F32);
    check_between::<Double, Half>(&mut random, Format::F64, Format::F16);
    check_between::<Double, BFloat>(&mut random, Format::F64, Format::BF16);
    check_between::<Single, Double>(&mut random, Format::F32, Format::F64);
    check_between::<Single, Half>(&mut random, Format::F32, Format::F16);
    check_between::<Single, BFloat>(&mut random, Format::F32, Format::BF16);
    check_between::<Half, BFloat>(&mut random, Format::F16, Format::BF16);
    check_between::<BFloat, Half>(&mut random, Format::BF16, Format::F16);
}

#[test]
fn integral_values_keep_signs() {
    let mut random = Random::new(44);
    for _ in 0..100_000 {
        let (a, b) = (random.f32(), random.f64());
        macro_rules! check {
            ($direction:ident, $general:expr, $round:expr) => {
                let general = Conversion {
                    integral: true,
                    ..Conversion::new(Kind::Float(Format::F32), Kind::Float(Format::F32), $general)
                };
                let reference = Single::from_bits(a.to_bits().into()).round_to_integral($round).value;
                let reference = if a.is_nan() { 0x7fff_ffff } else { reference.to_bits() as u32 };
                assert_eq!(round_f32::<$direction, false>(a).to_bits(), reference, "{a:e}");
                assert_eq!(general.apply(a.to_bits().into()), reference.into(), "{a:e}");
                let general =
                    Conversion { d: Kind::Float(Format::F64), a: Kind::Float(Format::F64), ..general };
                assert_eq!(general.apply(b.to_bits()), round_f64::<$direction>(b).to_bits(), "{b:e}");
            };
        }
        check!(NEAREST, Direction::Nearest, Round::NearestTiesToEven);
        check!(ZERO, Direction::Zero, Round::TowardZero);
        check!(DOWN, Direction::Down, Round::TowardNegative);
        check!(UP, Direction::Up, Round::TowardPositive);
    }
    assert_eq!(round_f32::<UP, false>(-0.5).to_bits(), 0x8000_0000);
}

#[test]
fn the_fast_ways_give_what_the_general_one_does() {
    let mut random = Random::new(45);
    let float = Kind::Float;
    for _ in 0..100_000 {
        let (a, b) = (random.f32(), random.f64());
        let general = |d: Kind, direction, ftz| {
            Conversion { ftz, ..Conversion::new(d, float(Format::F32), direction) }.apply(a.to_bits().into())
        };
        let wide = |d: Kind, direction| Conversion::new(d, float(Format::F64), direction).apply(b.to_bits());
        assert_eq!(
            f32_to_s32::<ZERO, false>(a) as i64 as u64,
            general(integer(32, true), Direction::Zero, false)
        );
        assert_eq!(u64::from(f32_to_u32::<UP, true>(a)), general(integer(32, false), Direction::Up, true));
        assert_eq!(f32_to_s64::<DOWN, false>(a) as u64, general(integer(64, true), Direction::Down, false));
        assert_eq!(f32_to_u64::<NEAREST, true>(a), general(integer(64, false), Direction::Nearest, true));
        assert_eq!(f64_to_s32::<DOWN>(b) as i64 as u64, wide(integer(32, true), Direction::Down), "{b:e}");
        assert_eq!(u64::from(f64_to_u32::<ZERO>(b)), wide(integer(32, false), Direction::Zero));
        assert_eq!(f64_to_s64::<NEAREST>(b) as u64, wide(integer(64, true), Direction::Nearest));
        assert_eq!(f64_to_u64::<UP>(b), wide(integer(64, false), Direction::Up));
        assert_eq!(u64::from(f64_to_f32::<false>(b).to_bits()), wide(float(Format::F32), Direction::Nearest));
        assert_eq!(f32_to_f64(a).to_bits(), general(float(Format::F64), Direction::Nearest, false));
        assert_eq!(u64::from(f32_to_f16(a)), general(float(Format::F16), Direction::Nearest, false));
        assert_eq!(u64::from(f32_to_bf16(a)), general(float(Format::BF16), Direction::Nearest, false));
        let finite = |format| {
            let conversion = Conversion::new(float(format), float(Format::F32), Direction::Nearest);
            Conversion { satfinite: true, ..conversion }.apply(a.to_bits().into())
        };
        assert_eq!(u64::from(f32_to_f16_finite(a)), finite(Format::F16), "{a:e}");
        assert_eq!(u64::from(f32_to_bf16_finite(a)), finite(Format::BF16), "{a:e}");
        let tf32 = general(float(Format::TF32), Direction::NearestAway, false);
        assert_eq!(u64::from(f32_to_tf32_away(a)), tf32, "{a:e}");
        let sat = Conversion {
            sat: true,
            ..Conversion::new(float(Format::F32), float(Format::F32), Direction::Nearest)
        };
        assert_eq!(u64::from(sat_f32::<false>(a).to_bits()), sat.apply(a.to_bits().into()), "{a:e}");
    }
}

#[test]
fn every_small_number_becomes_a_half() {
    for bits in 0..=u8::MAX {
        let mut lossy = false;
        let half = |value: Half| if value.is_nan() { 0x7fff } else { value.to_bits() as u16 };
        let e4m3: Half = Float8E4M3FN::from_bits(bits.into()).convert(&mut lossy).value;
        assert_eq!(e4m3_to_f16(bits), half(e4m3), "{bits:02x}");
        let e5m2: Half = Float8E5M2::from_bits(bits.into()).convert(&mut lossy).value;
        assert_eq!(e5m2_to_f16(bits), half(e5m2), "{bits:02x}");
        assert!(!lossy);
    }
}

#[test]
fn small_formats_take_the_nearest_number_they_have() {
    let formats = [Format::E4M3, Format::E5M2, Format::E2M3, Format::E3M2, Format::E2M1];
    let mut random = Random::new(46);
    for format in formats {
        // All numbers that are not negative, in order, as single precision.
        let widen = Conversion::new(Kind::Float(Format::F32), Kind::Float(format), Direction::Nearest);
        let numbers: Vec<f64> =
            (0..=format.largest).map(|bits| f64::from(f32::from_bits(widen.apply(bits) as u32))).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b));
        let largest = *numbers.last().unwrap();
        for _ in 0..30_000 {
            let a = match random.below(3) {
                0 => random.f32(),
                1 => {
                    // A tie, or beside one.
                    let at = random.below(format.largest) as usize;
                    let tie = ((numbers[at] + numbers[at + 1]) / 2.0) as f32;
                    f32::from_bits(tie.to_bits() + random.below(3) as u32 - 1)
                }
                _ => (random.below(1 << 16) as f32 / 32768.0 - 1.0) * largest as f32 * 1.1,
            };
            let got = u64::from(to_small(&format, Direction::Nearest, false, a));
            if a.is_nan() {
                assert_eq!(got, format.nan.unwrap_or(format.largest));
                continue;
            }
            let x = f64::from(a).abs().min(largest);
            let nearest = (0..numbers.len())
                .min_by(|&i, &j| {
                    let distance = |k: usize| (numbers[k] - x).abs();
                    distance(i).total_cmp(&distance(j)).then((i & 1).cmp(&(j & 1)))
                })
                .unwrap() as u64;
            let sign = u64::from(a.is_sign_negative()) << (format.width - 1);
            assert_eq!(got, nearest | sign, "{a:e} {format:?}");
            let relu = u64::from(to_small(&format, Direction::Nearest, true, a));
            assert_eq!(relu, if sign == 0 { nearest } else { 0 });
        }
    }
    assert_eq!(to_small(&Format::E4M3, Direction::Nearest, false, 449.0), 0x7e);
    assert_eq!(to_small(&Format::E4M3, Direction::Nearest, false, f32::NEG_INFINITY), 0xfe);
    assert_eq!(to_small(&Format::E5M2, Direction::Nearest, false, 1.0e9), 0x7b);
}

#[test]
fn modifiers_of_results() {
    let to = |d| Conversion::new(Kind::Float(d), Kind::Float(Format::F32), Direction::Nearest);
    let apply = |convert: Conversion, a: f32| convert.apply(a.to_bits().into());
    let half = to(Format::F16);
    assert_eq!(apply(half, 1.0e6), 0x7c00);
    assert_eq!(apply(Conversion { satfinite: true, ..half }, 1.0e6), 0x7bff);
    assert_eq!(apply(Conversion { satfinite: true, ..half }, f32::NEG_INFINITY), 0xfbff);
    assert_eq!(apply(Conversion { satfinite: true, ..half }, f32::NAN), 0x7fff);
    assert_eq!(apply(Conversion { relu: true, ..half }, -2.0), 0);
    assert_eq!(apply(Conversion { relu: true, ..half }, -0.0), 0);
    assert_eq!(apply(Conversion { relu: true, ..half }, -f32::NAN), 0x7fff);
    assert_eq!(apply(Conversion { positive_zero: true, ..half }, -1.0e-20), 0);
    assert_eq!(apply(half, -1.0e-20), 0x8000);
    assert_eq!(apply(Conversion { sat: true, ..half }, 7.0), 0x3c00);
    assert_eq!(apply(Conversion { sat: true, ..half }, f32::NAN), 0);
    let small = f32::from_bits(0x8000_0001);
    let integral = Conversion { integral: true, direction: Direction::Down, ..to(Format::F32) };
    assert_eq!(apply(integral, small), (-1.0f32).to_bits().into());
    assert_eq!(apply(Conversion { ftz: true, ..integral }, small), 0x8000_0000);
    let down = Conversion::new(Kind::Float(Format::F32), Kind::Float(Format::F64), Direction::Nearest);
    let tiny = (-1.0e-40f64).to_bits();
    assert_ne!(down.apply(tiny), 0x8000_0000);
    assert_eq!(Conversion { ftz: true, ..down }.apply(tiny), 0x8000_0000);
    // Infinity stays beside the nearest; a direction away from it stops at the largest number.
    let zero = Conversion { direction: Direction::Zero, ..half };
    assert_eq!(apply(zero, 1.0e6), 0x7bff);
    assert_eq!(apply(zero, f32::INFINITY), 0x7c00);
}

#[test]
fn pairs_are_packed_with_saturation() {
    assert_eq!(pack(16, true, -40_000, 7, 0), 0x8000_0007);
    assert_eq!(pack(16, false, -1, 70_000, 0), 0x0000_ffff);
    assert_eq!(pack(8, false, 300, -1, 0x1122_3344), 0x3344_ff00);
    assert_eq!(pack(4, true, 7, -9, 0x0abb_ccdd), 0xbbcc_dd78);
    assert_eq!(pack(2, true, 1, -3, 0xf), 0xf6);
}
