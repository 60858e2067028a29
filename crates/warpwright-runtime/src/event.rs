//! Events: points in the order of a stream's operations.

use crate::backend::EventHandle;
use crate::device::Device;
use crate::error::{Result, RuntimeError};
use std::fmt;
use std::time::Duration;

/// A point in the order of a stream's operations, recorded by [`Stream::record_event`](crate::Stream::record_event).
#[derive(Clone)]
pub struct Event {
    pub(crate) device: Device,
    pub(crate) handle: EventHandle,
}

impl Event {
    /// Waits until every operation before the event has finished. Returns the error of an operation that failed on the
    /// device, unless another call has returned it.
    pub fn synchronize(&self) -> Result<()> {
        self.device.backend().wait_for(&self.handle)
    }

    /// Whether every operation before the event has finished, or was skipped after an error.
    pub fn is_complete(&self) -> bool {
        self.handle.is_complete()
    }

    /// The device time from an earlier event to this one; zero if the other event is the later one. Both events must
    /// belong to one device, be complete, and not have been skipped after an error.
    pub fn elapsed(&self, earlier: &Event) -> Result<Duration> {
        if self.device != earlier.device {
            return Err(RuntimeError::OtherDevice { operation: "elapsed", what: "earlier event" });
        }
        self.handle.elapsed(&earlier.handle)?.ok_or(RuntimeError::Incomplete)
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Event");
        debug.field("device", &self.device).field("complete", &self.is_complete()).finish_non_exhaustive()
    }
}
