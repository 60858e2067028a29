//! Products of quantised matrices with a few columns of activations: what decoding a token consists of.
//!
//! ```text
//!   kernel ──► tile ──┬── plan          rows to lanes, slices to warps
//!                     ├── format        quants to factors
//!                     ├── activations   global to shared memory, with sums; rounding: quantised on the way
//!                     ├── scales        once, through shared memory
//!                     ├── dot           products of a slice
//!                     └── epilogue      sums to results
//! ```
//!
//! A tile is a function over its number, scratch memory and operands; the entry point runs one for each block.

mod activations;
mod dot;
mod entry;
mod epilogue;
mod format;
mod kernel;
mod plan;
mod rounding;
mod scales;
mod shape;
mod tile;

pub(crate) use entry::{FusedNormGemvFields, QuantGemvFields};
pub use kernel::{Activations, FusedNormGemv, FusedNormGemvArgs, Matrix, QuantGemv, QuantGemvArgs};
