//! Matrix products with the weights of a model.

pub(crate) mod block;
pub(crate) mod gemm;
pub(crate) mod gemv;
pub(crate) mod quant_gemm;
pub(crate) mod scale_rows;
