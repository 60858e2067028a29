//! The kernel library: one configurable type per kernel idea.
//!
//! A kernel is a struct whose fields are its host-time configuration. It implements
//! [`Kernel`](warpwright_ptx::dsl::Kernel): entry point, arguments, launch rule, PTX for a target. The
//! crate knows no devices.
#![forbid(unsafe_code)]

mod attention;
mod catalogue;
mod matmul;
mod matmul_tiled;
mod rms_norm;
mod softmax;
mod transpose;
mod vector_add;

pub use attention::*;
pub use catalogue::{BuildError, Entry, Field, catalogue, find};
pub use matmul::Matmul;
pub use matmul_tiled::MatmulTiled;
pub use rms_norm::RmsNorm;
pub use softmax::Softmax;
pub use transpose::Transpose;
pub use vector_add::VectorAdd;

/// The examples of the page on tiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tiles.md")]
struct TilesPage;
