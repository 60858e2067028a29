//! Arithmetic on single values: roundings, conversions and functions, as the PTX ISA defines them.
//!
//! Everything here is a pure function of values or bits, independent of registers, lanes and instructions. Functions
//! for loops over lanes are inlined and free of branches, so that the loops become vector code; modifiers are
//! constant parameters. Functions for rare cases are exact and slow.
//!
//! Where the ISA leaves something open, the function's documentation states the choice.

pub mod approx;
pub mod bits;
pub mod convert;
pub mod element;
pub mod exact;
pub mod extremum;
pub mod float;
pub mod half;
pub mod integer;
pub mod video;

pub use convert::Conversion;
pub use exact::{Direction, Format};

#[cfg(test)]
mod tests;
