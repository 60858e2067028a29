//! `warpwright run` and `warpwright profile`: a kernel on the virtual GPU, or on a CUDA device.
//!
//! ```text
//! options ── program (the module and its kernel) ──┐
//!    └────── argument ── signature ── values ──────┼── launch ── report ── table, JSON
//!                                                  └── cuda ── times, resources
//! ```
//!
//! Files are written after the run, even if there are findings, but not after a trap: the output of an unfinished
//! kernel is no result. Standard output has the kernel's output, or the table of the profile, or with `--json` one
//! document and nothing else; everything else goes to standard error.

mod argument;
mod cuda;
mod estimate;
mod launch;
mod options;
mod program;
mod scalar;
mod signature;
mod table;
mod values;

use super::json::{self, object};
use super::{Failure, Outcome, virtual_gpu};
use launch::Finished;
use options::{ARGUMENTS_HELP, Options};
use program::Program;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use warpwright_report as data;
use warpwright_runtime::{Device, DeviceSpec};
use warpwright_vm as vm;
use warpwright_vm::render::{Renderer, symbol};

/// Run a kernel and check it on the virtual GPU, or run it on a CUDA device
#[derive(clap::Args)]
#[command(after_help = ARGUMENTS_HELP)]
pub(crate) struct Arguments {
    #[command(flatten)]
    options: Options,
}

/// Run a kernel on the virtual GPU and show its counters and hottest instructions, or time it on a CUDA device
#[derive(clap::Args)]
#[command(after_help = ARGUMENTS_HELP)]
pub(crate) struct ProfileArguments {
    #[command(flatten)]
    options: Options,
    /// Instructions to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    #[command(flatten)]
    estimate: estimate::EstimateOptions,
    /// Launches to time, on a CUDA device [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    repeat: Option<u32>,
}

pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Outcome, Failure> {
    match cuda_device(&arguments.options)? {
        Some(device) => on_cuda(&device, &arguments.options, 1, false, out),
        None => execute(&arguments.options, None, out),
    }
}

/// What a profile on the virtual GPU shows.
#[derive(Clone, Copy)]
struct Shown<'a> {
    /// The hottest instructions, so many.
    top: usize,
    estimate: &'a estimate::EstimateOptions,
}

/// Launches that a profile times.
const REPEAT: u32 = 10;

pub(crate) fn profile(arguments: &ProfileArguments, out: &mut impl Write) -> Result<Outcome, Failure> {
    let repeat = arguments.repeat;
    match cuda_device(&arguments.options)? {
        Some(_) if !arguments.estimate.cards.is_empty() || arguments.estimate.sample.is_some() => {
            Err(Failure::Message("`--estimate` and `--sample` go with the virtual GPU: `--device vm`".into()))
        }
        Some(device) => on_cuda(&device, &arguments.options, repeat.unwrap_or(REPEAT), true, out),
        None if repeat.is_some() => {
            Err(Failure::Message("`--repeat` goes with a CUDA device: `--device cuda:0`".into()))
        }
        None => {
            let shown = Shown { top: arguments.top, estimate: &arguments.estimate };
            execute(&arguments.options, Some(shown), out)
        }
    }
}

/// The device that is asked for, if it is not the virtual GPU.
fn cuda_device(options: &Options) -> Result<Option<Device>, Failure> {
    if options.device == DeviceSpec::Vm {
        return Ok(None);
    }
    let selected = options.device.select();
    let selected =
        selected.map_err(|error| Failure::Message(format!("--device {}: {error}", options.device)))?;
    Ok(Some(selected.device).filter(|device| !virtual_gpu::is_ours(device)))
}

