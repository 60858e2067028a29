//! What goes wrong while operations are done, and what that means for the operations behind.

use std::sync::Arc;
use warpwright_vm::render::Renderer;
use warpwright_vm::{DeviceError, FaultKind, FindingKind, Report, Severity, TrapKind};

/// What operations return.
pub type Result<T, E = Box<Failure>> = std::result::Result<T, E>;

/// Streams that fail together: a context of the driver API, or a device of the runtime.
pub trait FailureDomain: Send + Sync {
    /// A number that no other domain of the process ever has. Streams of one domain share a default stream.
    fn id(&self) -> u64;

    /// Whether the operation with that ticket is not done, because something has failed before.
    fn skips(&self, ticket: u64) -> bool;

    /// An operation has failed. Called before the operation counts as over, so whoever waits for it finds the failure.
    fn failed(&self, failure: Failure);
}

/// Why an operation was not done, or not to its end.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The kernel, or what the operation is called.
    pub operation: Arc<str>,
    /// The number of the launch on its device, where it is one.
    pub launch: Option<u64>,
    /// What kind of thing went wrong.
    pub cause: Cause,
    /// The same in words.
    pub message: String,
}

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The device has no memory left for it.
    OutOfMemory,
    /// The device refused it.
    Refused,
    /// A kernel accessed memory that it may not access.
    Access(FaultKind),
    /// A kernel was ended.
    Trap(TrapKind),
    /// The checks found an error, and the front end counts that as a failure.
    Finding,
    /// The memory was given back before, on another stream.
    Released,
    /// A mistake of this library's.
    Internal,
}

impl Failure {
    /// What the device said of an operation.
    pub fn of_device(operation: impl Into<Arc<str>>, error: &DeviceError) -> Box<Failure> {
        let cause = match error {
            DeviceError::OutOfMemory { .. } => Cause::OutOfMemory,
            _ => Cause::Refused,
        };
        Box::new(Failure { operation: operation.into(), launch: None, cause, message: error.to_string() })
    }

    /// What is wrong with a launch, if anything is. An access that was not done comes first: a real device would have
    /// ended the launch there. With `findings` everything that the checks call an error is one.
    pub fn of_launch(kernel: &Arc<str>, number: u64, report: &Report, findings: bool) -> Result<()> {
        let access = report.findings.iter().find_map(|finding| match finding.kind {
            FindingKind::Access(fault) => Some(Cause::Access(fault)),
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
