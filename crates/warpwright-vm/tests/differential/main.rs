//! Random programs on the VM against a scalar evaluator: every register and every byte of memory of every thread must be
//! the same, and nothing may be found. They are interpreted and compiled, with every check, which must count the same, and
//! compiled without checks.
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
use warpwright_vm::{Arg, Checks, Counters, Device, DeviceConfig, LaunchConfig, Native, Options, Schedule};

/// Programs that a test run and a full one run.
const PROGRAMS: u64 = 4_000;
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

    fn options(&self, checks: Checks) -> Options {
        let schedule =
            if self.seed.is_multiple_of(2) { Schedule::Parallel } else { Schedule::Seeded(self.seed) };
        Options { checks, schedule, ..Options::default() }
    }
}

/// A device that interprets, and one that compiles.
type Devices = [Device; 2];

fn devices() -> Devices {
    [Native::Off, Native::Always].map(|native| {
        let mut config = DeviceConfig::default();
        (config.arch, config.workers, config.native) = (Arch::sm(90), 1, native);
        Device::new(config).expect("a device with one worker")
    })
}

/// What a launch counts, whatever executes it.
fn counted(counters: &Counters) -> String {
    let Counters {
        instructions, warp_instructions, longest_warp, by_opcode, divergent_branches, lines, ..
    } = counters;
    format!("{instructions} {warp_instructions} {longest_warp} {divergent_branches} {by_opcode:?} {lines:?}")
}

/// The PTX of some programs, parsed. What the generator makes is PTX: anything else is a mistake in it.
fn module_of(trees: &[Tree]) -> Module {
    let text = generate::module(trees);
    parse(&text).unwrap_or_else(|problems| panic!("the generator's PTX is none: {problems:?}\n{text}"))
}

/// How the programs fare: for each, what is wrong with it, if anything.
fn judge(devices: &Devices, module: &Module, cases: &[Case]) -> Vec<Option<String>> {
    let info = match verify(module) {
        Ok(info) => info,
        Err(problems) => panic!("the verifier refuses the generator's PTX: {problems:?}"),
    };
    let loaded: Vec<_> = match devices.iter().map(|device| device.load(module, &info)).collect() {
        Ok(loaded) => loaded,
        Err(error) => return cases.iter().map(|_| Some(format!("not loaded: {error}"))).collect(),
    };
    let evaluator = Program::new(module);
    let judge = |(i, case): (usize, &Case)| {
        let entry = format!("p{i}");
        let config = LaunchConfig::new(case.blocks, case.threads);
        let position = |at: usize| ThreadPosition {
            block: at as u32 / case.threads,
            thread: at as u32 % case.threads,
            threads_of_block: case.threads,
        };
        let mut expected = case.input.clone();
        for (at, record) in expected.chunks_mut(RECORD).enumerate() {
            evaluator.run(&entry, position(at), record);
        }
        let mut counts = Vec::new();
        for (native, checks) in [(0, Checks::all()), (1, Checks::all()), (1, Checks::MEMORY)] {
            let how = format!(
                "{}, {}",
                ["interpreted", "compiled"][native],
                if checks.race { "all checks" } else { "memory checks" }
            );
            let device = &devices[native];
            let buffer = device.clone_htod(&case.input).expect("memory for a few records");
            let options = case.options(checks);
            let launch = device.launch(&loaded[native], &entry, &config, &[Arg::buffer(&buffer)], &options);
            let report = match launch {
                Ok(launch) => launch.wait(),
                Err(error) => return Some(format!("{how}: not launched: {error}")),
            };
            if !report.is_clean() {
                return Some(format!("{how}: found: {report:?}").chars().take(2000).collect());
            }
            counts.push(counted(&report.counters));
            let output = buffer.read();
            if let Some(byte) = expected.iter().zip(&output).position(|(a, b)| a != b) {
                let at = byte / RECORD;
                let record = at * RECORD..(at + 1) * RECORD;
                let ThreadPosition { block, thread, .. } = position(at);
                let [input, expected, output] =
                    [&case.input, &expected, &output].map(|of| &of[record.clone()]);
                let difference = generate::difference(byte % RECORD, input, expected, output);
                return Some(format!("{how}: block {block}, thread {thread}: {difference}"));
            }
        }
        (counts[0] != counts[1]).then(|| format!("counted {}, compiled {}", counts[0], counts[1]))
    };
    cases.iter().enumerate().map(judge).collect()
}

/// What is wrong with one program, alone in its module.
fn judge_one(devices: &Devices, case: &Case) -> Option<String> {
    judge(devices, &module_of(std::slice::from_ref(&case.tree)), std::slice::from_ref(case)).pop().flatten()
}

/// A program that differs, as small as it can be made, and what is wrong with it.
fn explain(devices: &Devices, mut case: Case) -> String {
    let seed = case.seed;
    let Some(_) = judge_one(devices, &case) else {
        return format!("seed {seed}: differs only beside the other programs of its module");
    };
    case.tree = shrink::smallest(&case.tree, |tree| {
        let smaller = Case { tree: tree.clone(), input: case.input.clone(), ..case };
        judge_one(devices, &smaller).is_some()
    });
    let wrong = judge_one(devices, &case).unwrap_or_default();
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
        let devices = devices();
        while wrong.lock().is_ok_and(|wrong| wrong.len() < 5) {
            let start = next.fetch_add(BATCH, Relaxed);
            if start >= count {
                break;
            }
            let cases: Vec<Case> = (start..count.min(start + BATCH)).map(|i| Case::new(first + i)).collect();
            let trees: Vec<Tree> = cases.iter().map(|case| case.tree.clone()).collect();
            let verdicts = judge(&devices, &module_of(&trees), &cases);
            for (case, _) in cases.into_iter().zip(verdicts).filter(|(_, verdict)| verdict.is_some()) {
                let explained = explain(&devices, case);
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
