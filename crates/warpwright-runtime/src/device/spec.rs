//! Which device: as people and programs say it.

use super::Device;
use crate::error::{Result, RuntimeError};
use crate::vm::VmConfig;
use std::fmt;
use std::str::FromStr;

/// Which device: `auto`, `vm` or `cuda:N` as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceSpec {
    /// The best one that there is.
    #[default]
    Auto,
    /// A virtual GPU.
    Vm,
    /// The CUDA device of that ordinal.
    Cuda(u32),
}

/// A device, and why it is this one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Selected {
    /// The device.
    pub device: Device,
    /// Why it was chosen, for people.
    pub reason: String,
}

impl DeviceSpec {
    /// Opens the device, and says why it is that one.
    pub fn select(self) -> Result<Selected> {
        let (device, reason) = match self {
            DeviceSpec::Auto => (
                Device::vm(VmConfig::default())?,
                "this version runs on the virtual GPU alone: it has no CUDA devices",
            ),
            DeviceSpec::Vm => (Device::vm(VmConfig::default())?, "the virtual GPU was asked for"),
            DeviceSpec::Cuda(ordinal) => return Err(RuntimeError::NoCuda { ordinal }),
        };
        Ok(Selected { device, reason: reason.into() })
    }
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
