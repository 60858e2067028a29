//! A virtual GPU: executes PTX on the CPU as a GPU would, and reports what a GPU would hide.
//!
//! A [`Device`] has memory ([`Buffer`]), loads modules ([`Module`]) and launches their kernels. A launch runs in the
//! background; its [`Report`] contains its results and the findings of the checks.
//!
//! ```
//! use warpwright_vm::{Arg, Device, DeviceConfig, LaunchConfig, Options};
//!
//! # fn main() -> Result<(), warpwright_vm::DeviceError> {
//! let device = Device::new(DeviceConfig::default())?;
//! let module = device.load_ptx(
//!     ".version 8.0
//!     .target sm_80
//!     .address_size 64
//!     .visible .entry double(.param .u64 x)
//!     {
//!         .reg .b32 %r<2>;
//!         .reg .b64 %rd<3>;
//!         .reg .f32 %f<2>;
//!         ld.param.u64        %rd1, [x];
//!         cvta.to.global.u64  %rd1, %rd1;
//!         mov.u32             %r1, %tid.x;
//!         mad.wide.u32        %rd2, %r1, 4, %rd1;
//!         ld.global.f32       %f1, [%rd2];
//!         add.f32             %f1, %f1, %f1;
//!         st.global.f32       [%rd2], %f1;
//!         ret;
//!     }",
//! )?;
//! let x = device.clone_htod(&[1.0f32, 2.0, 3.0])?;
//!
//! // Three threads for three elements.
//! let options = Options::checked();
//! let launch = |threads| device.launch(&module, "double", &LaunchConfig::new(1, threads), &[Arg::buffer(&x)], &options);
//! assert!(launch(3)?.wait().is_clean());
//! assert_eq!(x.read(), [2.0, 4.0, 6.0]);
//!
//! // A fourth one reads, and writes, past the end. It does neither, and both are found.
//! let report = launch(4)?.wait();
//! assert_eq!(report.findings.len(), 2);
//! assert_eq!(report.findings[0].accesses[0].thread, [3, 0, 0]);
//! # Ok(())
//! # }
//! ```
//!
//! Accesses that are misaligned or outside of allocations are always found, and not performed. [`Options::checks`]
//! enables more checks: races in shared and global memory, reads of uninitialised data, and barriers and collectives
//! that threads do not reach together. `warpwright-test` runs kernels of the DSL in unit tests with all checks.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`check`] | the findings of the checks |
//! | [`fidelity`] | how what is computed compares with hardware |
//! | [`num`] | the arithmetic of instructions, on numbers |
//! | [`render`] | findings as text, with lines of PTX and of the source |
//! | [`tensor`] | the arithmetic of tensor cores, bit for bit |
#![deny(unsafe_code)]

mod counters;
mod decode;
mod device;
mod launch;
mod locality;
mod machine;
mod memory;
mod module;
mod names;
mod native;
mod op;
mod random;
mod simd;

pub mod check;
pub mod fidelity;
pub mod num;
pub mod render;
pub mod tensor;

pub use check::{
    AccessSite, Action, AllocationRef, ArgumentRef, Between, Cause, Finding, FindingKind, Hazard, MemorySite,
    ProxyFence, Severity, SourceLine, TensorWait, Tool, Use,
};
pub use counters::{BarrierWaits, SpaceTraffic, Traffic};
pub use decode::{LoadError, ManagedVariable, Unsupported, is_provided, managed_variables};
pub use device::{
    Arg, Array, Buffer, Claim, Device, DeviceConfig, DeviceError, Element, Im2col, Im2colMode, Module,
    Placeholder, Reserved, Running, SavedVariables, Span, Surface, TENSOR_MAP_BYTES, TensorElement,
    TensorInterleave, TensorMap, TensorMapError, TensorSwizzle, Texture,
};
pub use launch::{
    Checks, ClusterRule, Counters, Edge, Edges, LaunchConfig, LaunchError, LineCounters, Lines, MbarrierWait,
    Options, Progress, Race, Report, Schedule, Trap, TrapKind, UnknownCheck, Waiting,
};
pub use locality::{Fetches, LINE, WINDOWS};
pub use memory::{
    AddressMode, ArrayShape, Channel, FaultKind, Filter, HostWords, Image, Level, PageAccess, Sampler,
    SpaceKind, TexelFormat,
};
pub use module::{KernelInfo, KernelParam};
pub use native::{Native, UnknownNative};

/// The example of the page that registries show.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
