//! Rotary position embedding, with the norm of each head before it and the write into the KV cache after it.

mod entry;
mod frequencies;
mod turn;

pub(crate) use entry::RopeFields;
pub use frequencies::RopeScaling;

use crate::CacheDtype;
use crate::data::eight_bits::BLOCK;
use crate::data::floats::{Dtype, Floats};
use crate::data::quantized::Rows;
use turn::{Angles, Head, Lanes};
use warpwright_dsl::*;
use warpwright_ptx::ir::Type;

/// Warps of a block.
const WARPS: u32 = 4;

/// Rotates `q` and `k` by their positions (Su et al. 2021) and writes `k` and `v` into the KV cache, in one launch.
/// With a norm, each head of `q` and `k` is normalised first, as in Qwen3. A configuration may also do part of this:
/// only the rotation of one tensor ([`rotation`](Rope::rotation)), or only the write into the cache
/// ([`append`](Rope::append)).
///
/// `q` is `tokens × heads × head_dim`, `k` and `v` are `tokens × kv_heads × head_dim`, or all three are parts of one
/// row `qkv`. Pair `i` of a head, out of the first `rotary_dim` elements, turns by `position · base^(−2i /
/// rotary_dim)`, scaled; the remaining elements do not turn. `positions` has a position for each token. Both caches are
/// `batch × kv_heads × max_seq_len × head_dim`; a token's row is given by its sequence and its position. A token at a
/// position of `max_seq_len` or more is not written to a cache: use such positions for tokens that pad a batch.
///
/// ```text
///  q ──► norm? ──► rotate? ──► rotated (or q itself)       if heads > 0
///  k ──► norm? ──► rotate? ──► k_cache[sequence, head, position]
///  v ────────────────────────► v_cache[sequence, head, position]     if kv_heads > 0
/// ```
///
/// Without `heads` there is no `q`; without `kv_heads` there are no `k`, `v` and caches; with a `rotary_dim` of zero
/// nothing turns (as in layers without positions). An argument that a configuration does not use does not exist:
/// `freq_factors` if nothing turns, `sequences` if nothing is written to a cache, `positions` if neither happens.
///
/// An angle is an integer fraction of a turn times the position, so that whole turns vanish exactly, however
/// many they are; cosine and sine are to 2⁻²³. Frequencies are computed in `f64` when the kernel is built, and
/// divided by `freq_factors` in `f64`: at position 2²⁴ that is 2⁻²⁹ of a turn. For the elements `a` and `b` of a
/// pair, up to there,
/// `|err| ≤ 5 · 2⁻²⁴ · m · (|a| + |b|)`, with the magnitude `m` of the scaling, and one rounding to the type
/// of the result; a norm adds `(n / 2 + 12) · 2⁻²⁴ · m · (|a| + |b|)`, where `n ≤ 16` is the number of a head's
/// elements in a lane, and a cache of `q8_0` 0.57 of the scale of the element's 32. What neither turns nor is
/// normalised is rounded once, to the type of the result.
#[derive(Clone, Copy, Debug, PartialEq, Config)]
#[config(
    doc = "q and k, normalised if wanted, turned by their positions; k and v into the KV cache; or parts of that"
)]
pub struct Rope {
    /// Heads of `q`; 0 where there is none.
    #[field(range = 0..=1024)]
    pub heads: u32,
    /// Heads of `k` and `v`; 0 where there are none, and no cache.
    #[field(range = 0..=1024)]
    pub kv_heads: u32,
    /// Elements of a head: a multiple of 8, and of 32 for a cache of q8_0.
    #[field(range = 8..=512, multiple_of = 8)]
    pub head_dim: u32,
    /// Elements of a head that turn: an even number, 0 for none.
    #[field(range = 0..=512, multiple_of = 2)]
    pub rotary_dim: u32,
    /// Which elements are pairs.
    #[field(default = "neox")]
    pub pairs: RopePairs,
    /// The base of the frequencies.
    #[field(range = 1.001..=1e30)]
    pub base: f32,
    /// How frequencies are scaled.
    #[field(opaque)]
    pub scaling: RopeScaling,
    /// Whether each pair's frequency is divided by an element of `freq_factors` (`rope_freqs` in GGUF), `f32`,
    /// from 1/64 on.
    #[field(default = false)]
    pub freq_factors: bool,
    /// The epsilon of the norm of each head of `q` and `k`, if there is one; its weights, `q_norm` and
    /// `k_norm`, are `head_dim` `f32`.
    #[field(name = "epsilon", range = 0.0..=1e30, default = "none")]
    pub norm: Option<f32>,
    /// Element type of `q`, `k` and `v`.
    #[field(name = "dtype", default = "f32")]
    pub input: Dtype,
    /// Where `q`, `k` and `v` are.
    #[field(opaque)]
    pub layout: QkvLayout,
    /// Where the rotated `q` goes: its element type, or back to where it was.
    #[field(none = "in_place", default = "f32")]
    pub output: Option<Dtype>,
    /// Element type of the cache.
    #[field(default = "f32")]
    pub cache: CacheDtype,
    /// Positions that a sequence of the cache has room for.
    pub max_seq_len: u32,
    /// Which sequence a token belongs to.
    #[field(default = "each")]
    pub sequences: TokenSequences,
    /// Heads that a lane takes one after the other with the same angles: 1 where tokens are few, 4 or so where
    /// there are enough of them to fill the device.
    #[field(range = 1..=16, default = 1)]
    pub rounds: u32,
}

