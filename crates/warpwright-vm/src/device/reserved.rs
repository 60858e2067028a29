//! Address space that the host reserves, and memory that it maps there.

use super::{Buffer, Device, DeviceError};
use crate::memory::{HostWords, PageAccess};
use std::sync::Arc;

/// Address space of a device, reserved until this is dropped. Nothing is mapped in it at first.
pub struct Reserved(Buffer<u8>);

/// Memory of the host that counts as a device's as long as this exists.
pub struct Claim {
    device: Device,
    bytes: u64,
}

impl Device {
    /// Reserves `bytes` bytes of address space, from an address on that the device does not use. The owner's words stand
    /// for its bytes, in their order. The name is for reports.
    ///
    /// Kernels access it as memory of the device, as far as [`Reserved::set`] allows. All of it counts as written.
    ///
    /// # Errors
    /// [`DeviceError::Range`] if there are not as many words, [`DeviceError::Overlap`] or [`DeviceError::Window`] if some of
    /// the addresses are in use.
    pub fn reserve(
        &self,
        address: u64,
        owner: Arc<HostWords>,
        bytes: u64,
        name: &str,
    ) -> Result<Reserved, DeviceError> {
        self.place_host(address, owner, bytes, |map, owner| map.reserve(address, owner, bytes, name))
            .map(Reserved)
    }

    /// Takes a part of the device's memory for what the host keeps.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] if the device has less.
    pub fn claim(&self, bytes: u64) -> Result<Claim, DeviceError> {
        let mut memory = self.inner.memory();
        match Arc::make_mut(&mut memory.map).take(bytes) {
            true => Ok(Claim { device: self.clone(), bytes }),
            false => Err(DeviceError::OutOfMemory { asked: bytes, free: memory.map.unused() }),
        }
    }
}

impl Reserved {
    /// Sets how the device may access a range, from its byte `offset` on: at once, also for kernels that are running.
    ///
    /// # Errors
    /// [`DeviceError::Range`] if the range is not inside.
    pub fn set(&self, offset: u64, bytes: u64, access: PageAccess) -> Result<(), DeviceError> {
        let allocation = &self.0.allocation;
        match (offset.checked_add(bytes), allocation.pages()) {
            (Some(end), Some(pages)) if end <= allocation.bytes => {
                pages.set(allocation.base + offset, bytes, access);
                Ok(())
            }
            _ => Err(DeviceError::Range { offset, bytes, buffer: allocation.bytes }),
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        Arc::make_mut(&mut self.device.inner.memory().map).give_back(self.bytes);
    }
}
