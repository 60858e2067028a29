//! Host memory that is mapped into a device.

use super::{AnyBuffer, Buffer, Element};
use crate::backend::Memory;
use crate::error::{Result, RuntimeError};
use std::fmt;

/// Elements in host memory that kernels can access: a stop flag, a progress counter, the target of an asynchronous copy
/// to the host.
///
/// The host may read and write elements at any time, even while kernels run. It reads or writes an element of up to 8
/// bytes as a whole. The host is certain to see what a kernel has written once the launch is complete.
///
/// On CUDA devices the memory is pinned. A [copy](crate::Stream::memcpy_dtod) between it and a buffer of the device is
/// asynchronous in both directions, without an intermediate copy.
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

    /// Reads the current value of an element.
    pub fn get(&self, index: usize) -> Result<T> {
        let mut value = T::zeroed();
        self.memory().peek(self.offset(index)?, bytemuck::bytes_of_mut(&mut value))?;
        Ok(value)
    }

    /// Writes an element at once.
    pub fn set(&self, index: usize, value: T) -> Result<()> {
        self.memory().poke(self.offset(index)?, bytemuck::bytes_of(&value))
    }

    /// Reads the current values of elements from `start` on, each as a whole.
    pub fn read(&self, start: usize, target: &mut [T]) -> Result<()> {
        let offset = self.range(start, target.len())?;
        self.memory().peek(offset, bytemuck::cast_slice_mut(target))
    }

    /// Writes elements from `start` on at once, each as a whole.
    pub fn write(&self, start: usize, source: &[T]) -> Result<()> {
        let offset = self.range(start, source.len())?;
        self.memory().poke(offset, bytemuck::cast_slice(source))
    }

    /// The current values of all elements.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut elements = vec![T::zeroed(); self.len()];
        self.read(0, &mut elements)?;
        Ok(elements)
    }

    /// The same memory as a buffer, for kernels and copies.
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
