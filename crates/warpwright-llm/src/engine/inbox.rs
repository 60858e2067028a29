//! Transfer of the tokens of single steps to the host.

use super::error::EngineError;
use warpwright_runtime::{AnyBuffer, Device, Event, HostBuffer, Stream};

/// Memory that the host sees, for tokens on their way.
#[derive(Debug)]
pub(super) struct Inbox {
    tokens: HostBuffer<u32>,
    next: usize,
}

/// A token on its way.
#[derive(Debug)]
pub(super) struct Sent {
    slot: usize,
    event: Event,
    /// What the cache holds when it is there.
    pub(super) held: usize,
}

/// One is waited for while another one is made.
const SLOTS: usize = 2;

impl Inbox {
    pub(super) fn new(device: &Device) -> Result<Self, EngineError> {
        Ok(Inbox { tokens: device.alloc_mapped(SLOTS)?, next: 0 })
    }

    /// Has a token sent, after what the stream was asked for.
    pub(super) fn send(
        &mut self,
        stream: &Stream,
        token: &AnyBuffer,
        held: usize,
    ) -> Result<Sent, EngineError> {
        let slot = self.next;
        self.next = (slot + 1) % SLOTS;
        stream.memcpy_dtod_any(token, self.tokens.buffer().slice(slot..=slot)?.as_any())?;
        Ok(Sent { slot, event: stream.record_event()?, held })
    }

    /// Waits for a token.
    pub(super) fn receive(&self, sent: &Sent) -> Result<u32, EngineError> {
        sent.event.synchronize()?;
        Ok(self.tokens.get(sent.slot)?)
    }
}
