//! Launches as a plan has them: a kernel, and what its arguments are.

use super::storage::WeightLayout;
use crate::graph::Tensor;
use std::sync::Arc;
use warpwright_ptx::dsl::Kernel;
use warpwright_ptx::ir::Type;

/// What is done for a step.
#[derive(Clone)]
pub enum Action {
    /// A kernel is launched.
    Launch(PlannedLaunch),
    /// A tensor's bytes are copied to another one's memory.
    Copy {
        /// From here.
        from: Tensor,
        /// To here.
        to: Tensor,
    },
}

/// A kernel and its arguments.
#[derive(Clone)]
pub struct PlannedLaunch {
    /// The kernel.
    pub kernel: Arc<dyn Kernel + Send + Sync>,
    /// The arguments by name, in the kernel's order.
    pub args: Vec<(&'static str, ArgSource)>,
    /// Numbers that lengths and the grid depend on, beside scalar arguments.
    pub dims: Vec<(&'static str, u64)>,
}

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ArgSource {
    /// A part of a tensor, seen as elements of the argument's type.
    Tensor {
        /// The tensor.
        tensor: Tensor,
        /// Which part: see [`planes`](super::planes).
        plane: usize,
    },
    /// Weights in one of their layouts.
    Weights {
        /// The tensor.
        tensor: Tensor,
        /// The layout.
        layout: WeightLayout,
    },
    /// Memory that only such launches need.
    Scratch(ScratchId),
    /// A number.
    U32(u32),
    /// A number.
    F32(f32),
}

/// A piece of scratch memory, by its place in the plan's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScratchId(pub(crate) u32);

/// Memory that kernels need beside their operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scratch {
    /// Type of its elements.
    pub dtype: Type,
    /// Number of its elements.
    pub len: u64,
    /// Whether it is zero before the first launch. Kernels leave such memory zero, so that launches of one plan, which
    /// never overlap, share it; other scratch lives for one step.
    pub zeroed: bool,
}