/// The arguments of [`Rope`].
#[derive(Args)]
#[args(of = Rope)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct RopeArgs<M: Mode> {
    #[arg(len = of.elements(of.heads), dtype = of.input_if(of.has_q() && !of.is_fused() && !of.is_in_place()))]
    pub q: Option<M::AnyIn>,
    /// `q` where it is turned in place.
    #[arg(name = "q", len = of.elements(of.heads), dtype = of.input_if(of.is_in_place() && !of.is_fused()))]
    pub q_in_place: Option<M::AnyInOut>,
    #[arg(len = of.elements(of.kv_heads), dtype = of.input_if(of.has_kv() && !of.is_fused()))]
    pub k: Option<M::AnyIn>,
    #[arg(len = of.elements(of.kv_heads), dtype = of.input_if(of.has_kv() && !of.is_fused()))]
    pub v: Option<M::AnyIn>,
    #[arg(len = tokens.times(of.pitch().into()), dtype = of.input_if(of.is_fused() && !of.is_in_place()))]
    pub qkv: Option<M::AnyIn>,
    /// `qkv` where `q` is turned in place.
    #[arg(
        name = "qkv",
        len = tokens.times(of.pitch().into()),
        dtype = of.input_if(of.is_fused() && of.is_in_place())
    )]
    pub qkv_in_place: Option<M::AnyInOut>,
    #[arg(len = of.head_dim, when = of.norm.is_some() && of.has_q(), constant)]
    pub q_norm: Option<M::In<f32>>,
    #[arg(len = of.head_dim, when = of.norm.is_some() && of.has_kv(), constant)]
    pub k_norm: Option<M::In<f32>>,
    #[arg(len = tokens, when = of.has_positions())]
    pub positions: Option<M::In<u32>>,
    #[arg(len = tokens, when = of.is_listed())]
    pub sequences: Option<M::In<u32>>,
    #[arg(when = of.is_listed())]
    pub batch: Option<M::Scalar<u32>>,
    #[arg(len = of.rotary_dim / 2, when = of.turns() && of.freq_factors, constant)]
    pub freq_factors: Option<M::In<f32>>,
    #[arg(len = of.elements(of.heads), dtype = of.output.filter(|_| of.has_q()).map(Dtype::ty))]
    pub rotated: Option<M::AnyOut>,
    #[arg(len = of.cache_len(), dtype = of.has_kv().then(|| of.cache.ty()))]
    pub k_cache: Option<M::AnyOut>,
    #[arg(len = of.cache_len().per(BLOCK.into()), when = of.has_scales())]
    pub k_scales: Option<M::Out<F16>>,
    #[arg(len = of.cache_len(), dtype = of.has_kv().then(|| of.cache.ty()))]
    pub v_cache: Option<M::AnyOut>,
    #[arg(len = of.cache_len().per(BLOCK.into()), when = of.has_scales())]
    pub v_scales: Option<M::Out<F16>>,
    pub tokens: M::Dim,
}

