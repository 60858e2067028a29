//! Integer and bit operations of the evaluator, bit by bit where the ISA defines them so.

use warpwright_ptx::ir::{MulHalf, Type};
use warpwright_ptx::op::logic::{PermuteMode, ShiftDirection, ShiftMode};

/// The low `bits` bits, zero-extended.
pub(crate) fn low(x: i128, bits: u32) -> u128 {
    x as u128 & (u128::MAX >> (128 - bits))
}

/// The low bits of `x` as a value of an integer type.
pub(crate) fn wrap(x: i128, ty: Type) -> i128 {
    let unused = 128 - ty.bits();
    if ty.is_signed() { x << unused >> unused } else { low(x, ty.bits()) as i128 }
}

/// The nearest value of an integer type.
pub(crate) fn clamp(x: i128, ty: Type) -> i128 {
    let (min, max) = range(ty);
    x.clamp(min, max)
}

fn range(ty: Type) -> (i128, i128) {
    match ty.is_signed() {
        true => (-(1 << (ty.bits() - 1)), (1 << (ty.bits() - 1)) - 1),
        false => (0, (1 << ty.bits()) - 1),
    }
}

/// The part of the product of two values of type `ty` that `half` names, and the type that it has.
pub(crate) fn product(half: MulHalf, ty: Type, a: i128, b: i128) -> i128 {
    // Two factors of 64 unsigned bits do not fit in the signed result; their bits do.
    let product = (a as u128).wrapping_mul(b as u128);
    match half {
        MulHalf::Lo => wrap(product as i128, ty),
        MulHalf::Wide => product as i128,
        MulHalf::Hi if ty.is_signed() => wrap(product as i128 >> ty.bits(), ty),
        MulHalf::Hi => wrap((product >> ty.bits()) as i128, ty),
    }
}

/// `mul24`: the low 24 bits of each factor, and 32 of the 48 bits of their product.
pub(crate) fn product24(half: MulHalf, ty: Type, a: i128, b: i128) -> i128 {
    let factor = |x: i128| if ty.is_signed() { x << 104 >> 104 } else { low(x, 24) as i128 };
    let product = factor(a) * factor(b);
    wrap(if half == MulHalf::Hi { product >> 16 } else { product }, ty)
}

/// The sum over the elements of a dot product: `a` in elements of `a_bits`, from `b` as many bytes from
/// byte `first` on.
pub(crate) fn dot(types: [Type; 2], (a, a_bits): (u32, u32), (b, first): (u32, u32)) -> i128 {
    let element = |word: u32, at: u32, bits: u32, ty: Type| {
        let value = i128::from(word >> at) & ((1 << bits) - 1);
        if ty.is_signed() && value >> (bits - 1) == 1 { value - (1 << bits) } else { value }
    };
    (0..32 / a_bits)
        .map(|i| element(a, a_bits * i, a_bits, types[0]) * element(b, 8 * (first + i), 8, types[1]))
        .sum()
}

/// `bfe`.
pub(crate) fn extract(ty: Type, a: i128, position: u128, length: u128) -> i128 {
    let (width, position, length) = (u128::from(ty.bits()), position & 255, length & 255);
    let bit = |i: u128| low(a, ty.bits()) >> i & 1;
    let sign = if ty.is_signed() && length > 0 { bit((position + length - 1).min(width - 1)) } else { 0 };
    let bits = (0..width).map(|i| {
        let inside = i < length && position + i < width;
        (if inside { bit(position + i) } else { sign }) << i
    });
    wrap(bits.sum::<u128>() as i128, ty)
}

/// `bfi`.
pub(crate) fn insert(bits: u32, a: u128, b: u128, position: u128, length: u128) -> u128 {
    let (position, length) = (position & 255, length & 255);
    (0..u128::from(bits)).fold(b, |f, i| {
        let from = i.wrapping_sub(position);
        let inside = i >= position && from < length;
        if inside { f & !(1 << i) | (a >> from & 1) << i } else { f }
    })
}

