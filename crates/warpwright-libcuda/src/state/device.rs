//! A device as clients see it, and the virtual GPU behind it.

use super::Config;
use super::context::{Context, ContextSettings};
use crate::engine::{Engine, hosts, reservations};
use crate::lock;
use crate::report::log;
use crate::types::{CUcontext, CUdevice, CUuuid, Result, Status};
use std::ffi::c_int;
use std::sync::{Arc, Mutex, OnceLock};
use warpwright_ptx::ir::Arch;
use warpwright_vm::{DeviceConfig, Native};

/// The highest priority of a stream; the lowest is 0.
pub(crate) const GREATEST_PRIORITY: c_int = -5;

/// A device. The virtual GPU is created on first use: many clients query all devices and use one.
pub(crate) struct Device {
    pub(crate) ordinal: CUdevice,
    pub(crate) config: DeviceConfig,
    engine: OnceLock<Result<Arc<Engine>>>,
    primary: Mutex<Primary>,
}

/// The primary context.
#[derive(Default)]
struct Primary {
    /// The current one, or the last one that was destroyed. Its handle stays.
    context: Option<Arc<Context>>,
    retained: u32,
    flags: u32,
}

impl Primary {
    fn active(&self) -> Option<&Arc<Context>> {
        self.context.as_ref().filter(|context| context.is_alive())
    }
}

impl Device {
    /// The device of an ordinal, of those that the configuration has.
    pub(super) fn new(ordinal: CUdevice, arch: Arch, config: &Config) -> Self {
        let mut device = DeviceConfig::of(arch);
        device.memory = config.memory;
        device.workers = config.workers;
        device.native = config.native;
        // An address says which device it is of.
        device.addresses = (ordinal as u32, config.devices.len() as u32);
        Device { ordinal, config: device, engine: OnceLock::new(), primary: Mutex::default() }
    }

    /// Its architecture.
    pub(crate) fn arch(&self) -> Arch {
        self.config.arch
    }

    /// Major and minor number of its architecture.
    pub(crate) fn compute_capability(&self) -> (c_int, c_int) {
        let sm = c_int::from(self.config.arch.sm);
        (sm / 10, sm % 10)
    }

    /// Its name.
    pub(crate) fn name(&self) -> String {
        format!("Warpwright virtual GPU ({})", self.config.arch)
    }

    /// A UUID that depends on the ordinal and the architecture alone.
    pub(crate) fn uuid(&self) -> CUuuid {
        let mut bytes = *b"warpwright\0\0\0\0\0\0";
        bytes[10..12].copy_from_slice(&self.config.arch.sm.to_be_bytes());
        bytes[12..].copy_from_slice(&self.ordinal.to_be_bytes());
        CUuuid { bytes }
    }

    /// Its PCI address.
    pub(crate) fn pci_place(&self) -> PciPlace {
        // Each on a bus of its own, of which a domain has 255.
        let (domain, bus) = (self.ordinal / 255, self.ordinal % 255 + 1);
        PciPlace { domain: domain as u32, bus: bus as u32, device: 0 }
    }

    /// The virtual GPU.
    pub(crate) fn vm(&self) -> Result<&warpwright_vm::Device> {
        self.engine().map(|engine| engine.vm())
    }

