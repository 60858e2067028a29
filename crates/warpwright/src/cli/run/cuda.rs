//! Runs a kernel on a CUDA device, and reports its time and its resources on a multiprocessor.
//!
//! The device does not check the kernel, so options that need the virtual GPU are refused by name rather than ignored.

use super::options::{Dims, Options};
use super::program::Program;
use super::values::{Contents, Fill, Output, Value};
use crate::cli::Failure;
use crate::cli::virtual_gpu::Check;
use crate::cli::virtual_gpu::Race;
use serde::Serialize;
use std::io::{self, Write};
use std::time::Duration;
use warpwright_ptx::ir::Function as Entry;
use warpwright_runtime::{
    Buffer, Device, Function, LaunchAttributes, LaunchConfig, RawArg, RuntimeError, Stream,
};

/// A run that is over.
pub(super) struct Finished {
    /// Of each launch, in order.
    pub(super) times: Vec<Duration>,
    pub(super) resources: Resources,
    /// Files to be written, with the elements.
    pub(super) results: Vec<(Output, Vec<u8>)>,
}

/// What a kernel takes of a device.
#[derive(Debug, Serialize)]
pub(super) struct Resources {
    /// Registers of a thread.
    registers: Option<u32>,
    /// Local memory of a thread, in bytes.
    local_bytes: Option<u64>,
    /// Shared memory of a block, in bytes.
    static_shared: u64,
    dynamic_shared: u32,
    /// Blocks and threads of a multiprocessor that are resident at once.
    blocks_per_multiprocessor: u32,
    threads_per_multiprocessor: u32,
    /// Part of the threads that a multiprocessor could hold.
    occupancy: f64,
}

/// Why there is no result.
pub(super) enum Problem {
    /// The device could not be asked.
    Refused(Failure),
    /// The kernel failed on it.
    Failed(String),
}

impl From<RuntimeError> for Problem {
    fn from(error: RuntimeError) -> Self {
        match error {
            RuntimeError::Failed(failure) => Problem::Failed(failure.to_string()),
            error => Problem::Refused(Failure::Message(error.to_string())),
        }
    }
}

/// Refuses what the virtual GPU alone can do.
pub(super) fn refuse(options: &Options) -> Result<(), Failure> {
    let checks = options.check.iter().any(|&check| check != Check::None);
    let asked = [
        ("--check", checks),
        ("--race", options.race != Race::Normal),
        ("--native", options.native.when.is_some()),
        ("--deterministic", options.deterministic),
        ("--scatter", options.scatter),
        ("--schedule-seed", options.schedule_seed.is_some()),
        ("--sm", options.sm.is_some()),
        ("--tensor-core", options.tensor_core.is_some()),
        ("--max-instructions", options.max_instructions.is_some()),
        ("--workers", options.workers.is_some()),
        ("--global", !options.globals.is_empty()),
        ("--sarif", options.reports.sarif.is_some()),
        ("--junit", options.reports.junit.is_some()),
    ];
    let Some((option, _)) = asked.into_iter().find(|(_, asked)| *asked) else { return Ok(()) };
    Err(Failure::Message(format!(
        "--device {}: `{option}` needs the virtual GPU: `--device vm`{}",
        options.device,
        if option == "--check" { ", or `warpwright exec --check all --` before this command" } else { "" }
    )))
}

/// Runs the kernel `times` times, each time on what the arguments say. What the last one leaves is the result.
pub(super) fn launch(
    device: &Device,
    program: &Program,
    entry: &Entry,
    block: [u32; 3],
    values: Vec<Value>,
    options: &Options,
    times: u32,
) -> Result<Finished, Problem> {
    let stream = device.default_stream();
    let module = device.load(&program.module, &program.info)?;
    let function = module.load_function(&entry.name)?;
    if options.shared > function.max_dynamic_shared() {
        function.set_max_dynamic_shared(options.shared)?;
    }
    let values: Vec<_> =
        values.into_iter().map(|value| Parameter::new(&stream, value)).collect::<Result<_, _>>()?;
    let Dims([x, y, z]) = options.grid;
    let config =
        LaunchConfig { grid_dim: (x, y, z), block_dim: block.into(), shared_mem_bytes: options.shared };
    let attributes = LaunchAttributes::default();
    let attributes = if options.cooperative { attributes.cooperative() } else { attributes };
    let cluster = options.cluster.map(|Dims([x, y, z])| (x, y, z));
    let attributes = cluster.map_or(attributes, |cluster| attributes.cluster(cluster));
    let mut measured = Vec::new();
    for _ in 0..times {
        values.iter().try_for_each(|value| value.fill(&stream))?;
        let before = stream.record_event()?;
        let launch = stream.launch_builder(&function).attributes(attributes);
        let launch = values.iter().fold(launch, |launch, value| launch.arg(value.arg()));
        // SAFETY: the kernel is given buffers that were made for it and are kept until it is over. If it goes beyond
        // them, it can change what else this process has on the device: buffers that it made for the same kernel.
        // Running it there is what the user of this command has asked for.
        #[allow(
            unsafe_code,
            reason = "a kernel that nobody here has written, with parameters as they are given"
        )]
        unsafe { launch.launch(config) }?;
        let after = stream.record_event();
        // If the kernel has failed, this says so by its name, and the event may say it without.
        stream.synchronize()?;
        measured.push(after?.elapsed(&before)?);
    }
    let mut results = Vec::new();
    for value in values {
        if let Parameter::Buffer { buffer, output: Some(output), .. } = value {
            results.push((output, stream.clone_dtoh(&buffer)?));
        }
    }
    Ok(Finished { times: measured, resources: resources(&function, block, options.shared), results })
}

