//! Formats as a lane sees them: which weights of a slice are its own, and how they become factors.
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
//! place of bits 16..24 of `0x4000_0000` is `2 + byte / 64`. The bias is taken off again with the sum of the
//! part's activations. On the `int8` path the quants stay bytes.

use super::plan::LANES;
use crate::weights::WeightFormat;
use warpwright_dsl::*;

/// Weights of a chunk.
pub(super) const CHUNK: u32 = 4;

/// A lane's share of a slice, of one row.
pub(super) struct Share<'k> {
    /// The words of the plane of quants, or values.
    pub(super) words: Vec<Reg<'k, u32>>,
    /// The words of the plane with the upper bits, where there is one.
    pub(super) upper: Vec<Reg<'k, u32>>,
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
            WeightFormat::Q4K | WeightFormat::Q5K | WeightFormat::Q6K => 1,
            WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 | WeightFormat::Q8_0 => 4,
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

    /// The same on the device.
    pub(super) fn chunk_at_device<'k>(self, chunk: Reg<'k, u32>) -> Reg<'k, u32> {
        let per_run = self.run() / CHUNK;
        chunk / per_run * (LANES * self.run()) + chunk % per_run * CHUNK
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

    /// A factor of the exact path is `bias + step · q`, with the quant `q` less its offset in the format.
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

/// `value` shifted left, or right where the amount is negative.
fn shifted<'k>(value: Reg<'k, u32>, left: i32) -> Reg<'k, u32> {
    if left >= 0 { value << left.unsigned_abs() } else { value >> left.unsigned_abs() }
}

/// The same byte four times.
const fn four(byte: u32) -> u32 {
    byte * 0x0101_0101
}

impl Layout {
    /// The word that has the low four bits of a chunk's quants, and whether they are the upper halves of its
    /// bytes.
    fn nibbles(self, chunk: u32) -> (u32, bool) {
        if self.units() {
            // Byte i of a unit holds the weights i and i + 32.
            (chunk % 8, chunk >= 8)
        } else {
            // Byte i of a block of 32 holds the weights i and i + 16.
            (chunk / 8 * 4 + chunk % 4, chunk % 8 >= 4)
        }
    }

    /// The quants of a chunk, from bit `at` of bytes that are zero elsewhere.
    fn quants<'k>(self, share: &Share<'k>, chunk: u32, at: i32) -> Reg<'k, u32> {
        let (word, high) = self.nibbles(chunk);
        let high = u32::from(high);
        let low_bits = shifted(share.words[word as usize], at - 4 * high as i32) & four(0xf << at);
        let above = |from: u32, mask: u32, bits: Reg<'k, u32>| {
            shifted(bits, at + 4 - from as i32) & four(mask << (at + 4))
        };
        // Where docs/weights.md puts what is above the low four bits.
        match self.format {
            WeightFormat::Q5K => low_bits | above(word % 4 * 2 + high, 1, share.upper[word as usize / 4]),
            WeightFormat::Q6K => low_bits | above(word % 2 * 4 + high * 2, 3, share.upper[word as usize / 2]),
            _ => low_bits,
        }
    }

    /// The weights of a chunk as factors of the exact path.
    pub(super) fn exact<'k>(self, share: &Share<'k>, chunk: u32) -> [Reg<'k, f32>; 4] {
        let word = |i: u32| share.words[i as usize];
        // `2 + byte / 64`: 2.0 with its third byte exchanged.
        let significands =
            |bytes: Reg<'k, u32>| [0, 1, 2, 3].map(|i| bytes.prmt(0x4000_0000, 0x7044 | i << 8).bits());
        match self.format {
            WeightFormat::F32 => [0, 1, 2, 3].map(|i| word(4 * chunk + i).bits()),
            WeightFormat::F16 => {
                let [[a, b], [c, d]] = [0, 1].map(|i| word(2 * chunk + i).bits::<F16x2>().f32x2());
                [a, b, c, d]
            }
            WeightFormat::Bf16 => {
                let [[a, b], [c, d]] = [0, 1].map(|i| word(2 * chunk + i).bits::<Bf16x2>().f32x2());
                [a, b, c, d]
            }
            // `1.5 + q / 256`: the byte ends at bit 22, its sign turned around.
            WeightFormat::Q8_0 => {
                [0, 1, 2, 3].map(|i| (shifted(word(chunk), 15 - 8 * i) & 0x007f_8000 ^ 0x3fc0_0000).bits())
            }
            WeightFormat::Q4_0 | WeightFormat::Q4K => significands(self.quants(share, chunk, 3)),
            WeightFormat::Q5K => significands(self.quants(share, chunk, 2)),
            WeightFormat::Q6K => significands(self.quants(share, chunk, 1)),
        }
    }

    /// The weights of a chunk as bytes of the `int8` path; none where they are no quants.
    pub(super) fn int8<'k>(self, share: &Share<'k>, chunk: u32) -> Option<Reg<'k, u32>> {
        match self.format {
            WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 => None,
            WeightFormat::Q8_0 => Some(share.words[chunk as usize]),
            WeightFormat::Q4_0 | WeightFormat::Q4K | WeightFormat::Q5K => Some(self.quants(share, chunk, 0)),
            // `4 (q - 32)`: at the top of the byte, the upper bit is the sign, turned around.
            WeightFormat::Q6K => Some(self.quants(share, chunk, 2) ^ four(0x80)),
        }
    }
}
