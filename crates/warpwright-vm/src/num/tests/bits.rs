//! Bit operations, against the loops by which the ISA defines them.

use super::super::bits::*;
use super::super::integer::Integer;
use super::Random;

fn extracted(a: u64, width: u32, signed: bool, start: u32, length: u32) -> u64 {
    let (msb, start, length) = (width - 1, start & 0xff, length & 0xff);
    let bit = |position: u32| a >> position & 1;
    let sign = if !signed || length == 0 { 0 } else { bit((start + length - 1).min(msb)) };
    (0..width).map(|i| (if i < length && start + i <= msb { bit(start + i) } else { sign }) << i).sum()
}

fn inserted(a: u64, b: u64, width: u32, start: u32, length: u32) -> u64 {
    let (start, length) = (start & 0xff, length & 0xff);
    let mut result = b;
    for i in 0..length.min(width.saturating_sub(start)) {
        result = result & !(1 << (start + i)) | (a >> i & 1) << (start + i);
    }
    result
}

#[test]
fn fields_are_those_of_the_definition() {
    let mut random = Random::new(20);
    for _ in 0..100_000 {
        let (a, b) = (random.integer(), random.integer());
        let limit = [32, 40, 72, 300][random.below(4) as usize];
        let (start, length) = (random.below(limit) as u32, random.below(limit) as u32);
        let (x, y) = (a as u32, b as u32);
        let context = format!("{a:x} {b:x} {start} {length}");
        assert_eq!(u64::from(x.field(start, length)), extracted(x.into(), 32, false, start, length));
        let signed = (x as i32).field(start, length) as u32;
        assert_eq!(u64::from(signed), extracted(x.into(), 32, true, start, length), "{context}");
        assert_eq!(a.field(start, length), extracted(a, 64, false, start, length), "{context}");
        let signed = (a as i64).field(start, length) as u64;
        assert_eq!(signed, extracted(a, 64, true, start, length), "{context}");
        let insert = u64::from(x.into_field(y, start, length));
        assert_eq!(insert, inserted(x.into(), y.into(), 32, start, length), "{context}");
        assert_eq!(a.into_field(b, start, length), inserted(a, b, 64, start, length), "{context}");
    }
}

#[test]
fn the_first_bit_that_differs_from_the_sign() {
    assert_eq!(0u32.highest::<false>(), u32::MAX);
    assert_eq!(1u32.highest::<false>(), 0);
    assert_eq!(1u32.highest::<true>(), 31);
    assert_eq!((-1i32).highest::<false>(), u32::MAX);
    assert_eq!((-2i32).highest::<false>(), 0);
    assert_eq!(i32::MIN.highest::<true>(), 1);
    assert_eq!(i64::MIN.highest::<false>(), 62);
    assert_eq!(0x8000_0000_u64.highest::<true>(), 32);
}

#[test]
fn the_nth_set_bit() {
    assert_eq!(fns(0xaaaa_aaaa, 3, 1), 3);
    assert_eq!(fns(0xaaaa_aaaa, 3, -1), 3);
    assert_eq!(fns(0xaaaa_aaaa, 2, 1), 3);
    assert_eq!(fns(0xaaaa_aaaa, 2, -1), 1);
    assert_eq!(fns(0xaaaa_aaaa, 2, 0), u32::MAX);
    assert_eq!(fns(0xaaaa_aaaa, 3, 0), 3);
    assert_eq!(fns(0xaaaa_aaaa, 0, 16), 31);
    assert_eq!(fns(0xaaaa_aaaa, 0, 17), u32::MAX);
    assert_eq!(fns(u32::MAX, 31, i32::MIN), u32::MAX);
    assert_eq!(fns(u32::MAX, 32, 1), u32::MAX);
}

#[test]
fn shifts_beyond_the_width_are_clamped() {
    for by in [0, 1, 31, 32, 33, 63, 64, 200, u32::MAX] {
        let wide = by.min(127);
        let (a, b) = (0xdead_beefu32, 0x8123_4567_89ab_cdefu64);
        assert_eq!(a.shifted_left(by), (u128::from(a) << wide.min(32)) as u32);
        assert_eq!(a.shifted_right(by), (u128::from(a) >> wide) as u32);
        assert_eq!(b.shifted_left(by), (u128::from(b) << wide.min(64)) as u64);
        assert_eq!(b.shifted_right(by), (u128::from(b) >> wide) as u64);
        assert_eq!((a as i32).shifted_right(by), (i128::from(a as i32) >> wide) as i32);
        assert_eq!((b as i64).shifted_right(by), (i128::from(b as i64) >> wide) as i64);
        assert_eq!((a as u16).shifted_left(by), (u128::from(a as u16) << wide.min(32)) as u16);
        assert_eq!((a as u16).shifted_right(by), (u128::from(a as u16) >> wide) as u16);
        assert_eq!((a as i16).shifted_right(by), (i128::from(a as i16) >> wide) as i16);
    }
    assert_eq!(funnel_left::<false>(0x89ab_cdef, 0x0123_4567, 8), 0x2345_6789);
    assert_eq!(funnel_left::<false>(0x89ab_cdef, 0x0123_4567, 40), 0x89ab_cdef);
    assert_eq!(funnel_left::<true>(0x89ab_cdef, 0x0123_4567, 40), 0x2345_6789);
    assert_eq!(funnel_right::<false>(0x89ab_cdef, 0x0123_4567, 99), 0x0123_4567);
    assert_eq!(funnel_right::<true>(0x89ab_cdef, 0x0123_4567, 32), 0x89ab_cdef);
    assert_eq!(funnel_right::<true>(0x89ab_cdef, 0x0123_4567, 12), 0x5678_9abc);
}

