//! Shifts, bit fields and permutations of bytes.

/// The amount of a shift whose mode is `.wrap` or `.clamp`: modulo 32, or at most 32.
#[inline(always)]
fn amount<const WRAP: bool>(by: u32) -> u32 {
    if WRAP { by & 31 } else { by.min(32) }
}

/// `shf.l`: the high word of `high:low` shifted left.
#[inline(always)]
pub fn funnel_left<const WRAP: bool>(low: u32, high: u32, by: u32) -> u32 {
    let both = u64::from(high) << 32 | u64::from(low);
    ((both << amount::<WRAP>(by)) >> 32) as u32
}

/// `shf.r`: the low word of `high:low` shifted right.
#[inline(always)]
pub fn funnel_right<const WRAP: bool>(low: u32, high: u32, by: u32) -> u32 {
    let both = u64::from(high) << 32 | u64::from(low);
    (both >> amount::<WRAP>(by)) as u32
}

/// `lop3`: each result bit is the table's bit at the position formed by the bits of `a`, `b` and `c`.
#[inline(always)]
pub fn lop3(a: u32, b: u32, c: u32, table: u8) -> u32 {
    // A function of three bits picks by `a` between two functions of two, and so on down.
    let entry = |index: u32| 0u32.wrapping_sub(u32::from(table) >> index & 1);
    let pick = |by: u32, set: u32, clear: u32| clear ^ (by & (set ^ clear));
    let of_c = |index: u32| pick(c, entry(index + 1), entry(index));
    let of_bc = |index: u32| pick(b, of_c(index + 2), of_c(index));
    pick(a, of_bc(4), of_bc(0))
}

/// `fns`: the position of the `offset`-th one bit of `mask`, counted from `base` upwards, or downwards for negative
/// offsets; all ones if there is none. A base above 31, which the ISA leaves undefined, finds no bits.
pub fn fns(mask: u32, base: u32, offset: i32) -> u32 {
    if base > 31 {
        return u32::MAX;
    }
    let is_set = |&position: &u32| mask >> position & 1 == 1;
    let skipped = (offset.unsigned_abs() as usize).saturating_sub(1);
    match offset {
        0 => Some(base).filter(is_set),
        1.. => (base..32).filter(is_set).nth(skipped),
        _ => (0..=base).rev().filter(is_set).nth(skipped),
    }
    .unwrap_or(u32::MAX)
}

/// `szext`: the low `length` bits of `a`, extended.
#[inline(always)]
pub fn szext<const WRAP: bool, const SIGNED: bool>(a: u32, length: u32) -> u32 {
    let length = amount::<WRAP>(length);
    let rest = 32 - length;
    match (length, SIGNED) {
        (0, _) => 0,
        (_, true) => ((a << rest) as i32 >> rest) as u32,
        (_, false) => a << rest >> rest,
    }
}

/// `bmsk`: a mask of `length` ones from bit `start` on.
#[inline(always)]
pub fn bmsk<const WRAP: bool>(start: u32, length: u32) -> u32 {
    let (start, length) = (amount::<WRAP>(start), amount::<WRAP>(length));
    (((1u64 << length) - 1) << start) as u32
}

/// `prmt`: four bytes of `b:a`, each selected by a nibble of `selector`: its low three bits select the byte, its high
/// bit replaces the byte by copies of its sign.
#[inline(always)]
pub fn prmt(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = u64::from(b) << 32 | u64::from(a);
    (0..4).fold(0, |word, index| {
        let nibble = selector >> (4 * index) & 0xf;
        let byte = (bytes >> (8 * (nibble & 7))) as u8;
        let sign = ((byte as i8) >> 7) as u8;
        let byte = if nibble & 8 == 0 { byte } else { sign };
        word | u32::from(byte) << (8 * index)
    })
}

/// Bytes of two words that `prmt` moves by the same distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Which bytes of `a` move, as ones.
    a: u32,
    /// Which of `b`.
    b: u32,
    /// How far they move up, cyclically.
    by: u32,
}

impl Move {
    /// Their share of the result.
    #[inline(always)]
    pub fn of(self, a: u32, b: u32) -> u32 {
        (a & self.a | b & self.b).rotate_left(self.by)
    }
}

/// The moves that together perform `prmt` with this selector, at least one; `None` if it copies signs. Bytes that are
/// zero in all given values, those with no ones in `a` or `b`, do not move.
pub fn moves(selector: u32, a: u32, b: u32) -> Option<Vec<Move>> {
    let mut moves: Vec<Move> = Vec::new();
    for index in 0..4 {
        let nibble = selector >> (4 * index) & 0xf;
        if nibble & 8 != 0 {
            return None;
        }
        let from = nibble & 3;
        let (byte, by) = (0xff << (8 * from), 8 * ((index + 4 - from) % 4));
        let (a, b) = if nibble < 4 { (a & byte, 0) } else { (0, b & byte) };
        match moves.iter_mut().find(|part| part.by == by) {
            Some(part) => (part.a, part.b) = (part.a | a, part.b | b),
            None if a | b != 0 => moves.push(Move { a, b, by }),
            None => {}
        }
    }
    if moves.is_empty() {
        moves.push(Move { a: 0, b: 0, by: 0 });
    }
    Some(moves)
}

/// `prmt` with a mode: the selectors of the generic form, for the low two bits of `c`.
pub mod permute {
    /// Four bytes from a position on.
    pub const F4E: [u32; 4] = [0x3210, 0x4321, 0x5432, 0x6543];
    /// Four bytes down from a position, cyclically.
    pub const B4E: [u32; 4] = [0x5670, 0x6701, 0x7012, 0x0123];
    /// One byte, four times.
    pub const RC8: [u32; 4] = [0x0000, 0x1111, 0x2222, 0x3333];
    /// Clamped at the left edge.
    pub const ECL: [u32; 4] = [0x3210, 0x3211, 0x3222, 0x3333];
    /// Clamped at the right edge.
    pub const ECR: [u32; 4] = [0x0000, 0x1110, 0x2210, 0x3210];
    /// One half, twice.
    pub const RC16: [u32; 4] = [0x1010, 0x3232, 0x1010, 0x3232];
}
