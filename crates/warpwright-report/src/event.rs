//! What the CUDA driver over the virtual GPU reports, one line of JSON for each.

use crate::{Assumed, Finding, Trap};
use serde::{Deserialize, Serialize};
use std::fmt;
use warpwright_vm::render::symbol;

/// The version of the lines. It is raised when a field changes its meaning or is removed.
pub const LINES_VERSION: u32 = 1;

/// A call of the driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The first call of the process has number 1; 0 is outside of any.
    pub number: u64,
    /// The function's name.
    pub function: String,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            0 => f.write_str(&self.function),
            number => write!(f, "call {number}, {}", self.function),
        }
    }
}

/// Something that is reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Event {
    /// A finding of a launch. Equal ones at one instruction of a kernel are reported once.
    Finding {
        /// The finding.
        #[serde(flatten)]
        finding: Finding,
        /// The call that launched the kernel.
        call: Call,
    },
    /// A kernel did not run to its end.
    Trap {
        /// Why.
        #[serde(flatten)]
        trap: Trap,
        /// The call that launched the kernel.
        call: Call,
    },
    /// A launch fails as one did before.
    Repeated {
        /// The kernel, as the module names it.
        kernel: String,
        /// The call that launched it.
        call: Call,
        /// The kinds of its findings, and of its trap.
        kinds: Vec<String>,
    },
    /// A conditional node of a graph cannot decide by its value.
    Condition {
        /// The node's handle.
        handle: u64,
        /// Why it cannot.
        message: String,
        /// The call that launched the graph.
        call: Call,
    },
    /// A call returned an error.
    Api {
        /// The program's call: of the driver, or of the runtime.
        function: String,
        /// The error's number.
        error: i32,
        /// The error's name.
        name: String,
        /// Why, if that is known.
        message: Option<String>,
        /// The call of the driver that failed; a call of the runtime may fail without one.
        call: Option<Call>,
    },
    /// Something was not given back.
    Leak {
        /// What it is: `device memory`.
        what: String,
        /// Its size, if it has one.
        bytes: u64,
        /// The call that made it.
        call: Call,
    },
    /// At the end of the process: its kernels have executed what hardware may compute otherwise.
    Assumed(Assumed),
    /// At the end of the process: its kernels have reached an instruction that is not executed.
    Refused {
        /// The instruction.
        message: String,
    },
    /// The process ended.
    End {
        /// Launches of kernels.
        launches: u64,
        /// Calls of the driver.
        calls: u64,
        /// Errors, those that were not reported because they were equal included.
        errors: u64,
        /// Warnings, likewise.
        warnings: u64,
        /// Leaks, if they are errors.
        leaks: Option<u64>,
    },
    /// One that this version does not know.
    #[serde(other)]
    Unknown,
}

/// A line.
#[derive(Serialize)]
struct Line<'a> {
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(flatten)]
    event: &'a Event,
}

impl Event {
    /// The line of JSON, without its end.
    pub fn line(&self) -> String {
        self.line_of(None)
    }

    /// The line with `text` besides: what people are told of the event.
    pub fn line_with(&self, text: &str) -> String {
        self.line_of(Some(text))
    }

    fn line_of(&self, text: Option<&str>) -> String {
        let line = serde_json::to_string(&Line { version: LINES_VERSION, text, event: self });
        line.expect("its keys are strings")
    }

    /// Reads a line.
    ///
    /// # Errors
    ///
    /// The line is no JSON, or lacks a field of its event.
    pub fn read(line: &str) -> Result<Event, serde_json::Error> {
        serde_json::from_str(line)
    }

    /// The text for people; several lines end with an empty one.
    pub fn text(&self) -> String {
        match self {
            Event::Finding { finding, .. } => finding.rendered.clone(),
            Event::Trap { trap, .. } => trap.rendered.clone(),
            Event::Repeated { kernel, call, kinds } => {
                let (kernel, known) = (symbol(kernel), kinds.join(", "));
                format!(
                    "error: kernel `{kernel}`, launched by {call}, fails again as reported before: {known}"
                )
            }
            Event::Condition { handle, message, call } => {
                format!(
                    "error[graph]: conditional node of {handle:#x}: {message}\n   = note: launched by {call}\n"
                )
            }
            Event::Api { function, error, name, message, call } => {
                let note =
                    message.as_ref().map(|reason| format!("\n   = note: {reason}")).unwrap_or_default();
                let by = match call {
                    Some(call) => format!("by {call}"),
                    None => "the runtime itself refuses these arguments or this state: no call of the driver has failed"
                        .to_owned(),
                };
                format!("error[api]: {function} returned {name} ({error}){note}\n   = note: {by}\n")
            }
            Event::Leak { what, bytes, call } => {
                let of = if *bytes > 0 { format!(" of {bytes} bytes") } else { String::new() };
                format!("leak: {what}{of}, made by {call}")
            }
            Event::Assumed(assumed) => assumed.note(),
            Event::Refused { message } => format!("note: refused: {message}; see `warpwright fidelity`"),
            Event::End { launches, errors, warnings, leaks, .. } => {
                let leaks = leaks.map(|leaks| format!(", {leaks} leaks")).unwrap_or_default();
                format!("{launches} launches: {errors} errors, {warnings} warnings{leaks}")
            }
            Event::Unknown => "an event that this version does not know".to_owned(),
        }
    }
}
