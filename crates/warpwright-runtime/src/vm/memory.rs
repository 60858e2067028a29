//! Memory of the virtual GPU.

use crate::backend;
use crate::error::Result;
use warpwright_device::Release;
use warpwright_vm::{Buffer, Span};

/// A piece of the virtual GPU's memory.
pub(crate) struct Memory {
    pub(super) buffer: Buffer<u8>,
}

impl Memory {
    pub(crate) fn address(&self) -> u64 {
        self.buffer.address()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.buffer.len() as u64
    }

    /// A range of it, which is inside.
    pub(crate) fn span(&self, offset: u64, bytes: u64) -> Span {
        self.buffer.span(offset, bytes)
    }

    pub(crate) fn peek(&self, offset: u64, value: &mut [u8]) -> Result<()> {
        Ok(self.buffer.peek_bytes(offset, value)?)
    }

    pub(crate) fn poke(&self, offset: u64, value: &[u8]) -> Result<()> {
        Ok(self.buffer.poke_bytes(offset, value)?)
    }
}

impl Release for backend::Memory {
    /// Its bytes mean nothing any more: it has a new owner.
    fn release(&self) {
        self.vm().buffer.forget();
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes at {:#x}", self.bytes(), self.address())
    }
}
