//! How the codes of a unit of 64 weights are stored in words of its planes.
//!
//! The plane `codes` holds the 8, 4 or 2 bits of each code that fill words evenly, in *pieces* of 16 bytes; the plane
//! `rest` holds the remaining bits. A word of a piece has a byte for each of four neighbours, and each byte has a
//! *level* for each set of four. The weights of a piece are:
//!
//! ```text
//!   unit:     0 .. 16       16 .. 32      32 .. 48      48 .. 64
//!   8 bits    piece 0       piece 1       piece 2       piece 3          one level
//!   4 bits    piece 0       piece 1       piece 0       piece 1          level 0, then level 1
//!   2 bits    level 0       level 1       level 2       level 3          of the one piece
//! ```
//!
//! A code is used in place, without shifting it down in its byte: it is `raise` bits up, and the product divides by
//! that power of two. The bits from `rest` are placed above or below those from `codes`, so that two operations combine
//! them. A word of `rest` serves several words, each with its own rotation.

use super::format::{Quants, Values};
use crate::data::floats::Dtype;
use warpwright_dsl::*;

/// Bits of a code in the planes `codes` and `rest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) main: u32,
    pub(super) rest: u32,
}

/// Where the code of each byte is.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// How many bits it is raised.
    raise: u32,
    /// Its bits in a byte of `codes`.
    main: u32,
    /// Its bits in `rest`: the number of the word, of those of the piece, how far that is turned, and the bits of a byte.
    rest: Option<(usize, u32, u32)>,
}

/// The same byte four times.
pub(super) const fn four(byte: u32) -> u32 {
    byte * 0x0101_0101
}

/// The four low bits of a word, one in each byte of another.
pub(super) fn spread(bits: Reg<'_, u32>) -> Reg<'_, u32> {
    ((bits & 15) * 0x0020_4081) & four(1)
}

/// The lowest bits of four bytes, side by side: the inverse of [`spread`].
pub(super) fn gathered(bytes: Reg<'_, u32>) -> Reg<'_, u32> {
    (bytes * 0x1020_4080) >> 28
}

impl Cut {
    pub(super) fn of(quants: &Quants) -> Self {
        let bits = quants.bits();
        let main = 1 << bits.ilog2();
        Cut { main, rest: bits - main }
    }

    /// Pieces of a unit.
    pub(super) fn pieces(self) -> u32 {
        self.main / 2
    }

    /// Levels of a word.
    pub(super) fn levels(self) -> u32 {
        8 / self.main
    }

    /// Words of `rest` that belong to a piece.
    pub(super) fn rest_words(self) -> u32 {
        2 * self.rest / self.pieces()
    }

    /// The slot of level `level` of word `word` of a piece.
    fn slot(self, level: u32, word: u32) -> Slot {
        let main = ((1 << self.main) - 1) << (self.main * level);
        let at = |raise, turn: u32, of_byte, per_word: u32| Slot {
            raise,
            main,
            rest: Some(((word / per_word) as usize, word % per_word * turn, of_byte)),
        };
        match (self.main, self.rest) {
            // The fifth bit, or the first.
            (4, 1) => at(3 * level, 2, [0x10, 0x08][level as usize], 4),
            // The upper two bits, or the lower ones.
            (4, 2) => at(2 * level, 4, [0x30, 0x0c][level as usize], 2),
            // The third bit, the first, the third, the first.
            (2, 1) => at([0, 1, 4, 5][level as usize], 2, [0x04, 0x02, 0x40, 0x20][level as usize], 2),
            _ => Slot { raise: self.main * level, main, rest: None },
        }
    }

    /// The words of a piece, of what its codes are by level and word.
    pub(super) fn join<'k>(
        self,
        k: K<'k>,
        code: impl Fn(u32, u32) -> Reg<'k, u32>,
    ) -> (Vec<Reg<'k, u32>>, Vec<Reg<'k, u32>>) {
        let (mut main, mut rest) = (vec![k.u32(0); 4], vec![k.u32(0); self.rest_words() as usize]);
        for word in 0..4 {
            for level in 0..self.levels() {
                let slot = self.slot(level, word);
                let raised = code(level, word) << slot.raise;
                let place = &mut main[word as usize];
                *place = *place | (raised & four(slot.main));
                if let Some((number, turn, bits)) = slot.rest {
                    let bits = raised & four(bits);
                    rest[number] = rest[number] | bits.shf_left(bits, turn);
                }
            }
        }
        (main, rest)
    }
}

/// A piece of a unit, as it was loaded.
#[derive(Clone, Debug)]
pub(crate) struct Piece<'k> {
    quants: &'static Quants,
    /// Four words of the plane `codes`.
    main: [Reg<'k, u32>; 4],
    /// Those of `rest` that belong to it.
    rest: Vec<Reg<'k, u32>>,
}

/// Codes as kernels compute with them: bytes from 0 on. A quant is the code less [`zero`](Self::zero).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Codes {
    /// Their bits.
    pub(crate) bits: u32,
    /// The code of the quant 0.
    pub(crate) zero: u32,
}

impl Quants {
    /// The codes that [`Piece`] gives.
    pub(crate) fn device_codes(&self) -> Codes {
        let bits = self.bits();
        match self.values {
            Values::From(zero) => Codes { bits, zero },
            Values::Signed => Codes { bits, zero: 128 },
            Values::Table(table) if table.iter().all(|value| value.unsigned_abs() < 16) => {
                Codes { bits: 5, zero: 16 }
            }
            Values::Table(_) => Codes { bits: 8, zero: 128 },
        }
    }

