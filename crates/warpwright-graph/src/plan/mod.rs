//! From a graph to launches: the sequence of passes, and the resulting plan.
//!
//! ```text
//!   ComputeGraph ──► Program ──► fuse ──► choose ──► check ──► lower ──► memory ──► Plan
//!                                └─────────┴── the dispatcher is asked
//! ```
//!
//! A plan is complete, and it is data: kernels with their configurations, arguments as parts of tensors, offsets in an
//! arena. Of the device it depends on the architecture and the size only; binding it provides the rest.

mod memory;
mod overlap;
mod planned;

pub use memory::{Location, Memory};
pub use planned::{Plan, PlannedWeight};
