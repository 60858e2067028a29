//! CUDA devices: what all streams ask for, given to NVIDIA's driver at once.
//!
//! The driver's library is loaded when the first device is asked for; without it nothing here runs, and that is an
//! error as any other. A device is its primary context, which other libraries of the process share.
//!
//! What is where:
//!
//! - `library`: whether the driver is there and new enough. Everything else calls it only after that.
//! - `error`: [`CudaError`], and [`check`](error::check) for what calls return.
//! - `context`: the context, and that it is current on the calling thread.
//! - `driver`: [`Driver`], the backend.
//! - `module/`: images from PTX, their cache, functions, occupancy.
//! - `handles`: streams and events. `launch`: launches with their arguments. `graph`: captured graphs.
//! - `memory`: allocations. `reaper`: giving back what the device may still use. `staging`: copies from and to the host.
//!   `peer`: copies between devices.
//!
//! **Nothing outside of this folder calls the driver.**
#![allow(unsafe_code, reason = "the driver API is C")]
#![allow(dead_code, reason = "no device opens it yet")]

mod context;
mod driver;
mod error;
mod graph;
mod handles;
mod launch;
mod library;
mod memory;
mod peer;
mod reaper;
mod staging;

pub use error::{CallError, CudaError, DriverVersion};
