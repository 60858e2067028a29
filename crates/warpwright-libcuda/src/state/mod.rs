//! The state of the process: configuration, devices, contexts, handles.
//!
//! It begins with `cuInit` and lasts as long as the process. **A forked child has none of it**: its threads are gone,
//! so functions that need them report that the driver is not initialised, as CUDA does.

mod attributes;
mod config;
mod context;
mod device;
mod handles;
pub(crate) mod limit;
mod model;
mod process;
mod settings;
mod thread;

pub(crate) use attributes::{attribute, persisting_l2, supports_multicast};
pub(crate) use config::{Config, LogLevel, OnError};
pub(crate) use context::{CONTEXTS, Context, ContextSettings, current, forget_errors, stack};
pub(crate) use device::{Device, GREATEST_PRIORITY, PciPlace};
pub(crate) use handles::{Handles, Kind, Stale};
use model::Model;
pub(crate) use process::{has_forked, is_shutting_down};
pub(crate) use settings::{Settings, change, complete_all, limit, settings};
pub(crate) use thread::{EndOfThread, Own};

use crate::report::log;
use crate::types::{CUdevice, Result, Status};
use std::sync::{Arc, OnceLock};

/// The state that `cuInit` creates.
pub(crate) struct State {
    pub(crate) devices: Vec<Arc<Device>>,
}

impl State {
    /// The device of an ordinal.
    pub(crate) fn device(&self, ordinal: CUdevice) -> Result<&Arc<Device>> {
        let found = usize::try_from(ordinal).ok().and_then(|index| self.devices.get(index));
        found.ok_or(Status::INVALID_DEVICE)
    }
}

static STATE: OnceLock<Result<State>> = OnceLock::new();
static CONFIG: OnceLock<Result<Config>> = OnceLock::new();

/// The configuration, read from the environment once.
pub(crate) fn config() -> Result<&'static Config> {
    let config = CONFIG.get_or_init(|| {
        Config::from_environment().map_err(|error| {
            log::note(&error);
            Status::INVALID_VALUE
        })
    });
    config.as_ref().map_err(|status| *status)
}

/// What an error of a kernel does to its context.
pub(crate) fn on_error() -> OnError {
    config().map_or(OnError::Stop, |config| config.on_error)
}

/// The status with which a function is refused, if it is.
pub(crate) fn refusal(function: &str) -> Option<Status> {
    let refused = &config().ok()?.refused;
    refused.iter().find(|(name, _)| *name == function).map(|(_, status)| *status)
}

/// Initialises the state. Calling it again returns the first result.
pub(crate) fn initialise() -> Result<()> {
    process::check()?;
    let config = config()?;
    let state = STATE.get_or_init(|| {
        if config.devices.is_empty() {
            return Err(Status::NO_DEVICE);
        }
        process::watch();
        let device = |(ordinal, arch)| Arc::new(Device::new(ordinal, arch, config));
        Ok(State { devices: (0..).zip(config.devices.iter().copied()).map(device).collect() })
    });
    state.as_ref().map(|_| ()).map_err(|status| *status)
}

/// The state if `cuInit` has created it, also while the process ends.
pub(crate) fn started() -> Option<&'static State> {
    STATE.get()?.as_ref().ok()
}

/// The state that `cuInit` has created.
pub(crate) fn state() -> Result<&'static State> {
    process::check()?;
    started().ok_or(Status::NOT_INITIALIZED)
}

/// The verbosity of the log. Errors of the configuration are logged while it is read.
pub(crate) fn log_level() -> LogLevel {
    match CONFIG.get() {
        Some(Ok(config)) => config.log,
        _ => LogLevel::Missing,
    }
}
