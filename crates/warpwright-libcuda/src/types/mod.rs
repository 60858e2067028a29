//! The interface's types and constants, as C has them.
//!
//! Everything is an integer in a newtype, enumerations too: a client may pass any value, and a Rust enum must not hold
//! one that it lacks. Names are the interface's own. Layouts are held against cudarc's in the tests.
#![allow(non_camel_case_types, non_snake_case, reason = "the interface's names")]

mod code;
mod device;
mod graph;
mod handle;
mod memory;
mod pointer;
mod status;

pub use code::*;
pub use device::*;
pub use graph::*;
pub use handle::*;
pub use memory::*;
pub(crate) use pointer::text;
pub use pointer::{In, Out};
pub use status::{Result, Status};
