//! Memory that the host has on a device.

use super::{Device, DeviceError, Span};
use crate::memory::{Allocation, AllocationKind, HostWords, Overlap};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl Device {
    /// Allocates `len` elements. They are not initialised: the checks say so if a kernel reads them.
    pub fn alloc<T: Element>(&self, len: usize) -> Result<Buffer<T>, DeviceError> {
        self.alloc_named("", len)
    }

    /// Allocates `len` elements, which are not initialised, under a name for reports.
    pub fn alloc_named<T: Element>(&self, name: &str, len: usize) -> Result<Buffer<T>, DeviceError> {
        self.allocate(name, len, AllocationKind::Buffer)
    }

    fn allocate<T: Element>(
        &self,
        name: &str,
        len: usize,
        kind: AllocationKind,
    ) -> Result<Buffer<T>, DeviceError> {
        let bytes = (len as u64).saturating_mul(T::BYTES as u64);
        let mut memory = self.inner.memory();
        let error = DeviceError::OutOfMemory { asked: bytes, free: memory.map.unused() };
        let allocation = Arc::make_mut(&mut memory.map).allocate(bytes, kind, name);
        let Some(allocation) = allocation else { return Err(error) };
        drop(memory);
        Ok(Buffer { device: self.clone(), allocation, len, element: PhantomData })
    }

    /// Allocates `len` elements of the host's memory, mapped into the device and zero: the host may set and
    /// read them with [`Buffer::poke`] and [`Buffer::peek`] while kernels run, as a stop flag or a progress
    /// counter. A kernel that waits for such memory to change is never taken for one that hangs, and ends at
    /// the latest with [`Options::max_instructions`](crate::Options::max_instructions).
    pub fn alloc_mapped<T: Element>(&self, len: usize) -> Result<Buffer<T>, DeviceError> {
        self.allocate("", len, AllocationKind::Mapped)
    }

    /// Maps memory of the host into the device, at the address that it has for the host, until the buffer is dropped:
    /// the first `bytes` bytes of the owner's words. It counts as what [`alloc_mapped`](Self::alloc_mapped) gives, but
    /// takes none of the device's memory. The name is for reports.
    ///
    /// Its addresses may be those of memory that was mapped before and is not any more; they may not be those of
    /// anything else that the device has.
    ///
    /// The device keeps the owner until the buffer is dropped and every launch that may reach the words is over.
    ///
    /// ```compile_fail,E0521
    /// # use std::sync::{Arc, atomic::AtomicU32};
    /// fn map(device: &warpwright_vm::Device, words: &[AtomicU32]) {
    ///     // Whoever lends the words may drop them while a launch reaches them.
    ///     let _ = device.map_host(Arc::new(words), 4, "borrowed");
    /// }
    /// ```
    pub fn map_host(&self, owner: Arc<HostWords>, bytes: u64, name: &str) -> Result<Buffer<u8>, DeviceError> {
        let words = (*owner).as_ref();
        let (address, room) = (words.as_ptr().addr() as u64, size_of_val(words) as u64);
        if bytes == 0 || bytes > room {
            return Err(DeviceError::Range { offset: 0, bytes, buffer: room });
        }
        let mut memory = self.inner.memory();
        let allocation = Arc::make_mut(&mut memory.map).map_host(owner, bytes, name);
        drop(memory);
        let allocation = allocation.map_err(|overlap| match overlap {
            Overlap::Memory(other, other_bytes) => {
                DeviceError::Overlap { address, bytes, other, other_bytes }
            }
            Overlap::Window(window) => DeviceError::Window { address, bytes, window },
        })?;
        Ok(Buffer { device: self.clone(), allocation, len: bytes as usize, element: PhantomData })
    }

    /// Allocates `len` elements of zero.
    pub fn alloc_zeros<T: Element>(&self, len: usize) -> Result<Buffer<T>, DeviceError> {
        let buffer = self.alloc(len)?;
        buffer.allocation.written.set_all();
        Ok(buffer)
    }

    /// Allocates a copy of a slice.
    pub fn clone_htod<T: Element>(&self, data: &[T]) -> Result<Buffer<T>, DeviceError> {
        let buffer = self.alloc(data.len())?;
        buffer.write(data)?;
        Ok(buffer)
    }
}

