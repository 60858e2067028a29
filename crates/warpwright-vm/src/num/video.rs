//! Video instructions: arithmetic on bytes and half words of words.
//!
//! Values are selected and extended, combined in sufficiently wide integers, limited, and merged into or combined
//! with a third word. The ISA gives intermediate results 34 bits, whose sign depends on the destination's type. Wider
//! results are cut to that before they are limited. A second comparison takes the low 32 bits of a sum or difference,
//! and of any result for an unsigned destination, as a number of the destination's type; of other results it takes
//! all, as NVIDIA's hardware does.

use super::integer::holds;
use warpwright_ptx::ir::Cmp;

/// The operation on two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Primary {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Half of the sum; a half is rounded away from zero.
    Average,
    /// Absolute difference.
    Distance,
    /// The smaller.
    Min,
    /// The larger.
    Max,
    /// Shift left, by an amount modulo 32 or of at most 32.
    ShiftLeft {
        /// Modulo 32.
        wrap: bool,
    },
    /// Shift right.
    ShiftRight {
        /// Modulo 32.
        wrap: bool,
    },
    /// 1 where a comparison holds, else 0.
    Compare(Cmp),
}

/// The operation on the result and a third word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secondary {
    /// Sum.
    Add,
    /// The smaller.
    Min,
    /// The larger.
    Max,
}

/// A byte or half word of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subword {
    /// 8 or 16.
    pub bits: u32,
    /// Its index from the low end.
    pub index: u32,
}

impl Subword {
    /// The whole word.
    pub const WORD: Subword = Subword { bits: 32, index: 0 };

    /// The subword of one or two words, extended.
    pub fn extract(self, words: u64, signed: bool) -> i64 {
        let up = words << (64 - self.bits - self.index * self.bits);
        if signed { (up as i64) >> (64 - self.bits) } else { (up >> (64 - self.bits)) as i64 }
    }

    /// `word` with this part replaced.
    fn insert(self, word: u32, value: i64) -> u32 {
        let mask = u32::MAX >> (32 - self.bits) << (self.index * self.bits);
        word & !mask | ((value as u32) << (self.index * self.bits)) & mask
    }
}

/// Limits a value to the range of an integer of `bits` bits.
fn clamp(value: i128, bits: u32, signed: bool) -> i128 {
    let (low, high) = super::integer::range(bits, signed);
    value.clamp(low, high)
}

/// The low 34 bits, extended.
fn to_34_bits(value: i128) -> i128 {
    ((value as i64) << 30 >> 30).into()
}

impl Primary {
    fn apply(self, a: i64, b: i64) -> i128 {
        let (a, b) = (i128::from(a), i128::from(b));
        let amount = |wrap: bool| if wrap { b & 31 } else { b.min(32) };
        match self {
            Primary::Add => a + b,
            Primary::Sub => a - b,
            Primary::Average if a + b >= 0 => (a + b + 1) >> 1,
            Primary::Average => (a + b) >> 1,
            Primary::Distance => (a - b).abs(),
            Primary::Min => a.min(b),
            Primary::Max => a.max(b),
            Primary::ShiftLeft { wrap } => a << amount(wrap),
            Primary::ShiftRight { wrap } => a >> amount(wrap),
            Primary::Compare(cmp) => holds(cmp, a.cmp(&b)).unwrap_or(false).into(),
        }
    }
}

/// A scalar video instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// The operation.
    pub primary: Primary,
    /// Whether the result is signed.
    pub d_signed: bool,
    /// The subword of `a`, and whether it is signed.
    pub a: (Subword, bool),
    /// The subword of `b`, and whether it is signed.
    pub b: (Subword, bool),
    /// Whether the result is limited to the range of its destination.
    pub sat: bool,
    /// The subword of `c` that the result replaces.
    pub merge: Option<Subword>,
    /// How the result is combined with `c`.
    pub secondary: Option<Secondary>,
}

