//! The decoder as the catalogue shows it: by what a model's step of decoding needs, from which its ops follow.
//!
//! Plans of the graph have the last word on which ops there are; these are those of a typical model, so that tools can
//! print, assemble and measure the kernel.

use super::{Assignment, Op, PersistentDecoder};
use crate::entry::{Config, Domain, Entry, Field, boxed};
use crate::weights::FORMAT;
use crate::{
    Activations, Advance, Argmax, CacheDtype, CopyBytes, Embedding, FusedNormGemv, IncrementalAttention,
    Matrix, Penalties, Publish, QuantGemv, RmsNorm, Rope, RopePairs, Sample, Setting, WeightFormat,
};
use std::sync::Arc;
use warpwright_dsl::{ArgDesc, BuildError, FieldValue, K, LaunchRule, any::AnyKernel};
use warpwright_ptx::ir::Arch;

/// Rows of the embedding: a size of the ops, of which any would do.
const VOCABULARY: u32 = 128_256;
const MAX_SEQ_LEN: u32 = 8192;
/// Where ops are told apart: each is built again for the target that is asked for.
const TARGET: Arch = Arch::sm(80);
const EPSILON: f32 = 1e-5;

/// A decoder, or why there is none for what the fields say.
struct Described(Result<PersistentDecoder, BuildError>);

impl Described {
    fn decoder(&self) -> PersistentDecoder {
        self.0.clone().unwrap_or_else(|_| PersistentDecoder::new(Vec::new()))
    }
}

impl AnyKernel for Described {
    fn entry(&self) -> String {
        self.decoder().entry()
    }

    fn args(&self) -> Vec<ArgDesc> {
        self.decoder().args()
    }

    fn launch(&self) -> LaunchRule {
        self.decoder().launch()
    }

    fn check(&self) -> Result<(), BuildError> {
        self.0.as_ref().map_err(Clone::clone)?.check()
    }

    fn body(&self, k: K<'_>) {
        self.decoder().body(k);
    }
}

/// Ops in the making.
struct Ops {
    ops: Vec<Op>,
    /// Threads of the decoder's blocks.
    threads: u32,
}

impl Ops {
    /// What is called in place of launching the kernel, where it is not there yet.
    fn add(&mut self, kernel: impl AnyKernel + Send + Sync + 'static) -> Result<(), BuildError> {
        kernel.check()?;
        let kernels = match kernel.called(self.threads) {
            None => vec![Arc::new(kernel) as Arc<dyn AnyKernel + Send + Sync>],
            Some(called) => called.into_iter().map(|called| called.kernel).collect(),
        };
        for kernel in kernels {
            let op = Op::new(kernel, TARGET)?;
            let weights: Vec<_> = op.args().iter().filter(|arg| arg.constant).map(|arg| arg.name).collect();
            let op = op.frozen(&weights)?;
            if !self.ops.contains(&op) {
                self.ops.push(op);
            }
        }
        Ok(())
    }
}

/// The decoder of a step: the embedding, layers, logits, a token.
fn decoder(config: &Config<'_>) -> Result<PersistentDecoder, BuildError> {
    let (heads, kv_heads, head_dim) = (config.u32("heads"), config.u32("kv_heads"), config.u32("head_dim"));
    let hidden = heads * head_dim;
    let warps = config.u32("warps");
    let mut ops = Ops { ops: Vec::new(), threads: 32 * warps };
    let formats: Vec<WeightFormat> = config.list("format").filter_map(WeightFormat::from_name).collect();

    ops.add(Embedding::new(config.format("embedding"), VOCABULARY, hidden))?;
    let int8 = config.text("activations") == "int8";
    if int8 {
        ops.add(RmsNorm { q8_1: true, output: None, ..RmsNorm::new(hidden, EPSILON) })?;
        if formats.iter().any(|&format| is_float(format)) {
            ops.add(RmsNorm { q8_1: true, ..RmsNorm::new(hidden, EPSILON) })?;
        }
    }
    for &format in &formats {
        let product = |n: u32, k: u32| QuantGemv::new(format, n, k);
        // Of normalised activations: of the layer, the logits; gate and up.
        let mut normed = |gemv: QuantGemv| match (int8, is_float(format)) {
            (true, false) => ops.add(QuantGemv { activations: Activations::Int8, ..gemv }),
            (true, true) => ops.add(gemv),
            (false, _) => ops.add(FusedNormGemv { gemv, epsilon: EPSILON }),
        };
        normed(product(hidden, hidden))?;
        if config.flag("bias") {
            let matrix = Matrix { bias: true, ..Matrix::new(format, hidden) };
            normed(QuantGemv { matrices: vec![matrix], ..product(hidden, hidden) })?;
        }
        let gate = Matrix::new(format, 4 * hidden);
        normed(QuantGemv { matrices: vec![gate; 2], swiglu: true, ..product(4 * hidden, hidden) })?;
        // Onto the residual stream: what attention and the feed-forward network give.
        let matrix = Matrix { residual: true, ..Matrix::new(format, hidden) };
        let activations = if int8 && !is_float(format) { Activations::Rounded } else { Activations::Exact };
        ops.add(QuantGemv { matrices: vec![matrix], activations, ..product(hidden, 4 * hidden) })?;
    }

    let cache = CacheDtype::from_name(config.text("cache")).unwrap_or(CacheDtype::F16);
    ops.add(Rope {
        pairs: match config.text("pairs") {
            "interleaved" => RopePairs::Interleaved,
            _ => RopePairs::Neox,
        },
        freq_factors: config.flag("freq_factors"),
        norm: config.flag("head_norm").then_some(EPSILON),
        cache,
        ..Rope::new(heads, kv_heads, head_dim, MAX_SEQ_LEN)
    })?;
    let attention = IncrementalAttention::new(heads, kv_heads, head_dim, MAX_SEQ_LEN);
    ops.add(IncrementalAttention {
        cache,
        lengths_in_memory: true,
        splits: config.u32("splits"),
        ..attention
    })?;

    if config.flag("penalties") {
        let (repeat, frequency, presence) = (Setting::Buffer, Setting::Buffer, Setting::Buffer);
        let penalties = Penalties::new(VOCABULARY, 64);
        ops.add(Penalties { repeat, frequency, presence, remembers: true, ..penalties })?;
    }
    match config.text("sampler") {
        "argmax" => ops.add(Argmax::new(VOCABULARY))?,
        _ => ops.add(Sample {
            temperature: Setting::Buffer,
            top_k: Setting::Buffer,
            top_p: Setting::Buffer,
            min_p: Setting::Buffer,
            ..Sample::new(VOCABULARY)
        })?,
    }
    ops.add(Advance::new(3))?;
    ops.add(CopyBytes::new(4))?;
    ops.add(Publish::new(1024, 2))?;

    let assignment = Assignment::ALL.into_iter().find(|kind| kind.to_string() == config.text("assignment"));
    Ok(PersistentDecoder { ops: ops.ops, warps, assignment: assignment.unwrap_or_default() })
}

