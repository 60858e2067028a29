//! A model of five million weights on the virtual GPU, from nothing to its tokens:
//! `cargo bench -p warpwright-graph --bench tiny`; words after `--` pick parts.
//!
//! The model has the form of one that writes stories on a laptop: 6 layers of 256, Q4_K_M, 2048 tokens. The parts are
//!
//! - `kernels`: what kernels of the plans cost when they are first asked for: built, verified, decoded;
//! - `decode`: a token at several positions, step by step and replayed;
//! - `prefill`: prompts of several lengths;
//! - `memory`: the most memory that the process has had.
//!
//! Goals, on two cores: 30 tokens a second decoded, 150 of a prompt, and the first within two seconds.

#[path = "../tests/common/mod.rs"]
mod common;

use common::run::{add_weights, begin, device};
use common::{Biases, Choice, Formats, ModelConfig, Prompt};
use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use warpwright_graph::{
    EachStep, Executable, Execution, KernelLibrary, Plan, PlanOptions, RopeParams, StepRun, Store,
    execute_graph,
};
use warpwright_kernels::CacheDtype;
use warpwright_ptx::verify;
use warpwright_runtime::Device;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const LENGTHS: [u32; 5] = [8, 16, 32, 64, 128];

fn model() -> ModelConfig {
    ModelConfig {
        layers: 6,
        hidden: 256,
        heads: 4,
        kv_heads: 2,
        head_dim: 64,
        ffn: 768,
        vocab: 2048,
        formats: Formats::q4_k_m(),
        biases: Biases::None,
        head_norms: false,
        tied: false,
        rope: RopeParams::new(64),
        epsilon: 1e-5,
        cache: CacheDtype::F16,
        max_seq_len: 1024,
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn timed<T>(what: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let value = what();
    (value, start.elapsed())
}

/// Most memory that the process has had, in MiB, where the system tells.
fn peak() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
}

fn plan(device: &Device, prompt: Option<u32>) -> Outcome<Plan> {
    let model = model();
    let graph = match prompt {
        None => model.decode(1, Choice::ArgMax),
        Some(tokens) => model.prefill(1, tokens, Choice::ArgMax),
    };
    Ok(Plan::new(&graph, &PlanOptions::for_device(device), &KernelLibrary)?)
}

/// What each kernel costs that plans have and earlier ones had not.
fn kernels(device: &Device) -> Outcome {
    let vm = warpwright_vm::Device::new(warpwright_vm::DeviceConfig::default())?;
    let mut known = HashSet::new();
    let plans = [("decode", None)].into_iter().chain(LENGTHS.map(|n| ("prefill", Some(n))));
    for (name, tokens) in plans {
        let (plan, planning) = timed(|| plan(device, tokens));
        let plan = plan?;
        println!("{name} {}: planned in {:.2} ms", tokens.unwrap_or(1), ms(planning));
        println!("{:>9} {:>9} {:>9}   {:>9}  {:>6}", "build", "verify", "decode", "statements", "first");
        let mut sums = [Duration::ZERO; 3];
        for (_, launch) in plan.launches() {
            let kernel = launch.kernel.kernel();
            if !known.insert(launch.kernel.entry().to_owned()) {
                continue;
            }
            let (built, build) = timed(|| kernel.build(device.properties().arch));
            let built = built?;
            let (info, verifying) = timed(|| verify(&built.module));
            let info = info.expect("the verifier accepts it");
            let (loaded, loading) = timed(|| vm.load(&built.module, &info));
            drop(loaded?);
            let times = [build, verifying, loading];
            for (sum, time) in sums.iter_mut().zip(times) {
                *sum += time;
            }
            println!(
                "{} {:>9}   {}",
                times.map(|time| format!("{:9.2}", ms(time))).join(" "),
                warpwright_ptx::print(&built.module).lines().count(),
                launch.kernel.entry()
            );
        }
        println!(
            "{} all, {:.1} ms\n",
            sums.map(|sum| format!("{:9.2}", ms(sum))).join(" "),
            ms(sums.iter().sum())
        );
    }
    Ok(())
}

/// What the steps of a plan took, by what they are for.
fn steps(times: &[Duration], plan: &Plan) {
    let mut by: BTreeMap<String, (Duration, usize, String)> = BTreeMap::new();
    for ((step, planned), time) in plan.program().steps().iter().zip(plan.steps()).zip(times) {
        let op = step.op.name();
        let node = step.nodes.last().map_or(op, |&node| plan.program().node(node).0);
        let node = node.rsplit('.').next().unwrap_or(node);
        let of: Vec<String> = planned
            .launches()
            .map(|launch| format!("{}{:?}x{:?}", launch.kernel.entry(), launch.grid, launch.block[0]))
            .collect();
        let entry = by.entry(format!("{node} ({op})")).or_default();
        entry.0 += *time;
        entry.1 += 1;
        entry.2 = of.join(" ");
    }
    let mut rows: Vec<_> = by.into_iter().collect();
    rows.sort_by_key(|(_, (time, ..))| std::cmp::Reverse(*time));
    for (name, (time, count, of)) in rows {
        println!("  {:8.3} ms {count:3} × {name:28} {of:.150}", ms(time));
    }
}

/// The execution with the least time, and the times of its steps.
fn best(executable: &mut Executable, rounds: usize) -> Outcome<(Execution, Vec<Duration>)> {
    let mut best: Option<(Execution, Vec<Duration>)> = None;
    for _ in 0..rounds {
        let events = Mutex::new(vec![executable.stream().record_event()?]);
        let each = EachStep(|step: &mut StepRun<'_>| {
            step.run_library()?;
            events.lock().expect("nothing panics").push(step.stream().record_event()?);
            Ok(())
        });
        let execution = execute_graph(executable, &each)?;
        if best.as_ref().is_none_or(|(best, _)| execution.time < best.time) {
            let events = events.into_inner().expect("nothing panics");
            let times = events.windows(2).map(|two| two[1].elapsed(&two[0])).collect::<Result<_, _>>()?;
            best = Some((execution, times));
        }
    }
    Ok(best.expect("a round"))
}

