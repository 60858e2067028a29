//! `warpwright perplexity`: how well a model predicts a text.
//!
//! The text is cut into windows of the context, each of which begins with BOS if the model wants that. Only the second
//! half of a window is scored, so that every scored token has at least half a window before it. llama.cpp measures it
//! in the same way, so that figures can be compared.

use super::engine::interrupt::Interrupt;
use super::engine::{EngineArguments, Wanted, failure, show_findings};
use super::{Failure, Outcome, json, source};
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::time::Instant;
use warpwright_llm::engine::{By, SamplerOptions};
use warpwright_llm::tokenizer::Encode;

/// Measure how well a model predicts a text
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The text, `-` for standard input
    #[arg(value_name = "FILE.txt")]
    file: String,
    /// Tokens of a window [default: 512, or the model's maximum if that is less]
    #[arg(short, long = "ctx", value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(4..))]
    context: Option<u32>,
    /// Maximum number of windows to measure
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    windows: Option<u64>,
    /// Compute this many tokens at once
    #[arg(long, value_name = "TOKENS")]
    chunk: Option<u32>,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    engine: EngineArguments,
}

/// Windows that are long enough for most purposes.
const DEFAULT_WINDOW: u32 = 512;

/// Sums of what the model gave the tokens that came.
#[derive(Default)]
struct Sums {
    count: u64,
    /// Of −ln p, and of its square.
    nll: f64,
    squares: f64,
}

impl Sums {
    /// Adds a token that came after these logits.
    fn add(&mut self, logits: &[f32], token: u32) {
        let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = logits.iter().map(|&logit| f64::from(logit - max).exp()).sum();
        let logit = logits.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY);
        let nll = sum.ln() - f64::from(logit - max);
        self.count += 1;
        self.nll += nll;
        self.squares += nll * nll;
    }

    /// The perplexity and its standard error.
    fn perplexity(&self) -> (f64, f64) {
        let count = self.count as f64;
        let mean = self.nll / count;
        let variance = self.squares / count - mean * mean;
        let perplexity = mean.exp();
        let error = if self.count > 1 && variance > 0.0 { (variance / (count - 1.0)).sqrt() } else { 0.0 };
        (perplexity, error * perplexity)
    }
}

pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Outcome, Failure> {
    arguments.engine.must_not_decode("warpwright perplexity")?;
    let text = source::read_text(&arguments.file)?;
    let shown = source::display_name(&arguments.file);
    let interrupt = Interrupt::listen()?;
    let file = arguments.engine.model.open()?;
    let tokenizer = file.tokenizer()?;
    let window = arguments.context.unwrap_or(DEFAULT_WINDOW.min(file.config()?.max_context()));
    let options = Encode { add_special: true, parse_special: false };
    let ids =
        tokenizer.encode(&text, options).map_err(|error| Failure::Message(format!("{shown}: {error}")))?;
    let wanted = Wanted { context: Some(window), chunk: arguments.chunk, sampler: SamplerOptions::greedy() };
    let window = window as usize;
    if ids.len() < 2 * window {
        return Err(Failure::Message(format!(
            "{shown}: it has {} tokens, and two windows of {window} are {}: give a longer text or a smaller `-c`",
            ids.len(),
            2 * window
        )));
    }
    let windows = ids.len() / window;
    let mut loaded = arguments.engine.load(file, wanted)?;
    let windows =
        arguments.windows.map_or(windows, |max| windows.min(usize::try_from(max).unwrap_or(usize::MAX)));
    loaded.announce()?;
    interrupt.begin();

    let start = Instant::now();
    let bos = tokenizer.bos().filter(|_| tokenizer.adds_bos());
    let by = By::Chunk(loaded.engine.describe().chunk);
    let watched = io::stderr().is_terminal();
    let (mut sums, mut measured) = (Sums::default(), 0);
    for (number, window_ids) in ids.chunks_exact(window).take(windows).enumerate() {
        let mut given = window_ids.to_vec();
        if let (Some(bos), Some(first)) = (bos, given.first_mut()) {
            *first = bos;
        }
        let (before, scored) = given.split_at(window / 2);
        let targets = &window_ids[window / 2 + 1..];
        loaded.engine.reset();
        let computed = loaded.engine.prefill(before).and_then(|()| {
            loaded.engine.logits(&scored[..targets.len()], by, |at, logits| {
                sums.add(logits, targets[at]);
                if interrupt.pressed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
        });
        if computed.map_err(|error| failure(&loaded.engine, &error))?.is_break() {
            break;
        }
        measured = number + 1;
        if watched {
            write!(io::stderr(), "\r{}/{windows} windows, {:.4} so far ", number + 1, sums.perplexity().0)?;
        }
    }
    if watched {
        writeln!(io::stderr())?;
    }
    interrupt.end();
    if sums.count == 0 {
        return Ok(Outcome::Interrupted);
    }
    let (perplexity, error) = sums.perplexity();
    if arguments.json {
        let report = json::object! {
            model: &loaded.file.name,
            file: shown,
            perplexity: perplexity,
            // The standard error of that.
            error: error,
            tokens: ids.len(),
            // Tokens that were foreseen, or not, and windows that were measured whole.
            scored: sums.count,
            windows: measured,
            window: window,
            engine: loaded.description(),
            seconds: start.elapsed().as_secs_f64(),
        };
        json::document(out, report)?;
    } else {
        writeln!(out, "PPL = {perplexity:.4} +/- {error:.5}")?;
    }
    let findings = loaded.findings();
    show_findings(&findings)?;
    Ok(match measured == windows {
        _ if !findings.is_empty() => Outcome::Found,
        true => Outcome::Fine,
        false => Outcome::Interrupted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_knows_nothing_has_the_perplexity_of_its_vocabulary() {
        let mut sums = Sums::default();
        for token in 0..8 {
            sums.add(&[3.5; 8], token);
        }
        let (perplexity, error) = sums.perplexity();
        assert!((perplexity - 8.0).abs() < 1e-12 && error.abs() < 1e-6, "{perplexity} {error}");
    }

    #[test]
    fn the_error_is_that_of_the_mean() {
        // −ln p is ln 2 and ln 4: p of a half and a quarter, after logits of two and of four that are alike.
        let mut sums = Sums::default();
        sums.add(&[0.0, 0.0, f32::NEG_INFINITY], 1);
        sums.add(&[1.0; 4], 2);
        let (perplexity, error) = sums.perplexity();
        let mean = 8f64.sqrt();
        assert!((perplexity - mean).abs() < 1e-12);
        // The two are half of ln 2 from their mean; √(v / (n − 1)) of the plain variance.
        assert!((error - mean * 0.5 * 2f64.ln()).abs() < 1e-12);
    }
}
