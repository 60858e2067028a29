//! CUDA devices: operations are issued to NVIDIA's driver at once.
//!
//! The driver's library is loaded when the first device is opened; a missing driver is an ordinary error. A device uses
//! its primary context, which it shares with other libraries of the process.
//!
//! Modules:
//!
//! - `library`: finds the driver and checks its version. Everything else calls it only after that. `sys`: its
//!   functions.
//! - `error`: [`CudaError`], and [`check`](error::check) for results of calls.
//! - `context`: the context, and making it current on the calling thread.
//! - `info`: properties of devices. `config`: configuration of a device.
//! - `driver`: [`Driver`], the backend. `shutdown`: the end of a device that is dropped while it is busy. `issue`:
//!   operations as calls. `timeline`: the timelines of streams and their progress. `event`: recorded events. `faults`:
//!   errors, and whether they were returned.
//! - `module/`: images from PTX, their cache, functions, occupancy.
//! - `handles`: streams and events of the driver. `launch`: launches with their arguments. `graph`: graphs of the
//!   driver.
//! - `memory`: allocations. `deferred_free`: frees what the device may still use. `staging`: copies from and to the
//!   host. `interop`: programs that use cudarc. `captured`: our resources that their graphs hold.
//!
//! **Nothing outside of this folder calls the driver.**
#![allow(unsafe_code, reason = "the driver API is C")]

mod captured;
mod config;
mod context;
mod deferred_free;
mod driver;
mod error;
mod event;
mod faults;
mod graph;
mod handles;
mod info;
mod interop;
mod issue;
mod launch;
mod library;
mod memory;
mod module;
pub mod nvtx;
mod shutdown;
mod staging;
mod sys;
mod timeline;

pub use config::CudaConfig;
pub(crate) use driver::Driver;
pub use error::{CallError, CudaError, DriverVersion};
pub(crate) use event::EventHandle;
pub(crate) use info::{count, describe};
pub use interop::Lendable;
pub(crate) use issue::{Code, Replay};
pub(crate) use library::open as library;
pub(crate) use memory::Memory;
pub(crate) use module::Module;
pub use module::{CubinCache, JitError, ModuleError, PtxVersionError};
pub(crate) use timeline::StreamHandle;
