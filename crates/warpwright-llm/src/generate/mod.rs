//! Generation: a prompt becomes text, piece by piece.
//!
//! ```text
//!  prompt ──► Engine ──► ids ──► TextStream ──► StopMatcher ──► Listener
//!                         │      whole            nothing of
//!                         │      characters       a stop string
//!                         └──► ends of generation, counts, times
//! ```
//!
//! Generation does not depend on devices or terminals: the listener gets text as it comes, and may stop the generation.
//! All pieces together are the text of the [`Generation`].

mod run;
mod stop;

pub use stop::{Matched, StopMatcher};

use crate::engine::{Engine, EngineError, Progress};
use crate::tokenizer::Tokenizer;
use std::ops::ControlFlow;
use std::time::Duration;

/// When generation ends, and what is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GenerateOptions {
    /// Maximum number of tokens; `None` continues until the model ends the text or the context is full.
    pub max_tokens: Option<usize>,
    /// Stop strings. They are not shown.
    pub stop: Vec<String>,
    /// Shows control tokens as their text.
    pub special: bool,
    /// Continues after tokens that end a text.
    pub ignore_end: bool,
}

/// Receives the text, and decides whether to continue.
///
/// Any `FnMut(&str) -> ControlFlow<()>` is a listener.
pub trait Listener {
    /// So much of the prompt is done.
    fn prompt(&mut self, progress: Progress) -> ControlFlow<()> {
        let _ = progress;
        ControlFlow::Continue(())
    }

    /// The next piece of text: whole characters. It is told of every token, also of those that bring no text yet.
    fn text(&mut self, text: &str) -> ControlFlow<()>;
}

impl<F: FnMut(&str) -> ControlFlow<()>> Listener for F {
    fn text(&mut self, text: &str) -> ControlFlow<()> {
        self(text)
    }
}

/// Why generation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finish {
    /// The model ended the text, or its turn.
    EndOfText,
    /// This stop string appeared.
    Stop(String),
    /// The maximum number of tokens is reached.
    Length,
    /// The listener stopped it.
    Interrupted,
    /// The context has no room for another token.
    ContextFull,
}

impl Finish {
    /// A stable name: `end`, `stop`, `length`, `interrupted` or `context-full`.
    pub fn name(&self) -> &'static str {
        match self {
            Finish::EndOfText => "end",
            Finish::Stop(_) => "stop",
            Finish::Length => "length",
            Finish::Interrupted => "interrupted",
            Finish::ContextFull => "context-full",
        }
    }
}

/// The times of a generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// Tokens of the prompt that were computed.
    pub prompt_tokens: usize,
    /// Time until the first token was chosen, or, if there was none, until the prompt was done.
    pub prefill: Duration,
    /// Tokens after the first.
    pub decoded: usize,
    /// The time for these.
    pub decode: Duration,
}

impl Timings {
    /// Prompt tokens per second; `None` if it is not defined.
    pub fn prefill_rate(&self) -> Option<f64> {
        rate(self.prompt_tokens, self.prefill)
    }

    /// Tokens after the first per second; `None` if it is not defined.
    pub fn decode_rate(&self) -> Option<f64> {
        rate(self.decoded, self.decode)
    }
}

fn rate(tokens: usize, time: Duration) -> Option<f64> {
    (tokens > 0 && !time.is_zero()).then(|| tokens as f64 / time.as_secs_f64())
}

/// The result of a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// The generated tokens, including the one that ended the text.
    pub tokens: Vec<u32>,
    /// Their text, without the stop string that ended it and anything after it in the same piece.
    pub text: String,
    /// Why it ended.
    pub finish: Finish,
    /// The times.
    pub timings: Timings,
}

/// Adds a prompt to the engine's sequence and generates text from there.
///
/// # Errors
///
/// Those of [`Engine::prefill_with`] and [`Engine::decode`]; a full context is not an error but ends the generation.
/// Text that the listener got before an error stays valid.
pub fn generate(
    engine: &mut Engine,
    tokenizer: &Tokenizer,
    prompt: &[u32],
    options: &GenerateOptions,
    listener: &mut impl Listener,
) -> Result<Generation, EngineError> {
    run::run(engine, tokenizer, prompt, options, listener)
}
