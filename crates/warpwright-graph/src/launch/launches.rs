//! Launches as a plan has them: kernels and their arguments.

use super::storage::WeightLayout;
use crate::graph::Tensor;
use std::fmt;
use std::sync::Arc;
use warpwright_dsl::{ArgDesc, LaunchRule, any::AnyKernel};
use warpwright_ptx::ir::Type;

/// An action of a step.
#[derive(Clone, Debug)]
pub enum Action {
    /// A kernel is launched.
    Launch(PlannedLaunch),
    /// A tensor's bytes are copied to another tensor's memory.
    Copy {
        /// From here.
        from: Tensor,
        /// To here.
        to: Tensor,
    },
}

/// The actions for a step of the program.
#[derive(Clone, Debug, Default)]
pub struct PlannedStep {
    /// The actions in order; none if the dispatcher overrides the step's family.
    pub actions: Vec<Action>,
    /// Whether the dispatcher overrides the step's family.
    pub overridden: bool,
}

impl PlannedStep {
    /// The launches among the actions.
    pub fn launches(&self) -> impl Iterator<Item = &PlannedLaunch> {
        self.actions.iter().filter_map(|action| match action {
            Action::Launch(launch) => Some(launch),
            Action::Copy { .. } => None,
        })
    }
}

/// A kernel whose configuration was checked, with its description. Launches of one configuration share it.
#[derive(Clone)]
pub struct ConfiguredKernel {
    pub(crate) kernel: Arc<dyn AnyKernel + Send + Sync>,
    pub(crate) entry: String,
    pub(crate) args: Vec<ArgDesc>,
    pub(crate) rule: LaunchRule,
}

impl ConfiguredKernel {
    /// The kernel.
    pub fn kernel(&self) -> &Arc<dyn AnyKernel + Send + Sync> {
        &self.kernel
    }

    /// The entry name, unique to the configuration.
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// Its arguments, in order.
    pub fn args(&self) -> &[ArgDesc] {
        &self.args
    }

    /// Its launch rule, without the shared memory that is known only after the build.
    pub fn rule(&self) -> &LaunchRule {
        &self.rule
    }
}

impl fmt::Debug for ConfiguredKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ConfiguredKernel").field(&self.entry).finish()
    }
}

/// A kernel and its arguments.
#[derive(Clone, Debug)]
pub struct PlannedLaunch {
    /// The kernel.
    pub kernel: Arc<ConfiguredKernel>,
    /// The arguments by name, in the kernel's order.
    pub args: Vec<(&'static str, ArgSource)>,
    /// Numbers that lengths and the grid depend on, in addition to scalar arguments.
    pub dims: Vec<(&'static str, u64)>,
    /// The grid, in blocks.
    pub grid: [u32; 3],
    /// The block, in threads.
    pub block: [u32; 3],
    /// Bytes that the launch moves according to its arguments: what it reads and writes of each, counted once even if
    /// it reads them again. For caches that attention reads, the whole capacity counts; for tables and caches of which
    /// only some rows are read or written, those rows.
    pub bytes: u64,
    /// Whether it may begin before the launch in front of it is complete (a programmatic dependent launch).
    pub overlaps: bool,
}

/// The value of an argument.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ArgSource {
    /// Elements of a tensor, counted in elements of the argument's type, which may differ from the tensor's.
    Tensor {
        /// The tensor.
        tensor: Tensor,
        /// Which part: see [`planes`](super::planes).
        plane: usize,
        /// The first element of the part.
        at: u64,
        /// How many there are.
        len: u64,
    },
    /// Weights in one of their layouts: all of them.
    Weights {
        /// The tensor.
        tensor: Tensor,
        /// The layout.
        layout: WeightLayout,
    },
    /// All of a piece of scratch memory.
    Scratch(ScratchId),
    /// A number.
    U32(u32),
    /// A number.
    F32(f32),
}

/// A piece of scratch memory, by its index in the plan's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScratchId(pub(crate) u32);

impl ScratchId {
    /// Its index in the plan's list.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Memory that kernels need in addition to their operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scratch {
    /// Type of its elements.
    pub dtype: Type,
    /// Number of its elements.
    pub len: u64,
    /// Whether it is zero before the first launch. Kernels leave such memory zero, so that launches of one plan, which
    /// access it one after the other, share it; other scratch memory lives for one step.
    pub zeroed: bool,
    /// The index of the step that needs it.
    pub step: usize,
}

impl Scratch {
    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.len.saturating_mul(self.dtype.bytes().into())
    }
}
