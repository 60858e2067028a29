//! PTX in Rust: one IR, produced by the parser and by the kernel DSL of `warpwright-dsl`, and consumed by the printer
//! and the verifier.
//!
//! The crate knows PTX only; it is independent of devices and language models.
#![forbid(unsafe_code)]

pub mod diag;
pub mod ir;
pub mod link;
pub mod op;
pub mod parse;
pub mod print;
pub mod verify;

pub use link::link;
pub use parse::parse;
pub use print::print;
pub use verify::verify;

/// The example of the page that registries show.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
