//! Matrix products of a warp on registers: `mma`, and the loads and stores of its fragments.
//!
//! A fragment is the part of a matrix that one lane holds, in a vector of registers. The number and type of the
//! registers follow from the shape and the element type: see [`Fragment`].

mod fragment;
mod mma;
mod transfer;

pub use fragment::{Fragment, Fragments, MmaShape};
pub use mma::{BitOp, Mma, MmaKind, MmaSp, MmaSpOrdered, ScaleVector};
pub use transfer::{Ldmatrix, MatrixCount, MatrixElement, Movmatrix, PackedElement, Stmatrix, TileShape};
