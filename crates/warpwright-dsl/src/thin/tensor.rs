//! Thin products on the tensor cores.
//!
//! `S = X·Rᵀ` has one row per vector, and `Yᵀ = Rᵀ·Wᵀ` one row per element: so weights become the right factor in
//! place, and rows are factors as they were loaded. If the factor type cannot represent a vector, the vector is
//! scaled so that its largest element is `2^14` and represented as a sum of several vectors. These terms are stacked,
//! so that up to eight vectors take one instruction. Weights are sums of two or three such numbers too; near `2^14`,
//! small ones keep their bits.
//!
//! Bytes are exact as halves. Scales multiply the products of each run of 32 elements; for sums, they multiply the
//! weights, separately for each run.

use super::super::K;
use super::super::reg::Reg;
use super::super::tile::*;
use super::super::types::*;
use super::{AT_ONCE, ThinProducts, ThinRows, ThinShape, ThinStep, all, refuse_scales};
use std::panic::Location;
use warpwright_ptx::ir::Type;

/// Columns of an instruction: what numbers of vectors are rounded up to.
const N8: u32 = 8;
/// Rows of an instruction.
const M16: u32 = 16;
/// The exponent of a vector's largest element.
const VECTOR_EXPONENT: u32 = 14;
/// Elements that share a scale.
const RUN: u32 = 32;

/// Terms whose sum is a weight: their errors are `2⁻²²` and `2⁻²⁴` of it.
fn weight_terms<T: Half>() -> u32 {
    if T::TYPE == Type::F16 { 2 } else { 3 }
}

/// Thin products on the tensor cores: see [`K::tensor_products`].
#[derive(Clone, Copy)]
pub struct TensorProducts<'k, T: Direct> {
    k: K<'k>,
    shape: ThinShape,
    /// Terms of all vectors, and what products with them are multiplied by.
    factor: KeptTile<'k, T::Factor>,
    scale: Rows<'k>,
    matrices: [ThinRows<'k, T>; 2],
}

impl<'k> K<'k> {
    /// Thin products on the tensor cores. The rows of the first matrix are multiplied, those of the second are added
    /// up, and products are multiplied by `scale`. `load` receives a vector's number, an element's number, a
    /// predicate for whether the elements exist, and their count, and returns these neighbouring elements. For numbers that one
    /// term cannot represent, the error of products is `2^-22 Σ|x||r| + 2^-38 max|x| Σ|r|`, besides what the tensor
    /// cores cut off. All threads of the block call it.
    ///
    /// Needs `sm_75`, and for `Bf16` `sm_80`. Only rows of bytes have scales (`E0013` otherwise).
    #[track_caller]
    pub fn tensor_products<T: Direct>(
        self,
        shape: ThinShape,
        scale: Reg<'k, f32>,
        matrices: [ThinRows<'k, T>; 2],
        load: impl Fn(Reg<'k, u32>, Reg<'k, u32>, Option<Reg<'k, Pred>>, u32) -> Vec<Reg<'k, f32>>,
    ) -> TensorProducts<'k, T> {
        let ThinShape { vectors, width, held, terms, .. } = shape;
        if T::RUN_OF_A != RUN {
            refuse_scales(self, &matrices, Location::caller());
        }
        let room = vectors.next_multiple_of(N8);
        let tile = self.rows_for_fragments(room, width, |vector, column| {
            let there = (vectors < room).then(|| vector.lt(vectors));
            let ragged = (!width.is_multiple_of(RUN)).then(|| column.lt(width));
            load(vector, column, all([there, ragged]), 8)
        });
        let (normal, down) = tile.normalized_rows(VECTOR_EXPONENT);
        let sides = [(room * terms).next_multiple_of(M16), tile.columns()];
        let factor = self.keep_a(held, sides, || normal.as_terms(terms).stacked_a());
        TensorProducts { k: self, shape, factor, scale: down * scale, matrices }
    }
}

/// Rows as they were loaded, and their scales.
type Loaded<'k, R, T> = (Fragments<'k, R, T>, Option<PerColumn<'k>>);

impl<'k, T: Direct> TensorProducts<'k, T> {
    /// Registers of a lane for vectors, and for sums.
    pub fn registers(shape: ThinShape) -> [u32; 2] {
        let room = shape.vectors.next_multiple_of(N8);
        let vectors = (room * shape.terms).next_multiple_of(M16) * shape.width.next_multiple_of(RUN) / 64;
        [vectors, room * shape.width.next_multiple_of(T::RUN_OF_A) / 32]
    }

    fn load<R: DirectRole>(
        &self,
        ThinRows { elements, scales }: ThinRows<'k, T>,
        step: ThinStep<'k>,
        before: Option<Loaded<'k, R, T>>,
    ) -> Loaded<'k, R, T> {
        let (ThinStep { row, wanted, .. }, ThinShape { width, step: count, .. }) = (step, self.shape);
        let before = before.unzip();
        let rows = step.of(elements, width).fragments(row, count, wanted, before.0);
        let load = |all| step.of(all, width / RUN).per_column(row, count, wanted, before.1.flatten());
        (rows, scales.map(load))
    }
}

