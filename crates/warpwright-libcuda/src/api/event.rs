//! Events.

use super::entries;
use super::memory::here;
use crate::engine::{self, EVENTS, Event, Stream};
use crate::graph::guard;
use crate::types::{CUevent, CUstream, Out, Result, Status};
use std::ffi::{c_float, c_uint};
use std::sync::Arc;

const DISABLE_TIMING: c_uint = 2;
const INTERPROCESS: c_uint = 4;

fn event(handle: CUevent) -> Result<Arc<Event>> {
    engine::permitted()?;
    Ok(EVENTS.get(handle.0)?)
}

/// Records an event on a stream of its context.
pub(super) fn record(event: Arc<Event>, stream: Arc<Stream>) -> Result<()> {
    if event.context.id != stream.context.id {
        return Err(Status::INVALID_HANDLE);
    }
    engine::record(&stream, &event)
}

entries! {
    /// Creates an event. Flags: 1, waiting sleeps; 2, without times; 4, shared with other processes, which is not
    /// supported.
    fn cuEventCreate(handle: Out<CUevent>, flags: c_uint) {
        let (context, _) = here()?;
        if flags & !7 != 0 || flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0 {
            return Err(Status::INVALID_VALUE);
        }
        if flags & INTERPROCESS != 0 {
            return Err(Status::NOT_SUPPORTED);
        }
        let has_times = flags & DISABLE_TIMING == 0;
        let make = |handle| Arc::new(Event::new(CUevent(handle), context, has_times));
        handle.required()?.set(CUevent(EVENTS.insert_with(make)?.0))
    }

    /// Records an event after the operations issued on a stream so far.
    fn cuEventRecord, cuEventRecord_ptsz |default| (handle: CUevent, stream: CUstream) {
        let stream = Stream::get(default.resolve(stream))?;
        record(event(handle)?, stream)
    }

    /// The same with flags. The only flag, 1, makes a captured record an external one.
    fn cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz |default| (
        handle: CUevent,
        stream: CUstream,
        flags: c_uint,
    ) {
        let stream = Stream::get(default.resolve(stream))?;
        let event = event(handle)?;
        match flags {
            0 => record(event, stream),
            1 if stream.is_capturing() => engine::record_outside(&stream, &event),
            _ => Err(Status::INVALID_VALUE),
        }
    }

    /// Returns whether the operations before an event are complete.
    fn cuEventQuery(handle: CUevent) {
        let event = event(handle)?;
        let allowed = guard::may_wait();
        match event.query() {
            // What it was recorded in says more than that something captures.
            Err(Status::CAPTURED_EVENT) => Err(Status::CAPTURED_EVENT),
            answer => allowed.and(answer),
        }
    }

    /// Waits for the operations before an event.
    fn cuEventSynchronize(handle: CUevent) {
        event(handle)?.synchronize()
    }

    /// Returns the time from one event to another, in milliseconds.
    fn cuEventElapsedTime = cuEventElapsedTime_v2(milliseconds: Out<c_float>, start: CUevent, end: CUevent) {
        let (start, end) = (event(start)?, event(end)?);
        milliseconds.required()?.set(end.elapsed_since(&start)?)
    }

    /// Destroys an event. Operations that wait for it go on waiting.
    fn cuEventDestroy_v2(handle: CUevent) {
        engine::permitted()?;
        EVENTS.remove(handle.0)?;
        Ok(())
    }
}
