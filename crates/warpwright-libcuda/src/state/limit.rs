//! How much of something the kernels of a context may have.
//!
//! The virtual GPU gives a thread the stack that its kernel declares, and has a heap whose size is the device's. What
//! is set here is what a client gets back; what a device cannot do is refused.

use super::Context;
use crate::report::log;
use crate::types::{CUlimit, Result, Status};

/// What was set, in bytes but for the launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    stack: usize,
    printf: usize,
    heap: Option<usize>,
    pending_launches: usize,
    sync_depth: usize,
    l2_fetch: usize,
    persisting_l2: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            stack: 1024,
            printf: 1 << 20,
            heap: None,
            pending_launches: 2048,
            sync_depth: 2,
            l2_fetch: 64,
            persisting_l2: 0,
        }
    }
}

/// Local memory of a thread.
const MOST_STACK: usize = 512 << 10;
/// What the cache fetches at once.
const MOST_L2_FETCH: usize = 128;
/// How deep launches of launches may wait for one another. From `sm_90` on they do not wait, and there is no limit.
const MOST_SYNC_DEPTH: usize = 24;
/// The first architecture without that limit.
const NO_SYNC_DEPTH: u16 = 90;

/// A limit of a context.
pub(crate) fn get(context: &Context, which: CUlimit) -> Result<usize> {
    let limits = context.settings().limits;
    Ok(match which {
        CUlimit::STACK_SIZE => limits.stack,
        CUlimit::PRINTF_FIFO_SIZE => limits.printf,
        CUlimit::MALLOC_HEAP_SIZE => limits.heap.unwrap_or(context.device.config.heap as usize),
        CUlimit::DEV_RUNTIME_SYNC_DEPTH if waits_in_kernels(context) => limits.sync_depth,
        CUlimit::DEV_RUNTIME_PENDING_LAUNCH_COUNT => limits.pending_launches,
        CUlimit::MAX_L2_FETCH_GRANULARITY => limits.l2_fetch,
        CUlimit::PERSISTING_L2_CACHE_SIZE => limits.persisting_l2,
        // No context shares the device with graphics.
        CUlimit::CIG_ENABLED => 0,
        _ => return Err(unsupported(which)),
    })
}

/// Changes a limit of a context. Values that a device bounds are cut to its bounds.
pub(crate) fn set(context: &Context, which: CUlimit, value: usize) -> Result<()> {
    let heap = context.device.config.heap as usize;
    let persisting = super::attributes::persisting_l2(&context.device) as usize;
    let mut limits = context.settings().limits;
    match which {
        CUlimit::STACK_SIZE if value > MOST_STACK => return Err(Status::INVALID_VALUE),
        CUlimit::STACK_SIZE => limits.stack = value,
        CUlimit::PRINTF_FIFO_SIZE => limits.printf = value,
        CUlimit::MALLOC_HEAP_SIZE if value > heap => {
            log::note(&format_args!("the heap of `malloc` in kernels has {heap} bytes, not {value}"));
            return Err(Status::OUT_OF_MEMORY);
        }
        CUlimit::MALLOC_HEAP_SIZE => limits.heap = Some(value),
        CUlimit::DEV_RUNTIME_SYNC_DEPTH if waits_in_kernels(context) => {
            if value > MOST_SYNC_DEPTH {
                return Err(Status::OUT_OF_MEMORY);
            }
            limits.sync_depth = value;
        }
        CUlimit::DEV_RUNTIME_PENDING_LAUNCH_COUNT => limits.pending_launches = value,
        CUlimit::MAX_L2_FETCH_GRANULARITY if value > MOST_L2_FETCH => return Err(Status::INVALID_VALUE),
        CUlimit::MAX_L2_FETCH_GRANULARITY => limits.l2_fetch = value,
        CUlimit::PERSISTING_L2_CACHE_SIZE if persisting == 0 => return Err(Status::UNSUPPORTED_LIMIT),
        CUlimit::PERSISTING_L2_CACHE_SIZE => limits.persisting_l2 = value.min(persisting),
        _ => return Err(unsupported(which)),
    }
    context.change(|settings| settings.limits = limits);
    Ok(())
}

/// Whether kernels of the device could wait for kernels that they have launched.
fn waits_in_kernels(context: &Context) -> bool {
    context.device.arch().sm < NO_SYNC_DEPTH
}

fn unsupported(which: CUlimit) -> Status {
    which.check().err().unwrap_or(Status::UNSUPPORTED_LIMIT)
}
