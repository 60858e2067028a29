//! `warpwright referee`: judges a kernel by a specification. The referee is a part of the Python package; this becomes it.

use super::{Failure, Outcome};
use std::ffi::OsString;
use std::process::Command;

/// The Python whose package has the referee: the package's own `warpwright` sets it.
const PYTHON: &str = "WARPWRIGHT_PYTHON";

/// Judge a kernel by a specification: accepted, or rejected and why
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// SPEC CANDIDATE, and options: `warpwright referee --help` has them
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    let python = std::env::var_os(PYTHON).unwrap_or_else(|| "python3".into());
    let name = python.to_string_lossy();
    let missing = |why: &str| {
        Failure::Message(format!(
            "the referee is a part of the Python package, and {name} {why}: run `pip install .` in a checkout of \
             warpwright, or set {PYTHON} to the Python that has it"
        ))
    };
    let found = Command::new(&python)
        .args(["-c", "import sys, importlib.util as u; sys.exit(u.find_spec('warpwright') is None)"])
        .stderr(std::process::Stdio::null())
        .status();
    match found {
        Err(error) => return Err(missing(&format!("cannot be started ({error})"))),
        Ok(status) if !status.success() => return Err(missing("does not have it")),
        Ok(_) => {}
    }
    become_program(Command::new(&python).args(["-m", "warpwright.referee"]).args(&arguments.arguments))
        .map_err(|error| missing(&format!("cannot be started ({error})")))
}

/// Becomes a program, which then has this one's process.
#[cfg(unix)]
fn become_program(command: &mut Command) -> std::io::Result<Outcome> {
    use std::os::unix::process::CommandExt;
    Err(command.exec())
}

/// Runs a program, and has its exit status.
#[cfg(not(unix))]
fn become_program(command: &mut Command) -> std::io::Result<Outcome> {
    let status = command.status()?;
    Ok(Outcome::Status(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2)))
}
