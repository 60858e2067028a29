//! `warpwright exec`: a program that uses the CUDA driver API, on virtual GPUs.
//!
//! ```text
//! options ── environment ──┐
//! libraries ── folder ─────┴── process ── its exit status
//! ```
//!
//! A temporary folder holds the library under the name that the loader looks for; it exists for one program only and is
//! removed after it, so nothing else on this machine can load the library as a driver. The library interprets its
//! environment; this command only sets it.

mod environment;
#[cfg(target_os = "linux")]
mod folder;
#[cfg(target_os = "linux")]
mod library;
#[cfg(target_os = "linux")]
mod process;
pub(crate) mod ptxas;
#[cfg(target_os = "linux")]
mod reports;

use super::reports::ReportFiles;
use super::virtual_gpu::{Check, NativeArgument, Race};
use super::{Failure, Outcome};
use std::ffi::OsString;
use std::path::PathBuf;
use warpwright_ptx::ir::Arch;
use warpwright_runtime::Order;

/// Run a program that uses the CUDA driver API on virtual GPUs
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Arguments {
    /// Checks besides the bounds of every access: all, none, or some of memcheck, racecheck, initcheck, synccheck and
    /// synccheck=strict; and api, calls that return an error
    #[arg(long, value_name = "CHECKS", value_delimiter = ',', hide_possible_values = true)]
    check: Vec<Check>,
    /// Definition of a race: `strict` follows the letter of the memory model [default: normal]
    #[arg(long, value_name = "RULE", hide_possible_values = true)]
    race: Option<Race>,
    #[command(flatten)]
    native: NativeArgument,
    /// Compute capabilities of the devices, such as 90, or 75,90 for two of them [default: 90]
    #[arg(
        long,
        value_name = "SM[,SM…]",
        value_delimiter = ',',
        value_parser = super::virtual_gpu::compute_capability
    )]
    sm: Vec<Arch>,
    /// The version of CUDA whose driver this is, such as 12.8: newer PTX is refused, and programs find that version's
    /// functions [default: 13.5]
    #[arg(long, value_name = "VERSION", value_parser = environment::release)]
    driver: Option<u32>,
    /// Memory of each device, in bytes or as 512M, 8G
    #[arg(long, value_name = "BYTES", value_parser = environment::size)]
    memory: Option<u64>,
    /// Host threads that run blocks [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    workers: Option<u32>,
    /// The order in which streams run: issue, in the order of calls; reverse, only when the program waits, and then the
    /// stream of the latest call first; or random:SEED [default: issue]
    #[arg(long, value_name = "ORDER")]
    order: Option<Order>,
    /// Stop a kernel that executes more instructions than this; each counts once per thread [default: 2⁴⁰]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_instructions: Option<u64>,
    /// Write findings to this file, one JSON object a line, instead of to standard error
    #[arg(long, value_name = "FILE")]
    findings: Option<PathBuf>,
    #[command(flatten)]
    reports: ReportFiles,
    /// The exit status (1 if omitted) if the program's own is 0 and there was an error: a finding that is no warning, a
    /// trap or, with --leaks, a leak, in any process that it has started
    #[arg(
        long,
        value_name = "STATUS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1",
        value_parser = clap::value_parser!(u8).range(1..)
    )]
    fail: Option<u8>,
    /// What an error of a kernel does: stop, as on a GPU, where every later call in its context fails; or continue: the
    /// next call that waits returns it, and the context goes on [default: stop]
    #[arg(long, value_name = "WHAT", hide_possible_values = true)]
    on_error: Option<OnError>,
    /// Report memory, modules, streams and events that the program never released
    #[arg(long)]
    leaks: bool,
    /// Calls to report on standard error: unsupported ones, each once (missing), all of them (calls), or none (off)
    /// [default: missing]
    #[arg(long, value_name = "CALLS", hide_possible_values = true)]
    log: Option<Log>,
    /// The library, or the folder where it is [default: WARPWRIGHT_LIBCUDA, or beside this program]
    #[arg(long, value_name = "PATH")]
    library: Option<PathBuf>,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// The exit status of the loader for a program whose libraries it does not find.
#[cfg(target_os = "linux")]
const NOT_LOADED: u8 = 127;

/// The part of `--help` on programs.
const HELP: &str = "\
Exit status: that of the program, 128 + N if signal N ended it; 2 if it was not started.

The loader finds this library as the driver, also for programs that the program starts. It does not if the program \
is setuid: then the loader ignores LD_LIBRARY_PATH and LD_AUDIT.";

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Log {
    Missing,
    Calls,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum OnError {
    Stop,
    Continue,
}

#[cfg(target_os = "linux")]
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    let variables = environment::variables(arguments)?;
    let library = library::find(arguments.library.as_deref()).map_err(|error| error.to_string())?;
    if let Some(file) = &arguments.findings {
        // Here, where it can be said; and what an earlier run has left is not this program's.
        std::fs::write(file, "")
            .map_err(|error| Failure::Message(format!("cannot write {}: {error}", file.display())))?;
    }
    let written = reports::Written::begin(arguments)?;
    let libraries = library::Libraries::beside(library);
    let keep = written == reports::Written::Nowhere;
    let ended = process::run(&arguments.command, &libraries, &variables, arguments.fail, keep)?;
    let status = ended.status;
    written.report(arguments, ended.findings)?;
    if status == NOT_LOADED
        && arguments.log != Some(Log::Off)
        && let Some(missing) = libraries.missing()
    {
        eprintln!("warpwright: {missing}");
    }
    Ok(Outcome::Status(status))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    environment::variables(arguments)?;
    Err(Failure::Message(format!(
        "`exec` needs Linux, where programs find the CUDA driver by LD_LIBRARY_PATH; this is {}",
        std::env::consts::OS
    )))
}
