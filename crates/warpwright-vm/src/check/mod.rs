//! What is looked for while a kernel runs: races, uninitialised data, broken synchronisation.
//!
//! [`race`] knows what is ordered, and is told of accesses and synchronisation; `init` knows which bytes
//! were written; `hooks` is what instructions call, and `observe` looks at their accesses; `collect`
//! gathers what is found, `resolve` and `source` find its names and lines, and `finding` says it in words. Nothing here changes what a kernel computes.

mod collect;
mod finding;
mod hooks;
mod init;
mod observe;
pub mod race;
mod resolve;
mod source;

pub(crate) use collect::{Collector, RawFinding, RawPlace, RawSite};
pub use finding::{
    AccessSite, Action, AllocationRef, ArgumentRef, Between, Finding, FindingKind, Hazard, MemorySite,
    Severity, Tool,
};
pub(crate) use init::{InitBits, SharedInitBits};
pub(crate) use observe::{BlockChecks, LocalWritten, Touch, WorkerChecks, set_local_written};
pub(crate) use resolve::resolve;
pub use source::SourceLine;
pub(crate) use source::SourceLines;
