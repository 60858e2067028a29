//! What is said of a generation at its end.

use crate::cli::engine::sampling::SamplerObject;
use crate::cli::engine::{Counters, EngineObject, Finding, Loaded, PersistentObject};
use serde::Serialize;
use std::io::{self, Write};
use std::time::Duration;
use warpwright_llm::generate::{Finish, Generation};

/// What `--json` prints.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    model: &'a str,
    prompt: &'a str,
    /// The tokens of the prompt.
    prompt_tokens: &'a [u32],
    /// The tokens that were generated, with the one that ended the text.
    tokens: &'a [u32],
    /// Their text, without the prompt and without a stop string.
    text: &'a str,
    /// `end`, `stop`, `length`, `interrupted` or `context-full`.
    finish: &'static str,
    /// The stop string that ended it.
    stop: Option<&'a str>,
    sampling: SamplerObject,
    engine: EngineObject,
    timings: TimingsObject,
    #[serde(flatten)]
    done: Done,
}

/// What the device has done.
#[derive(Serialize)]
pub(super) struct Done {
    pub(super) counters: Counters,
    /// Nothing where another executor is used.
    pub(super) persistent: Option<PersistentObject>,
    pub(super) findings: Vec<Finding>,
}

/// Times in seconds.
#[derive(Serialize)]
struct TimingsObject {
    load: Timing,
    /// The prompt, with the choice of the first token.
    prefill: Timing,
    /// The tokens after the first.
    decode: Timing,
}

#[derive(Serialize)]
struct Timing {
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<usize>,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens_per_second: Option<f64>,
}

impl Timing {
    fn new(tokens: Option<usize>, time: Duration, tokens_per_second: Option<f64>) -> Timing {
        Timing { tokens, seconds: time.as_secs_f64(), tokens_per_second }
    }
}

impl<'a> Document<'a> {
    pub(super) fn new(
        loaded: &'a Loaded,
        prompt: &'a str,
        prompt_tokens: &'a [u32],
        generation: &'a Generation,
        done: Done,
    ) -> Self {
        let timings = &generation.timings;
        Document {
            model: &loaded.file.name,
            prompt,
            prompt_tokens,
            tokens: &generation.tokens,
            text: &generation.text,
            finish: generation.finish.name(),
            stop: match &generation.finish {
                Finish::Stop(stop) => Some(stop),
                _ => None,
            },
            sampling: loaded.engine.sampler().into(),
            engine: loaded.description(),
            timings: TimingsObject {
                load: Timing::new(None, loaded.loading, None),
                prefill: Timing::new(Some(timings.prompt_tokens), timings.prefill, timings.prefill_rate()),
                decode: Timing::new(Some(timings.decoded), timings.decode, timings.decode_rate()),
            },
            done,
        }
    }
}

/// Says how long it took, on standard error.
pub(crate) fn statistics(
    loaded: &Loaded,
    generation: &Generation,
    persistent: Option<PersistentObject>,
) -> io::Result<()> {
    let mut out = io::stderr().lock();
    let timings = &generation.timings;
    let line = |what: &str, tokens: usize, time: Duration, rate: Option<f64>| {
        let rate = rate.map(|rate| format!("{rate:>10.1} tokens/s")).unwrap_or_default();
        format!("{what:<8}{tokens:>7} tokens{:>10.3} s{rate}", time.as_secs_f64())
    };
    writeln!(out, "model   {}, loaded in {:.3} s", loaded.file.name, loaded.loading.as_secs_f64())?;
    writeln!(out, "engine  {}", loaded.engine.describe())?;
    writeln!(out, "{}", line("prompt", timings.prompt_tokens, timings.prefill, timings.prefill_rate()))?;
    writeln!(out, "{}", line("text", timings.decoded, timings.decode, timings.decode_rate()))?;
    if let Some(PersistentObject { launches, tokens, barriers_per_token, .. }) = persistent {
        writeln!(
            out,
            "launched{launches:>7} times for {tokens} tokens, {barriers_per_token} barriers a token"
        )?;
    }
    let sampler = loaded.engine.sampler();
    if sampler.draws() {
        writeln!(out, "seed    {}", sampler.seed)?;
    }
    writeln!(out, "ended   {}", generation.finish.name())
}
