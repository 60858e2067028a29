//! Which devices there are.

use super::{DeviceSpec, Properties};
use crate::cuda::{self, CudaError, DriverVersion};
use crate::error::Result;
use crate::vm::{self, VmConfig};

/// A device that can be opened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// What it is called.
    pub spec: DeviceSpec,
    /// What it is like.
    pub properties: Properties,
    /// Its compute capability, major and minor. It may be newer than the architecture among its properties, which is the
    /// newest known one that it runs.
    pub compute_capability: (u32, u32),
    /// Whether it is a virtual GPU, or a CUDA device that is one.
    pub is_virtual: bool,
    /// Where a CUDA device is: domain, bus, device and function, as in `0000:65:00.0`.
    pub pci_bus_id: Option<String>,
    /// Which CUDA device it is, wherever it is.
    pub uuid: Option<[u8; 16]>,
}

/// The devices that there are: those of CUDA, and the virtual GPU, which is always there.
///
/// What keeps CUDA devices away, be it that there is no driver, [`cuda_driver`] says. A device that is too old is not
/// among them. No device is opened.
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

/// The version of the driver API that the CUDA driver has; where there is none, or it is of no use, why.
pub fn cuda_driver() -> Result<DriverVersion, CudaError> {
    cuda::library().map(|library| library.version)
}
