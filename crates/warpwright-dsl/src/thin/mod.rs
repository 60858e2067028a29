//! Thin products: a few vectors times many rows of a matrix, which are read from global memory.
//!
//! Up to some tens of vectors are multiplied by every row (`S = X·Rᵀ`), and rows are added up with weights (`Y +=
//! W·R`). Each step of rows is processed by one warp, and the rows do not go through shared memory. Attention reads a
//! KV cache this way. Two implementations share one interface, [`ThinProducts`]: [`TensorProducts`] uses the tensor
//! cores and represents numbers as sums of halves, so that the products are nearly those of `f32`; [`LaneProducts`]
//! computes on the lanes, in `f32`. The rows to multiply and the rows to add up are two matrices, since they are
//! loaded in different layouts.

mod lanes;
mod tensor;

pub use lanes::LaneProducts;
pub use tensor::TensorProducts;

use super::pointer::Ptr;
use super::reg::Reg;
use super::row_wise::RowWise;
use super::staged::Ahead;
use super::state::Loc;
use super::tile::Matrix;
use super::types::*;
use super::{Carry, Guard, K};
use warpwright_ptx::diag::Code;

/// The shape of the vectors and rows of thin products.
#[derive(Clone, Copy, Debug)]
pub struct ThinShape {
    /// Number of vectors.
    pub vectors: u32,
    /// Elements of a vector and of a row: a multiple of 8, or of 32 if rows have scales.
    pub width: u32,
    /// Rows of a step: on the tensor cores a multiple of 16; on the lanes, the number of rows per lane.
    pub step: u32,
    /// Whether vectors are held in registers; otherwise they are in shared memory.
    pub held: bool,
    /// On the tensor cores, the number of halves whose sum represents an element of a vector: see
    /// [`Tile::as_terms`](super::Tile::as_terms).
    pub terms: u32,
}

/// A matrix whose rows are used, from the first on.
#[derive(Clone, Copy)]
pub struct ThinRows<'k, T> {
    /// The rows, one after the other, each aligned to 16 bytes.
    pub elements: Ptr<'k, Global, T>,
    /// A scale for every 32 elements of a row: for bytes, on the tensor cores.
    pub scales: Option<Ptr<'k, Global, F16>>,
}

/// The rows of one step.
#[derive(Clone, Copy, Debug)]
pub struct ThinStep<'k> {
    /// The first row.
    pub row: Reg<'k, u32>,
    /// Loads only where this holds; elsewhere the previously loaded rows stay.
    pub wanted: Option<Reg<'k, Pred>>,
    /// The end of the rows, if the step may reach beyond it. Rows beyond it count as zeros.
    pub end: Option<Reg<'k, u32>>,
}

impl<'k> From<Ahead<'k>> for ThinStep<'k> {
    fn from(ahead: Ahead<'k>) -> Self {
        ThinStep { row: ahead.at, wanted: Some(ahead.wanted), end: None }
    }
}

impl<'k> ThinStep<'k> {
    /// The rows as a matrix that ends where they do.
    fn of<T: Data>(self, rows: Ptr<'k, Global, T>, width: u32) -> Matrix<'k, T> {
        rows.matrix(self.end.unwrap_or(self.row), width).rows_fit(self.end.is_none())
    }
}

/// A way for a warp to compute thin products. All lanes of the warp call each of the functions.
pub trait ThinProducts<'k>: Sized {
    /// Products of vectors and rows: one row per vector.
    type Products: RowWise<'k>;
    /// Loaded rows to be multiplied.
    type Rows: Carry<'k>;
    /// Loaded rows to be added up.
    type Addends: Carry<'k>;
    /// Weighted sums of rows, one for each vector.
    type Sums: Carry<'k>;

    /// The recommended exponent of the largest weights.
    const UNIT: f32;
    /// The amount by which the exponent of a weight, with the [largest scale](Self::add_scales) of its row, may
    /// exceed [`UNIT`](Self::UNIT).
    const SLACK: f32;

    /// Rows of a step.
    fn rows(&self) -> u32;

    /// Number of vectors, including padding; products and sums of the padding are zero.
    fn vectors(&self) -> u32;

    /// Loads rows to be multiplied.
    fn load_rows(&self, step: ThinStep<'k>, before: Option<Self::Rows>) -> Self::Rows;

    /// Loads rows to be added up.
    fn load_addends(&self, step: ThinStep<'k>, before: Option<Self::Addends>) -> Self::Addends;

    /// Products that are all `value`.
    fn filled(&self, value: f32) -> Self::Products;

    /// Sums that are zero.
    fn zeros(&self) -> Self::Sums;

    /// The products of the vectors with rows; for rows beyond the step's end they are `other`.
    fn multiply(&self, rows: Self::Rows, step: Option<ThinStep<'k>>, other: f32) -> Self::Products;

    /// `sums · factor`, with one factor for each vector.
    fn scale(&self, sums: Self::Sums, factor: <Self::Products as RowWise<'k>>::Rows) -> Self::Sums;

    /// `sums + weights · rows`. Weights must be finite, not negative, and at most `2^(UNIT + SLACK)`, multiplied by
    /// the largest scale of their row if rows have scales.
    fn add(&self, weights: Self::Products, rows: Self::Addends, sums: Self::Sums) -> Self::Sums;

    /// If rows have scales, adds to each exponent of a weight that of the largest scale of its row; scales count as
    /// at least `2^-24`.
    fn add_scales(&self, exponents: Self::Products, _rows: Self::Addends) -> Self::Products {
        exponents
    }

    /// Reduces weights, or sums of weights, to what each lane has added up of a vector: enough for
    /// [`row_sum`](RowWise::row_sum).
    fn fold(&self, weights: Self::Products) -> Self::Products {
        weights
    }

    /// Adds up the sums of the block's warps, each times `factor` of the vector's number. `each` receives the number
    /// of an element, the number of its vector, a predicate for the lanes that should act, and neighbouring sums from
    /// that element on; it covers every element once. All threads of the block call it, and it uses 2 KiB of shared
    /// memory per warp.
    fn reduce_scatter(
        &self,
        sums: Self::Sums,
        factor: impl Fn(Reg<'k, u32>) -> Reg<'k, f32>,
        each: impl Fn(Reg<'k, u32>, Reg<'k, u32>, Option<Reg<'k, Pred>>, &[Reg<'k, f32>]),
    );
}

/// Vectors of four registers that are exchanged at once.
const AT_ONCE: u32 = 4;

/// Reports rows that have scales where these are not multiplied in.
fn refuse_scales<T>(k: K<'_>, matrices: &[ThinRows<'_, T>], loc: Loc) {
    if matrices.iter().any(|rows| rows.scales.is_some()) {
        let message = "scales of rows are multiplied in on the tensor cores, of rows of bytes";
        k.state().mistake(Code::ModifierCombination, loc, message);
    }
}

/// Where all of them hold that there are.
fn all<'k, const N: usize>(conditions: [Option<Reg<'k, Pred>>; N]) -> Option<Reg<'k, Pred>> {
    conditions.predicate()
}
