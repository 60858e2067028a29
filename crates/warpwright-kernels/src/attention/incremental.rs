//! Decode attention: one new token of each sequence over its KV cache.

use super::block;
use super::cache::RowLayout;
use super::split::{MAX_SPLITS, MIN_CHUNK};
use super::tensor;
use crate::CacheDtype;
use crate::Dtype;
use crate::attention::SCALE;
use crate::data::eight_bits::BLOCK;
use crate::entry::{DTYPES, Domain, Entry, Field, boxed};
use std::f32::consts::LOG2_E;
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;

/// Attention of one query per head over a KV cache: `out = softmax(scale · q·Kᵀ) · V` for every sequence of a
/// batch and every head, by online softmax (Milakov and Gimelshein 2018), with the sequence split over blocks
/// where it is long (flash-decoding: Dao, Haziza, Massa and Sizov 2023).
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
/// All are row-major. Query head `h` uses kv head `h · kv_heads / heads`. A length counts tokens from the
/// beginning of a sequence's cache, and what is beyond `max_seq_len` is left out; of no tokens the result is
/// zero. `arrivals` is zeroed once, before the first launch, and every launch leaves it zero; the other two need
/// no initialisation. Neither may be shared by launches that run at the same time. All buffers are
/// aligned to 16 bytes.
///
/// # How it runs
///
/// A block serves the query heads that share a kv head, so that keys and values are read once, 16 bytes a lane.
/// Its warps take keys in turns, a step of several at a time, with the next keys and values under way while these
/// are used. With [`splits`](Self::splits) above 1 there are as many blocks for each kv head, every one with at
/// least 256 tokens; those that a shorter sequence has no tokens for end at once, and the last of the others
/// to finish merges what they have left in the workspace. The merge goes by the order of the
/// sequence, so that results are the same, bit by bit, in every launch.
///
/// Products are made in one of two ways. On the tensor cores, where [`tensor_cores`](Self::tensor_cores) allows
/// it, 16 bytes of a row are fragments as they are; queries and weights are sums of two or three numbers of
/// the cache's type where one does not hold them. Elsewhere lanes multiply in `f32`, and hand on parts of the
/// scores so that each lane has some of them.
///
/// The registers of a warp have room for 16 heads of 16-bit caches, and of `f32` up to head_dim 128, twice
/// that; for 8 of `q8_0`. Larger groups are served in [`passes`](Self::passes), each of which reads K and V.
///
/// # Error
///
/// With `u = 2⁻²⁴`, a score, as the exponent of 2 that it is used as, is off by at most
/// `ε = (w + 10) u · c Σ|q||k|` with `c = scale · log₂ e`, where `w` is the number of a row's elements that a lane
/// adds up, 32 at most; and a weight by the factor `1 ± (2^ε - 1 + 2⁻²¹)`. So
///
/// `|err| ≤ (2 (2^ε - 1) + 2⁻²⁰ + 2 (n + 16) u) · Σ pᵢ|vᵢ|`
///
/// with the exact softmax `p` of `n` tokens, and one rounding to the type of `out`. Tensor cores truncate sums: there
/// `ε = (4 head_dim + 48) u · c Σ|q||k| + 2⁻³⁸ · c max|q| Σ|k|`, and
///
/// `|err| ≤ (2 (2^ε - 1) + 2⁻²⁰ + (14 n + 80) u) · Σ pᵢ|vᵢ| + n 2⁻³⁸ · max|vᵢ|`.
///
/// Scores up to `10³⁰` are finite, and so are sums; where `ε` is large, as for inputs of 10⁶, results still are
/// means of values.
#[derive(Clone, Copy, Debug, PartialEq, warpwright_dsl::KeyPart)]
pub struct IncrementalAttention {
    /// Elements of a head: a multiple of 8 from 32 to 256; of 32 for a `q8_0` cache.
    pub head_dim: u32,
    /// Query heads: a multiple of `kv_heads`.
    pub heads: u32,
    /// Heads of the cache.
    pub kv_heads: u32,
    /// Tokens that the cache has room for, up to 2²⁰: the stride between its heads.
    pub max_seq_len: u32,
    /// Element type of the cache.
    pub cache: CacheDtype,
    /// Element type of `q`.
    pub q: Dtype,
    /// Element type of `out`.
    pub out: Dtype,
    /// What `q·k` is multiplied by.
    pub scale: f32,
    /// Whether every sequence's length is read from device memory, so that a captured graph serves all tokens;
    /// else one length is given for all.
    pub lengths_in_memory: bool,
    /// Blocks that share a sequence, up to 256: see [`splits_for`](Self::splits_for).
    pub splits: u32,
    /// Warps of a block: 1, 2, 4 or 8.
    pub warps: u32,
    /// Whether tensor cores may be used: they are for caches of `f16`, and from `sm_80` on `bf16`, with a head_dim
    /// of up to 128 where the queries fit into registers.
    pub tensor_cores: bool,
}

