//! Kernels that go along rows: norm, softmax, elementwise operations, casts, other lengths, quantising, embedding.

pub(crate) mod cast;
pub(crate) mod copy;
pub(crate) mod elementwise;
pub(crate) mod embedding;
pub(crate) mod norm;
pub(crate) mod quantize;
pub(crate) mod resize;
mod row;
pub(crate) mod softmax;
