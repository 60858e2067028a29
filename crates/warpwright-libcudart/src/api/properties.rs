//! `cudaDeviceProp`: what a device is, in the layout of each major version.

use super::entries;
use crate::abi::{In, Out, Uuid};
use crate::driver::driver;
use crate::error::Result;
use crate::state::{handle, major};
use std::ffi::{c_char, c_int};

/// The layouts of `cudaDeviceProp`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// That of CUDA 11, which CUDA 12 keeps for programs that were linked before.
    Cuda11,
    Cuda12,
    Cuda13,
}

impl Layout {
    /// The number of bytes.
    const fn bytes(self) -> usize {
        match self {
            Layout::Cuda11 => 728,
            Layout::Cuda12 => 1032,
            Layout::Cuda13 => 1008,
        }
    }
}

/// The structure as it is filled, field after field.
struct Fields {
    device: c_int,
    bytes: Vec<u8>,
}

impl Fields {
    /// Adds a field with its alignment.
    fn push<const N: usize>(&mut self, bytes: [u8; N]) {
        let aligned = self.bytes.len().next_multiple_of(N);
        self.bytes.resize(aligned, 0);
        self.bytes.extend(bytes);
    }

    /// The value of an attribute; 0 if the driver does not know it.
    fn value(&self, attribute: c_int) -> c_int {
        let mut value: c_int = 0;
        match driver!(cuDeviceGetAttribute(&raw mut value, attribute, self.device)) {
            Ok(()) => value,
            Err(_) => 0,
        }
    }

    /// Adds attributes as `int`s.
    fn ints(&mut self, attributes: impl IntoIterator<Item = c_int>) {
        attributes.into_iter().for_each(|attribute| self.push(self.value(attribute).to_ne_bytes()));
    }

    /// Adds an attribute as a `size_t`.
    fn size(&mut self, attribute: c_int) {
        self.push(u64::try_from(self.value(attribute)).unwrap_or(0).to_ne_bytes());
    }
}

/// Fills the structure. The numbers are those of `CU_DEVICE_ATTRIBUTE_…`, and the fields are in the order of the
/// layout.
fn properties(device: c_int, layout: Layout) -> Result<Vec<u8>> {
    let device = handle(device)?;
    let is_old = layout != Layout::Cuda13;
    let (mut name, mut uuid, mut memory) = ([0u8; 256], Uuid::zeroed(), 0usize);
    driver!(cuDeviceGetName(name.as_mut_ptr().cast::<c_char>(), 256 as c_int, device))?;
    // A driver may know no identity, which stays 0 then.
    let _ = driver!(cuDeviceGetUuid_v2(&raw mut uuid, device));
    driver!(cuDeviceTotalMem_v2(&raw mut memory, device))?;

    let mut fields = Fields { device, bytes: Vec::with_capacity(layout.bytes()) };
    fields.bytes.extend(name);
    fields.bytes.extend(uuid.bytes);
    // The identity on another operating system, and its mask.
    fields.bytes.extend([0; 12]);
    fields.push(memory.to_ne_bytes());
    fields.size(8);
    fields.ints([12, 10]);
    fields.size(11);
    fields.ints(1..=7);
    if is_old {
        fields.ints([13]);
    }
    fields.size(9);
    fields.ints([75, 76]);
    fields.size(14);
    fields.size(51);
    if is_old {
        fields.ints([15, 16, 17, 18, 19, 20, 21, 77, 69]);
    } else {
        fields.ints([16, 18, 19, 21, 77]);
    }
    // Textures, then surfaces.
    fields.ints([22, 23, 73, 74, 70, 71, 72, 45, 46, 24, 25, 26, 47, 48, 49, 52, 42, 43, 27, 28, 29, 53, 54]);
    fields.ints(55..=68);
    fields.size(30);
    fields.ints([31, 32, 33, 34, 50, 35, 40, 41]);
    if is_old {
        fields.ints([36]);
    }
    fields.ints([37, 38, 108, 39, 78, 79, 80]);
    fields.size(81);
    fields.ints([82, 83, 84, 85, 86]);
    if is_old {
        fields.ints([87]);
    }
    fields.ints([88, 89, 90, 91, 95]);
    if is_old {
        fields.ints([96]);
    }
    fields.size(97);
    fields.ints([100, 101, 106, 109]);
    fields.size(111);
    if layout != Layout::Cuda11 {
        fields.ints([99, 112, 113, 114, 115, 116, 117, 118, 119, 121, 125, 120, 129]);
    }
    if layout == Layout::Cuda13 {
        fields.ints([130, 131, 133, 134, 139, 140, 143]);
    }
    fields.bytes.resize(layout.bytes(), 0);
    Ok(fields.bytes)
}

/// The layout that the unversioned name means.
fn latest() -> Layout {
    if major() == 12 { Layout::Cuda11 } else { Layout::Cuda13 }
}

/// Where fields are that all layouts have at the same place, in bytes.
const MEMORY: usize = 288;
const CAPABILITY: usize = 360;

/// Memory in bytes and compute capability of a device, as far as a structure asks for them.
fn wishes(bytes: &[u8]) -> (u64, c_int, c_int) {
    let number = |at: usize| {
        bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, c_int::from_ne_bytes)
    };
    let memory =
        bytes.get(MEMORY..MEMORY + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes);
    (memory, number(CAPABILITY), number(CAPABILITY + 4))
}

entries! {
    /// Returns the properties of a device.
    bare fn cudaGetDeviceProperties(properties_out: Out<u8>, device: c_int) {
        properties_out.required()?.set_all(properties(device, latest())?)
    }

    /// Returns the properties of a device, in the layout of CUDA 12.
    bare fn cudaGetDeviceProperties_v2(properties_out: Out<u8>, device: c_int) {
        properties_out.required()?.set_all(properties(device, Layout::Cuda12)?)
    }

    /// Returns the first device that has the memory and the compute capability of some properties, or else device 0.
    bare fn cudaChooseDevice(device: Out<c_int>, wanted: In<[u8; CAPABILITY + 8]>) {
        let (memory, major, minor) = wishes(&wanted.get()?);
        let fits = |device: &c_int| {
            properties(*device, Layout::Cuda13).is_ok_and(|bytes| {
                let (has, major_has, minor_has) = wishes(&bytes);
                has >= memory && (major_has, minor_has) >= (major, minor)
            })
        };
        let count = super::device::count()?;
        device.set((0..count).find(fits).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_where_the_structure_has_them() {
        let mut bytes = [0; CAPABILITY + 8];
        bytes[MEMORY..MEMORY + 8].copy_from_slice(&(5u64 << 30).to_ne_bytes());
        bytes[CAPABILITY..CAPABILITY + 4].copy_from_slice(&9u32.to_ne_bytes());
        bytes[CAPABILITY + 4..].copy_from_slice(&1u32.to_ne_bytes());
        assert_eq!(wishes(&bytes), (5 << 30, 9, 1));
    }
}
