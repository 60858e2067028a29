//! The printer: a module as PTX text.
//!
//! The text is canonical: parsing it gives the module back, and printing that gives the same text.
//! Instructions are indented by four spaces a scope, opcodes and operands stand in columns, labels
//! at the margin.

mod module;
mod writer;

pub use module::{Options, print, print_with};
pub use writer::Writer;