/// What the configuration means for a warp.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) layout: RowLayout,
    /// Query heads of a kv head.
    pub(super) group: u32,
    /// Query heads that a block serves: all of a group, or a part.
    pub(super) heads: u32,
    /// Keys of a step for each run of lanes.
    pub(super) depth: u32,
    /// Whether a lane's part of the queries stays in registers; else it is read from shared memory in each step.
    pub(super) query_in_registers: bool,
}

/// Registers of a lane for the weighted sums of values, and for the queries.
const OUT_REGISTERS: u32 = 128;
const QUERY_REGISTERS: u32 = 64;
/// Registers of a lane for queries and sums on the tensor cores.
const TENSOR_REGISTERS: u32 = 96;
/// Heads of a block at most: each of them has scores in every step.
const MOST_HEADS: u32 = 32;

impl IncrementalAttention {
    /// Heads over an `f16` cache with room for `max_seq_len` tokens, with `f32` around it, scaled by
    /// `1 / √head_dim`; one length by value, one block for each kv head.
    pub fn new(heads: u32, kv_heads: u32, head_dim: u32, max_seq_len: u32) -> Self {
        IncrementalAttention {
            head_dim,
            heads,
            kv_heads,
            max_seq_len,
            cache: CacheDtype::F16,
            q: Dtype::F32,
            out: Dtype::F32,
            scale: 1.0 / (head_dim.max(1) as f32).sqrt(),
            lengths_in_memory: false,
            splits: 1,
            warps: 4,
            tensor_cores: true,
        }
    }

    /// How many blocks should share a sequence of up to `length` tokens, on a device of `sms` multiprocessors:
    /// as many as are resident at once, as long as each has 256 tokens; one where the heads of the batch fill the
    /// device already.
    pub fn splits_for(&self, length: u32, batch: u32, sms: u32) -> u32 {
        let blocks = u64::from(batch) * u64::from(self.kv_heads) * u64::from(self.passes());
        let wanted = u64::from(sms) * u64::from(self.resident_blocks().max(1)) / blocks.max(1);
        let most = u64::from(length.min(self.max_seq_len) / MIN_CHUNK);
        wanted.min(most).clamp(1, MAX_SPLITS.into()) as u32
    }

    /// The same kernel for sequences of up to `length` tokens on such a device.
    pub fn split_for(mut self, length: u32, batch: u32, sms: u32) -> Self {
        self.splits = self.splits_for(length, batch, sms);
        self
    }

    /// How often K and V are read: once, but for groups that are too large for the registers of a warp.
    pub fn passes(&self) -> u32 {
        let plan = self.plan();
        plan.group.div_ceil(plan.heads)
    }

