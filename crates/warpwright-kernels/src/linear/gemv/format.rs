//! Formats as a lane sees them: which weights of a slice are its own, how they become numbers, and how their
//! scales are applied.
//!
//! A group of eight lanes walks a row in slices. A lane's share of a slice comes in *chunks* of four weights,
//! counted from 0, and belongs to *parts* that have a scale each:
//!
//! ```text
//!   Q4_K, Q5_K, Q6_K   units of 64 consecutive weights        lane u: 64u .. 64u + 64
//!   the others         16 bytes of weights, side by side      lane u: piece u, piece 8 + u, …
//! ```
//!
//! On the exact path the bits of a quant become the significand of a float without a conversion: a byte in
//! place of bits 16..24 of `0x4000_0000` is `2 + q / 2ᵇ`, where the quant's bits end at bit 22. The two are
//! taken off again with the sum of the part's activations. On the `int8` path the quants stay bytes.

use super::plan::LANES;
use crate::weights::WeightFormat;
use warpwright_ptx::dsl::*;

/// Weights of a chunk.
pub(super) const CHUNK: u32 = 4;

/// A lane's share of a slice, of one row.
pub(super) struct Share<'k> {
    /// The words of the plane of quants, or values.
    pub(super) words: Vec<Reg<'k, u32>>,
    /// The words of the plane with the upper bits, where there is one.
    pub(super) upper: Vec<Reg<'k, u32>>,
}

/// Four neighbouring weights, as the factors of four activations.
pub(super) struct Quad<T> {
    /// Where they are in the lane's share.
    pub(super) chunk: u32,
    /// The part that they belong to.
    pub(super) part: usize,
    /// What they are multiplied as.
    pub(super) factors: T,
}

impl<T> Quad<T> {
    fn new(chunk: u32, part: u32, factors: T) -> Self {
        Quad { chunk, part: part as usize, factors }
    }
}

/// A format, as lanes share it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) format: WeightFormat,
}

impl Layout {
    pub(super) fn new(format: WeightFormat) -> Self {
        Layout { format }
    }

    /// Whether lanes take units of 64 consecutive weights.
    pub(super) fn units(self) -> bool {
        self.format.block() == 256
    }

    /// Consecutive weights of a lane.
    pub(super) fn run(self) -> u32 {
        match self.format {
            WeightFormat::F32 => 4,
            WeightFormat::F16 | WeightFormat::Bf16 => 8,
            WeightFormat::Q8_0 => 16,
            WeightFormat::Q4_0 => 32,
            WeightFormat::Q4K | WeightFormat::Q5K | WeightFormat::Q6K => 64,
        }
    }

    /// Such runs in a lane's share of a slice.
    pub(super) fn runs(self) -> u32 {
        match self.format {
            WeightFormat::Q4_0 => 2,
            format if format.block() == 256 => 1,
            _ => 4,
        }
    }

    /// Weights of a slice of a row.
    pub(super) fn slice(self) -> u32 {
        LANES * self.run() * self.runs()
    }

    /// Chunks of a lane's share.
    pub(super) fn chunks(self) -> u32 {
        self.run() * self.runs() / CHUNK
    }

    /// Where chunk `chunk` of lane 0 begins in the slice; that of lane `u` is `u` runs further.
    pub(super) fn chunk_at(self, chunk: u32) -> u32 {
        let per_run = self.run() / CHUNK;
        chunk / per_run * LANES * self.run() + chunk % per_run * CHUNK
    }

    /// Parts of a lane's share that have a scale each; none where weights are numbers.
    pub(super) fn parts(self) -> u32 {
        match self.format {
            WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 => 0,
            WeightFormat::Q4_0 | WeightFormat::Q4K | WeightFormat::Q5K => 2,
            WeightFormat::Q8_0 | WeightFormat::Q6K => 4,
        }
    }

    /// Chunks of a part.
    pub(super) fn part_chunks(self) -> u32 {
        self.chunks() / self.parts().max(1)
    }

    /// Whether each part has a minimum.
    pub(super) fn has_minima(self) -> bool {
        matches!(self.format, WeightFormat::Q4K | WeightFormat::Q5K)
    }

    /// A factor on the exact path is `bias + q · step`, with the quant `q` less its offset in the format.
    pub(super) fn exact_bias(self) -> f32 {
        match self.format {
            WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 => 0.0,
            WeightFormat::Q4K | WeightFormat::Q5K => 2.0,
            WeightFormat::Q4_0 | WeightFormat::Q6K => 3.0,
            WeightFormat::Q8_0 => 1.5,
        }
    }

    /// See [`exact_bias`](Self::exact_bias).
    pub(super) fn exact_step(self) -> f32 {
        match self.format {
            WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 => 1.0,
            WeightFormat::Q4K | WeightFormat::Q4_0 => 1.0 / 8.0,
            WeightFormat::Q5K => 1.0 / 16.0,
            WeightFormat::Q6K => 1.0 / 32.0,
            WeightFormat::Q8_0 => 1.0 / 256.0,
        }
    }

    /// The steps in which a share is multiplied, each of a few words.
    pub(super) fn steps(self) -> u32 {
        match self.format {
            WeightFormat::F16 | WeightFormat::Bf16 => 8,
            WeightFormat::F32 => 4,
            WeightFormat::Q8_0 => 16,
            _ => 8,
        }
    }
}

/// The float `2 + byte / 64` for byte `i` of `bytes`, which is less than 128.
fn significand<'k>(bytes: Reg<'k, u32>, i: u32) -> Reg<'k, f32> {
    // 2.0 with its third byte exchanged.
    bytes.prmt(0x4000_0000, 0x7044 | i << 8).bits()
}

