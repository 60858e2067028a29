//! Lists the available devices.

use super::{DeviceSpec, Properties};
use crate::cuda::{self, CudaError, DriverVersion};
use crate::error::Result;
use crate::vm::{self, VmConfig};

/// A device that can be opened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Its name.
    pub spec: DeviceSpec,
    /// Its properties.
    pub properties: Properties,
    /// Its compute capability, major and minor. It may be newer than the architecture in `properties`, which is the
    /// newest known one that the device runs.
    pub compute_capability: (u32, u32),
    /// Whether it is a virtual GPU, directly or behind a CUDA driver.
    pub is_virtual: bool,
    /// The PCI address of a CUDA device: domain, bus, device and function, as in `0000:65:00.0`.
    pub pci_bus_id: Option<String>,
    /// The UUID of a CUDA device, which does not depend on its slot.
    pub uuid: Option<[u8; 16]>,
}

/// The available devices: those of CUDA, and the virtual GPU, which is always available.
///
/// If CUDA is not available, for example without a driver, [`cuda_driver`] says why. The list omits devices that are
/// too old. No device is opened.
pub fn devices() -> Result<Vec<DeviceInfo>> {
    let count = cuda::count().unwrap_or(0);
    let mut devices = Vec::new();
    for ordinal in 0..count {
        match cuda::describe(ordinal) {
            Ok(info) => devices.push(info),
            Err(CudaError::OldDevice { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let properties = vm::properties(&VmConfig::default().device);
    let sm = u32::from(properties.arch.sm);
    devices.push(DeviceInfo {
        spec: DeviceSpec::Vm,
        properties,
        compute_capability: (sm / 10, sm % 10),
        is_virtual: true,
        pci_bus_id: None,
        uuid: None,
    });
    Ok(devices)
}

/// The version of the driver API that the CUDA driver has; an error if there is no usable driver.
pub fn cuda_driver() -> Result<DriverVersion, CudaError> {
    cuda::library().map(|library| library.version)
}
