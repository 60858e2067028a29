//! The limits of a context's kernels.
//!
//! The virtual GPU gives each thread the stack that its kernel declares. The heap of `malloc` is the device's, whatever the
//! context. A client reads back the limits that it sets; limits that a device cannot support are refused.

use super::Context;
use crate::report::log;
use crate::types::{CUlimit, Result, Status};

/// The limits that were set, by their numbers.
pub(crate) type Limits = [Option<usize>; 7];

/// The maximum stack of a thread, in bytes.
const MAX_STACK: usize = 512 << 10;
/// The maximum granularity of L2 fetches, in bytes.
const MAX_L2_FETCH: usize = 128;
/// The maximum depth at which nested launches may be waited for. From `sm_90` on there is no such wait, and no limit.
const MAX_SYNC_DEPTH: usize = 24;
/// The first architecture without that limit.
const NO_SYNC_DEPTH: u16 = 90;

/// The default of a limit: in bytes, or a number of launches.
fn default(context: &Context, which: CUlimit) -> Result<usize> {
    Ok(match which {
        CUlimit::STACK_SIZE => 1024,
        CUlimit::PRINTF_FIFO_SIZE => 1 << 20,
        CUlimit::MALLOC_HEAP_SIZE => context.device.config.heap as usize,
        CUlimit::DEV_RUNTIME_SYNC_DEPTH if waits_in_kernels(context) => 2,
        CUlimit::DEV_RUNTIME_PENDING_LAUNCH_COUNT => 2048,
        CUlimit::MAX_L2_FETCH_GRANULARITY => 64,
        // No context shares the device with graphics.
        CUlimit::PERSISTING_L2_CACHE_SIZE | CUlimit::CIG_ENABLED => 0,
        _ => return Err(unsupported(which)),
    })
}

/// A limit of a context.
pub(crate) fn get(context: &Context, which: CUlimit) -> Result<usize> {
    let default = default(context, which)?;
    Ok(context.settings().limits.get(which.0 as usize).copied().flatten().unwrap_or(default))
}

/// Sets a limit of a context. Values beyond a device's bounds are clamped.
pub(crate) fn set(context: &Context, which: CUlimit, value: usize) -> Result<()> {
    default(context, which)?;
    let persisting = super::attributes::persisting_l2(&context.device) as usize;
    let value = match which {
        CUlimit::STACK_SIZE if value > MAX_STACK => return Err(Status::INVALID_VALUE),
        CUlimit::MAX_L2_FETCH_GRANULARITY if value > MAX_L2_FETCH => return Err(Status::INVALID_VALUE),
        CUlimit::MALLOC_HEAP_SIZE => {
            context.device.vm()?.set_heap(value as u64).map_err(|error| {
                log::misuse(&error);
                crate::engine::status(&error)
            })?;
            value
        }
        CUlimit::DEV_RUNTIME_SYNC_DEPTH if value > MAX_SYNC_DEPTH => return Err(Status::OUT_OF_MEMORY),
        CUlimit::PERSISTING_L2_CACHE_SIZE if persisting == 0 => return Err(Status::UNSUPPORTED_LIMIT),
        CUlimit::PERSISTING_L2_CACHE_SIZE => value.min(persisting),
        CUlimit::CIG_ENABLED => return Err(unsupported(which)),
        _ => value,
    };
    context.change(|settings| settings.limits[which.0 as usize] = Some(value));
    Ok(())
}

/// Whether kernels of the device could wait for kernels that they launched.
fn waits_in_kernels(context: &Context) -> bool {
    context.device.arch().sm < NO_SYNC_DEPTH
}

fn unsupported(which: CUlimit) -> Status {
    which.check().err().unwrap_or(Status::UNSUPPORTED_LIMIT)
}
