//! What a step of decoding does to its own state, so that a captured step needs nothing from the host before it is
//! replayed. What the state means, its kernels do not know.

pub(crate) mod advance;
