//! What a device is like, and what it has done.

use crate::cuda::DriverVersion;
use std::time::Duration;
use warpwright_ptx::ir::Arch;

/// What a device is like.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Properties {
    /// Its name.
    pub name: String,
    /// Its architecture.
    pub arch: Arch,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Threads that are resident on a multiprocessor at once.
    pub threads_per_multiprocessor: u32,
    /// Blocks that are resident on a multiprocessor at once.
    pub blocks_per_multiprocessor: u32,
    /// Threads of a block, at most.
    pub threads_per_block: u32,
    /// Shared memory of a multiprocessor, in bytes.
    pub shared_per_multiprocessor: u64,
    /// Shared memory that a block may have without being allowed more, in bytes.
    pub shared_per_block: u64,
    /// Shared memory that a block may be allowed, in bytes.
    pub shared_per_block_optin: u64,
    /// Global memory, in bytes.
    pub memory: u64,
    /// The cache between global memory and the multiprocessors, in bytes, where there is one.
    pub l2_cache: Option<u64>,
    /// What global memory can move by its clock and width, in bytes per second, where the device has any.
    pub bandwidth: Option<u64>,
    /// The version of the driver API that the driver has, where there is a driver.
    pub driver: Option<DriverVersion>,
}

/// What a device has done, as it has counted itself. What was skipped after an error is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceStatistics {
    /// Launches of kernels, those of graphs included.
    pub launches: u64,
    /// Replays of graphs.
    pub graph_launches: u64,
    /// Copies within the device and between it and the host, those of graphs included.
    pub copies: u64,
    /// Bytes that these copied.
    pub bytes_copied: u64,
    /// Fills of memory with a byte, those of graphs included.
    pub memsets: u64,
    /// Bytes that kernels read from and wrote to global memory, lane by lane. Virtual GPUs count them, where the
    /// counters of their options are on; else it is 0.
    pub bytes_accessed: u64,
    /// Modules that the driver's compiler has compiled. Virtual GPUs run PTX as it is.
    pub modules_compiled: u64,
    /// Modules whose compiled image was found in the [cache](crate::CubinCache).
    pub modules_cached: u64,
    /// The time that the driver's compiler has taken.
    pub compile_time: Duration,
}
