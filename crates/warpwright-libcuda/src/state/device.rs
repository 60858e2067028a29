//! A device as a client finds it, and the virtual GPU behind it.

use super::Config;
use crate::report::log;
use crate::types::{CUdevice, Result, Status};
use std::sync::OnceLock;
use warpwright_ptx::ir::Arch;
use warpwright_vm::DeviceConfig;

/// A device. The virtual GPU is made when it is first needed: many clients look at all devices and use one.
pub(crate) struct Device {
    ordinal: CUdevice,
    config: DeviceConfig,
    vm: OnceLock<Result<warpwright_vm::Device>>,
}

impl Device {
    pub(super) fn new(ordinal: CUdevice, arch: Arch, config: &Config) -> Self {
        let mut device = DeviceConfig::default();
        device.arch = arch;
        device.memory = config.memory;
        device.workers = config.workers;
        Device { ordinal, config: device, vm: OnceLock::new() }
    }

    /// Its number.
    pub(crate) fn ordinal(&self) -> CUdevice {
        self.ordinal
    }

    /// What it is like.
    pub(crate) fn config(&self) -> &DeviceConfig {
        &self.config
    }

    /// Its architecture.
    pub(crate) fn arch(&self) -> Arch {
        self.config.arch
    }

    /// The virtual GPU.
    pub(crate) fn vm(&self) -> Result<&warpwright_vm::Device> {
        let vm = self.vm.get_or_init(|| {
            warpwright_vm::Device::new(self.config.clone()).map_err(|error| {
                log::note(&error);
                Status::OPERATING_SYSTEM
            })
        });
        vm.as_ref().map_err(|status| *status)
    }
}
