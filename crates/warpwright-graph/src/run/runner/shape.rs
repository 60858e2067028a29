//! What steps are asked for, and why they are planned.

use super::super::error::{ExecuteError, StoreError};
use super::super::persistent::PersistentError;
use crate::graph::GraphError;
use crate::launch::PlanError;
use std::fmt;
use warpwright_runtime::RuntimeError;

/// What a step computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StepKind {
    /// One token of each sequence.
    Decode,
    /// So many tokens of all sequences together: prompts, or chunks of them.
    Prefill {
        /// Tokens of all sequences.
        tokens: u32,
    },
}

/// What a graph is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StepShape {
    /// What it computes.
    pub kind: StepKind,
    /// Sequences.
    pub batch: u32,
    /// Tokens that the cache of a sequence has room for.
    pub max_seq_len: u32,
    /// Which of several graphs of such a shape: a number that means something to the function that builds them, and 0
    /// unless [`Runner::variant_step`](super::Runner::variant_step) has asked for another.
    pub variant: u32,
}

/// How long sequences may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceBound {
    /// Tokens that caches have room for at first.
    pub initial: u32,
    /// Tokens that they have room for at most. Until then the room doubles whenever it is too small.
    pub limit: u32,
}

impl SequenceBound {
    /// Room for so many tokens, no more and no less.
    pub fn fixed(tokens: u32) -> Self {
        SequenceBound { initial: tokens, limit: tokens }
    }

    /// The room for sequences of a length, from what there is now; `None` beyond the limit.
    pub(super) fn grown(self, now: u32, length: u32) -> Option<u32> {
        (length <= self.limit).then(|| match length <= now {
            true => now,
            false => length.max(now.saturating_mul(2)).min(self.limit),
        })
    }
}

/// Why a step was planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Replanned {
    /// It is the first of its kind.
    First {
        /// Which kind.
        kind: StepKind,
    },
    /// Steps of the kind were planned for another batch size.
    Batch {
        /// Sequences of the step before.
        from: u32,
        /// Sequences now.
        to: u32,
    },
    /// Prompts were planned for other numbers of tokens.
    Tokens {
        /// Tokens of the prompt before.
        from: u32,
        /// Tokens now.
        to: u32,
    },
    /// Steps of the kind were planned for another graph: see [`StepShape::variant`].
    Variant {
        /// The variant of the step before.
        from: u32,
        /// The variant now.
        to: u32,
    },
    /// Sequences became longer than caches had room for when the step was planned. What they hold was moved.
    Cache {
        /// Tokens that there was room for.
        from: u32,
        /// Tokens that there is room for now.
        to: u32,
    },
    /// The plan is the one that it was, but states have moved, to make room for more sequences: it was bound and
    /// captured again.
    Moved,
    /// A step that stays on the device was bound with other options.
    Options,
}

impl fmt::Display for Replanned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Replanned::First { kind: StepKind::Decode } => f.write_str("planned: the first token"),
            Replanned::First { kind: StepKind::Prefill { tokens } } => {
                write!(f, "planned: the first prompt, of {tokens} tokens")
            }
            Replanned::Batch { from, to } => {
                write!(f, "planned again: the batch has {to} sequences instead of {from}")
            }
            Replanned::Tokens { from, to } => {
                write!(f, "planned again: the prompt has {to} tokens instead of {from}")
            }
            Replanned::Variant { from, to } => {
                write!(f, "planned again: the graph is of variant {to} instead of {from}")
            }
            Replanned::Cache { from, to } => {
                write!(f, "planned again: caches have room for {to} tokens instead of {from}")
            }
            Replanned::Moved => {
                f.write_str("bound again: states have moved, to make room for more sequences")
            }
            Replanned::Options => f.write_str("bound again: a launch for many tokens has other options"),
        }
    }
}

/// Why there is no step.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunnerError {
    /// The graph of a shape cannot be built.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The graph cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The plan cannot be bound or run.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    /// The plan cannot be one launch for many tokens.
    #[error(transparent)]
    Persistent(#[from] PersistentError),
    /// The store refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Sequences cannot be that long.
    #[error("a sequence of {length} tokens: there is room for {limit} at most")]
    TooLong {
        /// Tokens that were asked for.
        length: u32,
        /// The limit.
        limit: u32,
    },
}

impl RunnerError {
    /// Whether a step cannot stay on the device, and can be had in another way: see
    /// [`PersistentError::is_unsupported`].
    pub fn is_unsupported(&self) -> bool {
        matches!(self, RunnerError::Persistent(error) if error.is_unsupported())
    }

    /// What the device says, where that is why.
    pub fn device_error(&self) -> Option<&RuntimeError> {
        match self {
            RunnerError::Execute(error) | RunnerError::Persistent(PersistentError::Execute(error)) => {
                error.device_error()
            }
            RunnerError::Store(error) => error.device_error(),
            _ => None,
        }
    }
}
