//! Attention over parts of a sequence, by several blocks, and put together.
//!
//! A part is what softmax makes of some keys ([`Part`]): a reference `r`, the sum `s` of the weights
//! `2^(score - r)`, and the sum `o` of the weighted values. With the largest reference `R` of all parts, the
//! result is `Σ 2^(r - R) o / Σ 2^(r - R) s`.
//!
//! Blocks leave their parts in a workspace, and the last to arrive merges them, in the order of the sequence:
//! the result does not depend on which block that is. Arrivals are counted by an atomic counter that wraps, so
//! that each launch leaves it as it has found it.

use super::cache::Lane;
use super::warps::Part;
use crate::data::floats::Floats;
use warpwright_dsl::*;
use warpwright_ptx::ir::Scope;

/// Tokens that a block takes at least, where a sequence is split.
pub(super) const MIN_CHUNK: u32 = 256;
/// Blocks that share a sequence at most.
pub(super) const MAX_SPLITS: u32 = 256;

/// The tokens of a block.
#[derive(Clone, Copy)]
pub(super) struct Chunk<'k> {
    /// Which part of the sequence.
    pub(super) split: Reg<'k, u32>,
    pub(super) begin: Reg<'k, u32>,
    pub(super) end: Reg<'k, u32>,
    /// Parts of the sequence that have tokens; one where it has none. The block's is one of them if `split` is less.
    pub(super) used: Reg<'k, u32>,
}

impl<'k> Chunk<'k> {
    /// All tokens of a sequence.
    pub(super) fn whole(k: K<'k>, length: Reg<'k, u32>) -> Self {
        Chunk { split: k.ctaid(), begin: k.u32(0), end: length, used: k.u32(1) }
    }

    /// The tokens of part `split` of `splits`, in multiples of `granule`. Parts are equal, but for the last, and
    /// no smaller than [`MIN_CHUNK`]: of a short sequence only the first parts have tokens.
    pub(super) fn of(k: K<'k>, length: Reg<'k, u32>, splits: u32, granule: u32) -> Self {
        let split = k.ctaid();
        let equal = (length + (splits - 1)) / splits;
        let tokens = (equal.max(MIN_CHUNK) + (granule - 1)) / granule * granule;
        let used = ((length + tokens - 1) / tokens).max(1);
        let begin = split * tokens;
        Chunk { split, begin, end: (begin + tokens).min(length), used }
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
    /// Reference and sum: sequence × head × split × 2.
    pub(super) stats: Ptr<'k, Global, f32>,
    /// Blocks that have arrived: sequence × (kv head, pass). Zero between launches.
    pub(super) arrivals: Ptr<'k, Global, u32>,
    pub(super) splits: u32,
    pub(super) head_dim: u32,
}

impl<'k> Workspace<'k> {
    /// Leaves a part of query head `head`, counted over all sequences; by the first run of lanes.
    pub(super) fn leave(self, lane: Lane<'k>, head: Reg<'k, u32>, split: Reg<'k, u32>, part: &Part<'k>) {
        let row = head * self.splits + split;
        let out = Floats::F32(self.out.at(row * self.head_dim));
        lane.write(out, &part.out, lane.row.eq(0));
        let first = lane.row.eq(0) & lane.place.eq(0);
        self.stats.st_vec_if(first, row * 2, [part.reference, part.sum]);
    }

    /// Arrives at counter `group` as one of `used` blocks; whether this is the last, for which what the others
    /// have left is there to be read. All threads of the block call it.
    pub(super) fn arrive(self, k: K<'k>, group: Reg<'k, u32>, used: Reg<'k, u32>) -> Reg<'k, Pred> {
        let last = k.shared::<u32>(1);
        k.sync();
        k.when(k.tid().eq(0), || {
            let before = self.arrivals.acq_rel(Scope::Gpu).atomic_count(group, used - 1);
            last.st(0, before.eq(used - 1).u32());
        });
        k.sync();
        last.ld(0).ne(0)
    }

    /// Merges the parts of those of `heads` query heads from `first` on that are `there`, a head for each warp, and
    /// stores the results. `warps` are those of the block.
    pub(super) fn merge(
        self,
        k: K<'k>,
        (first, heads, warps): (Reg<'k, u32>, u32, u32),
        used: Reg<'k, u32>,
        result: Floats<'k>,
        there: impl Fn(Reg<'k, u32>) -> Option<Reg<'k, Pred>>,
    ) {
        // What the parts of a warp's head are multiplied by.
        let factors = k.shared::<f32>(warps * self.splits).at(k.warp() * self.splits);
        k.each(k.range(k.warp()..k.u32(heads)).step(warps), |head| {
            let merge = || {
                let rows = (first + head) * self.splits;
                let (stats, out) = (self.stats.at(rows * 2), self.out.at(rows * self.head_dim));
                let most = |split, most: Reg<'k, f32>| most.max(stats.ld(split * 2));
                let reference = k.warp_max(k.fold(k.warp_strided(used), k.f32(f32::MIN), most));
                let sum = k.fold(k.warp_strided(used), k.f32(0.0), |split, sum| {
                    let [of_split, weights] = stats.ld_vec::<2>(split * 2);
                    let factor = (of_split - reference).exp2_ftz();
                    factors.st(split, factor);
                    factor.mul_add(weights, sum)
                });
                let inverse = inverse(k.warp_sum(sum));
                k.sync_warp();
                k.each(k.warp_strided(self.head_dim / 4), |vector| {
                    let element = vector * 4;
                    let sums = k.fold(k.upto(used).unroll(8), [k.f32(0.0); 4], |split, sums| {
                        let (factor, of_split) =
                            (factors.ld(split), out.ld_vec::<4>(split * self.head_dim + element));
                        [0, 1, 2, 3].map(|i| factor.mul_add(of_split[i], sums[i]))
                    });
                    let row = result.at((first + head) * self.head_dim);
                    row.st_vec(element, &sums.map(|sum| sum * inverse));
                });
                k.sync_warp();
            };
            match there(head) {
                Some(there) => k.when(there, merge),
                None => merge(),
            }
        });
    }
}
