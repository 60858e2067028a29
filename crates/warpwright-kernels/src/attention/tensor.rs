//! Online softmax over the keys that a warp reads, with both products on the tensor cores.
//!
//! `S = q·Kᵀ`, 16 rows of queries by 8 keys an instruction, and `outᵀ = Vᵀ·P`. The inner dimension of a product may
//! be in any order, and so may the rows of `outᵀ`; so fragments are what 16-byte loads bring, without shared memory
//! and without a conversion, and weights are where the second product wants them:
//!
//! ```text
//! lane 4g + t     keys    16 bytes t of every 64 of row g: elements 8t.. are two steps of the inner dimension
//!                         for B, of which q has the same elements as A
//!                 scores  head g by keys 2t, 2t + 1 of every eight: two eights are B of the second product
//!                 values  16 bytes g of every 128 of rows 2t, 2t + 1, 2t + 8, 2t + 9: pairs of keys are made of
//!                         pairs of elements by a permutation of bytes
//!                 out     elements 8g.. of every 64 by heads 2t, 2t + 1
//! ```
//!
//! A query that the type of the cache does not hold is a sum of several that it does hold, after its largest
//! element was made `2^14`: eight heads take half of the rows of A, and the other half has the rest of the sum.
//! Weights are sums of two or three such numbers too, relative to `2^-14`, so that small ones keep their bits.

use super::cache::Which;
use super::online::MASKED;
use super::steps::Steps;
use super::warps::{Fix, OfWarp, Put};
use crate::data::floats::{Dtype, Floats};
use warpwright_dsl::*;
use warpwright_ptx::ir::Type;

/// Keys that an instruction of the second product takes.
const KEYS: u32 = 16;
/// Heads, and keys, that are columns of an instruction.
const EIGHT: u32 = 8;
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
fn query_terms(query: Dtype, cache: Dtype) -> u32 {
    match (cache, query) {
        (Dtype::F16, Dtype::F32) | (Dtype::Bf16, Dtype::F16) => 2,
        (Dtype::Bf16, Dtype::F32) => 3,
        _ => 1,
    }
}

/// Registers of a lane for the queries of so many heads, and for the weighted sums of values.
pub(super) fn registers(head_dim: u32, heads: u32, query: Dtype, cache: Dtype) -> [u32; 2] {
    let eights = heads.div_ceil(EIGHT);
    let blocks = (query_terms(query, cache) * eights).div_ceil(2);
    [blocks * head_dim.div_ceil(4 * PIECE) * 8, eights * head_dim.div_ceil(8 * PIECE) * 16]
}

/// Registers of a lane for the keys and values of a step of `depth` times 16 keys.
pub(super) fn rows_registers(head_dim: u32, depth: u32) -> u32 {
    depth * 4 * (head_dim.div_ceil(4 * PIECE) * 2 + head_dim.div_ceil(8 * PIECE) * 4)
}

/// The type as configuration.
fn dtype_of<T: Data>() -> Dtype {
    if T::TYPE == Type::BF16 { Dtype::Bf16 } else { Dtype::F16 }
}

/// The numbers rounded to the type, in a word, and what that leaves of them.
fn split<'k, T: Half>(numbers: [Reg<'k, f32>; 2]) -> (Reg<'k, u32>, [Reg<'k, f32>; 2]) {
    let word = T::pack_finite(numbers[0], numbers[1]);
    let rounded = match dtype_of::<T>() {
        Dtype::Bf16 => word.bits::<Bf16x2>().f32x2(),
        _ => word.bits::<F16x2>().f32x2(),
    };
    (word, [numbers[0] - rounded[0], numbers[1] - rounded[1]])
}

/// How heads and rows lie over the lanes.
#[derive(Clone, Copy)]
pub(super) struct Layout<'k> {
    pub(super) k: K<'k>,
    pub(super) head_dim: u32,
    /// Query heads.
    pub(super) heads: u32,
}

