//! From steps to launches: which kernels, with which arguments, in which memory.

mod error;
mod launch;
mod memory;
mod options;
mod planned;
mod storage;

pub use error::{PlanError, Unsupported};
pub use launch::{Action, ArgSource, ConfiguredKernel, PlannedLaunch, Scratch, ScratchId};
pub use memory::{Location, Memory};
pub use options::{Arithmetic, Fusion, Fusions, PlanOptions};
pub use planned::{Plan, PlannedStep, PlannedWeight};
pub(crate) use storage::bytes;
pub use storage::{Plane, WeightLayout, planes};
