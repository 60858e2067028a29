//! Decoding of weights on the device from the bytes of a GGUF file.
//!
//! A thread decodes a *group* of consecutive weights, so that neighbouring threads store to neighbouring addresses. A
//! group lies within one part of a block.
//!
//! Results are exact if the format has no minima, and rounded once by the subtraction of the minimum if it has. A scale
//! of the matrix adds one more rounding.

use super::WeightFormat;
use super::codes::{four, spread};
use super::format::{Quants, Values};
use super::planes::UNIT;
use super::scales::Records;
use super::words::{aligned, load_word};
use warpwright_dsl::*;

/// A row of `k` weights as it lies in the file. Its first byte is at a multiple of
/// [`WeightFormat::alignment`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct GgufRow<'k> {
    pub(crate) format: WeightFormat,
    pub(crate) k: u32,
    pub(crate) bytes: Ptr<'k, Global, u8>,
}

/// Weights of a group of a block.
const GROUP: u32 = 8;

impl<'k> GgufRow<'k> {
    /// Weights of a group: eight of a block; of numbers as many as divide `k` and fit 16 bytes.
    pub(crate) fn group(format: WeightFormat, k: u32) -> u32 {
        let max = if format == WeightFormat::F32 { 4 } else { GROUP };
        if format.is_float() { max.min(1 << k.trailing_zeros().min(3)) } else { max }
    }

    /// The weights of a group, in their order.
    #[track_caller]
    pub(crate) fn decode(self, group: Reg<'k, u32>) -> Vec<Reg<'k, f32>> {
        match (self.format.quants(), self.format) {
            (Some(quants), _) => self.quantised(quants, group),
            (None, WeightFormat::F16) => self.numbers::<F16>(group),
            (None, WeightFormat::Bf16) => self.numbers::<Bf16>(group),
            (None, _) => self.numbers::<f32>(group),
        }
    }

    fn numbers<T: Float>(self, group: Reg<'k, u32>) -> Vec<Reg<'k, f32>> {
        let count = Self::group(self.format, self.k);
        let row = self.bytes.cast::<T>().at(group * count);
        row.ld_many(None, 0, count, group.kernel().f32(0.0).to::<T>()).into_iter().map(|x| x.f32()).collect()
    }

    fn quantised(self, quants: &Quants, group: Reg<'k, u32>) -> Vec<Reg<'k, f32>> {
        let k = group.kernel();
        let of_block = self.format.block() / GROUP;
        let block = self.bytes.at(group / of_block * self.format.block_bytes());
        let first = group % of_block * GROUP;
        let word = |at: Reg<'k, u32>, alignment| load_word(k, block.at(at), alignment, None);

        // The eight codes, in two words.
        let mut codes: Option<[Reg<'k, u32>; 2]> = None;
        let mut bits = 0;
        for field in quants.codes {
            let of_field = if field.run == 1 {
                let byte = block.at(first / GROUP).at(field.at).ld(0).to::<u32>();
                [0, 4].map(|at| spread(byte >> at))
            } else {
                let turn = field.run * (8 / field.width);
                let byte = first / turn * field.run + first % field.run;
                let bit = first % turn / field.run * field.width;
                let alignment = aligned(self.format.alignment(), field.at).min(4);
                [0, 4].map(|i| (word(byte + (field.at + i), alignment) >> bit) & four((1 << field.width) - 1))
            };
            let moved = of_field.map(|of_field| of_field << bits);
            codes = Some(codes.map_or(moved, |codes| [codes[0] | moved[0], codes[1] | moved[1]]));
            bits += field.width;
        }
        let codes = codes.unwrap_or([k.u32(0); 2]);

        let (unit, part) = (first / UNIT, first % UNIT / quants.part);
        let records = quants.records.iter().map(|record| {
            let alignment = aligned(self.format.alignment(), record.at);
            let (at, bytes) = match record.shared_out && self.format.block() > UNIT {
                true => {
                    (unit * record.unit_bytes(self.format.block()), record.unit_bytes(self.format.block()))
                }
                false => (k.u32(0), record.bytes),
            };
            let from = block.at(record.at).at(at);
            match bytes {
                1 => vec![from.ld(0).to()],
                2 => vec![from.cast::<u16>().ld(0).to()],
                _ => {
                    (0..bytes).step_by(4).map(|i| load_word(k, from.at(i), alignment.min(4), None)).collect()
                }
            }
        });
        // A block that is half of a unit is the first half of one here.
        let mut words: Vec<Vec<_>> = records.collect();
        words.iter_mut().for_each(|words| words.resize(4, k.u32(0)));
        let scales = (quants.scales)(&Records { words, unit });
        let of_part = |of: &dyn Fn(usize) -> Reg<'k, f32>| {
            let parts = (self.format.block().min(UNIT) / quants.part) as usize;
            (1..parts).fold(of(0), |value, i| part.eq(i as u32).select(of(i), value))
        };
        let scale = of_part(&|i| scales.part(i).0);
        let minimum =
            (!scales.minima.is_empty()).then(|| of_part(&|i| scales.part(i).1.unwrap_or_else(|| k.f32(0.0))));

        let value = |quant: Reg<'k, f32>| match minimum {
            // The product is exact, so that the sum is all that is rounded.
            Some(minimum) => quant.mul_add(scale, -minimum),
            None => quant * scale,
        };
        let bytes = |word: Reg<'k, u32>| [0, 8, 16, 24].map(|at| word.bfe(at, 8));
        let quants_of = |word: Reg<'k, u32>| match quants.values {
            Values::From(zero) => bytes(word).map(|code| code.f32() - zero as f32),
            Values::Signed => [0, 8, 16, 24].map(|at| word.bits::<i32>().bfe(at, 8).f32()),
            Values::Table(table) => {
                let [of_low, _] = word.look_up(table.map(|value| value as u8));
                [0, 8, 16, 24].map(|at| of_low.bits::<i32>().bfe(at, 8).f32())
            }
        };
        codes.into_iter().flat_map(quants_of).map(value).collect()
    }
}