/// Which elements of a head turn together; `n` is the number of those that turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, warpwright_dsl::Choice)]
pub enum RopePairs {
    /// `2i` and `2i + 1`: the layout of the paper, and of Llama in GGUF.
    Interleaved,
    /// `i` and `i + n / 2`: the layout of GPT-NeoX, Qwen and of Llama's checkpoints elsewhere.
    Neox,
}

/// Where `q`, `k` and `v` are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, warpwright_dsl::KeyPart)]
pub enum QkvLayout {
    /// In buffers of their own, without gaps.
    Separate,
    /// In one buffer `qkv` with a row for each token, which begins with `q`, `k` and `v` one after the other.
    Fused {
        /// Elements from one row to the next.
        pitch: u32,
    },
}

/// Which sequence of the cache a token belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, warpwright_dsl::Choice)]
pub enum TokenSequences {
    /// All to the only one: prefill.
    One,
    /// Token `t` to sequence `t`: a step of decoding.
    Each,
    /// Token `t` to `sequences[t]`. One of `batch` or more reaches no cache.
    Listed,
}

/// How a head lies over lanes: lane `l` has the elements from `(l + slot · lanes) · vector` on.
#[derive(Clone, Copy)]
struct Split {
    vector: u32,
    lanes: u32,
    slots: u32,
}

impl Rope {
    /// Heads that turn whole, in NEOX pairs with a base of 10⁴, all in `f32`, with one sequence per token.
    pub fn new(heads: u32, kv_heads: u32, head_dim: u32, max_seq_len: u32) -> Self {
        Rope {
            heads,
            kv_heads,
            head_dim,
            rotary_dim: head_dim,
            pairs: RopePairs::Neox,
            base: 1e4,
            scaling: RopeScaling::None,
            freq_factors: false,
            norm: None,
            input: Dtype::F32,
            layout: QkvLayout::Separate,
            output: Some(Dtype::F32),
            cache: CacheDtype::F32,
            max_seq_len,
            sequences: TokenSequences::Each,
            rounds: 1,
        }
    }

    /// Only the rotation: of `heads` heads, as in [`new`](Self::new), from `q` to `rotated`. To rotate `k`, pass it as
    /// the `q` of such a kernel.
    pub fn rotation(heads: u32, head_dim: u32) -> Self {
        Rope::new(heads, 0, head_dim, 0)
    }

    /// Only the write into the cache: `k` and `v` unchanged, one sequence per token, in `f32`.
    pub fn append(kv_heads: u32, head_dim: u32, max_seq_len: u32) -> Self {
        Rope { rotary_dim: 0, ..Rope::new(0, kv_heads, head_dim, max_seq_len) }
    }

    /// Whether there is a `q`.
    fn has_q(&self) -> bool {
        self.heads > 0
    }

    /// Whether there are `k` and `v`, and a cache that they go to.
    fn has_kv(&self) -> bool {
        self.kv_heads > 0
    }

    /// Whether any element turns.
    fn turns(&self) -> bool {
        self.rotary_dim > 0
    }

    /// Whether the rotated `q` goes to where it was.
    fn is_in_place(&self) -> bool {
        self.has_q() && self.output.is_none()
    }

    fn split(&self) -> Split {
        let partner = match self.pairs {
            RopePairs::Interleaved => self.rotary_dim,
            RopePairs::Neox => self.rotary_dim / 2,
        };
        let pitch = self.pitch();
        let output = self.output.filter(|_| self.has_q()).map_or(1, Dtype::bytes);
        let cache = if self.has_kv() { self.cache.bytes() } else { 1 };
        let bytes = self.input.bytes().max(output).max(cache);
        let together = (self.head_dim | partner | pitch).trailing_zeros().min(5);
        let vector = (1 << together).min(16 / bytes);
        let chunks = self.head_dim / vector;
        let lanes = chunks.clamp(1, 32).next_power_of_two();
        Split { vector, lanes, slots: chunks.div_ceil(lanes) }
    }

