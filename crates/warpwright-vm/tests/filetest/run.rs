//! Runs what a file asks for, and compares.

use super::header::{Argument, File, Mark, Run};
use super::value::{Element, Type};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use warpwright_ptx::ir::Origin;
use warpwright_vm::check::FindingKind;
use warpwright_vm::*;

/// The orders in which every run is made, interpreted and compiled.
const SCHEDULES: [Schedule; 4] =
    [Schedule::Parallel, Schedule::Seeded(0), Schedule::Seeded(1), Schedule::Seeded(2)];

/// Instructions of a run that says nothing else.
const BUDGET: u64 = 50_000_000;

/// Where multimem addresses begin, and how many there are for an argument, in bytes.
const MULTIMEM: u64 = 1 << 32;
const MULTIMEM_BYTES: u64 = 4096;

/// A finding, or a trap: its kind, and the lines that it names with what they do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    kind: String,
    sites: BTreeSet<(usize, String)>,
}

impl Found {
    fn new(kind: &str, sites: impl IntoIterator<Item = (usize, String)>) -> Self {
        Found { kind: kind.to_string(), sites: sites.into_iter().collect() }
    }

    /// Whether it is what the marks say. A launch may run out of its budget at any of several places, and
    /// threads that go round in a loop may be found at any of its places.
    fn meets(&self, marks: &Found) -> bool {
        if self.kind != marks.kind {
            return false;
        }
        match self.kind.as_str() {
            "budget" => self.sites.is_subset(&marks.sites),
            "deadlock" => {
                let lines = |found: &Found, role: &dyn Fn(&str) -> bool| -> BTreeSet<usize> {
                    found.sites.iter().filter(|(_, of)| role(of)).map(|&(line, _)| line).collect()
                };
                let found = lines(self, &|_| true);
                let in_loops = lines(marks, &|role| role == "loop");
                lines(marks, &str::is_empty).is_subset(&found)
                    && found.is_subset(&lines(marks, &|_| true))
                    && (in_loops.is_empty() || !in_loops.is_disjoint(&found))
            }
            _ => self.sites == marks.sites,
        }
    }

    fn show(&self, text: &str) -> String {
        let mut out = self.kind.clone();
        for (line, role) in &self.sites {
            let source = text.lines().nth(line.wrapping_sub(1)).unwrap_or("").split("//~").next();
            let source = source.unwrap_or("").trim();
            let _ = write!(out, "\n        line {line} {role}: `{source}`");
        }
        out
    }
}

/// Makes every run of a file: what is wrong.
pub(crate) fn check(text: &str) -> Result<(), String> {
    let file = File::parse(text)?;
    let module = warpwright_ptx::parse(text).map_err(|errors| format!("does not parse: {errors:?}"))?;
    let info = warpwright_ptx::verify(&module).map_err(|errors| format!("is refused: {errors:?}"))?;
    let mut problem = String::new();
    for run in &file.runs {
        for (schedule, native) in
            SCHEDULES.into_iter().flat_map(|schedule| [(schedule, Native::Off), (schedule, Native::Always)])
        {
            let result = once(text, run, &file.marks, (&module, &info), (schedule, native));
            if let Err(why) = result {
                let label = run.label.as_deref().unwrap_or("");
                let _ = write!(
                    problem,
                    "\n  line {} run {label} of `{}`, {schedule:?}, native code {native:?}:{why}",
                    run.line, run.entry
                );
                break;
            }
        }
    }
    if problem.is_empty() { Ok(()) } else { Err(problem) }
}

type Verified<'a> = (&'a warpwright_ptx::ir::Module, &'a warpwright_ptx::verify::ModuleInfo);

