//! Online softmax over the keys that a warp reads, for the query heads that share them.
//!
//! A warp takes keys in steps. In each, the scores of all heads and keys come out of one transposing sum
//! ([`Spread`]), so that every lane holds its own few of them and an exponential is computed once. What the
//! weights are relative to follows the maximum with some slack: outputs are rescaled only when a score has
//! outgrown it by `2^SLACK`, which after the first step is rare; sums and outputs have room for that, and the
//! quotient is the same.

use super::cache::{CacheRows, Lane, Raw, Which};
use super::steps::Steps;
use super::warps::{Fix, OfWarp, Put};
use warpwright_dsl::*;

/// What a score that does not count is, and the maximum of none: finite, so that differences are numbers.
pub(super) const MASKED: f32 = -1e30;
/// By how many powers of two a weight may exceed 1 before all are rescaled.
const SLACK: f32 = 16.0;

/// What a warp has seen of its keys: for the scores of a step the reference of each and the sum of its weights,
/// spread over the lanes; for each head, the lane's elements of the weighted sum of values.
pub(super) type Seen<'k> = (List<'k, f32>, List<'k, f32>, List<'k, f32>);

/// The query's elements that a lane holds, for a head, times what scores are scaled by, for powers of two.
pub(super) type Query<'a, 'k> = &'a dyn Fn(u32) -> Vec<Reg<'k, f32>>;

/// How a warp goes through keys.
#[derive(Clone, Copy)]
pub(super) struct Online<'a, 'k> {
    pub(super) k: K<'k>,
    pub(super) lane: Lane<'k>,
    pub(super) query: Query<'a, 'k>,
    pub(super) keys: CacheRows<'k>,
    pub(super) values: CacheRows<'k>,
    /// Query heads.
    pub(super) heads: u32,
    /// Keys in a step for each run of lanes.
    pub(super) depth: u32,
}

impl<'k> Online<'_, 'k> {
    /// Scores of a step: those of head `h` are from `h · depth` on.
    fn spread(self) -> Spread<'k> {
        self.k.spread((self.heads * self.depth) as usize, self.lane.layout.lanes)
    }

    fn score(self, head: u32, key: u32) -> usize {
        (head * self.depth + key) as usize
    }

    /// The lane's parts of the scores, by head and key.
    fn parts_of_scores(self, keys: Raw<'k>, rows: Option<[Reg<'k, u32>; 2]>) -> Vec<Reg<'k, f32>> {
        let pieces: Vec<_> = (0..self.depth).map(|key| self.keys.pieces(keys, key)).collect();
        let row = |key| self.lane.row + key * self.lane.layout.rows();
        let counts = |key| rows.map(|[first, end]| (first + row(key)).lt(end));
        let counts: Vec<_> = (0..self.depth).map(counts).collect();
        let mut scores = Vec::new();
        for head in 0..self.heads {
            let query = (self.query)(head);
            for (pieces, counts) in pieces.iter().zip(&counts) {
                let mut query = query.iter();
                let mut score: Option<Reg<'k, f32>> = None;
                for piece in pieces {
                    let scaled = piece.scale.is_some();
                    let mut dot = if scaled { None } else { score };
                    for (&value, &query) in piece.values.iter().zip(&mut query) {
                        dot = Some(match dot {
                            Some(dot) => value.mul_add(query, dot),
                            None => value * query,
                        });
                    }
                    score = match (dot, piece.scale, score) {
                        (Some(dot), Some(scale), Some(score)) => Some(dot.mul_add(scale, score)),
                        (Some(dot), Some(scale), None) => Some(dot * scale),
                        (dot, _, _) => dot,
                    };
                }
                let score = score.unwrap_or_else(|| self.k.f32(0.0));
                scores.push(counts.map_or(score, |counts| counts.select(score, MASKED)));
            }
        }
        scores
    }

    /// Raises each head's reference to the maximum over the warp, and scales what was seen by that.
    fn rescale(self, scores: List<'k, f32>, (reference, sum, out): Seen<'k>) -> Seen<'k> {
        let (k, spread) = (self.k, self.spread());
        let (scores, before, sum) = (scores.to_vec(), reference.to_vec(), sum.to_vec());
        let (mut references, mut fixes) = (Vec::new(), Vec::new());
        for head in 0..self.heads {
            let before = spread.get(&before, self.score(head, 0));
            let score = |key| spread.get(&scores, self.score(head, key));
            let most = (1..self.depth).fold(score(0), |most, key| most.max(score(key)));
            let reference = before.max(k.warp_max(most));
            references.push(reference);
            fixes.push((before - reference).exp2_ftz());
        }
        let own = |heads: &[Reg<'k, f32>]| {
            let by_score: Vec<_> = heads.iter().flat_map(|&head| vec![head; self.depth as usize]).collect();
            spread.own(&by_score)
        };
        let sum = sum.iter().zip(own(&fixes)).map(|(&sum, fix)| sum * fix);
        let width = self.lane.layout.width() as usize;
        let out = out.to_vec();
        let out =
            out.chunks_exact(width).zip(&fixes).flat_map(|(out, &fix)| out.iter().map(move |&out| out * fix));
        (k.list(own(&references)), k.list(sum), k.list(out))
    }
}

impl<'k> Steps<'k> for Online<'_, 'k> {
    type Raw = Raw<'k>;
    type Scores = List<'k, f32>;
    type Seen = Seen<'k>;

