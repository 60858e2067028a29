//! Decode attention: one new token of each sequence over its KV cache.

use super::decode;
use super::split::MAX_SPLITS;
use crate::CacheDtype;
use crate::Dtype;
use crate::data::eight_bits::BLOCK;
use warpwright_dsl::*;

/// Attention of one query per head over a KV cache: `out = softmax(scale · q·Kᵀ) · V` for every sequence of a batch and
/// every head, by online softmax (Milakov and Gimelshein 2018). Long sequences are split over blocks (flash-decoding:
/// Dao, Haziza, Massa and Sizov 2023).
///
/// | argument | type | elements |
/// | --- | --- | --- |
/// | `q` | [`q`](Self::q) | batch × heads × head_dim |
/// | `k`, `v` | [`cache`](Self::cache) | batch × kv_heads × max_seq_len × head_dim |
/// | `k_scales`, `v_scales`, with a `q8_0` cache only | f16 | batch × kv_heads × max_seq_len × head_dim / 32 |
/// | `out` | [`out`](Self::out) | batch × heads × head_dim |
/// | `length`, or with [`lengths_in_memory`](Self::lengths_in_memory) `lengths` | u32 | one, or batch |
/// | `partial_out`, with more than one split only | f32 | batch × heads × splits × head_dim |
/// | `partial_stats`, likewise | f32 | batch × heads × splits × 2 |
/// | `arrivals`, likewise | u32 | batch × kv_heads × [passes](Self::passes) |
///
/// All are row-major and aligned to 16 bytes. Query head `h` uses kv head `h · kv_heads / heads`. A length counts
/// tokens from the beginning of a sequence's cache; tokens beyond `max_seq_len` are ignored, and the result of no
/// tokens is zero. Zero `arrivals` once, before the first launch; every launch leaves it zero. The other two workspace
/// buffers need no initialisation. Launches that run at the same time must not share them.
///
/// # How it runs
///
/// A block serves the query heads that share a kv head, so that keys and values are read once, 16 bytes a lane; for a
/// `q8_0` cache a lane reads 8 bytes of a key and 4 of a value, so that one scale applies to all of them. Its warps
/// take keys in turns, several in a step, and load the next keys and values while they use the current ones. With
/// [`splits`](Self::splits) above 1 there are that many blocks for each kv head, each with at least 256 tokens. Blocks
/// without tokens end at once; of the others, the last to finish merges the results in the workspace. The merge is in
/// the order of the sequence, so results are the same, bit by bit, in every launch.
///
/// Products are [thin](ThinProducts). The tensor cores multiply caches of `q8_0`, and 16-bit caches if
/// [`tensor_cores`](Self::tensor_cores) allows it. What a lane loads of a row already has the layout of a fragment;
/// queries and weights are sums of two or three numbers of the operands' type if one is not precise enough. Quants of
/// `q8_0` become halves exactly; the scales of keys multiply the products of each block, and those of values multiply
/// the weights before these are split. Without tensor cores, lanes multiply in `f32` and exchange parts of the scores
/// so that each lane has some of them.
///
/// The registers of a warp have room for 16 heads of 16-bit caches, and of `f32` up to head_dim 128, twice that; for 8
/// of `q8_0`. Larger groups take several [`passes`](Self::passes), each of which reads K and V.
///
/// # Error
///
/// With `u = 2⁻²⁴`, a score, as the exponent of 2 that it is used as, is off by at most
/// `ε = (w + 10) u · c Σ|q||k|` with `c = scale · log₂ e`, where `w` is the number of a row's elements that a lane
/// adds up, 8 at most; and a weight by the factor `1 ± (2^ε - 1 + 2⁻²¹)`. So
///
/// `|err| ≤ (2 (2^ε - 1) + 2⁻²⁰ + 2 (n + 16) u) · Σ pᵢ|vᵢ|`
///
/// with the exact softmax `p` of `n` tokens, and one rounding to the type of `out`. Tensor cores truncate sums; then
/// `ε = (4 head_dim + 48) u · c Σ|q||k| + 2⁻³⁸ · c max|q| Σ|k|`, and
///
/// `|err| ≤ (2 (2^ε - 1) + 2⁻²⁰ + (14 n + 80) u) · Σ pᵢ|vᵢ| + n 2⁻³⁸ · max|vᵢ|`.
///
/// For a `q8_0` cache the products of a block are scaled and added up in `f32`, which makes it `5 head_dim`; a weight
/// is rounded once more when it is scaled, which makes it `15 n`; and the absolute error of a weight is relative to the
/// largest weight times the largest scale of its row, so that `max|v|` is that of all elements of all values.
///
/// Scores up to `10³⁰` are finite, and so are sums; for large `ε`, as with inputs of 10⁶, results still are means of
/// values.
#[derive(Clone, Copy, Debug, PartialEq, Config)]
#[config(
    doc = "out = softmax(scale * q * transpose(K)) * V, one query per head over a KV cache",
    // Llama-3.2-1B, Qwen2.5-1.5B and Llama-3-8B first.
    examples(
        "head_dim=64 heads=32 kv_heads=8 max_seq_len=131072 lengths_in_memory=true splits=32",
        "head_dim=128 heads=12 kv_heads=2 max_seq_len=32768 cache=bf16 lengths_in_memory=true splits=128",
        "head_dim=128 heads=32 kv_heads=8 lengths_in_memory=true splits=32",
        "head_dim=128 heads=32 kv_heads=8 cache=q8_0 q=f16 out=f16 lengths_in_memory=true splits=32",
        "head_dim=128 heads=28 kv_heads=4 cache=bf16 q=bf16 out=bf16",
        "head_dim=64 heads=32 q=bf16 cache=bf16 out=bf16 warps=8",
        "head_dim=128 heads=28 kv_heads=4 tensor_cores=false",
        "head_dim=80 heads=32 kv_heads=32 cache=f32",
        "head_dim=112 heads=32 kv_heads=2 q=f16 out=f16",
        "head_dim=256 heads=16 kv_heads=1 warps=8"
    )
)]
pub struct IncrementalAttention {
    /// Elements of a head; a multiple of 32 for a `q8_0` cache.
    #[field(range = 32..=256, multiple_of = 8, default = 128)]
    pub head_dim: u32,
    /// Query heads: a multiple of `kv_heads`.
    #[field(range = 1..=1024, default = 32)]
    pub heads: u32,
    /// Heads of the cache.
    #[field(range = 1..=1024, default = 8)]
    pub kv_heads: u32,
    /// Capacity of the cache in tokens: the stride between its heads.
    #[field(range = 1..=1 << 20, default = 8192)]
    pub max_seq_len: u32,
    /// Element type of the cache.
    #[field(default = "f16")]
    pub cache: CacheDtype,
    /// Element type of `q`.
    #[field(default = "f32")]
    pub q: Dtype,
    /// Element type of `out`.
    #[field(default = "f32")]
    pub out: Dtype,
    /// The factor of scores; `auto` is `1 / √head_dim`.
    #[field(none = "auto", range = 1e-9..=1e3, default = "auto")]
    pub scale: Option<f32>,
    /// Whether every sequence's length is read from device memory, so that a captured graph serves all tokens;
    /// else one length is given for all.
    #[field(default = false)]
    pub lengths_in_memory: bool,
    /// Blocks that share a sequence. The number that keeps a device busy is a [choice](crate::tune::AttentionShape).
    #[field(range = 1..=MAX_SPLITS, default = 1)]
    pub splits: u32,
    /// Whether tensor cores may be used for caches of `f16`, and from `sm_80` on `bf16`, where head_dim is up to 128. A
    /// cache of `q8_0` is multiplied on them in any case.
    #[field(default = true)]
    pub tensor_cores: bool,
    /// Warps of a block.
    #[field(domain = WARPS, default = 4)]
    pub warps: u32,
}

