//! Addresses that have memory at some times only, such as those of allocations of graphs.

use super::{Device, DeviceError, Span};
use crate::memory::Allocation;
use std::sync::Arc;

/// Addresses of a device that are given to nothing else until this is dropped. They have memory from a
/// [`commit`](Self::commit) to the next [`decommit`](Self::decommit); in between it is as if it had been freed.
///
/// ```
/// # use warpwright_vm::{Device, DeviceConfig};
/// # fn main() -> Result<(), warpwright_vm::DeviceError> {
/// let mut config = DeviceConfig::default();
/// config.memory = 1 << 20;
/// let device = Device::new(config)?;
/// let memory = device.placeholder("scratch", 1 << 20)?;
/// assert_eq!((device.free_memory(), device.extent(memory.address())), (1 << 20, None));
/// memory.commit()?;
/// assert_eq!((device.free_memory(), device.extent(memory.address())), (0, Some((memory.address(), 1 << 20))));
/// memory.decommit();
/// assert_eq!(device.free_memory(), 1 << 20);
/// # Ok(())
/// # }
/// ```
pub struct Placeholder {
    device: Device,
    allocation: Arc<Allocation>,
}

impl Device {
    /// Reserves addresses for that many bytes, with a name for reports.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] where there are no addresses left.
    pub fn placeholder(&self, name: &str, bytes: u64) -> Result<Placeholder, DeviceError> {
        let mut memory = self.inner.memory();
        let error = DeviceError::OutOfMemory { asked: bytes, free: memory.map.unused() };
        let allocation = Arc::make_mut(&mut memory.map).hold(bytes, name).ok_or(error)?;
        drop(memory);
        Ok(Placeholder { device: self.clone(), allocation })
    }
}

impl Placeholder {
    /// The first address.
    pub fn address(&self) -> u64 {
        self.allocation.base
    }

    /// The number of bytes.
    pub fn bytes(&self) -> u64 {
        self.allocation.bytes
    }

    /// Gives the addresses memory, which is uninitialised. Memory that is there already stays as it is.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] where the device has no room for it.
    pub fn commit(&self) -> Result<(), DeviceError> {
        let mut memory = self.device.inner.memory();
        let is_there = memory.map.get(self.allocation.id).is_some_and(|found| !found.freed);
        if is_there {
            return Ok(());
        }
        let error = DeviceError::OutOfMemory { asked: self.bytes(), free: memory.map.unused() };
        self.allocation.written.clear_all();
        if Arc::make_mut(&mut memory.map).commit(&self.allocation) { Ok(()) } else { Err(error) }
    }

    /// Takes the memory away, if there is any: launches that begin from now on do not have it.
    pub fn decommit(&self) {
        let mut memory = self.device.inner.memory();
        Arc::make_mut(&mut memory.map).decommit(self.allocation.id);
    }

    /// A range of the bytes; the host reaches them even while kernels do not. `None` if the range is not inside.
    pub fn span(&self, start: u64, bytes: u64) -> Option<Span> {
        let end = start.checked_add(bytes)?;
        (end <= self.bytes()).then(|| Span { allocation: self.allocation.clone(), start, bytes })
    }
}

impl Drop for Placeholder {
    fn drop(&mut self) {
        let mut memory = self.device.inner.memory();
        let map = Arc::make_mut(&mut memory.map);
        map.decommit(self.allocation.id);
        map.retire(self.allocation.id);
    }
}
