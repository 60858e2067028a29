//! How a decode step updates its own state and reports it, so that the next step needs nothing from the host. These
//! kernels do not know what the state means.

pub(crate) mod advance;
pub(crate) mod publish;
