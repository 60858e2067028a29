//! The checks that run with a kernel: races, uninitialised data, broken synchronisation.
//!
//! [`race`] tracks ordering and receives accesses and synchronisation; `init` tracks written bytes; `hooks` contains
//! the functions that instructions call, and `observe` examines their accesses; `undefined` follows values that nobody
//! gave, `redundant` finds loads whose values are dropped, and `flow` has what both must know of instructions;
//! `collect` gathers findings, of the kinds of `finding`, `resolve` and `source` add names and lines, and `message` puts
//! them into words. Nothing
//! here changes the results of a kernel.

mod collect;
mod finding;
mod flow;
mod hooks;
mod init;
mod message;
mod noted;
mod observe;
mod proxies;
pub mod race;
mod redundant;
mod resolve;
mod source;
mod stored;
mod undefined;

pub(crate) use collect::{Collector, RawFinding, RawPlace, RawSite};
pub use finding::{
    AccessSite, Action, AllocationRef, ArgumentRef, Between, Cause, Finding, FindingKind, Hazard, MemorySite,
    Severity, TensorWait, Tool, Use,
};
pub(crate) use init::{InitBits, SharedInitBits};
pub(crate) use noted::Noting;
pub(crate) use observe::{
    BlockChecks, LocalWritten, RACE_BYTES, SharedChecks, Touch, WorkerChecks, set_local_written,
};
pub use race::ProxyFence;
pub(crate) use redundant::UsedLoads;
pub(crate) use resolve::{between, resolve, shown};
pub use source::SourceLine;
pub(crate) use source::SourceLines;
pub(crate) use undefined::Undefined;
