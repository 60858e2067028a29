//! The interface's types and constants, as in C.
//!
//! Every type is a newtype of an integer, enumerations too: a client may pass any value, and a Rust enum must not hold
//! an undeclared one. Names are the interface's own. Tests compare the layouts with cudarc's.
#![allow(non_camel_case_types, non_snake_case, reason = "the interface's names")]

mod code;
mod device;
mod graph;
mod handle;
mod memory;
mod pointer;
mod status;
mod texture;

pub use code::*;
pub use device::*;
pub use graph::*;
pub use handle::*;
pub use memory::*;
pub(crate) use pointer::text;
pub use pointer::{In, Out};
pub use status::{Result, Status};
pub use texture::*;
