//! Device memory: typed ranges of shared blocks.
//!
//! A [`Buffer`] is a range of a block of device memory; its clones and slices are handles of the same block. When the
//! last handle is dropped, the block returns to the device's pool in stream order: operations issued before may still
//! use it.
//!
//! Copies and launches take buffers by shared reference, even if they write them: the memory is the device's, and
//! stream order governs every access.

mod any;
mod block;
mod element;
mod host;
mod loan;

pub use any::AnyBuffer;
pub(crate) use block::Block;
pub use element::Element;
pub use host::HostBuffer;
pub(crate) use loan::{Issuing, Loan};

use crate::device::Device;
use crate::error::{Result, RuntimeError};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

/// Elements of type `T` in device memory: a handle of a whole block, or of a part of one.
pub struct Buffer<T> {
    any: AnyBuffer,
    element: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    /// The caller guarantees that the range holds whole, aligned elements of `T`.
    pub(crate) fn new(any: AnyBuffer) -> Self {
        Buffer { any, element: PhantomData }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.any.len() / T::PARTS
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Size in bytes.
    pub fn num_bytes(&self) -> u64 {
        self.any.num_bytes()
    }

    /// Its address on the device. The address does not keep the memory alive.
    pub fn device_ptr(&self) -> u64 {
        self.any.device_ptr()
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        self.any.device()
    }

    /// A range of its elements, which shares its memory.
    ///
    /// Kernels of the library require buffers to be aligned to 16 bytes, which a slice may not be.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Buffer<T>> {
        let (start, end) = bounds(range, self.len())?;
        Ok(Buffer::new(self.any.slice(start * T::PARTS..end * T::PARTS)?))
    }

    /// The same bytes as elements of another type. They must be a whole number of such elements, at an address that is
    /// aligned for them.
    pub fn cast<U: Element>(&self) -> Result<Buffer<U>> {
        self.any.cast(U::TYPE)?.typed()
    }

    /// The handle without its element type.
    pub fn as_any(&self) -> &AnyBuffer {
        &self.any
    }

    /// The handle without its element type.
    pub fn into_any(self) -> AnyBuffer {
        self.any
    }
}

/// The start and the end of a range, which are within `len`.
fn bounds(range: impl RangeBounds<usize>, len: usize) -> Result<(usize, usize)> {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => len,
    };
    if start > end || end > len { Err(RuntimeError::Range { start, end, len }) } else { Ok((start, end)) }
}

impl<T> Clone for Buffer<T> {
    /// Another handle of the same memory.
    fn clone(&self) -> Self {
        Buffer { any: self.any.clone(), element: PhantomData }
    }
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.any.fmt(f)
    }
}

impl<T> AsRef<AnyBuffer> for Buffer<T> {
    fn as_ref(&self) -> &AnyBuffer {
        &self.any
    }
}

impl AsRef<AnyBuffer> for AnyBuffer {
    fn as_ref(&self) -> &AnyBuffer {
        self
    }
}

impl<T> From<Buffer<T>> for AnyBuffer {
    fn from(buffer: Buffer<T>) -> AnyBuffer {
        buffer.any
    }
}
