//! Accesses to ranges of bytes of buffers that take effect at once, for hosts that order their operations themselves.
//!
//! Nothing here waits for launches. If a kernel accesses the same bytes at the same time, that is a race as on
//! hardware: the bytes are read and written in some order, without further effects.

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

    /// Copies bytes out like [`read_bytes`](Self::read_bytes), as one value instead of a mix, while kernels may be
    /// running.
    pub fn peek_bytes(&self, offset: u64, data: &mut [u8]) -> Result<(), DeviceError> {
        let _wide = (data.len() > 4).then(|| self.allocation.exclusive());
        self.read_bytes(offset, data)
    }

    /// Copies bytes in like [`write_bytes`](Self::write_bytes), as one value, while kernels may be running.
    pub fn poke_bytes(&self, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
        let _wide = (data.len() > 4).then(|| self.allocation.exclusive());
        self.write_bytes(offset, data)
    }

    /// Sets `bytes` bytes from byte `offset` on to `value`, without waiting for launches.
    pub fn fill_bytes(&self, offset: u64, bytes: u64, value: u8) -> Result<(), DeviceError> {
        self.whole().fill(offset, bytes, &[value])
    }

    /// Copies `bytes` bytes from byte `from` of another buffer, or of this one, to byte `offset` of this one, without
    /// waiting for launches. The ranges may overlap. Bytes that are uninitialised in another buffer become
    /// uninitialised here.
    pub fn copy_bytes<U: Element>(
        &self,
        offset: u64,
        source: &Buffer<U>,
        from: u64,
        bytes: u64,
    ) -> Result<(), DeviceError> {
        self.whole().copy(offset, &source.whole(), from, bytes)
    }

    /// Marks its bytes as uninitialised, like those of a new buffer; those of mapped memory always count as written.
    /// Do not call it while a launch uses the buffer.
    pub fn forget(&self) {
        self.allocation.written.clear_all();
    }

    /// Marks `bytes` bytes from byte `offset` on as written, by the host in a way that this library does not see.
    ///
    /// # Errors
    /// [`DeviceError::Range`] if the range is not inside.
    pub fn mark_written(&self, offset: u64, bytes: u64) -> Result<(), DeviceError> {
        let whole = self.whole();
        let at = whole.inside(offset, bytes)?;
        written(&self.allocation, at, bytes);
        Ok(())
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
    let backwards = (same || target.is_of_host() && source.is_of_host())
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
