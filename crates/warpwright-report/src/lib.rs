//! What the virtual GPU finds in a launch, as data that outlives the launch and leaves the process.
//!
//! ```text
//! vm::Report ── Renderer ──┬── Finding, Trap ──┬── Launch ── JSON of `run`, of `profile`, of Python
//!                          └── Counters, Line ─┘
//!                              Finding, Trap ───── Event ─── lines of JSON of the CUDA driver
//!
//! Launch, Event ── Case ── SARIF, JUnit
//! ```
//!
//! There is one schema: everything that prints findings for programs prints these types, and they read back what they
//! print. Fields may be added; if one changes its meaning or goes, [`VERSION`] is raised.
#![forbid(unsafe_code)]

mod case;
mod event;
mod fidelity;
mod figures;
mod finding;
mod junit;
mod launch;

mod rules;
mod sarif;
mod site;

pub use case::Case;
pub use event::{Call, Event, LINES_VERSION};
pub use fidelity::Assumed;
pub use figures::{
    Accesses, ArgumentTraffic, BufferArgument, Counters, Executed, Instructions, Line, MemoryTraffic,
    Traffic, VariableTraffic, Waits, hottest,
};
pub use finding::{Access, Allocation, Finding, MbarrierWait, Severity, Trap, Waiting};
pub use junit::junit;
pub use launch::{Launch, LaunchInfo};
pub use sarif::sarif;
pub use site::{Site, Source};

/// The version of JSON documents.
pub const VERSION: u32 = 1;
