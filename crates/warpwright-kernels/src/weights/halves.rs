//! Weights as halves, for the tensor cores.
//!
//! Two threads and more decode a unit: each a piece, or half of the levels of the one piece that there is. What a thread
//! has are *runs* of 16 neighbours.
//!
//! Every `f16` is a multiple of 2⁻²⁴, and so is a weight that is made of `f16` and whole numbers. What is small is
//! therefore exact in half precision, and what is not is rounded to 11 bits: once where the scale is a half by itself, and
//! where it is a product, twice (the scale, the weight).
//!
//! With a minimum, weights are differences of numbers that are larger than they: what rounding leaves of these would be
//! much of the weight. So the weight of the code in the middle is made first, in `f32`, and others are counted from there:
//! `scale · (code - middle) + (scale · middle - minimum)`.

use super::WeightFormat;
use super::codes::Piece;
use super::planes::Planes;
use super::units::{PlaneAt, UnitAt, Units, planes_at};
use crate::data::floats::Dtype;
use warpwright_dsl::*;

/// Weights of a run.
pub(crate) const RUN: u32 = 16;

/// The planes of a quantised matrix, read by several threads a unit.
#[derive(Clone, Debug)]
pub(crate) struct HalfReader<'k> {
    units: Units,
    planes: Vec<PlaneAt<'k>>,
    weights: Ptr<'k, Global, u8>,
}

/// What a thread has of a unit, as it was loaded.
#[derive(Clone, Debug)]
pub(crate) struct Share<'k> {
    piece: Piece<'k>,
    /// Scale and minimum of each run.
    parts: Vec<(Reg<'k, f32>, Option<Reg<'k, f32>>)>,
    half: Dtype,
}

impl<'k> HalfReader<'k> {
    /// The planes of `n` rows of `k` weights; `None` where weights are numbers.
    pub(crate) fn new(k: K<'k>, format: WeightFormat, n: u32, row: u32, weights: Ptr<'k, Global, u8>) -> Option<Self> {
        let planes = planes_at(k, &Planes::new(format, n, row));
        Units::of(format).map(|units| HalfReader { units, planes, weights })
    }

    /// Threads that decode a unit.
    pub(crate) fn threads(&self) -> u32 {
        self.units.quants.pieces().max(2)
    }

    /// The column, of the unit's 64, with which run `run` of thread `thread` begins.
    pub(crate) fn column(&self, thread: Reg<'k, u32>, run: u32) -> Reg<'k, u32> {
        match self.units.quants.pieces() {
            1 => (thread * (self.units.quants.levels() / 2) + run) * RUN,
            pieces => (thread + run * pieces) * RUN,
        }
    }

    /// Loads what thread `thread` of those of a unit decodes.
    #[track_caller]
    pub(crate) fn load(&self, row: Reg<'k, u32>, unit: Reg<'k, u32>, thread: Reg<'k, u32>) -> Share<'k> {
        let quants = self.units.quants;
        let (at, pieces) = (UnitAt::new(unit), quants.pieces());
        let plane = |number: usize| {
            let plane = &self.planes[number];
            let begin = plane.offset.map_or(self.weights, |offset| self.weights.at(offset));
            begin.at(plane.pitch.rows(row))
        };
        let stride = self.planes[0].pitch / pieces;
        let piece = self.units.load_piece(at, (thread, stride), plane);
        let scales = self.units.scales(at, plane);
        let (piece, runs) = match pieces {
            1 => (piece.lowered(thread * 4), quants.levels() / 2),
            _ => (piece, quants.levels()),
        };
        // Threads have runs of different parts.
        let parts = (0..runs).map(|run| {
            let part = |thread: u32| {
                let first = if pieces == 1 { thread * runs + run } else { thread + run * pieces };
                scales.part((first * RUN / self.units.part()) as usize)
            };
            (1..self.threads()).fold(part(0), |chosen, i| {
                let (this, own) = (part(i), thread.eq(i));
                let minimum = this.1.zip(chosen.1).map(|(this, chosen)| own.select(this, chosen));
                (own.select(this.0, chosen.0), minimum)
            })
        });
        Share { piece, parts: parts.collect(), half: quants.half }
    }

    /// The scale of the matrix.
    pub(crate) fn tensor_scale(&self) -> Option<Reg<'k, f32>> {
        let last = self.planes.last().filter(|_| self.units.quants.tensor_scale)?;
        let begin = last.offset.map_or(self.weights, |offset| self.weights.at(offset));
        Some(begin.cast::<f32>().ld(0))
    }
}

impl<'k> Share<'k> {
    /// The runs, each as pairs of halves in their order.
    #[track_caller]
    pub(crate) fn decode(&self) -> Vec<[Reg<'k, u32>; 8]> {
        let codes = self.piece.quants().device_codes();
        let run = |(level, (scale, minimum)): (u32, &(Reg<'k, f32>, Option<Reg<'k, f32>>))| {
            let zero = if minimum.is_some() { 1 << (codes.bits - 1) } else { codes.zero };
            let middle = minimum.map(|minimum| self.twice(scale.mul_add(zero as f32, -minimum)));
            let scale = self.twice(*scale);
            let pairs: Vec<_> = (0..4).flat_map(|word| self.piece.halves(level, word, zero)).collect();
            std::array::from_fn(|i| self.scaled(pairs[i], scale, middle))
        };
        (0..).zip(&self.parts).map(run).collect()
    }

    /// A number as a pair of halves.
    fn twice(&self, number: Reg<'k, f32>) -> Reg<'k, u32> {
        match self.half {
            Dtype::Bf16 => number.pack_bf16(number).bits(),
            _ => number.pack_f16(number).bits(),
        }
    }

    /// `pair · scale + more`.
    fn scaled(&self, pair: Reg<'k, u32>, scale: Reg<'k, u32>, more: Option<Reg<'k, u32>>) -> Reg<'k, u32> {
        let nothing = || pair.kernel().u32(0x8000_8000);
        match (self.half, more) {
            (Dtype::Bf16, more) => {
                pair.bits::<Bf16x2>().mul_add(scale.bits(), more.unwrap_or_else(nothing).bits()).bits()
            }
            (_, Some(more)) => pair.bits::<F16x2>().mul_add(scale.bits(), more.bits()).bits(),
            (_, None) => (pair.bits::<F16x2>() * scale.bits::<F16x2>()).bits(),
        }
    }
}
