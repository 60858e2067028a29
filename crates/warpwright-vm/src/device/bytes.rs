//! Ranges of bytes of buffers, at once: for a host that orders its operations itself.
//!
//! Nothing here waits for launches. What a kernel does at the same time to the same bytes is a race as on
//! hardware: bytes come and go in some order, and nothing else happens.

use super::{Buffer, DeviceError, Element, Span};
use crate::memory::Allocation;
use std::sync::Arc;

/// Bytes that are copied at a time, without memory of their own.
const PIECE: usize = 4096;

impl<T: Element> Buffer<T> {
    /// Copies bytes in, from byte `offset` on, without waiting for launches.
    pub fn write_bytes(&self, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
        self.whole().write(offset, data)
    }

    /// Copies bytes out, from byte `offset` on, without waiting for launches.
    pub fn read_bytes(&self, offset: u64, data: &mut [u8]) -> Result<(), DeviceError> {
        self.whole().read(offset, data)
    }

    /// Copies bytes out as [`read_bytes`](Self::read_bytes) does, as one value that was there, while kernels may
    /// be running.
    pub fn peek_bytes(&self, offset: u64, data: &mut [u8]) -> Result<(), DeviceError> {
        let _wide = (data.len() > 4).then(|| self.allocation.exclusive());
        self.read_bytes(offset, data)
    }

    /// Copies bytes in as [`write_bytes`](Self::write_bytes) does, as one value, while kernels may be running.
    pub fn poke_bytes(&self, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
        let _wide = (data.len() > 4).then(|| self.allocation.exclusive());
        self.write_bytes(offset, data)
    }

    /// Sets `bytes` bytes from byte `offset` on to `value`, without waiting for launches.
    pub fn fill_bytes(&self, offset: u64, bytes: u64, value: u8) -> Result<(), DeviceError> {
        self.whole().fill(offset, bytes, &[value])
    }

    /// Copies `bytes` bytes of another buffer, or of this one, from its byte `from` on to byte `offset` of this
    /// one, without waiting for launches. The ranges may overlap. What was never written in
    /// another buffer counts as never written here.
    pub fn copy_bytes<U: Element>(
        &self,
        offset: u64,
        source: &Buffer<U>,
        from: u64,
        bytes: u64,
    ) -> Result<(), DeviceError> {
        self.whole().copy(offset, &source.whole(), from, bytes)
    }

    /// Its bytes count as never written, as those of a new buffer; those of mapped memory always are. For use
    /// while no launch is running that uses it.
    pub fn forget(&self) {
        self.allocation.written.clear_all();
    }

    fn whole(&self) -> Span {
        Span { allocation: self.allocation.clone(), start: 0, bytes: self.allocation.bytes }
    }
}

/// The bytes of a range were written.
pub(super) fn written(allocation: &Allocation, offset: u64, bytes: u64) {
    if bytes == allocation.bytes {
        allocation.written.set_all();
    } else {
        allocation.written.set(offset, bytes);
    }
}

/// Fills a range that is inside with a pattern of bytes, from the pattern's first one on.
pub(super) fn fill(allocation: &Allocation, offset: u64, bytes: u64, pattern: &[u8]) {
    let mut piece = [0; PIECE];
    // As many whole patterns as there is room for, so that each piece begins with one.
    let whole = PIECE / pattern.len() * pattern.len();
    piece[..whole].chunks_exact_mut(pattern.len()).for_each(|part| part.copy_from_slice(pattern));
    let mut at = 0;
    while at < bytes {
        let take = (bytes - at).min(whole as u64);
        allocation.write(offset + at, &piece[..take as usize]);
        at += take;
    }
    written(allocation, offset, bytes);
}

/// Copies a range to another one; both are inside and may overlap.
pub(super) fn copy(target: &Arc<Allocation>, offset: u64, source: &Arc<Allocation>, from: u64, bytes: u64) {
    // Two devices may have mapped the same memory of the host.
    let same = Arc::ptr_eq(target, source);
    let backwards = (same || target.is_mapped() && source.is_mapped())
        && target.base.wrapping_add(offset) > source.base.wrapping_add(from);
    // From the end where the destination lies behind, so that nothing is overwritten before it is read.
    let mut piece = [0; PIECE];
    let mut done = 0;
    while done < bytes {
        let take = (bytes - done).min(PIECE as u64);
        let at = if backwards { bytes - done - take } else { done };
        let piece = &mut piece[..take as usize];
        source.read(from + at, piece);
        target.write(offset + at, piece);
        done += take;
    }
    if same {
        written(target, offset, bytes);
    } else {
        target.written.set_like(offset, &source.written, from, bytes);
    }
}
