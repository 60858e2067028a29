//! Generation: a prompt becomes text, piece by piece.
//!
//! ```text
//!  prompt ──► Engine ──► ids ──► TextStream ──► StopMatcher ──► Listener
//!                         │      whole            nothing of
//!                         │      characters       a stop string
//!                         └──► ends of generation, counts, times
//! ```
//!
//! It knows neither devices nor terminals: who listens gets text as it comes, and may end it. What a listener has been
//! given, all pieces together, is the text of the [`Generation`].

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
    /// The most tokens; without it, until the model ends the text or the context is full.
    pub max_tokens: Option<usize>,
    /// Texts that end it. They are not shown.
    pub stop: Vec<String>,
    /// Shows control tokens as their text.
    pub special: bool,
    /// Goes on behind tokens that end a text.
    pub ignore_end: bool,
}

/// Who is told what happens, and says whether to go on.
///
/// Any `FnMut(&str) -> ControlFlow<()>` is one.
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
    /// There are as many tokens as were asked for.
    Length,
    /// The listener ended it.
    Interrupted,
    /// The context has no room for another token.
    ContextFull,
}

impl Finish {
    /// A word for it that stays: `end`, `stop`, `length`, `interrupted` or `context-full`.
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

/// How long it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// Tokens of the prompt that were computed.
    pub prompt_tokens: usize,
    /// From the beginning until the first token was chosen, or, where none was, until the prompt was done.
    pub prefill: Duration,
    /// Tokens that were chosen after the first.
    pub decoded: usize,
    /// The time of those.
    pub decode: Duration,
}

impl Timings {
    /// Tokens of the prompt in a second; nothing where there is nothing to divide.
    pub fn prefill_rate(&self) -> Option<f64> {
        rate(self.prompt_tokens, self.prefill)
    }

    /// Tokens after the first in a second; nothing where there is nothing to divide.
    pub fn decode_rate(&self) -> Option<f64> {
        rate(self.decoded, self.decode)
    }
}

fn rate(tokens: usize, time: Duration) -> Option<f64> {
    (tokens > 0 && !time.is_zero()).then(|| tokens as f64 / time.as_secs_f64())
}

/// What was generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// The tokens that were chosen, with the one that ended the text.
    pub tokens: Vec<u32>,
    /// Their text, without the stop string that ended it and what came with it.
    pub text: String,
    /// Why there is no more.
    pub finish: Finish,
    /// How long it took.
    pub timings: Timings,
}

/// Adds a prompt to the engine's sequence and goes on from there.
///
/// # Errors
///
/// Those of [`Engine::prefill_with`] and [`Engine::decode`]; a context that becomes full is no error but the end. What
/// was given to the listener before stays valid.
pub fn generate(
    engine: &mut Engine,
    tokenizer: &Tokenizer,
    prompt: &[u32],
    options: &GenerateOptions,
    listener: &mut impl Listener,
) -> Result<Generation, EngineError> {
    run::run(engine, tokenizer, prompt, options, listener)
}
