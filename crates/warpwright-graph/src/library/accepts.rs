//! Which fused steps the library has a kernel for.

use super::kernels::check;
use super::lowering::{Result, form};
use super::{gemm, products, rope, rows};
use crate::graph::Element;
use crate::options::{Arithmetic, Fusion, PlanOptions};
use crate::program::{Products, Program, StepOp};
use warpwright_kernels::WeightFormat;

/// Whether the library has a kernel for a step that a fusion would form, and prefers the fused step.
///
/// For up to eight tokens, a launch takes the products of the same activations with their norm, gate and residual; for
/// more tokens only the residual. With [`Arithmetic::Int8`] and [`Fusion::Quantize`], the norm quantises the
/// activations once for all blocks, so products do not take the norm. Products with float weights stay exact and do not
/// share a launch with quantised ones.
pub fn accepts(fusion: Fusion, step: &StepOp, program: &Program, options: &PlanOptions) -> bool {
    validate(fusion, step, program, options).is_ok()
}

fn validate(fusion: Fusion, step: &StepOp, program: &Program, options: &PlanOptions) -> Result<()> {
    match step {
        StepOp::Products(products) => validate_products(fusion, products, program, options),
        StepOp::Rope(step) => check(&rope::configure(program, step)?, options.arch()),
        StepOp::Norm(norm) => check(&rows::rms_norm(program.ty(norm.x), norm)?, options.arch()),
        StepOp::Quantize { x, .. } => check(&rows::quantizer(program.ty(*x))?, options.arch()),
        _ => form(format!("{fusion} forms no {}", step.name())),
    }
}

fn validate_products(
    fusion: Fusion,
    products: &Products,
    program: &Program,
    options: &PlanOptions,
) -> Result<()> {
    let tokens = super::lowering::rows(program.ty(products.x))?;
    let quantised = quantised(program, products);
    if !products::are_few(tokens.into(), options) {
        if products.matrices.len() != 1 || products.norm.is_some() || products.gate.is_some() {
            return form("of more than eight tokens, a launch makes one plain product");
        }
    } else if options.arithmetic == Arithmetic::Int8 {
        if quantised.is_none() {
            return form("products with quants and with floats are multiplied in different ways");
        }
        if fusion == Fusion::NormProduct
            && quantised == Some(true)
            && options.fusions.contains(Fusion::Quantize)
        {
            return form("the norm makes the quants of the activations");
        }
    }
    let gemv = products::gemv(program, products, tokens.min(products::TOKENS))?;
    check(&gemv, options.arch())
}

/// Whether all weights are quants; `None` where some are and some are not.
pub(super) fn quantised(program: &Program, products: &Products) -> Option<bool> {
    let mut formats = formats(program, products).map(|format| !format.is_float());
    let first = formats.next()?;
    formats.all(|other| other == first).then_some(first)
}

/// Formats of the matrices.
pub(super) fn formats<'a>(
    program: &'a Program,
    products: &'a Products,
) -> impl Iterator<Item = WeightFormat> + 'a {
    products.matrices.iter().filter_map(|matrix| match program.ty(matrix.weight).element {
        Element::Weights(format) => Some(format),
        _ => None,
    })
}

/// Whether a product of many tokens can be on the tensor cores.
pub(super) fn on_tensor_cores(program: &Program, products: &Products, options: &PlanOptions) -> bool {
    let plain = products.matrices.len() == 1 && products.norm.is_none() && products.gate.is_none();
    plain && formats(program, products).all(|format| gemm::half(format, options).is_some())
}
