//! Integer arithmetic, against wider integers.

use super::super::integer::*;
use super::Random;

#[test]
fn high_halves_of_products() {
    let mut random = Random::new(10);
    for _ in 0..50_000 {
        let (a, b) = (random.integer(), random.integer());
        let signed = |a: i64, b: i64| i128::from(a) * i128::from(b);
        assert_eq!(a.mul_high(b), ((u128::from(a) * u128::from(b)) >> 64) as u64);
        assert_eq!((a as i64).mul_high(b as i64), (signed(a as i64, b as i64) >> 64) as i64);
        let (x, y) = (a as i32, b as i32);
        assert_eq!(x.mul_high(y), (signed(x.into(), y.into()) >> 32) as i32);
        assert_eq!((a as u16).mul_high(b as u16), ((u32::from(a as u16) * u32::from(b as u16)) >> 16) as u16);
        let c = random.integer() as i32;
        let sum = (signed(x.into(), y.into()) >> 32) + i128::from(c);
        let limited = sum.clamp(i32::MIN.into(), i32::MAX.into());
        assert_eq!(mad_high_sat(x, y, c), limited as i32);
        let distance = (i64::from(x) - i64::from(y)).unsigned_abs();
        assert_eq!(x.distance_plus(y, c), c.wrapping_add(distance as i32));
    }
}

#[test]
fn division_by_zero_and_overflow_have_results() {
    assert_eq!(7u32.quotient(0), u32::MAX);
    assert_eq!(7u32.remainder(0), u32::MAX);
    assert_eq!((-7i64).quotient(0), -1);
    assert_eq!((-7i64).remainder(0), -1);
    assert_eq!(i32::MIN.quotient(-1), i32::MIN);
    assert_eq!(i32::MIN.remainder(-1), 0);
    assert_eq!((-7i32).quotient(2), -3);
    assert_eq!((-7i32).remainder(2), -1);
    assert_eq!(u16::MAX.quotient(7), 9362);
}

#[test]
fn products_of_24_bits() {
    // The upper byte of an operand does not count; of 48 bits, the low or the high 32 do.
    assert_eq!(mul24_low_u32(0xff00_0003, 0x0080_0000), 0x0180_0000);
    assert_eq!(mul24_high_u32(0x00ff_ffff, 0x00ff_ffff), ((0xff_ffffu64 * 0xff_ffff) >> 16) as u32);
    assert_eq!(mul24_low_s32(0x00ff_ffff, 5), -5);
    assert_eq!(mul24_high_s32(0x0080_0000, 0x0080_0000), 1 << 30);
}

#[test]
fn carryless_products() {
    // (x + 1)² = x² + 1, where coefficients are modulo 2.
    assert_eq!(clmad(false, 0b11, 0b11, 0), 0b101);
    assert_eq!(clmad(false, 0b11, 0b11, 0b100), 0b001);
    assert_eq!(clmad(true, 1 << 63, 0b110, 0), 0b011);
}

#[test]
fn dot_products() {
    assert_eq!(dp4a::<false, false>(0xff01_0203, 0xff01_0101, 10), 255 * 255 + 1 + 2 + 3 + 10);
    assert_eq!(dp4a::<true, true>(0xff01_0203, 0xff01_0101, 10), 1 + 1 + 2 + 3 + 10);
    assert_eq!(dp4a::<false, true>(0xff00_0000, 0xff00_0000, 0) as i32, -255);
    assert_eq!(dp4a::<false, false>(0, 0, u32::MAX), u32::MAX);
    assert_eq!(dp2a::<false, false, false>(0xffff_0002, 0x0907_0503, 1), 65535 * 5 + 2 * 3 + 1);
    assert_eq!(dp2a::<true, false, true>(0xffff_0002, 0x0907_0503, 1) as i32, -9 + 2 * 7 + 1);
}

#[test]
fn carries_go_through_chains() {
    let mut random = Random::new(11);
    for _ in 0..10_000 {
        let (a, b) = (random.integer(), random.integer());
        let (low, carry) = (a as u32).carry(b as u32, false);
        let (high, carry) = ((a >> 32) as u32).carry((b >> 32) as u32, carry);
        assert_eq!((u64::from(high) << 32 | u64::from(low), carry), a.overflowing_add(b));
        let (low, borrow) = (a as u32).borrow(b as u32, false);
        let (high, borrow) = ((a >> 32) as u32).borrow((b >> 32) as u32, borrow);
        assert_eq!((u64::from(high) << 32 | u64::from(low), borrow), a.overflowing_sub(b));
        assert_eq!(a.carry(b, true).0, a.wrapping_add(b).wrapping_add(1));
        assert_eq!(a.borrow(a, true), (u64::MAX, true));
    }
}

#[test]
fn packed_parts_do_not_disturb_each_other() {
    let sum = |words| packed::<8, true, 2>(words, |[a, b]| a + b);
    assert_eq!(sum([0xff7f_0180, 0x0101_ff80]), 0x0080_0000);
    assert_eq!(packed::<16, false, 2>([0xffff_0001, 0x0001_0001], |[a, b]| a + b), 0x0000_0002);
    assert_eq!(packed::<16, true, 2>([0xffff_0001, 0x0001_0001], |[a, b]| a.min(b)), 0xffff_0001);
    assert_eq!(range(8, true), (-128, 127));
    assert_eq!(range(64, false), (0, u64::MAX.into()));
}
