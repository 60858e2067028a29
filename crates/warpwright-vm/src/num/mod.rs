//! What numbers do: roundings, conversions and functions of single values, as the PTX ISA defines them.
//!
//! Everything here is a pure function of values or bits; registers, lanes and instructions are not
//! known. What loops over lanes call is inlined and without branches, so that the loops become
//! vector code; modifiers are constant parameters. What is rare is exact and slow.
//!
//! Where the ISA leaves something open, the choice is written down with the function.

pub mod approx;
pub mod bits;
pub mod convert;
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
