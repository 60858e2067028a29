//! From a graph to launches: the passes one after the other, and what they make.
//!
//! ```text
//!   ComputeGraph ──► Program ──► fuse ──► choose ──► check ──► lower ──► memory ──► Plan
//!                                └─────────┴── the dispatcher is asked
//! ```
//!
//! A plan is complete and it is data: kernels with their configurations, arguments as parts of tensors, offsets in
//! an arena. What it has to do with a device, other than its architecture and size, is known by what binds it.

mod memory;
mod planned;

pub use memory::{Location, Memory};
pub use planned::{Plan, PlannedWeight};
