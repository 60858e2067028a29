//! Online softmax over the keys that a warp takes, whatever computes the products.
//!
//! Weights are powers of two relative to an *origin* for each head, which lies [`UNIT`](Products::UNIT) below the running
//! maximum of its scores. The maximum follows with some slack: sums and outputs are rescaled only when a weight has
//! outgrown it, which after the first steps is rare; the quotient is the same.

use warpwright_dsl::*;

/// Values for the heads.
pub(super) type Heads<'k, P> = <<P as Products<'k>>::Scores as RowWise<'k>>::Rows;

/// The accumulator state of a warp: of each head the origin, parts of the sum of weights, and the weighted sum of values.
pub(super) type State<'k, P> = (Heads<'k, P>, <P as Products<'k>>::Scores, <P as Products<'k>>::Out);

/// Which rows of the cache are loaded.
#[derive(Clone, Copy)]
pub(super) struct Step<'k> {
    pub(super) row: Reg<'k, u32>,
    /// Where they are wanted at all; elsewhere what was loaded before stays.
    pub(super) wanted: Option<Reg<'k, Pred>>,
    /// Where the rows end, if not all of them need be there.
    pub(super) end: Option<Reg<'k, u32>>,
}

impl<'k> From<Ahead<'k>> for Step<'k> {
    fn from(ahead: Ahead<'k>) -> Self {
        Step { row: ahead.at, wanted: Some(ahead.wanted), end: None }
    }
}

impl<'k> Step<'k> {
    /// The rows of a head as a matrix that ends where they do.
    pub(super) fn of<T: Data>(self, rows: Ptr<'k, Global, T>, width: u32) -> Matrix<'k, T> {
        rows.matrix(self.end.unwrap_or(self.row), width).rows_fit(self.end.is_none())
    }
}

/// How the products of a step are computed, for the query heads that share a head of the cache.
pub(super) trait Products<'k>: Sized {
    /// Heads by keys.
    type Scores: RowWise<'k>;
    /// Keys, and values, as they were loaded.
    type Keys: Carry<'k>;
    type Values: Carry<'k>;
    /// Weighted sums of values.
    type Out: Carry<'k>;

    /// The exponent of the weight at the running maximum.
    const UNIT: f32;
    /// By how many powers of two a weight may exceed that before all are rescaled.
    const SLACK: f32;

    /// Keys of a step.
    fn step_keys(&self) -> u32;
    /// Heads that there is room for.
    fn heads(&self) -> u32;
    fn load_keys(&self, step: Step<'k>, before: Option<Self::Keys>) -> Self::Keys;
    fn load_values(&self, step: Step<'k>, before: Option<Self::Values>) -> Self::Values;
    /// The state before any key.
    fn nothing(&self) -> State<'k, Self>;
    /// The scores of keys, as exponents of 2; of those beyond the step's end [`MASKED`](super::MASKED).
    fn scores(&self, keys: Self::Keys, step: Option<Step<'k>>) -> Self::Scores;
    /// `out` times a factor for each head.
    fn rescale(&self, out: Self::Out, factor: Heads<'k, Self>) -> Self::Out;
    /// `out + weights · values`.
    fn add(&self, weights: Self::Scores, values: Self::Values, out: Self::Out) -> Self::Out;
    /// Adds the weighted sums of the block's warps, each times a factor for each head: `each` gets an element's number,
    /// its head, where it is to be called, and neighbours from that element on.
    fn reduce_scatter(
        &self,
        out: Self::Out,
        factor: impl Fn(Reg<'k, u32>) -> Reg<'k, f32>,
        each: impl Fn(Reg<'k, u32>, Reg<'k, u32>, Option<Reg<'k, Pred>>, &[Reg<'k, f32>]),
    );

    /// The weights, added up as far as it needs no other lane.
    fn sums(&self, weights: Self::Scores) -> Self::Scores {
        weights
    }

    /// The exponents of what multiplies values: where these have scales, the largest of its row is added.
    fn scaled(&self, scores: Self::Scores, _values: Self::Values) -> Self::Scores {
        scores
    }
}

/// The state of a warp after the keys from `begin` to `end`, which the `warps` of the block take in turns.
pub(super) fn attend<'k, P: Products<'k>>(
    k: K<'k>,
    products: &P,
    [begin, end]: [Reg<'k, u32>; 2],
    warps: u32,
) -> State<'k, P> {
    // Whole steps of the warp, and one with fewer keys.
    let (keys, stride) = (products.step_keys(), warps * products.step_keys());
    let begin = begin + k.warp() * keys;
    let left = end.max(begin) - begin;
    let whole = begin + (left + (stride - keys)) / stride * stride;

    let load = |step, keys, values| (products.load_keys(step, keys), products.load_values(step, values));
    let state = k.staged(
        k.range(begin..whole).step(stride),
        products.nothing(),
        |first| load(first.into(), None, None),
        |ahead, (keys, values), state| {
            let scores = products.scores(keys, None);
            let keys = products.load_keys(ahead.into(), Some(keys));
            let state = add(products, (scores, values), state);
            ((keys, products.load_values(ahead.into(), Some(values))), state)
        },
    );
    let ragged = || {
        let step = Step { row: whole, wanted: None, end: Some(end) };
        let (keys, values) = load(step, None, None);
        add(products, (products.scores(keys, Some(step)), values), state)
    };
    k.if_else(whole.lt(end), ragged, || state)
}

/// The state after a step.
fn add<'k, P: Products<'k>>(
    products: &P,
    (scores, values): (P::Scores, P::Values),
    (origin, sum, out): State<'k, P>,
) -> State<'k, P> {
    let exponents = products.scaled(scores, values);
    let grown = (exponents - origin).any(|exponent| exponent.gt(P::UNIT + P::SLACK));
    let rescaled = || {
        let raised = origin.max(exponents.row_max() - P::UNIT);
        let factor = (origin - raised).exp2_ftz();
        (raised, sum * factor, products.rescale(out, factor))
    };
    let (origin, sum, out) = grown.kernel().if_else(grown, rescaled, || (origin, sum, out));
    let weights = (scores - origin).exp2_ftz();
    (origin, sum + products.sums(weights), products.add(weights, values, out))
}
