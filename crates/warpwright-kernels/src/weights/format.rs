//! The definition of a weight format: everything that differs between formats, and nothing else. Planes, repacking and
//! decoding for every kind of product are derived from it, in the same way for all formats.
//!
//! A *code* is the number of a few bits that stores a quantised weight. It stands for a *quant*, a small integer:
//! `weight = d · scale · quant - dmin · minimum`, with a scale (and a minimum) for each *part* of 16 or 32 weights.

use super::planes::UNIT;
use super::scales::{Records, Scales};
use crate::data::floats::Dtype;

/// A format of weights.
#[derive(Debug)]
pub(crate) struct Format {
    /// The number by which a GGUF file names it.
    pub(super) ggml_type: u32,
    /// Weights of a block: 1 where they are numbers by themselves, else 32, 64 or 256.
    pub(super) block: u32,
    /// Bytes of a block.
    pub(super) bytes: u32,
    /// How weights are made of blocks; numbers have no more to say.
    pub(super) quants: Option<Quants>,
}

/// How the weights of a block are made of its bytes.
#[derive(Debug)]
pub(crate) struct Quants {
    /// Where the bits of codes are, the lowest bits first.
    pub(super) codes: &'static [Field],
    /// What codes stand for.
    pub(super) values: Values,
    /// Weights that share a scale: 16, or 32 where codes have four bits at least.
    pub(super) part: u32,
    /// The bytes that are no codes: scales and what belongs to them.
    pub(super) records: &'static [Record],
    /// The scales of a unit, on the device.
    pub(super) scales: for<'k> fn(&Records<'k>) -> Scales<'k>,
    /// Scale and minimum of a part, of a block's bytes: the reference.
    pub(super) part_of: fn(&[u8], usize) -> [f64; 2],
    /// What every scaled quant is exactly, but for the rounding of the scale: `f16`, or `bf16` where scales exceed that.
    pub(super) half: Dtype,
    /// Whether a matrix has a scale of its own, an `f32` in a tensor beside it.
    pub(super) tensor_scale: bool,
}

/// Bits of the codes of a block: `width` for each weight. `run` neighbours are in the same bits of neighbouring bytes,
/// the next `run` in the next higher bits of the same bytes, and so on until bytes are full.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    /// Its first byte in the block.
    pub(super) at: u32,
    /// Bits of a weight.
    pub(super) width: u32,
    /// Neighbours in the same bits: 1, or a multiple of 8.
    pub(super) run: u32,
}

impl Field {
    /// Byte and bit of weight `i` of the block.
    pub(super) fn place(self, i: u32) -> (u32, u32) {
        let of_byte = 8 / self.width;
        let (group, within) = (i / (self.run * of_byte), i % (self.run * of_byte));
        (self.at + group * self.run + within % self.run, within / self.run * self.width)
    }
}

/// What codes stand for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Values {
    /// `code - zero`.
    From(u32),
    /// A signed byte.
    Signed,
    /// An entry of a codebook.
    Table(&'static [i8; 16]),
}

/// Bytes of a block beside its codes, which a plane holds as they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// The plane's name.
    pub(super) name: &'static str,
    /// The first byte in the block.
    pub(super) at: u32,
    /// Bytes.
    pub(super) bytes: u32,
    /// Whether each unit of 64 weights has its own share, and needs no other's. Only units of a block of 256 may need
    /// all of it.
    pub(super) shared_out: bool,
}

impl Format {
    /// Holds it to what all that is derived relies on.
    ///
    /// # Panics
    ///
    /// When the format is compiled, if it breaks one of these rules.
    pub(super) const fn check(&self) {
        let Some(quants) = &self.quants else { return };
        assert!(matches!(self.block, 32 | 64 | 256), "a block has 32, 64 or 256 weights");
        assert!(matches!(quants.bits(), 2..=6 | 8), "codes have 2 to 6 bits, or 8");
        let narrow = quants.codes[0].width < 4;
        assert!(
            quants.part == 16 || quants.part == 32 && !narrow,
            "a scale is for 16 weights, or for 32 where the first field of the codes has four bits at least"
        );
        let mut at = 0;
        while at < quants.records.len() {
            let record = quants.records[at];
            let bytes = if record.shared_out { record.unit_bytes(self.block) } else { record.bytes };
            assert!(
                bytes == 2 || bytes > 0 && bytes.is_multiple_of(4),
                "a unit of 64 weights reads 2 bytes of a record, or whole words: split the record"
            );
            assert!(record.shared_out || self.block == 256, "records of blocks of 32 and 64 are shared out");
            at += 1;
        }
    }
}

impl Record {
    /// Bytes of a unit's share of what is shared out, in blocks of so many weights.
    pub(super) const fn unit_bytes(self, block: u32) -> u32 {
        self.bytes * UNIT / block
    }
}

/// The components of a weight: `scale · quant - minimum`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weight {
    /// The factor of the quant; 1 for floats.
    pub scale: f64,
    /// The quant, or the float itself.
    pub quant: f64,
    /// The minimum, which is subtracted.
    pub minimum: f64,
}

impl Weight {
    /// The weight.
    pub fn value(self) -> f64 {
        self.scale * self.quant - self.minimum
    }
}

impl Values {
    /// What a code of `bits` bits stands for.
    fn quant(self, code: u8) -> i32 {
        match self {
            Values::From(zero) => i32::from(code) - zero as i32,
            Values::Signed => i32::from(code as i8),
            Values::Table(table) => table[usize::from(code & 15)].into(),
        }
    }
}

impl Quants {
    /// Bits of a code.
    pub(super) const fn bits(&self) -> u32 {
        let (mut bits, mut at) = (0, 0);
        while at < self.codes.len() {
            bits += self.codes[at].width;
            at += 1;
        }
        bits
    }

    /// Weight `i` of a block, whose bytes these are.
    pub(super) fn weight(&self, block: &[u8], i: usize) -> Weight {
        let (mut code, mut bits) = (0, 0);
        for field in self.codes {
            let (byte, bit) = field.place(i as u32);
            let mask = (1u16 << field.width) - 1;
            code |= (u16::from(block[byte as usize]) >> bit & mask) << bits;
            bits += field.width;
        }
        let [scale, minimum] = (self.part_of)(block, i / self.part as usize);
        Weight { scale, quant: self.values.quant(code as u8).into(), minimum }
    }
}
