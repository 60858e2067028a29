//! Code through the exported functions: modules, libraries, the linker, functions, launches, occupancy.
#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "the functions are C's")]

mod floats;
mod functions;
mod launches;
mod layout;
mod libraries;
mod links;
mod modules;
mod multicast;
mod objects;
#[path = "../support/mod.rs"]
mod support;
mod tensor_maps;
mod textures;

use support::*;
use warpwright_cuda::api::*;
use warpwright_cuda::types::*;