    /// The engine of the virtual GPU.
    pub(crate) fn engine(&self) -> Result<&Arc<Engine>> {
        let mut starts = false;
        let engine = self.engine.get_or_init(|| {
            starts = true;
            if self.config.native == Native::Always
                && let Some(why) = Native::unavailable()
            {
                log::note(&format_args!("kernels are interpreted: {why}"));
            }
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
            reservations().map_into(engine)?;
        }
        Ok(engine)
    }

    /// The engine, if it was started.
    pub(crate) fn engine_if_started(&self) -> Option<Arc<Engine>> {
        self.engine.get()?.as_ref().ok().cloned()
    }

    /// Host threads that run blocks.
    pub(crate) fn host_threads(&self) -> u32 {
        match self.config.workers {
            0 => std::thread::available_parallelism().map_or(1, |threads| threads.get() as u32),
            workers => workers,
        }
    }

    /// Retains the primary context, which is created if it does not exist.
    pub(crate) fn retain_primary(self: &Arc<Self>) -> Result<CUcontext> {
        let mut primary = lock(&self.primary);
        let context = match primary.active() {
            Some(context) => context.clone(),
            None => {
                let settings = ContextSettings::with_flags(primary.flags)?;
                let context = Context::create_primary(self, settings, primary.context.as_deref())?;
                primary.context.insert(context).clone()
            }
        };
        primary.retained += 1;
        Ok(context.handle)
    }

    /// Releases it. The last release destroys it.
    pub(crate) fn release_primary(&self) -> Result<()> {
        let mut primary = lock(&self.primary);
        primary.retained = primary.retained.checked_sub(1).ok_or(Status::INVALID_CONTEXT)?;
        let last = if primary.retained == 0 { primary.active().cloned() } else { None };
        drop(primary);
        let Some(context) = last else { return Ok(()) };
        // That may take a while, in which others retain contexts; where it was this one, it stays.
        if let Some(engine) = self.engine_if_started() {
            engine.drain_context(&context);
        }
        let primary = lock(&self.primary);
        if primary.retained == 0 {
            context.destroy();
        }
        Ok(())
    }

    /// Destroys it. Clients that retained it must still release it.
    pub(crate) fn reset_primary(&self) -> Result<()> {
        let active = lock(&self.primary).active().cloned();
        if let Some(context) = active {
            context.destroy();
        }
        Ok(())
    }

    /// Sets the flags of the primary context, now and later.
    pub(crate) fn set_primary_flags(&self, flags: u32) -> Result<()> {
        let ContextSettings { flags, .. } = ContextSettings::with_flags(flags)?;
        let mut primary = lock(&self.primary);
        primary.flags = flags;
        if let Some(context) = primary.active() {
            context.change(|settings| settings.flags = flags);
        }
        Ok(())
    }

    /// The flags of the primary context, and whether it exists.
    pub(crate) fn primary_state(&self) -> (u32, bool) {
        let primary = lock(&self.primary);
        (primary.flags, primary.active().is_some())
    }
}

/// The PCI address of a device. Each has one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PciPlace {
    pub(crate) domain: u32,
    pub(crate) bus: u32,
    pub(crate) device: u32,
}

impl std::fmt::Display for PciPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.0", self.domain, self.bus, self.device)
    }
}

impl PciPlace {
    /// Parses `domain:bus:device.function`, which may lack the domain and the function. An address with another
    /// function than 0 is invalid.
    pub(crate) fn parse(text: &str) -> Option<PciPlace> {
        let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            true => u32::from_str_radix(text, 16).ok(),
            false => None,
        };
        let (place, function) = text.split_once('.').unwrap_or((text, "0"));
        if number(function)? != 0 {
            return None;
        }
        let parts: Vec<u32> = place.split(':').map(number).collect::<Option<_>>()?;
        match parts[..] {
            [domain, bus, device] => Some(PciPlace { domain, bus, device }),
            [bus, device] => Some(PciPlace { domain: 0, bus, device }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_written() {
        let place = PciPlace { domain: 1, bus: 0xa0, device: 3 };
        assert_eq!(PciPlace::parse(&place.to_string()), Some(place));
        assert_eq!(PciPlace::parse("0001:A0:03"), Some(place));
        assert_eq!(PciPlace::parse("a0:3.0"), Some(PciPlace { domain: 0, ..place }));
        for wrong in ["", "1", "1:2:3:4", "1:2.1", "+1:2", "1:2.", "::", "g:1", "123456789:1:1"] {
            assert_eq!(PciPlace::parse(wrong), None, "{wrong}");
        }
    }
}
