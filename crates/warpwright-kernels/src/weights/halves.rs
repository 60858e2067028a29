//! Weights as halves, for the tensor cores.
//!
//! One thread decodes a unit, or two threads decode its halves: half of the pieces each, or half of the levels of a
//! single piece. A thread's weights form *runs* of 16 neighbours.
//!
//! Every `f16` is a multiple of 2⁻²⁴, and so is a weight that is a product of an `f16` and an integer. Small weights
//! are therefore exact in half precision. Larger ones are rounded to 11 bits: once if the scale is a half by itself,
//! and twice if the scale is a product (the scale, then the weight).
//!
//! With a minimum, weights are differences of larger numbers, whose rounding errors could exceed the weight. So the
//! weight of the middle code is computed first, in `f32`, and the others relative to it: `scale · (code - middle) +
//! (scale · middle - minimum)`.

use super::WeightFormat;
use super::codes::Piece;
use super::planes::Planes;
use super::units::{MatrixAt, RUN, UnitAt, Units};
use crate::data::floats::Dtype;
use warpwright_dsl::*;

/// The planes of a quantised matrix, read for the tensor cores.
#[derive(Clone, Debug)]
pub(crate) struct HalfReader<'k> {
    units: Units,
    matrix: MatrixAt<'k>,
    /// Which half of units the thread decodes; `None` where it decodes all.
    half: Option<Reg<'k, u32>>,
}

/// Scale and minimum of a part.
type ScaleAndMinimum<'k> = (Reg<'k, f32>, Option<Reg<'k, f32>>);

/// What a thread has of a unit, as it was loaded: for each run its piece, its level there, its scale and minimum.
#[derive(Clone, Debug)]
pub(crate) struct Share<'k> {
    runs: Vec<(Piece<'k>, u32, ScaleAndMinimum<'k>)>,
    half: Dtype,
}

impl<'k> HalfReader<'k> {
    /// The planes of `n` rows of `row` weights, in units or, where `half` says which, in halves of them; `None` where
    /// weights are numbers.
    pub(crate) fn new(
        (format, n, row): (WeightFormat, u32, u32),
        weights: Ptr<'k, Global, u8>,
        (k, half): (K<'k>, Option<Reg<'k, u32>>),
    ) -> Option<Self> {
        // The lines that the next steps need come along.
        let matrix = MatrixAt::new(k, &Planes::new(format, n, row), weights.prefetch_128());
        Units::of(format).map(|units| HalfReader { units, matrix, half })
    }

    /// The runs that a thread of half `half` has: piece and level of each.
    fn runs(&self, half: u32) -> Vec<(u32, u32)> {
        let (pieces, levels) = (self.units.quants.pieces(), self.units.quants.levels());
        let all = (0..pieces).flat_map(|piece| (0..levels).map(move |level| (piece, level)));
        let of_half = |&(piece, level): &(u32, u32)| match (self.half, pieces) {
            (None, _) => true,
            (Some(_), 1) => level / (levels / 2) == half,
            (Some(_), _) => piece / (pieces / 2) == half,
        };
        all.filter(of_half).collect()
    }

    /// Something of a run that is another one in each half.
    fn of_run<T>(&self, run: usize, of: impl Fn(u32) -> T, choose: impl Fn(Reg<'k, Pred>, T, T) -> T) -> T {
        let pieces = self.units.quants.pieces();
        let first = |half| {
            let (piece, level) = self.runs(half)[run];
            of(piece + level * pieces)
        };
        match self.half {
            None => first(0),
            Some(half) => choose(half.ne(0), first(1), first(0)),
        }
    }

    /// The columns, of the unit's 64, with which the thread's runs begin.
    pub(crate) fn columns(&self, k: K<'k>) -> Vec<Reg<'k, u32>> {
        let column = |run| self.of_run(run, |number| k.u32(number * RUN), |upper, a, b| upper.select(a, b));
        (0..self.runs(0).len()).map(column).collect()
    }

    /// Loads what the thread decodes of a unit of a row.
    #[track_caller]
    pub(crate) fn load(&self, row: Reg<'k, u32>, unit: Reg<'k, u32>) -> Share<'k> {
        let (at, quants) = (UnitAt::new(unit), self.units.quants);
        let row = self.matrix.row(row);
        let plane = |plane: usize| row[plane];
        let stride = self.matrix.pitches()[0] / quants.pieces();
        let loaded = match self.half {
            Some(half) if quants.pieces() > 1 => self.units.load_half(at, (half, stride), plane),
            _ => self.units.load(at, stride, plane),
        };
        let scales = self.units.scales(at, plane);
        let part = |number: u32| scales.part((number * RUN / self.units.part()) as usize);
        let choose = |upper: Reg<'k, Pred>, a: ScaleAndMinimum<'k>, b: ScaleAndMinimum<'k>| {
            (upper.select(a.0, b.0), a.1.zip(b.1).map(|(a, b)| upper.select(a, b)))
        };
        let run = |(i, (piece, level)): (usize, (u32, u32))| {
            let piece = loaded[piece as usize].clone();
            let piece = match self.half {
                // The upper levels are where the lower ones were.
                Some(half) if quants.pieces() == 1 => piece.lowered(half * 4),
                _ => piece,
            };
            (piece, level, self.of_run(i, part, choose))
        };
        Share { runs: self.runs(0).into_iter().enumerate().map(run).collect(), half: quants.half }
    }

    /// The scale of the matrix.
    pub(crate) fn tensor_scale(&self) -> Option<Reg<'k, f32>> {
        self.matrix.tensor_scale()
    }
}

impl<'k> Share<'k> {
    /// The runs, each as pairs of halves in their order.
    #[track_caller]
    pub(crate) fn decode(&self) -> Vec<[Reg<'k, u32>; 8]> {
        let run = |(piece, level, (scale, minimum)): &(Piece<'k>, u32, ScaleAndMinimum<'k>)| {
            let codes = piece.quants().device_codes();
            let zero = if minimum.is_some() { 1 << (codes.bits - 1) } else { codes.zero };
            let middle = minimum.map(|minimum| self.twice(scale.mul_add(zero as f32, -minimum)));
            let scale = self.twice(*scale);
            let pairs: Vec<_> = (0..4).flat_map(|word| piece.halves(*level, word, zero)).collect();
            std::array::from_fn(|i| self.scaled(pairs[i], scale, middle))
        };
        self.runs.iter().map(run).collect()
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
