//! Attention of many queries on the tensor cores: prefill.

mod operands;

use super::MASKED;
use crate::Dtype;
use crate::data::floats::HALVES;
use operands::Operands;
use std::f32::consts::{LN_2, LOG2_E};
use warpwright_dsl::*;
use warpwright_ptx::ir::Arch;

/// `out = softmax(scale · q·kᵀ)·v` for many queries at once, on the tensor cores.
///
/// The queries are the last tokens of the keys: query `i` of `q_len` is the token `kv_len − q_len + i` of `kv_len`, and
/// with [`causal`](Self::causal) attention it sees the keys up to itself. So a prompt can be computed in chunks against
/// a cache that already holds the previous tokens. Head `h` of the queries reads head `h / (heads / kv_heads)` of the
/// keys and values. A query that sees no key yields zeros.
///
/// | argument | type | elements |
/// | --- | --- | --- |
/// | `q` | [`q`](Self::q) | tokens × heads × head_dim |
/// | `k`, `v` | [`kv`](Self::kv) | as [`KvLayout`] says |
/// | `out` | [`out`](Self::out) | tokens × heads × head_dim |
/// | `lse`, with [`lse`](Self::lse) only | f32 | tokens × heads |
/// | `q_len`, `kv_len`, with [`Lengths::Scalars`] | u32 | one, for every sequence |
/// | `q_starts`, with [`Lengths::Buffers`] | u32 | batch + 1: `starts` |
/// | `kv_lens` for a cache, `kv_starts` for tokens, likewise | u32 | batch, `starts` |
/// | `starts`, `q_tokens`, and `kv_tokens` for tokens, likewise | u32 | one |
///
/// All are row-major and aligned to 16 bytes; the tokens of all sequences lie one after the other. The grid is the
/// tiles of [`rows`](Self::rows) queries of the longest sequence, by heads, by sequences.
///
/// # Algorithm
///
/// Online softmax (Milakov and Gimelshein, 2018) tile by tile without storing the scores (FlashAttention, Dao et al.,
/// 2022). A warp has 16 queries, in registers up to a head dimension of 128. From 64 to 128, halves have 32, which each load
/// of keys and values serves, in shared memory in the order of registers. The copies of tiles of keys and values run
/// ahead. Tiles are processed from the last to the first, so that those which need a mask or bounds (on the diagonal,
/// and at the ragged end) come first, in a loop of their own. Whole tiles that no query sees are never loaded.
///
/// Scores are kept relative to a running maximum for each row; the accumulators of `q·kᵀ` start at minus this maximum.
/// It is updated lazily: it rises to the row's maximum only when a weight exceeds it by a factor of 2⁸ or more, as in
/// FlashAttention-4, which is rare after the first tiles; then the accumulator state is rescaled. Weights are rounded
/// in registers and become the left operand of the second product; their sum is a product of the same rounded weights
/// with ones.
///
/// # Error
///
/// Let `u` be the rounding of a factor (2⁻¹¹ in half precision, 2⁻⁸ in `bf16`), and `δ ≤ 6 · 2⁻²³` what the tensor
/// cores cut off, as a part of the sum of magnitudes, with every block of `G` products: 16 from `sm_90` on, 8, or 4
/// before `sm_80`. For a query, let `p` be the exact weights, `n` the number of its keys, and `A` the largest of
/// their `scale · log₂e · Σ|q||k|`. Then
///
/// - scores are off by `E = A · (2δ · ⌈head_dim / G⌉ + 2⁻²³ · (A / 4 + 8))`, in units of `ln 2`: what the products
///   cut, and what rounding the running maximum, which rises `A / 4 + 4` times at most, and the exponent add;
/// - so weights are off by `η = 2^E − 1 + u + (A / 4 + 5) · 2⁻²²`, each as a part of itself, and in half precision
///   by 2⁻³² of the largest besides;
/// - the same rounded weights stand above and below the fraction, so that the result is a mean of `v`, and what is
///   common to all weights has no effect:
///   `|err| ≤ η / (1 − η) · Σ pⱼ|vⱼ − out| + 2δ · (n / G + 2) · Σ pⱼ|vⱼ| (+ n · 2⁻³¹ · max|v|)`, and one rounding
///   to the type of `out`.
///
/// Where scores are so large that this says nothing, a key that outweighs the others by more than `2E` still does.
/// Inputs of `f32` are rounded to factors on the way to shared memory, of half precision clamped to ±65504:
/// `q` adds `u · A` to `E`, `k` as much, and `v` adds `u · Σ pⱼ|vⱼ|`. No finite input gives
/// infinities or NaN (scores up to 10²⁸), and results in half precision are clamped to ±65504.
#[derive(Clone, Copy, Debug, PartialEq, Config)]
#[config(
    doc = "out = softmax(scale * q k^T) v for many queries, on the tensor cores",
    examples(
        "head_dim=64 heads=32 kv_heads=8",
        "heads=12 kv_heads=2 q=bf16 kv=bf16 out=bf16 factors=bf16",
        "head_dim=80 heads=32 kv_heads=32 causal=false",
        "head_dim=96 heads=32 kv_heads=32 kv_layout=tokens",
        "head_dim=192 heads=16 kv_heads=16 lengths=buffers",
        "head_dim=256 heads=8 kv_heads=1",
        "q=f32 out=f32",
        "q=f32 out=f32 rows=64 keys=64",
        "rows=64 keys=16",
        "q=f32 kv=f32 out=f32 factors=bf16",
        "q=f32 kv=f32 out=f32 head_dim=64 heads=14 kv_heads=2",
        "lengths=buffers kv_layout=tokens lse=true",
        "q=f32 kv=f32 out=f32 factors=bf16 head_dim=256 heads=8 kv_heads=8 lengths=buffers"
    )
)]
pub struct FlashAttention {
    /// Elements of a head.
    #[field(range = 16..=256, multiple_of = 16, default = 128)]
    pub head_dim: u32,
    /// Heads of the queries: a multiple of `kv_heads`.
    #[field(range = 1..=65535, default = 32)]
    pub heads: u32,
    /// Heads of the keys and values.
    #[field(range = 1..=65535, default = 8)]
    pub kv_heads: u32,
    /// Element type of `q`: `f32`, or that of `factors`.
    #[field(default = "f16")]
    pub q: Dtype,
    /// Element type of `k` and `v`: `f32`, or that of `factors`.
    #[field(default = "f16")]
    pub kv: Dtype,
    /// Element type of `out`.
    #[field(default = "f16")]
    pub out: Dtype,
    /// Operand type of the tensor cores: `f16`, or from `sm_80` on `bf16`, which keeps numbers of any magnitude.
    #[field(domain = HALVES, default = "f16")]
    pub factors: Dtype,
    /// Whether a query sees only the keys up to its own token.
    #[field(default = true)]
    pub causal: bool,
    /// The factor of scores before the softmax; `auto` is `1 / √head_dim`.
    #[field(none = "auto", range = 1e-9..=1e3, default = "auto")]
    pub scale: Option<f32>,
    /// The layout of keys and values.
    #[field(default = "cache")]
    pub kv_layout: KvLayout,
    /// Capacity of a cache, in tokens.
    #[field(range = 1..=1 << 24, default = 4096)]
    pub max_seq_len: u32,
    /// Where lengths come from.
    #[field(default = "scalars")]
    pub lengths: Lengths,
    /// Whether the log-sum-exp of every query is stored too: `ln Σ e^(scale · q·k)` in `lse`, `tokens × heads` of `f32`,
    /// which is what merging with attention to other keys takes. It is −10³⁰ where a query sees no key.
    #[field(default = false)]
    pub lse: bool,
    /// Queries of a block: `None` for 128, and 64 of heads of more than 128 elements. How many keep a device busy, and how
    /// many keys a tile has, is a [choice](crate::tune::FlashShape).
    #[field(none = "auto", domain = AUTO_ROWS, default = "auto")]
    pub rows: Option<u32>,
    /// Keys of a tile: `None` for as many as there are registers for. This fixes the order of the sums.
    #[field(none = "auto", domain = AUTO_KEYS, default = "auto")]
    pub keys: Option<u32>,
}

