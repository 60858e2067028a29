//! Products of few tokens: one launch reads each weight once for up to eight of them.

use super::gemm;
use super::lowering::{Given, Lowering, Result, form};
use crate::graph::Element;
use crate::launch::Unsupported;
use crate::program::{Matrix, Products, Program};
use warpwright_kernels::{self as kernels, Activations, FusedNormGemv, QuantGemv};

/// Tokens that a launch has room for.
pub(super) const TOKENS: u32 = 8;

/// Tokens that so many launches serve as a plan may have for one step.
const MOST_TOKENS: u32 = 1 << 16;

const WEIGHTS: [&str; 4] = ["w0", "w1", "w2", "w3"];
const BIASES: [&str; 4] = ["bias0", "bias1", "bias2", "bias3"];
const RESIDUALS: [&str; 4] = ["residual0", "residual1", "residual2", "residual3"];
const RESULTS: [&str; 4] = ["y0", "y1", "y2", "y3"];

/// The kernel for so many tokens.
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
        Element::Q8_1 => Activations::Int8,
        _ => products.activations.unwrap_or(Activations::Exact),
    };
    Ok(QuantGemv {
        k: x.shape.columns(),
        matrices: products.matrices.iter().map(matrix).collect::<Result<_>>()?,
        swiglu: products.swiglu,
        batch,
        activations,
        warps: None,
    })
}

/// The same kernel, with the norm that its activations go through.
pub(super) fn normed(gemv: QuantGemv, products: &Products) -> Option<FusedNormGemv> {
    products.norm.map(|norm| FusedNormGemv { gemv, epsilon: norm.epsilon })
}

/// Launches for any number of tokens.
pub(super) fn lower(lowering: &mut Lowering<'_>, products: &Products) -> Result<()> {
    if let Element::Scaled { .. } = lowering.ty(products.x).element {
        return gemm::lower(lowering, products);
    }
    let tokens = lowering.rows(products.x)?;
    if tokens > MOST_TOKENS {
        return Err(Box::new(Unsupported::Limit {
            what: "the number of tokens of products that tensor cores do not do".into(),
            value: tokens.into(),
            most: MOST_TOKENS.into(),
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
    let first = u64::from(first);
    let k = u64::from(gemv.k);
    let part = |tensor, plane, row: u64| Given::part(tensor, plane, first * row);
    let mut given = match gemv.activations {
        Activations::Int8 => vec![
            ("x_quants", part(products.x, 0, k)),
            ("x_scales", part(products.x, 1, k / 32)),
            ("x_sums", part(products.x, 2, k / 32)),
        ],
        Activations::Exact | Activations::Rounded => vec![("x", part(products.x, 0, k))],
    };
    given.extend(products.norm.map(|norm| ("norm", norm.weight.into())));
    for (i, (matrix, kernel)) in products.matrices.iter().zip(&gemv.matrices).take(4).enumerate() {
        let n = u64::from(kernel.n);
        given.push((WEIGHTS[i], Given::planes(matrix.weight)));
        given.extend(matrix.bias.map(|bias| (BIASES[i], bias.into())));
        given.extend(matrix.residual.map(|residual| (RESIDUALS[i], part(residual, 0, n))));
        given.extend(matrix.out.map(|out| (RESULTS[i], part(out, 0, n))));
    }
    match normed(gemv.clone(), products) {
        Some(fused) => lowering.launch(fused, &[], &given),
        None => lowering.launch(gemv, &[], &given),
    }
}
