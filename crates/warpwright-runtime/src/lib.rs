//! Devices, memory, streams and launches: how a program runs kernels.
//!
//! A [`Device`] is a CUDA device, or a virtual GPU ([`warpwright_vm`]); [`devices`] are those that there are. It has
//! [`Stream`]s, which do what they are asked for in order, and [`Buffer`]s, which its pool hands out. A kernel is launched
//! under its contract: what is accepted fits, and what is refused names kernel, argument and rule.
//!
//! ```
//! use warpwright_dsl::*;
//! use warpwright_runtime::{Device, RuntimeError};
//!
//! /// `y = 2 x`, `n` elements of each.
//! #[derive(Config)]
//! struct Double;
//!
//! #[derive(Args)]
//! #[args(of = Double)]
//! struct DoubleArgs<M: Mode> {
//!     #[arg(len = n)]
//!     x: M::In<f32>,
//!     #[arg(len = n)]
//!     y: M::Out<f32>,
//!     n: M::Scalar<u32>,
//! }
//!
//! // SAFETY: a thread has one index, and reads and writes only if that is less than `n`, the length of both.
//! unsafe impl Bounded for Double {}
//!
//! impl Kernel for Double {
//!     type Args<M: Mode> = DoubleArgs<M>;
//!
//!     fn launch(&self) -> LaunchRule {
//!         LaunchRule::new(64).grid(Extent::dim("n").per(64))
//!     }
//!
//!     fn body<'k>(&self, k: K<'k>, DoubleArgs { x, y, n }: DoubleArgs<Body<'k>>) {
//!         let i = k.global_tid();
//!         k.when(i.lt(n), || y.st(i, x.ld(i) + x.ld(i)));
//!     }
//!
//!     fn bounded(&self) -> Option<&dyn Bounded> {
//!         Some(self)
//!     }
//! }
//!
//! # fn main() -> Result<(), RuntimeError> {
//! let chosen = Device::auto()?;
//! println!("{}: {}", chosen.device.properties().name, chosen.reason);
//! let stream = chosen.device.default_stream();
//! let x = stream.clone_htod(&[1.0f32, 2.5, -3.0])?;
//! let y = stream.alloc::<f32>(3)?;
//!
//! let double = chosen.device.kernel(&Double)?;
//! double.with(DoubleArgs { x: &x, y: &y, n: 3 }).launch(&stream)?;
//! assert_eq!(stream.clone_dtoh(&y)?, [2.0, 5.0, -6.0]);
//!
//! // Four elements of buffers that have three: refused, and nothing has run.
//! let refused = double.with(DoubleArgs { x: &x, y: &y, n: 4 }).launch(&stream);
//! assert!(matches!(refused, Err(RuntimeError::Contract(_))));
//!
//! // What is launched again and again is checked once, and recorded once.
//! let prepared = double.with(DoubleArgs { x: &y, y: &x, n: 3 }).prepare()?;
//! stream.begin_capture()?;
//! stream.launch(&prepared)?;
//! stream.memcpy_dtod(&x, &y)?;
//! let graph = stream.end_capture()?.instantiate()?;
//! for _ in 0..10 {
//!     graph.launch(&stream)?;
//! }
//! assert_eq!(stream.clone_dtoh(&y)?, [2048.0, 5120.0, -6144.0]);
//! assert_eq!(chosen.device.statistics().launches, 11);
//! # Ok(())
//! # }
//! ```
//!
//! # Safety
//!
//! A virtual GPU checks every access and does none that is wrong, so launching any kernel on it is safe. A CUDA device
//! does what a kernel says, to all memory that is mapped, the host's too. There the safe launches take kernels that are
//! [`Bounded`](warpwright_dsl::Bounded), an `unsafe` promise of their author which all kernels of the library give, and
//! refuse others ([`RuntimeError::Unbounded`]). For those there are [`Binder::launch_unbounded`] and
//! [`Binder::prepare_unbounded`], which are `unsafe`. Which kind a device is may be known only when the program runs:
//! so a kernel without a promise runs on virtual GPUs, and the first launch on a GPU says what is missing.
//!
//! # The order of things
//!
//! A stream does what it is asked for in order, and the host goes on meanwhile. Streams go their own ways until one
//! [waits](Stream::wait_event) for an [`Event`] of another. `memcpy_dtoh`, `clone_dtoh` and everything that is
//! called `synchronize` wait; nothing else does. A virtual GPU does one thing at a time, by default in the order in which
//! its streams were asked; [`VmConfig::order`] chooses any other order that events allow, which shows a wait that was
//! forgotten. A kernel whose threads all wait makes way for what other streams were asked for. On a CUDA device kernels of
//! different streams may run at the same time.
//!
//! # Memory
//!
//! A [`Buffer`] is a handle: its clones, [slices](Buffer::slice) and [casts](Buffer::cast) share the memory, which goes
//! back to the pool with the last of them. What was issued before may still use it: the pool hands it out again to the
//! stream that comes after that, and to others when it is done. So a buffer may be dropped as soon as everything that
//! uses it was *issued*. On a virtual GPU blocks are handed out for buffers of exactly their size, and count as never
//! written, so that the checks know of each buffer what they would know of a new one.
//!
//! [`HostBuffer`] is memory of the host's that kernels see: it is read and set while they run, and a copy into it is
//! how results come to the host without waiting.
//!
//! # Errors
//!
//! What a call can know, it refuses at once. What happens on the device later, a trap or with
//! [checks](VmConfig::options) a finding, is the error of the next call that waits, once, with kernel and number of the
//! launch ([`Failure`]). Nothing that was issued before that call returned it is done any more; what is issued
//! afterwards is.
//!
//! A kernel that fails on a CUDA device ends the device for the process: every call that waits returns the error from
//! then on, and nothing is done any more ([`Failure::lost`]). Which launch it was is known where launches
//! [wait for themselves](CudaConfig::sync_launches); else the error names the first and the last that it may have been.
#![deny(unsafe_code)]

mod backend;
mod bindings;
mod buffer;
mod contract;
mod cuda;
mod device;
mod error;
mod event;
mod function;
mod graph;
mod kernel;
mod launch;
mod module;
mod op;
mod operands;
mod peer;
mod pool;
mod stream;
mod vm;

pub use cudarc;

pub use bindings::LaunchMode;
pub use buffer::{AnyBuffer, Buffer, Element, HostBuffer};
pub use contract::{ContractError, Kind, Measure, Violation};
pub use cuda::nvtx;
pub use cuda::{
    CallError, CubinCache, CudaConfig, CudaError, DriverVersion, JitError, Lendable, ModuleError,
    PtxVersionError,
};
pub use device::{
    Device, DeviceInfo, DeviceSpec, DeviceStatistics, Properties, Selected, cuda_driver, devices,
};
pub use error::{Failure, Result, RuntimeError};
pub use event::Event;
pub use function::{Function, FunctionAttributes, FunctionParam};
pub use graph::{Graph, GraphExec, GraphNode, NodeId};
pub use kernel::{Binder, CompiledKernel, PreparedLaunch, TypedKernel};
pub use launch::{LaunchAttributes, LaunchBuilder, LaunchConfig, RawArg};
pub use module::Module;
pub use operands::{OperandBinder, OperandList, OperandTable, Operands};
pub use pool::PoolStatistics;
pub use stream::Stream;
pub use vm::{Order, VmConfig};
pub use warpwright_ptx::ir::Type;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A lock whose holder may have panicked: what it guards is whole between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The example of the page that registries show.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
