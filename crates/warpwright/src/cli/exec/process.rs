//! The program's process: started with its environment, sent signals, waited for.
//!
//! Signals that end a program, or that programs handle, are passed on. Ctrl-C and Ctrl-\ reach every foreground process
//! of the terminal, and so also the program: these are not passed on, because many programs treat a second one
//! differently.

use super::environment::Variables;
use super::folder::Folder;
use super::library::Libraries;
use crate::cli::Failure;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgrp, tcgetpgrp};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

/// Signals that go on to the program.
const PASSED_ON: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// A program that has ended.
pub(super) struct Ended {
    /// The exit status, as a shell has it.
    pub(super) status: u8,
    /// The findings, if they were kept.
    pub(super) findings: Option<String>,
}

/// Runs the program with the libraries in the place of NVIDIA's. Its status is `fail` if it would be 0 and there were
/// errors. Findings are kept if they are to go to no file.
pub(super) fn run(
    command: &[OsString],
    libraries: &Libraries,
    variables: &Variables,
    fail: Option<u8>,
    keep_findings: bool,
) -> Result<Ended, Failure> {
    let (program, arguments) =
        command.split_first().ok_or_else(|| Failure::Message("a program is missing".into()))?;
    let listen = |error| Failure::Message(format!("cannot listen for signals: {error}"));
    // What was ignored before stays so, for the program too: `nohup` means it.
    let ignored = fs::read_to_string("/proc/self/status").map_or(0, |status| ignored(&status));
    let passed_on = PASSED_ON.iter().filter(|&&signal| ignored & mask(signal) == 0);
    let mut signals = Signals::new(passed_on.chain(&[SIGCHLD])).map_err(listen)?;

    let folder = Folder::new(libraries)?;
    if let Some(signal) = signals.pending().find(|&signal| signal != SIGCHLD) {
        return Ok(Ended { status: of_signal(signal), findings: None });
    }
    let mut child = Command::new(program)
        .args(arguments)
        .envs(fail.map(|_| ("WARPWRIGHT_FAILED", folder.failed())))
        .envs(keep_findings.then(|| ("WARPWRIGHT_FINDINGS", folder.findings())))
        .envs(folder.variables())
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .spawn()
        .map_err(|error| {
            let name = Path::new(program).display();
            // `--fail 3 -- program` is how other options have their values.
            let is_status = fail == Some(1) && name.to_string().parse::<u8>().is_ok();
            let hint =
                if is_status { format!(": write `--fail={name}` for that status") } else { String::new() };
            Failure::Message(format!("cannot start {name}: {error}{hint}"))
        })?;
    let status = wait(&mut child, &mut signals)
        .map_err(|error| Failure::Message(format!("cannot wait for the program: {error}")))?;
    let status = match (status.code(), status.signal()) {
        // Errors of any process that it has started count, and of one that became another program.
        (Some(0), _) if folder.has_failed() => fail.unwrap_or(0),
        (Some(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
        (None, Some(signal)) => of_signal(signal),
        (None, None) => u8::MAX,
    };
    // Nothing was found where the program has not used the library.
    let read =
        |path| fs::read(path).map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default();
    Ok(Ended { status, findings: keep_findings.then(|| read(folder.findings())) })
}

/// Waits for the program, and passes signals on. Both happen here, so that no signal can go to a process that took
/// the program's number after it.
fn wait(child: &mut Child, signals: &mut Signals) -> io::Result<ExitStatus> {
    if let Some(status) = child.try_wait()? {
        return Ok(status);
    }
    for signal in signals.forever() {
        if signal == SIGCHLD {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
        } else if !(matches!(signal, SIGINT | SIGQUIT) && in_foreground())
            && let (Ok(signal), Ok(pid)) = (Signal::try_from(signal), i32::try_from(child.id()))
        {
            // It may have ended meanwhile, which is what comes next.
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }
    child.wait()
}

/// Whether what is typed at the terminal goes to this process, and to the program with it.
fn in_foreground() -> bool {
    let terminal = File::open("/dev/tty").ok();
    terminal.and_then(|terminal| tcgetpgrp(terminal).ok()) == Some(getpgrp())
}

/// The exit status of what a signal has ended.
fn of_signal(signal: i32) -> u8 {
    u8::try_from(signal).map_or(u8::MAX, |signal| signal.saturating_add(128))
}

fn mask(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// The signals that a process ignores, a bit each, by `/proc/PID/status`.
fn ignored(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read() {
        let status = "Name:\tx\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        assert_eq!(ignored(status), mask(SIGHUP) | mask(nix::libc::SIGPIPE));
        assert_eq!(ignored("Name:\tx\n"), 0);
    }
}
