//! Bytes of a device by address: in buffers, variables of modules, or host memory. This is for hosts that have
//! addresses instead of handles, such as the driver API.
//!
//! As with byte ranges of buffers, nothing here waits for launches.

use super::bytes::{copy, fill, written};
use super::{Device, DeviceError};
use crate::check::AllocationRef;
use crate::memory::Allocation;
use std::sync::Arc;

/// A range of bytes of a device. It keeps the memory alive, even if the owner frees it.
#[derive(Clone)]
pub struct Span {
    pub(super) allocation: Arc<Allocation>,
    /// Where it begins in the allocation.
    pub(super) start: u64,
    pub(super) bytes: u64,
}

impl Device {
    /// The bytes at an address. They must be in one buffer, variable or piece of mapped memory.
    pub fn span(&self, address: u64, bytes: u64) -> Result<Span, DeviceError> {
        let memory = self.inner.memory();
        let map = &memory.map;
        let found = map.lookup(address).filter(|found| is_known_by_address(found));
        let unknown = DeviceError::NoMemory { address, bytes };
        let Some(allocation) = found.and_then(|found| map.get(found.id)) else { return Err(unknown) };
        let start = address - allocation.base;
        match start.checked_add(bytes) {
            Some(end)
                if end <= allocation.bytes
                    && start < allocation.bytes.max(1)
                    && is_accessible(allocation, address, bytes) =>
            {
                Ok(Span { allocation: allocation.clone(), start, bytes })
            }
            _ => Err(unknown),
        }
    }

    /// What has an address, or had it until it was freed: a buffer, a variable or a piece of mapped memory, of whose last
    /// page the address may be too. `None` if there is none, or it was freed long ago.
    pub fn locate(&self, address: u64) -> Option<AllocationRef> {
        let memory = self.inner.memory();
        let found = memory.map.lookup(address).filter(|found| found.heap().is_none())?;
        Some(AllocationRef {
            name: found.name.clone(),
            arguments: Vec::new(),
            base: found.base,
            bytes: found.bytes,
            offset: address.wrapping_sub(found.base) as i64,
            freed: found.freed,
        })
    }

    /// The beginning and size of the buffer, variable or piece of mapped memory that contains an address.
    pub fn extent(&self, address: u64) -> Option<(u64, u64)> {
        let memory = self.inner.memory();
        let found = memory.map.lookup(address).filter(|found| is_known_by_address(found))?;
        (address - found.base < found.bytes).then_some((found.base, found.bytes))
    }
}

/// Whether the host reaches an allocation by addresses.
fn is_known_by_address(allocation: &Allocation) -> bool {
    !allocation.freed && allocation.heap().is_none() && allocation.is_addressable()
}

/// Whether a range has memory that the device may read, if it is in reserved address space.
fn is_accessible(allocation: &Allocation, address: u64, bytes: u64) -> bool {
    allocation
        .pages()
        .is_none_or(|pages| pages.find(address).is_some_and(|(start, size)| bytes <= start + size - address))
}

impl Span {
    /// Address of its first byte.
    pub fn address(&self) -> u64 {
        self.allocation.base + self.start
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether it is host memory.
    pub fn is_mapped(&self) -> bool {
        self.allocation.is_mapped()
    }

    /// Copies bytes in, from its byte `offset` on.
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
        let at = self.inside(offset, data.len() as u64)?;
        self.allocation.write(at, data);
        written(&self.allocation, at, data.len() as u64);
        Ok(())
    }

    /// Copies bytes out, from its byte `offset` on.
    pub fn read(&self, offset: u64, data: &mut [u8]) -> Result<(), DeviceError> {
        let at = self.inside(offset, data.len() as u64)?;
        self.allocation.read(at, data);
        Ok(())
    }

    /// Copies its first bytes out, as one value instead of a mix, while kernels may be running.
    pub fn peek(&self, data: &mut [u8]) -> Result<(), DeviceError> {
        let _wide = (data.len() > 4).then(|| self.allocation.exclusive());
        self.read(0, data)
    }

    /// Copies bytes to its beginning, as one value, while kernels may be running.
    pub fn poke(&self, data: &[u8]) -> Result<(), DeviceError> {
        let _wide = (data.len() > 4).then(|| self.allocation.exclusive());
        self.write(0, data)
    }

    /// Fills `bytes` bytes from its byte `offset` on by repeating a pattern of up to 16 bytes. An empty or longer
    /// pattern fills nothing.
    pub fn fill(&self, offset: u64, bytes: u64, pattern: &[u8]) -> Result<(), DeviceError> {
        let at = self.inside(offset, bytes)?;
        if (1..=16).contains(&pattern.len()) {
            fill(&self.allocation, at, bytes, pattern);
        }
        Ok(())
    }

    /// Copies `bytes` bytes from byte `from` of another span, or of this one, to byte `offset` of this one. The
    /// ranges may overlap. Uninitialised bytes become uninitialised here.
    pub fn copy(&self, offset: u64, source: &Span, from: u64, bytes: u64) -> Result<(), DeviceError> {
        let at = self.inside(offset, bytes)?;
        let from = source.inside(from, bytes)?;
        copy(&self.allocation, at, &source.allocation, from, bytes);
        Ok(())
    }

    /// Marks its bytes as uninitialised, like those of a new buffer, if it covers its whole buffer; those of mapped
    /// memory and of variables always count as written.
    pub fn forget(&self) {
        if self.bytes == self.allocation.bytes {
            self.allocation.written.clear_all();
        }
    }

    /// Where a range begins in the allocation.
    pub(super) fn inside(&self, offset: u64, bytes: u64) -> Result<u64, DeviceError> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(self.start + offset),
            _ => Err(DeviceError::Range { offset, bytes, buffer: self.bytes }),
        }
    }
}
