//! Decode attention: its numbers against float64, and what its tests are worth.

mod case;
#[path = "../common/mod.rs"]
mod common;
mod numbers;
mod on_the_vm;