    pub(super) fn plan(&self) -> Plan {
        let layout = RowLayout::new(self.cache, self.head_dim.clamp(32, 256));
        let group = (self.heads / self.kv_heads.max(1)).max(1);
        let most = (OUT_REGISTERS / layout.width()).clamp(1, MOST_HEADS);
        let heads = group.div_ceil(group.div_ceil(most));
        let depth = match heads {
            0..=8 if layout.elements() < 16 || heads <= 4 => 4,
            _ => 2,
        };
        Plan { layout, group, heads, depth, query_in_registers: heads * layout.width() <= QUERY_REGISTERS }
    }

    /// Registers of a lane for the queries and for the sums on the tensor cores, where those are used.
    fn tensor_state(&self) -> Option<u32> {
        let (Plan { heads, .. }, head_dim) = (self.plan(), self.head_dim.clamp(32, 256));
        let cache = match self.cache {
            CacheDtype::F16 => Dtype::F16,
            CacheDtype::Bf16 => Dtype::Bf16,
            _ => return None,
        };
        let state = tensor::registers(head_dim, heads, self.q, cache).iter().sum();
        (self.tensor_cores && head_dim <= 128 && state <= TENSOR_REGISTERS).then_some(state)
    }

    /// Whether the products are on the tensor cores of such a target.
    pub(super) fn on_tensor_cores(&self, sm: u16) -> bool {
        self.tensor_state().is_some() && (sm >= 80 || self.cache == CacheDtype::F16)
    }

    /// Sixteens of keys in a step on the tensor cores.
    pub(super) fn tensor_depth(&self) -> u32 {
        if self.head_dim <= 64 { 2 } else { 1 }
    }

    /// Blocks that a multiprocessor has registers for: queries and sums, keys and values on their way, and what is
    /// in use.
    fn resident_blocks(&self) -> u32 {
        let Plan { layout, heads, depth, query_in_registers, .. } = self.plan();
        let state = heads * layout.width() * if query_in_registers { 2 } else { 1 };
        // Quants become floats by way of other words.
        let in_use = layout.width() * if self.cache == CacheDtype::Q8_0 { 4 } else { 1 };
        let on_lanes = state + 8 * depth * layout.pieces + in_use;
        let rows = tensor::rows_registers(self.head_dim, self.tensor_depth());
        let on_tensor_cores = self.tensor_state().map(|state| state + rows);
        let of_bf16 = |state: u32| if self.cache == CacheDtype::Bf16 { state.max(on_lanes) } else { state };
        let warps = match on_tensor_cores.map_or(on_lanes, of_bf16) {
            // 128, 168 and 255 registers for each lane.
            0..=72 => 16,
            73..=112 => 12,
            _ => 8,
        };
        warps / self.warps()
    }

    pub(super) fn warps(&self) -> u32 {
        self.warps.clamp(1, 8)
    }

    /// What scores are multiplied by, as exponents of 2.
    pub(super) fn scale_of_exponents(&self) -> f32 {
        self.scale * LOG2_E
    }
}

impl AnyKernel for IncrementalAttention {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn key(&self) -> Option<Key> {
        Some(Key::derived(self))
    }

    fn check(&self) -> Result<(), BuildError> {
        let IncrementalAttention { head_dim, heads, kv_heads, max_seq_len, cache, .. } = *self;
        let granule = cache.granule();
        if !(32..=256).contains(&head_dim) || !head_dim.is_multiple_of(granule) {
            let rule = format!("a multiple of {granule} from 32 to 256, for a cache of {cache}");
            return Err(BuildError::field("head_dim", head_dim, rule));
        }
        if !(1..=MOST).contains(&kv_heads) {
            return Err(BuildError::field("kv_heads", kv_heads, format!("from 1 to {MOST}")));
        }
        if !(1..=MOST).contains(&heads) || !heads.is_multiple_of(kv_heads) {
            let rule = format!("a multiple of kv_heads, which is {kv_heads}, up to {MOST}");
            return Err(BuildError::field("heads", heads, rule));
        }
        if !(1..=LONGEST).contains(&max_seq_len) {
            return Err(BuildError::field("max_seq_len", max_seq_len, format!("from 1 to {LONGEST}")));
        }
        if !(self.scale > 0.0 && self.scale <= 1e3) {
            return Err(BuildError::field("scale", self.scale, "a number above 0 and up to 1000"));
        }
        if !(1..=MAX_SPLITS).contains(&self.splits) {
            return Err(BuildError::field("splits", self.splits, format!("from 1 to {MAX_SPLITS}")));
        }
        if !matches!(self.warps, 1 | 2 | 4 | 8) {
            return Err(BuildError::field("warps", self.warps, "1, 2, 4 or 8"));
        }
        Ok(())
    }

