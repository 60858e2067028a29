//! The products as the catalogue shows them.

use super::kernel::{
    Activations, FusedNormGemv, MAX_BATCH, MAX_COLUMNS, MAX_MATRICES, MAX_ROWS, Matrix, QuantGemv,
};
use super::plan::MAX_WARPS;
use crate::entry::{Config, Domain, Entry, Field, boxed};
use crate::weights::{FORMAT, WeightFormat};

const ROWS: Domain = Domain::int(1, MAX_ROWS);
const MOST: u32 = MAX_MATRICES as u32;

const K: Field = Field {
    name: "k",
    domain: Domain::int(1, MAX_COLUMNS),
    default: Some("4096"),
    doc: "columns of the matrices: a multiple of each format's block",
};
const N: Field = Field {
    name: "n",
    domain: Domain::List { of: &ROWS, most: MOST },
    default: Some("4096"),
    doc: "rows of each matrix",
};
const FORMATS: Field = Field {
    name: "format",
    domain: Domain::List { of: &FORMAT.domain, most: MOST },
    default: Some("q4_k"),
    doc: "how the weights of each matrix are stored; the last is that of the matrices that are not named",
};
const BIAS: Field = Field {
    name: "bias",
    domain: Domain::FLAG,
    default: Some("false"),
    doc: "whether a bias is added to the rows of each matrix",
};
const RESIDUAL: Field = Field {
    name: "residual",
    domain: Domain::FLAG,
    default: Some("false"),
    doc: "whether a vector is added to each result",
};
const SWIGLU: Field = Field {
    name: "swiglu",
    domain: Domain::FLAG,
    default: Some("false"),
    doc: "whether two matrices of one shape make silu(w0 * x) * (w1 * x)",
};
const BATCH: Field = Field {
    name: "batch",
    domain: Domain::int(1, MAX_BATCH),
    default: Some("1"),
    doc: "columns of activations",
};
const WARPS: Field = Field {
    name: "warps",
    domain: Domain::int(0, MAX_WARPS),
    default: Some("0"),
    doc: "warps of a block; 0 for a number that suits the shape",
};

fn product(config: &Config<'_>) -> QuantGemv {
    let formats: Vec<WeightFormat> = config.list("format").filter_map(WeightFormat::from_name).collect();
    let swiglu = config.flag("swiglu");
    let matrix = |(i, n): (usize, &str)| Matrix {
        format: formats.get(i).or(formats.last()).copied().unwrap_or(WeightFormat::F32),
        n: n.parse().unwrap_or_default(),
        bias: config.flag("bias"),
        residual: config.flag("residual") && !(swiglu && i > 0),
    };
    let warps = config.u32("warps");
    let activations = Activations::ALL.into_iter().find(|kind| kind.name() == config.text("activations"));
    QuantGemv {
        k: config.u32("k"),
        matrices: config.list("n").enumerate().map(matrix).collect(),
        swiglu,
        batch: config.u32("batch"),
        activations: activations.unwrap_or(Activations::Exact),
        warps: (warps > 0).then_some(warps),
    }
}

pub(crate) const QUANT_GEMV: Entry = Entry {
    name: "quant_gemv",
    doc: "y = w * x + bias + residual for quantised matrices and up to eight columns, or silu(w0 * x) * (w1 * x)",
    fields: &[
        K,
        N,
        FORMATS,
        BIAS,
        RESIDUAL,
        SWIGLU,
        BATCH,
        Field {
            name: "activations",
            domain: Domain::OneOf(Activations::NAMES),
            default: Some("exact"),
            doc: "f32, or for products of bytes q8_1, or f32 that is quantised on the way",
        },
        WARPS,
    ],
    examples: &[
        "n=4096 k=14336",
        "n=14336 k=4096",
        "n=4096 k=14336 activations=int8",
        "n=14336 k=4096 activations=int8",
        "n=4096 k=14336 format=q6_k residual=true",
        "n=4096 k=14336 format=q6_k activations=int8",
        "n=4096 k=4096 format=q5_k",
        "n=4096 k=4096 format=q5_k activations=int8",
        "n=4096 k=4096 format=q8_0",
        "n=4096 k=4096 format=q8_0 activations=int8",
        "n=4096 k=4096 format=q4_0",
        "n=4096 k=4096 format=q4_0 activations=int8",
        "n=4096 k=4096 format=f32",
        "n=4096 k=4096 format=f16",
        "n=4096 k=4096 format=bf16",
        "n=128256 k=2048 format=q6_k",
        "n=8192+8192 k=2048 swiglu=true",
        "n=8192+8192 k=2048 swiglu=true activations=int8",
        "n=1536+256+256 k=1536 format=q4_k+q4_k+q6_k bias=true",
        "n=4096 k=4096 batch=2",
        "n=4096 k=4096 batch=4",
        "n=4096 k=4096 batch=8",
        "n=4096 k=4096 batch=8 activations=int8",
        "n=4096 k=4096 batch=8 format=q6_k",
        "n=4096 k=4096 batch=8 format=f16",
        "n=4096 k=14336 activations=rounded",
        "n=8192 k=28672",
        "n=3584 k=18944 format=q6_k",
        "n=1 k=256",
        "n=17 k=1056 format=q8_0 batch=3",
        "n=33 k=77 format=bf16 batch=5",
    ],
    make: |config| boxed(product(config)),
};

pub(crate) const FUSED_NORM_GEMV: Entry = Entry {
    name: "fused_norm_gemv",
    doc: "quant_gemv of x * rsqrt(mean(x^2) + epsilon) * norm",
    fields: &[
        K,
        N,
        FORMATS,
        Field {
            name: "epsilon",
            domain: Domain::Float { from: 0.0, to: 1.0 },
            default: Some("1e-5"),
            doc: "added to the mean square",
        },
        BIAS,
        RESIDUAL,
        SWIGLU,
        BATCH,
        Field {
            name: "activations",
            domain: Domain::OneOf(&["exact", "rounded"]),
            default: Some("exact"),
            doc: "f32, or for products of bytes f32 that is quantised on the way",
        },
        WARPS,
    ],
    examples: &[
        "n=2048+512+512 k=2048 format=q4_k+q4_k+q6_k",
        "n=1536+256+256 k=1536 epsilon=1e-6 bias=true format=q4_k+q4_k+q6_k",
        "n=14336+14336 k=4096 swiglu=true",
        "n=14336+14336 k=4096 swiglu=true activations=rounded",
        "n=4096 k=4096 format=q8_0 batch=2",
        "n=4096 k=4096 format=f16",
    ],
    make: |config| boxed(FusedNormGemv { gemv: product(config), epsilon: config.f32("epsilon") }),
};
