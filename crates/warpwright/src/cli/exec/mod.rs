//! `warpwright exec`: a program that uses the CUDA driver API, on virtual GPUs.
//!
//! ```text
//! options ── environment ──┐
//! library ── folder ───────┴── process ── its exit status
//! ```
//!
//! The library is found under the name that the loader looks for in one folder alone, which is there for one program
//! and gone after it: nothing else on this machine can take it for a driver. What the library does with its
//! environment is its own business; this command writes it.

mod environment;
#[cfg(target_os = "linux")]
mod folder;
#[cfg(target_os = "linux")]
mod library;
#[cfg(target_os = "linux")]
mod process;

use super::virtual_gpu::Check;
use super::{Failure, Outcome};
use std::ffi::OsString;
use std::path::PathBuf;
use warpwright_ptx::ir::Arch;
use warpwright_runtime::Order;

/// Run a program that uses the CUDA driver API on virtual GPUs
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Arguments {
    /// What to check besides every access's bounds: all, none, or some of memcheck, racecheck, initcheck and
    /// synccheck
    #[arg(long, value_name = "CHECKS", value_delimiter = ',', hide_possible_values = true)]
    check: Vec<Check>,
    /// Compute capabilities of the devices, such as 90, or 75,90 for two of them [default: 90]
    #[arg(
        long,
        value_name = "SM[,SM…]",
        value_delimiter = ',',
        value_parser = super::virtual_gpu::compute_capability
    )]
    sm: Vec<Arch>,
    /// Memory of each device, in bytes or as 512M, 8G
    #[arg(long, value_name = "BYTES", value_parser = environment::size)]
    memory: Option<u64>,
    /// Host threads that run blocks [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    workers: Option<u32>,
    /// Which of the streams that can go on goes on: issue, as they were asked; reverse, none before somebody waits, and
    /// then the one that was asked last; or random:SEED [default: issue]
    #[arg(long, value_name = "ORDER")]
    order: Option<Order>,
    /// Write findings to this file, one JSON object a line, instead of to standard error
    #[arg(long, value_name = "FILE")]
    findings: Option<PathBuf>,
    /// Make the exit status of the program this (1 if it is left out) where something was found or a kernel trapped
    #[arg(
        long,
        value_name = "STATUS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1",
        value_parser = clap::value_parser!(u8).range(1..)
    )]
    fail: Option<u8>,
    /// Report memory, modules, streams and events that the program never gave back
    #[arg(long)]
    leaks: bool,
    /// What to say on standard error of calls: those that are missing, each once, all of them, or none [default:
    /// missing]
    #[arg(long, value_name = "CALLS", hide_possible_values = true)]
    log: Option<Log>,
    /// The library, or the folder where it is [default: WARPWRIGHT_LIBCUDA, or beside this program]
    #[arg(long, value_name = "PATH")]
    library: Option<PathBuf>,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// What `--help` says of programs.
const HELP: &str = "\
Exit status: that of the program, 128 + N where signal N ended it; 2 if it was not started.

The program finds the driver as the loader does. It does not find this one where it opens the driver by a path of \
its own, where an `RPATH` names a folder with another one, or where it is setuid: then the loader passes over \
LD_LIBRARY_PATH. Programs that it starts find it too.";

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Log {
    Missing,
    Calls,
    Off,
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
    let status = process::run(&arguments.command, &library, &variables)?;
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
