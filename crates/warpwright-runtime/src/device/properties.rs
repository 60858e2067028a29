//! Properties and counters of a device.

use crate::cuda::DriverVersion;
use std::time::Duration;
use warpwright_ptx::ir::Arch;

/// Properties of a device.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Properties {
    /// Its name.
    pub name: String,
    /// Its architecture.
    pub arch: Arch,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// The maximum number of threads that are resident on a multiprocessor.
    pub threads_per_multiprocessor: u32,
    /// The maximum number of blocks that are resident on a multiprocessor.
    pub blocks_per_multiprocessor: u32,
    /// The maximum number of threads of a block.
    pub threads_per_block: u32,
    /// Shared memory of a multiprocessor, in bytes.
    pub shared_per_multiprocessor: u64,
    /// The maximum shared memory of a block without opt-in, in bytes.
    pub shared_per_block: u64,
    /// The maximum shared memory of a block with opt-in, in bytes.
    pub shared_per_block_optin: u64,
    /// Global memory, in bytes.
    pub memory: u64,
    /// The L2 cache, in bytes, if there is one.
    pub l2_cache: Option<u64>,
    /// The peak bandwidth of global memory, computed from its clock and width, in bytes per second, if known.
    pub bandwidth: Option<u64>,
    /// The version of the driver API, if the device has a driver.
    pub driver: Option<DriverVersion>,
}

/// Counters of a device's work. They do not include operations that were skipped after an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceStatistics {
    /// Launches of kernels, those of graphs included.
    pub launches: u64,
    /// Replays of graphs.
    pub graph_launches: u64,
    /// Copies within the device and between it and the host, those of graphs included.
    pub copies: u64,
    /// Bytes copied by them.
    pub bytes_copied: u64,
    /// Fills of memory, those of graphs included.
    pub memsets: u64,
    /// Bytes that kernels read from and wrote to global memory, counted per lane. Virtual GPUs count them if counters
    /// are on in their options; otherwise it is 0.
    pub bytes_accessed: u64,
    /// Modules compiled by the driver. Virtual GPUs run PTX as it is.
    pub modules_compiled: u64,
    /// Modules whose image was found in the [cache](crate::CubinCache).
    pub modules_cached: u64,
    /// The time spent in the driver's compiler.
    pub compile_time: Duration,
}
