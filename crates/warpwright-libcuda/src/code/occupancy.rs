//! Occupancy: how many blocks of a kernel are resident on a multiprocessor at once. The virtual GPU counts them;
//! registers are no limit.

use super::Function;
use crate::types::{CUlaunchConfig, Result, Status};
use std::ffi::c_int;
use warpwright_ptx::ir::Arch;

/// Threads of a warp.
const WARP: u32 = 32;

/// Blocks on a multiprocessor; 0 if the kernel does not run with such blocks.
pub(crate) fn blocks(function: &Function, threads: c_int, dynamic_shared: usize) -> Result<u32> {
    let threads = u32::try_from(threads).ok().filter(|threads| *threads > 0).ok_or(Status::INVALID_VALUE)?;
    // More shared memory than a number holds is more than there is.
    let shared = u32::try_from(dynamic_shared).unwrap_or(u32::MAX);
    let device = &function.code.context.device;
    Ok(device.vm()?.occupancy(&function.kernel, threads, shared))
}

/// Blocks of a launch on a multiprocessor.
pub(crate) fn blocks_of(function: &Function, config: &CUlaunchConfig) -> Result<u32> {
    let block = [config.blockDimX, config.blockDimY, config.blockDimZ];
    let threads = block.iter().fold(1u32, |product, &n| product.saturating_mul(n));
    blocks(function, c_int::try_from(threads).unwrap_or(c_int::MAX), config.sharedMemBytes as usize)
}

/// The block size that maximises the threads of a multiprocessor, and the smallest grid that fills the device. Among
/// equal sizes it is the largest.
pub(crate) fn best_block(
    function: &Function,
    limit: c_int,
    mut dynamic_shared: impl FnMut(c_int) -> usize,
) -> Result<(c_int, c_int)> {
    let limit = match limit {
        0 => function.max_threads(),
        limit => u32::try_from(limit).map_err(|_| Status::INVALID_VALUE)?.min(function.max_threads()),
    };
    let device = &function.code.context.device;
    let max = device.arch().limits().threads;
    let mut best = (0, 0, 0);
    let mut threads = limit.next_multiple_of(WARP);
    while threads > 0 && best.0 < max {
        let size = threads.min(limit);
        let blocks = blocks(function, size as c_int, dynamic_shared(size as c_int))?;
        if blocks * size > best.0 {
            best = (blocks * size, blocks, size);
        }
        threads -= WARP;
    }
    let (_, blocks, size) = best;
    if blocks == 0 {
        return Err(Status::INVALID_VALUE);
    }
    Ok(((blocks * device.config.multiprocessors) as c_int, size as c_int))
}

/// The maximum dynamic shared memory with which that many blocks are resident on a multiprocessor, in bytes.
pub(crate) fn dynamic_shared(function: &Function, count: c_int, threads: c_int) -> Result<usize> {
    let count = u32::try_from(count).ok().filter(|count| *count > 0).ok_or(Status::INVALID_VALUE)?;
    if blocks(function, threads, 0)? < count {
        return Err(Status::INVALID_VALUE);
    }
    let arch: Arch = function.code.context.device.arch();
    let max = arch.limits().shared_per_block.saturating_sub(function.kernel.static_shared);
    // It holds fewer the more they take.
    let (mut fits, mut too_much) = (0, max + 1);
    while too_much - fits > 1 {
        let middle = (fits + too_much) / 2;
        match blocks(function, threads, middle as usize)? >= count {
            true => fits = middle,
            false => too_much = middle,
        }
    }
    Ok(fits as usize)
}
