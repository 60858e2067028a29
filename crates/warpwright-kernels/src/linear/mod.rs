//! Products with weight matrices: `y = x · Wᵀ`.

pub(crate) mod activations;
pub(crate) mod block;
pub(crate) mod gemm;
pub(crate) mod quant_gemm;
