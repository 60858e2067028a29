//! Products of quantised matrices with a few columns of activations: the main work of a decode step.
//!
//! ```text
//!   kernel ──► tile ──┬── plan        rows to lanes, slices to warps
//!                     ├── weights     a lane's weights of a slice, as factors
//!                     ├── stage       activations, from global to shared memory, and their sums
//!                     ├── dot         Σ scale · Σ q·x
//!                     └── epilogue    sums to results
//! ```
//!
//! A tile is a function of its number, scratch memory and operands; the kernel runs one tile per block.

mod dot;
mod epilogue;
mod kernel;
mod plan;
mod stage;
mod tile;
mod weights;

pub use kernel::{Activations, Matrix, QuantGemv, QuantGemvArgs};
pub(crate) use kernel::{MAX_BATCH, MAX_COLUMNS, MAX_MATRICES, MAX_ROWS};
pub(crate) use plan::MAX_WARPS;
