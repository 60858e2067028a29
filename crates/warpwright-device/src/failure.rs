//! Failures of operations, and their effect on later operations.

use std::sync::Arc;
use warpwright_vm::render::Renderer;
use warpwright_vm::{DeviceError, FaultKind, FindingKind, Report, Severity, TrapKind};

/// The result of an operation.
pub type Result<T, E = Box<Failure>> = std::result::Result<T, E>;

/// A set of streams that fail together: a context of the driver API, or a device of the runtime.
pub trait FailureDomain: Send + Sync {
    /// Its unique number in the process. Streams of one domain share a default stream.
    fn id(&self) -> u64;

    /// Whether the operation with that ticket is skipped because of an earlier failure.
    fn skips(&self, ticket: u64) -> bool;

    /// Reports a failed operation. Called before the operation counts as complete, so that a thread which waits for it
    /// finds the failure.
    fn failed(&self, failure: Failure);
}

/// Why an operation was not executed, or not to its end.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The name of the kernel or the operation.
    pub operation: Arc<str>,
    /// The number of the launch on its device, if it was a launch.
    pub launch: Option<u64>,
    /// The kind of failure.
    pub cause: Cause,
    /// A description.
    pub message: String,
}

/// The kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The device is out of memory.
    OutOfMemory,
    /// The device refused the operation.
    Refused,
    /// A kernel made an illegal memory access.
    Access(FaultKind),
    /// A kernel was aborted.
    Trap(TrapKind),
    /// The checks found an error, which the front end treats as a failure.
    Finding,
    /// The memory was released before, on another stream.
    Released,
    /// A bug in this library.
    Internal,
}

impl Failure {
    /// The failure for an error of the device.
    pub fn of_device(operation: impl Into<Arc<str>>, error: &DeviceError) -> Box<Failure> {
        let cause = match error {
            DeviceError::OutOfMemory { .. } => Cause::OutOfMemory,
            _ => Cause::Refused,
        };
        Box::new(Failure { operation: operation.into(), launch: None, cause, message: error.to_string() })
    }

    /// The failure of a launch, if there is one. An illegal access comes first: a real device would have ended the
    /// launch there. With `findings`, every error of the checks is a failure.
    pub fn of_launch(kernel: &Arc<str>, number: u64, report: &Report, findings: bool) -> Result<()> {
        let access = report.findings.iter().find_map(|finding| match finding.kind {
            FindingKind::Access(fault) if finding.severity == Severity::Error => Some(Cause::Access(fault)),
            _ => None,
        });
        let trap = report.trap.as_ref().map(|trap| Cause::Trap(trap.kind));
        let is_error = report.findings.iter().any(|finding| finding.severity == Severity::Error);
        let found = (findings && is_error).then_some(Cause::Finding);
        let Some(cause) = access.or(trap).or(found) else { return Ok(()) };
        let message = Renderer::of_report(report).report(report);
        Err(Box::new(Failure { operation: kernel.clone(), launch: Some(number), cause, message }))
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.operation, self.message)
    }
}
