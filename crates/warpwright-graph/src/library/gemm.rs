//! Products of many tokens on the tensor cores.

use super::lowering::{LaunchArg, Lowering, Result, form};
use crate::graph::{Element, Tensor};
use crate::options::PlanOptions;
use crate::program::Products;
use warpwright_kernels::tune::{GemmChoice, GemmShape};
use warpwright_kernels::{
    Dtype, Gemm, GemmArgs, QuantGemm, QuantGemmArgs, ScaleRows, ScaleRowsArgs, WeightFormat,
};

/// The halves that activations become for a format, if there is a kernel for its weights.
pub(super) fn half(format: WeightFormat, options: &PlanOptions) -> Option<Dtype> {
    match format.half() {
        Dtype::F32 => None,
        Dtype::Bf16 => (options.arch().sm >= 80).then_some(Dtype::Bf16),
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
    let args = ScaleRowsArgs { x: x.into(), halves: out.into(), scales: LaunchArg::part(out, 1, 0), tokens };
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
    let (x, w, scales) =
        (products.x.into(), LaunchArg::planes(matrix.weight), LaunchArg::part(products.x, 1, 0));
    let (bias, residual, y) =
        (matrix.bias.map(LaunchArg::from), matrix.residual.map(LaunchArg::from), out.into());
    let shape = GemmShape { format, n, k, terms, tokens };
    let GemmChoice { rows, columns } = lowering.choose(&shape);
    let (with_bias, with_residual, tokens) = (bias.is_some(), residual.is_some(), LaunchArg::u32(tokens));
    if format.is_float() {
        let gemm =
            Gemm { terms, rows, columns, bias: with_bias, residual: with_residual, ..Gemm::new(half, n, k) };
        return lowering
            .launch_with(gemm, GemmArgs { x, w, scales: Some(scales), bias, residual, y, tokens });
    }
    let gemm = QuantGemm {
        terms,
        rows,
        columns,
        bias: with_bias,
        residual: with_residual,
        ..QuantGemm::new(format, n, k)
    };
    lowering.launch_with(gemm, QuantGemmArgs { x, w, scales, bias, residual, y, tokens })
}
