//! Products of many tokens on the tensor cores.

use super::kernels::check;
use super::lowering::{Given, Lowering, Result, form};
use crate::graph::{Element, Tensor};
use crate::plan::PlanOptions;
use crate::program::Products;
use warpwright_kernels::{Dtype, Gemm, GemmInput, QuantGemm, ScaleRows, WeightFormat};
use warpwright_ptx::dsl::Kernel;

/// The halves that activations become for a format, if there is a kernel for its weights.
pub(super) fn half(format: WeightFormat, options: &PlanOptions) -> Option<Dtype> {
    match format {
        WeightFormat::F32 => None,
        WeightFormat::Bf16 => (options.arch.sm >= 80).then_some(Dtype::Bf16),
        _ => Some(Dtype::F16),
    }
}

/// Activations as halves with a scale for each row.
pub(super) fn scale(lowering: &mut Lowering<'_>, x: Tensor, out: Tensor) -> Result<()> {
    let (from, to) = (lowering.ty(x), lowering.ty(out));
    let (Element::Float(dtype), Element::Scaled { half, terms }) = (from.element, to.element) else {
        return form(format!("{from} cannot be scaled to {to}"));
    };
    let kernel = ScaleRows { d: from.shape.columns(), dtype, half, terms };
    let tokens = lowering.rows(x)?.into();
    let given = [("x", x.into()), ("halves", out.into()), ("scales", Given::part(out, 1, 0))];
    lowering.launch(kernel, &[("tokens", tokens)], &given)
}

/// A product of activations that are scaled halves.
pub(super) fn lower(lowering: &mut Lowering<'_>, products: &Products) -> Result<()> {
    let [matrix] = products.matrices[..] else {
        return form("products of scaled halves have one matrix for each launch");
    };
    if products.norm.is_some() || products.swiglu {
        return form("products of scaled halves have neither a norm nor a SwiGLU");
    }
    let (x, w) = (lowering.ty(products.x), lowering.ty(matrix.weight));
    let (Element::Scaled { half, terms }, Element::Weights(format)) = (x.element, w.element) else {
        return form(format!("there is no product of {x} with {w}"));
    };
    let tokens = lowering.rows(products.x)?;
    let (n, k) = (super::lowering::rows(w)?, x.shape.columns());
    let mut given = vec![
        ("x", products.x.into()),
        ("w", Given::planes(matrix.weight)),
        ("scales", Given::part(products.x, 1, 0)),
    ];
    given.extend(matrix.bias.map(|bias| ("bias", bias.into())));
    given.extend(matrix.residual.map(|residual| ("residual", residual.into())));
    given.extend(matrix.out.map(|out| ("y", out.into())));
    given.push(("tokens", Given::u32(tokens)));
    let (bias, residual) = (matrix.bias.is_some(), matrix.residual.is_some());
    let options = lowering.options;
    if format.is_float() {
        let gemm = |[rows, columns]: [u32; 2]| Gemm {
            input: GemmInput::Scaled { terms },
            rows,
            columns,
            bias,
            residual,
            ..Gemm::new(half, n, k)
        };
        let tile = tile(options, tokens, n, terms, false, |tile| Box::new(gemm(tile)));
        return lowering.launch(gemm(tile), &[], &given);
    }
    let gemm = |[rows, columns]: [u32; 2]| QuantGemm {
        terms,
        rows,
        columns,
        bias,
        residual,
        ..QuantGemm::new(format, n, k)
    };
    let tile = tile(options, tokens, n, terms, true, |tile| Box::new(gemm(tile)));
    lowering.launch(gemm(tile), &[], &given)
}

/// Blocks of a product that a multiprocessor runs at a time.
const RESIDENT: u64 = 2;
/// What a block costs to begin and to end, in products of a step of `k` of its tile.
const OVERHEAD: u64 = 16;

/// Rows and columns of the tile that is done first, by what blocks do: each multiplies a tile, and decodes as many
/// weights as it has columns, which is shared by all its rows. So few tokens want few rows, many want many, and
/// columns are halved where there would be too few blocks for the device.
fn tile(
    options: &PlanOptions,
    tokens: u32,
    n: u32,
    terms: u32,
    quantised: bool,
    kernel: impl Fn([u32; 2]) -> Box<dyn Kernel>,
) -> [u32; 2] {
    // Of weights for each product of 16 tokens: those that are quants are decoded, all are brought to shared memory.
    let weights = if quantised { 24 } else { 8 };
    let cost = |&[rows, columns]: &[u32; 2]| {
        let blocks = u64::from(tokens.div_ceil(rows)) * u64::from(n.div_ceil(columns));
        let waves = blocks.div_ceil(u64::from(options.multiprocessors.max(1)) * RESIDENT);
        let step = u64::from(columns) * u64::from(rows * terms + weights);
        waves * (step + OVERHEAD * u64::from(rows))
    };
    let sizes = [16, 32, 64, 128].into_iter().flat_map(|rows| [[rows, 128], [rows, 64]]);
    let possible = sizes.filter(|&tile| check(&*kernel(tile), options.arch).is_ok());
    possible.min_by_key(cost).unwrap_or([128, 128])
}
