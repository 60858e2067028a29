//! How a warp goes through keys, whatever it multiplies them with.

use super::cache::Which;
use super::warps::OfWarp;
use warpwright_dsl::*;

/// Online softmax over keys, step by step: with the query, the rows of the cache, and what was seen.
pub(super) trait Steps<'k> {
    /// Rows as they were loaded.
    type Raw: Carry<'k>;
    /// Scores of a step.
    type Scores: Copy;
    /// What was seen.
    type Seen: Carry<'k>;

    /// Keys of a step.
    fn step_keys(&self) -> u32;

    /// Keys from row `first` on, a step of them.
    fn load_keys(&self, first: Reg<'k, u32>, which: Which<'k, Self::Raw>) -> Self::Raw;

    /// Values from row `first` on, a step of them.
    fn load_values(&self, first: Reg<'k, u32>, which: Which<'k, Self::Raw>) -> Self::Raw;

    /// Nothing yet.
    fn nothing(&self) -> Self::Seen;

    /// The scores of keys, times the logarithm to base 2 of e. With the row of the first key and an end, keys from
    /// the end on are masked.
    fn scores(&self, keys: Self::Raw, rows: Option<[Reg<'k, u32>; 2]>) -> Self::Scores;

    /// The values that go with the scores, added to what was seen before.
    fn add(&self, scores: Self::Scores, values: Self::Raw, seen: Self::Seen) -> Self::Seen;

    /// What the warp has seen, as the block puts it together.
    fn of_warp(&self, seen: Self::Seen) -> Box<dyn OfWarp<'k> + 'k>;

    /// What the warp sees of the rows from `begin` to `end`, which the `warps` of the block take in turns.
    fn over(&self, k: K<'k>, begin: Reg<'k, u32>, end: Reg<'k, u32>, warps: u32) -> Self::Seen {
        // Whole steps of the warp, and one with fewer keys.
        let (step, stride) = (self.step_keys(), warps * self.step_keys());
        let begin = begin + k.warp() * step;
        let left = end.max(begin) - begin;
        let whole = begin + (left + (stride - step)) / stride * stride;
        // What the next step needs is on its way while this one is computed, into registers that this one is done
        // with.
        let first =
            (self.load_keys(begin, Which::Before(whole)), self.load_values(begin, Which::Before(whole)));
        let steps = k.range(begin..whole).step(stride);
        let (_, seen) = k.fold(steps, (first, self.nothing()), |at, ((keys, values), seen)| {
            let (next, more) = (at + stride, (at + stride).lt(whole));
            let scores = self.scores(keys, None);
            let next_keys = self.load_keys(next, Which::AllIf(more, keys));
            let seen = self.add(scores, values, seen);
            ((next_keys, self.load_values(next, Which::AllIf(more, values))), seen)
        });
        let ragged = || {
            let keys = self.load_keys(whole, Which::Before(end));
            let values = self.load_values(whole, Which::Before(end));
            self.add(self.scores(keys, Some([whole, end])), values, seen)
        };
        k.if_else(whole.lt(end), ragged, || seen)
    }
}
