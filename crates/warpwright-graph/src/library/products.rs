//! Products of few tokens: one launch reads each weight once for up to eight of them.

use super::gemm;
use super::lowering::{LaunchArg, Lowering, Result, form};
use crate::graph::{Element, Tensor};
use crate::launch::Unsupported;
use crate::options::PlanOptions;
use crate::program::{Matrix, Products, Program};
use warpwright_kernels::tune::GemvShape;
use warpwright_kernels::{self as kernels, Activations, QuantGemv, QuantGemvArgs};

/// Tokens that a launch has room for.
pub(super) const TOKENS: u32 = 8;

/// Whether products of so many tokens are one launch of [`QuantGemv`]. With
/// [`batch_invariant`](warpwright_kernels::tune::Tuning::batch_invariant) none are: the tensor cores multiply all of them,
/// in one order of sums.
pub(super) fn are_few(tokens: u64, options: &PlanOptions) -> bool {
    tokens <= u64::from(TOKENS) && !options.tuning.batch_invariant
}

/// Maximum number of tokens of a step: more would need too many launches.
const MAX_TOKENS: u32 = 1 << 16;

/// The kernel for this many tokens.
pub(super) fn gemv(program: &Program, products: &Products, batch: u32) -> Result<QuantGemv> {
    let x = program.ty(products.x);
    let matrix = |matrix: &Matrix| {
        let ty = program.ty(matrix.weight);
        let Element::Weights(format) = ty.element else {
            return form(format!("`{}` is {ty}: no weight matrix", program.info(matrix.weight).name));
        };
        Ok(kernels::Matrix {
            bias: matrix.bias.is_some(),
            residual: matrix.residual.is_some(),
            ..kernels::Matrix::new(format, super::lowering::rows(ty)?)
        })
    };
    let activations = match x.element {
        Element::Int8 => Activations::Int8,
        _ => products.activations.unwrap_or(Activations::Exact),
    };
    Ok(QuantGemv {
        k: x.shape.columns(),
        matrices: products.matrices.iter().map(matrix).collect::<Result<_>>()?,
        gate: products.gate,
        batch,
        epsilon: products.norm.map(|norm| norm.epsilon),
        activations,
        warps: None,
        rows: None,
    })
}

/// Launches for any number of tokens.
pub(super) fn lower(lowering: &mut Lowering<'_>, products: &Products) -> Result<()> {
    if let Element::Scaled { .. } = lowering.ty(products.x).element {
        return gemm::lower(lowering, products);
    }
    let tokens = lowering.rows(products.x)?;
    if tokens > MAX_TOKENS {
        return Err(Box::new(Unsupported::Limit {
            what: "the number of tokens of products that tensor cores do not do".into(),
            value: tokens.into(),
            max: MAX_TOKENS.into(),
        }));
    }
    for first in (0..tokens).step_by(TOKENS as usize) {
        group(lowering, products, first, (tokens - first).min(TOKENS))?;
    }
    Ok(())
}

/// The launch for some of the tokens.
fn group(lowering: &mut Lowering<'_>, products: &Products, first: u32, batch: u32) -> Result<()> {
    let gemv = gemv(lowering.program, products, batch)?;
    let shape = GemvShape::of(&gemv, lowering.options.tuning.batch(batch));
    let gemv = lowering.choose(&shape).apply(gemv);
    let first = u64::from(first);
    let k = u64::from(gemv.k);
    let part = |tensor, plane, row: u64| LaunchArg::part(tensor, plane, first * row);
    let matrices = || products.matrices.iter().zip(&gemv.matrices);
    let of_rows = |tensor: Option<Tensor>, n: u32| tensor.map(|tensor| part(tensor, 0, n.into()));
    let w = matrices().map(|(matrix, _)| LaunchArg::planes(matrix.weight)).collect();
    let bias = matrices().map(|(matrix, _)| matrix.bias.map(LaunchArg::from)).collect();
    let residual = matrices().map(|(matrix, kernel)| of_rows(matrix.residual, kernel.n)).collect();
    let y = matrices().map(|(matrix, kernel)| of_rows(matrix.out, kernel.n)).collect();
    let floats = (gemv.activations != Activations::Int8).then(|| part(products.x, 0, k));
    let int8 = |plane, of| floats.is_none().then(|| part(products.x, plane, k / of));
    let (x_quants, x_scales) = (int8(0, 1), int8(1, 32));
    let norm = products.norm.map(|norm| norm.weight.into());
    let args = QuantGemvArgs { x: floats, x_quants, x_scales, norm, w, bias, residual, y };
    lowering.launch_with(gemv, args)
}