fn decode(device: &Device, store: &mut Store) -> Outcome {
    let (plan, planning) = timed(|| plan(device, None));
    let plan = plan?;
    begin(store, &[7], &[0]);
    let (executable, binding) = timed(|| -> Outcome<Executable> {
        let executable = plan.clone().bind(store)?;
        device.synchronize()?;
        Ok(executable)
    });
    println!(
        "decode: planned in {:.2} ms, bound in {:.1} ms with kernels and weights",
        ms(planning),
        ms(binding)
    );
    drop(executable?);
    let (executable, binding) = timed(|| plan.bind(store));
    println!("        bound again in {:.2} ms", ms(binding));
    let mut executable = executable?;
    for position in [0, 100, 500] {
        begin_again(store, position);
        let (execution, times) = best(&mut executable, 9)?;
        println!("at {position}: {:.2} ms, {} launches", ms(execution.time), execution.launches);
        steps(&times, executable.plan());
    }
    let mut captured = executable.capture(&KernelLibrary)?;
    for position in [0, 100, 500] {
        begin_again(store, position);
        let mut best = Duration::MAX;
        for _ in 0..9 {
            best = best.min(captured.execute()?.time);
        }
        println!("at {position}, replayed: {:.2} ms, {:.1} tokens/s", ms(best), 1.0 / best.as_secs_f64());
    }
    Ok(())
}

fn begin_again(store: &mut Store, position: u32) {
    for (name, value) in [("ids", 7), ("positions", position), ("lengths", position + 1)] {
        store.write_state(name, &[value]).expect("written");
    }
}

fn prefill(device: &Device, store: &mut Store) -> Outcome {
    begin(store, &[7], &[0]);
    for tokens in LENGTHS {
        let (plan, planning) = timed(|| plan(device, Some(tokens)));
        let (executable, binding) = timed(|| plan?.bind(store).map_err(Box::<dyn std::error::Error>::from));
        let mut executable = executable?;
        let prompt = Prompt::new(&[(0..tokens).map(|i| i * 37 % 2048).collect()]);
        for (name, values) in prompt.inputs() {
            executable.write_input(name, &values)?;
        }
        let (execution, times) = best(&mut executable, 5)?;
        println!(
            "{tokens} tokens: {:.1} ms, {:.0} tokens/s, {} launches; planned in {:.2} ms, bound in {:.1} ms",
            ms(execution.time),
            f64::from(tokens) / execution.time.as_secs_f64(),
            execution.launches,
            ms(planning),
            ms(binding)
        );
        steps(&times, executable.plan());
    }
    Ok(())
}

fn memory(what: &str) {
    match peak() {
        Some(peak) => println!("memory: {peak:.0} MiB at most, after {what}"),
        None => println!("memory: the system does not tell how much"),
    }
}

fn main() -> Outcome {
    let picked: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wants = |part: &str| picked.is_empty() || picked.iter().any(|word| part == word);
    memory("nothing");
    let device = device(false);
    if wants("kernels") {
        kernels(&device)?;
        memory("kernels");
    }
    let mut store = Store::new(&device.default_stream());
    add_weights(&mut store, &model().decode(1, Choice::ArgMax), 1);
    memory("weights");
    if wants("decode") {
        decode(&device, &mut store)?;
        memory("decoding");
    }
    if wants("prefill") {
        prefill(&device, &mut store)?;
        memory("prompts");
    }
    Ok(())
}
