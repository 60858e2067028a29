//! What stands in the queue of a virtual GPU: the operations that graphs have too, and those that are a stream's alone.

use super::mark::MarkState;
use crate::backend::{Mark, Memory};
use crate::op::{Op, Place};
use std::sync::{Arc, Mutex, PoisonError};

/// What came back from the device; `None` where the copy was not executed.
pub(super) type Landing = Arc<Mutex<Option<Vec<u8>>>>;

/// An entry of the queue.
pub(super) enum Task {
    /// An operation.
    Op(Op),
    /// Copies bytes of the host.
    Upload {
        /// The bytes, as many as the place has.
        data: Vec<u8>,
        /// To where.
        target: Place,
    },
    /// Copies bytes to the host.
    Download {
        /// From where.
        source: Place,
        /// Where they land.
        landing: Landing,
    },
    /// The bytes of this memory mean nothing any more: it has a new owner.
    Forget(Arc<Memory>),
    /// Records an event.
    Record(Arc<MarkState>),
    /// Waits for a recorded event.
    Wait(Mark),
}

/// A stream of a virtual GPU.
#[derive(Default)]
pub(crate) struct StreamHandle {
    /// Where its last copy to the host landed: a place for the next one.
    landing: Mutex<Option<Landing>>,
}

impl StreamHandle {
    /// A place for a copy to the host.
    pub(super) fn take_landing(&self) -> Landing {
        self.landing.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }

    /// Such a place is free again, and empty.
    pub(super) fn keep_landing(&self, landing: Landing) {
        *self.landing.lock().unwrap_or_else(PoisonError::into_inner) = Some(landing);
    }
}