impl Scalar {
    /// The result for three words; `c` is used only for merging or the secondary operation.
    pub fn apply(&self, a: u32, b: u32, c: u32) -> u32 {
        let a = self.a.0.extract(a.into(), self.a.1);
        let b = self.b.0.extract(b.into(), self.b.1);
        let result = to_34_bits(self.primary.apply(a, b));
        let bits = self.merge.unwrap_or(Subword::WORD).bits;
        let result = if self.sat { clamp(result, bits, self.d_signed) } else { result };
        let wraps = !self.d_signed || matches!(self.primary, Primary::Add | Primary::Sub);
        let word = Subword::WORD.extract(u64::from(result as u32), self.d_signed);
        let result = if wraps { word } else { result as i64 };
        let third = Subword::WORD.extract(c.into(), self.d_signed);
        let result = match self.secondary {
            Some(Secondary::Add) => result + third,
            Some(Secondary::Min) => result.min(third),
            Some(Secondary::Max) => result.max(third),
            None => result,
        };
        self.merge.map_or(result as u32, |part| part.insert(c, result))
    }
}

/// A SIMD video instruction, on all subwords of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Simd {
    /// The operation.
    pub primary: Primary,
    /// Bits of a subword: 8 or 16.
    pub bits: u32,
    /// Whether the results are signed.
    pub d_signed: bool,
    /// The subwords of `b:a` that are used for `a`, from the low end, and whether they are signed.
    pub a: ([u8; 4], bool),
    /// The subwords of `b:a` that are used for `b`, from the low end, and whether they are signed.
    pub b: ([u8; 4], bool),
    /// Whether results are limited to the range of a subword.
    pub sat: bool,
    /// The subwords that are written or added: one bit for each.
    pub mask: u8,
    /// Whether the results are added to `c`.
    pub add: bool,
}

impl Simd {
    /// The result for three words.
    pub fn apply(&self, a: u32, b: u32, c: u32) -> u32 {
        let words = u64::from(b) << 32 | u64::from(a);
        let pick = |(parts, signed): ([u8; 4], bool), index: usize| {
            Subword { bits: self.bits, index: parts[index].into() }.extract(words, signed)
        };
        (0..32 / self.bits).filter(|index| self.mask >> index & 1 == 1).fold(c, |word, index| {
            let result = self.primary.apply(pick(self.a, index as usize), pick(self.b, index as usize));
            let result = if self.sat { clamp(result, self.bits, self.d_signed) } else { result };
            if self.add {
                word.wrapping_add(result as u32)
            } else {
                Subword { bits: self.bits, index }.insert(word, result as i64)
            }
        })
    }
}

/// `vmad`: the product of subwords plus a sum, scaled down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mad {
    /// The subword of `a`, and whether it is signed.
    pub a: (Subword, bool),
    /// The subword of `b`, and whether it is signed.
    pub b: (Subword, bool),
    /// Whether the product is negated.
    pub negate_product: bool,
    /// Whether `c` is negated.
    pub negate_c: bool,
    /// Whether one is added.
    pub plus_one: bool,
    /// Number of bits by which the sum is shifted right.
    pub scale: u32,
    /// Whether the result is limited to the range of a word.
    pub sat: bool,
}

impl Mad {
    /// The result for three words.
    pub fn apply(&self, a: u32, b: u32, c: u32) -> u32 {
        let signed = self.a.1 || self.b.1 || self.negate_product || self.negate_c;
        let a = i128::from(self.a.0.extract(a.into(), self.a.1));
        let b = i128::from(self.b.0.extract(b.into(), self.b.1));
        let c = i128::from(Subword::WORD.extract(c.into(), signed));
        let product = if self.negate_product { -(a * b) } else { a * b };
        let sum = product + if self.negate_c { -c } else { c } + i128::from(self.plus_one);
        let result = sum >> self.scale;
        (if self.sat { clamp(result, 32, signed) } else { result }) as u32
    }
}
