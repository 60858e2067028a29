//! What a step of decoding does to its own state and tells of itself, so that a step needs nothing from the host before
//! the next one. What the state means, its kernels do not know.

pub(crate) mod advance;
pub(crate) mod publish;
