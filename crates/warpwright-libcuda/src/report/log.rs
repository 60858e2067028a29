//! The log: lines on stderr about missing, misused and refused functions, and on request about every call.
//!
//! Equal lines are written once, so that a loop does not fill the terminal.

use super::calls;
use crate::lock;
use crate::state::{self, LogLevel};
use crate::types::Status;
use std::any::Any;
use std::collections::HashSet;
use std::fmt::Display;
use std::io::Write;
use std::sync::Mutex;

/// The maximum number of different lines; then the log says that it is full.
const MAX_LINES: usize = 200;

static WRITTEN: Mutex<Option<HashSet<String>>> = Mutex::new(None);

fn level() -> LogLevel {
    // While the configuration is read it is not known, and what is wrong with it must be told.
    state::log_level()
}

/// Writes lines that belong together without interleaving with other threads. If stderr is closed, they are lost.
pub(super) fn line(text: &str) {
    let _ = std::io::stderr().lock().write_all(format!("warpwright: {text}\n").as_bytes());
}

/// Logs a note to the user, once.
pub(crate) fn note(message: &dyn Display) {
    if level() == LogLevel::Off {
        return;
    }
    let text = message.to_string();
    let mut written = lock(&WRITTEN);
    let written = written.get_or_insert_default();
    if written.len() > MAX_LINES || !written.insert(text.clone()) {
        return;
    }
    match written.len() > MAX_LINES {
        true => line("the log is full: more is not told"),
        false => line(&text),
    }
}

/// Logs a mistake of the client, with the function.
pub(crate) fn misuse(message: &dyn Display) {
    super::misuse::explain(&message.to_string());
    if level() > LogLevel::Off {
        note(&format_args!("{}: {message}", calls::current().function));
    }
}

/// Logs a missing function.
pub(crate) fn missing(function: &str) {
    note(&format_args!("{function} is not supported"));
}

/// Logs a panic of this library, which the client sees as `CUDA_ERROR_UNKNOWN`.
pub(crate) fn panicked(function: &str, panic: &(dyn Any + Send)) {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    line(&format!("{function} panicked, which is a mistake of this library: {text}"));
}

/// Logs what a call is about, where its name does not say it.
pub(crate) fn about(message: &dyn Display) {
    if level() == LogLevel::Calls {
        let call = calls::current();
        line(&format!("{} {} {message}", call.number, call.function));
    }
}

/// Logs a call that has returned.
pub(crate) fn called(function: &str, status: Status) {
    if level() == LogLevel::Calls {
        line(&format!("{} {function}: {status:?}", calls::current().number));
    }
}
