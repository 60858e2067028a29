//! How many of a row's tokens are kept: those from the top of the order down to a cutoff.

use super::logits::Logits;
use super::radix::{Radix, SHORT, Selection, WORD, Weight};
use warpwright_dsl::{K, Pred, Reg};

/// No index is larger: 2²¹ - 1.
const MAX_INDEX: u32 = (1 << 21) - 1;

/// The last token that is kept, in the order of logits, larger ones first, and of equal logits by index.
#[derive(Clone, Copy)]
pub(super) struct Cut<'k> {
    rank: Reg<'k, u32>,
    index: Reg<'k, u32>,
}

impl<'k> Cut<'k> {
    /// After all tokens that are numbers.
    pub(super) fn none(k: K<'k>) -> Self {
        Cut { rank: k.u32(0), index: k.u32(0) }
    }

    /// Whether the token of that rank and index is kept.
    #[track_caller]
    pub(super) fn keeps(self, rank: Reg<'k, u32>, index: Reg<'k, u32>) -> Reg<'k, Pred> {
        rank.gt(self.rank) | rank.eq(self.rank) & index.le(self.index)
    }

    /// After the token with which the weight of those that are kept reaches what is `wanted` of that of all; a
    /// cut only if the predicate, which is the same in all threads of the block, holds. `token` says of an index
    /// and its logit whether the token takes part, its rank and its weight; tokens of one rank weigh the same.
    #[track_caller]
    pub(super) fn after<W: Weight>(
        k: K<'k>,
        cuts: Reg<'k, Pred>,
        radix: Radix<'k, W>,
        logits: Logits<'k>,
        wanted: impl Fn(Reg<'k, W>) -> Reg<'k, W>,
        token: impl Fn(Reg<'k, u32>, Reg<'k, f32>) -> (Reg<'k, Pred>, Reg<'k, u32>, Reg<'k, W>),
    ) -> Self {
        let cut = || {
            let Selection { word: least, wanted, there } = radix.select(WORD, logits, &wanted, &token);
            let all = || k.u32(MAX_INDEX);
            let some = || {
                let equal = |i, x| {
                    let (candidate, rank, weight) = token(i, x);
                    (candidate & rank.eq(least), k.u32(MAX_INDEX) - i, weight)
                };
                k.u32(MAX_INDEX) - radix.select(SHORT, logits, |_| wanted, equal).word
            };
            [least, k.if_else(wanted.lt(there), some, all)]
        };
        let none = Cut::none(k);
        let [rank, index] = k.if_else(cuts, cut, || [none.rank, none.index]);
        Cut { rank, index }
    }
}
