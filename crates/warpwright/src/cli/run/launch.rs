//! Runs a kernel on a virtual device.

use super::options::{Dims, Options};
use super::program::Program;
use super::values::{Contents, Fill, Global, Output, Value};
use crate::cli::virtual_gpu::Race;
use crate::cli::{Failure, virtual_gpu};
use std::fmt;
use std::time::{Duration, Instant};
use warpwright_ptx::diag::LineIndex;
use warpwright_ptx::ir::{Arch, Function, Origin};
use warpwright_report::BufferArgument;
use warpwright_vm as vm;

/// A run that is over.
pub(super) struct Finished {
    pub(super) arch: Arch,
    pub(super) report: vm::Report,
    pub(super) elapsed: Duration,
    pub(super) pointed: Vec<BufferArgument>,
    /// Files to be written, with the elements.
    pub(super) results: Vec<(Output, Vec<u8>)>,
}

/// Refused by the device: its words.
fn refused(error: impl fmt::Display) -> Failure {
    Failure::Message(error.to_string())
}

/// Why a module was not loaded, with the line, where it is about one.
fn not_loaded(program: &Program, error: &vm::DeviceError) -> Failure {
    let place = match error {
        vm::DeviceError::Load(vm::LoadError { origin: Origin::Text(span), .. }) => {
            format!("{}:{}", program.name, LineIndex::new(&program.text).position(span.start).line)
        }
        _ => program.name.clone(),
    };
    Failure::Message(format!("{place}: {error}"))
}

/// What is counted.
#[derive(Clone, Copy)]
pub(super) struct Counted {
    pub(super) counters: bool,
    pub(super) fetches: bool,
    /// Blocks that are executed, if not all.
    pub(super) sample: Option<u64>,
}

pub(super) fn launch(
    program: &Program,
    kernel: &Function,
    block: [u32; 3],
    values: Vec<Value>,
    globals: Vec<Global>,
    options: &Options,
    counted: Counted,
) -> Result<Finished, Failure> {
    let checks = virtual_gpu::checks(&options.check)?;
    let arch = options.sm.unwrap_or(program.module.target.arch);
    let mut config = virtual_gpu::config(arch);
    config.workers = options.workers.unwrap_or(0);
    config.tensor_core = options.tensor_core;
    options.native.apply(&mut config);
    let device = vm::Device::new(config).map_err(refused)?;
    let module = device.load(&program.module, &program.info).map_err(|error| not_loaded(program, &error))?;

    for global in &globals {
        if let Some(data) = &global.initial {
            device.write_variable(&module, &global.name, data).map_err(refused)?;
        }
    }
    let mut buffers = Vec::new();
    let mut pointed = Vec::new();
    let mut arguments = Vec::with_capacity(values.len());
    for value in values {
        arguments.push(match value {
            Value::Bytes(bytes) => vm::Arg::Bytes(bytes),
            Value::Buffer(contents) => {
                let buffer = fill(&device, &contents)?;
                let Contents { parameter, argument, output, .. } = contents;
                let address = vm::Arg::buffer(&buffer);
                pointed.push(BufferArgument { parameter, argument, address: buffer.address() });
                buffers.push((buffer, output));
                address
            }
        });
    }
    let Dims([x, y, z]) = options.grid;
    let [block_x, block_y, block_z] = block;
    let mut config = vm::LaunchConfig::new(1, 1);
    config.grid_dim = (x, y, z);
    config.block_dim = (block_x, block_y, block_z);
    config.shared_mem_bytes = options.shared;
    config.cooperative = options.cooperative;
    config.cluster_dim = options.cluster.map(|Dims([x, y, z])| (x, y, z));
    let run = vm::Options {
        checks,
        race: match options.race {
            Race::Normal => vm::Race::Normal,
            Race::Strict => vm::Race::Strict,
        },
        schedule: match (options.schedule_seed, options.deterministic) {
            (seed, _) if options.scatter => vm::Schedule::Scattered(seed.unwrap_or(0)),
            (Some(seed), _) => vm::Schedule::Seeded(seed),
            (None, true) => vm::Schedule::Seeded(0),
            (None, false) => vm::Schedule::Parallel,
        },
        counters: counted.counters,
        fetches: counted.fetches,
        sample: counted.sample,
        max_instructions: options.max_instructions.unwrap_or(vm::Options::default().max_instructions),
    };
    let start = Instant::now();
    let running = device.launch(&module, &kernel.name, &config, &arguments, &run).map_err(refused)?;
    let report = running.wait();
    let elapsed = start.elapsed();

    let mut results = Vec::new();
    for (buffer, output) in buffers {
        if let Some(output) = output {
            results.push((output, buffer.read()));
        }
    }
    for global in globals {
        if let Some(output) = global.output {
            let data = device.read_variable(&module, &global.name).map_err(refused)?;
            results.push((output, data));
        }
    }
    Ok(Finished { arch, report, elapsed, pointed, results })
}

/// A buffer with what it holds at first.
fn fill(device: &vm::Device, contents: &Contents) -> Result<vm::Buffer<u8>, Failure> {
    let refused = |error: vm::DeviceError| {
        Failure::Message(format!("{} ({}): {error}", contents.parameter, contents.argument))
    };
    let size = usize::try_from(contents.bytes).unwrap_or(usize::MAX);
    let buffer = device.alloc_named(&contents.argument, size).map_err(refused)?;
    match &contents.fill {
        Fill::Data(data) => buffer.write(data).map_err(refused)?,
        Fill::Zeros => buffer.zero(),
        Fill::Nothing => {}
    }
    Ok(buffer)
}
