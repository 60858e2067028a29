//! Estimates of how long a kernel takes on a GPU that is not there.
//!
//! ```text
//!   PTX ─┬─ ptxas ─ nvdisasm ─► Code, Resources ─┐
//!        │                                       ├─ Workload ─► estimate ─► Estimate
//!        └─ virtual GPU (some blocks) ─► Counters┘                 ▲
//!                                          DeviceModel ────────────┘
//! ```
//!
//! The virtual GPU says how often each instruction of the PTX is executed and what memory it asks for; `ptxas` says which
//! machine instructions that are, and when the scheduler may issue them. `path` brings the two together: the
//! instructions of an average warp in their order. `simulate` issues them, for the warps that are resident on a
//! multiprocessor, cycle by cycle, with queues for what they share. The times of the single resources are sums, and
//! lower bounds; the simulation says how they overlap.
//!
//! The figures of cards are in [`DeviceModel`](warpwright_kernels::tune::DeviceModel), those of architectures in `pipes`.
#![forbid(unsafe_code)]

mod doubts;
mod estimate;
pub mod machine;
mod path;
mod pipes;
mod simulate;
mod steps;

pub use doubts::{Doubt, Unmodelled};
pub use estimate::{Estimate, EstimateError, Resource, Workload, estimate};
