//! Devices, memory, streams and launches: how a program runs kernels, on the virtual GPU and on CUDA.
#![deny(unsafe_code)]

mod backend;
mod buffer;
mod contract;
mod device;
mod error;
mod event;
mod function;
mod graph;
mod kernel;
mod launch;
mod module;
mod op;
mod pool;
mod stream;
mod vm;

pub use buffer::{AnyBuffer, Buffer, Element, HostBuffer};
pub use contract::{ContractError, Kind, Measure, Violation};
pub use device::{Device, DeviceSpec, DeviceStatistics, Properties, Selected};
pub use error::{Failure, Result, RuntimeError};
pub use event::Event;
pub use function::{Function, FunctionAttributes, FunctionParam};
pub use graph::{Graph, GraphExec, GraphNode, NodeId};
pub use kernel::{Binder, CompiledKernel, PreparedLaunch};
pub use launch::{LaunchAttributes, LaunchBuilder, LaunchConfig, RawArg};
pub use module::Module;
pub use pool::PoolStatistics;
pub use stream::Stream;
pub use vm::VmConfig;
