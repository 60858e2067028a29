//! A device as a client finds it, and the virtual GPU behind it.

use super::Config;
use crate::engine::{Engine, hosts};
use crate::report::log;
use crate::types::{CUdevice, Result, Status};
use std::sync::{Arc, OnceLock};
use warpwright_ptx::ir::Arch;
use warpwright_vm::DeviceConfig;

/// A device. The virtual GPU is made when it is first needed: many clients look at all devices and use one.
pub(crate) struct Device {
    ordinal: CUdevice,
    config: DeviceConfig,
    engine: OnceLock<Result<Arc<Engine>>>,
}

impl Device {
    /// The device of an ordinal, of those that the configuration has.
    pub(super) fn new(ordinal: CUdevice, arch: Arch, config: &Config) -> Self {
        let mut device = DeviceConfig::default();
        device.arch = arch;
        device.memory = config.memory;
        device.workers = config.workers;
        // An address says which device it is of.
        device.addresses = (ordinal as u32, config.devices.len() as u32);
        Device { ordinal, config: device, engine: OnceLock::new() }
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
        self.engine().map(|engine| engine.vm())
    }

    /// The virtual GPU at work.
    pub(crate) fn engine(&self) -> Result<&Arc<Engine>> {
        let mut starts = false;
        let engine = self.engine.get_or_init(|| {
            starts = true;
            let vm = warpwright_vm::Device::new(self.config.clone()).map_err(|error| {
                log::note(&error);
                Status::OPERATING_SYSTEM
            })?;
            Engine::start(self.ordinal, vm)
        });
        let engine = engine.as_ref().map_err(|status| *status)?;
        // What of the host's memory was made known before; it is made known to this device from now on.
        if starts {
            hosts().map_into(engine)?;
        }
        Ok(engine)
    }

    /// The same, if something has needed it.
    pub(crate) fn engine_if_started(&self) -> Option<Arc<Engine>> {
        self.engine.get()?.as_ref().ok().cloned()
    }
}
