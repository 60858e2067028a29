//! Running plans: the state of a device between plans, and binding, execution, capture and replay.
//!
//! ```text
//!  Store ── weights, states ──┐
//!                             ├─► Executable ──► execute_graph        every launch issued by the host
//!  Plan ── launches, memory ──┤        │
//!                             │        └───────► Captured::replay     one launch of a graph
//!                             │
//!                             └─► Persistent ──► launch               one launch for many tokens
//!
//!  Runner: all of this from token to token, for batches and sequences that change
//! ```
//!
//! All work of a store runs on one stream, in order: uploads, states, executions, results.

mod bind;
mod capture;
mod error;
mod executable;
mod execute;
mod persistent;
mod placed;
mod runner;
mod states;
mod store;
mod weights;

pub(crate) use bind::Bound;
pub use capture::Captured;
pub use error::{ExecuteError, StoreError};
pub use executable::Executable;
pub use execute::{Execution, execute_graph};
pub use persistent::{
    Finished, Persistent, PersistentError, PersistentFault, PersistentLaunch, PersistentOptions,
};
pub use runner::{
    PersistentStep, Replanned, Runner, RunnerError, RunnerStep, SequenceBound, StepKind, StepShape,
};
pub use store::{Store, StoreStatistics};