/// How many warps a block may have.
pub(crate) const WARPS: Domain = Domain::OneOf(&["1", "2", "4", "8"]);

/// The arguments of [`IncrementalAttention`].
#[derive(Args)]
#[args(of = IncrementalAttention)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct IncrementalAttentionArgs<M: Mode> {
    #[arg(len = batch.times(of.query_len()), dtype = of.q.ty())]
    pub q: M::AnyIn,
    #[arg(len = batch.times(of.cache_len()), dtype = of.cache.ty())]
    pub k: M::AnyIn,
    #[arg(len = batch.times(of.cache_len() / u64::from(BLOCK)), when = of.cache == CacheDtype::Q8_0)]
    pub k_scales: Option<M::In<F16>>,
    #[arg(len = batch.times(of.cache_len()), dtype = of.cache.ty())]
    pub v: M::AnyIn,
    #[arg(len = batch.times(of.cache_len() / u64::from(BLOCK)), when = of.cache == CacheDtype::Q8_0)]
    pub v_scales: Option<M::In<F16>>,
    #[arg(len = batch.times(of.query_len()), dtype = of.out.ty())]
    pub out: M::AnyOut,
    #[arg(len = batch, when = of.lengths_in_memory)]
    pub lengths: Option<M::In<u32>>,
    #[arg(when = !of.lengths_in_memory)]
    pub length: Option<M::Scalar<u32>>,
    #[arg(len = batch.times(of.query_len()).times(of.splits.into()), when = of.splits > 1)]
    pub partial_out: Option<M::InOut<f32>>,
    #[arg(len = batch.times(u64::from(of.heads) * 2).times(of.splits.into()), when = of.splits > 1)]
    pub partial_stats: Option<M::InOut<f32>>,
    #[arg(len = batch.times(u64::from(of.kv_heads) * u64::from(of.passes())), when = of.splits > 1)]
    pub arrivals: Option<M::InOut<u32>>,
    pub batch: M::Dim,
}