impl<'k, T: Direct> ThinProducts<'k> for TensorProducts<'k, T> {
    type Products = Tile<'k, Acc, f32>;
    type Rows = Loaded<'k, B, T>;
    type Addends = Loaded<'k, A, T>;
    type Sums = Tile<'k, Acc, f32>;

    const UNIT: f32 = 14.0;
    /// It stays a half.
    const SLACK: f32 = 1.0;

    fn rows(&self) -> u32 {
        self.shape.step
    }

    fn vectors(&self) -> u32 {
        self.shape.vectors.next_multiple_of(N8)
    }

    fn load_rows(&self, step: ThinStep<'k>, before: Option<Self::Rows>) -> Self::Rows {
        self.load(self.matrices[0], step, before)
    }

    fn load_addends(&self, step: ThinStep<'k>, before: Option<Self::Addends>) -> Self::Addends {
        self.load(self.matrices[1], step, before)
    }

    fn filled(&self, value: f32) -> Self::Products {
        self.k.accumulators(self.vectors(), N8).map(|_| self.k.f32(value))
    }

    fn zeros(&self) -> Self::Sums {
        self.k.accumulators(self.shape.width.next_multiple_of(T::RUN_OF_A), self.vectors())
    }

    fn multiply(&self, (rows, scales): Self::Rows, step: Option<ThinStep<'k>>, other: f32) -> Self::Products {
        let (k, room, terms) = (self.k, self.vectors(), self.shape.terms * self.vectors());
        let zero = k.accumulators(terms.next_multiple_of(M16), self.shape.step);
        let product =
            |sums, run: u32| self.factor.k_steps(run * RUN, RUN).mma(rows.run(k, run).operand(k), sums);
        let of_terms = |sums: Self::Products| sums.row_block(0, terms).fold_rows(room);
        let sums = match scales {
            None => of_terms((0..rows.runs()).fold(zero, product)),
            Some(scales) => {
                let none = k.accumulators(room, self.shape.step);
                (0..rows.runs())
                    .fold(none, |sums, run| of_terms(product(zero, run)).mul_add(scales.column(run), sums))
            }
        };
        let products = sums * self.scale;
        match step {
            Some(ThinStep { row, end: Some(end), .. }) => {
                products.map_at(|_, column, product| (row + column).lt(end).select(product, other))
            }
            _ => products,
        }
    }

    fn scale(&self, sums: Self::Sums, factor: Rows<'k>) -> Self::Sums {
        sums * factor.as_columns()
    }

    fn add(&self, weights: Self::Products, (rows, scales): Self::Addends, sums: Self::Sums) -> Self::Sums {
        let length = rows.run_length();
        let terms = |weights: Self::Products| weights.as_terms(weight_terms::<T::Factor>()).as_bt();
        let unscaled = if scales.is_none() { terms(weights) } else { Vec::new() };
        let runs = (0..rows.runs()).map(|run| {
            let scaled = scales.map(|scales| terms(weights * scales.column(run)));
            let rows = rows.run(self.k, run).operand(self.k);
            let sums = sums.row_block(run * length, length);
            scaled.as_ref().unwrap_or(&unscaled).iter().fold(sums, |sums, &weights| rows.mma(weights, sums))
        });
        runs.reduce(|upper, lower| upper.over(lower)).unwrap_or(sums)
    }

    fn fold(&self, weights: Self::Products) -> Self::Products {
        weights.fold_columns(N8)
    }

    fn add_scales(&self, exponents: Self::Products, (_, scales): Self::Addends) -> Self::Products {
        let Some(scales) = scales else { return exponents };
        let columns = (0..scales.width()).map(|block| scales.column(block).map(|scale| scale.abs()));
        let largest = columns.reduce(Columns::max).unwrap_or(scales.column(0));
        // No less than a half holds: a weight is finite.
        exponents + largest.map(|scale| scale.max(2f32.powi(-24)).log2_ftz())
    }

    fn reduce_scatter(
        &self,
        sums: Self::Sums,
        factor: impl Fn(Reg<'k, u32>) -> Reg<'k, f32>,
        each: impl Fn(Reg<'k, u32>, Reg<'k, u32>, Option<Reg<'k, Pred>>, &[Reg<'k, f32>]),
    ) {
        let (ThinShape { vectors, width, .. }, room) = (self.shape, self.vectors());
        let sums = sums * self.k.columns_at(room, factor);
        let ragged = sums.rows() != width;
        sums.reduce_scatter::<T>(AT_ONCE, |element, vector, pair| {
            let there = (vectors < room).then(|| vector.lt(vectors));
            each(element, vector, all([there, ragged.then(|| element.lt(width))]), &pair);
        });
    }
}
