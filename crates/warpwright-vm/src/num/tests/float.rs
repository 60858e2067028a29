//! Arithmetic on `.f32` and `.f64`.

use super::super::float::*;
use super::super::{Direction, Format};
use super::{DIRECTIONS, Random};
use rustc_apfloat::ieee::{Double, Single};
use rustc_apfloat::{Float, Round};

fn apply<F: Float>(operation: Operation, [a, b, c]: [F; 3], round: Round) -> F {
    match operation {
        Operation::Add => a.add_r(b, round).value,
        Operation::Sub => a.sub_r(b, round).value,
        Operation::Mul => a.mul_r(b, round).value,
        Operation::Div => a.div_r(b, round).value,
        Operation::Rcp => F::from_u128(1).value.div_r(a, round).value,
        Operation::Fma => a.mul_add_r(b, c, round).value,
        Operation::Sqrt => unreachable!("the other library has no square root"),
    }
}

const OPERATIONS: [Operation; 6] =
    [Operation::Add, Operation::Sub, Operation::Mul, Operation::Div, Operation::Rcp, Operation::Fma];

/// The other library's result, with our NaN.
fn reference<F: Float>(operation: Operation, format: &Format, operands: [u64; 3], round: Round) -> u64 {
    let result = apply(operation, operands.map(|bits| F::from_bits(bits.into())), round);
    if result.is_nan() { format.nan_bits() } else { result.to_bits() as u64 }
}

#[test]
fn every_direction_rounds_as_the_reference_does() {
    let mut random = Random::new(1);
    for _ in 0..100_000 {
        let wide = [0; 3].map(|_| random.float(64, 52));
        let narrow = [0; 3].map(|_| random.float(32, 23));
        let half = [0; 3].map(|_| random.float(16, 10));
        let brain = [0; 3].map(|_| random.float(16, 7));
        let operation = OPERATIONS[random.below(6) as usize];
        let (direction, round) = DIRECTIONS[random.below(5) as usize];
        let check = |format: &Format, operands: [u64; 3], expected: u64| {
            assert_eq!(
                directed(operation, format, direction, operands),
                expected,
                "{operation:?} {direction:?} {operands:x?} {format:?}"
            );
        };
        check(&Format::F64, wide, reference::<Double>(operation, &Format::F64, wide, round));
        check(&Format::F32, narrow, reference::<Single>(operation, &Format::F32, narrow, round));
        type Half = rustc_apfloat::ieee::Half;
        type Brain = rustc_apfloat::ieee::BFloat;
        check(&Format::F16, half, reference::<Half>(operation, &Format::F16, half, round));
        check(&Format::BF16, brain, reference::<Brain>(operation, &Format::BF16, brain, round));
    }
}

#[test]
fn single_precision_rounds_as_the_general_way_does() {
    let mut random = Random::new(5);
    let edges = [0.0, 1.0, f32::MIN_POSITIVE, f32::from_bits(1), f32::MAX, f32::INFINITY, f32::NAN];
    for _ in 0..400_000 {
        let operands = [0; 3].map(|_| match random.below(8) {
            0 => edges[random.below(7) as usize].copysign(random.f32()),
            // Close to each other, so that sums cancel.
            1..=3 => f32::from_bits(0x3f80_0000 | random.below(64) as u32).copysign(random.f32()),
            _ => random.f32(),
        });
        let operation = OPERATIONS[random.below(6) as usize];
        let (direction, _) = DIRECTIONS[random.below(5) as usize];
        let bits = operands.map(|x| u64::from(x.to_bits()));
        let result = directed_f32(operation, direction, false, false, operands).to_bits();
        let general = directed(operation, &Format::F32, direction, bits) as u32;
        assert_eq!(result, general, "{operation:?} {direction:?} {operands:?}");
    }
}