    /// By how many bits the codes of a level are raised.
    pub(crate) fn raise(&self, level: u32) -> u32 {
        match self.values {
            // As far up as floats want them.
            Values::Table(_) => 7u32.saturating_sub(self.device_codes().bits),
            _ => Cut::of(self).slot(level, 0).raise,
        }
    }

    /// The plane with which the records begin.
    pub(super) fn first_record(&self) -> usize {
        if Cut::of(self).rest > 0 { 2 } else { 1 }
    }

    /// Pieces of a unit.
    pub(crate) fn pieces(&self) -> u32 {
        Cut::of(self).pieces()
    }

    /// Levels of a piece.
    pub(crate) fn levels(&self) -> u32 {
        Cut::of(self).levels()
    }
}

impl<'k> Piece<'k> {
    /// Four words of `codes`, and those of `rest`.
    pub(super) fn new(quants: &'static Quants, main: &[Reg<'k, u32>], rest: &[Reg<'k, u32>]) -> Self {
        Piece { quants, main: std::array::from_fn(|i| main[i]), rest: rest.to_vec() }
    }

    /// The codes of four neighbours as the file has them, signed ones moved up.
    pub(super) fn stored(&self, level: u32, word: u32) -> Reg<'k, u32> {
        let slot = Cut::of(self.quants).slot(level, word);
        self.raised(slot, word) >> slot.raise
    }

    /// The codes of four neighbours, raised by [`Quants::raise`], a byte each.
    pub(crate) fn bytes(&self, level: u32, word: u32) -> Reg<'k, u32> {
        let Values::Table(table) = self.quants.values else {
            return self.raised(Cut::of(self.quants).slot(level, word), word);
        };
        let (Codes { zero, .. }, raise) = (self.quants.device_codes(), self.quants.raise(level));
        let codes = table.map(|value| ((i32::from(value) + zero as i32) << raise) as u8);
        self.main[word as usize].look_up(codes)[level as usize]
    }

    fn raised(&self, slot: Slot, word: u32) -> Reg<'k, u32> {
        let main = self.main[word as usize];
        let main = if slot.main == 0xff { main } else { main & four(slot.main) };
        let Some((number, turn, bits)) = slot.rest else { return main };
        let rest = self.rest[number];
        let turned = if turn == 0 { rest } else { rest.shf_right(rest, turn) };
        main | (turned & four(bits))
    }

    /// The codes of four neighbours as floats: `base + step · code`, see [`Codes::float`].
    pub(crate) fn floats(&self, level: u32, word: u32) -> [Reg<'k, f32>; 4] {
        let bytes = self.bytes(level, word);
        let bits = self.quants.device_codes().bits;
        if bits == 8 {
            // Conversions run at a fraction of the rate of other instructions, of which a float takes two: half of each.
            const BASE: f32 = 8_388_608.0;
            let of_base = |i: u32| bytes.prmt(BASE.to_bits(), 0x7540 + i).bits::<f32>() - BASE;
            return [bytes.bfe(0, 8).f32(), of_base(1), bytes.bfe(16, 8).f32(), of_base(3)];
        }
        // `2 + byte / 64`: 2.0 with its third byte exchanged for one whose highest bit is zero.
        let bytes = moved(bytes, self.quants.raise(level), 7 - bits);
        [0, 1, 2, 3].map(|i| bytes.prmt(0x4000_0000, 0x7044 | i << 8).bits())
    }

    /// How its format's weights are made.
    pub(super) fn quants(&self) -> &'static Quants {
        self.quants
    }

    /// The piece with all levels so many bits lower.
    pub(super) fn lowered(self, bits: Reg<'k, u32>) -> Self {
        let main = self.main.map(|word| word >> bits);
        let rest = self.rest.iter().map(|&word| word.shf_right(word, bits)).collect();
        Piece { main, rest, ..self }
    }

    /// The codes of four neighbours less `zero` as pairs of `f16`, or of `bf16`, exactly.
    pub(super) fn halves(&self, level: u32, word: u32, zero: u32) -> [Reg<'k, u32>; 2] {
        let (bytes, down) = (self.bytes(level, word), 0.5f32.powi(self.quants.raise(level) as i32));
        // A number whose last bit is 1: with a byte in the place of its low bits it is that much more than the byte.
        let (bits, magic) = match self.quants.half {
            Dtype::Bf16 => (0x4343_4343, 128.0),
            _ => (0x6464_6464, 1024.0),
        };
        [0x4140, 0x4342].map(|pair| {
            let raised = bytes.prmt(bits, pair);
            let take = -(magic * down + zero as f32);
            match (self.quants.half, down == 1.0) {
                (Dtype::Bf16, _) => raised.bits::<Bf16x2>().mul_add(down, take).bits(),
                (_, true) => (raised.bits::<F16x2>() + take).bits(),
                (_, false) => raised.bits::<F16x2>().mul_add(down, take).bits(),
            }
        })
    }
}

impl Codes {
    /// What codes are as floats: `base + step · code`, and therefore the quant 0. The last is the sum of both, of `zero`.
    pub(crate) fn float(self) -> Floating {
        let (base, step) = if self.bits == 8 { (0.0, 1.0) } else { (2.0, 2f32.powi(1 - self.bits as i32)) };
        Floating { step, zero: base + step * self.zero as f32 }
    }
}

/// Codes as floats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Floating {
    /// What one quant and the next differ by.
    pub(crate) step: f32,
    /// What the quant 0 is.
    pub(crate) zero: f32,
}

/// Bit `from` moved to bit `to`.
fn moved(word: Reg<'_, u32>, from: u32, to: u32) -> Reg<'_, u32> {
    match from.cmp(&to) {
        std::cmp::Ordering::Equal => word,
        std::cmp::Ordering::Greater => word >> (from - to),
        std::cmp::Ordering::Less => word << (to - from),
    }
}
