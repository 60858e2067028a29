//! Events: places in the order of a stream's operations.

use crate::backend::Mark;
use crate::device::Device;
use crate::error::{Result, RuntimeError};
use std::fmt;
use std::time::Duration;

/// A place in the order of a stream's operations, made by
/// [`Stream::record_event`](crate::Stream::record_event).
#[derive(Clone)]
pub struct Event {
    pub(crate) device: Device,
    pub(crate) mark: Mark,
}

impl Event {
    /// Waits until everything before it has been done. Returns the error of what failed on the device, if
    /// nothing has returned that yet.
    pub fn synchronize(&self) -> Result<()> {
        self.device.backend().wait_for(&self.mark)
    }

    /// Whether everything before it has been done, or skipped after an error.
    pub fn is_complete(&self) -> bool {
        self.mark.is_complete()
    }

    /// The time on the device from an earlier event to this one; zero if that one came later. Both must be of one
    /// device, complete, and not skipped after an error.
    pub fn elapsed(&self, earlier: &Event) -> Result<Duration> {
        if self.device != earlier.device {
            return Err(RuntimeError::OtherDevice { operation: "elapsed", what: "earlier event" });
        }
        self.mark.elapsed(&earlier.mark)?.ok_or(RuntimeError::Incomplete)
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Event");
        debug.field("device", &self.device).field("complete", &self.is_complete()).finish_non_exhaustive()
    }
}
