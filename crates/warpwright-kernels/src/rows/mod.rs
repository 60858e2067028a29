//! Kernels that go along rows: norms, softmax, elementwise operations, casts, other lengths, quantising, embedding.

pub(crate) mod cast;
pub(crate) mod copy;
pub(crate) mod elementwise;
pub(crate) mod embedding;
pub(crate) mod layer_norm;
pub(crate) mod norm;
pub(crate) mod quantize;
pub(crate) mod resize;
mod row;
pub(crate) mod softmax;
