//! Why a plan cannot be a persistent kernel.

use super::super::error::ExecuteError;
use crate::graph::TensorType;
use crate::persistent::{ScheduleError, ScheduleFault};
use warpwright_dsl::BuildError;
use warpwright_runtime::RuntimeError;

/// Why a plan was not bound as a persistent kernel. It can still run as an [`Executable`](crate::Executable), also
/// [captured](crate::Captured).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PersistentError {
    /// The output that the options name is not a token.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The output that the options name is not a token.
    #[error("output `{name}` is {ty}: the token of a persistent kernel is one u32")]
    Token {
        /// The output.
        name: String,
        /// Its type.
        ty: TensorType,
    },
    /// The plan is too small.
    #[error("the plan's work for a token is one phase: a persistent kernel has two at least")]
    OnePhase,
    /// The device cannot hold even one such block.
    #[error(
        "the device holds no block of `{kernel}`, of {threads} threads and {shared} bytes of shared memory: take blocks \
         of fewer warps"
    )]
    NoBlock {
        /// The kernel.
        kernel: String,
        /// Threads of a block.
        threads: u32,
        /// Bytes of shared memory of a block.
        shared: u64,
    },
    /// More blocks than can be resident at once.
    #[error("{asked} blocks of `{kernel}` wait for one another: the device holds from 1 to {max} at once")]
    Blocks {
        /// The kernel.
        kernel: String,
        /// How many were requested.
        asked: u32,
        /// The maximum.
        max: u64,
    },
    /// An option is out of range.
    #[error("the options: {0}")]
    Option(BuildError),
    /// The device refuses the kernel.
    #[error("the device does not take the kernel: {0}")]
    Kernel(Box<RuntimeError>),
    /// The schedule is not equivalent to the plan: a bug of this crate, found before anything ran.
    #[error("the schedule is wrong, which is a mistake in it and not in the plan: {0}")]
    Fault(Box<ScheduleFault>),
    /// The plan cannot be bound.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
}

impl PersistentError {
    /// Whether the plan, the device or the options do not allow it, so that the plan can run in another way. Other
    /// errors are bugs, or failures that would occur there too.
    pub fn is_unsupported(&self) -> bool {
        !matches!(self, PersistentError::Fault(_) | PersistentError::Execute(_))
    }
}

impl From<RuntimeError> for PersistentError {
    fn from(error: RuntimeError) -> Self {
        PersistentError::Execute(error.into())
    }
}