/// `bfind`.
pub(crate) fn find(ty: Type, shift_amount: bool, a: i128) -> u128 {
    let bits = low(if a < 0 { !a } else { a }, ty.bits());
    let found = (0..ty.bits()).rev().find(|i| bits >> i & 1 == 1);
    match found {
        None => 0xffff_ffff,
        Some(i) if shift_amount => u128::from(ty.bits() - 1 - i),
        Some(i) => u128::from(i),
    }
}

/// `fns`.
pub(crate) fn find_nth(mask: u128, base: u128, offset: i128) -> u128 {
    let set = |position: i128| (0..32).contains(&position) && mask >> position & 1 == 1;
    let found = match offset {
        0 => set(base as i128).then_some(base as i128),
        n if n > 0 => (base as i128..32).filter(|&i| set(i)).nth(n as usize - 1),
        n => (0..=base as i128).rev().filter(|&i| set(i)).nth(n.unsigned_abs() as usize - 1),
    };
    found.map_or(0xffff_ffff, |position| position as u128)
}

/// `szext`.
pub(crate) fn extend(mode: ShiftMode, ty: Type, a: u128, count: u128) -> i128 {
    let count = if mode == ShiftMode::Wrap { count & 31 } else { count.min(32) };
    match (count, ty.is_signed()) {
        (0, _) => 0,
        (count, false) => (a & ((1 << count) - 1)) as i128,
        (count, true) => (a as i128) << (128 - count) >> (128 - count),
    }
}

/// `bmsk`: ones from a position on, as many as `count`.
pub(crate) fn mask(mode: ShiftMode, position: u128, count: u128) -> u128 {
    let (position, count) = match mode {
        ShiftMode::Wrap => (position & 31, count & 31),
        ShiftMode::Clamp => (position.min(32), count.min(32)),
    };
    (((1u128 << count) - 1) << position) & 0xffff_ffff
}

/// `shf`.
pub(crate) fn funnel(direction: ShiftDirection, mode: ShiftMode, a: u128, b: u128, count: u128) -> u128 {
    let count = if mode == ShiftMode::Wrap { count & 31 } else { count.min(32) };
    let both = b << 32 | a;
    match direction {
        ShiftDirection::Left => both << count >> 32 & 0xffff_ffff,
        ShiftDirection::Right => both >> count & 0xffff_ffff,
    }
}

/// Any bitwise function of three words, by its truth table.
pub(crate) fn table(a: u128, b: u128, c: u128, table: u128) -> u128 {
    (0..32).map(|i| (table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1) & 1) << i).sum()
}

/// `prmt`.
pub(crate) fn permute(mode: Option<PermuteMode>, a: u128, b: u128, control: u128) -> u128 {
    let source = b << 32 | a;
    let c = control & 3;
    let byte = |i: u128| source >> (8 * i) & 255;
    (0..4u128)
        .map(|i| {
            let picked = match mode {
                None => {
                    let nibble = control >> (4 * i) & 15;
                    let value = byte(nibble & 7);
                    if nibble < 8 { value } else { (value >> 7) * 255 }
                }
                Some(PermuteMode::F4e) => byte(c + i),
                Some(PermuteMode::B4e) => byte((c + 8 - i) % 8),
                Some(PermuteMode::Rc8) => byte(c),
                Some(PermuteMode::Ecl) => byte(c.max(i)),
                Some(PermuteMode::Ecr) => byte(c.min(i)),
                Some(PermuteMode::Rc16) => byte((c & 1) * 2 + i % 2),
            };
            picked << (8 * i)
        })
        .sum()
}

/// A half of the product of two polynomials over two elements.
pub(crate) fn carryless(half: MulHalf, a: u128, b: u128) -> u128 {
    let product = (0..64).filter(|i| b >> i & 1 == 1).fold(0, |sum, i| sum ^ a << i);
    if half == MulHalf::Hi { product >> 64 } else { product & u128::from(u64::MAX) }
}
