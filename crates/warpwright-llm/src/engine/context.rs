//! The length limit of sequences, and its reason.

use super::error::EngineError;
use crate::model::{LoadError, ModelConfig};
use std::fmt;
use warpwright_graph::RunnerError;
use warpwright_runtime::RuntimeError;

/// The context where none is asked for, if the model has it.
const DEFAULT_CONTEXT: u32 = 4096;

/// The maximum number of tokens of a sequence, prompts and answers together, and the reason for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Context {
    /// The limit in tokens.
    pub tokens: u32,
    /// The reason for the limit.
    pub limit: ContextLimit,
    /// The maximum that the model supports.
    pub max: u32,
}

/// What limits a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContextLimit {
    /// The requested length.
    Asked,
    /// The default: no length was requested, and the model supports more.
    Default,
    /// The context length of the model's training.
    Model,
    /// The sliding window of the model's layers: attention to a part of the sequence is not supported.
    Window,
}

impl Context {
    /// The maximum context of a model.
    pub fn of(model: &ModelConfig) -> Context {
        let max = model.max_context();
        let limit = if max < model.context_length() { ContextLimit::Window } else { ContextLimit::Model };
        Context { tokens: max, limit, max }
    }

    /// What is asked for, or what there is.
    pub(super) fn new(asked: Option<u32>, model: &ModelConfig) -> Result<Context, EngineError> {
        let whole = Context::of(model);
        let max = whole.max;
        match asked {
            Some(tokens) if !(1..=max).contains(&tokens) => {
                let rule = format!("from 1 to {max}, since {}", whole.why());
                Err(EngineError::Option { option: "the context", value: tokens.to_string(), rule })
            }
            Some(tokens) if tokens < max => Ok(Context { tokens, limit: ContextLimit::Asked, max }),
            None if DEFAULT_CONTEXT < max => {
                Ok(Context { tokens: DEFAULT_CONTEXT, limit: ContextLimit::Default, max })
            }
            _ => Ok(whole),
        }
    }

    fn why(&self) -> &'static str {
        match self.limit {
            ContextLimit::Asked => "no more were asked for",
            ContextLimit::Default => "nothing else was asked for",
            ContextLimit::Model => "the model was trained for no more",
            ContextLimit::Window => {
                "the model's tokens see no more (its sliding window), and attention to a part of the context is not \
                 supported"
            }
        }
    }

    /// A hint for a context that is too short, in addition to shortening the text.
    pub fn help(&self) -> String {
        match self.limit {
            ContextLimit::Asked | ContextLimit::Default => {
                format!("a larger context helps, of up to {} tokens", self.max)
            }
            ContextLimit::Model | ContextLimit::Window => "this model takes no larger one".into(),
        }
    }
}

/// `the context of 4096 tokens (nothing else was asked for)`.
impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the context of {} tokens ({})", self.tokens, self.why())
    }
}

impl Context {
    /// Why there is no step for a sequence of `length` tokens: where the device has no memory for it, that.
    pub(super) fn no_step(&self, length: u32, error: RunnerError) -> EngineError {
        if !matches!(error.device_error(), Some(RuntimeError::OutOfMemory { .. })) {
            return error.into();
        }
        EngineError::Memory {
            what: format!("a step of {length} tokens, of a context of {}", self.tokens),
            help: "a smaller context, a cache of fewer bits or smaller chunks need less",
            source: Box::new(error.into()),
        }
    }
}

/// Why weights are not on the device: where it has no memory for them, that.
pub(super) fn not_loaded(error: LoadError, model: &ModelConfig) -> EngineError {
    let LoadError::Store(store) = &error else { return error.into() };
    if !matches!(store.device_error(), Some(RuntimeError::OutOfMemory { .. })) {
        return error.into();
    }
    EngineError::Memory {
        what: format!("the {} weights of the model", model.parameters()),
        help: "a smaller model, or one of fewer bits, needs less",
        source: Box::new(error.into()),
    }
}
