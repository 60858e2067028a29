//! Online softmax over the keys that a warp reads, with both products on the tensor cores.
//!
//! Keys are rows, and the query heads that share them are columns: `S = K·qᵀ`, 16 keys by 8 heads an instruction,
//! and `outᵀ = Vᵀ·P`. The inner dimension of a product may be in any order, and so may the rows of `outᵀ`; so
//! fragments are what 16-byte loads bring, without shared memory and without a conversion:
//!
//! ```text
//! lane 4g + t     keys    16 bytes t of every 64 of rows g and g + 8: elements 8t.. are two steps of the inner
//!                         dimension for A, of which q has the same elements as B
//!                 scores  keys g, g + 8 by heads 2t, 2t + 1
//!                 values  16 bytes g of every 128 of rows 2t, 2t + 1, 2t + 8, 2t + 9: pairs of keys are made of
//!                         pairs of elements by a permutation of bytes
//!                 out     elements 8g.. of every 64 by heads 2t, 2t + 1
//! ```
//!
//! Scores become the right factor of the second product by a transposition in the warp. A query that the type of
//! the cache does not hold is a sum of several that it does hold, after its largest element was made `2^14`;
//! weights are sums of such numbers too, relative to `2^-14`, so that small ones keep their bits.

use super::cache::Which;
use super::online::MASKED;
use super::steps::Steps;
use super::warps::{Fix, OfWarp, Put};
use crate::floats::{Dtype, Floats};
use warpwright_ptx::dsl::*;
use warpwright_ptx::ir::Type;

/// Keys that an instruction takes.
pub(super) const KEYS: u32 = 16;
/// Heads that an instruction takes.
const HEADS: u32 = 8;
/// Elements of 16 bytes.
const PIECE: u32 = 8;

/// Weights are in units of `2^-UNIT`.
const UNIT: f32 = 14.0;
/// By how many powers of two a weight may exceed 1 before all are rescaled: it stays a half.
const SLACK: f32 = 1.0;

/// Numbers of the cache's type whose sum is a weight: their errors are `2⁻²²` and `2⁻²⁴` of it.
fn weight_terms(cache: Dtype) -> u32 {
    if cache == Dtype::F16 { 2 } else { 3 }
}

/// Numbers of the cache's type that a query's element is the sum of, to `2⁻²²` of it at least.
pub(super) fn query_terms(query: Dtype, cache: Dtype) -> u32 {
    match (cache, query) {
        (Dtype::F16, Dtype::F32) | (Dtype::Bf16, Dtype::F16) => 2,
        (Dtype::Bf16, Dtype::F32) => 3,
        _ => 1,
    }
}

/// How heads and rows lie over the lanes.
#[derive(Clone, Copy)]
pub(super) struct Layout<'k> {
    pub(super) k: K<'k>,
    pub(super) head_dim: u32,
    /// Query heads.
    pub(super) heads: u32,
}

/// The query as factors whose products are added up, and what the lane's heads' scores are multiplied by then.
pub(super) struct Query<'k, T> {
    terms: Vec<Tile<'k, B, T>>,
    scale: Vec<Reg<'k, f32>>,
}

/// What a warp has seen of its keys: for the lane's heads, the reference and the lane's sum of weights; the
/// weighted sums of values.
pub(super) type Seen<'k> = (List<'k, f32>, List<'k, f32>, Tile<'k, Acc, f32>);

/// Rows as they were loaded.
pub(super) type Raw<'k> = List<'k, u32>;

impl<'k> Layout<'k> {
    /// Groups of lanes with the same rows, and the lane in its group.
    fn g(self) -> Reg<'k, u32> {
        self.k.lane() >> 2
    }

    fn t(self) -> Reg<'k, u32> {
        self.k.lane() & 3
    }

    /// Eights of heads.
    fn eights(self) -> u32 {
        self.heads.div_ceil(HEADS)
    }

    /// Pieces of a key that a lane has, and of a value.
    fn key_pieces(self) -> u32 {
        self.head_dim.div_ceil(4 * PIECE)
    }

    fn value_pieces(self) -> u32 {
        self.head_dim.div_ceil(8 * PIECE)
    }

    /// Among the lanes with the same heads.
    fn columns(self) -> Spread<'k> {
        self.k.spread(1, 4)
    }

    /// Which of the lane's heads element `i` of accumulators is of.
    fn head_of(self, i: usize) -> usize {
        i / 4 % self.eights() as usize * 2 + i % 2
    }
}

