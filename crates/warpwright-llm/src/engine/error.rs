//! Errors of the engine.

use super::context::Context;
use super::not_finite::NotFinite;
use super::options::Executor;
use crate::model::{LoadError, ModelError};
use warpwright_graph::{ExecuteError, GraphError, PlanError, RunnerError, StoreError};
use warpwright_runtime::RuntimeError;

/// Why an engine cannot be loaded, or cannot continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The file has no model that can be computed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Its weights cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A step cannot be planned, or has failed.
    #[error(transparent)]
    Step(#[from] RunnerError),
    /// The store of weights and states refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The device refused, or has failed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// An option is out of range.
    #[error("{option} is {value}: it must be {rule}")]
    Option {
        /// Which.
        option: &'static str,
        /// What was asked for.
        value: String,
        /// What it must be.
        rule: String,
    },
    /// The device or the model does not support the executor.
    #[error("executor {}: {why}", executor.name())]
    Executor {
        /// Which.
        executor: Executor,
        /// Why not.
        #[source]
        why: RunnerError,
    },
    /// The device has too little memory.
    #[error("the device has no memory for {what}: {help}; {source}")]
    Memory {
        /// What for.
        what: String,
        /// What needs less.
        help: &'static str,
        /// What the device says.
        source: Box<EngineError>,
    },
    /// An id is not a token of the model.
    #[error("token {at} is {id}, but the vocabulary has {vocab} tokens, 0 to {}", vocab - 1)]
    Vocabulary {
        /// Its place in what was given.
        at: usize,
        /// The id.
        id: u32,
        /// Tokens of the vocabulary.
        vocab: u32,
    },
    /// The context has no room for a prompt.
    #[error(
        "a prompt of {prompt} tokens{} does not fit into {context}: shorten it; {}",
        after(*before),
        context.help()
    )]
    Overflow {
        /// Tokens that were held before.
        before: usize,
        /// Tokens of the prompt.
        prompt: usize,
        /// The context.
        context: Context,
    },
    /// The context has no room for another token.
    #[error("{context} is full: {prompt} of prompts and {generated} generated; {}", context.help())]
    Full {
        /// Tokens that were given.
        prompt: usize,
        /// Tokens that were generated.
        generated: usize,
        /// The context.
        context: Context,
    },
    /// Logits are NaN or infinite, so no token was chosen.
    #[error(
        "the logits after {after} tokens are not finite{}",
        first.as_ref().map(|first| format!(": {first}")).unwrap_or_default()
    )]
    NotFinite {
        /// How many tokens they come after.
        after: usize,
        /// The first number of that kind, in the order in which the model is computed; nothing where there was none when
        /// that was computed again.
        first: Option<Box<NotFinite>>,
    },
    /// The sequence is empty, so no token can follow.
    #[error("there is nothing to go on from: give at least one token first")]
    Empty,
    /// A prefix is longer than the sequence.
    #[error("a prefix of {asked} tokens of a sequence of {held}")]
    Prefix {
        /// Tokens that were asked for.
        asked: usize,
        /// Tokens that there are.
        held: usize,
    },
}

fn after(before: usize) -> String {
    if before == 0 { String::new() } else { format!(" after {before} that are in the cache") }
}

impl From<ExecuteError> for EngineError {
    fn from(error: ExecuteError) -> Self {
        EngineError::Step(error.into())
    }
}

impl From<PlanError> for EngineError {
    fn from(error: PlanError) -> Self {
        EngineError::Step(error.into())
    }
}

impl From<GraphError> for EngineError {
    fn from(error: GraphError) -> Self {
        EngineError::Step(error.into())
    }
}
