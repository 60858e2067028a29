//! NVRTC, asked for PTX where a program asks for machine code.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`audit`] | an auditor of the loader: it puts the libraries of `warpwright exec` in the place of NVIDIA's |
//! | [`nvrtc`] | the functions of `libnvrtc`, passed on to NVIDIA's |
//!
//! This is no part of the driver's library: a program that finds the functions of `libnvrtc` there would not look for
//! `libnvrtc`. `warpwright exec -- PROGRAM` uses it; it is never installed under another name.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]
#![allow(non_snake_case, reason = "the interface's names")]

pub mod audit;
pub mod nvrtc;
