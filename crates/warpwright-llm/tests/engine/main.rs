//! What holds of engines: a token is a function of those before it, the sampler and the seed, however it came about.

#[path = "../../../warpwright-graph/tests/common/reference/mod.rs"]
mod reference;

mod executors;
mod model;
mod not_finite;
mod penalties;
mod run;
mod sequence;
#[path = "../model/spec.rs"]
mod spec;

use model::{Sizes, gguf};
use std::ops::ControlFlow;
use warpwright_llm::engine::{By, Engine, EngineOptions, SamplerOptions};
use warpwright_runtime::{Device, VmConfig};
use warpwright_vm::Options;

/// A model that is small enough to be run many times.
const SMALL: Sizes = Sizes {
    layers: 2,
    hidden: 64,
    heads: 2,
    kv_heads: 1,
    head_dim: 32,
    ffn: 96,
    vocab: 96,
    context: 256,
    window: None,
};

/// The device of the test; as a virtual GPU with checks, what they find is an error.
fn device(checks: bool) -> Device {
    let options = if checks { Options::checked() } else { Options::default() };
    warpwright_testing::device(VmConfig { options, ..VmConfig::default() })
}

fn load(options: EngineOptions) -> Engine {
    Engine::load(&gguf(SMALL, 1), options, |_| {}).expect("an engine")
}

/// The options that most tests have: no draws, prompts in chunks of 16.
fn greedy(device: &Device) -> EngineOptions {
    let mut options = EngineOptions::new(device.clone());
    options.sampler = SamplerOptions::greedy();
    options.chunk = Some(16);
    options
}

/// Tokens that repeat themselves in no obvious way.
fn prompt(len: usize) -> Vec<u32> {
    (0..len as u32).map(|i| (i * i * 7 + i * 13 + 5) % SMALL.vocab).collect()
}

fn decode(engine: &mut Engine, count: usize) -> Vec<u32> {
    (0..count).map(|_| engine.decode().expect("a token")).collect()
}

/// Logits after each token, bit by bit.
fn logits(engine: &mut Engine, ids: &[u32], by: By) -> Vec<Vec<f32>> {
    let mut rows = Vec::new();
    let done = engine.logits(ids, by, |at, row| {
        assert_eq!(at, rows.len());
        rows.push(row.to_vec());
        ControlFlow::Continue(())
    });
    assert_eq!(done.expect("logits"), ControlFlow::Continue(()));
    rows
}

/// The place of the largest, the first of several.
fn largest(row: &[f32]) -> u32 {
    let better = |best: usize, i: usize| if row[i] > row[best] { i } else { best };
    (0..row.len()).fold(0, better) as u32
}
