//! Launches as plans have them: kernels, and the parts of tensors that are their arguments; and the errors.
//!
//! This module defines the layout of a tensor's bytes: its parts, and the layouts of weights.

mod error;
mod launches;
mod storage;

pub use error::{PlanError, Unsupported};
pub use launches::{Action, ArgSource, ConfiguredKernel, PlannedLaunch, PlannedStep, Scratch, ScratchId};
pub(crate) use storage::{ALIGNMENT, bytes};
pub use storage::{Plane, WeightLayout, planes};
