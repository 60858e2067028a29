//! The products of a step on the tensor cores.
//!
//! `S = q·Kᵀ`, heads by keys, and `outᵀ = Vᵀ·Pᵀ`, elements by heads: so weights become the right factor where they stand,
//! and rows of the cache are factors as they were loaded. A query that the factors' type does not hold is a sum of several
//! that it does hold, after its largest element was made `2^14`; the terms lie over one another, so that up to eight heads
//! take one instruction. Weights are sums of two or three such numbers too, relative to `2^-14`, so that small ones keep
//! their bits.
//!
//! Quants of `q8_0` are exact as halves. The scales of keys multiply the products of each block of 32, and those of values
//! the weights, for each block anew.

use super::MASKED;
use super::softmax::{Products, State, Step};
use crate::data::eight_bits::BLOCK;
use crate::data::floats::Dtype;
use warpwright_dsl::*;
use warpwright_ptx::ir::Type;

/// Columns of an instruction: what numbers of heads are rounded up to.
pub(super) const N8: u32 = 8;
/// Columns of a step of the inner dimension.
const K16: u32 = 16;
/// The exponent of a query's largest element.
const QUERY_EXPONENT: u32 = 14;
/// Vectors of a lane that are exchanged at once, when the warps' results are put together.
pub(super) const AT_ONCE: u32 = 4;

/// Terms whose sum is a weight: their errors are `2⁻²²` and `2⁻²⁴` of it.
fn weight_terms<T: Half>() -> u32 {
    if T::TYPE == Type::F16 { 2 } else { 3 }
}

/// Terms whose sum is a query's element, to `2⁻²²` of it at least, where the cache is of bfloats or else of halves.
pub(super) fn query_terms(query: Dtype, bfloats: bool) -> u32 {
    match (bfloats, query) {
        (false, Dtype::F32) | (true, Dtype::F16) => 2,
        (true, Dtype::F32) => 3,
        _ => 1,
    }
}

/// The queries as a factor: terms of all heads, and what scores are multiplied by.
#[derive(Clone, Copy)]
pub(super) struct Query<'k, T> {
    factor: KeptTile<'k, T>,
    terms: u32,
    scale: Rows<'k>,
}

impl<'k, T: Half> Query<'k, T> {
    /// The queries of `heads` heads in so many terms, in registers if they are to be `held`; scores are scaled by `scale`
    /// for powers of two.
    pub(super) fn new(heads: Tile<'k, Acc, f32>, terms: u32, held: bool, scale: Reg<'k, f32>) -> Self {
        let (normal, down) = heads.normalized_rows(QUERY_EXPONENT);
        let shape = [(heads.rows() * terms).next_multiple_of(K16), heads.columns()];
        let factor = scale.kernel().keep_a(held, shape, || normal.as_terms::<T>(terms).stacked_a());
        Query { factor, terms, scale: down * scale }
    }
}

/// The rows of a head of the cache.
#[derive(Clone, Copy)]
pub(super) struct Cached<'k, T> {
    pub(super) elements: Ptr<'k, Global, T>,
    /// One for each block of 32 of a row.
    pub(super) scales: Option<Ptr<'k, Global, F16>>,
    pub(super) head_dim: u32,
}

/// Rows as they were loaded, and their scales.
type Loaded<'k, R, T> = (Fragments<'k, R, T>, Option<PerColumn<'k>>);

impl<'k, T: Direct> Cached<'k, T> {
    fn load<R: DirectRole>(
        self,
        step: Step<'k>,
        count: u32,
        before: Option<Loaded<'k, R, T>>,
    ) -> Loaded<'k, R, T> {
        let Step { row, wanted, .. } = step;
        let (elements, scales) = before.unzip();
        let rows = step.of(self.elements, self.head_dim).fragments(row, count, wanted, elements);
        let load = |all| step.of(all, self.head_dim / BLOCK).per_column(row, count, wanted, scales.flatten());
        (rows, self.scales.map(load))
    }
}

/// How the tensor cores multiply.
pub(super) struct TensorProducts<'k, T: Direct> {
    pub(super) k: K<'k>,
    pub(super) query: Query<'k, T::Factor>,
    pub(super) keys: Cached<'k, T>,
    pub(super) values: Cached<'k, T>,
    /// Heads, rounded up.
    pub(super) rows: u32,
    pub(super) step_keys: u32,
}

