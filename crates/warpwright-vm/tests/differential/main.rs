//! Random programs on the VM, with every check on, against a scalar evaluator: every register and every
//! byte of memory of every thread must be the same, and nothing may be found.
//!
//! `WARPWRIGHT_DIFFERENTIAL=300000` runs that many programs, `WARPWRIGHT_DIFFERENTIAL_SEED=7` begins with
//! that seed. A program that differs is cut down to what is needed for it to differ, and printed.

mod conversion;
mod evaluate;
mod float;
mod forms;
mod generate;
mod integer;
mod lower;
mod operate;
mod random;
mod shrink;

use evaluate::{Program, ThreadPosition};
use generate::{RECORD, Tree};
use random::Random;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use warpwright_ptx::ir::{Arch, Module};
use warpwright_ptx::{parse, verify};
use warpwright_vm::{Arg, Checks, Device, DeviceConfig, LaunchConfig, Options, Schedule};

/// Programs that a test run and a full one run.
const PROGRAMS: u64 = 6_000;
const FULL_PROGRAMS: u64 = 300_000;

/// Programs of a module.
const BATCH: u64 = 16;

/// A program with its inputs.
struct Case {
    seed: u64,
    tree: Tree,
    blocks: u32,
    threads: u32,
    /// The records of all threads.
    input: Vec<u8>,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let tree = generate::program(&mut random);
        let threads = match random.below(4) {
            0 => 32,
            1 => 1 + random.below(31) as u32,
            2 => 33 + random.below(31) as u32,
            _ => 1 + random.below(generate::MAX_THREADS) as u32,
        };
        let blocks = if random.once_in(4) { 2 } else { 1 };
        let input = (0..blocks * threads).flat_map(|_| generate::record(&mut random)).collect();
        Case { seed, tree, blocks, threads, input }
    }

    fn options(&self) -> Options {
        let schedule =
            if self.seed.is_multiple_of(2) { Schedule::Parallel } else { Schedule::Seeded(self.seed) };
        Options { checks: Checks::all(), schedule, ..Options::default() }
    }
}

fn device() -> Device {
    let mut config = DeviceConfig::default();
    (config.arch, config.workers) = (Arch::sm(90), 1);
    Device::new(config).expect("a device with one worker")
}

/// The PTX of some programs, parsed. What the generator makes is PTX: anything else is a mistake in it.
fn module_of(trees: &[Tree]) -> Module {
    let text = generate::module(trees);
    parse(&text).unwrap_or_else(|problems| panic!("the generator's PTX is none: {problems:?}\n{text}"))
}

/// How the programs fare: for each, what is wrong with it, if anything.
fn judge(device: &Device, module: &Module, cases: &[Case]) -> Vec<Option<String>> {
    let info = match verify(module) {
        Ok(info) => info,
        Err(problems) => panic!("the verifier refuses the generator's PTX: {problems:?}"),
    };
    let loaded = match device.load(module, &info) {
        Ok(loaded) => loaded,
        Err(error) => return cases.iter().map(|_| Some(format!("not loaded: {error}"))).collect(),
    };
    let evaluator = Program::new(module);
    let judge = |(i, case): (usize, &Case)| {
        let entry = format!("p{i}");
        let buffer = device.clone_htod(&case.input).expect("memory for a few records");
        let config = LaunchConfig::new(case.blocks, case.threads);
        let launch = device.launch(&loaded, &entry, &config, &[Arg::buffer(&buffer)], &case.options());
        let report = match launch {
            Ok(launch) => launch.wait(),
            Err(error) => return Some(format!("not launched: {error}")),
        };
        if !report.is_clean() {
            return Some(format!("found: {report:?}").chars().take(2000).collect());
        }
        let output = buffer.read();
        let records = case.input.chunks(RECORD).zip(output.chunks(RECORD)).enumerate();
        records
            .map(|(at, (input, output))| {
                let (block, thread) = (at as u32 / case.threads, at as u32 % case.threads);
                let mut expected = input.to_vec();
                evaluator.run(
                    &entry,
                    ThreadPosition { block, thread, threads_of_block: case.threads },
                    &mut expected,
                );
                let byte = expected.iter().zip(output).position(|(a, b)| a != b)?;
                Some(format!(
                    "block {block}, thread {thread}: {}",
                    generate::difference(byte, input, &expected, output)
                ))
            })
            .find_map(|difference| difference)
    };
    cases.iter().enumerate().map(judge).collect()
}

/// What is wrong with one program, alone in its module.
fn judge_one(device: &Device, case: &Case) -> Option<String> {
    judge(device, &module_of(std::slice::from_ref(&case.tree)), std::slice::from_ref(case)).pop().flatten()
}

/// A program that differs, as small as it can be made, and what is wrong with it.
fn explain(device: &Device, mut case: Case) -> String {
    let seed = case.seed;
    let Some(_) = judge_one(device, &case) else {
        return format!("seed {seed}: differs only beside the other programs of its module");
    };
    case.tree = shrink::smallest(&case.tree, |tree| {
        let smaller = Case { tree: tree.clone(), input: case.input.clone(), ..case };
        judge_one(device, &smaller).is_some()
    });
    let wrong = judge_one(device, &case).unwrap_or_default();
    let text = generate::module(std::slice::from_ref(&case.tree));
    format!("seed {seed}, {} blocks of {} threads: {wrong}\n{text}", case.blocks, case.threads)
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not `{text}`")))
}

#[test]
fn programs_do_what_the_evaluator_does() {
    let full = std::env::var_os("WARPWRIGHT_FULL").is_some();
    let count = number("WARPWRIGHT_DIFFERENTIAL").unwrap_or(if full { FULL_PROGRAMS } else { PROGRAMS });
    let first = number("WARPWRIGHT_DIFFERENTIAL_SEED").unwrap_or(1);
    let next = AtomicU64::new(0);
    let wrong = std::sync::Mutex::new(Vec::new());
    let work = || {
        let device = device();
        while wrong.lock().is_ok_and(|wrong| wrong.len() < 5) {
            let start = next.fetch_add(BATCH, Relaxed);
            if start >= count {
                break;
            }
            let cases: Vec<Case> = (start..count.min(start + BATCH)).map(|i| Case::new(first + i)).collect();
            let trees: Vec<Tree> = cases.iter().map(|case| case.tree.clone()).collect();
            let verdicts = judge(&device, &module_of(&trees), &cases);
            for (case, _) in cases.into_iter().zip(verdicts).filter(|(_, verdict)| verdict.is_some()) {
                let explained = explain(&device, case);
                if let Ok(mut wrong) = wrong.lock() {
                    wrong.push(explained);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        (0..cores).for_each(|_| drop(scope.spawn(work)));
    });
    let wrong = wrong.into_inner().unwrap_or_default();
    assert!(wrong.is_empty(), "{} programs differ:\n\n{}", wrong.len(), wrong.join("\n\n"));
}
