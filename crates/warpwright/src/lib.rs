//! NVIDIA GPU kernels in pure Rust: write, prove, run and ship them with `cargo` alone.
//!
//! This crate gathers the others under one name:
//!
//! - [`ptx`]: the intermediate representation of PTX, with its parser, printer and verifier;
//! - [`dsl`]: the typed DSL that kernels are written in;
//! - [`kernels`]: the kernel library;
//! - [`vm`]: the virtual GPU, which runs and checks PTX on the CPU;
//! - [`runtime`]: devices, memory, streams, and launches that are checked before they are made;
//! - [`graph`]: what models compute, fused and planned into few launches;
//! - [`llm`]: the GGUF engine (feature `llm`).
#![forbid(unsafe_code)]

pub use warpwright_dsl as dsl;
pub use warpwright_graph as graph;
pub use warpwright_kernels as kernels;
#[cfg(feature = "llm")]
pub use warpwright_llm as llm;
pub use warpwright_ptx as ptx;
pub use warpwright_runtime as runtime;
pub use warpwright_vm as vm;

/// The examples of the page for those who come from another library.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-trueno.md")]
struct FromTrueno;
