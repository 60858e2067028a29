//! Reports of what a program's processes have found, made when it has ended.

use super::Arguments;
use crate::cli::Failure;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use warpwright_report::{Case, Event};

/// Where the library writes lines of JSON, for reports that are asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// No report is asked for.
    Unasked,
    /// To a file of the user's, from this byte on: what is there before is of another program.
    To(PathBuf, u64),
    /// To no file of the user's: what was found is shown when the program has ended.
    Nowhere,
}

impl Written {
    /// Before the program starts.
    pub(super) fn begin(arguments: &Arguments) -> Result<Written, Failure> {
        if !arguments.reports.are_asked_for() {
            return Ok(Written::Unasked);
        }
        arguments.reports.begin()?;
        let set = std::env::var_os("WARPWRIGHT_FINDINGS").filter(|path| !path.is_empty()).map(PathBuf::from);
        Ok(match arguments.findings.clone().or(set) {
            Some(path) => {
                let bytes = fs::metadata(&path).map_or(0, |file| file.len());
                Written::To(path, bytes)
            }
            None => Written::Nowhere,
        })
    }

    /// Writes the reports of a program that has ended; `kept` is what it has written nowhere.
    pub(super) fn report(self, arguments: &Arguments, kept: Option<String>) -> Result<(), Failure> {
        let (name, lines) = match self {
            Written::Unasked => return Ok(()),
            Written::To(path, first) => {
                let text = read(&path, first);
                let cannot = |error| Failure::Message(format!("cannot read {}: {error}", path.display()));
                (path.display().to_string(), text.map_err(cannot)?)
            }
            Written::Nowhere => (String::new(), kept.unwrap_or_default()),
        };
        let mut events = Vec::new();
        for (index, line) in lines.lines().enumerate() {
            match Event::read(line) {
                Ok(event) => events.push(event),
                // A process may have been killed while it wrote: the others count.
                Err(error) => eprintln!("warpwright: {name}: line {} is not read: {error}", index + 1),
            }
        }
        if name.is_empty() {
            let mut out = io::stderr().lock();
            for event in events.iter().filter(|event| is_shown(event)) {
                writeln!(out, "warpwright: {}", event.text())?;
            }
        }
        arguments.reports.write(&Case::of_events(&program(&arguments.command), &events))
    }
}

/// Whether the library would show it: the end of a process is of interest where something was found.
fn is_shown(event: &Event) -> bool {
    match event {
        Event::End { errors, warnings, leaks, .. } => errors + warnings + leaks.unwrap_or(0) > 0,
        Event::Unknown => false,
        _ => true,
    }
}

fn read(path: &Path, first: u64) -> io::Result<String> {
    let mut file = match fs::File::open(path) {
        // No process has used the library.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        file => file?,
    };
    file.seek(SeekFrom::Start(first))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The file that a command is about: in `python tests/axpy.py` the script, and not the interpreter.
fn program(command: &[OsString]) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let is_ours = |part: &&OsString| {
        let path = Path::new(part);
        path.is_file() && (path.is_relative() || path.starts_with(&here))
    };
    let part = command.iter().find(is_ours).or(command.first());
    part.map(|part| part.to_string_lossy().into_owned()).unwrap_or_default()
}