impl<'k, T: Half + Float> Query<'k, T> {
    /// The queries whose rows `row` gives by the head's number, where scores are scaled by `scale` for powers of
    /// two.
    pub(super) fn read(
        layout: Layout<'k>,
        (dtype, scale): (Dtype, f32),
        row: impl Fn(Reg<'k, u32>) -> Floats<'k>,
    ) -> Self {
        let k = layout.k;
        let terms = query_terms(dtype, dtype_of::<T>());
        let mut words = vec![vec![Vec::new(); layout.eights() as usize]; terms as usize];
        let mut scales = Vec::new();
        for eight in 0..layout.eights() {
            let head = layout.g() + eight * HEADS;
            let there = head.lt(layout.heads);
            let row = row(there.select(head, 0));
            let elements: Vec<Vec<_>> = (0..layout.key_pieces())
                .map(|piece| {
                    let element = (layout.t() + piece * 4) * PIECE;
                    row.ld_vec_if(there & element.lt(layout.head_dim), element, PIECE)
                })
                .collect();
            let most = elements.iter().flatten().fold(k.f32(0.0), |most, element| most.max(element.abs()));
            let exponent = Exponent::of(k.group_max(most, 4));
            for element in elements.iter().flat_map(|elements| elements.chunks_exact(2)) {
                let mut rest = [element[0] * exponent.up, element[1] * exponent.up];
                for words in &mut words {
                    let rounded = rest.map(|rest| rest.to::<T>().f32());
                    words[eight as usize].push(T::pack_finite(rest[0], rest[1]));
                    rest = [rest[0] - rounded[0], rest[1] - rounded[1]];
                }
            }
            // Of the lane's heads, which other lanes have as rows.
            for head in [0, 1] {
                let lane = (layout.t() * 2 + head) * 4;
                scales.push(k.shuffle_idx(exponent.down, lane) * scale);
            }
        }
        let steps = 2 * layout.key_pieces() as usize;
        let terms = (words.iter())
            .map(|words| {
                let by_step =
                    (0..steps).flat_map(|step| words.iter().flat_map(move |words| &words[2 * step..][..2]));
                let words: Vec<_> = by_step.copied().collect();
                k.factor_of(16 * steps as u32, layout.eights() * HEADS, &words)
            })
            .collect();
        Query { terms, scale: scales }
    }
}

/// How a warp goes through keys.
#[derive(Clone, Copy)]
pub(super) struct TensorOnline<'a, 'k, T> {
    pub(super) layout: Layout<'k>,
    pub(super) query: &'a Query<'k, T>,
    /// Sixteens of keys in a step.
    pub(super) depth: u32,
    /// From the first row on, which nothing may write while the kernel runs.
    pub(super) keys: Ptr<'k, Global, T>,
    pub(super) values: Ptr<'k, Global, T>,
}

impl<'k, T: Half + Float> TensorOnline<'_, 'k, T> {
    /// Pieces of rows: in each, `count` of them, from `place` on, `step` apart.
    fn load(
        self,
        from: Ptr<'k, Global, T>,
        first: Reg<'k, u32>,
        rows: impl Iterator<Item = Reg<'k, u32>>,
        (place, step, count): (Reg<'k, u32>, u32, u32),
        which: Which<'k, Raw<'k>>,
    ) -> Raw<'k> {
        let k = self.layout.k;
        let others = match which {
            Which::AllIf(_, others) => others.to_vec(),
            Which::Before(_) => Vec::new(),
        };
        let mut words = Vec::new();
        for row in rows {
            let row = first + row;
            let wanted = match which {
                Which::AllIf(wanted, _) => wanted,
                Which::Before(end) => row.lt(end),
            };
            for piece in 0..count {
                let element = (place + piece * step) * PIECE;
                let ragged = (piece + 1) * step * PIECE > self.layout.head_dim;
                let wanted = if ragged { wanted & element.lt(self.layout.head_dim) } else { wanted };
                let others =
                    std::array::from_fn(|i| others.get(words.len() + i).copied().unwrap_or(k.u32(0)));
                let from: Ptr<'k, Global, u32> = from.at(row * self.layout.head_dim).at(element).cast();
                words.extend(from.nc().no_allocate().ld_vec_or::<4>(wanted, 0, others));
            }
        }
        k.list(words)
    }

