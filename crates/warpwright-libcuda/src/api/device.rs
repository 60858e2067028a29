//! Devices and their attributes.

use super::entries;
use crate::state::{attribute, state};
use crate::types::{CUdevice, CUdevice_P2PAttribute, CUdevice_attribute, CUuuid, In, Out, Result};
use crate::types::{Status, text};
use std::ffi::{c_char, c_int};

/// Checks that both exist.
fn two(device: CUdevice, peer: CUdevice) -> Result<()> {
    let state = state()?;
    state.device(device)?;
    state.device(peer).map(drop)
}

entries! {
    /// Returns the device of an ordinal.
    fn cuDeviceGet(device: Out<CUdevice>, ordinal: c_int) {
        device.set(state()?.device(ordinal)?.ordinal)
    }

    /// Returns the number of devices.
    fn cuDeviceGetCount(count: Out<c_int>) {
        count.set(state()?.devices.len() as c_int)
    }

    /// Returns the name of a device, cut to `len` bytes with its terminating zero.
    fn cuDeviceGetName(name: Out<c_char>, len: c_int, device: CUdevice) {
        name.set_text(&state()?.device(device)?.name(), usize::try_from(len).unwrap_or(0))
    }

    /// Returns the UUID of a device. Devices have no partitions.
    fn cuDeviceGetUuid = cuDeviceGetUuid_v2(uuid: Out<CUuuid>, device: CUdevice) {
        uuid.set(state()?.device(device)?.uuid())
    }

    /// Returns the size of its memory, in bytes.
    fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: CUdevice) {
        bytes.set(state()?.device(device)?.config.memory as usize)
    }

    /// Returns an attribute.
    fn cuDeviceGetAttribute(value: Out<c_int>, which: CUdevice_attribute, device: CUdevice) {
        let value = value.required()?;
        value.set(attribute(state()?.device(device)?, which)?)
    }

    /// Returns the major and minor number of its architecture.
    fn cuDeviceComputeCapability(major: Out<c_int>, minor: Out<c_int>, device: CUdevice) {
        let (first, second) = state()?.device(device)?.compute_capability();
        minor.required()?;
        major.set(first)?;
        minor.set(second)
    }

    /// Returns its PCI address, as `domain:bus:device.function`.
    fn cuDeviceGetPCIBusId(id: Out<c_char>, len: c_int, device: CUdevice) {
        id.set_text(&state()?.device(device)?.pci_place().to_string(), usize::try_from(len).unwrap_or(0))
    }

    /// Returns the device at a PCI address, which may lack the domain and the function.
    fn cuDeviceGetByPCIBusId(device: Out<CUdevice>, id: In<c_char>) {
        let device = device.required()?;
        let place = crate::state::PciPlace::parse(&text(id)?).ok_or(Status::INVALID_VALUE)?;
        let found = state()?.devices.iter().find(|device| device.pci_place() == place);
        device.set(found.ok_or(Status::INVALID_DEVICE)?.ordinal)
    }

    /// Returns whether kernels of a device can access memory of another one. Virtual GPUs have separate address spaces.
    fn cuDeviceCanAccessPeer(can: Out<c_int>, device: CUdevice, peer: CUdevice) {
        let can = can.required()?;
        two(device, peer)?;
        can.set(0)
    }

    /// Returns an attribute of the link between two different devices.
    fn cuDeviceGetP2PAttribute(value: Out<c_int>, which: CUdevice_P2PAttribute, from: CUdevice, to: CUdevice) {
        let value = value.required()?;
        two(from, to)?;
        if from == to {
            return Err(Status::INVALID_DEVICE);
        }
        value.set(match which {
            CUdevice_P2PAttribute::PERFORMANCE_RANK
            | CUdevice_P2PAttribute::ACCESS_SUPPORTED
            | CUdevice_P2PAttribute::NATIVE_ATOMIC_SUPPORTED
            | CUdevice_P2PAttribute::ACCESS_ACCESS_SUPPORTED => 0,
            _ => return Err(Status::INVALID_VALUE),
        })
    }
}
