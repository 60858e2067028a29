//! The kernel library: one configurable type per kernel idea.
//!
//! A kernel is a struct whose fields are its host-time configuration. It implements
//! [`Kernel`](warpwright_ptx::dsl::Kernel): entry point, arguments, launch rule, PTX for a target. The
//! crate knows no devices.
//!
//! Each kernel's file also says how the [catalogue] shows it: its name and its fields as text.
#![forbid(unsafe_code)]

mod catalogue;
mod embedding;
mod floats;
mod ladder;
mod linear;
pub mod weights;

pub use catalogue::{ConfigureError, Domain, Entry, Field, catalogue, find};
pub use embedding::Embedding;
pub use floats::Dtype;
pub use ladder::matmul::Matmul;
pub use ladder::matmul_tiled::MatmulTiled;
pub use ladder::rms_norm::RmsNorm;
pub use ladder::softmax::Softmax;
pub use ladder::transpose::Transpose;
pub use ladder::vector_add::VectorAdd;
pub use linear::activations::ScaleRows;
pub use linear::gemm::{Activations, Gemm};
pub use linear::quant_gemm::QuantGemm;
pub use weights::WeightFormat;

/// The examples of the page on tiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tiles.md")]
struct TilesPage;