#[test]
fn square_roots_enclose_the_root() {
    let mut random = Random::new(2);
    let root = |direction, a: f64| directed_f64(Operation::Sqrt, direction, [a, 0.0, 0.0]);
    for _ in 0..20_000 {
        let a = random.f64();
        let (down, up, nearest) =
            (root(Direction::Down, a), root(Direction::Up, a), root(Direction::Nearest, a));
        assert_eq!(root(Direction::Zero, a).to_bits(), down.to_bits());
        assert_eq!(nearest.to_bits(), sqrt_f64(a).to_bits(), "{a:e}");
        if a > 0.0 && a.is_finite() {
            // By the sign of the exact difference of the square and `a`.
            let excess = |x: f64| Double::from_bits(x.to_bits().into());
            let difference = |x| excess(x).mul_add_r(excess(x), -excess(a), Round::TowardZero).value;
            assert!(difference(down).is_negative() || difference(down).is_zero());
            assert!(!difference(up).is_negative() || difference(up).is_zero());
            let exact = down.to_bits() == up.to_bits();
            assert!(exact && difference(down).is_zero() || up.to_bits() == down.to_bits() + 1);
            assert!(nearest == down || nearest == up);
        }
    }
    for (a, expected) in [(-0.0, (-0.0f64).to_bits()), (-1.0, NAN_F64), (f64::INFINITY, 0x7ff0 << 48)] {
        assert_eq!(root(Direction::Up, a).to_bits(), expected);
    }
}

#[test]
fn the_nearest_is_the_same_by_either_way() {
    let mut random = Random::new(3);
    for _ in 0..200_000 {
        let (a, b, c) = (random.f32(), random.f32(), random.f32());
        let slow =
            |operation, ftz, sat| directed_f32(operation, Direction::Nearest, ftz, sat, [a, b, c]).to_bits();
        assert_eq!(add::<false, false>(a, b).to_bits(), slow(Operation::Add, false, false));
        assert_eq!(add::<true, true>(a, b).to_bits(), slow(Operation::Add, true, true), "{a:e} {b:e}");
        assert_eq!(sub::<true, false>(a, b).to_bits(), slow(Operation::Sub, true, false));
        assert_eq!(mul::<true, false>(a, b).to_bits(), slow(Operation::Mul, true, false));
        assert_eq!(mul::<false, true>(a, b).to_bits(), slow(Operation::Mul, false, true));
        assert_eq!(fma::<false, false>(a, b, c).to_bits(), slow(Operation::Fma, false, false));
        assert_eq!(fma::<true, false>(a, b, c).to_bits(), slow(Operation::Fma, true, false));
        assert_eq!(div::<true>(a, b).to_bits(), slow(Operation::Div, true, false));
        assert_eq!(rcp::<false>(a).to_bits(), slow(Operation::Rcp, false, false));
        assert_eq!(sqrt::<false>(a).to_bits(), slow(Operation::Sqrt, false, false));
        let (a, b, c) = (random.f64(), random.f64(), random.f64());
        let slow = |operation| directed_f64(operation, Direction::Nearest, [a, b, c]).to_bits();
        assert_eq!(add_f64(a, b).to_bits(), slow(Operation::Add));
        assert_eq!(sub_f64(a, b).to_bits(), slow(Operation::Sub));
        assert_eq!(mul_f64(a, b).to_bits(), slow(Operation::Mul));
        assert_eq!(div_f64(a, b).to_bits(), slow(Operation::Div));
        assert_eq!(fma_f64(a, b, c).to_bits(), slow(Operation::Fma), "{a:e} {b:e} {c:e}");
        assert_eq!(rcp_f64(a).to_bits(), slow(Operation::Rcp));
    }
}

#[test]
fn subnormals_are_flushed_with_their_sign() {
    let small = f32::from_bits(0x8000_0001);
    let smallest = f32::MIN_POSITIVE;
    assert_eq!(add::<true, false>(small, -0.0).to_bits(), 0x8000_0000);
    assert_eq!(add::<false, false>(small, -0.0).to_bits(), 0x8000_0001);
    assert_eq!(mul::<true, false>(smallest, -0.5).to_bits(), 0x8000_0000);
    assert_eq!(fma::<true, false>(small, 1.0e38, 1.0), 1.0);
    // The product inside is not flushed.
    assert_eq!(fma::<true, false>(smallest, 0.5, smallest), 1.5 * smallest);
    assert_eq!(abs::<true>(small).to_bits(), 0);
    assert_eq!(neg::<true>(small).to_bits(), 0);
    assert_eq!(rcp::<true>(f32::MAX), 0.0);
    assert_eq!(rcp::<true>(small), f32::NEG_INFINITY);
    assert_eq!(sqrt::<true>(small).to_bits(), 0x8000_0000);
}

