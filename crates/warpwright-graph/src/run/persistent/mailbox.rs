//! Communication between the host and a running launch: host memory that the device can access.
//!
//! The device writes a token and then increments the count, both at system scope; the host reads the count and then the
//! token. The ring has room for all tokens of a launch, and the next launch begins after all tokens have been read, so
//! that no token is lost even if the host is slow.

use super::super::error::ExecuteError;
use super::fault::{Names, PersistentFault};
use std::sync::atomic::{Ordering::Acquire, fence};
use warpwright_kernels::persistent::format::{FAULT_WORDS, Fault};
use warpwright_kernels::{Finish, Publish};
use warpwright_runtime::{Buffer, Device, HostBuffer, RuntimeError};

/// Words of `progress`, and of what is left of it.
pub(super) const PROGRESS_WORDS: usize = 3;

/// The memory of a plan that stays, that the host sees.
#[derive(Debug)]
pub(super) struct Mailbox {
    ring: HostBuffer<u32>,
    control: HostBuffer<u32>,
    fault: HostBuffer<u32>,
    /// What `progress` is when a launch is over.
    outcome: HostBuffer<u32>,
    names: Names,
}

impl Mailbox {
    /// A mailbox with room for this many tokens.
    pub(super) fn new(device: &Device, capacity: u32, names: Names) -> Result<Self, RuntimeError> {
        Ok(Mailbox {
            ring: device.alloc_mapped(capacity as usize)?,
            control: device.alloc_mapped(2)?,
            fault: device.alloc_mapped(FAULT_WORDS as usize)?,
            outcome: device.alloc_mapped(PROGRESS_WORDS)?,
            names,
        })
    }

    pub(super) fn ring(&self) -> &Buffer<u32> {
        self.ring.buffer()
    }

    pub(super) fn control(&self) -> &Buffer<u32> {
        self.control.buffer()
    }

    pub(super) fn fault_words(&self) -> &Buffer<u32> {
        self.fault.buffer()
    }

    pub(super) fn outcome(&self) -> &Buffer<u32> {
        self.outcome.buffer()
    }

    /// Makes it ready for a launch, while none runs: how many tokens were counted before it.
    pub(super) fn begin(&self) -> Result<u32, ExecuteError> {
        self.control.set(Publish::STOP as usize, 0)?;
        for word in 0..self.fault.len() {
            self.fault.set(word, 0)?;
        }
        for word in 0..self.outcome.len() {
            self.outcome.set(word, 0)?;
        }
        self.count()
    }

    /// Tokens that were counted so far, modulo 2³². They can be read.
    pub(super) fn count(&self) -> Result<u32, ExecuteError> {
        let count = self.control.get(Publish::COUNT as usize)?;
        fence(Acquire);
        Ok(count)
    }

    /// The token of that number.
    pub(super) fn token(&self, number: u32) -> Result<u32, ExecuteError> {
        // The capacity is a power of two.
        Ok(self.ring.get(number as usize & (self.ring.len() - 1))?)
    }

    /// Asks the launch to end.
    pub(super) fn stop(&self) -> Result<(), ExecuteError> {
        Ok(self.control.set(Publish::STOP as usize, 1)?)
    }

    /// Why the launch gave up, if it did. It is over.
    pub(super) fn fault(&self) -> Result<Option<PersistentFault>, ExecuteError> {
        let mut words = [0; FAULT_WORDS as usize];
        for (at, word) in words.iter_mut().enumerate() {
            *word = self.fault.get(at)?;
        }
        Ok(Fault::decode(words).map(|fault| self.names.fault(fault)))
    }

    /// Why the launch ended; `None` where it did not come to that. It is over.
    pub(super) fn reason(&self) -> Result<Option<Finish>, ExecuteError> {
        Ok(Finish::from_word(self.outcome.get(Publish::FINISHED as usize)?))
    }
}
