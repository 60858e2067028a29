//! A plan that stays on the device: one launch for many tokens.
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
//! [`Persistent`] binds a plan as an [`Executable`](super::Executable) does, to the same weights and states, and its
//! [`Schedule`](crate::persistent::Schedule) to one kernel. Its launches leave states as so many executions would.
//! A [`PersistentLaunch`] reads tokens as they appear; it has what it reads to itself, and may outlive the plan.
//!
//! What it is told by the device it reads from memory of the host's: it waits for nothing that comes after the launch.
//! **A launch begins with everything zero that kernels wait for**, whatever the one before it has left.

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
