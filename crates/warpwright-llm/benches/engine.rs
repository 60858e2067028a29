//! Loading a model and running it: what a user waits for.
//!
//! `cargo bench -p warpwright-llm --bench engine [-- MODEL.gguf]`; without a file the tiny model that the program has,
//! and where that is not there either, one of its form with random weights. Goals with it, on two cores and the
//! virtual GPU: loading in 100 ms, 30 tokens a second decoded, 150 of a prompt, 200 MB, and persistent launches within
//! a tenth of graphs. With `--executors` that comparison alone.

#[path = "engine/open.rs"]
mod open;

use open::{Outcome, line, open};
use std::time::{Duration, Instant};
use warpwright_llm::engine::{Engine, EngineOptions, Executor, SamplerOptions};
use warpwright_runtime::Device;

const ROUNDS: usize = 5;
const PROMPTS: [usize; 5] = [5, 16, 40, 128, 512];
const DECODED: usize = 64;

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn rate(tokens: usize, time: Duration) -> String {
    format!("{:.1} tokens/s", tokens as f64 / time.as_secs_f64())
}

/// Most memory that the process has had, in MiB, where the system tells.
fn peak() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
}

fn load() -> Outcome<(Engine, Duration)> {
    let start = Instant::now();
    let gguf = open()?;
    let mut options = EngineOptions::new(Device::auto()?.device);
    options.sampler = SamplerOptions::default();
    let engine = Engine::load(&gguf, options, |_| {})?;
    Ok((engine, start.elapsed()))
}

/// Tokens decoded by graphs and by persistent launches, in turn, so that what else the machine does hits all alike.
fn executors() -> Outcome {
    let gguf = open()?;
    let ways = [None, Some(1), Some(2), Some(4)].map(|blocks| (Executor::Persistent, blocks));
    let ways = [&[(Executor::Graph, None)], &ways[..]].concat();
    let mut engines = Vec::new();
    for (executor, blocks) in ways {
        let mut options = EngineOptions::new(Device::auto()?.device);
        (options.executor, options.blocks) = (executor, blocks);
        let engine = Engine::load(&gguf, options, |_| {})?;
        if let Some(fallback) = engine.fallback() {
            println!("{fallback}");
        }
        engines.push((engine, blocks, Duration::MAX));
    }
    for _ in 0..ROUNDS {
        for (engine, _, best) in &mut engines {
            engine.reset();
            engine.prefill(&[1, 2, 3])?;
            engine.decode()?;
            let start = Instant::now();
            for after in (0..DECODED).rev() {
                engine.decode_of(after + 1)?;
            }
            *best = start.elapsed().min(*best);
        }
    }
    let graph = engines[0].2;
    for (engine, blocks, best) in &engines {
        let what = match (engine.describe().executor, blocks) {
            (Executor::Persistent, None) => {
                format!("persistent, {} blocks by itself", engine.statistics().persistent.blocks)
            }
            (Executor::Persistent, Some(blocks)) => format!("persistent, {blocks} blocks"),
            (executor, _) => executor.name().into(),
        };
        line(&format!("tokens, drawn: {what}"), rate(DECODED, *best));
        line("  of the rate of graphs", format!("{:.2}", graph.as_secs_f64() / best.as_secs_f64()));
    }
    Ok(())
}

fn main() -> Outcome {
    if std::env::args().any(|word| word == "--executors") {
        return executors();
    }
    let (mut engine, first) = load()?;
    println!("{}", engine.describe());
    line("loading, the first time", ms(first));
    let start = Instant::now();
    let estimate = engine.estimate()?;
    line("estimating", ms(start.elapsed()));
    line("  a token, estimated", ms(estimate.token));
    line("  a token of a prompt, estimated", ms(estimate.prompt_token));
    let vocab = engine.model().vocab();
    let ids: Vec<u32> =
        (0..PROMPTS[PROMPTS.len() - 1] as u32).map(|i| (i * i * 7 + i * 131 + 5) % vocab).collect();

    let context = engine.context().tokens;
    for len in PROMPTS.into_iter().filter(|&len| len as u32 <= context) {
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            engine.reset();
            let start = Instant::now();
            engine.prefill(&ids[..len])?;
            engine.decode()?;
            times.push(start.elapsed());
        }
        line(&format!("the token after a prompt of {len}, the first time"), ms(times[0]));
        let best = times.into_iter().min().unwrap_or_default();
        line("  the best of five", ms(best));
        line("  the prompt", rate(len, best));
    }
    for sampler in [SamplerOptions::greedy(), SamplerOptions::default()] {
        engine.set_sampler(sampler)?;
        for before in [8, 256] {
            engine.reset();
            engine.prefill(&ids[..before])?;
            engine.decode()?;
            let start = Instant::now();
            for _ in 0..DECODED {
                engine.decode()?;
            }
            let what = if sampler.draws() { "drawn" } else { "the largest" };
            line(&format!("tokens, {what}, after {before}"), rate(DECODED, start.elapsed()));
        }
    }
    drop(engine);
    let mut best = first;
    for _ in 0..ROUNDS {
        best = best.min(load()?.1);
    }
    line("loading, the best of six", ms(best));
    executors()?;
    if let Some(peak) = peak() {
        line("memory at most", format!("{peak:.0} MiB"));
    }
    Ok(())
}
