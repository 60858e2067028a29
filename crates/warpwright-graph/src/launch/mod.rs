//! Launches as plans have them: which kernel, with which parts of which tensors, and why there may be none.
//!
//! What a tensor's bytes are is known here: its parts, and the layouts of weights.

mod error;
mod launches;
mod storage;

pub use error::{PlanError, Unsupported};
pub use launches::{Action, ArgSource, ConfiguredKernel, PlannedLaunch, PlannedStep, Scratch, ScratchId};
pub(crate) use storage::{ALIGNMENT, bytes};
pub use storage::{Plane, WeightLayout, planes};