/// Queries that a block can have, and keys of a tile.
pub(crate) const ROWS: Domain = Domain::OneOf(&["64", "128"]);
const AUTO_ROWS: Domain = Domain::OneOf(&["auto", "64", "128"]);
pub(crate) const KEYS: Domain = Domain::OneOf(&["16", "32", "48", "64", "128"]);
const AUTO_KEYS: Domain = Domain::OneOf(&["auto", "16", "32", "48", "64", "128"]);

/// The arguments of [`FlashAttention`].
#[derive(Args)]
#[args(of = FlashAttention)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct FlashAttentionArgs<M: Mode> {
    #[arg(len = of.query_len(), dtype = of.q.ty())]
    pub q: M::AnyIn,
    #[arg(len = of.cache_len(), dtype = of.kv.ty())]
    pub k: M::AnyIn,
    #[arg(len = of.cache_len(), dtype = of.kv.ty())]
    pub v: M::AnyIn,
    #[arg(len = of.query_len(), dtype = of.out.ty())]
    pub out: M::AnyOut,
    #[arg(len = of.q_tokens().times(of.heads.into()), when = of.lse)]
    pub lse: Option<M::Out<f32>>,
    #[arg(when = of.lengths == Lengths::Scalars)]
    pub q_len: Option<M::Scalar<u32>>,
    #[arg(when = of.lengths == Lengths::Scalars)]
    pub kv_len: Option<M::Scalar<u32>>,
    #[arg(len = starts, when = of.lengths == Lengths::Buffers)]
    pub q_starts: Option<M::In<u32>>,
    #[arg(when = of.lengths == Lengths::Buffers)]
    pub starts: Option<M::Scalar<u32>>,
    #[arg(when = of.lengths == Lengths::Buffers)]
    pub q_tokens: Option<M::Scalar<u32>>,
    #[arg(len = batch, when = of.lengths == Lengths::Buffers && of.kv_layout == KvLayout::Cache)]
    pub kv_lens: Option<M::In<u32>>,
    #[arg(len = starts, when = of.lengths == Lengths::Buffers && of.kv_layout == KvLayout::Tokens)]
    pub kv_starts: Option<M::In<u32>>,
    #[arg(when = of.lengths == Lengths::Buffers && of.kv_layout == KvLayout::Tokens)]
    pub kv_tokens: Option<M::Scalar<u32>>,
    #[arg(when = of.lengths == Lengths::Buffers)]
    pub max_q_len: Option<M::Dim>,
    pub batch: M::Dim,
}