/// Runs the kernel on a CUDA device. What a profile is asked for is shown.
fn on_cuda(
    device: &Device,
    options: &Options,
    times: u32,
    profile: bool,
    out: &mut impl Write,
) -> Result<Outcome, Failure> {
    cuda::refuse(options)?;
    let program = Program::read(&options.file)?;
    let kernel = program.kernel(options.entry.as_deref())?;
    let block = program::block_of(kernel, options)?;
    let values = values::arguments(&program.module, kernel, &options.arguments)?;
    values::check_outputs(&values, &[])?;
    let (finished, error) = match cuda::launch(device, &program, kernel, block, values, options, times) {
        Ok(finished) => (Some(finished), None),
        Err(cuda::Problem::Failed(message)) => (None, Some(message)),
        Err(cuda::Problem::Refused(failure)) => return Err(failure),
    };
    let (mut written, mut unwritten) = (Vec::new(), None);
    for (output, data) in finished.iter().flat_map(|finished| &finished.results) {
        match output.write(data) {
            Ok(()) => written.push(output.path.display().to_string()),
            Err(failure) => unwritten = unwritten.or(Some(failure)),
        }
    }
    let properties = device.properties();
    if options.json {
        let finished = finished.as_ref();
        let times = finished.iter().flat_map(|finished| &finished.times);
        let document = object! {
            file: &program.name,
            kernel: kernel.name.to_string(),
            // As it is asked for: `cuda:0`.
            device: options.device.to_string(),
            name: &properties.name,
            arch: properties.arch.to_string(),
            grid: options.grid.0,
            block: block,
            // Of the fastest launch by the device's clock, and of each.
            seconds: finished.map(|finished| finished.best_and_median().0.as_secs_f64()),
            launches: times.map(|time| time.as_secs_f64()).collect::<Vec<_>>(),
            resources: finished.map(|finished| &finished.resources),
            // Why the kernel did not run to its end.
            error: error.as_deref(),
            // The files that were written.
            written: written,
        };
        json::document(out, document)?;
    } else if let (Some(finished), true) = (&finished, profile) {
        finished.print(out, &format!("{}, {}", properties.name, properties.arch))?;
    }
    out.flush()?;
    if let Some(error) = &error {
        writeln!(io::stderr(), "error: {}: {error}", program.name)?;
    }
    match unwritten {
        Some(failure) => Err(failure),
        None => Ok(if error.is_none() { Outcome::Fine } else { Outcome::Found }),
    }
}

/// Runs the kernel. A profile shows its counters.
fn execute(options: &Options, shown: Option<Shown<'_>>, out: &mut impl Write) -> Result<Outcome, Failure> {
    virtual_gpu::checks(&options.check)?;
    let program = Program::read(&options.file)?;
    let kernel = program.kernel(options.entry.as_deref())?;
    let block = program::block_of(kernel, options)?;
    let values = values::arguments(&program.module, kernel, &options.arguments)?;
    let globals = values::globals(&program.module, &options.globals)?;
    values::check_outputs(&values, &globals)?;
    let counted = launch::Counted {
        counters: shown.is_some() || options.json,
        fetches: shown.is_some_and(|shown| !shown.estimate.cards.is_empty()),
        sample: shown.and_then(|shown| shown.estimate.sample),
    };
    // Whatever is missing is said before the kernel runs.
    options.reports.begin()?;
    let tools = shown.map_or(Ok(None), |shown| shown.estimate.tools())?;
    if counted.sample.is_some() && values.iter().any(values::Value::is_output) {
        return Err(Failure::Message(
            "`--sample` executes a part of the grid, so `out:` and `inout:` files would have a part of the result: pass \
             `in:`, `zeros:` or `poison:` instead"
                .into(),
        ));
    }
    let finished = launch::launch(&program, kernel, block, values, globals, options, counted)?;

    let Finished { report, .. } = &finished;
    let mut renderer = Renderer::of_ptx(&program.name, &program.text)
        .beside(Path::new(&options.file).parent().unwrap_or(Path::new("")))
        .help_for_budget("a kernel that needs more gets it from `--max-instructions`");
    if options.shared == 0 && program.module.has_dynamic_shared() {
        renderer = renderer.help_for_shared(
            "the kernel has dynamic shared memory, of 0 bytes here: `--shared BYTES` gives it some",
        );
    }
    let (mut written, mut unwritten) = (Vec::new(), None);
    if report.trap.is_none() {
        for (output, data) in &finished.results {
            match output.write(data) {
                Ok(()) => written.push(output.path.display().to_string()),
                // What was found is said all the same.
                Err(failure) => unwritten = unwritten.or(Some(failure)),
            }
        }
    }
    let info = data::LaunchInfo {
        file: &program.name,
        device: finished.arch.to_string(),
        grid: options.grid.0,
        block,
        seconds: finished.elapsed.as_secs_f64(),
        arguments: &finished.pointed,
        top: shown.map(|shown| shown.top),
    };
    let mut document = data::Launch::new(report, &info, &renderer);
    document.findings.iter_mut().for_each(name_allocation);
    options.reports.write(&[data::Case::from(&document)])?;
    let launched = estimate::Launched {
        program: &program,
        kernel: &kernel.name,
        grid: options.grid.0,
        block,
        shared: options.shared,
        report,
    };
    let estimates = match shown {
        Some(shown) => estimate::estimates(&launched, shown.estimate, tools)?,
        None => Vec::new(),
    };
    if options.json {
        let document = object! {
            #[serde(flatten)]
            launch: &document,
            // How long it would take on cards, where that was asked for.
            #[serde(flatten)]
            estimates: (!estimates.is_empty()).then(|| object! { estimates: estimate::objects(&estimates) }),
            // The files that were written.
            written: written,
        };
        json::document(out, document)?;
    } else {
        out.write_all(report.output.as_bytes())?;
        if let Some(lines) = &document.lines {
            let blocks = options.grid.0.iter().map(|&extent| u64::from(extent)).product();
            table::print(out, &document.counters, blocks)?;
            table::print_lines(out, lines)?;
            estimate::print(out, &estimates)?;
        }
        out.flush()?;
        show_report(&program.name, report, &renderer.color(is_colored()), !finished.results.is_empty())?;
        for assumed in &document.assumed {
            writeln!(io::stderr(), "{}", assumed.note())?;
        }
    }
    if let Some(failure) = unwritten {
        out.flush()?;
        return Err(failure);
    }
    let right = !report.has_errors() && estimate::are_complete(&estimates);
    Ok(if right { Outcome::Fine } else { Outcome::Found })
}

