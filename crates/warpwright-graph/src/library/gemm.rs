//! Products of many tokens on the tensor cores.

use super::kernels::check;
use super::lowering::{Given, Lowering, Result, form};
use crate::graph::{Element, Tensor};
use crate::options::PlanOptions;
use crate::program::Products;
use warpwright_dsl::any::AnyKernel;
use warpwright_kernels::{
    Dtype, Gemm, GemmArgs, QuantGemm, QuantGemmArgs, ScaleRows, ScaleRowsArgs, WeightFormat,
};

/// The halves that activations become for a format, if there is a kernel for its weights.
pub(super) fn half(format: WeightFormat, options: &PlanOptions) -> Option<Dtype> {
    match format.half() {
        Dtype::F32 => None,
        Dtype::Bf16 => (options.arch.sm >= 80).then_some(Dtype::Bf16),
        Dtype::F16 => Some(Dtype::F16),
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
    let args = ScaleRowsArgs { x: x.into(), halves: out.into(), scales: Given::part(out, 1, 0), tokens };
    lowering.launch_with(kernel, args)
}

/// A product of activations that are scaled halves.
pub(super) fn lower(lowering: &mut Lowering<'_>, products: &Products) -> Result<()> {
    let [matrix] = products.matrices[..] else {
        return form("products of scaled halves have one matrix for each launch");
    };
    if products.norm.is_some() || products.gate.is_some() {
        return form("products of scaled halves have neither a norm nor a gate");
    }
    let (x, w) = (lowering.ty(products.x), lowering.ty(matrix.weight));
    let (Element::Scaled { half, terms }, Element::Weights(format)) = (x.element, w.element) else {
        return form(format!("there is no product of {x} with {w}"));
    };
    let tokens = lowering.rows(products.x)?;
    let (n, k) = (super::lowering::rows(w)?, x.shape.columns());
    let Some(out) = matrix.out else { return form("a product without a result") };
    let (x, w, scales) = (products.x.into(), Given::planes(matrix.weight), Given::part(products.x, 1, 0));
    let (bias, residual, y) = (matrix.bias.map(Given::from), matrix.residual.map(Given::from), out.into());
    let options = lowering.options;
    if format.is_float() {
        let gemm = |[rows, columns]: [u32; 2]| Gemm {
            terms,
            rows,
            columns,
            bias: bias.is_some(),
            residual: residual.is_some(),
            ..Gemm::new(half, n, k)
        };
        let tile = tile(options, tokens, n, terms, false, |tile| Box::new(gemm(tile)));
        let args = GemmArgs { x, w, scales: Some(scales), bias, residual, y, tokens: Given::u32(tokens) };
        return lowering.launch_with(gemm(tile), args);
    }
    let gemm = |[rows, columns]: [u32; 2]| QuantGemm {
        terms,
        rows,
        columns,
        bias: bias.is_some(),
        residual: residual.is_some(),
        ..QuantGemm::new(format, n, k)
    };
    let tile = tile(options, tokens, n, terms, true, |tile| Box::new(gemm(tile)));
    let args = QuantGemmArgs { x, w, scales, bias, residual, y, tokens: Given::u32(tokens) };
    lowering.launch_with(gemm(tile), args)
}

/// Blocks of a product that a multiprocessor runs at a time.
const RESIDENT: u64 = 2;
/// Columns of weights that are multiplied at a time.
const DEPTH: u64 = 16;
/// Cycles of an `mma` of 16 × 8 × 16, of an `ldmatrix` of 16 × 16 for each of four warps, and of what a block waits
/// for itself, for each 16 columns of weights.
const MULTIPLY: u64 = 8;
const LOAD: u64 = 16;
const WAIT: u64 = 32;

/// Rows and columns of the tile that is done first.
///
/// An estimate of cycles for each 16 columns of weights: tensor cores and shared memory work at the same time, weights
/// that are quants are decoded by all threads besides, and a device runs so many blocks at a time. So few tokens
/// have few rows, many have tiles that decode each weight for all the more of them, and tiles are small where there
/// would be too few of them for the device.
fn tile(
    options: &PlanOptions,
    tokens: u32,
    n: u32,
    terms: u32,
    quantised: bool,
    kernel: impl Fn([u32; 2]) -> Box<dyn AnyKernel>,
) -> [u32; 2] {
    let multiprocessors = u64::from(options.multiprocessors.max(1));
    let cost = |&[rows, columns]: &[u32; 2]| {
        let blocks = u64::from(tokens.div_ceil(rows)) * u64::from(n.div_ceil(columns));
        let across = if rows >= 128 { 2 } else { 4 };
        let (terms, columns) = (u64::from(terms), u64::from(columns));
        // What a warp multiplies, in units of 16 and 8.
        let (down, wide) = (u64::from(rows.min(64)) / 16, columns / across / 8);
        let multiply = MULTIPLY * down * wide * terms;
        let load = LOAD * (down * terms + wide / 2);
        let decode = if quantised { columns * DEPTH / if rows == 256 { 128 } else { 64 } } else { 0 };
        // A block of 256 rows is two blocks' worth of warps.
        let slots = multiprocessors * if rows == 256 { RESIDENT / 2 } else { RESIDENT };
        blocks.div_ceil(slots) * (multiply.max(load) + decode + WAIT)
    };
    let sizes = [256, 128, 64, 32, 16].into_iter().flat_map(|rows| [[rows, 128], [rows, 64]]);
    let possible = sizes.filter(|&tile| check(&*kernel(tile), options.arch).is_ok());
    possible.min_by_key(cost).unwrap_or([128, 128])
}
