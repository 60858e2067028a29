//! A virtual GPU: executes verified PTX modules on the CPU, and reports what a GPU would hide.
#![deny(unsafe_code)]

mod counters;
mod decode;
mod device;
mod launch;
mod machine;
mod memory;
mod module;
mod op;
mod random;
mod simd;

pub mod check;
pub mod num;
pub mod tensor;
pub mod testing;

pub use check::{
    AccessSite, Action, AllocationRef, Between, Finding, FindingKind, Hazard, MemorySite, Severity,
    SourceLine, Tool,
};
pub use counters::{BarrierWaits, SpaceTraffic, Traffic};
pub use decode::LoadError;
pub use device::{Arg, Buffer, Device, DeviceConfig, DeviceError, Element, Module, Running};
pub use launch::{
    Checks, Counters, LaunchConfig, LineCounters, Options, Race, Report, Schedule, Trap, TrapKind, Waiting,
};
pub use memory::{FaultKind, SpaceKind};
pub use module::{KernelInfo, KernelParam};
