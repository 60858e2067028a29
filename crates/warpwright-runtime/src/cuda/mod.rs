//! CUDA devices: what all streams ask for, given to NVIDIA's driver at once.
//!
//! The driver's library is loaded when the first device is asked for; without it nothing here runs, and that is an
//! error as any other. A device is its primary context, which other libraries of the process share.
//!
//! What is where:
//!
//! - `library`: whether the driver is there and new enough. Everything else calls it only after that. `sys`: its functions.
//! - `error`: [`CudaError`], and [`check`](error::check) for what calls return.
//! - `context`: the context, and that it is current on the calling thread.
//! - `info`: what devices are like. `config`: how one is used.
//! - `driver`: [`Driver`], the backend. `shutdown`: what is left of one that goes away while it is busy. `issue`: operations
//!   as calls. `timeline`: streams and how far they are. `event`: events that are recorded. `faults`: errors, and who was
//!   told.
//! - `module/`: images from PTX, their cache, functions, occupancy.
//! - `handles`: streams and events of the driver's. `launch`: launches with their arguments. `graph`: graphs of the driver.
//! - `memory`: allocations. `deferred_free`: giving back what the device may still use. `staging`: copies from and to the host.
//!   `interop`: programs that have cudarc already. `captured`: what their graphs hold of ours.
//!
//! **Nothing outside of this folder calls the driver.**
#![allow(unsafe_code, reason = "the driver API is C")]

mod config;
mod context;
mod driver;
mod shutdown;
mod error;
mod faults;
mod graph;
mod handles;
mod info;
mod interop;
mod issue;
mod captured;
mod launch;
mod library;
mod timeline;
mod event;
mod memory;
mod module;
pub mod nvtx;
mod deferred_free;
mod staging;
mod sys;

pub use config::CudaConfig;
pub(crate) use driver::Driver;
pub use error::{CallError, CudaError, DriverVersion};
pub(crate) use info::{count, describe};
pub use interop::Lendable;
pub(crate) use issue::{Code, Replay};
pub(crate) use library::open as library;
pub(crate) use timeline::StreamHandle;
pub(crate) use event::EventHandle;
pub(crate) use memory::Memory;
pub(crate) use module::Module;
pub use module::{CubinCache, JitError, ModuleError, PtxVersionError};