    fn entry(&self) -> String {
        let IncrementalAttention { head_dim, heads, kv_heads, max_seq_len, splits, warps, .. } = self;
        let (q, cache, out) = (self.q, self.cache, self.out);
        let lengths = if self.lengths_in_memory { "lengths" } else { "length" };
        let scale = self.scale.to_bits();
        let products = if self.tensor_cores { "_tc" } else { "" };
        format!(
            "incremental_attention_{q}_{cache}_{out}_h{heads}_{kv_heads}_d{head_dim}_m{max_seq_len}_c{scale:08x}_{lengths}_s{splits}_w{warps}{products}"
        )
    }

    fn args(&self) -> Vec<ArgDesc> {
        let [head_dim, heads, kv_heads] = [self.head_dim, self.heads, self.kv_heads].map(u64::from);
        let batch = |elements: u64| Extent::dim("batch").times(elements);
        let rows = kv_heads * u64::from(self.max_seq_len);
        let mut args = vec![ArgDesc::buffer("q", self.q.ty(), Role::In, batch(heads * head_dim))];
        for (name, scales) in [("k", "k_scales"), ("v", "v_scales")] {
            args.push(ArgDesc::buffer(name, self.cache.ty(), Role::In, batch(rows).times(head_dim)));
            if self.cache == CacheDtype::Q8_0 {
                args.push(ArgDesc::input::<F16>(scales, batch(rows).times(head_dim / u64::from(BLOCK))));
            }
        }
        args.push(ArgDesc::buffer("out", self.out.ty(), Role::Out, batch(heads * head_dim)));
        args.push(match self.lengths_in_memory {
            true => ArgDesc::input::<u32>("lengths", batch(1)),
            false => ArgDesc::scalar::<u32>("length"),
        });
        if self.splits > 1 {
            let parts = heads * u64::from(self.splits);
            args.push(ArgDesc::in_out::<f32>("partial_out", batch(parts * head_dim)));
            args.push(ArgDesc::in_out::<f32>("partial_stats", batch(parts * 2)));
            args.push(ArgDesc::in_out::<u32>("arrivals", batch(kv_heads * u64::from(self.passes()))));
        }
        args
    }

    fn launch(&self) -> LaunchRule {
        let blocks = u64::from(self.kv_heads) * u64::from(self.passes());
        let grid = [Extent::new(self.splits.into()), Extent::new(blocks), Extent::dim("batch")];
        LaunchRule {
            resident_blocks: Some(self.resident_blocks().max(1)),
            ..LaunchRule::new(32 * self.warps()).grid_3d(grid)
        }
    }

    fn sizes(&self) -> Vec<(&'static str, SizeValue)> {
        let mut sizes = vec![
            ("kv_heads", SizeValue::U32(self.kv_heads)),
            ("max_seq_len", SizeValue::U32(self.max_seq_len)),
            ("scale", SizeValue::F32(self.scale_of_exponents())),
        ];
        if self.splits > 1 {
            sizes.push(("splits", SizeValue::U32(self.splits)));
        }
        sizes
    }

    fn body(&self, k: K<'_>) {
        block::attend(self, k);
    }
}

/// Heads at most.
const MOST: u32 = 1024;
/// Tokens that a cache has room for at most.
const LONGEST: u32 = 1 << 20;