#[test]
fn every_table_of_three_bits() {
    let mut random = Random::new(21);
    for table in 0..=u8::MAX {
        let [a, b, c] = [0; 3].map(|_| random.next() as u32);
        let expected = (0..32)
            .map(|bit| {
                let index = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | c >> bit & 1;
                (u32::from(table) >> index & 1) << bit
            })
            .sum::<u32>();
        assert_eq!(lop3(a, b, c, table), expected, "{table:02x}");
    }
    assert_eq!(lop3(0xf0, 0xcc, 0xaa, 0x80) & 0xff, 0x80);
}

#[test]
fn extensions_and_masks() {
    let mut random = Random::new(22);
    for _ in 0..20_000 {
        let (a, b) = (random.integer() as u32, random.below(70) as u32);
        let (wrapped, clamped) = (b & 31, b.min(32));
        let zeros = |n: u32| if n >= 32 { a } else { a & ((1 << n) - 1) };
        let signs = |n: u32| match n {
            0 => 0,
            n if zeros(n) >> (n - 1) & 1 == 1 => zeros(n) | u32::MAX.checked_shl(n).unwrap_or(0),
            n => zeros(n),
        };
        assert_eq!(szext::<true, false>(a, b), zeros(wrapped));
        assert_eq!(szext::<false, false>(a, b), zeros(clamped));
        assert_eq!(szext::<true, true>(a, b), signs(wrapped), "{a:x} {b}");
        assert_eq!(szext::<false, true>(a, b), signs(clamped), "{a:x} {b}");
        let (start, length) = (random.below(70) as u32, b);
        let mask = |start: u32, length: u32| {
            (0..32).filter(|i| (start..start + length).contains(i)).map(|i| 1u32 << i).sum::<u32>()
        };
        assert_eq!(bmsk::<true>(start, length), mask(start & 31, wrapped));
        assert_eq!(bmsk::<false>(start, length), mask(start.min(32), clamped));
    }
    assert_eq!(bmsk::<true>(1, 2), 6);
}

#[test]
fn bytes_are_picked() {
    let (a, b) = (0x3382_1180, 0x7766_5544);
    assert_eq!(prmt(a, b, 0x3210), a);
    assert_eq!(prmt(a, b, 0x7654), b);
    assert_eq!(prmt(a, b, 0xba98), 0x00ff_00ff);
    assert_eq!(prmt(a, b, permute::F4E[3]), 0x6655_4433);
    assert_eq!(prmt(a, b, permute::B4E[1]), 0x6677_8011);
    assert_eq!(prmt(a, b, permute::RC8[2]), 0x8282_8282);
    assert_eq!(prmt(a, b, permute::ECL[2]), 0x3382_8282);
    assert_eq!(prmt(a, b, permute::ECR[1]), 0x1111_1180);
    assert_eq!(prmt(a, b, permute::RC16[1]), 0x3382_3382);
}

#[test]
fn moves_of_bytes_pick_the_same() {
    let (a, b) = (0x3382_1180, 0x7766_5544);
    let mut random = Random::new(7);
    for selector in 0..=0xffff {
        let signs = selector & 0x8888 != 0;
        assert_eq!(moves(selector, u32::MAX, u32::MAX).is_none(), signs, "{selector:04x}");
        // Some bytes are zero, and known to be.
        let zeros = random.next();
        let kept = |word: u32, bits: u64| {
            (0..4).fold(word, |w, i| w & !(((bits >> i & 1) as u32 * 0xff) << (8 * i)))
        };
        for (a, b, known) in [
            (a, b, [u32::MAX; 2]),
            (kept(a, zeros), kept(b, zeros >> 4), [kept(u32::MAX, zeros), kept(u32::MAX, zeros >> 4)]),
        ] {
            let Some(moves) = moves(selector, known[0], known[1]) else { continue };
            let picked = moves.iter().fold(0, |word, part| word | part.of(a, b));
            assert_eq!(picked, prmt(a, b, selector), "{selector:04x} of {b:08x} and {a:08x}");
            assert!((1..=4).contains(&moves.len()));
        }
    }
}
