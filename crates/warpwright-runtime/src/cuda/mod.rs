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
//! - `memory`: allocations. `staging`: copies from and to the host. `graph`: captured graphs. `peer`: copies between
//!   devices.
//!
//! **Nothing outside of this folder calls the driver.**
#![allow(unsafe_code, reason = "the driver API is C")]
#![allow(dead_code, reason = "no device opens it yet")]

mod context;
mod driver;
mod error;
mod library;
mod module;

pub use error::{CallError, CudaError, DriverVersion};
pub use module::{CubinCache, JitError, JitMessage, ModuleError, PtxLine, PtxVersionError};