/// A type of the elements of buffers.
pub trait Element: Copy + Send + Sync + 'static {
    /// Its size.
    const BYTES: usize;

    /// Writes it in little-endian order.
    fn put(self, out: &mut [u8]);

    /// Reads it in little-endian order.
    fn get(data: &[u8]) -> Self;
}

macro_rules! element {
    ($($ty:ty),*) => {$(
        impl Element for $ty {
            const BYTES: usize = size_of::<$ty>();

            fn put(self, out: &mut [u8]) {
                out.copy_from_slice(&self.to_le_bytes());
            }

            fn get(data: &[u8]) -> Self {
                let mut bytes = [0; size_of::<$ty>()];
                bytes.copy_from_slice(data);
                <$ty>::from_le_bytes(bytes)
            }
        }
    )*};
}

element!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

/// Memory of a device, given back when it is dropped.
pub struct Buffer<T> {
    device: Device,
    pub(super) allocation: Arc<Allocation>,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its address on the device.
    pub fn address(&self) -> u64 {
        self.allocation.base
    }

    /// Copies a slice of the same length in, after the launches so far.
    pub fn write(&self, data: &[T]) -> Result<(), DeviceError> {
        self.device.synchronize();
        self.check(data.len())?;
        let mut bytes = vec![0; T::BYTES * data.len()];
        for (chunk, &value) in bytes.chunks_exact_mut(T::BYTES).zip(data) {
            value.put(chunk);
        }
        self.allocation.write(0, &bytes);
        self.allocation.written.set_all();
        Ok(())
    }

    /// Fills it with zeros, after the launches so far.
    pub fn zero(&self) {
        self.device.synchronize();
        self.allocation.words().iter().for_each(|word| word.store(0, Relaxed));
        self.allocation.written.set_all();
    }

    /// The elements, after the launches so far.
    pub fn read(&self) -> Vec<T> {
        self.device.synchronize();
        let mut bytes = vec![0; T::BYTES * self.len];
        self.allocation.read(0, &mut bytes);
        bytes.chunks_exact(T::BYTES).map(T::get).collect()
    }

    /// Whether all of these bytes were written, by the host or, where they are checked for [uninitialised
    /// data](crate::Checks::init), by the launches so far.
    pub fn is_written(&self, offset: u64, bytes: u64) -> bool {
        self.device.synchronize();
        let end = offset.checked_add(bytes);
        end.is_some_and(|end| end <= self.allocation.bytes) && self.allocation.written.is_set(offset, bytes)
    }

    /// A range of its bytes, which does not keep the buffer: what is dropped is none of the device's any more.
    ///
    /// # Panics
    ///
    /// Where the range is not inside.
    pub fn span(&self, start: u64, bytes: u64) -> Span {
        let end = start.checked_add(bytes);
        assert!(
            end.is_some_and(|end| end <= self.allocation.bytes),
            "{bytes} bytes at {start} are not inside"
        );
        Span { allocation: self.allocation.clone(), start, bytes }
    }

    /// An element as it is now, while kernels may be running. Of those of 8 bytes too it is one value that was
    /// there, not parts of two.
    pub fn peek(&self, index: usize) -> Option<T> {
        let mut bytes = vec![0; T::BYTES];
        (index < self.len).then(|| {
            let _wide = (T::BYTES > 4).then(|| self.allocation.exclusive());
            self.allocation.read((index * T::BYTES) as u64, &mut bytes);
            T::get(&bytes)
        })
    }

    /// Sets an element now, while kernels may be running. Whether there is such an element.
    ///
    /// Once the host waits for a launch, only [mapped](Device::alloc_mapped) memory counts as what it may still
    /// change: a kernel that does nothing but wait for other memory ends as a deadlock then.
    pub fn poke(&self, index: usize, value: T) -> bool {
        let mut bytes = vec![0; T::BYTES];
        value.put(&mut bytes);
        if index < self.len {
            let _wide = (T::BYTES > 4).then(|| self.allocation.exclusive());
            self.allocation.write((index * T::BYTES) as u64, &bytes);
            self.allocation.written.set((index * T::BYTES) as u64, T::BYTES as u64);
        }
        index < self.len
    }

    fn check(&self, len: usize) -> Result<(), DeviceError> {
        if len == self.len { Ok(()) } else { Err(DeviceError::Length { buffer: self.len, slice: len }) }
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        let mut memory = self.device.inner.memory();
        Arc::make_mut(&mut memory.map).free(self.allocation.id);
    }
}