fn significands<'k>(bytes: Reg<'k, u32>) -> [Reg<'k, f32>; 4] {
    [0, 1, 2, 3].map(|i| significand(bytes, i))
}

/// `value` shifted left, or right where the amount is negative.
fn shifted<'k>(value: Reg<'k, u32>, left: i32) -> Reg<'k, u32> {
    if left >= 0 { value << left.unsigned_abs() } else { value >> left.unsigned_abs() }
}

/// The same byte four times.
const fn bytes(byte: u32) -> u32 {
    byte * 0x0101_0101
}

/// Where a step's low (0) or high (1) halves of bytes go: chunk and part.
fn nibble_quad(layout: Layout, step: u32, high: u32) -> (u32, u32) {
    let chunk = if layout.units() {
        // Byte i of a unit holds the weights i and i + 32.
        step + 8 * high
    } else {
        // Byte i of a block of 32 holds the weights i and i + 16.
        step / 4 * 8 + step % 4 + 4 * high
    };
    (chunk, chunk / layout.part_chunks())
}

impl Layout {
    /// The bits of a step's quants, at bit `at` of bytes that are zero elsewhere.
    fn quants<'k>(self, share: &Share<'k>, step: u32, high: u32, at: i32) -> Reg<'k, u32> {
        let low_bits = shifted(share.words[step as usize], at - 4 * high as i32) & bytes(0xf << at);
        let above = |from: u32, bits: u32, word: Reg<'k, u32>| {
            shifted(word, at + 4 - from as i32) & bytes((1 << bits) - 1 << (at + 4))
        };
        match self.format {
            WeightFormat::Q5K => {
                let word = share.upper[step as usize / 4];
                low_bits | above(step % 4 * 2 + high, 1, word)
            }
            WeightFormat::Q6K => {
                let word = share.upper[step as usize / 2];
                low_bits | above(step % 2 * 4 + high * 2, 2, word)
            }
            _ => low_bits,
        }
    }

    /// The weights of a step as factors of the exact path.
    pub(super) fn exact<'k>(self, share: &Share<'k>, step: u32) -> Vec<Quad<[Reg<'k, f32>; 4]>> {
        let word = |i: u32| share.words[i as usize];
        match self.format {
            WeightFormat::F32 => {
                vec![Quad::new(step, 0, [0, 1, 2, 3].map(|i| word(4 * step + i).bits()))]
            }
            WeightFormat::F16 => {
                let [[a, b], [c, d]] = [0, 1].map(|i| word(2 * step + i).bits::<F16x2>().f32x2());
                vec![Quad::new(step, 0, [a, b, c, d])]
            }
            WeightFormat::Bf16 => {
                let [[a, b], [c, d]] = [0, 1].map(|i| word(2 * step + i).bits::<Bf16x2>().f32x2());
                vec![Quad::new(step, 0, [a, b, c, d])]
            }
            WeightFormat::Q8_0 => {
                // `1.5 + q / 256`: the byte ends at bit 22, its sign turned around.
                let factor = |i: i32| {
                    let bits = shifted(word(step), 15 - 8 * i) & 0x007f_8000 ^ 0x3fc0_0000;
                    bits.bits()
                };
                vec![Quad::new(step, step / 4, [0, 1, 2, 3].map(factor))]
            }
            WeightFormat::Q4_0 | WeightFormat::Q4K | WeightFormat::Q5K | WeightFormat::Q6K => {
                let at = match self.format {
                    WeightFormat::Q5K => 2,
                    WeightFormat::Q6K => 1,
                    _ => 3,
                };
                let quad = |high| {
                    let (chunk, part) = nibble_quad(self, step, high);
                    Quad::new(chunk, part, significands(self.quants(share, step, high, at)))
                };
                vec![quad(0), quad(1)]
            }
        }
    }

    /// The weights of a step as bytes of the `int8` path: unsigned, but signed where
    /// [`int8_signed`](Self::int8_signed) says so.
    pub(super) fn int8<'k>(self, share: &Share<'k>, step: u32) -> Vec<Quad<Reg<'k, u32>>> {
        match self.format {
            WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 => Vec::new(),
            WeightFormat::Q8_0 => vec![Quad::new(step, step / 4, share.words[step as usize])],
            WeightFormat::Q4_0 | WeightFormat::Q4K | WeightFormat::Q5K | WeightFormat::Q6K => {
                let quad = |high| {
                    let (chunk, part) = nibble_quad(self, step, high);
                    let bytes = if self.format == WeightFormat::Q6K {
                        // `4 (q - 32)`: at the top of the byte, the upper bit is the sign, turned around.
                        self.quants(share, step, high, 2) ^ bytes(0x80)
                    } else {
                        self.quants(share, step, high, 0)
                    };
                    Quad::new(chunk, part, bytes)
                };
                vec![quad(0), quad(1)]
            }
        }
    }

    /// Whether the bytes of the `int8` path are signed.
    pub(super) fn int8_signed(self) -> bool {
        matches!(self.format, WeightFormat::Q8_0 | WeightFormat::Q6K)
    }

    /// What the format takes from a quant that the bytes of the `int8` path still have.
    pub(super) fn int8_offset(self) -> Option<f32> {
        (self.format == WeightFormat::Q4_0).then_some(8.0)
    }

    /// What the bytes of the `int8` path are divided by.
    pub(super) fn int8_scale(self) -> f32 {
        if self.format == WeightFormat::Q6K { 4.0 } else { 1.0 }
    }
}