/// The layout of keys and values of [`FlashAttention`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, warpwright_dsl::Choice)]
pub enum KvLayout {
    /// A cache, `batch × kv_heads × max_seq_len × head_dim`. Lengths beyond `max_seq_len` count as that.
    Cache,
    /// As queries lie: `tokens × kv_heads × head_dim`, those of all sequences one after the other.
    Tokens,
}

/// Where the lengths of [`FlashAttention`] come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, warpwright_dsl::Choice)]
pub enum Lengths {
    /// Scalars `q_len` and `kv_len`, the same for every sequence.
    Scalars,
    /// Device memory, so that a captured graph serves all of them: `q_starts`, where the queries of each sequence
    /// begin in `q`, and those of the last end; `kv_lens`, or `kv_starts`, which are like `q_starts`. A sequence has
    /// none of the tokens beyond `q_tokens` or `kv_tokens`, whatever these buffers say. The grid is
    /// for sequences of up to `max_q_len` queries.
    Buffers,
}

/// A row maximum at or below this means that the row has seen no key.
const UNSEEN: f32 = -1e29;
/// The running maximum of a row rises when the base-2 logarithm of a weight exceeds its own by this much.
const RISE: f32 = 8.0;
/// The base-2 logarithm of the weight at the running maximum: half precision holds smaller ones the longer, and `RISE` more
/// still fits.
const HEADROOM: f32 = 7.0;

