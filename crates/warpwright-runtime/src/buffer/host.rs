//! Memory of the host's, mapped into a device.

use super::{AnyBuffer, Buffer, Element};
use crate::backend::Memory;
use crate::error::{Result, RuntimeError};
use std::fmt;

/// Elements in memory of the host's that kernels see too: a stop flag, a progress counter, the target of an
/// asynchronous copy to the host.
///
/// The host reads and sets elements at any time, also while kernels run. An element of up to 8 bytes is read
/// and set as one. What a kernel has written is certain once the launch is complete.
///
/// On CUDA devices the memory is pinned. So a [copy](crate::Stream::memcpy_dtod) between it and a buffer of the device
/// goes on while the host does, in both directions, and nothing is copied on the way.
pub struct HostBuffer<T> {
    buffer: Buffer<T>,
}

impl<T: Element> HostBuffer<T> {
    pub(crate) fn new(buffer: Buffer<T>) -> Self {
        HostBuffer { buffer }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// An element as it is now.
    pub fn get(&self, index: usize) -> Result<T> {
        let mut value = T::zeroed();
        self.memory().peek(self.offset(index)?, bytemuck::bytes_of_mut(&mut value))?;
        Ok(value)
    }

    /// Sets an element now.
    pub fn set(&self, index: usize, value: T) -> Result<()> {
        self.memory().poke(self.offset(index)?, bytemuck::bytes_of(&value))
    }

    /// Elements from `start` on as they are now, each as one.
    pub fn read(&self, start: usize, target: &mut [T]) -> Result<()> {
        let offset = self.range(start, target.len())?;
        self.memory().peek(offset, bytemuck::cast_slice_mut(target))
    }

    /// Sets elements from `start` on now, each as one.
    pub fn write(&self, start: usize, source: &[T]) -> Result<()> {
        let offset = self.range(start, source.len())?;
        self.memory().poke(offset, bytemuck::cast_slice(source))
    }

    /// All elements as they are now.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut elements = vec![T::zeroed(); self.len()];
        self.read(0, &mut elements)?;
        Ok(elements)
    }

    /// The same memory as kernels and copies take it.
    pub fn buffer(&self) -> &Buffer<T> {
        &self.buffer
    }

    fn memory(&self) -> &Memory {
        self.buffer.as_any().memory()
    }

    /// First byte of an element.
    fn offset(&self, index: usize) -> Result<u64> {
        self.range(index, 1)
    }

    /// First byte of elements. The buffer has its memory to itself, from the first byte on.
    fn range(&self, start: usize, count: usize) -> Result<u64> {
        let (end, len) = (start.saturating_add(count), self.len());
        if end <= len {
            Ok((start * size_of::<T>()) as u64)
        } else {
            Err(RuntimeError::Range { start, end, len })
        }
    }
}

impl<T> Clone for HostBuffer<T> {
    /// Another handle of the same memory.
    fn clone(&self) -> Self {
        HostBuffer { buffer: self.buffer.clone() }
    }
}

impl<T> fmt::Debug for HostBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.buffer.fmt(f)
    }
}

impl<T> AsRef<AnyBuffer> for HostBuffer<T> {
    fn as_ref(&self) -> &AnyBuffer {
        self.buffer.as_ref()
    }
}