    /// The values, transposed: two keys of an element in each register.
    fn values_by_element(self, values: Raw<'k>) -> Tile<'k, A, T> {
        let (words, pieces) = (values.to_vec(), self.layout.value_pieces() as usize);
        let mut a = Vec::new();
        for piece in 0..pieces {
            for word in 0..4 {
                for tile in words.chunks_exact(4 * 4 * pieces) {
                    let of = |row: usize| tile[4 * (row * pieces + piece) + word];
                    // The low halves of two keys, and the high ones.
                    let pair = |row| [0x5410u32, 0x7632].map(|which| of(row).prmt(of(row + 1), which));
                    a.extend(pair(0).into_iter().chain(pair(2)));
                }
            }
        }
        self.layout.k.factor_of(8 * PIECE * pieces as u32, self.step_keys(), &a)
    }

    /// Raises each head's reference to the maximum over the warp, and scales what was seen by that.
    fn rescale(self, scores: Tile<'k, Acc, f32>, (reference, sum, out): Seen<'k>) -> Seen<'k> {
        let k = self.layout.k;
        let mut most = reference.to_vec();
        for (i, score) in scores.to_vec().into_iter().enumerate() {
            most[self.layout.head_of(i)] = most[self.layout.head_of(i)].max(score);
        }
        let most: Vec<_> = most.into_iter().map(|most| self.layout.columns().max_over_runs(most)).collect();
        let fixes: Vec<_> =
            reference.to_vec().iter().zip(&most).map(|(&before, &most)| (before - most).exp2_ftz()).collect();
        let sum = sum.to_vec().into_iter().zip(&fixes).map(|(sum, &fix)| sum * fix);
        let fixed: Vec<_> =
            (0..).zip(out.to_vec()).map(|(i, out)| out * fixes[self.layout.head_of(i)]).collect();
        let out = k.accumulators_of(out.rows(), out.columns(), &fixed);
        (k.list(most.iter().copied()), k.list(sum), out)
    }
}

impl<'k, T: Half + Float> Steps<'k> for TensorOnline<'_, 'k, T> {
    type Raw = Raw<'k>;
    type Scores = Tile<'k, Acc, f32>;
    type Seen = Seen<'k>;

    fn step_keys(&self) -> u32 {
        self.depth * KEYS
    }

    fn load_keys(&self, first: Reg<'k, u32>, which: Which<'k, Raw<'k>>) -> Raw<'k> {
        let rows = (0..self.depth).flat_map(|tile| [0, 8].map(|half| self.layout.g() + (tile * KEYS + half)));
        self.load(self.keys, first, rows, (self.layout.t(), 4, self.layout.key_pieces()), which)
    }

    fn load_values(&self, first: Reg<'k, u32>, which: Which<'k, Raw<'k>>) -> Raw<'k> {
        let pairs = [0, 1, 8, 9];
        let rows =
            (0..self.depth).flat_map(|tile| pairs.map(|row| self.layout.t() * 2 + (tile * KEYS + row)));
        self.load(self.values, first, rows, (self.layout.g(), 8, self.layout.value_pieces()), which)
    }

    fn nothing(&self) -> Seen<'k> {
        let (k, heads) = (self.layout.k, 2 * self.layout.eights());
        let all = |value: f32| k.list((0..heads).map(|_| k.f32(value)));
        (
            all(MASKED),
            all(0.0),
            k.accumulators(8 * PIECE * self.layout.value_pieces(), HEADS * self.layout.eights()),
        )
    }

    fn scores(&self, keys: Raw<'k>, rows: Option<[Reg<'k, u32>; 2]>) -> Tile<'k, Acc, f32> {
        let (k, count) = (self.layout.k, self.step_keys());
        let (words, pieces) = (keys.to_vec(), self.layout.key_pieces() as usize);
        let mut a = Vec::new();
        for tile in words.chunks_exact(2 * 4 * pieces) {
            let (low, high) = tile.split_at(4 * pieces);
            a.extend(
                low.chunks_exact(2)
                    .zip(high.chunks_exact(2))
                    .flat_map(|(low, high)| [low[0], high[0], low[1], high[1]]),
            );
        }
        let keys = k.factor_of::<A, T>(count, 32 * pieces as u32, &a);
        let zero = k.accumulators(count, HEADS * self.layout.eights());
        let sums = self.query.terms.iter().fold(zero, |sums, &term| keys.mma(term, sums));
        let scaled: Vec<_> = (sums.to_vec().iter().enumerate())
            .map(|(i, &sum)| {
                let score = sum * self.query.scale[self.layout.head_of(i)];
                let Some([first, end]) = rows else { return score };
                let tile = i as u32 / (4 * self.layout.eights());
                let row = self.layout.g() + (tile * KEYS + i as u32 % 4 / 2 * 8);
                (first + row).lt(end).select(score, MASKED)
            })
            .collect();
        k.accumulators_of(count, HEADS * self.layout.eights(), &scaled)
    }

    fn add(&self, scores: Tile<'k, Acc, f32>, values: Raw<'k>, seen: Seen<'k>) -> Seen<'k> {
        let k = self.layout.k;
        let units = |references: List<'k, f32>| -> Vec<_> {
            references.to_vec().into_iter().map(|reference| reference - UNIT).collect()
        };
        let relative = |references: &[Reg<'k, f32>]| -> Vec<_> {
            let scores = scores.to_vec();
            (0..).zip(scores).map(|(i, score)| score - references[self.layout.head_of(i)]).collect()
        };
        let grown = relative(&units(seen.0)).into_iter().reduce(|most, exponent| most.max(exponent));
        let grown = grown.map_or(k.pred(false), |most| most.gt(UNIT + SLACK));
        let (reference, sum, out) = k.if_else(k.any(grown), || self.rescale(scores, seen), || seen);

        let weights: Vec<_> =
            relative(&units(reference)).into_iter().map(|exponent| exponent.exp2_ftz()).collect();
        let mut sums = sum.to_vec();
        for (i, &weight) in weights.iter().enumerate() {
            sums[self.layout.head_of(i)] = sums[self.layout.head_of(i)] + weight;
        }
        let values = self.values_by_element(values);
        let mut rest = k.accumulators_of(self.step_keys(), HEADS * self.layout.eights(), &weights);
        let mut out = out;
        for _ in 0..weight_terms(dtype_of::<T>()) {
            out = values.mma(rest.as_b::<T>(), out);
            rest = rest.map(|weight| weight - weight.to::<T>().f32());
        }
        (reference, k.list(sums), out)
    }

    fn of_warp(&self, (reference, sum, out): Seen<'k>) -> Box<dyn OfWarp<'k> + 'k> {
        let sums = sum.to_vec().into_iter().map(|sum| self.layout.columns().sum_over_runs(sum));
        let (references, sums) = (reference.to_vec(), sums.collect());
        Box::new(TensorParts { layout: self.layout, references, sums, out: out.to_vec() })
    }
}

