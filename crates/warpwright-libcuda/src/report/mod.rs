//! What the user is told: the log, findings, leaks, and the exit status.

pub(crate) mod calls;
pub(crate) mod log;
