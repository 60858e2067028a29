//! The product as the catalogue shows it.

use super::kernel::{Activations, MAX_BATCH, MAX_COLUMNS, MAX_MATRICES, MAX_ROWS, Matrix, QuantGemv};
use super::plan::MAX_WARPS;
use crate::activation::Activation;
use crate::weights::WeightFormat;
use warpwright_dsl::{BuildError, Config};

/// [`QuantGemv`] as the catalogue has it.
#[derive(Config)]
#[config(
    name = "quant_gemv",
    doc = "y = w * x + bias + residual for quantised matrices and up to eight columns, or act(w0 * x) * (w1 * x)",
    examples(
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
        "n=896 k=896 format=q5_0",
        "n=4096 k=4096 format=f32",
        "n=4096 k=4096 format=f16",
        "n=4096 k=4096 format=bf16",
        "n=128256 k=2048 format=q6_k",
        "n=8192+8192 k=2048 gate=silu",
        "n=8192+8192 k=2048 gate=silu activations=int8",
        "n=10240+10240 k=2560 gate=gelu_tanh",
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
        "n=2048+512+512 k=2048 format=q4_k+q4_k+q6_k epsilon=1e-5",
        "n=1536+256+256 k=1536 epsilon=1e-6 bias=true format=q4_k+q4_k+q6_k",
        "n=14336+14336 k=4096 gate=silu epsilon=1e-5",
        "n=14336+14336 k=4096 gate=silu activations=rounded epsilon=1e-5",
        "n=4096 k=4096 format=q8_0 batch=2 epsilon=1e-5",
        "n=4096 k=4096 format=f16 epsilon=1e-5"
    )
)]
pub(crate) struct QuantGemvFields {
    /// Columns of the matrices: a multiple of each format's block.
    #[field(range = 1..=MAX_COLUMNS, default = 4096)]
    k: u32,
    /// Rows of each matrix.
    #[field(range = 1..=MAX_ROWS, most = MAX_MATRICES as u32, default = 4096)]
    n: Vec<u32>,
    /// How the weights of each matrix are stored; the last is that of the matrices that are not named.
    #[field(most = MAX_MATRICES as u32, default = "q4_k")]
    format: Vec<WeightFormat>,
    /// Whether a bias is added to the rows of each matrix.
    #[field(default = false)]
    bias: bool,
    /// Whether a vector is added to each result.
    #[field(default = false)]
    residual: bool,
    /// The activation of the first of two matrices of one shape, which make act(w0 * x) * (w1 * x).
    #[field(default = "none")]
    gate: Option<Activation>,
    /// Columns of activations.
    #[field(range = 1..=MAX_BATCH, default = 1)]
    batch: u32,
    /// Added to the mean square, where activations are normalised first.
    #[field(none = "none", range = 0.0..=1.0, default = "none")]
    epsilon: Option<f32>,
    /// f32, or for products of bytes int8, or f32 that is quantised on the way.
    #[field(default = "exact")]
    activations: Activations,
    /// Warps of a block; 0 for a number that suits the shape.
    #[field(range = 0..=MAX_WARPS, default = 0)]
    warps: u32,
}

impl TryFrom<QuantGemvFields> for QuantGemv {
    type Error = BuildError;

    fn try_from(fields: QuantGemvFields) -> Result<Self, BuildError> {
        let QuantGemvFields { k, n, format, bias, residual, gate, batch, epsilon, activations, warps } =
            fields;
        if format.len() > n.len() {
            let rule = format!("one for each matrix at most, of which `n` has {}", n.len());
            return Err(BuildError::field("format", format.len(), rule));
        }
        let format = |i| format.get(i).or(format.last()).copied().unwrap_or(WeightFormat::F32);
        let matrix = |(i, n): (usize, u32)| Matrix {
            format: format(i),
            n,
            bias,
            residual: residual && !(gate.is_some() && i > 0),
        };
        Ok(QuantGemv {
            k,
            matrices: n.into_iter().enumerate().map(matrix).collect(),
            gate,
            batch,
            epsilon,
            activations,
            warps: (warps > 0).then_some(warps),
        })
    }
}