impl FlashAttention {
    /// Causal attention in half precision, with a cache for `max_seq_len` tokens, lengths as scalars and a
    /// scale of `1 / √head_dim`.
    pub fn new(heads: u32, kv_heads: u32, head_dim: u32, max_seq_len: u32) -> Self {
        FlashAttention { head_dim, heads, kv_heads, max_seq_len, ..Self::default() }
    }

    /// The factor of scores.
    pub fn score_scale(&self) -> f32 {
        super::score_scale(self.scale, self.head_dim)
    }

    /// Queries of a block.
    pub fn rows(&self) -> u32 {
        self.rows.unwrap_or(self.most_rows())
    }

    /// Queries of a block that shared memory has room for.
    fn most_rows(&self) -> u32 {
        if self.head_dim > 128 { 64 } else { 128 }
    }

    /// Queries of a warp. What it loads of keys and values serves all of them, so that twice as many halve its loads; the
    /// registers of the results are the limit.
    fn warp_rows(&self) -> u32 {
        let halves = self.q != Dtype::F32 && self.kv != Dtype::F32;
        if halves && (64..=128).contains(&self.head_dim) { 32 } else { 16 }
    }

    /// Keys of a tile.
    pub(crate) fn keys(&self, target: Arch) -> u32 {
        let most = self.most_keys(target);
        self.keys.map_or(most, |keys| keys.min(most))
    }

    /// Keys of a tile for whose scores there are registers. Before `sm_80`, where loads go through them, there are fewer.
    fn most_keys(&self, target: Arch) -> u32 {
        match (self.warp_rows(), self.head_dim) {
            (32, 113..) if target.sm < 80 => 16,
            (32, _) if target.sm < 80 => 32,
            (32, ..=64) => 64,
            (32, _) => 48,
            (_, ..=64) => 128,
            (_, 65..=128) => 64,
            (_, 209..) if target.sm < 80 => 16,
            _ => 32,
        }
    }

