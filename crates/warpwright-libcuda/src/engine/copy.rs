//! Copies, and when the client waits for them.

use super::Stream;
use crate::graph::guard;
use crate::types::Result;
use std::sync::Arc;
use warpwright_device::{Copy, Memory, Op};

/// The maximum number of the client's bytes that are copied aside, so that the client need not wait.
const MAX_STAGED: u64 = 1 << 20;

/// Issues a copy on a stream. The client waits if it must: for its own memory, unless its bytes were copied aside, and
/// for pinned memory if it wants to; never for copies between devices. A synchronous copy from the client's own memory
/// begins when the stream is idle, and the client waits for that.
pub(crate) fn issue(stream: &Arc<Stream>, mut copy: Copy, synchronous: bool) -> Result<()> {
    if copy.bytes() == 0 {
        return Ok(());
    }
    if stream.is_capturing() {
        // What is captured reaches the client's memory when the graph runs.
        if synchronous {
            guard::waits(stream)?;
        }
        return stream.submit(Op::Copy(Arc::new(copy)));
    }
    if synchronous && copy.source.memory.is_host() {
        stream.synchronize()?;
    }
    if copy.source.memory.is_host() && copy.bytes() <= MAX_STAGED && !copy.target.memory.is_host() {
        copy.stage().map_err(|failure| super::status_of(&failure))?;
    }
    let is_own = copy.target.memory.is_host() || copy.source.memory.is_host();
    let is_between = copy.target.memory.is_device()
        && !matches!(&copy.source.memory, Memory::Known(bytes) if bytes.is_mapped());
    stream.submit(Op::Copy(Arc::new(copy)))?;
    if is_own || synchronous && !is_between {
        stream.wait();
        stream.context.outcome()?;
    }
    Ok(())
}
