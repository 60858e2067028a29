//! Messages at the end of a generation.

use crate::cli::engine::{Loaded, PersistentObject};
use crate::cli::json::object;
use serde::Serialize;
use std::io::{self, Write};
use std::time::Duration;
use warpwright_llm::generate::{Finish, Generation};

/// Times in seconds.
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

/// What `--json` prints.
pub(super) fn document(
    loaded: &Loaded,
    prompt: &str,
    prompt_tokens: &[u32],
    generation: &Generation,
    done: impl Serialize,
) -> impl Serialize {
    let timings = &generation.timings;
    let stop = match &generation.finish {
        Finish::Stop(stop) => Some(stop),
        _ => None,
    };
    object! {
        model: &loaded.file.name,
        prompt: prompt,
        prompt_tokens: prompt_tokens,
        // With the one that ended the text.
        tokens: &generation.tokens,
        // Without the prompt and without a stop string.
        text: &generation.text,
        finish: generation.finish.name(),
        stop: stop,
        sampling: loaded.engine.sampler(),
        engine: loaded.description(),
        timings: object! {
            load: Timing::new(None, loaded.loading, None),
            // The prompt, with the choice of the first token.
            prefill: Timing::new(Some(timings.prompt_tokens), timings.prefill, timings.prefill_rate()),
            // The tokens after the first.
            decode: Timing::new(Some(timings.decoded), timings.decode, timings.decode_rate()),
        },
        #[serde(flatten)]
        done: done,
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
