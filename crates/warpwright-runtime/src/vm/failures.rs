//! The failures of a virtual GPU, until they are returned.

use crate::error::{Failure, Result, RuntimeError};
use crate::lock;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, OnceLock};
use warpwright_device::{FailureDomain, Queue};

/// The failures of a device. All of its streams fail together.
#[derive(Default)]
pub(super) struct Failures {
    /// The error that was not returned yet.
    error: Mutex<Option<Box<Failure>>>,
    has_error: AtomicBool,
    /// Operations up to this ticket are skipped: an error before them was returned.
    skip_through: AtomicU64,
    /// The number of errors that were returned.
    told: AtomicU64,
    queue: OnceLock<Arc<Queue>>,
}

impl Failures {
    /// The operations of this queue fail together.
    pub(super) fn of(&self, queue: &Arc<Queue>) {
        // A device has one queue.
        let _ = self.queue.set(queue.clone());
    }

    /// Returns the pending error. Operations issued until now are skipped.
    pub(super) fn tell(&self) -> Result<()> {
        let mut error = lock(&self.error);
        let Some(failure) = error.take() else { return Ok(()) };
        let issued = self.queue.get().map_or(0, |queue| queue.issued());
        self.skip_through.store(issued, Release);
        self.has_error.store(false, Release);
        self.told.fetch_add(1, Release);
        Err(RuntimeError::Failed(failure))
    }

    /// The number of errors that were returned. Operations issued after an error was counted are executed again.
    pub(super) fn told(&self) -> u64 {
        self.told.load(Acquire)
    }
}

impl FailureDomain for Failures {
    fn id(&self) -> u64 {
        // No stream of a device is a default one, so none is held up by the domain's number.
        0
    }

    fn skips(&self, ticket: u64) -> bool {
        self.has_error.load(Acquire) || ticket <= self.skip_through.load(Relaxed)
    }

    fn failed(&self, failure: warpwright_device::Failure) {
        let warpwright_device::Failure { operation, launch, message, .. } = failure;
        let mut error = lock(&self.error);
        error.get_or_insert_with(|| Box::new(Failure::new(&operation, launch, message)));
        self.has_error.store(true, Release);
    }
}
