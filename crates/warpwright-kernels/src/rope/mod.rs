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
use turn::{Angles, Lanes};
use warpwright_ptx::dsl::*;

/// Warps of a block.
const WARPS: u32 = 4;

/// Rotates `q` and `k` by their positions (Su et al. 2021) and puts `k` and `v` into the KV cache, in one
/// launch; with a norm, each head of `q` and `k` is normalised first, as in Qwen3.
///
/// `q` is `tokens × heads × head_dim`, `k` and `v` are `tokens × kv_heads × head_dim`, or all three are parts
/// of one row `qkv`. Pair `i` of a head, out of the first `rotary_dim` elements, turns by
/// `position · base^(−2i / rotary_dim)`, scaled; what is behind them stays. `positions` has a position for each
/// token; both caches are `batch × kv_heads × max_seq_len × head_dim`, and the token's row there is that of its
/// sequence and its position. A position of `max_seq_len` or more reaches no cache: so are tokens marked that
/// only fill up a batch.
///
/// ```text
///  q ──► norm? ──► rotate ──► rotated (or q itself)
///  k ──► norm? ──► rotate ──► k_cache[sequence, head, position]
///  v ───────────────────────► v_cache[sequence, head, position]
/// ```
///
/// An angle is an integer fraction of a turn times the position, so that whole turns vanish exactly, however
/// many they are; cosine and sine are to 2⁻²³. Frequencies are computed in `f64` when the kernel is built, and
/// divided by `freq_factors` in `f64`: at position 2²⁴ that is 2⁻²⁹ of a turn. For the elements `a` and `b` of a
/// pair, up to there,
/// `|err| ≤ 5 · 2⁻²⁴ · m · (|a| + |b|)`, with the magnitude `m` of the scaling, and one rounding to the type
/// of the result; a norm adds `(n / 2 + 12) · 2⁻²⁴ · m · (|a| + |b|)`, where `n ≤ 16` is the number of a head's
/// elements in a lane, and a cache of `q8_0` 0.57 of the scale of the element's 32.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rope {
    /// Heads of `q`.
    pub heads: u32,
    /// Heads of `k` and `v`.
    pub kv_heads: u32,
    /// Elements of a head: a multiple of 8, and of 32 for a cache of q8_0.
    pub head_dim: u32,
    /// Elements of a head that turn: an even number.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RopePairs {
    /// `2i` and `2i + 1`: the layout of the paper, and of Llama in GGUF.
    Interleaved,
    /// `i` and `i + n / 2`: the layout of GPT-NeoX, Qwen and of Llama's checkpoints elsewhere.
    Neox,
}

/// Where `q`, `k` and `v` are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenSequences {
    /// All to the only one: prefill.
    One,
    /// Token `t` to sequence `t`: a step of decoding.
    Each,
    /// Token `t` to `sequences[t]`, less than `batch`.
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

    fn split(&self) -> Split {
        let partner = match self.pairs {
            RopePairs::Interleaved => self.rotary_dim,
            RopePairs::Neox => self.rotary_dim / 2,
        };
        let pitch = match self.layout {
            QkvLayout::Separate => 0,
            QkvLayout::Fused { pitch } => pitch,
        };
        let bytes = self.input.bytes().max(self.cache.bytes()).max(self.output.map_or(1, Dtype::bytes));
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

    /// Warps for the heads of `q`, and for those of `k` or `v`.
    fn warps(&self) -> [u32; 2] {
        [self.heads, self.kv_heads].map(|heads| heads.div_ceil(self.heads_of_warp().max(1)))
    }

    fn sequence_len(&self) -> u64 {
        (u64::from(self.kv_heads) * u64::from(self.max_seq_len)).saturating_mul(self.head_dim.into())
    }
}

impl Kernel for Rope {
    fn entry(&self) -> String {
        let Rope { heads, kv_heads, head_dim, rotary_dim, input, cache, max_seq_len, rounds, .. } = *self;
        let pairs = match self.pairs {
            RopePairs::Interleaved => "interleaved",
            RopePairs::Neox => "neox",
        };
        let base = self.base.to_bits();
        let mut name = format!("rope_h{heads}_{kv_heads}_d{head_dim}_{rotary_dim}_{pairs}_b{base:08x}");
        name += &format!("_{}_x{input}_{cache}_s{max_seq_len}_n{rounds}", self.scaling.tag());
        name += match self.sequences {
            TokenSequences::One => "_one",
            TokenSequences::Each => "_each",
            TokenSequences::Listed => "_listed",
        };
        if self.freq_factors {
            name += "_factors";
        }
        if let Some(epsilon) = self.norm {
            name += &format!("_norm{:08x}", epsilon.to_bits());
        }
        if let QkvLayout::Fused { pitch } = self.layout {
            name += &format!("_p{pitch}");
        }
        match self.output {
            Some(output) => name + &format!("_y{output}"),
            None => name + "_inplace",
        }
    }

