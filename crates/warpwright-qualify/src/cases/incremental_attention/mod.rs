//! Decode attention: its numbers against float64, and what its tests are worth.

mod case;
pub(crate) mod numbers;
#[cfg(test)]
mod on_the_vm;