/// What a warp has of its heads: those of each lane.
struct TensorParts<'k> {
    layout: Layout<'k>,
    references: Vec<Reg<'k, f32>>,
    sums: Vec<Reg<'k, f32>>,
    out: Vec<Reg<'k, f32>>,
}

impl<'k> OfWarp<'k> for TensorParts<'k> {
    fn heads(&self) -> u32 {
        self.layout.heads
    }

    fn together(&self) -> u32 {
        HEADS
    }

    fn publish(&self, each: &dyn Fn(Reg<'k, u32>, [Reg<'k, f32>; 2])) {
        let layout = self.layout;
        for (i, (&reference, &sum)) in (0..).zip(self.references.iter().zip(&self.sums)) {
            let head = layout.t() * 2 + (i / 2 * HEADS + i % 2);
            let here = layout.g().eq(0) & head.lt(layout.heads);
            layout.k.when(here, || each(head, [reference, sum]));
        }
    }

    fn put(&self, first: u32, count: u32, fix: Fix<'_, 'k>, put: Put<'_, 'k>) {
        let (layout, eights) = (self.layout, self.layout.eights() as usize);
        for eight in first / HEADS..(first + count).div_ceil(HEADS) {
            for odd in [0, 1] {
                let slot = layout.t() * 2 + (eight * HEADS - first + odd);
                let head = slot + first;
                layout.k.when(head.lt(layout.heads), || {
                    let of_lane = 2 * eight as usize + odd as usize;
                    let fix = fix(head, self.references[of_lane]);
                    // Elements 2 word and 2 word + 1 of a piece, of eight.
                    let element = |piece: usize, i: usize| {
                        let rows = 4 * piece + i / 2;
                        self.out[4 * (rows * eights + eight as usize) + i % 2 * 2 + odd as usize] * fix
                    };
                    for piece in 0..layout.value_pieces() {
                        for half in 0..2 {
                            let vector = (layout.g() + piece * 8) * 2 + half;
                            let elements =
                                [0, 1, 2, 3].map(|i| element(piece as usize, 4 * half as usize + i));
                            put(slot, vector, elements);
                        }
                    }
                });
            }
        }
    }
}

/// The type as configuration.
fn dtype_of<T: Data>() -> Dtype {
    if T::TYPE == Type::BF16 { Dtype::Bf16 } else { Dtype::F16 }
}

/// A power of two that makes the largest of some numbers `2^14` to `2^15`, and its inverse.
struct Exponent<'k> {
    up: Reg<'k, f32>,
    down: Reg<'k, f32>,
}

impl<'k> Exponent<'k> {
    fn of(most: Reg<'k, f32>) -> Self {
        const BITS: u32 = 23;
        // Below 2^-112 the inverse would not be a normal number.
        let exponent = (most.bits::<u32>() & (0xff << BITS)).max((127 - 112) << BITS);
        let up = most.kernel().u32((2 * 127 + 14) << BITS) - exponent;
        let down = exponent - (14 << BITS);
        Exponent { up: up.bits(), down: down.bits() }
    }
}
