//! From steps to launches: which kernels, with which arguments, in which memory.

mod launch;
mod options;
mod storage;

pub use launch::{Action, ArgSource, PlannedLaunch, Scratch, ScratchId};
pub use options::{Arithmetic, Fusion, Fusions, PlanOptions};
pub use storage::{Plane, WeightLayout, planes};
