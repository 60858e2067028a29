//! The printer: a module as PTX text.
//!
//! The text is canonical: parsing it returns the module, and printing that returns the same text. Instructions are
//! indented by four spaces per scope, opcodes and operands are aligned in columns, and labels are at the margin.

mod module;
mod writer;

pub use module::{Options, print, print_with};
pub use writer::Writer;
