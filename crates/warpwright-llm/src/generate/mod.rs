//! Generation: a prompt becomes text, piece by piece.

mod stop;

pub use stop::{Matched, StopMatcher};
