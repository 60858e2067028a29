//! The virtual GPU through the driver API against the virtual GPU used directly: the same model, the same tokens.
//!
//! `cargo bench -p warpwright-llm --bench driver --no-run`, and then what that has built under `warpwright exec --check
//! none -- …`, with a model's file behind it if it is to be another one than that of the bench `engine`. The goal:
//! nine tenths of the speed. Both take turns, so that what else the machine does hits both, and ratios are of pairs.

#[path = "engine/open.rs"]
mod open;

use open::{Outcome, line, open};
use std::time::{Duration, Instant};
use warpwright_llm::engine::{Engine, EngineOptions, Executor, SamplerOptions};
use warpwright_llm::gguf::Gguf;
use warpwright_runtime::{Device, VmConfig};

const ROUNDS: usize = 5;
const DECODED: usize = 64;
const PROMPT: [u32; 5] = [1, 2, 3, 5, 8];

/// Decodes after a prompt: the tokens, and the time that they took, without that of the prompt.
fn round(engine: &mut Engine) -> Outcome<(Vec<u32>, Duration)> {
    engine.reset();
    engine.prefill(&PROMPT)?;
    let mut tokens = vec![engine.decode()?];
    let start = Instant::now();
    for after in (0..DECODED).rev() {
        tokens.push(engine.decode_of(after + 1)?);
    }
    Ok((tokens, start.elapsed()))
}

fn load(gguf: &Gguf, device: Device, executor: Executor) -> Outcome<Engine> {
    let mut options = EngineOptions::new(device);
    options.executor = executor;
    options.sampler = SamplerOptions::greedy();
    Ok(Engine::load(gguf, options, |_| {})?)
}

fn main() -> Outcome {
    let gguf = open()?;
    let mut config = VmConfig::default();
    let cuda = match Device::cuda(0) {
        Ok(device) => device,
        Err(error) => {
            println!("nothing is compared: {error}");
            return Ok(());
        }
    };
    config.device.arch = cuda.properties().arch;
    config.device.multiprocessors = cuda.properties().multiprocessors;
    println!("{}", cuda.properties().name);
    for executor in [Executor::Graph, Executor::Persistent] {
        let mut direct = load(&gguf, Device::vm(config.clone())?, executor)?;
        let mut through = load(&gguf, cuda.clone(), executor)?;
        // Once for what is made at first.
        let text = round(&mut direct)?.0;
        let mut same = round(&mut through)?.0 == text;
        let mut pairs = Vec::new();
        for _ in 0..ROUNDS {
            let ((own, direct), (other, through)) = (round(&mut direct)?, round(&mut through)?);
            same &= own == text && other == text;
            pairs.push((direct.as_secs_f64(), through.as_secs_f64()));
        }
        let name = executor.name();
        let best = |time: fn(&(f64, f64)) -> f64| pairs.iter().map(time).fold(f64::MAX, f64::min);
        let (direct, through) = (best(|pair| pair.0), best(|pair| pair.1));
        let mut ratios: Vec<f64> = pairs.iter().map(|(direct, through)| direct / through).collect();
        ratios.sort_by(f64::total_cmp);
        line(&format!("{name}: directly"), format!("{:.1} tokens/s", DECODED as f64 / direct));
        line(&format!("{name}: through the driver"), format!("{:.1} tokens/s", DECODED as f64 / through));
        line("  of the speed, the best of each", format!("{:.3}", direct / through));
        let (least, median, most) = (ratios[0], ratios[ROUNDS / 2], ratios[ROUNDS - 1]);
        line("  of the speed, pair by pair", format!("{median:.3} ({least:.3} to {most:.3})"));
        line("  the same tokens", same.to_string());
        if !same {
            return Err("the tokens differ".into());
        }
    }
    Ok(())
}