/// Whether the format has no quants, for which activations are never bytes.
fn is_float(format: WeightFormat) -> bool {
    matches!(format, WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16)
}

pub(crate) const ENTRY: Entry = Entry {
    name: "persistent_decoder",
    doc: "the whole of many steps of decoding in one cooperative launch: a schedule in memory over these ops",
    fields: &[
        Field {
            name: "format",
            domain: Domain::List { of: &FORMAT.domain, most: 8 },
            default: Some("q4_k+q6_k"),
            doc: "how the weights of matrices are stored: any of these",
        },
        Field { name: "embedding", default: Some("q6_k"), doc: "how those of the embedding are", ..FORMAT },
        Field {
            name: "activations",
            domain: Domain::OneOf(&["exact", "int8"]),
            default: Some("exact"),
            doc: "f32, or where weights are quants bytes",
        },
        Field { name: "heads", domain: Domain::int(1, 256), default: Some("32"), doc: "heads of the query" },
        Field {
            name: "kv_heads",
            domain: Domain::int(1, 256),
            default: Some("8"),
            doc: "heads of the cache, which divide those of the query",
        },
        Field {
            name: "head_dim",
            domain: Domain::Int { from: 32, to: 256, multiple_of: 8 },
            default: Some("128"),
            doc: "elements of a head",
        },
        Field {
            name: "cache",
            domain: <CacheDtype as FieldValue>::DOMAIN,
            default: Some("f16"),
            doc: "element type of the cache",
        },
        Field {
            name: "pairs",
            domain: Domain::OneOf(&["neox", "interleaved"]),
            default: Some("interleaved"),
            doc: "which elements of a head turn together",
        },
        Field {
            name: "freq_factors",
            domain: Domain::FLAG,
            default: Some("false"),
            doc: "whether a buffer divides each pair's frequency",
        },
        Field {
            name: "head_norm",
            domain: Domain::FLAG,
            default: Some("false"),
            doc: "whether each head of q and k is normalised",
        },
        Field {
            name: "bias",
            domain: Domain::FLAG,
            default: Some("false"),
            doc: "whether q, k and v have a bias",
        },
        Field {
            name: "splits",
            domain: Domain::int(1, 256),
            default: Some("8"),
            doc: "parts of a sequence in attention",
        },
        Field {
            name: "penalties",
            domain: Domain::FLAG,
            default: Some("true"),
            doc: "whether tokens that came lately become less likely",
        },
        Field {
            name: "sampler",
            domain: Domain::OneOf(&["sample", "argmax"]),
            default: Some("sample"),
            doc: "how a token is chosen",
        },
        Field {
            name: "assignment",
            domain: Domain::OneOf(Assignment::NAMES),
            default: Some("static"),
            doc: "how items come to blocks: by a list for each, or by a queue",
        },
        Field {
            name: "warps",
            domain: Domain::OneOf(&["1", "2", "4", "8"]),
            default: Some("8"),
            doc: "warps of a block",
        },
    ],
    examples: &[
        "activations=int8 heads=12 kv_heads=2 pairs=neox bias=true",
        "format=q8_0 embedding=q8_0 heads=16 kv_heads=8 pairs=neox head_norm=true assignment=queue",
        "format=f16 embedding=f16 head_dim=64 freq_factors=true sampler=argmax penalties=false",
        "format=q4_0+q5_k+bf16 heads=32 kv_heads=32 head_dim=96 cache=q8_0 splits=1",
    ],
    make: |config| boxed(Described(decoder(config))),
};
