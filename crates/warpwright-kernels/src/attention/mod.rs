//! Attention.
mod flash;
pub use flash::*;