    fn step_keys(&self) -> u32 {
        self.depth * self.lane.layout.rows()
    }

    fn load_keys(&self, first: Reg<'k, u32>, which: Which<'k, Raw<'k>>) -> Raw<'k> {
        self.keys.load(first, self.depth, which)
    }

    fn load_values(&self, first: Reg<'k, u32>, which: Which<'k, Raw<'k>>) -> Raw<'k> {
        self.values.load(first, self.depth, which)
    }

    fn nothing(&self) -> Seen<'k> {
        let (k, slots) = (self.k, self.spread().slots() as u32);
        let all = |count: u32, value: f32| k.list((0..count).map(|_| k.f32(value)));
        (all(slots, MASKED), all(slots, 0.0), all(self.heads * self.lane.layout.width(), 0.0))
    }

    fn scores(&self, keys: Raw<'k>, rows: Option<[Reg<'k, u32>; 2]>) -> List<'k, f32> {
        self.k.list(self.spread().sums(&self.parts_of_scores(keys, rows)))
    }

    fn add(&self, scores: List<'k, f32>, values: Raw<'k>, seen: Seen<'k>) -> Seen<'k> {
        let (k, spread) = (self.k, self.spread());
        let grown = (scores.to_vec().iter().zip(seen.0.to_vec()))
            .map(|(&score, reference)| (score - reference).gt(SLACK))
            .reduce(|any, grown| any | grown);
        let grown = k.any(grown.unwrap_or_else(|| k.pred(false)));
        let (reference, sum, out) = k.if_else(grown, || self.rescale(scores, seen), || seen);

        let weights: Vec<_> = (scores.to_vec().iter().zip(reference.to_vec()))
            .map(|(&score, reference)| (score - reference).exp2_ftz())
            .collect();
        let sum = k.list(sum.to_vec().iter().zip(&weights).map(|(&sum, &weight)| sum + weight));
        let mut out = out.to_vec();
        let width = self.lane.layout.width() as usize;
        for key in 0..self.depth {
            let pieces = self.values.pieces(values, key);
            for (head, out) in (0..).zip(out.chunks_exact_mut(width)) {
                let weight = spread.get(&weights, self.score(head, key));
                let mut out = out.iter_mut();
                for piece in &pieces {
                    let weight = piece.scale.map_or(weight, |scale| weight * scale);
                    for (&value, out) in piece.values.iter().zip(&mut out) {
                        *out = weight.mul_add(value, *out);
                    }
                }
            }
        }
        (reference, sum, k.list(out))
    }

    fn of_warp(&self, (reference, sum, out): Seen<'k>) -> Box<dyn OfWarp<'k> + 'k> {
        let spread = self.spread();
        let (reference, sum, out) = (reference.to_vec(), sum.to_vec(), out.to_vec());
        let width = self.lane.layout.width() as usize;
        let heads = (0..self.heads).zip(out.chunks_exact(width)).map(|(head, out)| {
            let sums = (0..self.depth).map(|key| spread.get(&sum, self.score(head, key)));
            let sum = sums.reduce(|all, sum| all + sum).unwrap_or_else(|| self.k.f32(0.0));
            HeadOfWarp {
                reference: spread.get(&reference, self.score(head, 0)),
                sum: spread.sum_over_runs(sum),
                out: out.iter().map(|&out| spread.sum_over_runs(out)).collect(),
            }
        });
        Box::new(RunsOfWarp { lane: self.lane, heads: heads.collect() })
    }
}

/// What a warp has of a head: the reference and the sum in all lanes, the lane's elements in every run.
struct HeadOfWarp<'k> {
    reference: Reg<'k, f32>,
    sum: Reg<'k, f32>,
    out: Vec<Reg<'k, f32>>,
}

/// What a warp has of its heads.
struct RunsOfWarp<'k> {
    lane: Lane<'k>,
    heads: Vec<HeadOfWarp<'k>>,
}

impl<'k> OfWarp<'k> for RunsOfWarp<'k> {
    fn heads(&self) -> u32 {
        self.heads.len() as u32
    }

    fn together(&self) -> u32 {
        1
    }

    fn publish(&self, each: &dyn Fn(Reg<'k, u32>, [Reg<'k, f32>; 2])) {
        let k = self.lane.kernel();
        k.when(k.lane().eq(0), || {
            (0..).zip(&self.heads).for_each(|(i, head)| each(k.u32(i), [head.reference, head.sum]));
        });
    }

    fn put(&self, first: u32, count: u32, fix: Fix<'_, 'k>, put: Put<'_, 'k>) {
        let (k, lane) = (self.lane.kernel(), self.lane);
        k.when(lane.row.eq(0), || {
            for (slot, head) in (0..count).zip(&self.heads[first as usize..]) {
                let fix = fix(k.u32(first + slot), head.reference);
                for (piece, out) in (0..).zip(head.out.chunks_exact(lane.layout.elements() as usize)) {
                    let vectors = (lane.place + piece * lane.layout.lanes) * (lane.layout.elements() / 4);
                    for (i, out) in (0..).zip(out.chunks_exact(4)) {
                        put(k.u32(slot), vectors + i, [0, 1, 2, 3].map(|i: usize| out[i] * fix));
                    }
                }
            }
        });
    }
}