pub(crate) const ENTRY: Entry = Entry {
    name: "incremental_attention",
    doc: "out = softmax(scale * q * transpose(K)) * V, one query per head over a KV cache",
    fields: &[
        Field {
            name: "head_dim",
            domain: Domain::Int { from: 32, to: 256, multiple_of: 8 },
            default: Some("128"),
            doc: "elements of a head; a multiple of 32 for a q8_0 cache",
        },
        Field { name: "heads", domain: Domain::int(1, MOST), default: Some("32"), doc: "query heads" },
        Field {
            name: "kv_heads",
            domain: Domain::int(1, MOST),
            default: Some("8"),
            doc: "heads of the cache, of which the query heads are a multiple",
        },
        Field {
            name: "max_seq_len",
            domain: Domain::int(1, LONGEST),
            default: Some("8192"),
            doc: "tokens that the cache has room for",
        },
        Field {
            name: "cache",
            domain: <CacheDtype as FieldValue>::DOMAIN,
            default: Some("f16"),
            doc: "element type of the cache",
        },
        Field { name: "q", domain: DTYPES, default: Some("f32"), doc: "element type of q" },
        Field { name: "out", domain: DTYPES, default: Some("f32"), doc: "element type of out" },
        SCALE,
        Field {
            name: "lengths_in_memory",
            domain: Domain::FLAG,
            default: Some("false"),
            doc: "whether lengths are read from device memory, one for each sequence",
        },
        Field {
            name: "splits",
            domain: Domain::int(1, MAX_SPLITS),
            default: Some("1"),
            doc: "blocks that share a sequence",
        },
        Field {
            name: "tensor_cores",
            domain: Domain::FLAG,
            default: Some("true"),
            doc: "whether tensor cores may be used, for caches of f16 and bf16",
        },
        Field {
            name: "warps",
            domain: Domain::OneOf(&["1", "2", "4", "8"]),
            default: Some("4"),
            doc: "warps of a block",
        },
    ],
    examples: &[
        // Llama-3.2-1B, Qwen2.5-1.5B and Llama-3-8B.
        "head_dim=64 heads=32 kv_heads=8 max_seq_len=131072 lengths_in_memory=true splits=32",
        "head_dim=128 heads=12 kv_heads=2 max_seq_len=32768 cache=bf16 lengths_in_memory=true splits=128",
        "head_dim=128 heads=32 kv_heads=8 lengths_in_memory=true splits=32",
        "head_dim=128 heads=32 kv_heads=8 cache=q8_0 q=f16 out=f16 lengths_in_memory=true splits=32",
        "head_dim=128 heads=28 kv_heads=4 cache=bf16 q=bf16 out=bf16",
        "head_dim=64 heads=32 q=bf16 cache=bf16 out=bf16 warps=8",
        "head_dim=128 heads=28 kv_heads=4 tensor_cores=false",
        "head_dim=80 heads=32 kv_heads=32 cache=f32",
        "head_dim=112 heads=32 kv_heads=2 q=f16 out=f16",
        "head_dim=256 heads=16 kv_heads=1 warps=8",
    ],
    make: |config| {
        let number = |name| config.u32(name);
        let heads = [number("heads"), number("kv_heads"), number("head_dim")];
        let [heads, kv_heads, head_dim] = heads;
        let kernel = IncrementalAttention::new(heads, kv_heads, head_dim, number("max_seq_len"));
        boxed(IncrementalAttention {
            cache: CacheDtype::from_name(config.text("cache")).unwrap_or(CacheDtype::F16),
            q: config.dtype("q"),
            out: config.dtype("out"),
            scale: config.auto_f32("scale").unwrap_or(kernel.scale),
            lengths_in_memory: config.flag("lengths_in_memory"),
            splits: number("splits"),
            warps: number("warps"),
            tensor_cores: config.flag("tensor_cores"),
            ..kernel
        })
    },
};
