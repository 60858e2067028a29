//! Device memory owned by the host.

use super::{Device, DeviceError, Span};
use crate::check::Finding;
use crate::memory::{Allocation, AllocationKind, GlobalMap, HostWords, Overlap};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl Device {
    /// Allocates `len` uninitialised elements. The checks report a kernel that reads them.
    pub fn alloc<T: Element>(&self, len: usize) -> Result<Buffer<T>, DeviceError> {
        self.alloc_named("", len)
    }

    /// Allocates `len` uninitialised elements, with a name for reports.
    pub fn alloc_named<T: Element>(&self, name: &str, len: usize) -> Result<Buffer<T>, DeviceError> {
        self.allocate(name, len, AllocationKind::Buffer)
    }

    pub(super) fn allocate<T: Element>(
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

    /// Allocates `len` zero elements of host memory that are mapped into the device. The host may set and read them
    /// with [`Buffer::poke`] and [`Buffer::peek`] while kernels run, for instance as a stop flag or a progress
    /// counter. A kernel that waits for such memory to change never counts as hanging; it ends with
    /// [`Options::max_instructions`](crate::Options::max_instructions) at the latest.
    pub fn alloc_mapped<T: Element>(&self, len: usize) -> Result<Buffer<T>, DeviceError> {
        self.allocate("", len, AllocationKind::Mapped)
    }

    /// Maps host memory into the device, at its host address, until the buffer is dropped: the first `bytes` bytes of
    /// the owner's words. It behaves like memory of [`alloc_mapped`](Self::alloc_mapped) but takes none of the
    /// device's memory. The name is for reports.
    ///
    /// The addresses may be those of memory that was mapped before and no longer is. They must not overlap anything
    /// else on the device.
    ///
    /// The device keeps the owner until the buffer is dropped and every launch that may access the words is over.
    ///
    /// ```compile_fail,E0521
    /// # use std::sync::{Arc, atomic::AtomicU32};
    /// fn map(device: &warpwright_vm::Device, words: &[AtomicU32]) {
    ///     // Whoever lends the words may drop them while a launch reaches them.
    ///     let _ = device.map_host(Arc::new(words), 4, "borrowed");
    /// }
    /// ```
    pub fn map_host(&self, owner: Arc<HostWords>, bytes: u64, name: &str) -> Result<Buffer<u8>, DeviceError> {
        let address = (*owner).as_ref().as_ptr().addr() as u64;
        self.place_host(address, owner, bytes, |map, owner| map.map_host(owner, bytes, name))
    }

    /// Lends host memory to the device, at its host address, until the buffer is dropped: the first `bytes` bytes of the
    /// owner's words. Unlike memory of [`map_host`](Self::map_host) it is as memory that the device allocated: nothing
    /// of it counts as written, and the host leaves it alone while kernels run, so that one which waits for it to change
    /// hangs. It takes none of the device's memory. The name is for reports.
    pub fn lend_host(
        &self,
        owner: Arc<HostWords>,
        bytes: u64,
        name: &str,
    ) -> Result<Buffer<u8>, DeviceError> {
        let address = (*owner).as_ref().as_ptr().addr() as u64;
        self.place_host(address, owner, bytes, |map, owner| map.lend(owner, bytes, name))
    }

    /// Puts words of the host at addresses.
    pub(super) fn place_host(
        &self,
        address: u64,
        owner: Arc<HostWords>,
        bytes: u64,
        put: impl FnOnce(&mut GlobalMap, Arc<HostWords>) -> Result<Arc<Allocation>, Overlap>,
    ) -> Result<Buffer<u8>, DeviceError> {
        let room = size_of_val((*owner).as_ref()) as u64;
        if bytes == 0 || bytes > room {
            return Err(DeviceError::Range { offset: 0, bytes, buffer: room });
        }
        let mut memory = self.inner.memory();
        let allocation = put(Arc::make_mut(&mut memory.map), owner);
        drop(memory);
        let allocation = allocation.map_err(|overlap| match overlap {
            Overlap::Memory(other, other_bytes) => {
                DeviceError::Overlap { address, bytes, other, other_bytes }
            }
            Overlap::Window(window) => DeviceError::Window { address, bytes, window },
        })?;
        Ok(Buffer { device: self.clone(), allocation, len: bytes as usize, element: PhantomData })
    }

    /// Allocates `len` zero elements.
    pub fn alloc_zeros<T: Element>(&self, len: usize) -> Result<Buffer<T>, DeviceError> {
        let buffer = self.alloc(len)?;
        buffer.allocation.written.set_all();
        Ok(buffer)
    }

    /// Allocates a buffer with a copy of a slice.
    pub fn clone_htod<T: Element>(&self, data: &[T]) -> Result<Buffer<T>, DeviceError> {
        let buffer = self.alloc(data.len())?;
        buffer.write(data)?;
        Ok(buffer)
    }
}

/// An element type of buffers.
pub trait Element: Copy + Send + Sync + 'static {
    /// Its size in bytes.
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

/// Memory of a device, freed when it is dropped.
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

    /// Waits for the launches so far.
    pub(super) fn synchronize(&self) {
        self.device.synchronize();
    }

    /// Its address on the device.
    pub fn address(&self) -> u64 {
        self.allocation.base
    }

    /// Copies a slice of the same length into the buffer, after the launches so far.
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

    /// Whether all of these bytes were written: by the host, or by the launches so far if these check for
    /// [uninitialised data](crate::Checks::init).
    pub fn is_written(&self, offset: u64, bytes: u64) -> bool {
        self.device.synchronize();
        let end = offset.checked_add(bytes);
        end.is_some_and(|end| end <= self.allocation.bytes) && self.allocation.written.is_set(offset, bytes)
    }

    /// A range of its bytes. It does not keep the buffer: the memory of a dropped buffer no longer belongs to the
    /// device.
    ///
    /// # Panics
    ///
    /// If the range is not inside the buffer.
    pub fn span(&self, start: u64, bytes: u64) -> Span {
        let end = start.checked_add(bytes);
        assert!(
            end.is_some_and(|end| end <= self.allocation.bytes),
            "{bytes} bytes at {start} are not inside"
        );
        Span { allocation: self.allocation.clone(), start, bytes }
    }

    /// The current value of an element, while kernels may be running. An element of up to 8 bytes is never a mix of
    /// two values.
    pub fn peek(&self, index: usize) -> Option<T> {
        let mut bytes = vec![0; T::BYTES];
        (index < self.len).then(|| {
            let _wide = (T::BYTES > 4).then(|| self.allocation.exclusive());
            self.allocation.read((index * T::BYTES) as u64, &mut bytes);
            T::get(&bytes)
        })
    }

    /// Sets an element now, while kernels may be running. Returns whether the element exists.
    ///
    /// Once the host waits for a launch, only [mapped](Device::alloc_mapped) memory counts as memory that it may
    /// still change: a kernel that only waits for other memory then ends as a deadlock.
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

impl Buffer<u8> {
    /// The finding for an output of a kernel that was not written in full, if it was not: of its elements of `width`
    /// bytes each. `data` has the parts of an element that hold data, each an offset and a size: the rest is padding and
    /// need not be written. `name` is the argument's. Launches note what they write if they check for
    /// [uninitialised data](crate::Checks::init).
    pub fn unwritten_output(
        &self,
        kernel: &str,
        name: &str,
        width: u64,
        data: &[(u64, u64)],
    ) -> Option<Finding> {
        if self.is_written(0, self.allocation.bytes) {
            return None;
        }
        let elements = self.allocation.bytes / width.max(1);
        let missing = |element: &u64| {
            data.iter().any(|&(offset, bytes)| !self.is_written(element * width + offset, bytes))
        };
        let first = (0..elements).find(missing)?;
        let count = (first..elements).filter(missing).count() as u64;
        Some(Finding::unwritten_output(kernel, name, elements, count, first))
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        let mut memory = self.device.inner.memory();
        Arc::make_mut(&mut memory.map).free(self.allocation.id);
    }
}
