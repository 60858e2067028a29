//! The shapes of steps, and the reasons for planning.

use super::super::error::{ExecuteError, StoreError};
use super::super::persistent::PersistentError;
use crate::graph::GraphError;
use crate::launch::PlanError;
use std::fmt;
use warpwright_runtime::RuntimeError;

/// The computation of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StepKind {
    /// One token of each sequence.
    Decode,
    /// This many tokens of all sequences together: prompts, or chunks of them.
    Prefill {
        /// Tokens of all sequences.
        tokens: u32,
    },
}

/// The shape of a step's graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StepShape {
    /// The computation.
    pub kind: StepKind,
    /// Sequences.
    pub batch: u32,
    /// Capacity of a sequence's cache, in tokens.
    pub max_seq_len: u32,
    /// Selects one of several graphs of the shape: a number that the graph's builder interprets, and 0 unless
    /// [`Runner::variant_step`](super::Runner::variant_step) has requested another.
    pub variant: u32,
}

/// The maximum length of sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceBound {
    /// Initial capacity of caches, in tokens.
    pub initial: u32,
    /// Maximum capacity, in tokens. The capacity doubles whenever it is too small, up to this limit.
    pub limit: u32,
}

impl SequenceBound {
    /// A fixed capacity of this many tokens.
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
    /// Sequences exceeded the capacity of the caches that the step was planned for. The contents of the caches were
    /// moved.
    Cache {
        /// Tokens that there was room for.
        from: u32,
        /// Tokens that there is room for now.
        to: u32,
    },
    /// The plan is unchanged, but states have moved to make room for more sequences: it was bound and captured again.
    Moved,
    /// A persistent kernel was bound with other options.
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
    /// The plan cannot be a persistent kernel.
    #[error(transparent)]
    Persistent(#[from] PersistentError),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The sequences are too long.
    #[error("a sequence of {length} tokens: there is room for {limit} at most")]
    TooLong {
        /// Tokens that were asked for.
        length: u32,
        /// The limit.
        limit: u32,
    },
}

impl RunnerError {
    /// Whether a step cannot be a persistent kernel but can run in another way: see
    /// [`PersistentError::is_unsupported`].
    pub fn is_unsupported(&self) -> bool {
        matches!(self, RunnerError::Persistent(error) if error.is_unsupported())
    }

    /// The device's error, if that is the cause.
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
