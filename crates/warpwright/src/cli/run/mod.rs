//! `warpwright run` and `warpwright profile`: a kernel on the virtual GPU.
//!
//! ```text
//! options ── program (the module and its kernel) ──┐
//!    └────── argument ── signature ── values ──────┴── launch ── found, figures ── show, table, JSON
//! ```
//!
//! Files are written after the run, also where something was found, and not after a trap: what an
//! unfinished kernel leaves is no result. Standard output has what the kernel prints, or the table
//! of the profile, or with `--json` one document and nothing else; all else goes to standard error.

mod argument;
mod class;
mod figures;
mod found;
mod launch;
mod locate;
mod options;
mod program;
mod scalar;
mod show;
mod signature;
mod sources;
mod table;
mod values;

#[cfg(feature = "llm")]
pub(crate) use found::Finding;

use super::json::{self, Document};
use super::{Failure, Outcome, virtual_gpu};
use launch::Finished;
use locate::Locator;
use options::{ARGUMENTS_HELP, Options};
use program::Program;
use serde::Serialize;
use std::io::{self, Write};

/// Run a kernel on the virtual GPU, and check what it does
#[derive(clap::Args)]
#[command(after_help = ARGUMENTS_HELP)]
pub(crate) struct Arguments {
    #[command(flatten)]
    options: Options,
}

/// Run a kernel on the virtual GPU, and show its counters and hottest instructions
#[derive(clap::Args)]
#[command(after_help = ARGUMENTS_HELP)]
pub(crate) struct ProfileArguments {
    #[command(flatten)]
    options: Options,
    /// Instructions to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
}

/// What `--json` prints.
#[derive(Serialize)]
struct RunReport<'a> {
    file: &'a str,
    kernel: &'a str,
    /// The virtual device.
    device: String,
    grid: [u32; 3],
    block: [u32; 3],
    /// Wall-clock time of the launch on this machine's CPU.
    seconds: f64,
    findings: &'a [found::Finding],
    trap: Option<&'a found::Trap>,
    counters: &'a figures::Counters,
    /// The hottest instructions, of a profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<&'a [figures::Line]>,
    /// What the kernel printed.
    output: &'a str,
    /// The files that were written.
    written: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Outcome, Failure> {
    execute(&arguments.options, None, out)
}

pub(crate) fn profile(arguments: &ProfileArguments, out: &mut impl Write) -> Result<Outcome, Failure> {
    execute(&arguments.options, Some(arguments.top), out)
}

/// Runs the kernel. With `top`, its counters are shown with that many instructions.
fn execute(options: &Options, top: Option<usize>, out: &mut impl Write) -> Result<Outcome, Failure> {
    virtual_gpu::checks(&options.check)?;
    let program = Program::read(&options.file)?;
    let kernel = program.kernel(options.entry.as_deref())?;
    let block = program::block_of(kernel, options)?;
    let values = values::arguments(&program.module, kernel, &options.arguments)?;
    let globals = values::globals(&program.module, &options.globals)?;
    values::check_outputs(&values, &globals)?;
    let counted = top.is_some() || options.json;
    let finished = launch::launch(&program, kernel, block, values, globals, options, counted)?;

    let Finished { report, .. } = &finished;
    let mut locator = Locator::new(&program.module, &program.text);
    let sources = locator.read_sources(&options.file);
    let findings = found::findings(&report.findings, &locator);
    let trap = found::trap(report, &locator);
    let (mut written, mut unwritten) = (Vec::new(), None);
    if trap.is_none() {
        for (output, data) in &finished.results {
            match output.write(data) {
                Ok(()) => written.push(output.path.display().to_string()),
                // What was found is said all the same.
                Err(failure) => unwritten = unwritten.or(Some(failure)),
            }
        }
    }
    let counters = figures::counters(&report.counters, &locator, &finished.pointed);
    let lines = top.map(|top| figures::hottest(&report.counters, &locator, top));
    if options.json {
        let document = RunReport {
            file: &program.name,
            kernel: &kernel.name,
            device: finished.arch.to_string(),
            grid: options.grid.0,
            block,
            seconds: finished.elapsed.as_secs_f64(),
            findings: &findings,
            trap: trap.as_ref(),
            counters: &counters,
            lines: lines.as_deref(),
            output: &report.output,
            written,
        };
        json::write(out, &Document::new(document))?;
    } else {
        out.write_all(report.output.as_bytes())?;
        if let Some(lines) = &lines {
            table::print(out, &counters)?;
            table::print_lines(out, lines)?;
        }
        out.flush()?;
        let lacks_dynamic_shared = options.shared == 0 && program.has_dynamic_shared();
        show::Screen::new(&program.name, &locator, &sources, lacks_dynamic_shared)
            .show(&findings, trap.as_ref())?;
        summarise(&program.name, &kernel.name, &findings, trap.as_ref(), !finished.results.is_empty())?;
    }
    if let Some(failure) = unwritten {
        out.flush()?;
        return Err(failure);
    }
    let fine = findings.is_empty() && trap.is_none();
    Ok(if fine { Outcome::Fine } else { Outcome::Found })
}

/// What a virtual GPU has found in kernels of the library.
#[cfg(feature = "llm")]
pub(crate) fn findings(found: &[warpwright_vm::check::Finding]) -> Vec<Finding> {
    found::findings(found, &Locator::default())
}

/// Shows that, on standard error.
#[cfg(feature = "llm")]
pub(crate) fn show(findings: &[Finding]) -> io::Result<()> {
    let (locator, sources) = (Locator::default(), sources::Sources::default());
    show::Screen::new("", &locator, &sources, false).show(findings, None)?;
    match findings.len() {
        0 => Ok(()),
        1 => writeln!(io::stderr(), "1 finding"),
        count => writeln!(io::stderr(), "{count} findings"),
    }
}

/// Says how many things were found, where there are any.
fn summarise(
    file: &str,
    kernel: &str,
    findings: &[found::Finding],
    trap: Option<&found::Trap>,
    outputs: bool,
) -> io::Result<()> {
    let mut parts = Vec::new();
    match findings.len() {
        0 => {}
        1 => parts.push("1 finding".to_string()),
        count => parts.push(format!("{count} findings")),
    }
    if trap.is_some() {
        parts.push("a trap".to_string());
    }
    if parts.is_empty() {
        return Ok(());
    }
    let kept = if trap.is_some() && outputs { "; no file was written" } else { "" };
    writeln!(io::stderr(), "{file}: kernel `{kernel}`: {}{kept}", parts.join(" and "))
}