/// What the configuration means for a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Query heads of a kv head.
    pub(super) group: u32,
    /// Query heads that a block serves: all of a group, or a part.
    pub(super) heads: u32,
    /// Elements of a row that a lane has, where lanes multiply.
    width: u32,
}

/// Registers of a lane for the weighted sums of values where lanes multiply, and heads of a block, at most.
const OUT_REGISTERS: u32 = 128;
const MAX_HEADS: u32 = 32;
/// Registers of a lane that queries may take where lanes multiply, and queries and sums on the tensor cores.
const QUERY_REGISTERS: u32 = 64;
const TENSOR_REGISTERS: u32 = 80;

impl IncrementalAttention {
    /// Heads over an `f16` cache with room for `max_seq_len` tokens, with `f32` around it, scaled by
    /// `1 / √head_dim`; one length by value, one block for each kv head.
    pub fn new(heads: u32, kv_heads: u32, head_dim: u32, max_seq_len: u32) -> Self {
        IncrementalAttention { head_dim, heads, kv_heads, max_seq_len, ..Self::default() }
    }

    /// The factor of scores.
    pub fn score_scale(&self) -> f32 {
        super::score_scale(self.scale, self.head_dim)
    }

    /// Elements of the queries of a sequence.
    fn query_len(&self) -> u64 {
        u64::from(self.heads) * u64::from(self.head_dim)
    }

    /// Elements of a sequence's keys in the cache.
    fn cache_len(&self) -> u64 {
        (u64::from(self.kv_heads) * u64::from(self.max_seq_len)).saturating_mul(self.head_dim.into())
    }

    /// How often K and V are read: once, but for groups that are too large for the registers of a warp.
    pub fn passes(&self) -> u32 {
        let plan = self.plan();
        plan.group.div_ceil(plan.heads)
    }

    pub(super) fn plan(&self) -> Plan {
        let group = (self.heads / self.kv_heads.max(1)).max(1);
        let pieces = (self.width() * self.cache.bytes()).div_ceil(16);
        let width = 16 / self.cache.bytes() * pieces.div_ceil(32);
        let heads = group.div_ceil(group.div_ceil((OUT_REGISTERS / width).min(MAX_HEADS)));
        Plan { group, heads, width }
    }

    /// Elements of a head, also where [`check`](Kernel::check) refuses the configuration.
    fn width(&self) -> u32 {
        self.head_dim.clamp(32, 256)
    }

