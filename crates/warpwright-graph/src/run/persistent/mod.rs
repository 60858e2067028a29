//! A plan as a persistent kernel: one launch for many tokens.
//!
//! ```text
//!  host                                         device, one cooperative launch
//!
//!  launch(tokens, ends) ── progress, ends ────► token 0   phases of the schedule, with the plan's memory
//!                                               │         publish ──┐
//!  next_token  ◄──────── ring, count ◄──────────┼───────────────────┤
//!  next_token  ◄──────── ring, count ◄────── token 1      publish ──┤
//!  stop        ───────── flag ────────────────► …                   │
//!  finish      ◄──────── why it ended, or what a block waited for ──┘
//! ```
//!
//! [`Persistent`] binds a plan like an [`Executable`](super::Executable), to the same weights and states, and its
//! [`Schedule`](crate::persistent::Schedule) to one kernel. Its launches leave states as the same number of executions
//! would. A [`PersistentLaunch`] reads tokens as they appear; it owns the memory that it reads, and may outlive the
//! plan.
//!
//! It reads the device's messages from host memory, so it does not wait for work after the launch. **All words that
//! kernels wait for are zero when a launch begins**, whatever the previous one has left.

mod bound;
mod error;
mod fault;
mod launch;
mod mailbox;
mod operands;
mod options;
#[cfg(test)]
mod tests;

pub use bound::Persistent;
pub use error::PersistentError;
pub use fault::PersistentFault;
pub use launch::{Finished, PersistentLaunch};
pub use options::PersistentOptions;