    /// Heads that a warp takes.
    fn heads_of_warp(&self) -> u32 {
        (32 / self.split().lanes).saturating_mul(self.rounds)
    }

    /// Whether it reads positions.
    fn has_positions(&self) -> bool {
        self.turns() || self.has_kv()
    }

    /// Warps for the heads of `q`, and for those of `k` or `v`.
    fn warps(&self) -> [u32; 2] {
        [self.heads, self.kv_heads].map(|heads| heads.div_ceil(self.heads_of_warp().max(1)))
    }

    /// Whether `q`, `k` and `v` are parts of one row.
    fn is_fused(&self) -> bool {
        matches!(self.layout, QkvLayout::Fused { .. })
    }

    /// Elements of such a row, with what is behind them.
    fn pitch(&self) -> u32 {
        match self.layout {
            QkvLayout::Separate => 0,
            QkvLayout::Fused { pitch } => pitch,
        }
    }

    /// Whether a buffer says which sequence a token belongs to.
    fn is_listed(&self) -> bool {
        self.has_kv() && self.sequences == TokenSequences::Listed
    }

    /// Whether the cache has scales.
    fn has_scales(&self) -> bool {
        self.has_kv() && self.cache == CacheDtype::Q8_0
    }

    /// The element type of an input that is there on a condition.
    fn input_if(&self, there: bool) -> Option<Type> {
        there.then(|| self.input.ty())
    }

    /// Elements of all tokens, of so many heads.
    fn elements(&self, heads: u32) -> Extent {
        Extent::dim("tokens").times(u64::from(heads) * u64::from(self.head_dim))
    }

    /// Elements of the cache of the keys.
    fn cache_len(&self) -> Extent {
        let batch = match self.sequences {
            TokenSequences::One => Extent::new(1),
            TokenSequences::Each => Extent::dim("tokens"),
            TokenSequences::Listed => Extent::dim("batch"),
        };
        let rows = u64::from(self.kv_heads) * u64::from(self.max_seq_len);
        batch.times(rows.saturating_mul(self.head_dim.into()))
    }
}