impl<'k, T: Direct> Products<'k> for TensorProducts<'k, T> {
    type Scores = Tile<'k, Acc, f32>;
    type Keys = Loaded<'k, B, T>;
    type Values = Loaded<'k, A, T>;
    type Out = Tile<'k, Acc, f32>;

    const UNIT: f32 = 14.0;
    /// It stays a half.
    const SLACK: f32 = 1.0;

    fn step_keys(&self) -> u32 {
        self.step_keys
    }

    fn heads(&self) -> u32 {
        self.rows
    }

    fn load_keys(&self, step: Step<'k>, before: Option<Self::Keys>) -> Self::Keys {
        self.keys.load(step, self.step_keys, before)
    }

    fn load_values(&self, step: Step<'k>, before: Option<Self::Values>) -> Self::Values {
        self.values.load(step, self.step_keys, before)
    }

    fn nothing(&self) -> State<'k, Self> {
        let (k, elements) = (self.k, self.values.head_dim.next_multiple_of(T::RUN_OF_A));
        (k.rows(self.rows, MASKED), k.accumulators(self.rows, N8), k.accumulators(elements, self.rows))
    }

    fn scores(&self, (keys, scales): Self::Keys, step: Option<Step<'k>>) -> Self::Scores {
        let (k, Query { terms, scale, .. }, run_length) = (self.k, self.query, keys.run_length());
        let zero = k.accumulators((terms * self.rows).next_multiple_of(K16), self.step_keys);
        let product = |sums, run: u32| {
            self.query.factor.k_steps(run * run_length, run_length).mma(keys.run(k, run).operand(k), sums)
        };
        let of_terms = |sums: Self::Scores| sums.row_block(0, terms * self.rows).fold_rows(self.rows);
        let sums = match scales {
            None => of_terms((0..keys.runs()).fold(zero, product)),
            Some(scales) => {
                let none = k.accumulators(self.rows, self.step_keys);
                (0..keys.runs()).fold(none, |sums, run| {
                    of_terms(product(zero, run)).mul_add(scales.column(run), sums)
                })
            }
        };
        let scores = sums * scale;
        match step {
            Some(Step { row, end: Some(end), .. }) => {
                scores.map_at(|_, key, score| (row + key).lt(end).select(score, MASKED))
            }
            _ => scores,
        }
    }

    fn rescale(&self, out: Self::Out, factor: Rows<'k>) -> Self::Out {
        out * factor.as_columns()
    }

    fn add(&self, weights: Self::Scores, (values, scales): Self::Values, out: Self::Out) -> Self::Out {
        let run_length = values.run_length();
        let terms = |weights: Self::Scores| weights.as_terms(weight_terms::<T::Factor>()).as_bt();
        let unscaled = if scales.is_none() { terms(weights) } else { Vec::new() };
        let runs = (0..values.runs()).map(|run| {
            let scaled = scales.map(|scales| terms(weights * scales.column(run)));
            let values = values.run(self.k, run).operand(self.k);
            let out = out.row_block(run * run_length, run_length);
            scaled.as_ref().unwrap_or(&unscaled).iter().fold(out, |out, &weights| values.mma(weights, out))
        });
        runs.reduce(|upper, lower| upper.over(lower)).unwrap_or(out)
    }

    fn sums(&self, weights: Self::Scores) -> Self::Scores {
        weights.fold_columns(N8)
    }

    fn scaled(&self, scores: Self::Scores, (_, scales): Self::Values) -> Self::Scores {
        let Some(scales) = scales else { return scores };
        let columns = (0..scales.width()).map(|block| scales.column(block).map(|scale| scale.abs()));
        let largest = columns.reduce(Columns::max).unwrap_or(scales.column(0));
        // No less than a half holds: a weight is finite.
        scores + largest.map(|scale| scale.max(2f32.powi(-24)).log2_ftz())
    }

    fn reduce_scatter(
        &self,
        out: Self::Out,
        factor: impl Fn(Reg<'k, u32>) -> Reg<'k, f32>,
        each: impl Fn(Reg<'k, u32>, Reg<'k, u32>, Option<Reg<'k, Pred>>, &[Reg<'k, f32>]),
    ) {
        let (head_dim, out) = (self.values.head_dim, out * self.k.columns_at(self.rows, factor));
        let ragged = out.rows() != head_dim;
        out.reduce_scatter::<T>(AT_ONCE, |element, head, pair| {
            each(element, head, ragged.then(|| element.lt(head_dim)), &pair);
        });
    }
}

/// Registers of a lane for the queries of `heads` heads, in so many terms, and for the weighted sums of values.
pub(super) fn state_registers(head_dim: u32, heads: u32, terms: u32) -> [u32; 2] {
    let rows = heads.next_multiple_of(N8);
    let query = (rows * terms).next_multiple_of(K16) * head_dim.next_multiple_of(32) / 64;
    [query, rows * head_dim.next_multiple_of(64) / 32]
}