fn once(
    text: &str,
    run: &Run,
    marks: &[Mark],
    module: Verified<'_>,
    (schedule, native): (Schedule, Native),
) -> Result<(), String> {
    let refused = |error: DeviceError| format!("\n    {error}");
    let mut config = device(run);
    config.native = native;
    let device = Device::new(config).map_err(refused)?;
    let module = device.load(module.0, module.1).map_err(refused)?;
    let mut buffers = Vec::new();
    let mut args = Vec::new();
    let mut multimem = Vec::new();
    for argument in &run.args {
        match argument {
            Argument::Bytes(bytes) => args.push(Arg::Bytes(bytes.clone())),
            Argument::Buffer { ty, before, after, freed } => {
                let buffer = filled(&device, *ty, before).map_err(refused)?;
                args.push(Arg::Pointer(buffer.address()));
                if !freed {
                    buffers.push((buffer, *ty, after.as_deref()));
                }
            }
            Argument::Multimem(of) => {
                let target = match of.map(|at| args.get(at)) {
                    None => None,
                    Some(Some(&Arg::Pointer(target))) => Some(target),
                    Some(_) => return Err(format!("\n    {argument:?} names no buffer before it")),
                };
                let address = MULTIMEM + MULTIMEM_BYTES * multimem.len() as u64;
                let words: Vec<AtomicU32> = (0..MULTIMEM_BYTES / 4).map(|_| AtomicU32::new(0)).collect();
                let reserved =
                    device.reserve(address, Arc::new(words), MULTIMEM_BYTES, "multicast").map_err(refused)?;
                if let Some(target) = target {
                    let access = PageAccess::Multimem { distance: target.wrapping_sub(address) };
                    reserved.set(0, MULTIMEM_BYTES, access).map_err(refused)?;
                }
                args.push(Arg::Pointer(address));
                multimem.push(reserved);
            }
        }
    }
    let options = options(run, schedule)?;
    let config = LaunchConfig {
        grid_dim: run.options.grid,
        block_dim: run.options.block,
        shared_mem_bytes: run.options.shared,
        cooperative: run.options.cooperative,
        cluster_dim: run.options.cluster,
    };
    let running = device.launch(&module, &run.entry, &config, &args, &options).map_err(refused)?;
    let report = running.wait();
    let mut problem = String::new();
    compare_findings(text, run, marks, &report, &mut problem);
    if let Some(expected) = &run.prints
        && *expected != report.output
    {
        let _ = write!(problem, "\n    it prints {:?}, and {expected:?} is expected", report.output);
    }
    for (number, (buffer, ty, after)) in buffers.iter().enumerate() {
        if let Some(after) = after {
            compare(number, *ty, after, &buffer.read(), &mut problem);
        }
    }
    if problem.is_empty() { Ok(()) } else { Err(problem) }
}

fn device(run: &Run) -> DeviceConfig {
    let mut config = DeviceConfig::default();
    config.workers = 2;
    if let Some(sm) = run.options.sm {
        config.arch = warpwright_ptx::ir::Arch::sm(sm as u16);
    }
    config
}

fn options(run: &Run, schedule: Schedule) -> Result<Options, String> {
    let mut options = Options::checked();
    options.schedule = schedule;
    options.max_instructions = run.options.budget.unwrap_or(BUDGET);
    if run.options.strict {
        options.race = Race::Strict;
    }
    if let Some(names) = &run.options.checks {
        options.checks = Checks::MEMORY;
        for name in names {
            match name.as_str() {
                "memcheck" => {}
                "racecheck" => options.checks.race = true,
                "initcheck" => options.checks.init = true,
                "synccheck" => options.checks.sync = true,
                "synccheck=strict" => (options.checks.sync, options.checks.strict_sync) = (true, true),
                _ => return Err(format!("\n    there is no check `{name}`")),
            }
        }
    }
    Ok(options)
}

/// A buffer as a run wants it: elements that are `?` are left out.
fn filled(device: &Device, ty: Type, elements: &[Element]) -> Result<Buffer<u8>, DeviceError> {
    let size = ty.bytes();
    let buffer = device.alloc::<u8>(size * elements.len())?;
    let bytes = |element: Element| element.bits(ty).to_le_bytes();
    if !elements.contains(&Element::Unwritten) {
        let data: Vec<u8> =
            elements.iter().flat_map(|&element| bytes(element).into_iter().take(size)).collect();
        buffer.write(&data)?;
    } else {
        for (index, &element) in elements.iter().enumerate().filter(|(_, e)| **e != Element::Unwritten) {
            for (byte, value) in bytes(element).into_iter().take(size).enumerate() {
                buffer.poke(size * index + byte, value);
            }
        }
    }
    Ok(buffer)
}