impl Kernel for Rope {
    type Args<M: Mode> = RopeArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        let [q, kv] = self.warps();
        let blocks = Extent::new((u64::from(q) + 2 * u64::from(kv)).div_ceil(WARPS.into()));
        LaunchRule::new(32 * WARPS).grid_3d([Extent::dim("tokens"), blocks, Extent::new(1)])
    }

    fn check(&self) -> Result<(), BuildError> {
        entry::check(self)
    }

    fn body<'k>(&self, k: K<'k>, args: RopeArgs<Body<'k>>) {
        let Rope { head_dim, .. } = *self;
        let (heads, kv_heads) = (k.dim(self.heads), k.dim(self.kv_heads));
        let max_seq_len = k.dim(self.max_seq_len);
        let token = k.ctaid();
        let Inputs { q, kv } = self.inputs(k, &args, token, (heads, kv_heads));
        let norm = |weights: Option<_>| {
            let (epsilon, weights) = self.norm.zip(weights)?;
            Some((k.factor(epsilon), weights))
        };
        let (q_norm, k_norm) = (norm(args.q_norm), norm(args.k_norm));
        let position = args.positions.map_or_else(|| k.u32(0), |positions| positions.ld(token));
        let sequence = match (self.sequences, args.sequences) {
            (TokenSequences::Each, _) => token,
            (_, Some(sequences)) => sequences.ld(token),
            (TokenSequences::One | TokenSequences::Listed, None) => k.u32(0),
        };
        let angles = self.turns().then(|| Angles::new(self, k, position, args.freq_factors));
        let rotated = args.rotated.map(|rotated| Floats::from(rotated).row(token, heads * head_dim)).or(q);
        let caches = [(args.k_cache, args.k_scales), (args.v_cache, args.v_scales)];
        let caches = caches.map(|(elements, scales)| Some(Rows::of(elements?, scales)));

        let lanes = Lanes::new(self, k);
        let in_cache = position.lt(max_seq_len.reg());
        let in_cache = args.batch.map_or(in_cache, |batch| in_cache & sequence.lt(batch));
        let append = |cache: Rows<'k>, head: Head<'k>, slots: &[Vec<Reg<'k, f32>>]| {
            let of_sequence = sequence.to::<u64>() * kv_heads.wide() + head.number.to::<u64>();
            let row = cache.row(of_sequence * max_seq_len.wide() + position.to::<u64>(), head_dim);
            let inside = Some(head.inside.map_or(in_cache, |inside| inside & in_cache));
            lanes.store(slots, inside, |at, inside, values| row.store(k, inside, at, values));
        };

        // Warps for the heads of q, then for those of k, then for those of v.
        let of_warp = self.heads_of_warp();
        let (q_warps, kv_warps) = (heads.div_ceil(of_warp), kv_heads.div_ceil(of_warp));
        let warp = k.ctaid_y() * WARPS + k.warp();
        if let (Some(q), Some(rotated)) = (q, rotated) {
            k.when(warp.lt(q_warps.reg()), || {
                let loaded = lanes.load(q, heads, warp, self.turns());
                let angles = angles.map(|angles| angles.of(lanes));
                if self.is_in_place() {
                    // A lane's elements are others' partners.
                    k.sync_warp();
                }
                for (head, x) in loaded {
                    let turned = lanes.rotate(&x, q_norm, angles.as_deref());
                    lanes.store(&turned, head.inside, |at, inside, values| {
                        rotated.at(head.number * head_dim).store(inside, at, values);
                    });
                }
            });
        }
        if let (Some([key, value]), [Some(k_cache), Some(v_cache)]) = (kv, caches) {
            let first = q_warps + kv_warps;
            let (q_warps, behind) = (q_warps.reg(), (first + kv_warps).reg());
            let first = first.reg();
            k.when(warp.ge(q_warps) & warp.lt(first), || {
                let loaded = lanes.load(key, kv_heads, warp - q_warps, self.turns());
                let angles = angles.map(|angles| angles.of(lanes));
                for (head, x) in loaded {
                    append(k_cache, head, &lanes.rotate(&x, k_norm, angles.as_deref()));
                }
            });
            k.when(warp.ge(first) & warp.lt(behind), || {
                for (head, x) in lanes.load(value, kv_heads, warp - first, false) {
                    let values: Vec<_> = x.into_iter().map(|slot| slot.values).collect();
                    append(v_cache, head, &values);
                }
            });
        }
    }
}

/// What a token has: its `q`, and its `k` and `v`, where there are such.
struct Inputs<'k> {
    q: Option<Floats<'k>>,
    kv: Option<[Floats<'k>; 2]>,
}

impl Rope {
    fn inputs<'k>(
        &self,
        k: K<'k>,
        args: &RopeArgs<Body<'k>>,
        token: Reg<'k, u32>,
        (heads, kv_heads): (Dim<'k>, Dim<'k>),
    ) -> Inputs<'k> {
        let head_dim = self.head_dim;
        if let Some(rows) = args.qkv.or(args.qkv_in_place) {
            let row = Floats::from(rows).row(token, k.dim(self.pitch()));
            let of = |before: Dim<'k>| row.at((before * head_dim).reg());
            let kv = self.has_kv().then(|| [heads, heads + kv_heads].map(of));
            return Inputs { q: self.has_q().then_some(row), kv };
        }
        let row = |all: AnyPtr<'k>, heads: Dim<'k>| Floats::from(all).row(token, heads * head_dim);
        let q = args.q.or(args.q_in_place).map(|q| row(q, heads));
        Inputs { q, kv: args.k.zip(args.v).map(|(key, value)| [key, value].map(|of| row(of, kv_heads))) }
    }
}
