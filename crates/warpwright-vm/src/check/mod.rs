//! What is looked for while a kernel runs: races, uninitialised data, broken synchronisation.
//!
//! [`race`] knows what is ordered, and is told of accesses and synchronisation; `init` knows which bytes
//! were written; `observe` tells both what the machine does; `collect` gathers what they find, and
//! `finding` says it in words. Nothing here changes what a kernel computes.

mod collect;
mod finding;
mod init;
mod observe;
pub mod race;
mod resolve;

pub(crate) use collect::{Collector, RawFinding, RawPlace, RawSite};
pub use finding::{
    AccessSite, Action, AllocationRef, Between, Finding, FindingKind, Hazard, MemorySite, Severity, SourceLine,
    Tool,
};
pub(crate) use init::{InitBits, SharedInitBits};
pub(crate) use observe::{BlockChecks, Touch, WorkerChecks};
pub(crate) use resolve::resolve;