impl<'k> Layout<'k> {
    /// Four lanes have the same `g`.
    fn g(self) -> Reg<'k, u32> {
        self.k.lane() >> 2
    }

    /// The lane among those.
    fn t(self) -> Reg<'k, u32> {
        self.k.lane() & 3
    }

    /// Eights of heads.
    fn eights(self) -> u32 {
        self.heads.div_ceil(EIGHT)
    }

    /// Pieces of a key that a lane has, and of a value.
    fn key_pieces(self) -> u32 {
        self.head_dim.div_ceil(4 * PIECE)
    }

    fn value_pieces(self) -> u32 {
        self.head_dim.div_ceil(8 * PIECE)
    }

    /// Of values of the heads `g`, by eights, those of the heads `2t` and `2t + 1`, which accumulators of `out`
    /// have as columns. All lanes of the warp call it.
    fn to_columns(self, of_heads: &[Reg<'k, f32>]) -> Vec<Reg<'k, f32>> {
        let lane = |odd: u32| (self.t() * 2 + odd) * 4;
        of_heads.iter().flat_map(|&value| [0, 1].map(|odd| self.k.shuffle_idx(value, lane(odd)))).collect()
    }

    /// Which of the columns' values goes with element `i` of the accumulators of `out`.
    fn column(self, i: usize) -> usize {
        i / 4 % self.eights() as usize * 2 + i % 2
    }
}

/// The query as a factor, and what the scores of the heads `g` are multiplied by, by eights.
pub(super) struct Query<'k, T> {
    factor: Tile<'k, A, T>,
    /// Eights of its rows that hold something.
    eights: usize,
    scale: Vec<Reg<'k, f32>>,
}

impl<'k, T: Half + Float> Query<'k, T> {
    /// The queries whose rows `row` gives by the head's number, where scores are scaled by `scale` for powers of
    /// two.
    pub(super) fn read(
        layout: Layout<'k>,
        (dtype, scale): (Dtype, Reg<'k, f32>),
        row: impl Fn(Reg<'k, u32>) -> Floats<'k>,
    ) -> Self {
        let k = layout.k;
        let terms = query_terms(dtype, dtype_of::<T>()) as usize;
        // Words of eight rows each: the first terms of all heads, the second ones, …
        let mut eights = vec![Vec::new(); terms * layout.eights() as usize];
        let mut scales = Vec::new();
        for eight in 0..layout.eights() {
            let head = layout.g() + eight * EIGHT;
            let there = head.lt(layout.heads);
            let row = row(there.select(head, 0));
            let elements: Vec<_> = (0..layout.key_pieces())
                .flat_map(|piece| {
                    let element = (layout.t() + piece * 4) * PIECE;
                    row.ld_vec_if(there & element.lt(layout.head_dim), element, PIECE)
                })
                .collect();
            let most = elements.iter().fold(k.f32(0.0), |most, element| most.max(element.abs()));
            let exponent = Exponent::of(k.group_max(most, 4));
            scales.push(exponent.down * scale);
            for pair in elements.chunks_exact(2) {
                let mut rest = [pair[0] * exponent.up, pair[1] * exponent.up];
                for term in 0..terms {
                    let (word, left) = split::<T>(rest);
                    eights[term * layout.eights() as usize + eight as usize].push(word);
                    rest = left;
                }
            }
        }
        let nothing = vec![k.u32(0); eights[0].len()];
        let mut words = Vec::new();
        for block in eights.chunks(2) {
            let (low, high) = (&block[0], block.get(1).unwrap_or(&nothing));
            let steps = low.chunks_exact(2).zip(high.chunks_exact(2));
            words.extend(steps.flat_map(|(low, high)| [low[0], high[0], low[1], high[1]]));
        }
        let rows = 16 * eights.len().div_ceil(2) as u32;
        Query {
            factor: k.factor_of(rows, 4 * PIECE * layout.key_pieces(), &words),
            eights: eights.len(),
            scale: scales,
        }
    }
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

/// How a warp goes through keys.
#[derive(Clone, Copy)]
pub(super) struct TensorOnline<'a, 'k, T> {
    pub(super) layout: Layout<'k>,
    pub(super) query: &'a Query<'k, T>,
    /// Sixteens of keys in a step.
    pub(super) depth: u32,
    /// From the first row on. Those that are read nothing may write while the body runs.
    pub(super) keys: Ptr<'k, Global, T>,
    pub(super) values: Ptr<'k, Global, T>,
}

/// What a warp has seen of its keys: for the heads `g`, by eights, the reference and the lane's sum of weights; the
/// weighted sums of values.
pub(super) type Seen<'k> = (List<'k, f32>, List<'k, f32>, Tile<'k, Acc, f32>);

/// Rows as they were loaded.
pub(super) type Raw<'k> = List<'k, u32>;

impl<'k, T: Half + Float> TensorOnline<'_, 'k, T> {
    /// Pieces of rows: in each, `count` of them, from `place` on, `step` apart.
    fn load(
        &self,
        from: Ptr<'k, Global, T>,
        rows: impl Iterator<Item = Reg<'k, u32>>,
        (place, step, count): (Reg<'k, u32>, u32, u32),
        which: Which<'k, Raw<'k>>,
    ) -> Raw<'k> {
        let (k, head_dim) = (self.layout.k, self.layout.head_dim);
        let others = match which {
            Which::AllIf(_, others) => others.to_vec(),
            Which::Before(_) => Vec::new(),
        };
        let mut words = Vec::new();
        for row in rows {
            let wanted = match which {
                Which::AllIf(wanted, _) => wanted,
                Which::Before(end) => row.lt(end),
            };
            for piece in 0..count {
                let element = (place + piece * step) * PIECE;
                let ragged = (piece + 1) * step * PIECE > head_dim;
                let wanted = if ragged { wanted & element.lt(head_dim) } else { wanted };
                let others =
                    std::array::from_fn(|i| others.get(words.len() + i).copied().unwrap_or(k.u32(0)));
                let from: Ptr<'k, Global, u32> = from.at(row * head_dim).at(element).cast();
                words.extend(from.nc().no_allocate().ld_vec_or::<4>(wanted, 0, others));
            }
        }
        k.list(words)
    }

    /// Scores less their heads' references, as exponents of weights in their unit.
    fn relative(&self, scores: List<'k, f32>, references: List<'k, f32>) -> Vec<Reg<'k, f32>> {
        let scores = scores.to_vec();
        let of_eight = scores.len() / self.layout.eights() as usize;
        let references = references.to_vec().into_iter().map(|reference| reference - UNIT);
        let pairs = scores.chunks_exact(of_eight).zip(references);
        pairs.flat_map(|(scores, reference)| scores.iter().map(move |&score| score - reference)).collect()
    }

