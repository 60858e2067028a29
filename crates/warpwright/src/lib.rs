//! NVIDIA GPU kernels in pure Rust: write, check, run and ship them with `cargo` alone.
//!
//! This crate collects the others under one name:
//!
//! - [`ptx`]: the intermediate representation of PTX, with its parser, printer and verifier;
//! - [`dsl`]: the typed DSL for kernels;
//! - [`kernels`]: the kernel library;
//! - [`vm`]: the virtual GPU, which runs and checks PTX on the CPU;
//! - [`runtime`]: devices, memory, streams, and checked launches;
//! - [`graph`]: compute graphs of models, fused and planned into few launches;
//! - [`llm`]: the GGUF engine (feature `llm`).
//!
//! Start with [`prelude`] to write kernels and launch them.
#![forbid(unsafe_code)]

/// The typed DSL for kernels, with derives that refer to it by this path.
///
/// ```
/// use warpwright::dsl::*;
///
/// /// `y = 2 x`.
/// #[derive(Config)]
/// struct Double {
///     /// Threads of a block.
///     #[field(domain = Domain::THREADS, default = 64)]
///     threads: u32,
/// }
///
/// #[derive(Args)]
/// #[args(of = Double)]
/// struct DoubleArgs<M: Mode> {
///     #[arg(len = n)]
///     x: M::In<f32>,
///     #[arg(len = n, shares(x))]
///     y: M::Out<f32>,
///     n: M::Scalar<u32>,
/// }
///
/// impl Kernel for Double {
///     type Args<M: Mode> = DoubleArgs<M>;
///
///     fn launch(&self) -> LaunchRule {
///         LaunchRule::new(self.threads).grid(Extent::dim("n").per(self.threads.into()))
///     }
///
///     fn body<'k>(&self, k: K<'k>, DoubleArgs { x, y, n }: DoubleArgs<Body<'k>>) {
///         let i = k.global_tid();
///         k.when(i.lt(n), || y.st(i, x.ld(i) + x.ld(i)));
///     }
/// }
///
/// let ptx = Double { threads: 128 }.ptx(Arch::sm(80))?;
/// # Ok::<(), BuildError>(())
/// ```
pub mod dsl {
    pub use warpwright_dsl::*;
    pub use warpwright_macros::{
        GatheredArgs as Args, GatheredCarry as Carry, GatheredChoice as Choice, GatheredConfig as Config,
        GatheredKeyPart as KeyPart,
    };
}

/// Imports for a program that writes kernels and launches them: the DSL, devices, and their types.
///
/// ```
/// use warpwright::prelude::*;
///
/// /// `y = 2 x`.
/// #[derive(Config)]
/// struct Double;
///
/// #[derive(Args)]
/// #[args(of = Double)]
/// struct DoubleArgs<M: Mode> {
///     #[arg(len = n)]
///     x: M::In<f32>,
///     #[arg(len = n)]
///     y: M::Out<f32>,
///     n: M::Scalar<u32>,
/// }
///
/// impl Kernel for Double {
///     type Args<M: Mode> = DoubleArgs<M>;
///
///     fn launch(&self) -> LaunchRule {
///         LaunchRule::new(64).grid(Extent::dim("n").per(64))
///     }
///
///     fn body<'k>(&self, k: K<'k>, DoubleArgs { x, y, n }: DoubleArgs<Body<'k>>) {
///         let i = k.global_tid();
///         k.when(i.lt(n), || y.st(i, x.ld(i) + x.ld(i)));
///     }
/// }
///
/// # fn main() -> Result<(), RuntimeError> {
/// let device = Device::vm(VmConfig::default())?;
/// let stream = device.default_stream();
/// let (x, y) = (stream.clone_htod(&[1.0f32, 2.5])?, stream.alloc::<f32>(2)?);
/// device.kernel(&Double)?.with(DoubleArgs { x: &x, y: &y, n: 2 }).launch(&stream)?;
/// assert_eq!(stream.clone_dtoh(&y)?, [2.0, 5.0]);
/// # Ok(())
/// # }
/// ```
pub mod prelude {
    pub use crate::dsl::any::AnyKernel;
    pub use crate::dsl::*;
    pub use warpwright_runtime::{
        Buffer, Device, DeviceSpec, Event, HostBuffer, Order, RuntimeError, Stream, VmConfig, nvtx,
    };
}

pub use warpwright_graph as graph;
pub use warpwright_kernels as kernels;
#[cfg(feature = "llm")]
pub use warpwright_llm as llm;
pub use warpwright_ptx as ptx;
pub use warpwright_runtime as runtime;
pub use warpwright_vm as vm;

/// The examples of the page for those who come from another library.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-trueno.md")]
struct FromTrueno;
