//! `warpwright bench`: tokens a second, of prompts and of text.

use super::engine::{EngineArguments, Loaded, Wanted, failure, show_findings};
use super::{Failure, Outcome, json};
use serde::Serialize;
use std::io::Write;
use std::time::Instant;
use warpwright_llm::engine::{Context, EngineError, PersistentStatistics, SamplerOptions};

/// Measure how fast a model computes prompts and generates text
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Length of the prompt in tokens; 0 skips prompts
    #[arg(short = 'p', long = "n-prompt", value_name = "TOKENS", default_value_t = 512)]
    prompt: u32,
    /// Length of the generated text in tokens; 0 skips texts
    #[arg(short = 'n', long = "n-gen", value_name = "TOKENS", default_value_t = 128)]
    text: u32,
    /// Number of measurements of each
    #[arg(short, long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
    /// Compute this many prompt tokens at once
    #[arg(long, value_name = "TOKENS")]
    chunk: Option<u32>,
    /// Skip the warm-up round, which is not counted
    #[arg(long)]
    no_warmup: bool,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    engine: EngineArguments,
}

/// A measurement.
#[derive(Serialize)]
struct Test {
    /// `pp512`: a prompt of 512 tokens; `tg128`: a text of 128.
    test: String,
    tokens: u32,
    /// Seconds of each repetition.
    samples: Vec<f64>,
    /// Tokens a second: the mean of the repetitions, and its standard deviation.
    tokens_per_second: f64,
    standard_deviation: f64,
}

/// Mean and standard deviation of a sample.
fn mean_and_deviation(samples: &[f64]) -> (f64, f64) {
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / count;
    if samples.len() < 2 {
        return (mean, 0.0);
    }
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0)).sqrt())
}

impl Test {
    fn new(test: String, tokens: u32, samples: Vec<f64>) -> Test {
        let rates: Vec<f64> = samples.iter().map(|seconds| f64::from(tokens) / seconds.max(1e-9)).collect();
        let (tokens_per_second, standard_deviation) = mean_and_deviation(&rates);
        Test { test, tokens, samples, tokens_per_second, standard_deviation }
    }
}

/// Measures something, with a round beforehand that does not count unless `cold`.
fn measure(
    loaded: &mut Loaded,
    repetitions: u32,
    cold: bool,
    mut round: impl FnMut(&mut Loaded) -> Result<(), EngineError>,
) -> Result<Vec<f64>, Failure> {
    let mut samples = Vec::new();
    for number in u32::from(cold)..=repetitions {
        loaded.engine.reset();
        let start = Instant::now();
        let done = round(loaded).and_then(|()| Ok(loaded.engine.device().synchronize()?));
        let seconds = start.elapsed().as_secs_f64();
        done.map_err(|error| failure(&loaded.engine, &error))?;
        if number > 0 {
            samples.push(seconds);
        }
    }
    Ok(samples)
}

/// Tokens all over a vocabulary, the same each time.
fn tokens(count: u32, vocab: u32) -> Vec<u32> {
    let step = |state: &mut u32| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some(((u64::from(*state) * u64::from(vocab)) >> 32) as u32)
    };
    std::iter::repeat_n((), count as usize).scan(1, |state, ()| step(state)).collect()
}

pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Outcome, Failure> {
    if arguments.prompt == 0 && arguments.text == 0 {
        return Err(Failure::Message("nothing to measure: `-p` or `-n` must be more than 0".into()));
    }
    let context = arguments.prompt.max(arguments.text);
    let file = arguments.engine.model.open()?;
    let longest = Context::of(&file.config()?);
    if context > longest.tokens {
        return Err(Failure::Message(format!(
            "`-p` or `-n` is {context}: so many tokens do not fit into {longest}"
        )));
    }
    let sampler = SamplerOptions::greedy();
    let mut loaded =
        arguments.engine.load(file, Wanted { context: Some(context), chunk: arguments.chunk, sampler })?;
    let vocab = loaded.engine.model().vocab();
    let mut tests = Vec::new();
    if arguments.prompt > 0 {
        let prompt = tokens(arguments.prompt, vocab);
        let samples = measure(&mut loaded, arguments.repetitions, arguments.no_warmup, |loaded| {
            loaded.engine.prefill(&prompt)
        })?;
        tests.push(Test::new(format!("pp{}", arguments.prompt), arguments.prompt, samples));
    }
    if arguments.text > 0 {
        let first = tokens(1, vocab);
        let samples = measure(&mut loaded, arguments.repetitions, arguments.no_warmup, |loaded| {
            loaded.engine.prefill(&first)?;
            (0..arguments.text)
                .rev()
                .try_for_each(|after| loaded.engine.decode_of(after as usize + 1).map(|_| ()))
        })?;
        tests.push(Test::new(format!("tg{}", arguments.text), arguments.text, samples));
    }
    let size: u64 =
        loaded.file.gguf.tensors().iter().map(|tensor| loaded.file.gguf.data(tensor).len() as u64).sum();
    let engine = loaded.description();
    loaded.note()?;
    let persistent = loaded.persistent(&PersistentStatistics::default());
    if arguments.json {
        json::document(
            out,
            json::object! {
                model: &loaded.file.name,
                // Bytes of the weights.
                size: size,
                engine: engine,
                tests: tests,
                persistent: persistent,
            },
        )?;
    } else {
        let description = loaded.engine.describe();
        let (mebibytes, millions) = (size as f64 / 1_048_576.0, description.parameters as f64 / 1e6);
        writeln!(out, "| model | size | params | device | test | tokens/s |")?;
        writeln!(out, "| --- | ---: | ---: | --- | ---: | ---: |")?;
        for Test { test, tokens_per_second, standard_deviation, .. } in &tests {
            writeln!(
                out,
                "| {} | {mebibytes:.2} MiB | {millions:.2} M | {} | {test} | {tokens_per_second:.2} ± {standard_deviation:.2} |",
                loaded.file.name, description.device
            )?;
        }
    }
    let findings = loaded.findings();
    show_findings(&findings)?;
    Ok(if findings.is_empty() { Outcome::Fine } else { Outcome::Found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_are_those_of_a_sample() {
        assert_eq!(mean_and_deviation(&[3.0]), (3.0, 0.0));
        let (mean, deviation) = mean_and_deviation(&[1.0, 2.0, 3.0, 4.0]);
        assert!(mean == 2.5 && (deviation - (5.0f64 / 3.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn tokens_are_of_the_vocabulary() {
        let some = tokens(1000, 7);
        assert!(some.len() == 1000 && (0..7).all(|token| some.contains(&token)));
        assert!(some.iter().all(|&token| token < 7));
    }
}