    fn args(&self) -> Vec<ArgDesc> {
        let tokens = Extent::dim("tokens");
        let elements = |heads: u32| tokens.times(u64::from(heads) * u64::from(self.head_dim));
        let input = |name, role, len| ArgDesc::buffer(name, self.input.ty(), role, len);
        let role = if self.output.is_none() { Role::InOut } else { Role::In };
        let mut args = match self.layout {
            QkvLayout::Separate => vec![
                input("q", role, elements(self.heads)),
                input("k", Role::In, elements(self.kv_heads)),
                input("v", Role::In, elements(self.kv_heads)),
            ],
            QkvLayout::Fused { pitch } => vec![input("qkv", role, tokens.times(pitch.into()))],
        };
        if self.norm.is_some() {
            args.push(ArgDesc::input::<f32>("q_norm", self.head_dim));
            args.push(ArgDesc::input::<f32>("k_norm", self.head_dim));
        }
        args.push(ArgDesc::input::<u32>("positions", tokens));
        if self.sequences == TokenSequences::Listed {
            args.push(ArgDesc::input::<u32>("sequences", tokens));
        }
        if self.freq_factors {
            args.push(ArgDesc::input::<f32>("freq_factors", self.rotary_dim / 2));
        }
        if let Some(output) = self.output {
            args.push(ArgDesc::buffer("rotated", output.ty(), Role::Out, elements(self.heads)));
        }
        let batch = match self.sequences {
            TokenSequences::One => Extent::new(1),
            TokenSequences::Each => tokens,
            TokenSequences::Listed => Extent::dim("batch"),
        };
        for names in [K_CACHE, V_CACHE] {
            args.extend(describe(names, self.cache, Role::Out, batch.times(self.sequence_len())));
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

    fn body<'k>(&self, k: K<'k>) {
        let Rope { heads, kv_heads, head_dim, max_seq_len, .. } = *self;
        let token = k.ctaid();
        let (q, [key, value]) = self.inputs(k, token);
        let norms = self.norm.map(|epsilon| (epsilon, k.ptr::<f32>("q_norm"), k.ptr::<f32>("k_norm")));
        let position = k.ptr::<u32>("positions").ld(token);
        let sequence = match self.sequences {
            TokenSequences::One => k.u32(0),
            TokenSequences::Each => token,
            TokenSequences::Listed => k.ptr::<u32>("sequences").ld(token),
        };
        let angles = Angles::new(self, k, position);
        let rotated = match self.output {
            Some(dtype) => k.floats_mut("rotated", dtype).at(token * (heads * head_dim)),
            None => q,
        };
        let [k_cache, v_cache] = [K_CACHE, V_CACHE].map(|names| Rows::parameter(k, names, self.cache));
        // The row of a head in the cache.
        let row = |cache: Rows<'k>, head: Reg<'k, u32>| {
            let head = sequence.to::<u64>() * u64::from(kv_heads) + head.to::<u64>();
            cache.row(head * u64::from(max_seq_len) + position.to::<u64>(), head_dim)
        };
        let in_cache = position.lt(max_seq_len);

        let lanes = Lanes::new(self, k);
        let [q_warps, kv_warps] = self.warps();
        let warp = k.ctaid_y() * WARPS + k.warp();
        k.when(warp.lt(q_warps), || {
            let norm = norms.map(|(epsilon, weights, _)| (epsilon, weights));
            let loaded = lanes.load(q, heads, warp, true);
            let angles = angles.of(lanes);
            if self.output.is_none() {
                // A lane's elements are others' partners.
                k.sync_warp();
            }
            for (head, x) in loaded {
                lanes.store(&lanes.rotate(&x, norm, &angles), head.inside, |at, inside, values| {
                    rotated.at(head.number * head_dim).store(inside, at, values);
                });
            }
        });
        k.when(warp.ge(q_warps) & warp.lt(q_warps + kv_warps), || {
            let norm = norms.map(|(epsilon, _, weights)| (epsilon, weights));
            let loaded = lanes.load(key, kv_heads, warp - q_warps, true);
            let angles = angles.of(lanes);
            for (head, x) in loaded {
                let inside = Some(head.inside.map_or(in_cache, |inside| inside & in_cache));
                lanes.store(&lanes.rotate(&x, norm, &angles), inside, |at, inside, values| {
                    row(k_cache, head.number).store(k, inside, at, values);
                });
            }
        });
        k.when(warp.ge(q_warps + kv_warps) & warp.lt(q_warps + 2 * kv_warps), || {
            for (head, x) in lanes.load(value, kv_heads, warp - (q_warps + kv_warps), false) {
                let inside = Some(head.inside.map_or(in_cache, |inside| inside & in_cache));
                let values: Vec<_> = x.into_iter().map(|slot| slot.values).collect();
                lanes.store(&values, inside, |at, inside, values| {
                    row(v_cache, head.number).store(k, inside, at, values);
                });
            }
        });
    }
}

const K_CACHE: [&str; 2] = ["k_cache", "k_scales"];
const V_CACHE: [&str; 2] = ["v_cache", "v_scales"];

impl Rope {
    /// The token's `q`, and its `k` and `v`.
    fn inputs<'k>(&self, k: K<'k>, token: Reg<'k, u32>) -> (Floats<'k>, [Floats<'k>; 2]) {
        let Rope { heads, kv_heads, head_dim, input, .. } = *self;
        let queries = |name| match self.output {
            Some(_) => k.floats(name, input),
            None => k.floats_mut(name, input),
        };
        match self.layout {
            QkvLayout::Separate => {
                let q = queries("q").at(token * (heads * head_dim));
                (q, ["k", "v"].map(|name| k.floats(name, input).at(token * (kv_heads * head_dim))))
            }
            QkvLayout::Fused { pitch } => {
                let row = queries("qkv").at(token * pitch);
                (row, [heads, heads + kv_heads].map(|before| row.at(before * head_dim)))
            }
        }
    }
}
