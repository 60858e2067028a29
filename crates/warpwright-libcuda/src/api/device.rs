//! Devices, and what they are like.

use super::entries;
use crate::state::{attribute, state};
use crate::types::{CUdevice, CUdevice_P2PAttribute, CUdevice_attribute, CUuuid, In, Out, Result};
use crate::types::{Status, text};
use std::ffi::{c_char, c_int};

/// Both must be there.
fn two(device: CUdevice, peer: CUdevice) -> Result<()> {
    let state = state()?;
    state.device(device)?;
    state.device(peer).map(drop)
}

entries! {
    /// The device of an ordinal.
    fn cuDeviceGet(device: Out<CUdevice>, ordinal: c_int) {
        device.set(state()?.device(ordinal)?.ordinal)
    }

    /// How many devices there are.
    fn cuDeviceGetCount(count: Out<c_int>) {
        count.set(state()?.devices.len() as c_int)
    }

    /// The name of a device, cut to `len` bytes with its end.
    fn cuDeviceGetName(name: Out<c_char>, len: c_int, device: CUdevice) {
        name.set_text(&state()?.device(device)?.name(), usize::try_from(len).unwrap_or(0))
    }

    /// A name that no other device has. There are no partitions of devices.
    fn cuDeviceGetUuid = cuDeviceGetUuid_v2(uuid: Out<CUuuid>, device: CUdevice) {
        uuid.set(state()?.device(device)?.uuid())
    }

    /// Bytes of its memory.
    fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: CUdevice) {
        bytes.set(state()?.device(device)?.config.memory as usize)
    }

    /// A number that says what it is like.
    fn cuDeviceGetAttribute(value: Out<c_int>, which: CUdevice_attribute, device: CUdevice) {
        let value = value.required()?;
        value.set(attribute(state()?.device(device)?, which)?)
    }

    /// Major and minor number of its architecture.
    fn cuDeviceComputeCapability(major: Out<c_int>, minor: Out<c_int>, device: CUdevice) {
        let (first, second) = state()?.device(device)?.compute_capability();
        minor.required()?;
        major.set(first)?;
        minor.set(second)
    }

    /// Where it is, as `domain:bus:device.function`.
    fn cuDeviceGetPCIBusId(id: Out<c_char>, len: c_int, device: CUdevice) {
        id.set_text(&state()?.device(device)?.pci_place().to_string(), usize::try_from(len).unwrap_or(0))
    }

    /// The device at a place, which may lack the domain and the function.
    fn cuDeviceGetByPCIBusId(device: Out<CUdevice>, id: In<c_char>) {
        let device = device.required()?;
        let place = crate::state::PciPlace::parse(&text(id)?).ok_or(Status::INVALID_VALUE)?;
        let found = state()?.devices.iter().find(|device| device.pci_place() == place);
        device.set(found.ok_or(Status::INVALID_DEVICE)?.ordinal)
    }

    /// Whether kernels of a device can use memory of another one. Virtual GPUs have address spaces of their own.
    fn cuDeviceCanAccessPeer(can: Out<c_int>, device: CUdevice, peer: CUdevice) {
        let can = can.required()?;
        two(device, peer)?;
        can.set(0)
    }

    /// What is between two devices, which must not be one.
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
