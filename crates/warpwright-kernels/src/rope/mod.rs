//! Rotary position embedding, with what stands before and after it: the norm of each head, and the way into
//! the KV cache.

mod entry;
mod frequencies;
mod turn;

pub(crate) use entry::ENTRY;
pub use frequencies::RopeScaling;

use crate::CacheDtype;
use crate::data::floats::{Dtype, FloatBuffers, Floats};
use crate::data::quantized::{Rows, describe};
use turn::{Angles, Head, Lanes};
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;

/// Warps of a block.
const WARPS: u32 = 4;

/// Rotates `q` and `k` by their positions (Su et al. 2021) and puts `k` and `v` into the KV cache, in one
/// launch; with a norm, each head of `q` and `k` is normalised first, as in Qwen3. It has parts too: only the
/// rotation of one tensor ([`rotation`](Rope::rotation)), or only the way into the cache
/// ([`append`](Rope::append)).
///
/// `q` is `tokens × heads × head_dim`, `k` and `v` are `tokens × kv_heads × head_dim`, or all three are parts
/// of one row `qkv`. Pair `i` of a head, out of the first `rotary_dim` elements, turns by
/// `position · base^(−2i / rotary_dim)`, scaled; what is behind them stays. `positions` has a position for each
/// token; both caches are `batch × kv_heads × max_seq_len × head_dim`, and the token's row there is that of its
/// sequence and its position. A position of `max_seq_len` or more reaches no cache: so are tokens marked that
/// only fill up a batch.
///
/// ```text
///  q ──► norm? ──► rotate? ──► rotated (or q itself)       if heads > 0
///  k ──► norm? ──► rotate? ──► k_cache[sequence, head, position]
///  v ────────────────────────► v_cache[sequence, head, position]     if kv_heads > 0
/// ```
///
/// Without `heads` there is no `q`, without `kv_heads` neither `k` and `v` nor a cache, and with a `rotary_dim` of
/// zero nothing turns (layers without positions are such). What has no part in a configuration is no argument:
/// `freq_factors` where nothing turns, `sequences` where nothing goes into a cache, `positions` where neither
/// happens.
///
/// An angle is an integer fraction of a turn times the position, so that whole turns vanish exactly, however
/// many they are; cosine and sine are to 2⁻²³. Frequencies are computed in `f64` when the kernel is built, and
/// divided by `freq_factors` in `f64`: at position 2²⁴ that is 2⁻²⁹ of a turn. For the elements `a` and `b` of a
/// pair, up to there,
/// `|err| ≤ 5 · 2⁻²⁴ · m · (|a| + |b|)`, with the magnitude `m` of the scaling, and one rounding to the type
/// of the result; a norm adds `(n / 2 + 12) · 2⁻²⁴ · m · (|a| + |b|)`, where `n ≤ 16` is the number of a head's
/// elements in a lane, and a cache of `q8_0` 0.57 of the scale of the element's 32. What neither turns nor is
/// normalised is rounded once, to the type of the result.
#[derive(Clone, Copy, Debug, PartialEq, warpwright_dsl::KeyPart)]
pub struct Rope {
    /// Heads of `q`; 0 where there is none.
    pub heads: u32,
    /// Heads of `k` and `v`; 0 where there are none, and no cache.
    pub kv_heads: u32,
    /// Elements of a head: a multiple of 8, and of 32 for a cache of q8_0.
    pub head_dim: u32,
    /// Elements of a head that turn: an even number, 0 for none.
    pub rotary_dim: u32,
    /// Which elements are pairs.
    pub pairs: RopePairs,
    /// The base of the frequencies: more than 1.
    pub base: f32,
    /// How frequencies are scaled.
    pub scaling: RopeScaling,
    /// Whether each pair's frequency is divided by an element of `freq_factors` (`rope_freqs` in GGUF), `f32`,
    /// from 1/64 on.
    pub freq_factors: bool,
    /// The epsilon of the norm of each head of `q` and `k`, if there is one; its weights, `q_norm` and
    /// `k_norm`, are `head_dim` `f32`.
    pub norm: Option<f32>,
    /// Element type of `q`, `k` and `v`.
    pub input: Dtype,
    /// Where `q`, `k` and `v` are.
    pub layout: QkvLayout,
    /// Where the rotated `q` goes: its element type, or back to where it was.
    pub output: Option<Dtype>,
    /// Element type of the cache.
    pub cache: CacheDtype,
    /// Positions that a sequence of the cache has room for.
    pub max_seq_len: u32,
    /// Which sequence a token belongs to.
    pub sequences: TokenSequences,
    /// Heads that a lane takes one after the other with the same angles: 1 where tokens are few, 4 or so where
    /// there are enough of them to fill the device.
    pub rounds: u32,
}

/// Which elements of a head turn together; `n` is the number of those that turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, warpwright_dsl::KeyPart)]
pub enum RopePairs {
    /// `2i` and `2i + 1`: the layout of the paper, and of Llama in GGUF.
    Interleaved,
    /// `i` and `i + n / 2`: the layout of GPT-NeoX, Qwen and of Llama's checkpoints elsewhere.
    Neox,
}

