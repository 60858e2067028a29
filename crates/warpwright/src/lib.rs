//! NVIDIA GPU kernels in pure Rust: write, prove, run and ship them with `cargo` alone.
//!
//! This crate gathers the others under one name:
//!
//! - [`ptx`]: the intermediate representation of PTX, with the typed kernel DSL, parser, printer and
//!   verifier;
//! - [`kernels`]: the kernel library;
//! - [`vm`]: the virtual GPU, which runs and checks PTX on the CPU.
#![forbid(unsafe_code)]

pub use warpwright_kernels as kernels;
pub use warpwright_ptx as ptx;
pub use warpwright_vm as vm;
