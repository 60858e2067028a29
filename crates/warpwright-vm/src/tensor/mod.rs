//! Products of small matrices, with the arithmetic of tensor cores.
//!
//! The ISA does not specify how a tensor core adds. Hardware has been measured (Khattak and Mikaitis, arXiv
//! 2512.07004; an H200 by ourselves), and [`TensorCore`] selects the arithmetic to follow. This module covers numbers
//! and the lanes of a warp that hold them; it is independent of instructions, registers and memory.
//!
//! | factors | on Hopper |
//! |---|---|
//! | f16, bf16, tf32; dense, sparse, `wgmma` | blocks: [`Accumulation`] |
//! | fp8, `mma.sync` | two products of f16 factors from zero on, then `c`: [`Accumulation::halved`] |
//! | fp8, `wgmma` | a block of 32 and `c`, 13 fraction bits: [`TensorCore::warpgroup_accumulation`] |
//! | f16, m8n8k4 | multiply-adds in `f32`, then `c`: [`fused`] |
//! | six or four bits, or with block scales | one rounding, assumed: [`model`](TensorCore) |
//! | f64 | multiply-adds along k, with an order of NaNs: [`double`] |
//!
//! ```text
//! fragments of 32 lanes ── Spread ──▶ row-major a (m×k), b (k×n), c (m×n)
//!                                        │ FloatProduct::product · integer::product · double::product · …
//! fragments of 32 lanes ◀── Spread ── row-major d (m×n)
//! ```

pub mod double;
mod element;
mod evidence;
mod exact;
mod float;
pub mod fused;
pub mod integer;
mod model;
mod sparse;
mod spread;

pub use element::FloatElement;
pub use evidence::{Evidence, ProductKind};
pub use float::{Accumulator, FloatProduct, Scales};
pub(crate) use float::{LANES as COLUMNS, split, tile};
pub use model::{Accumulation, TensorCore, UnknownTensorCore};
pub(crate) use sparse::keep;
pub use sparse::{InvalidMetadata, Sparsity};
pub use spread::{QuadSide, Spread};

/// Sizes of a product: `a` is m × k, `b` is k × n, `c` and `d` are m × n, all row-major.
///
/// `n` is a multiple of 8, as in every instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Rows of `a` and `d`.
    pub m: usize,
    /// Columns of `b` and `d`.
    pub n: usize,
    /// Columns of `a` and rows of `b`.
    pub k: usize,
}

/// The left factor, complete or without the zeros of structured sparsity.
#[derive(Clone, Copy, Debug)]
pub struct Left<'a, T> {
    /// m × `kept`, row-major.
    pub values: &'a [T],
    /// The column of `a` for each value, if zeros are left out: m × `kept`, each less than k. `None`: `kept` is k,
    /// and nothing is left out.
    pub columns: Option<&'a [u8]>,
}

impl<'a, T> Left<'a, T> {
    /// A factor without omitted zeros.
    pub fn dense(values: &'a [T]) -> Self {
        Left { values, columns: None }
    }
}