    /// [`attend`](Self::attend), where queries, and keys and values, may be `f32`.
    fn attend_as<'k, T: Half + TileSource<T>>(
        &self,
        k: K<'k>,
        singles: [bool; 2],
        args: &FlashAttentionArgs<Body<'k>>,
    ) {
        match singles {
            [false, false] => self.attend::<T, T, T>(k, args),
            [true, false] => self.attend::<f32, T, T>(k, args),
            [false, true] => self.attend::<T, f32, T>(k, args),
            [true, true] => self.attend::<f32, f32, T>(k, args),
        }
    }

    /// The algorithm, for queries of `Q` and keys and values of `S` that are multiplied as `T`.
    fn attend<'k, Q: TileSource<T>, S: TileSource<T>, T: Half>(
        &self,
        k: K<'k>,
        args: &FlashAttentionArgs<Body<'k>>,
    ) {
        let (d, rows, keys) = (self.head_dim, self.rows(), self.keys(k.target()));
        let operands = self.operands::<Q, S>(k, args);
        let &Operands { q_len, kv_len, .. } = &operands;
        // The longest rows first: blocks begin in the order of their numbers.
        let row = (k.nctaid() - 1 - k.ctaid()) * rows;
        k.exit_if(row.ge(q_len));
        let warp_rows = self.warp_rows();
        let warp_row = row + k.warp() * warp_rows;

        // Keys that a row sees. The last tile that the first row sees is not counted among the whole ones, so
        // that every row that sees a key has seen one before them.
        let reach = |row: Reg<'k, u32>| match self.causal {
            true => ((kv_len + row + 1).max(q_len) - q_len).min(kv_len),
            false => kv_len,
        };
        let tiles = (reach(row + (rows - 1)) + (keys - 1)) / keys;
        let whole = (reach(row).max(1) - 1) / keys;
        let first_key = |turn: Reg<'k, u32>| (tiles - 1 - turn) * keys;
        let sees = |row: Reg<'k, u32>, key: Reg<'k, u32>| match self.causal {
            true => (key + q_len).le(row + kv_len),
            false => key.lt(kv_len),
        };

        let q = k.shared_tile::<T>(rows, d);
        Q::fill(q, operands.q, row);
        k.sync();
        let q = q.rows(k.warp() * warp_rows, warp_rows);
        // Where registers do not hold them beside the results, they are loaded anew for every tile.
        let (held, kept) = match warp_rows {
            16 => ((d <= 128).then(|| q.load_a()), None),
            _ => (None, Some(q.keep_a())),
        };

        let pipeline = k.pipeline(if k.target().sm < 80 { 1 } else { 2 });
        let (k_tiles, v_tiles) = (pipeline.tile::<T>(keys, d), pipeline.tile::<T>(keys, d));
        let load = |whole: bool| {
            let (keys, values) = (operands.keys.rows_fit(whole), operands.values.rows_fit(whole));
            move |stage, turn| {
                S::fill(k_tiles.at(stage), keys, first_key(turn));
                S::fill(v_tiles.at(stage), values, first_key(turn));
            }
        };
        // `q·kᵀ`, relative to the rows' running maxima.
        let scores = |stage, state: &State<'k>| {
            let tile = k_tiles.at(stage);
            (0..d).step_by(16).fold(state.minus_running_max.accumulators(keys), |scores, i| {
                let q = match (held, kept) {
                    (Some(q), _) => q.k_step(i),
                    (_, Some(q)) => q.k_steps(i, 16),
                    _ => q.columns(i, 16).load_a(),
                };
                q.mma(tile.columns(i, 16).load_bt(), scores)
            })
        };
        let scale = self.score_scale();
        let exponent = scale * LOG2_E;
        let ones = k.factor_b::<T>(16, 8, 1.0);
        // Adds `2^scores · v`, and the weights.
        let add = |stage, scores: Tile<'k, Acc, f32>, state: State<'k>| {
            let weights = scores.mul_add(exponent, HEADROOM).exp2_ftz().as_a::<T>();
            let tile = v_tiles.at(stage);
            (0..keys).step_by(16).fold(state, |state, j| {
                let weights = weights.k_step(j);
                let out = weights.mma(tile.rows(j, 16).load_b(), state.out);
                State { out, sum: weights.mma(ones, state.sum), ..state }
            })
        };
        let masked = |stage, turn, (state, least_rise): (State<'k>, Rows<'k>)| {
            let key = first_key(turn);
            let scores =
                scores(stage, &state).map_at(|i, j, score| sees(warp_row + i, key + j).select(score, MASKED));
            let top = scores.row_max();
            // The first key that a row sees may also lower its running maximum.
            let rise = top.zip(least_rise, |top, least_rise| top.gt(UNSEEN).select(top.max(least_rise), 0.0));
            let least_rise = top.zip(least_rise, |top, least_rise| top.gt(UNSEEN).select(0.0, least_rise));
            (add(stage, scores - rise, state.risen(rise, rise.max(0.0) * -exponent)), least_rise)
        };
        let unmasked = |stage, _, (state, least_rise): (State<'k>, Rows<'k>)| {
            let scores = scores(stage, &state);
            let rise = scores.row_max().max(0.0);
            let high = rise.any(|rise| rise.gt(RISE / exponent));
            let (scores, state) = k.fold_if(high, (scores, state), |(scores, state)| {
                (scores - rise, state.risen(rise, rise * -exponent))
            });
            (add(stage, scores, state), least_rise)
        };
        let state = State {
            out: k.accumulators(warp_rows, d),
            sum: k.accumulators(warp_rows, 8),
            minus_running_max: k.rows(warp_rows, 0.0),
        };
        let (state, _) = pipeline.run_split(
            tiles - whole,
            tiles,
            (state, k.rows(warp_rows, UNSEEN)),
            (load(false), masked),
            (load(true), unmasked),
        );

        let sum = state.sum.row_values();
        let out = state.out * sum.map(|sum| sum.gt(0.0).select(sum.rcp_approx(), 0.0));
        self.store(out, &operands, warp_row);
        if let Some(lse) = operands.lse {
            let log = sum.zip(state.minus_running_max, |sum, minus_running_max| {
                let log = (sum.log2() - HEADROOM) * LN_2 - minus_running_max * scale;
                sum.gt(0.0).select(log, MASKED)
            });
            log.each(|i, log| lse.st_if((warp_row + i).lt(q_len), (warp_row + i) * self.heads, log));
        }
    }
}

