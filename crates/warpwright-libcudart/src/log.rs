//! The log: lines on stderr about unsupported functions, and on request about every call. `WARPWRIGHT_LOG` says which,
//! as for the driver.

use std::any::Any;
use std::collections::HashSet;
use std::fmt::Display;
use std::io::Write;
use std::sync::{Mutex, OnceLock};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Off,
    Missing,
    Calls,
}

fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| match std::env::var("WARPWRIGHT_LOG").as_deref() {
        Ok("off") => Level::Off,
        Ok("calls") => Level::Calls,
        _ => Level::Missing,
    })
}

/// Writes a line; if stderr is closed, it is lost.
fn line(text: &str) {
    let _ = std::io::stderr().lock().write_all(format!("warpwright: {text}\n").as_bytes());
}

/// Logs a note to the user, once.
pub(crate) fn note(message: &dyn Display) {
    static WRITTEN: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let text = message.to_string();
    if level() != Level::Off && crate::lock(&WRITTEN).get_or_insert_default().insert(text.clone()) {
        line(&text);
    }
}

/// Logs a panic of this library, which the client sees as `cudaErrorUnknown`.
pub(crate) fn panicked(function: &str, panic: &(dyn Any + Send)) {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    line(&format!("{function} panicked, which is a mistake of this library: {text}"));
}

/// Logs a call that has returned.
pub(crate) fn called(function: &str, code: i32) {
    if level() == Level::Calls {
        line(&format!("{function}: {code}"));
    }
}
