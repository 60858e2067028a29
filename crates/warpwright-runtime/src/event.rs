//! Events: places in the order of a stream's operations.

use crate::backend::EventHandle;
use crate::device::Device;
use crate::error::{Result, RuntimeError};
use std::fmt;
use std::time::Duration;

/// A place in the order of a stream's operations, made by
/// [`Stream::record_event`](crate::Stream::record_event).
#[derive(Clone)]
pub struct Event {
    pub(crate) device: Device,
    pub(crate) handle: EventHandle,
}

impl Event {
    /// Waits until everything before it has been done. Returns the error of what failed on the device, if
    /// nothing has returned that yet.
    pub fn synchronize(&self) -> Result<()> {
        self.device.backend().wait_for(&self.handle)
    }

    /// Whether everything before it has been done, or skipped after an error.
    pub fn is_complete(&self) -> bool {
        self.handle.is_complete()
    }

    /// The time on the device from an earlier event to this one; zero if that one came later. Both must be of one
    /// device, complete, and not skipped after an error.
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
