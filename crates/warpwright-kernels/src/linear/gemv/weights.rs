//! A lane's weights of a slice.
//!
//! A group of eight lanes walks a row in slices. Of quantised weights a lane has a unit, 64 consecutive ones; of numbers it
//! has 16 bytes four times, side by side with the other lanes. Four neighbours are a *chunk*, counted from 0.

use super::plan::{LANES, Lanes, Slice};
use crate::data::floats::Dtype;
use crate::weights::units::{UnitAt, Units};
use crate::weights::{Floating, Piece, Scales, UNIT, WeightFormat};
use warpwright_dsl::*;

/// Weights of a chunk.
pub(super) const CHUNK: u32 = 4;
/// Chunks of what a scale is for at least.
pub(super) const RUN: u32 = 4;

/// A format, as lanes share it out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) format: WeightFormat,
    /// How units are read, where weights are quantised.
    pub(super) units: Option<Units>,
}

impl Layout {
    pub(super) fn new(format: WeightFormat) -> Self {
        Layout { format, units: Units::of(format) }
    }

    /// Consecutive weights of a lane, and how often it has so many in a slice.
    fn runs(self) -> (u32, u32) {
        match (self.units, self.format.float()) {
            (Some(_), _) => (UNIT, 1),
            (None, float) => (16 / float.bytes(), 4),
        }
    }

    /// Weights of a slice of a row.
    pub(super) fn slice(self) -> u32 {
        self.chunks() * CHUNK * LANES
    }

    /// Chunks of a lane.
    pub(super) fn chunks(self) -> u32 {
        let (run, runs) = self.runs();
        run * runs / CHUNK
    }

    /// Where a chunk of lane 0 begins in the slice; that of lane `u` is [`run`](Self::run)` · u` further.
    pub(super) fn chunk_at<'k>(self, chunk: Reg<'k, u32>) -> Reg<'k, u32> {
        let of_run = self.run() / CHUNK;
        chunk / of_run * (LANES * self.run()) + chunk % of_run * CHUNK
    }

    /// Consecutive weights of a lane.
    pub(super) fn run(self) -> u32 {
        self.runs().0
    }

    /// Parts of a lane's weights that have a scale each; none where weights are numbers.
    pub(super) fn parts(self) -> u32 {
        self.units.map_or(0, Units::parts)
    }

    /// Chunks of a part.
    pub(super) fn part_chunks(self) -> u32 {
        self.chunks() / self.parts().max(1)
    }

    /// What [`Share::floats`] are, for codes.
    pub(super) fn floating(self) -> Floating {
        self.units.map_or(Floating { step: 1.0, zero: 0.0 }, |units| units.quants.device_codes().float())
    }

    /// By how many bits [`Share::bytes`] of a part are raised.
    fn raise(self, part: u32) -> u32 {
        let of_units =
            |units: Units| units.quants.raise(part * self.part_chunks() / RUN / units.quants.pieces());
        self.units.map_or(0, of_units)
    }

    /// What the quant 0 is as such a byte.
    pub(super) fn byte_zero(self, part: u32) -> u32 {
        self.units.map_or(0, |units| units.quants.device_codes().zero << self.raise(part))
    }

    /// What sums of bytes are in the end, of one quant and an activation of 1.
    pub(super) fn byte_height(self) -> f32 {
        let most = (0..self.parts()).map(|part| self.raise(part)).max();
        2f32.powi(most.unwrap_or(0) as i32)
    }

    /// What brings the sums over a part to that height.
    pub(super) fn byte_scale(self, part: u32) -> f32 {
        self.byte_height() * 0.5f32.powi(self.raise(part) as i32)
    }

    /// Pieces of a lane's unit, which lie apart; one where weights are numbers.
    pub(super) fn pieces(self) -> u32 {
        self.units.map_or(1, |units| units.quants.pieces())
    }

    /// Loads a lane's weights of a slice, of the row whose planes `row` gives by their numbers, with the pieces of units
    /// `stride` bytes apart.
    pub(super) fn load<'k>(
        self,
        (slice, lanes): (Slice<'k>, Lanes<'k>),
        stride: Dim<'k>,
        row: impl Fn(usize) -> Ptr<'k, Global, u8> + Copy,
    ) -> Share<'k> {
        let Some(units) = self.units else {
            let run = self.run();
            let words = (0..4).flat_map(|i| {
                let place = lanes.unit * run + i * LANES * run;
                let inside = slice.rest.map(|rest| place.lt(rest));
                let words = row(0).cast::<u32>().at((slice.number * 4 + i) * (LANES * 4));
                words.ld_vec_if::<4>(inside, lanes.unit * 4, 0)
            });
            return Share::Numbers(self.format.float(), words.collect());
        };
        let at = UnitAt {
            unit: slice.number * LANES + lanes.unit,
            superblock: slice.number * 2 + lanes.half,
            within: lanes.in_quad,
            present: slice.rest.map(|rest| (lanes.unit * UNIT).lt(rest)),
        };
        Share::Unit(units.load(at, stride, row), units.scales(at, row))
    }
}

/// A lane's weights of a slice, of one row.
pub(super) enum Share<'k> {
    /// Numbers of a type, in words.
    Numbers(Dtype, Vec<Reg<'k, u32>>),
    /// The pieces of a unit, and its scales.
    Unit(Vec<Piece<'k>>, Scales<'k>),
}

impl<'k> Share<'k> {
    /// The piece that a chunk of a unit is in, its level and its word.
    fn place(&self, pieces: &[Piece<'k>], chunk: u32) -> (usize, u32, u32) {
        let (run, count) = (chunk / RUN, pieces.len() as u32);
        ((run % count) as usize, run / count, chunk % RUN)
    }

    /// The weights of a chunk as factors: numbers, or codes with a scale to come.
    pub(super) fn floats(&self, chunk: u32) -> [Reg<'k, f32>; 4] {
        let pairs = |words: &[Reg<'k, u32>], float: fn(Reg<'k, u32>) -> [Reg<'k, f32>; 2]| {
            let [[a, b], [c, d]] = [0, 1].map(|i| float(words[2 * chunk as usize + i]));
            [a, b, c, d]
        };
        match self {
            Share::Numbers(Dtype::F32, words) => [0, 1, 2, 3].map(|i| words[4 * chunk as usize + i].bits()),
            Share::Numbers(Dtype::F16, words) => pairs(words, |word| word.bits::<F16x2>().f32x2()),
            Share::Numbers(Dtype::Bf16, words) => pairs(words, |word| word.bits::<Bf16x2>().f32x2()),
            Share::Unit(pieces, _) => {
                let (piece, level, word) = self.place(pieces, chunk);
                pieces[piece].floats(level, word)
            }
        }
    }

    /// The weights of a chunk of a unit as bytes.
    pub(super) fn bytes(&self, chunk: u32) -> Option<Reg<'k, u32>> {
        let Share::Unit(pieces, _) = self else { return None };
        let (piece, level, word) = self.place(pieces, chunk);
        Some(pieces[piece].bytes(level, word))
    }
}
