//! Attention over parts of a sequence, by several blocks, and put together.
//!
//! A part is what softmax makes of some keys: of each head an origin `m`, the sum `s` of the weights `2^(score - m)`, and
//! the sum `o` of the weighted values. With the largest origin `M` of all parts, the result is
//! `Σ 2^(m - M) o / Σ 2^(m - M) s`.
//!
//! Blocks leave their parts in a workspace, and the last to arrive merges them, in the order of the sequence:
//! the result does not depend on which block that is. Arrivals are counted by an atomic counter that wraps, so
//! that each launch leaves it as it has found it.

use crate::data::floats::Floats;
use warpwright_dsl::*;

/// Tokens that a block takes at least, where a sequence is split.
pub(crate) const MIN_CHUNK: u32 = 256;
/// Blocks that share a sequence at most.
pub(crate) const MAX_SPLITS: u32 = 256;

/// The tokens of a block.
#[derive(Clone, Copy)]
pub(super) struct Chunk<'k> {
    /// Which part of the sequence.
    pub(super) split: Reg<'k, u32>,
    /// The first token, and the one behind the last.
    pub(super) tokens: [Reg<'k, u32>; 2],
    /// Parts of the sequence that have tokens; one where it has none. The block's is one of them if `split` is less.
    pub(super) used: Reg<'k, u32>,
}

impl<'k> Chunk<'k> {
    /// The tokens of the block's part of `splits`, in multiples of `granule`. Parts are equal, but for the last, and
    /// no smaller than [`MIN_CHUNK`]: of a short sequence only the first parts have tokens.
    pub(super) fn new(k: K<'k>, length: Reg<'k, u32>, splits: u32, granule: u32) -> Self {
        let split = k.ctaid();
        if splits == 1 {
            return Chunk { split, tokens: [k.u32(0), length], used: k.u32(1) };
        }
        let equal = (length + (splits - 1)) / splits;
        let tokens = (equal.max(MIN_CHUNK) + (granule - 1)) / granule * granule;
        let begin = split * tokens;
        let used = ((length + tokens - 1) / tokens).max(1);
        Chunk { split, tokens: [begin, (begin + tokens).min(length)], used }
    }
}

/// One over the sum of weights; zero where there are none, so that the result is.
pub(super) fn inverse<'k>(sum: Reg<'k, f32>) -> Reg<'k, f32> {
    sum.gt(0.0).select(sum.rcp(), 0.0)
}

/// Where blocks leave their parts.
#[derive(Clone, Copy)]
pub(super) struct Workspace<'k> {
    /// Weighted sums of values: sequence × head × split × head_dim.
    pub(super) out: Ptr<'k, Global, f32>,
    /// Origin and sum: sequence × head × split × 2.
    pub(super) stats: Ptr<'k, Global, f32>,
    /// Blocks that have arrived: sequence × (kv head, pass). Zero between launches.
    pub(super) arrivals: Ptr<'k, Global, u32>,
    pub(super) splits: u32,
    pub(super) head_dim: u32,
}

impl<'k> Workspace<'k> {
    /// Merges the `used` parts of query head `head`, counted over all sequences, and stores the result; by a warp.
    pub(super) fn merge(self, k: K<'k>, head: Reg<'k, u32>, used: Reg<'k, u32>, result: Floats<'k>) {
        let rows = head * self.splits;
        let (stats, out) = (self.stats.at(rows * 2), self.out.at(rows * self.head_dim));
        let larger = |split, max: Reg<'k, f32>| max.max(stats.ld(split * 2));
        let largest = k.warp_max(k.fold(k.warp_strided(used), k.f32(f32::MIN), larger));
        k.each(k.warp_strided(self.head_dim / 4), |vector| {
            let element = vector * 4;
            let zero = (k.f32(0.0), [k.f32(0.0); 4]);
            let (sum, sums) = k.fold(k.upto(used).unroll(8), zero, |split, (sum, sums)| {
                let [origin, weights] = stats.ld_vec::<2>(split * 2);
                let rescale = (origin - largest).exp2_ftz();
                let part = out.ld_vec::<4>(split * self.head_dim + element);
                (rescale.mul_add(weights, sum), std::array::from_fn(|i| rescale.mul_add(part[i], sums[i])))
            });
            let inverse = inverse(sum);
            result.at(head * self.head_dim).st_vec(element, &sums.map(|sum| sum * inverse));
        });
    }
}