/// Whether standard error takes colours.
fn is_colored() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Gives what an argument points to the argument's name, beside what the command line says.
fn name_allocation(finding: &mut data::Finding) {
    let Some(allocation) = &mut finding.allocation else { return };
    if let (Some(argument), false) = (allocation.arguments.first(), allocation.name.is_empty()) {
        allocation.name = format!("{argument} ({})", allocation.name);
    }
}

/// What a virtual GPU has found in kernels of the library, for `--json`.
#[cfg(feature = "llm")]
pub(crate) fn findings(found: &[vm::Finding]) -> Vec<data::Finding> {
    let renderer = Renderer::new();
    let finding = |found| {
        let mut finding = data::Finding::new(found, &renderer);
        name_allocation(&mut finding);
        finding
    };
    found.iter().map(finding).collect()
}

/// Shows that, on standard error.
#[cfg(feature = "llm")]
pub(crate) fn show(findings: &[vm::Finding]) -> io::Result<()> {
    let (renderer, mut out) = (Renderer::new().color(is_colored()), io::stderr().lock());
    for finding in findings {
        writeln!(out, "{}", renderer.finding(finding))?;
    }
    match findings.len() {
        0 => Ok(()),
        1 => writeln!(out, "1 finding"),
        count => writeln!(out, "{count} findings"),
    }
}

/// Shows findings and trap on standard error, and says how many there are.
fn show_report(file: &str, report: &vm::Report, renderer: &Renderer<'_>, outputs: bool) -> io::Result<()> {
    if report.is_clean() {
        return Ok(());
    }
    let mut out = io::stderr().lock();
    for finding in &report.findings {
        writeln!(out, "{}", renderer.finding(finding))?;
    }
    if let Some(trap) = &report.trap {
        writeln!(out, "{}", renderer.trap(trap))?;
    }
    let kept = if report.trap.is_some() && outputs { "; no file was written" } else { "" };
    writeln!(out, "{file}: kernel `{}`: {}{kept}", symbol(&report.kernel), report.summary())
}
