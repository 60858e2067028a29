//! What devices do, through the exported functions: memory, copies, streams, events, and how they fail.
//!
//! Two virtual GPUs of 1 GiB. A test has a context of its own, so that what it breaks is its own too.
#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "the functions are C's")]

mod copies;
mod devices;
mod events;
mod faults;
mod hosts;
mod memory;
mod misuse;
mod order;
mod pointers;
mod pools;
mod random;
mod rows;
mod support;
mod threads;
mod virtual_memory;

use support::*;
use warpwright_cuda::api::*;
use warpwright_cuda::types::*;
