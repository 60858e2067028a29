//! Runs kernels: devices, memory, streams and launches.
//!
//! A [`Device`] is a CUDA device or a virtual GPU ([`warpwright_vm`]); [`devices`] lists them. Its [`Stream`]s execute
//! operations in order, and its pool allocates [`Buffer`]s. A launch is checked against the kernel's contract. A launch
//! that passes has arguments that fit; a refusal names the kernel, the argument and the rule.
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
//! A virtual GPU checks every access and performs no invalid one, so launching any kernel on it is safe. A CUDA device
//! does what a kernel says, to all mapped memory, including the host's. On a CUDA device the safe launches therefore
//! accept only kernels that are [`Bounded`](warpwright_dsl::Bounded), an `unsafe` promise of the kernel's author which
//! every kernel of the library makes, and refuse others ([`RuntimeError::Unbounded`]). To launch those, use the
//! `unsafe` functions [`Binder::launch_unbounded`] and [`Binder::prepare_unbounded`]. A program may learn the kind of
//! its device only at run time: a kernel without the promise runs on virtual GPUs, and the first launch on a GPU says
//! what is missing.
//!
//! # The order of things
//!
//! A stream executes its operations in order, while the host goes on. Streams are independent of one another until one
//! [waits](Stream::wait_event) for an [`Event`] of another. `memcpy_dtoh`, `clone_dtoh` and every function called
//! `synchronize` block the host; nothing else does. A virtual GPU executes one operation at a time, by default in the
//! order in which the operations were issued. [`VmConfig::order`] chooses any other order that the events allow, which
//! shows a forgotten wait. A kernel whose threads all wait yields to the operations of other streams. On a CUDA device,
//! kernels of different streams may run at the same time.
//!
//! # Memory
//!
//! A [`Buffer`] is a handle: its clones, [slices](Buffer::slice) and [casts](Buffer::cast) share the memory, which
//! returns to the pool when the last of them is dropped. Operations issued before that may still use the memory: the
//! pool reuses it for later operations of the same stream, and for other streams once those operations are complete. So
//! you may drop a buffer as soon as everything that uses it has been *issued*. A virtual GPU allocates blocks of
//! exactly a buffer's size and counts them as never written, so its checks treat a reused block like a new one.
//!
//! [`HostBuffer`] is host memory that kernels can access. The host reads and writes it while kernels run; copying into
//! it brings results to the host without blocking.
//!
//! # Errors
//!
//! A call refuses at once whatever it can check. A later failure on the device (a trap or, with
//! [checks](VmConfig::options), a finding) is returned once, by the next call that waits, with the kernel and the
//! number of the launch ([`Failure`]). Operations issued before that call returned the error are skipped; operations
//! issued afterwards are executed.
//!
//! A kernel that fails on a CUDA device ends the device for the process: every call that waits returns the error from
//! then on, and nothing more is executed ([`Failure::lost`]). If launches [are synchronous](CudaConfig::sync_launches),
//! the error names the launch that failed; otherwise it names the first and the last launch that may have failed.
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
mod overlap;
mod peer;
mod pool;
mod stream;
mod tensor_map;
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
pub use tensor_map::{TensorLayout, TensorMap};
pub use vm::{Order, VmConfig};
pub use warpwright_ptx::ir::Type;
pub use warpwright_vm::{TensorElement, TensorMapError, TensorSwizzle};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex even if its holder has panicked: the data is consistent between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The example of the page that registries show.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
