//! Weights from the bytes of a GGUF file, on the device.
//!
//! A row is decoded in *groups* of consecutive weights, one thread a group, so that neighbours store
//! neighbours. A group lies within one block, and within what one scale scales. The blocks are those of
//! ggml, `ggml-common.h` and `dequantize_row_*` in `ggml-quants.c`, bit for bit.
//!
//! Numbers are exact where the format's product fits 24 bits (`q8_0`, `q4_0`, `q6_k`), and rounded once, by
//! the sum with the minimum, where not (`q4_k`, `q5_k`).

use super::WeightFormat;
use super::words::load_words;
use warpwright_dsl::*;

/// A row of `k` weights as it lies in the file. Its first byte is at a multiple of
/// [`WeightFormat::alignment`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct GgufRow<'k> {
    pub(crate) format: WeightFormat,
    pub(crate) k: u32,
    pub(crate) bytes: Ptr<'k, Global, u8>,
}

/// The same four bits of every byte.
const NIBBLES: u32 = 0x0f0f_0f0f;

impl<'k> GgufRow<'k> {
    /// Weights of a group: eight of a block; of numbers as many as divide `k` and fit 16 bytes.
    pub(crate) fn group(format: WeightFormat, k: u32) -> u32 {
        let most = if format == WeightFormat::F32 { 4 } else { 8 };
        if format.is_float() { most.min(1 << k.trailing_zeros().min(3)) } else { most }
    }

    /// The weights of a group, in their order.
    #[track_caller]
    pub(crate) fn decode(self, group: Reg<'k, u32>) -> Vec<Reg<'k, f32>> {
        match self.format {
            WeightFormat::F32 => self.numbers::<f32>(group),
            WeightFormat::F16 => self.numbers::<F16>(group),
            WeightFormat::Bf16 => self.numbers::<Bf16>(group),
            WeightFormat::Q8_0 => self.q8_0(group),
            WeightFormat::Q4_0 => self.q4_0(group),
            WeightFormat::Q4K | WeightFormat::Q5K => self.q4_k_or_q5_k(group),
            WeightFormat::Q6K => self.q6_k(group),
        }
    }

    /// Where a block begins.
    fn block(self, number: Reg<'k, u32>) -> Ptr<'k, Global, u8> {
        self.bytes.at(number * self.format.block_bytes())
    }

    fn numbers<T: Float>(self, group: Reg<'k, u32>) -> Vec<Reg<'k, f32>> {
        let count = Self::group(self.format, self.k);
        let row = self.bytes.cast::<T>().at(group * count);
        let loaded = match count {
            8 => row.ld_vec::<8>(0).to_vec(),
            4 => row.ld_vec::<4>(0).to_vec(),
            2 => row.ld_vec::<2>(0).to_vec(),
            _ => vec![row.ld(0)],
        };
        loaded.into_iter().map(|x| x.f32()).collect()
    }

    /// `f16 d; i8 qs[32]`.
    fn q8_0(self, group: Reg<'k, u32>) -> Vec<Reg<'k, f32>> {
        let block = self.block(group / 4);
        let d = block.cast::<F16>().ld(0).f32();
        let quants = load_words(block.at((group % 4) * 8), 2, 2, 2);
        bytes_of(&quants, |word, at| word.bits::<i32>().bfe(at, 8).f32() * d)
    }

    /// `f16 d; u8 qs[16]`: low halves are weights 0 to 15, high halves 16 to 31.
    fn q4_0(self, group: Reg<'k, u32>) -> Vec<Reg<'k, f32>> {
        let block = self.block(group / 4);
        let d = block.cast::<F16>().ld(0).f32();
        let bytes = load_words(block.at((group % 2) * 8), 2, 2, 2);
        let high = (group & 2) << 1;
        let quants: Vec<_> = bytes.into_iter().map(|word| (word >> high) & NIBBLES).collect();
        bytes_of(&quants, |word, at| (word.bfe(at, 8).f32() - 8.0) * d)
    }

    /// `f16 d, dmin; u8 scales[12]; u8 qh[32], of Q5_K alone; u8 qs[128]`.
    fn q4_k_or_q5_k(self, group: Reg<'k, u32>) -> Vec<Reg<'k, f32>> {
        let block = self.block(group / 32);
        let (within, sub_block) = (group % 4, (group / 4) % 8);
        let [both, scales, minima, mixed] = block.cast::<u32>().ld_vec(0);
        let [d, dmin] = both.bits::<F16x2>().f32x2();
        // Of the upper sub-blocks, the low four bits are in the last word and the rest above the six bits
        // of the lower ones.
        let (byte, upper) = ((sub_block % 4) * 8, sub_block.ge(4));
        let rest = |word: Reg<'k, u32>| ((word >> byte) >> 2) & 0x30;
        let mixed = mixed >> byte;
        let scale = upper.select((mixed & 15) | rest(scales), (scales >> byte) & 63);
        let minimum = upper.select(((mixed >> 4) & 15) | rest(minima), (minima >> byte) & 63);

        let five = self.format == WeightFormat::Q5K;
        let in_unit = block.at((sub_block / 2) * 32 + within * 8);
        let bytes = load_words(in_unit, if five { 48 } else { 16 }, 2, 8);
        let high = (sub_block % 2) * 4;
        let mut quants: Vec<_> = bytes.into_iter().map(|word| (word >> high) & NIBBLES).collect();
        if five {
            let fifth = load_words(block.at(within * 8), 16, 2, 8);
            for (quant, bits) in quants.iter_mut().zip(fifth) {
                *quant = *quant | ((bits >> sub_block) & 0x0101_0101) << 4;
            }
        }
        // The products are exact, so that the sum is all that is rounded.
        let (scale, minimum) = (d * scale.f32(), -(dmin * minimum.f32()));
        bytes_of(&quants, |word, at| word.bfe(at, 8).f32().mul_add(scale, minimum))
    }

    /// `u8 ql[128]; u8 qh[64]; i8 scales[16]; f16 d`, in two halves of 128 weights: their quarters are low
    /// and high halves of `ql`, and pairs of bits of `qh`.
    fn q6_k(self, group: Reg<'k, u32>) -> Vec<Reg<'k, f32>> {
        let block = self.block(group / 32);
        let (half, quarter, within) = ((group / 16) % 2, (group / 4) % 4, group % 4);
        let low = load_words(block.at(half * 64 + (quarter % 2) * 32 + within * 8), 0, 2, 2);
        let upper = load_words(block.at(half * 32 + within * 8), 128, 2, 2);
        let scale = block.cast::<i8>().ld((group / 2) % 16 + 192).f32();
        let scale = block.cast::<F16>().ld(104).f32() * scale;
        let quants: Vec<_> = (low.into_iter().zip(upper))
            .map(|(low, upper)| {
                let low = (low >> ((quarter / 2) * 4)) & NIBBLES;
                low | ((upper >> (quarter * 2)) & 0x0303_0303) << 4
            })
            .collect();
        bytes_of(&quants, |word, at| (word.bfe(at, 8).f32() - 32.0) * scale)
    }
}

/// What `decode` makes of each byte, which begins at a bit of its word.
fn bytes_of<'k>(
    words: &[Reg<'k, u32>],
    decode: impl Fn(Reg<'k, u32>, u32) -> Reg<'k, f32>,
) -> Vec<Reg<'k, f32>> {
    words.iter().flat_map(|&word| [0, 8, 16, 24].map(|at| decode(word, at))).collect()
}