fn resources(function: &Function, block: [u32; 3], shared: u32) -> Resources {
    let attributes = function.attributes();
    let threads = block.iter().product::<u32>();
    let blocks = function.occupancy(threads, shared);
    let max = function.device().properties().threads_per_multiprocessor;
    Resources {
        registers: attributes.registers,
        local_bytes: attributes.local_bytes,
        static_shared: attributes.static_shared,
        dynamic_shared: shared,
        blocks_per_multiprocessor: blocks,
        threads_per_multiprocessor: blocks * threads,
        occupancy: f64::from(blocks * threads) / f64::from(max.max(1)),
    }
}

/// What the kernel gets.
enum Parameter {
    Bytes(Vec<u8>),
    Buffer { buffer: Buffer<u8>, fill: Fill, output: Option<Output> },
}

impl Parameter {
    fn new(stream: &Stream, value: Value) -> Result<Self, Problem> {
        let contents = match value {
            Value::Bytes(bytes) => return Ok(Parameter::Bytes(bytes)),
            Value::Buffer(contents) => contents,
        };
        let Contents { parameter, argument, bytes, fill, output } = contents;
        let buffer = stream.alloc::<u8>(usize::try_from(bytes).unwrap_or(usize::MAX)).map_err(|error| {
            Problem::Refused(Failure::Message(format!("{parameter} ({argument}): {error}")))
        })?;
        Ok(Parameter::Buffer { buffer, fill, output })
    }

    /// Gives its buffer what it holds at first.
    fn fill(&self, stream: &Stream) -> Result<(), RuntimeError> {
        match self {
            Parameter::Buffer { buffer, fill: Fill::Data(data), .. } => stream.memcpy_htod(data, buffer),
            Parameter::Buffer { buffer, fill: Fill::Zeros, .. } => stream.memset_zeros(buffer),
            Parameter::Buffer { fill: Fill::Nothing, .. } | Parameter::Bytes(_) => Ok(()),
        }
    }

    fn arg(&self) -> RawArg {
        match self {
            Parameter::Bytes(bytes) => RawArg::from_bytes(bytes),
            Parameter::Buffer { buffer, .. } => buffer.into(),
        }
    }
}

impl Finished {
    /// The time of the fastest launch, and of the one in the middle.
    pub(super) fn best_and_median(&self) -> (Duration, Duration) {
        let mut times = self.times.clone();
        times.sort();
        let best = times.first().copied().unwrap_or_default();
        (best, times.get(times.len() / 2).copied().unwrap_or_default())
    }

    /// What a profile shows.
    pub(super) fn print(&self, out: &mut impl Write, device: &str) -> io::Result<()> {
        let (best, median) = self.best_and_median();
        let Resources { static_shared, dynamic_shared, blocks_per_multiprocessor: blocks, .. } =
            self.resources;
        let known = |number: Option<u64>, unit: &str| {
            number.map_or_else(|| "not known".to_string(), |number| format!("{number} {unit}"))
        };
        let resources = &self.resources;
        let rows = [
            ("device", device.to_string()),
            (
                "time of a launch",
                format!(
                    "{}, the fastest of {}; {} in the middle",
                    time(best),
                    self.times.len(),
                    time(median)
                ),
            ),
            ("registers", known(resources.registers.map(u64::from), "a thread")),
            ("local memory", known(resources.local_bytes, "bytes a thread")),
            ("shared memory", format!("{static_shared} bytes static, {dynamic_shared} dynamic, a block")),
            (
                "resident on a multiprocessor",
                format!(
                    "{blocks} blocks, {} threads: {:.0}%",
                    resources.threads_per_multiprocessor,
                    100.0 * resources.occupancy
                ),
            ),
        ];
        rows.iter().try_for_each(|(name, value)| writeln!(out, "{name:32}{value}"))
    }
}

/// A time that a kernel takes, for people.
fn time(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds @ ..0.01 => format!("{:.1} µs", seconds * 1e6),
        seconds @ ..10.0 => format!("{:.1} ms", seconds * 1e3),
        seconds => format!("{seconds:.1} s"),
    }
}