/// Operands whose results are around the smallest normal number.
#[test]
fn results_near_the_smallest_normal_number_are_flushed_as_exactly_rounded_ones_are() {
    let mut random = Random::new(6);
    for _ in 0..200_000 {
        let mut near = |exponent: i32| {
            let fraction = match random.below(3) {
                0 => random.below(4) as u32,
                1 => 0x7f_ffff - random.below(4) as u32,
                _ => random.below(1 << 23) as u32,
            };
            f32::from_bits(((exponent + 127) as u32) << 23 | fraction)
        };
        let exponent = -60 + i32::from(near(0).to_bits() & 1 == 0);
        let (a, b, c, d) = (near(exponent), near(-67), near(-126), near(67));
        for (a, c) in [(a, c), (-a, c), (a, -c), (-a, -c)] {
            let slow =
                |operation| directed_f32(operation, Direction::Nearest, true, false, [a, b, c]).to_bits();
            assert_eq!(mul::<true, false>(a, b).to_bits(), slow(Operation::Mul), "{a:e} {b:e}");
            assert_eq!(fma::<true, false>(a, b, c).to_bits(), slow(Operation::Fma), "{a:e} {b:e} {c:e}");
            let quotient = directed_f32(Operation::Div, Direction::Nearest, true, false, [a, d, c]);
            assert_eq!(div::<true>(a, d).to_bits(), quotient.to_bits(), "{a:e} {d:e}");
        }
    }
}

#[test]
fn saturation_limits_to_the_unit_interval() {
    for (a, b, expected) in [
        (f32::NAN, 0.0, 0.0f32),
        (f32::INFINITY, f32::NEG_INFINITY, 0.0),
        (-1.0, -1.0, 0.0),
        (-0.0, -0.0, 0.0),
        (0.25, 0.25, 0.5),
        (1.0, 1.0, 1.0),
        (f32::INFINITY, 0.0, 1.0),
    ] {
        assert_eq!(add::<false, true>(a, b).to_bits(), expected.to_bits(), "{a} {b}");
    }
}

#[test]
fn nan_is_canonical_in_single_and_kept_in_double_precision() {
    let payload = f32::from_bits(0xffc0_1234);
    for result in [
        add::<false, false>(payload, 1.0),
        mul::<false, false>(0.0, f32::INFINITY),
        fma::<false, false>(f32::INFINITY, 0.0, payload),
        div::<false>(0.0, 0.0),
        sqrt::<false>(-1.0),
        neg::<false>(payload),
        abs::<false>(payload),
    ] {
        assert_eq!(result.to_bits(), 0x7fff_ffff);
    }
    let signalling = f64::from_bits(0x7ff0_0000_0000_0123);
    let other = f64::from_bits(0xfff8_0000_0000_0456);
    assert_eq!(add_f64(1.0, signalling).to_bits(), 0x7ff8_0000_0000_0123);
    assert_eq!(mul_f64(other, signalling).to_bits(), 0x7ff8_0000_0000_0123);
    assert_eq!(fma_f64(1.0, signalling, other).to_bits(), 0x7ff8_0000_0000_0123);
    assert_eq!(sub_f64(f64::INFINITY, f64::INFINITY).to_bits(), 0xfff8_0000_0000_0000);
    assert_eq!(fma_f64(other, 1.0, signalling).to_bits(), 0x7ff8_0000_0000_0123);
    assert_eq!(abs_f64(other).to_bits(), 0xfff8_0000_0000_0456);
    assert_eq!(neg_f64(signalling).to_bits(), 0x7ff8_0000_0000_0123);
    assert_eq!(copysign(-1.0, 2.0), -2.0);
    assert_eq!(copysign_f64(1.0, -2.0), 2.0);
}
