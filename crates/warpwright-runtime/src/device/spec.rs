//! Names of devices.

use super::Device;
use crate::cuda;
use crate::error::{Result, RuntimeError};
use crate::vm::VmConfig;
use std::fmt;
use std::str::FromStr;

/// Names a device: `auto`, `vm` or `cuda:N` as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceSpec {
    /// The best available device.
    #[default]
    Auto,
    /// A virtual GPU.
    Vm,
    /// The CUDA device of that number.
    Cuda(u32),
}

/// A device, and why it was chosen.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Selected {
    /// The device.
    pub device: Device,
    /// The reason, as text.
    pub reason: String,
}

impl DeviceSpec {
    /// Opens the device, and says why it was chosen.
    pub fn select(self) -> Result<Selected> {
        let (device, reason) = match self {
            DeviceSpec::Auto => return auto(),
            DeviceSpec::Vm => (Device::vm(VmConfig::default())?, "the virtual GPU was asked for"),
            DeviceSpec::Cuda(ordinal) => (Device::cuda(ordinal)?, "this CUDA device was asked for"),
        };
        Ok(Selected { device, reason: reason.into() })
    }
}

/// The first CUDA device that is not a virtual GPU and can be opened; else the virtual GPU, used directly, since a
/// driver in front of it makes it no faster.
fn auto() -> Result<Selected> {
    let mut reason = match cuda::count() {
        Ok(0) => "the CUDA driver has no device".to_owned(),
        Ok(count) => {
            let mut others = Vec::new();
            for ordinal in 0..count {
                match open_real(ordinal) {
                    Ok(Some(device)) => {
                        let reason = format!("it is the first CUDA device, cuda:{ordinal}");
                        return Ok(Selected { device, reason });
                    }
                    Ok(None) => others.push(format!("cuda:{ordinal} is a virtual GPU")),
                    Err(error) => others.push(format!("cuda:{ordinal} cannot be opened: {error}")),
                }
            }
            others.join("; ")
        }
        Err(error) => error.to_string(),
    };
    reason.push_str("; so it is the virtual GPU");
    Ok(Selected { device: Device::vm(VmConfig::default())?, reason })
}

/// A CUDA device; `None` if it is a virtual one.
fn open_real(ordinal: u32) -> Result<Option<Device>> {
    if cuda::describe(ordinal)?.is_virtual { Ok(None) } else { Device::cuda(ordinal).map(Some) }
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceSpec::Auto => f.write_str("auto"),
            DeviceSpec::Vm => f.write_str("vm"),
            DeviceSpec::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

impl FromStr for DeviceSpec {
    type Err = RuntimeError;

    fn from_str(text: &str) -> Result<Self> {
        let ordinal = |digits: &str| {
            let digits_only = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            digits_only.then(|| digits.parse().ok()).flatten()
        };
        let spec = match text {
            "auto" => Some(DeviceSpec::Auto),
            "vm" => Some(DeviceSpec::Vm),
            _ => text.strip_prefix("cuda:").and_then(ordinal).map(DeviceSpec::Cuda),
        };
        spec.ok_or_else(|| RuntimeError::UnknownDevice { given: text.into() })
    }
}
