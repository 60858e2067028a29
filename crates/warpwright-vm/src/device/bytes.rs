//! Ranges of bytes of buffers, at once: for a host that orders its operations itself.
//!
//! Nothing here waits for launches. What a kernel does at the same time to the same bytes is a race as on
//! hardware: bytes come and go in some order, and nothing else happens.

use super::{Buffer, DeviceError, Element};
use std::sync::Arc;

/// Bytes that are copied at a time, without memory of their own.
const PIECE: usize = 4096;

impl<T: Element> Buffer<T> {
    /// Copies bytes in, from byte `offset` on, without waiting for launches.
    pub fn write_bytes(&self, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
        self.inside(offset, data.len() as u64)?;
        self.allocation.write(offset, data);
        self.written(offset, data.len() as u64);
        Ok(())
    }

    /// Copies bytes out, from byte `offset` on, without waiting for launches.
    pub fn read_bytes(&self, offset: u64, data: &mut [u8]) -> Result<(), DeviceError> {
        self.inside(offset, data.len() as u64)?;
        self.allocation.read(offset, data);
        Ok(())
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
        self.inside(offset, bytes)?;
        let piece = [value; PIECE];
        let mut at = offset;
        while at < offset + bytes {
            let take = (offset + bytes - at).min(PIECE as u64);
            self.allocation.write(at, &piece[..take as usize]);
            at += take;
        }
        self.written(offset, bytes);
        Ok(())
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
        self.inside(offset, bytes)?;
        source.inside(from, bytes)?;
        let same = Arc::ptr_eq(&self.allocation, &source.allocation);
        // From the end where the destination lies behind, so that nothing is overwritten before it is read.
        let backwards = same && offset > from;
        let mut piece = [0; PIECE];
        let mut done = 0;
        while done < bytes {
            let take = (bytes - done).min(PIECE as u64);
            let at = if backwards { bytes - done - take } else { done };
            let piece = &mut piece[..take as usize];
            source.allocation.read(from + at, piece);
            self.allocation.write(offset + at, piece);
            done += take;
        }
        if same {
            self.written(offset, bytes);
        } else {
            self.allocation.written.set_like(offset, &source.allocation.written, from, bytes);
        }
        Ok(())
    }

    /// Its bytes count as never written, as those of a new buffer; those of mapped memory always are. For use
    /// while no launch is running that uses it.
    pub fn forget(&self) {
        self.allocation.written.clear_all();
    }

    fn written(&self, offset: u64, bytes: u64) {
        if bytes == self.allocation.bytes {
            self.allocation.written.set_all();
        } else {
            self.allocation.written.set(offset, bytes);
        }
    }

    fn inside(&self, offset: u64, bytes: u64) -> Result<(), DeviceError> {
        let size = self.allocation.bytes;
        match offset.checked_add(bytes) {
            Some(end) if end <= size => Ok(()),
            _ => Err(DeviceError::Range { offset, bytes, buffer: size }),
        }
    }
}