fn compare(number: usize, ty: Type, expected: &[Element], found: &[u8], problem: &mut String) {
    let mut wrong = 0;
    for (index, (element, bytes)) in expected.iter().zip(found.chunks_exact(ty.bytes())).enumerate() {
        let bits = bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
        if !element.accepts(ty, bits) {
            wrong += 1;
            if wrong <= 8 {
                let _ = write!(
                    problem,
                    "\n    buffer {number}, element {index}: {} is expected, and it is {}",
                    element.show(ty),
                    ty.show(bits)
                );
            }
        }
    }
    if wrong > 8 {
        let _ = write!(problem, "\n    … {wrong} elements in all");
    }
}

fn compare_findings(text: &str, run: &Run, marks: &[Mark], report: &Report, problem: &mut String) {
    let mut missing: Vec<Found> = Vec::new();
    let mut groups: Vec<(&str, u32)> = Vec::new();
    for mark in marks.iter().filter(|mark| run.expects(mark)) {
        let site = (mark.line, mark.role.clone());
        match groups.iter().position(|&group| group == (mark.kind.as_str(), mark.group)) {
            Some(index) => {
                missing[index].sites.insert(site);
            }
            None => {
                groups.push((&mark.kind, mark.group));
                missing.push(Found::new(&mark.kind, [site]));
            }
        }
    }
    for found in findings(text, report) {
        match missing.iter().position(|marks| found.meets(marks)) {
            Some(index) => {
                missing.remove(index);
            }
            None => {
                let _ = write!(problem, "\n    unexpected {}", found.show(text));
            }
        }
    }
    for expected in missing {
        let _ = write!(problem, "\n    missing {}", expected.show(text));
    }
    if let Some(trap) = &report.trap
        && !problem.is_empty()
    {
        let _ = write!(problem, "\n    it stopped: {}", trap.message);
    }
}

/// What a report says, as marks say it.
fn findings(text: &str, report: &Report) -> Vec<Found> {
    let mut list = Vec::new();
    for finding in &report.findings {
        let sites = finding.accesses.iter().enumerate().map(|(index, access)| {
            let role = match &finding.kind {
                FindingKind::UninitializedMemory { space } => format!("{space:?}").to_lowercase(),
                FindingKind::UndefinedValue { used, cause } => match cause {
                    _ if index == 0 => format!("{used:?}").to_lowercase(),
                    Cause::Memory => "load".to_string(),
                    Cause::Register(_) => "register".to_string(),
                    _ => "lane".to_string(),
                },
                FindingKind::ExitedLanes { .. } => format!("{:?}", finding.severity).to_lowercase(),
                _ => role(access.action).to_string(),
            };
            (line(text, access.origin), role)
        });
        list.push(Found::new(finding.kind.name(), sites));
    }
    if let Some(trap) = &report.trap {
        let kind = match trap.kind {
            TrapKind::Instruction => "trap",
            TrapKind::Unsupported => "unsupported",
            TrapKind::Deadlock => "deadlock",
            TrapKind::Budget => "budget",
            TrapKind::BadAtomic => "bad-atomic",
            TrapKind::BadBarrier => "bad-barrier",
            TrapKind::BadOperand => "bad-operand",
            TrapKind::Assertion => "assertion",
            _ => "other-trap",
        };
        let origins = trap.waiting.iter().map(|waiting| waiting.origin).chain(trap.origin);
        list.push(Found::new(kind, origins.map(|origin| (line(text, origin), String::new()))));
        list.extend(trap.mbarriers.iter().map(|wait| {
            let role = format!(
                "parity={} pending={}/{} bytes={} threads={} others={}",
                wait.parity, wait.pending, wait.expected, wait.bytes, wait.threads, wait.others
            );
            Found::new("mbarrier", [(line(text, wait.origin), role)])
        }));
    }
    list
}

fn role(action: Action) -> &'static str {
    match action {
        Action::Read => "read",
        Action::Write => "write",
        Action::Atomic => "atomic",
        Action::AsyncRead => "async read",
        Action::AsyncWrite => "async write",
        _ => "",
    }
}

/// Line of an origin, from 1.
fn line(text: &str, origin: Origin) -> usize {
    let Origin::Text(span) = origin else { return 0 };
    text.as_bytes().iter().take(span.start as usize).filter(|&&byte| byte == b'\n').count() + 1
}
