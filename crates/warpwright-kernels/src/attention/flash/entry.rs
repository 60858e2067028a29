//! How the catalogue shows [`FlashAttention`].

use super::{FlashAttention, KvLayout, Lengths};
use crate::attention::SCALE;
use crate::entry::{DTYPES, Domain, Entry, Field, boxed};

pub(crate) const ENTRY: Entry = Entry {
    name: "flash_attention",
    doc: "out = softmax(scale * q k^T) v for many queries, on the tensor cores",
    fields: &[
        Field {
            name: "head_dim",
            domain: Domain::Int { from: 16, to: 256, multiple_of: 16 },
            default: Some("128"),
            doc: "elements of a head",
        },
        Field {
            name: "heads",
            domain: Domain::int(1, 1024),
            default: Some("32"),
            doc: "heads of the queries: a multiple of kv_heads",
        },
        Field {
            name: "kv_heads",
            domain: Domain::int(1, 1024),
            default: Some("8"),
            doc: "heads of the keys and values",
        },
        Field {
            name: "q",
            domain: DTYPES,
            default: Some("f16"),
            doc: "element type of q: f32, or the factors'",
        },
        Field {
            name: "kv",
            domain: DTYPES,
            default: Some("f16"),
            doc: "element type of k and v: f32, or the factors'",
        },
        Field { name: "out", domain: DTYPES, default: Some("f16"), doc: "element type of out" },
        Field {
            name: "factors",
            domain: Domain::OneOf(&["f16", "bf16"]),
            default: Some("f16"),
            doc: "what the tensor cores multiply: bf16, of any magnitude, from sm_80 on",
        },
        Field {
            name: "causal",
            domain: Domain::FLAG,
            default: Some("true"),
            doc: "whether a query sees only the keys up to its own token",
        },
        SCALE,
        Field {
            name: "kv_layout",
            domain: Domain::OneOf(&["cache", "tokens"]),
            default: Some("cache"),
            doc: "k and v: [batch][kv_heads][max_seq_len][head_dim] or [tokens][kv_heads][head_dim]",
        },
        Field {
            name: "max_seq_len",
            domain: Domain::int(1, 1 << 20),
            default: Some("4096"),
            doc: "tokens that a cache has room for",
        },
        Field {
            name: "lengths",
            domain: Domain::OneOf(&["scalars", "buffers"]),
            default: Some("scalars"),
            doc: "lengths as scalars, or for each sequence from device memory",
        },
        Field {
            name: "lse",
            domain: Domain::FLAG,
            default: Some("false"),
            doc: "whether the log-sum-exp of every query is stored too",
        },
    ],
    examples: &[
        "head_dim=64 heads=32 kv_heads=8",
        "heads=12 kv_heads=2 q=bf16 kv=bf16 out=bf16 factors=bf16",
        "head_dim=80 heads=32 kv_heads=32 causal=false",
        "head_dim=96 heads=32 kv_heads=32 kv_layout=tokens",
        "head_dim=192 heads=16 kv_heads=16 lengths=buffers",
        "head_dim=256 heads=8 kv_heads=1",
        "q=f32 out=f32",
        "q=f32 kv=f32 out=f32 factors=bf16",
        "q=f32 kv=f32 out=f32 head_dim=64 heads=14 kv_heads=2",
        "lengths=buffers kv_layout=tokens lse=true",
        "q=f32 kv=f32 out=f32 factors=bf16 head_dim=256 heads=8 kv_heads=8 lengths=buffers",
    ],
    make: |config| {
        let new = FlashAttention::new(
            config.u32("heads"),
            config.u32("kv_heads"),
            config.u32("head_dim"),
            config.u32("max_seq_len"),
        );
        boxed(FlashAttention {
            q: config.dtype("q"),
            kv: config.dtype("kv"),
            out: config.dtype("out"),
            factors: config.dtype("factors"),
            causal: config.flag("causal"),
            scale: config.auto_f32("scale").unwrap_or(new.scale),
            kv_layout: if config.text("kv_layout") == "tokens" { KvLayout::Tokens } else { new.kv_layout },
            lengths: if config.text("lengths") == "buffers" { Lengths::Buffers } else { new.lengths },
            lse: config.flag("lse"),
            ..new
        })
    },
};
