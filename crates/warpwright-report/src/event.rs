//! What the CUDA driver over the virtual GPU reports, one line of JSON for each.

use crate::{Finding, Trap};
use serde::{Deserialize, Serialize};

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
    #[serde(flatten)]
    event: &'a Event,
}

impl Event {
    /// The line of JSON, without its end.
    pub fn line(&self) -> String {
        let line = serde_json::to_string(&Line { version: LINES_VERSION, event: self });
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
}
