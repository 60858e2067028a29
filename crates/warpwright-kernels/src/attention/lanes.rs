//! The products of a step on the lanes, in `f32`: for caches that the tensor cores of a target do not multiply.
//!
//! The scores of all heads and keys come out of one transposing sum ([`Spread`]), so that every lane holds its own few of
//! them and an exponential is computed once.

use super::MASKED;
use super::softmax::{Products, State, Step};
use super::tensor::AT_ONCE;
use warpwright_dsl::*;

/// How lanes multiply.
pub(super) struct LaneProducts<'k, T> {
    pub(super) k: K<'k>,
    pub(super) strips: Strips<'k, T>,
    /// The lane's elements of the queries, times what scores are scaled by for powers of two.
    pub(super) query: Kept<'k>,
    pub(super) keys: Ptr<'k, Global, T>,
    pub(super) values: Ptr<'k, Global, T>,
    pub(super) head_dim: u32,
    pub(super) heads: u32,
    /// Keys of a step for each row that the warp reads at once.
    pub(super) depth: u32,
}

impl<'k, T: StripElement> LaneProducts<'k, T> {
    fn query(&self, head: u32) -> Vec<Reg<'k, f32>> {
        let width = self.strips.width();
        self.query.get(head * width, width).into_iter().map(|word| word.bits()).collect()
    }

    fn spread(&self) -> Spread<'k> {
        self.strips.spread((self.heads * self.depth) as usize)
    }
}

impl<'k, T: StripElement> Products<'k> for LaneProducts<'k, T> {
    type Scores = SpreadTile<'k>;
    type Keys = StripRows<'k, T>;
    type Values = StripRows<'k, T>;
    type Out = List<'k, f32>;

    const UNIT: f32 = 0.0;
    const SLACK: f32 = 16.0;

    fn step_keys(&self) -> u32 {
        self.depth * self.strips.rows()
    }

    fn heads(&self) -> u32 {
        self.heads
    }

    fn load_keys(&self, step: Step<'k>, before: Option<Self::Keys>) -> Self::Keys {
        self.strips.load(step.of(self.keys, self.head_dim), step.row, self.depth, step.wanted, before)
    }

    fn load_values(&self, step: Step<'k>, before: Option<Self::Values>) -> Self::Values {
        self.strips.load(step.of(self.values, self.head_dim), step.row, self.depth, step.wanted, before)
    }

    fn nothing(&self) -> State<'k, Self> {
        let (k, columns) = (self.k, self.depth as usize);
        let none = self.spread().filled(columns, MASKED).row_max();
        let zeros = (0..self.heads * self.strips.width()).map(|_| k.f32(0.0));
        (none, self.spread().filled(columns, 0.0), k.list(zeros))
    }

    fn scores(&self, keys: Self::Keys, step: Option<Step<'k>>) -> Self::Scores {
        let counts = |key| {
            let Step { row, end, .. } = step?;
            Some((row + self.strips.row() + key * self.strips.rows()).lt(end?))
        };
        let keys: Vec<_> = (0..self.depth).map(|key| (keys.values(key), counts(key))).collect();
        let mut parts = Vec::new();
        for query in (0..self.heads).map(|head| self.query(head)) {
            for (key, counts) in &keys {
                let products = key.iter().zip(&query);
                let part = products.fold(None, |sum: Option<Reg<'k, f32>>, (&key, &query)| {
                    Some(sum.map_or_else(|| key * query, |sum| key.mul_add(query, sum)))
                });
                let part = part.unwrap_or_else(|| self.k.f32(0.0));
                parts.push(counts.map_or(part, |counts| counts.select(part, MASKED)));
            }
        }
        self.spread().sum_tile(self.depth as usize, &parts)
    }

    fn rescale(&self, out: Self::Out, factor: SpreadRows<'k>) -> Self::Out {
        let out = out.to_vec();
        let heads = (0..).zip(out.chunks_exact(self.strips.width() as usize));
        self.k.list(heads.flat_map(|(head, out)| {
            let factor = factor.get(head);
            out.iter().map(move |&out| out * factor)
        }))
    }

    fn add(&self, weights: Self::Scores, values: Self::Values, out: Self::Out) -> Self::Out {
        let mut out = out.to_vec();
        for key in 0..self.depth {
            let values = values.values(key);
            for (head, out) in (0..).zip(out.chunks_exact_mut(values.len())) {
                let weight = weights.get(head, key as usize);
                out.iter_mut().zip(&values).for_each(|(out, &value)| *out = weight.mul_add(value, *out));
            }
        }
        self.k.list(out)
    }

    fn reduce_scatter(
        &self,
        out: Self::Out,
        factor: impl Fn(Reg<'k, u32>) -> Reg<'k, f32>,
        each: impl Fn(Reg<'k, u32>, Reg<'k, u32>, Option<Reg<'k, Pred>>, &[Reg<'k, f32>]),
    ) {
        let (width, out) = (self.strips.width(), out.to_vec());
        let vectors = (0..).zip(out.chunks_exact(width as usize)).flat_map(|(head, out)| {
            let factor = factor(self.k.u32(head));
            out.chunks_exact(4).map(move |out| [0, 1, 2, 3].map(|i: usize| out[i] * factor))
        });
        self.k.reduce_scatter(&vectors.collect::<Vec<_>>(), AT_ONCE, |vector, sums| {
            let sums = sums.map(|sum| self.spread().sum_over_runs(sum));
            let (element, has) = self.strips.vector(vector % (width / 4));
            let once = self.strips.row().eq(0);
            each(element, vector / (width / 4), Some(has.map_or(once, |has| has & once)), &sums);
        });
    }
}