impl RopePairs {
    fn name(self) -> &'static str {
        match self {
            RopePairs::Interleaved => "interleaved",
            RopePairs::Neox => "neox",
        }
    }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, warpwright_dsl::KeyPart)]
pub enum TokenSequences {
    /// All to the only one: prefill.
    One,
    /// Token `t` to sequence `t`: a step of decoding.
    Each,
    /// Token `t` to `sequences[t]`. One of `batch` or more reaches no cache.
    Listed,
}

impl TokenSequences {
    fn name(self) -> &'static str {
        match self {
            TokenSequences::One => "one",
            TokenSequences::Each => "each",
            TokenSequences::Listed => "listed",
        }
    }
}

/// How a head lies over lanes: lane `l` has the elements from `(l + slot · lanes) · vector` on.
#[derive(Clone, Copy)]
struct Split {
    vector: u32,
    lanes: u32,
    slots: u32,
}

impl Rope {
    /// Heads that turn whole, in NEOX pairs with a base of 10⁴, all in `f32`, with a sequence for each token.
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

    /// Only the rotation: of `heads` heads, as [`new`](Self::new) turns them, from `q` to `rotated`. `k` is turned by
    /// itself as the `q` of such a kernel.
    pub fn rotation(heads: u32, head_dim: u32) -> Self {
        Rope::new(heads, 0, head_dim, 0)
    }

    /// Only the way into the cache: `k` and `v` as they are, each token to a sequence of its own, in `f32`.
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
        let pitch = match self.layout {
            QkvLayout::Separate => 0,
            QkvLayout::Fused { pitch } => pitch,
        };
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

    fn sequence_len(&self) -> u64 {
        (u64::from(self.kv_heads) * u64::from(self.max_seq_len)).saturating_mul(self.head_dim.into())
    }
}

impl AnyKernel for Rope {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn key(&self) -> Option<Key> {
        Some(Key::derived(self))
    }

    fn entry(&self) -> String {
        let Rope { heads, kv_heads, head_dim, rotary_dim, input, rounds, .. } = *self;
        let mut name = format!("rope_h{heads}_{kv_heads}_d{head_dim}_{rotary_dim}_x{input}_n{rounds}");
        if self.turns() {
            let (pairs, base) = (self.pairs.name(), self.base.to_bits());
            name += &format!("_{pairs}_b{base:08x}_{}", self.scaling.tag());
            if self.freq_factors {
                name += "_factors";
            }
        }
        if let Some(epsilon) = self.norm {
            name += &format!("_norm{:08x}", epsilon.to_bits());
        }
        if let QkvLayout::Fused { pitch } = self.layout {
            name += &format!("_p{pitch}");
        }
        if self.has_q() {
            name += &self.output.map_or("_inplace".into(), |output| format!("_y{output}"));
        }
        if self.has_kv() {
            name += &format!("_{}_s{}_{}", self.cache, self.max_seq_len, self.sequences.name());
        }
        name
    }

    fn args(&self) -> Vec<ArgDesc> {
        let tokens = Extent::dim("tokens");
        let elements = |heads: u32| tokens.times(u64::from(heads) * u64::from(self.head_dim));
        let input = |name, role, len| ArgDesc::buffer(name, self.input.ty(), role, len);
        let role = if self.is_in_place() { Role::InOut } else { Role::In };
        let mut args = Vec::new();
        match self.layout {
            QkvLayout::Separate => {
                if self.has_q() {
                    args.push(input("q", role, elements(self.heads)));
                }
                if self.has_kv() {
                    args.extend(["k", "v"].map(|name| input(name, Role::In, elements(self.kv_heads))));
                }
            }
            QkvLayout::Fused { pitch } => args.push(input("qkv", role, tokens.times(pitch.into()))),
        }
        if self.norm.is_some() {
            let names = [("q_norm", self.has_q()), ("k_norm", self.has_kv())];
            let names = names.into_iter().filter(|&(_, has)| has);
            args.extend(names.map(|(name, _)| ArgDesc::input::<f32>(name, self.head_dim).constant()));
        }
        if self.has_positions() {
            args.push(ArgDesc::input::<u32>("positions", tokens));
        }
        if self.has_kv() && self.sequences == TokenSequences::Listed {
            args.extend([ArgDesc::input::<u32>("sequences", tokens), ArgDesc::scalar::<u32>("batch")]);
        }
        if self.turns() && self.freq_factors {
            args.push(ArgDesc::input::<f32>("freq_factors", self.rotary_dim / 2).constant());
        }
        if let Some(output) = self.output.filter(|_| self.has_q()) {
            args.push(ArgDesc::buffer("rotated", output.ty(), Role::Out, elements(self.heads)));
        }
        if self.has_kv() {
            let batch = match self.sequences {
                TokenSequences::One => Extent::new(1),
                TokenSequences::Each => tokens,
                TokenSequences::Listed => Extent::dim("batch"),
            };
            for names in [K_CACHE, V_CACHE] {
                args.extend(describe(names, self.cache, Role::Out, batch.times(self.sequence_len())));
            }
        }
        args
    }