    /// Whether the products are on the tensor cores of such a target.
    pub(super) fn on_tensor_cores(&self, sm: u16) -> bool {
        let halves = self.tensor_cores && self.width() <= 128;
        match self.cache {
            CacheDtype::F32 => false,
            CacheDtype::F16 => halves,
            CacheDtype::Bf16 => halves && sm >= 80,
            CacheDtype::Q8_0 => true,
        }
    }

    /// Queries and a step on the tensor cores.
    pub(super) fn tensor_shape(&self) -> ThinShape {
        // As many as hold a query's element to 2⁻²².
        let terms = match (self.cache, self.q) {
            (CacheDtype::Bf16, Dtype::F32) => 3,
            (CacheDtype::Bf16, Dtype::F16) | (CacheDtype::F16 | CacheDtype::Q8_0, Dtype::F32) => 2,
            _ => 1,
        };
        let step = if self.width() <= 64 { 32 } else { 16 };
        let (vectors, width) = (self.plan().heads, self.width());
        let shape = ThinShape { vectors, width, step, held: true, terms };
        let registers: u32 = TensorProducts::<F16>::registers(shape).iter().sum();
        ThinShape { held: registers <= TENSOR_REGISTERS, ..shape }
    }

    /// The same on the lanes.
    pub(super) fn lane_shape(&self) -> ThinShape {
        let Plan { heads, width, .. } = self.plan();
        let (step, held) = (if heads <= 8 { 4 } else { 2 }, heads * width <= QUERY_REGISTERS);
        ThinShape { vectors: heads, width: self.width(), step, held, terms: 1 }
    }

    /// Blocks that a multiprocessor has registers for: queries and sums, and keys and values on their way.
    fn resident_blocks(&self) -> u32 {
        let (lanes, tensor, Plan { heads, width, .. }) =
            (self.lane_shape(), self.tensor_shape(), self.plan());
        let [query, sums] = TensorProducts::<F16>::registers(tensor);
        // Quants become halves on the way.
        let rows = tensor.step * self.width().next_multiple_of(64) / 32;
        let on_tensor_cores = if tensor.held { query } else { 0 } + sums + rows;
        let words = lanes.step * width * self.cache.bytes() / 2;
        let on_lanes = heads * width * if lanes.held { 2 } else { 1 } + words + width;
        // Of several targets the one that has least room.
        let registers = [75, 80].map(|sm| if self.on_tensor_cores(sm) { on_tensor_cores } else { on_lanes });
        let warps = match registers[0].max(registers[1]) {
            // 80, 128, 168 and 255 registers for each lane.
            0..=48 => 24,
            49..=72 => 16,
            73..=112 => 12,
            _ => 8,
        };
        warps / self.warps()
    }

    pub(super) fn warps(&self) -> u32 {
        self.warps.clamp(1, 8)
    }
}

impl Kernel for IncrementalAttention {
    type Args<M: Mode> = IncrementalAttentionArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn check(&self) -> Result<(), BuildError> {
        let IncrementalAttention { head_dim, heads, kv_heads, cache, .. } = *self;
        let granule = cache.granule();
        if !head_dim.is_multiple_of(granule) {
            let rule = format!("a multiple of {granule}, for a cache of {cache}");
            return Err(BuildError::field("head_dim", head_dim, rule));
        }
        if !heads.is_multiple_of(kv_heads) {
            let rule = format!("a multiple of kv_heads, which is {kv_heads}");
            return Err(BuildError::field("heads", heads, rule));
        }
        Ok(())
    }

    fn launch(&self) -> LaunchRule {
        let blocks = u64::from(self.kv_heads) * u64::from(self.passes());
        let grid = [Extent::new(self.splits.into()), Extent::new(blocks), Extent::dim("batch")];
        LaunchRule {
            resident_blocks: Some(self.resident_blocks().max(1)),
            ..LaunchRule::new(32 * self.warps()).grid_3d(grid)
        }
    }

    fn body<'k>(&self, k: K<'k>, args: IncrementalAttentionArgs<Body<'k>>) {
        decode::attend(self, k, &args);
    }
}
