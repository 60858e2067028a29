//! Devices, memory, streams and launches: how a program runs kernels, on the virtual GPU and on CUDA.
#![forbid(unsafe_code)]

mod backend;
mod buffer;
mod device;
mod error;
mod event;
mod op;
mod pool;
mod stream;
mod vm;

pub use buffer::{AnyBuffer, Buffer, Element, HostBuffer};
pub use device::{Device, DeviceSpec, DeviceStatistics, Properties, Selected};
pub use error::{Failure, Result, RuntimeError};
pub use event::Event;
pub use pool::PoolStatistics;
pub use stream::Stream;
pub use vm::VmConfig;