    /// The weights as right factors, whose products are added up.
    fn weights(&self, weights: &[Reg<'k, f32>]) -> Vec<Tile<'k, B, T>> {
        let (k, eights) = (self.layout.k, self.layout.eights());
        let mut rest: Vec<_> = weights.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
        (0..weight_terms(dtype_of::<T>()))
            .map(|_| {
                let (words, left): (Vec<_>, _) = rest.iter().map(|&pair| split::<T>(pair)).unzip();
                rest = left;
                // By sixteens of keys, then eights of heads.
                let of_eight = words.len() / eights as usize;
                let words: Vec<_> = (0..of_eight)
                    .step_by(2)
                    .flat_map(|keys| {
                        words.chunks_exact(of_eight).flat_map(move |words| &words[keys..keys + 2])
                    })
                    .copied()
                    .collect();
                k.factor_of(self.step_keys(), EIGHT * eights, &words)
            })
            .collect()
    }

    /// The values, transposed: two keys of an element in each register.
    fn values_by_element(&self, values: Raw<'k>) -> Tile<'k, A, T> {
        let (words, pieces) = (values.to_vec(), self.layout.value_pieces() as usize);
        let mut a = Vec::new();
        for piece in 0..pieces {
            for word in 0..4 {
                for sixteen in words.chunks_exact(4 * 4 * pieces) {
                    let of = |row: usize| sixteen[4 * (row * pieces + piece) + word];
                    // The low halves of two keys, and the high ones.
                    let pair = |row| [0x5410u32, 0x7632].map(|which| of(row).prmt(of(row + 1), which));
                    a.extend(pair(0).into_iter().chain(pair(2)));
                }
            }
        }
        self.layout.k.factor_of(8 * PIECE * pieces as u32, self.step_keys(), &a)
    }

    /// Raises each head's reference to the maximum over the warp, and scales what was seen by that.
    fn rescale(&self, scores: List<'k, f32>, (reference, sum, out): Seen<'k>) -> Seen<'k> {
        let (k, layout, scores) = (self.layout.k, self.layout, scores.to_vec());
        let of_eight = scores.len() / layout.eights() as usize;
        let most: Vec<_> = (reference.to_vec().iter().zip(scores.chunks_exact(of_eight)))
            .map(|(&before, scores)| {
                k.group_max(scores.iter().fold(before, |most, &score| most.max(score)), 4)
            })
            .collect();
        let fixes: Vec<_> =
            reference.to_vec().iter().zip(&most).map(|(&before, &most)| (before - most).exp2_ftz()).collect();
        let sum = sum.to_vec().into_iter().zip(&fixes).map(|(sum, &fix)| sum * fix);
        let fixes = layout.to_columns(&fixes);
        let fixed: Vec<_> = (0..).zip(out.to_vec()).map(|(i, out)| out * fixes[layout.column(i)]).collect();
        let out = k.accumulators_of(out.rows(), out.columns(), &fixed);
        (k.list(most), k.list(sum), out)
    }
}

impl<'k, T: Half + Float> Steps<'k> for TensorOnline<'_, 'k, T> {
    type Raw = Raw<'k>;
    type Scores = List<'k, f32>;
    type Seen = Seen<'k>;

    fn step_keys(&self) -> u32 {
        self.depth * KEYS
    }

    fn load_keys(&self, first: Reg<'k, u32>, which: Which<'k, Raw<'k>>) -> Raw<'k> {
        let rows = (0..self.step_keys()).step_by(EIGHT as usize).map(|key| first + self.layout.g() + key);
        self.load(self.keys, rows, (self.layout.t(), 4, self.layout.key_pieces()), which)
    }

    fn load_values(&self, first: Reg<'k, u32>, which: Which<'k, Raw<'k>>) -> Raw<'k> {
        let sixteens = (0..self.step_keys()).step_by(KEYS as usize);
        let rows = sixteens.flat_map(|key| [0, 1, 8, 9].map(|row| first + self.layout.t() * 2 + (key + row)));
        self.load(self.values, rows, (self.layout.g(), 8, self.layout.value_pieces()), which)
    }

    fn nothing(&self) -> Seen<'k> {
        let (k, eights) = (self.layout.k, self.layout.eights());
        let all = |value: f32| k.list((0..eights).map(|_| k.f32(value)));
        (all(MASKED), all(0.0), k.accumulators(8 * PIECE * self.layout.value_pieces(), EIGHT * eights))
    }

    /// By eights of heads, then eights of keys, of which the lane has two.
    fn scores(&self, keys: Raw<'k>, rows: Option<[Reg<'k, u32>; 2]>) -> List<'k, f32> {
        let (layout, count) = (self.layout, self.step_keys());
        let (k, words, pieces) = (layout.k, keys.to_vec(), layout.key_pieces() as usize);
        let (eights_of_keys, eights) = ((count / EIGHT) as usize, layout.eights() as usize);
        // Words of a key are of steps of the inner dimension, two each.
        let b: Vec<_> = (0..2 * pieces)
            .flat_map(|step| words.chunks_exact(4 * pieces).flat_map(move |key| &key[2 * step..2 * step + 2]))
            .copied()
            .collect();
        let keys = k.factor_of::<B, T>(4 * PIECE * pieces as u32, count, &b);
        let zero = k.accumulators(self.query.factor.rows(), count);
        let sums = self.query.factor.mma(keys, zero).to_vec();
        let mut scores = Vec::new();
        for eight in 0..eights {
            for key in 0..eights_of_keys {
                for odd in 0..2 {
                    // Terms of a head are eights of rows, two to a block.
                    let terms = (eight..self.query.eights)
                        .step_by(eights)
                        .map(|row| sums[4 * (row / 2 * eights_of_keys + key) + row % 2 * 2 + odd]);
                    let sum = terms.reduce(|sum, term| sum + term).unwrap_or(k.f32(0.0));
                    let score = sum * self.query.scale[eight];
                    scores.push(rows.map_or(score, |[first, end]| {
                        let row = first + layout.t() * 2 + (EIGHT * key as u32 + odd as u32);
                        row.lt(end).select(score, MASKED)
                    }));
                }
            }
        }
        k.list(scores)
    }

    fn add(&self, scores: List<'k, f32>, values: Raw<'k>, seen: Seen<'k>) -> Seen<'k> {
        let k = self.layout.k;
        let most = self.relative(scores, seen.0).into_iter().reduce(|most, exponent| most.max(exponent));
        let grown = most.map_or(k.pred(false), |most| most.gt(UNIT + SLACK));
        let (reference, sum, out) = k.if_else(k.any(grown), || self.rescale(scores, seen), || seen);

        let weights: Vec<_> =
            self.relative(scores, reference).into_iter().map(|exponent| exponent.exp2_ftz()).collect();
        let of_eight = weights.len() / self.layout.eights() as usize;
        let sum = (sum.to_vec().into_iter().zip(weights.chunks_exact(of_eight)))
            .map(|(sum, weights)| weights.iter().fold(sum, |sum, &weight| sum + weight));
        let values = self.values_by_element(values);
        let out = self.weights(&weights).into_iter().fold(out, |out, weights| values.mma(weights, out));
        (reference, k.list(sum), out)
    }

    fn of_warp(&self, (reference, sum, out): Seen<'k>) -> Box<dyn OfWarp<'k> + 'k> {
        let (layout, references) = (self.layout, reference.to_vec());
        let sums = sum.to_vec().into_iter().map(|sum| layout.k.group_sum(sum, 4)).collect();
        let columns = layout.to_columns(&references);
        Box::new(TensorParts { layout, references, sums, columns, out: out.to_vec() })
    }
}

/// What a warp has of its heads.
struct TensorParts<'k> {
    layout: Layout<'k>,
    /// Of the heads `g`, by eights.
    references: Vec<Reg<'k, f32>>,
    sums: Vec<Reg<'k, f32>>,
    /// The references of the heads `2t` and `2t + 1`.
    columns: Vec<Reg<'k, f32>>,
    out: Vec<Reg<'k, f32>>,
}

impl<'k> OfWarp<'k> for TensorParts<'k> {
    fn heads(&self) -> u32 {
        self.layout.heads
    }

