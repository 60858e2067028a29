//! Thin products on the lanes, in `f32`, for elements that the target's tensor cores do not multiply.
//!
//! One transposing sum ([`Spread`]) yields the products of all vectors and rows. So every lane holds a few of them,
//! and later steps, such as an exponential, are computed once.

use super::super::K;
use super::super::exchange::Kept;
use super::super::reg::Reg;
use super::super::row_wise::{SpreadRows, SpreadTile};
use super::super::spread::{List, Spread};
use super::super::strips::{StripElement, StripRows, Strips};
use super::super::types::*;
use super::{AT_ONCE, ThinProducts, ThinRows, ThinShape, ThinStep, all, refuse_scales};
use std::panic::Location;

/// Thin products on the lanes: see [`K::lane_products`].
#[derive(Clone, Copy)]
pub struct LaneProducts<'k, T> {
    k: K<'k>,
    shape: ThinShape,
    strips: Strips<'k, T>,
    /// The lane's elements of the vectors.
    kept: Kept<'k>,
    matrices: [ThinRows<'k, T>; 2],
}

impl<'k> K<'k> {
    /// Thin products on the lanes, in `f32`: see [`tensor_products`](Self::tensor_products). Vectors are multiplied
    /// by `scale`. Rows must have no scales (`E0013`).
    #[track_caller]
    pub fn lane_products<T: StripElement>(
        self,
        shape: ThinShape,
        scale: Reg<'k, f32>,
        matrices: [ThinRows<'k, T>; 2],
        load: impl Fn(Reg<'k, u32>, Reg<'k, u32>, Option<Reg<'k, Pred>>, u32) -> Vec<Reg<'k, f32>>,
    ) -> LaneProducts<'k, T> {
        refuse_scales(self, &matrices, Location::caller());
        let strips = self.strips::<T>(shape.width);
        let vector = |vector: u32| {
            let parts = (0..strips.width() / 4).flat_map(|part| {
                let (element, has) = strips.vector(part);
                load(self.u32(vector), element, has, 4)
            });
            parts.map(|element| (element * scale).bits()).collect::<Vec<_>>()
        };
        let kept = self.keep(shape.held, shape.vectors * strips.width(), || {
            (0..shape.vectors).flat_map(vector).collect()
        });
        LaneProducts { k: self, shape, strips, kept, matrices }
    }
}

impl<'k, T: StripElement> LaneProducts<'k, T> {
    /// The lane's elements of a vector.
    fn vector(&self, vector: u32) -> Vec<Reg<'k, f32>> {
        let width = self.strips.width();
        self.kept.get(vector * width, width).into_iter().map(|word| word.bits()).collect()
    }

    fn spread(&self) -> Spread<'k> {
        self.strips.spread((self.shape.vectors * self.shape.step) as usize)
    }

    fn load(
        &self,
        rows: ThinRows<'k, T>,
        step: ThinStep<'k>,
        before: Option<StripRows<'k, T>>,
    ) -> StripRows<'k, T> {
        let matrix = step.of(rows.elements, self.shape.width);
        self.strips.load(matrix, step.row, self.shape.step, step.wanted, before)
    }
}

impl<'k, T: StripElement> ThinProducts<'k> for LaneProducts<'k, T> {
    type Products = SpreadTile<'k>;
    type Rows = StripRows<'k, T>;
    type Addends = StripRows<'k, T>;
    type Sums = List<'k, f32>;

    const UNIT: f32 = 0.0;
    const SLACK: f32 = 16.0;

    fn rows(&self) -> u32 {
        self.shape.step * self.strips.rows()
    }

    fn vectors(&self) -> u32 {
        self.shape.vectors
    }

    fn load_rows(&self, step: ThinStep<'k>, before: Option<Self::Rows>) -> Self::Rows {
        self.load(self.matrices[0], step, before)
    }

    fn load_addends(&self, step: ThinStep<'k>, before: Option<Self::Addends>) -> Self::Addends {
        self.load(self.matrices[1], step, before)
    }

    fn filled(&self, value: f32) -> Self::Products {
        self.spread().filled(self.shape.step as usize, value)
    }

    fn zeros(&self) -> Self::Sums {
        self.k.list((0..self.shape.vectors * self.strips.width()).map(|_| self.k.f32(0.0)))
    }

    fn multiply(&self, rows: Self::Rows, step: Option<ThinStep<'k>>, other: f32) -> Self::Products {
        let there = |i| {
            let ThinStep { row, end, .. } = step?;
            Some((row + self.strips.row() + i * self.strips.rows()).lt(end?))
        };
        let rows: Vec<_> = (0..self.shape.step).map(|i| (rows.values(i), there(i))).collect();
        let mut parts = Vec::new();
        for vector in (0..self.shape.vectors).map(|vector| self.vector(vector)) {
            for (row, there) in &rows {
                let products = row.iter().zip(&vector);
                let part = products.fold(None, |sum: Option<Reg<'k, f32>>, (&row, &vector)| {
                    Some(sum.map_or_else(|| row * vector, |sum| row.mul_add(vector, sum)))
                });
                let part = part.unwrap_or_else(|| self.k.f32(0.0));
                // The sum over the run is `other`, exactly.
                let of_lane = other / self.strips.lanes() as f32;
                parts.push(there.map_or(part, |there| there.select(part, of_lane)));
            }
        }
        self.spread().sum_tile(self.shape.step as usize, &parts)
    }

    fn scale(&self, sums: Self::Sums, factor: SpreadRows<'k>) -> Self::Sums {
        let sums = sums.to_vec();
        let vectors = (0..).zip(sums.chunks_exact(self.strips.width() as usize));
        self.k.list(vectors.flat_map(|(vector, sums)| {
            let factor = factor.get(vector);
            sums.iter().map(move |&sum| sum * factor)
        }))
    }

    fn add(&self, weights: Self::Products, rows: Self::Addends, sums: Self::Sums) -> Self::Sums {
        let mut sums = sums.to_vec();
        for i in 0..self.shape.step {
            let row = rows.values(i);
            for (vector, sums) in (0..).zip(sums.chunks_exact_mut(row.len())) {
                let weight = weights.get(vector, i as usize);
                sums.iter_mut().zip(&row).for_each(|(sum, &element)| *sum = weight.mul_add(element, *sum));
            }
        }
        self.k.list(sums)
    }

    fn reduce_scatter(
        &self,
        sums: Self::Sums,
        factor: impl Fn(Reg<'k, u32>) -> Reg<'k, f32>,
        each: impl Fn(Reg<'k, u32>, Reg<'k, u32>, Option<Reg<'k, Pred>>, &[Reg<'k, f32>]),
    ) {
        let (width, sums) = (self.strips.width(), sums.to_vec());
        let parts = (0..).zip(sums.chunks_exact(width as usize)).flat_map(|(vector, sums)| {
            let factor = factor(self.k.u32(vector));
            sums.chunks_exact(4).map(move |sums| [0, 1, 2, 3].map(|i: usize| sums[i] * factor))
        });
        self.k.reduce_scatter(&parts.collect::<Vec<_>>(), AT_ONCE, |part, sums| {
            let sums = sums.map(|sum| self.spread().sum_over_runs(sum));
            let (element, has) = self.strips.vector(part % (width / 4));
            each(element, part / (width / 4), all([has, Some(self.strips.row().eq(0))]), &sums);
        });
    }
}
