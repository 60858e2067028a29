//! A lane's weights of a slice.
//!
//! A group of eight lanes walks a row in slices. Of quantised weights a lane has a unit, 64 consecutive ones; of numbers it
//! has 16 bytes four times, side by side with the other lanes. Four neighbours are a *chunk*, counted from 0.

use super::plan::{LANES, Lanes, Slice};
use crate::data::floats::Dtype;
use crate::weights::units::{Unit, UnitAt, Units};
use crate::weights::{Floating, UNIT, WeightFormat};
use std::ops::Range;
use warpwright_dsl::*;

/// Weights of a chunk.
pub(super) const CHUNK: u32 = 4;
/// Chunks of the smallest part, of 16 weights.
pub(super) const MIN_PART: u32 = 4;

/// A format, as lanes share it out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) format: WeightFormat,
    /// How units are read, where weights are quantised.
    pub(super) units: Option<Units>,
    /// Consecutive weights of a lane.
    pub(super) run: u32,
    /// Chunks of a lane.
    pub(super) chunks: u32,
}

impl Layout {
    pub(super) fn new(format: WeightFormat) -> Self {
        let units = Units::of(format);
        let (run, runs) = if units.is_some() { (UNIT, 1) } else { (16 / format.float().bytes(), 4) };
        Layout { format, units, run, chunks: run * runs / CHUNK }
    }

    /// Weights of a slice of a row.
    pub(super) fn slice(self) -> u32 {
        self.chunks * CHUNK * LANES
    }

    /// Where a chunk of lane 0 begins in the slice; that of lane `u` is `run · u` further.
    pub(super) fn chunk_at<'k>(self, chunk: Reg<'k, u32>) -> Reg<'k, u32> {
        let of_run = self.run / CHUNK;
        chunk / of_run * (LANES * self.run) + chunk % of_run * CHUNK
    }

    /// Parts of a lane's weights that have a scale each; none where weights are numbers.
    pub(super) fn parts(self) -> u32 {
        self.units.map_or(0, Units::parts)
    }

    /// Chunks of a part; more than there are where there is none.
    pub(super) fn part_chunks(self) -> u32 {
        self.units.map_or(u32::MAX, |units| units.part() / CHUNK)
    }

    /// The parts of some chunks.
    pub(super) fn parts_of(self, chunks: &Range<u32>) -> Range<usize> {
        let part = |chunk| (chunk / self.part_chunks()) as usize;
        part(chunks.start)..part(chunks.end)
    }

    /// What [`Share::floats`] are, for codes.
    pub(super) fn floating(self) -> Floating {
        self.units.map_or(Floating { step: 1.0, zero: 0.0 }, |units| units.quants.device_codes().float())
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
            let words = (0..4).flat_map(|i| {
                let inside = slice.rest.map(|rest| ((lanes.in_group + i * LANES) * self.run).lt(rest));
                let words = row(0).cast::<u32>().at((slice.number * 4 + i) * (LANES * 4));
                words.ld_vec_if::<4>(inside, lanes.in_group * 4, 0)
            });
            return Share::Numbers(self.format.float(), words.collect());
        };
        let at = UnitAt {
            unit: slice.number * LANES + lanes.in_group,
            superblock: slice.number * 2 + lanes.quad,
            within: lanes.in_quad,
            present: slice.rest.map(|rest| (lanes.in_group * UNIT).lt(rest)),
        };
        Share::Unit(units.unit(at, stride, row))
    }
}

/// A lane's weights of a slice, of one row.
pub(super) enum Share<'k> {
    /// Numbers of a type, in words.
    Numbers(Dtype, Vec<Reg<'k, u32>>),
    /// A unit.
    Unit(Unit<'k>),
}

impl<'k> Share<'k> {
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
            Share::Unit(unit) => unit.floats(chunk * CHUNK),
        }
    }
    /// The weights of a chunk of a unit as bytes.
    pub(super) fn bytes(&self, chunk: u32) -> Reg<'k, u32> {
        match self {
            Share::Numbers(_, words) => words[chunk as usize],
            Share::Unit(unit) => unit.bytes(chunk * CHUNK),
        }
    }
}
