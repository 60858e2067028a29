//! Half precision: exhaustive where one operand is all there is.

use super::super::float::{Operation, directed, saturate};
use super::super::half::*;
use super::super::{Direction, Format};
use super::Random;
use rustc_apfloat::ieee::{BFloat, Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert};

fn converted<A: Float + FloatConvert<B>, B: Float>(bits: u64) -> Option<u64> {
    let result: B = A::from_bits(bits.into()).convert(&mut false).value;
    (!result.is_nan()).then_some(result.to_bits() as u64)
}

#[test]
fn widening_is_exact_for_every_number() {
    for bits in 0..=u16::MAX {
        let half = converted::<Half, Single>(bits.into()).unwrap_or(0x7fff_ffff);
        assert_eq!(u64::from(f16_to_f32(bits).to_bits()), half, "{bits:04x}");
        let brain = converted::<BFloat, Single>(bits.into()).unwrap_or(0x7fff_ffff);
        assert_eq!(u64::from(bf16_to_f32(bits).to_bits()), brain, "{bits:04x}");
        if f16_to_f32(bits).is_nan() {
            assert_eq!(f32_to_f16(f16_to_f32(bits)), 0x7fff);
        } else {
            assert_eq!(f32_to_f16(f16_to_f32(bits)), bits);
        }
    }
}

#[test]
fn narrowing_rounds_around_every_boundary() {
    // Every upper half of a word, with lower bits that make ties and their neighbours.
    let low = [0, 1, 0x0fff, 0x1000, 0x1001, 0x2fff, 0x3000, 0x7fff, 0x8000, 0x8001, 0xffff];
    for upper in 0..=u16::MAX {
        for low in low {
            let bits = u32::from(upper) << 16 | low;
            let x = f32::from_bits(bits);
            let half = converted::<Single, Half>(bits.into()).unwrap_or(0x7fff);
            assert_eq!(u64::from(f32_to_f16(x)), half, "{bits:08x}");
            let brain = converted::<Single, BFloat>(bits.into()).unwrap_or(0x7fff);
            assert_eq!(u64::from(f32_to_bf16(x)), brain, "{bits:08x}");
        }
    }
}

#[test]
fn double_precision_is_rounded_once() {
    let mut random = Random::new(4);
    for _ in 0..300_000 {
        let x = match random.below(3) {
            // Halfway between two halves, and a little to either side.
            0 => {
                let tie = f64::from(f16_to_f32(random.float(16, 10) as u16)).to_bits() + (1 << 41);
                f64::from_bits(tie.wrapping_add(random.below(3)).wrapping_sub(1))
            }
            1 => {
                let tie = f64::from(bf16_to_f32(random.float(16, 7) as u16)).to_bits() + (1 << 44);
                f64::from_bits(tie.wrapping_add(random.below(3)).wrapping_sub(1))
            }
            _ => random.f64(),
        };
        let half = converted::<Double, Half>(x.to_bits()).unwrap_or(0x7fff);
        assert_eq!(u64::from(f64_to_f16(x)), half, "{x:e}");
        let brain = converted::<Double, BFloat>(x.to_bits()).unwrap_or(0x7fff);
        assert_eq!(u64::from(f64_to_bf16(x)), brain, "{x:e}");
    }
}

#[test]
fn arithmetic_is_rounded_once() {
    let mut random = Random::new(5);
    let exact = |operation, format: &Format, operands: [u16; 3]| {
        directed(operation, format, Direction::Nearest, operands.map(u64::from)) as u16
    };
    for _ in 0..500_000 {
        let operands = [0; 3].map(|_| random.float(16, 10) as u16);
        let [a, b, c] = operands;
        let f16 = |operation| exact(operation, &Format::F16, operands);
        assert_eq!(add_f16::<false, PLAIN>(a, b), f16(Operation::Add), "{operands:04x?}");
        assert_eq!(sub_f16::<false, PLAIN>(a, b), f16(Operation::Sub), "{operands:04x?}");
        assert_eq!(mul_f16::<false, PLAIN>(a, b), f16(Operation::Mul), "{operands:04x?}");
        assert_eq!(fma_f16::<false, PLAIN>(a, b, c), f16(Operation::Fma), "{operands:04x?}");
        let operands = [0; 3].map(|_| random.float(16, 7) as u16);
        let [a, b, c] = operands;
        let bf16 = |operation| exact(operation, &Format::BF16, operands);
        assert_eq!(add_bf16::<PLAIN>(a, b), bf16(Operation::Add), "{operands:04x?}");
        assert_eq!(sub_bf16::<PLAIN>(a, b), bf16(Operation::Sub), "{operands:04x?}");
        assert_eq!(mul_bf16::<PLAIN>(a, b), bf16(Operation::Mul), "{operands:04x?}");
        assert_eq!(fma_bf16::<PLAIN>(a, b, c), bf16(Operation::Fma), "{operands:04x?}");
    }
}

#[test]
fn a_product_on_a_tie_is_decided_by_a_tiny_addend() {
    // 7 · 37 = 259 lies halfway between two numbers of eight bits: 258 and 260.
    let (a, b) = (f32_to_bf16(7.0), f32_to_bf16(37.0));
    let tiny = f32_to_bf16(1.0e-30);
    assert_eq!(bf16_to_f32(fma_bf16::<PLAIN>(a, b, 0)), 260.0);
    assert_eq!(bf16_to_f32(fma_bf16::<PLAIN>(a, b, tiny)), 260.0);
    assert_eq!(bf16_to_f32(fma_bf16::<PLAIN>(a, b, tiny | 0x8000)), 258.0);
    // 45 · 98 = 4410 lies halfway between 4408, whose last bit is even, and 4412.
    let (a, b) = (f32_to_f16(45.0), f32_to_f16(98.0));
    assert_eq!(f16_to_f32(fma_f16::<false, PLAIN>(a, b, 0)), 4408.0);
    assert_eq!(f16_to_f32(fma_f16::<false, PLAIN>(a, b, 0x0001)), 4412.0);
    assert_eq!(f16_to_f32(fma_f16::<false, PLAIN>(a, b, 0x8001)), 4408.0);
}

#[test]
fn results_are_limited_and_flushed() {
    let (half, one, small) = (0x3800, 0x3c00, 0x0001);
    assert_eq!(add_f16::<false, SAT>(one, one), one);
    assert_eq!(sub_f16::<false, SAT>(half, one), 0);
    assert_eq!(add_f16::<false, SAT>(0x7e00, one), 0);
    assert_eq!(fma_f16::<false, RELU>(one, 0xbc00, half), 0);
    assert_eq!(fma_f16::<false, RELU>(one, 0x8000, 0x8000), 0);
    assert_eq!(fma_f16::<false, RELU>(0x7e00, one, half), 0x7fff);
    assert_eq!(fma_bf16::<RELU>(0x3f80, 0xbf80, 0), 0);
    assert_eq!(add_f16::<true, PLAIN>(small, 0x8000), 0);
    assert_eq!(add_f16::<false, PLAIN>(small, 0x8000), small);
    assert_eq!(mul_f16::<true, PLAIN>(0x8400, half), 0x8000);
    assert_eq!(neg_f16::<true>(small), 0x8000);
    assert_eq!(abs_f16::<false>(0xfe01), 0x7fff);
    assert_eq!(neg_bf16(0x0001), 0x8001);
    assert_eq!(abs_bf16(0xff80), 0x7f80);
    assert_eq!(both([0x0001_8002, 0x1000_0100], |[a, b]| a + b), 0x1001_8102);
    assert_eq!(saturate(f32::NAN), 0.0);
}