    fn together(&self) -> u32 {
        EIGHT
    }

    fn publish(&self, each: &dyn Fn(Reg<'k, u32>, [Reg<'k, f32>; 2])) {
        let layout = self.layout;
        for (eight, (&reference, &sum)) in (0..).zip(self.references.iter().zip(&self.sums)) {
            let head = layout.g() + EIGHT * eight;
            let here = layout.t().eq(0) & head.lt(layout.heads);
            layout.k.when(here, || each(head, [reference, sum]));
        }
    }

    fn put(&self, first: u32, count: u32, fix: Fix<'_, 'k>, put: Put<'_, 'k>) {
        let (layout, eights) = (self.layout, self.layout.eights() as usize);
        for eight in first / EIGHT..(first + count).div_ceil(EIGHT) {
            for odd in [0, 1] {
                let slot = layout.t() * 2 + (eight * EIGHT - first + odd);
                let head = slot + first;
                layout.k.when(head.lt(layout.heads), || {
                    let fix = fix(head, self.columns[(2 * eight + odd) as usize]);
                    // Element `i` of a piece: rows of `out` are pairs of them.
                    let element = |piece: u32, i: u32| {
                        let block = (4 * piece + i / 2) as usize * eights + eight as usize;
                        self.out[4 * block + (i % 2 * 2 + odd) as usize] * fix
                    };
                    for piece in 0..layout.value_pieces() {
                        for half in 0..2 {
                            let vector = (layout.g() + piece * 8) * 2 + half;
                            put(slot, vector, [0, 1, 2, 3].map(|i| element(piece, 4 * half + i)));
                        }
                    }
                });
            }
        }
    }
}