    fn launch(&self) -> LaunchRule {
        let [q, kv] = self.warps();
        let blocks = Extent::new((u64::from(q) + 2 * u64::from(kv)).div_ceil(WARPS.into()));
        LaunchRule::new(32 * WARPS).grid_3d([Extent::dim("tokens"), blocks, Extent::new(1)])
    }

    fn check(&self) -> Result<(), BuildError> {
        entry::check(self)
    }

    fn sizes(&self) -> Vec<(&'static str, SizeValue)> {
        let mut sizes = Vec::new();
        if self.has_q() {
            sizes.push(("heads", SizeValue::U32(self.heads)));
        }
        if self.has_kv() {
            sizes.push(("kv_heads", SizeValue::U32(self.kv_heads)));
            sizes.push(("max_seq_len", SizeValue::U32(self.max_seq_len)));
        }
        if let QkvLayout::Fused { pitch } = self.layout {
            sizes.push(("pitch", SizeValue::U32(pitch)));
        }
        if let Some(epsilon) = self.norm {
            sizes.push(("epsilon", SizeValue::F32(epsilon)));
        }
        if self.turns() {
            sizes.push(("magnitude", SizeValue::F32(self.scaling.magnitude())));
        }
        sizes
    }

    fn tables(&self) -> Vec<(&'static str, Vec<u64>)> {
        if self.turns() { turn::tables(self) } else { Vec::new() }
    }

    fn body<'k>(&self, k: K<'k>) {
        let Rope { head_dim, .. } = *self;
        let (heads, kv_heads) = (k.size("heads", self.heads), k.size("kv_heads", self.kv_heads));
        let max_seq_len = k.size("max_seq_len", self.max_seq_len);
        let token = k.ctaid();
        let Inputs { q, kv } = self.inputs(k, token, (heads, kv_heads));
        let norm = |name| self.norm.map(|epsilon| (k.factor("epsilon", epsilon), k.ptr::<f32>(name)));
        let q_norm = q.and_then(|_| norm("q_norm"));
        let k_norm = kv.and_then(|_| norm("k_norm"));
        let position = match self.has_positions() {
            true => k.ptr::<u32>("positions").ld(token),
            false => k.u32(0),
        };
        let sequence = match self.sequences {
            TokenSequences::Each => token,
            TokenSequences::Listed if self.has_kv() => k.ptr::<u32>("sequences").ld(token),
            TokenSequences::One | TokenSequences::Listed => k.u32(0),
        };
        let angles = self.turns().then(|| Angles::new(self, k, position));
        let rotated = q.map(|q| match self.output {
            Some(dtype) => k.floats_mut("rotated", dtype).row(token, heads * head_dim),
            None => q,
        });
        let caches = kv.map(|_| [K_CACHE, V_CACHE].map(|names| Rows::parameter(k, names, self.cache)));

        let lanes = Lanes::new(self, k);
        let in_cache = position.lt(max_seq_len.reg());
        let in_cache = match self.sequences {
            TokenSequences::Listed if self.has_kv() => in_cache & sequence.lt(k.scalar::<u32>("batch")),
            _ => in_cache,
        };
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
        if let (Some([key, value]), Some([k_cache, v_cache])) = (kv, caches) {
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

const K_CACHE: [&str; 2] = ["k_cache", "k_scales"];
const V_CACHE: [&str; 2] = ["v_cache", "v_scales"];

/// What a token has: its `q`, and its `k` and `v`, where there are such.
struct Inputs<'k> {
    q: Option<Floats<'k>>,
    kv: Option<[Floats<'k>; 2]>,
}

impl Rope {
    fn inputs<'k>(
        &self,
        k: K<'k>,
        token: Reg<'k, u32>,
        (heads, kv_heads): (Size<'k>, Size<'k>),
    ) -> Inputs<'k> {
        let Rope { head_dim, input, .. } = *self;
        let queries = |name| match self.is_in_place() {
            true => k.floats_mut(name, input),
            false => k.floats(name, input),
        };
        match self.layout {
            QkvLayout::Separate => {
                let q = self.has_q().then(|| queries("q").row(token, heads * head_dim));
                let of = |name| k.floats(name, input).row(token, kv_heads * head_dim);
                Inputs { q, kv: self.has_kv().then(|| ["k", "v"].map(of)) }
            }
            QkvLayout::Fused { pitch } => {
                let row = queries("qkv").row(token, k.size("pitch", pitch));
                let of = |before: Size<'k>| row.at((before * head_dim).reg());
                let kv = self.has_kv().then(|| [heads, heads + kv_heads].map(of));
                Inputs { q: self.has_q().then_some(row), kv }
            }
        }
    }
}
