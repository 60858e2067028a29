//! Online softmax over the keys that a warp takes.
//!
//! Weights are powers of two relative to an *origin* for each head, which lies [`UNIT`](ThinProducts::UNIT) below the
//! running maximum of its scores. The maximum follows with some slack: sums and outputs are rescaled only when a weight
//! has outgrown it, which after the first steps is rare; the quotient is the same:
//! `origin' = max(origin, max s - UNIT)`, `sum' = sum · 2^(origin - origin') + Σ 2^(s - origin')`, and so for `out`.

use super::MASKED;
use warpwright_dsl::*;

/// Values for the heads.
type Heads<'k, P> = <<P as ThinProducts<'k>>::Products as RowWise<'k>>::Rows;

/// The accumulator state of a warp: of each head the origin, parts of the sum of weights, and the weighted sum of values.
pub(super) type State<'k, P> =
    (Heads<'k, P>, <P as ThinProducts<'k>>::Products, <P as ThinProducts<'k>>::Sums);

/// The state of a warp after the keys from `begin` to `end`, which the `warps` of the block take in turns. Scores are
/// exponents of 2.
pub(super) fn attend<'k, P: ThinProducts<'k>>(
    k: K<'k>,
    heads: &P,
    [begin, end]: [Reg<'k, u32>; 2],
    warps: u32,
) -> State<'k, P> {
    // Whole steps of the warp, and one with fewer keys.
    let (keys, stride) = (heads.rows(), warps * heads.rows());
    let begin = begin + k.warp() * keys;
    let left = end.max(begin) - begin;
    let whole = begin + (left + (stride - keys)) / stride * stride;

    let nothing = (heads.filled(MASKED).row_max(), heads.filled(0.0), heads.zeros());
    let load = |step, keys, values| (heads.load_rows(step, keys), heads.load_addends(step, values));
    let state = k.staged(
        k.range(begin..whole).step(stride),
        nothing,
        |first| load(first.into(), None, None),
        |ahead, (keys, values), state| {
            let scores = heads.multiply(keys, None, MASKED);
            let keys = heads.load_rows(ahead.into(), Some(keys));
            let state = add(heads, (scores, values), state);
            ((keys, heads.load_addends(ahead.into(), Some(values))), state)
        },
    );
    let ragged = || {
        let step = ThinStep { row: whole, wanted: None, end: Some(end) };
        let (keys, values) = load(step, None, None);
        add(heads, (heads.multiply(keys, Some(step), MASKED), values), state)
    };
    k.if_else(whole.lt(end), ragged, || state)
}

/// The accumulator state after a step.
fn add<'k, P: ThinProducts<'k>>(
    heads: &P,
    (scores, values): (P::Products, P::Addends),
    (origin, sum, out): State<'k, P>,
) -> State<'k, P> {
    // The scales of quantised values count towards an overflow of `out`, and not towards the sum.
    let exponents = heads.add_scales(scores, values);
    let grown = (exponents - origin).any(|exponent| exponent.gt(P::UNIT + P::SLACK));
    let rescaled = || {
        let raised = origin.max(exponents.row_max() - P::UNIT);
        let rescale = (origin - raised).exp2_ftz();
        (raised, sum * rescale, heads.scale(out, rescale))
    };
    let (origin, sum, out) = grown.kernel().if_else(grown, rescaled, || (origin, sum, out));
    let weights = (scores - origin).exp2_ftz();
    (origin, sum + heads.fold(weights), heads.add(weights, values, out))
}
