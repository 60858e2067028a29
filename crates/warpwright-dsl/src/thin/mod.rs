//! Thin products: a few vectors with many rows of a matrix, as the rows come from global memory.
//!
//! Up to some tens of vectors are multiplied with every row (`S = X·Rᵀ`), and rows are added up with weights
//! (`Y += W·R`), a step of rows at a time and each step by one warp, without shared memory for the rows: what attention
//! does with a cache. Two ways have the same words, [`ThinProducts`]: the tensor cores ([`TensorProducts`]), to which
//! numbers go as sums of halves so that the products are nearly those of `f32`, and the lanes ([`LaneProducts`]), in `f32`.
//! Rows that are multiplied and rows that are added up are two matrices: they are loaded in different layouts.

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

/// What the vectors and the rows of thin products are.
#[derive(Clone, Copy, Debug)]
pub struct ThinShape {
    /// Vectors.
    pub vectors: u32,
    /// Elements of a vector, and of a row: a multiple of 8, and of 32 where rows have scales.
    pub width: u32,
    /// Rows of a step: on the tensor cores a multiple of 16; on the lanes how many each of them has.
    pub step: u32,
    /// Whether vectors are held in registers; else they are in shared memory.
    pub held: bool,
    /// On the tensor cores, halves whose sum an element of a vector is: see [`Tile::as_terms`](super::Tile::as_terms).
    pub terms: u32,
}

/// A matrix whose rows are multiplied, from the first on.
#[derive(Clone, Copy)]
pub struct ThinRows<'k, T> {
    /// The rows, one after the other, each aligned to 16 bytes.
    pub elements: Ptr<'k, Global, T>,
    /// A scale for each 32 elements of a row: for bytes, on the tensor cores.
    pub scales: Option<Ptr<'k, Global, F16>>,
}

/// Which rows are loaded.
#[derive(Clone, Copy, Debug)]
pub struct ThinStep<'k> {
    /// The first.
    pub row: Reg<'k, u32>,
    /// Where they are wanted at all; elsewhere what was loaded before stays.
    pub wanted: Option<Reg<'k, Pred>>,
    /// Where the rows end, if not all of the step need be there. What is beyond counts as zeros.
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

/// How a warp computes thin products. All lanes of the warp call each of the functions.
pub trait ThinProducts<'k>: Sized {
    /// Products of vectors and rows, vectors by rows.
    type Products: RowWise<'k>;
    /// Rows to be multiplied, as they were loaded.
    type Rows: Carry<'k>;
    /// Rows to be added up, as they were loaded.
    type Addends: Carry<'k>;
    /// Weighted sums of rows, for each vector one.
    type Sums: Carry<'k>;

    /// The exponent that the largest weights should have.
    const UNIT: f32;
    /// By how much the exponent of a weight, with the [largest scale](Self::add_scales) of its row, may exceed that.
    const SLACK: f32;

    /// Rows of a step.
    fn rows(&self) -> u32;

    /// Vectors, with those that there is room for besides: their products and sums are zero.
    fn vectors(&self) -> u32;

    /// Loads rows to be multiplied.
    fn load_rows(&self, step: ThinStep<'k>, before: Option<Self::Rows>) -> Self::Rows;

    /// Loads rows to be added up.
    fn load_addends(&self, step: ThinStep<'k>, before: Option<Self::Addends>) -> Self::Addends;

    /// Products of which each is `value`.
    fn filled(&self, value: f32) -> Self::Products;

    /// Sums that are zero.
    fn zeros(&self) -> Self::Sums;

    /// The products of the vectors with rows; those with rows beyond the step's end are `other`.
    fn multiply(&self, rows: Self::Rows, step: Option<ThinStep<'k>>, other: f32) -> Self::Products;

    /// `sums · factor`, for each vector another.
    fn scale(&self, sums: Self::Sums, factor: <Self::Products as RowWise<'k>>::Rows) -> Self::Sums;

    /// `sums + weights · rows`. Weights are not negative, finite, and at most `2^(UNIT + SLACK)`, with the largest scale of
    /// their row where rows have scales.
    fn add(&self, weights: Self::Products, rows: Self::Addends, sums: Self::Sums) -> Self::Sums;

    /// To the exponents of weights the exponent of the largest scale of their row, where rows have scales; `2^-24` at least.
    fn add_scales(&self, exponents: Self::Products, _rows: Self::Addends) -> Self::Products {
        exponents
    }

    /// What is left of weights, or sums of such, when each lane has added up what it has of a vector: enough for
    /// [`row_sum`](RowWise::row_sum).
    fn fold(&self, weights: Self::Products) -> Self::Products {
        weights
    }

    /// Adds up the sums of the block's warps, each times `factor` of the vector's number: `each` gets an element's number,
    /// its vector's, where it is to be called, and neighbours from that element on; once for every element. All threads
    /// of the block call it, and 2 KiB of shared memory are used for each warp.
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
