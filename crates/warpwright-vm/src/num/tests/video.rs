//! Video instructions, against hand-made cases of the ISA's rules.

use super::super::video::*;
use warpwright_ptx::ir::Cmp;

const SCALAR: Scalar = Scalar {
    primary: Primary::Add,
    d_signed: false,
    a: (Subword::WORD, false),
    b: (Subword::WORD, false),
    sat: false,
    merge: None,
    secondary: None,
};

const BYTE: Subword = Subword { bits: 8, index: 1 };
const HALF: Subword = Subword { bits: 16, index: 1 };

#[test]
fn parts_are_extended() {
    let op = Scalar { a: (BYTE, true), b: (HALF, false), d_signed: true, ..SCALAR };
    assert_eq!(op.apply(0x1234_ff78, 0x8001_0000, 0) as i32, -1 + 0x8001);
    let op = Scalar { a: (BYTE, false), b: (HALF, true), d_signed: true, ..SCALAR };
    assert_eq!(op.apply(0x1234_ff78, 0x8001_0000, 0) as i32, 255 + 0x8001 - 0x1_0000);
}

#[test]
fn saturation_knows_the_destination() {
    let op = Scalar { sat: true, ..SCALAR };
    assert_eq!(op.apply(u32::MAX, 2, 0), u32::MAX);
    assert_eq!(Scalar { primary: Primary::Sub, ..op }.apply(1, 2, 0), 0);
    assert_eq!(Scalar { d_signed: true, ..op }.apply(u32::MAX, 0, 0), i32::MAX as u32);
    let merged = Scalar { merge: Some(BYTE), ..op };
    assert_eq!(merged.apply(300, 0, 0x1111_1111), 0x1111_ff11);
    assert_eq!(Scalar { sat: false, ..merged }.apply(300, 0, 0x1111_1111), 0x1111_2c11);
    assert_eq!(Scalar { d_signed: true, ..merged }.apply(300, 0, 0), 0x7f00);
}

#[test]
fn results_are_combined_with_a_third_word() {
    let op = Scalar { primary: Primary::Distance, secondary: Some(Secondary::Add), ..SCALAR };
    assert_eq!(op.apply(3, 10, 100), 107);
    let op = Scalar { primary: Primary::Sub, d_signed: true, secondary: Some(Secondary::Max), ..SCALAR };
    assert_eq!(op.apply(3, 10, -9i32 as u32) as i32, -7);
    let op = Scalar { primary: Primary::Compare(Cmp::Ge), secondary: Some(Secondary::Min), ..SCALAR };
    assert_eq!(op.apply(3, 3, 5), 1);
    assert_eq!(op.apply(3, 4, 5), 0);
}

#[test]
fn shifts_clamp_or_wrap() {
    let left = |wrap| Scalar { primary: Primary::ShiftLeft { wrap }, ..SCALAR };
    assert_eq!(left(true).apply(1, 33, 0), 2);
    assert_eq!(left(false).apply(1, 33, 0), 0);
    assert_eq!(Scalar { sat: true, ..left(false) }.apply(1, 33, 0), u32::MAX);
    let right = Scalar { primary: Primary::ShiftRight { wrap: false }, a: (Subword::WORD, true), ..SCALAR };
    assert_eq!(right.apply(0x8000_0000, 40, 0), u32::MAX);
}

#[test]
fn multiply_and_add() {
    let mad = Mad {
        a: (Subword::WORD, false),
        b: (Subword::WORD, false),
        negate_product: false,
        negate_c: false,
        plus_one: false,
        scale: 0,
        sat: false,
    };
    assert_eq!(mad.apply(3, 4, 5), 17);
    assert_eq!(Mad { sat: true, ..mad }.apply(u32::MAX, u32::MAX, u32::MAX), u32::MAX);
    assert_eq!(Mad { negate_product: true, ..mad }.apply(3, 4, 5) as i32, -7);
    assert_eq!(Mad { negate_c: true, ..mad }.apply(3, 4, 5), 7);
    assert_eq!(Mad { plus_one: true, scale: 7, ..mad }.apply(255, 1, 0), 2);
    assert_eq!(
        Mad { scale: 15, ..mad }.apply(u32::MAX, u32::MAX, 0),
        (0xffff_fffe_0000_0001u64 >> 15) as u32
    );
    let signed = Mad { a: (BYTE, true), sat: true, ..mad };
    assert_eq!(signed.apply(0x8000, u32::MAX, 0) as i32, i32::MIN);
}

fn simd(primary: Primary, bits: u32) -> Simd {
    let (a, b) = if bits == 8 { ([0, 1, 2, 3], [4, 5, 6, 7]) } else { ([0, 1, 0, 0], [2, 3, 0, 0]) };
    Simd { primary, bits, d_signed: false, a: (a, false), b: (b, false), sat: false, mask: 0xf, add: false }
}

#[test]
fn parts_are_combined_side_by_side() {
    assert_eq!(simd(Primary::Add, 8).apply(0xff01_0203, 0x0110_2030, 9), 0x0011_2233);
    assert_eq!(Simd { sat: true, ..simd(Primary::Add, 8) }.apply(0xff01_0203, 0x0110_2030, 9), 0xff11_2233);
    assert_eq!(simd(Primary::Add, 16).apply(0xffff_ffff, 0x0001_0001, 0), 0);
    assert_eq!(simd(Primary::Max, 16).apply(0x8000_0003, 0x0001_0004, 0), 0x8000_0004);
    let signed = |op: Simd| Simd { a: (op.a.0, true), b: (op.b.0, true), d_signed: true, ..op };
    assert_eq!(signed(simd(Primary::Max, 16)).apply(0x8000_0003, 0x0001_0004, 0), 0x0001_0004);
    // A half is rounded away from zero, as the definition does it.
    assert_eq!(signed(simd(Primary::Average, 8)).apply(0x00ff_0102, 0x00fe_0202, 0), 0x00fe_0202);
}

#[test]
fn masks_and_selectors() {
    let op = Simd { mask: 0b0101, ..simd(Primary::Sub, 8) };
    assert_eq!(op.apply(0x0505_0505, 0x0102_0304, 0xaaaa_aaaa), 0xaa03_aa01);
    let sums = Simd { add: true, ..op };
    assert_eq!(sums.apply(0x0505_0505, 0x0102_0304, 10), 14);
    let negative = Simd { primary: Primary::Sub, add: true, mask: 0b11, ..simd(Primary::Sub, 16) };
    assert_eq!(negative.apply(0, 0x0001_0001, 10), 8);
    let swapped = Simd { a: ([2, 1, 0, 0], false), b: ([0, 0, 0, 0], false), ..simd(Primary::Add, 16) };
    assert_eq!(swapped.apply(0x0003_0010, 0x0000_0001, 0), 0x0013_0011);
    let set = simd(Primary::Compare(Cmp::Lt), 8);
    assert_eq!(set.apply(0x0102_0304, 0x0202_0404, 0), 0x0100_0100);
}