/// The accumulator state of a warp's rows, carried from tile to tile.
#[derive(Clone, Copy, Carry)]
struct State<'k> {
    /// `Σ 2^score · v`, relative to the running maximum.
    out: Tile<'k, Acc, f32>,
    /// `Σ 2^score`, relative to the running maximum, in every column.
    sum: Tile<'k, Acc, f32>,
    /// Minus the running maximum: the initial accumulators of the next scores.
    minus_running_max: Rows<'k>,
}

impl<'k> State<'k> {
    /// Raises the running maxima by `rise`; the rescale factor of the weights is `2^decay`.
    fn risen(self, rise: Rows<'k>, decay: Rows<'k>) -> Self {
        let rescale = decay.exp2_ftz();
        State {
            out: self.out * rescale,
            sum: self.sum * rescale,
            minus_running_max: self.minus_running_max.zip(rise, |minus_max, rise| minus_max - rise),
        }
    }
}

impl Kernel for FlashAttention {
    type Args<M: Mode> = FlashAttentionArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        let since = if self.factors == Dtype::Bf16 { Bf16::SINCE } else { F16::SINCE };
        let longest = if self.lengths == Lengths::Scalars { "q_len" } else { "max_q_len" };
        let rule = LaunchRule::new(self.rows() / self.warp_rows() * 32).min_sm(since).grid_3d([
            Extent::dim(longest).per(self.rows().into()),
            Extent::new(self.heads.into()),
            Extent::dim("batch"),
        ]);
        LaunchRule { resident_blocks: Some(1), ..rule }
    }

    fn check(&self) -> Result<(), BuildError> {
        let FlashAttention { heads, kv_heads, factors, .. } = *self;
        if !heads.is_multiple_of(kv_heads) {
            let rule = format!("a multiple of kv_heads, which is {kv_heads}");
            return Err(BuildError::field("heads", heads, rule));
        }
        let limits =
            [("rows", self.rows, self.most_rows()), ("keys", self.keys, self.most_keys(Arch::sm(80)))];
        for (field, wanted, most) in limits {
            if let Some(wanted) = wanted.filter(|&wanted| wanted > most) {
                let rule = format!("{most} at most with heads of {} elements of these types", self.head_dim);
                return Err(BuildError::field(field, wanted, rule));
            }
        }
        for (field, dtype) in [("q", self.q), ("kv", self.kv)] {
            if dtype != Dtype::F32 && dtype != factors {
                let rule = format!("f32, or the factors', which are {factors}");
                return Err(BuildError::field(field, dtype, rule));
            }
        }
        Ok(())
    }

    fn body<'k>(&self, k: K<'k>, args: FlashAttentionArgs<Body<'k>>) {
        let whole = [self.q, self.kv].map(|dtype| dtype == Dtype::F32);
        match self.factors {
            Dtype::Bf16 => self.attend_as::<Bf16>(k, whole, &args),
            _ => self.attend_as::<F16>(k, whole, &args),
        }
    }
}
