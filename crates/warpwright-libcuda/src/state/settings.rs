//! The settings that a client of this library alone may change while the process runs.

use super::{config, has_forked, started};
use crate::engine::{self, Engine};
use crate::state::config as parsers;
use crate::types::{Result, Status};
use std::sync::{Arc, PoisonError, RwLock};
use warpwright_device::Order;
use warpwright_vm::{Checks, Race, Schedule};

/// How launches are checked, and in which order streams run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The checks of launches.
    pub(crate) checks: Checks,
    /// Whether calls that return an error are findings.
    pub(crate) api: bool,
    /// The definition of a race.
    pub(crate) race: Race,
    /// The execution order of streams.
    pub(crate) order: Order,
    /// The order of blocks and warps.
    pub(crate) schedule: Schedule,
    /// A launch that executes more is ended.
    pub(crate) max_instructions: u64,
}

/// What a client has set; the configuration says it otherwise.
static CHANGED: RwLock<Option<Settings>> = RwLock::new(None);

/// The settings.
pub(crate) fn settings() -> Result<Settings> {
    let changed = *CHANGED.read().unwrap_or_else(PoisonError::into_inner);
    changed.map_or_else(|| config().map(|config| config.settings), Ok)
}

/// Changes the settings that are given, as the variables of the environment write them; the order is that of blocks and
/// warps too. All operations so far are completed under those before. Nothing changes if one is invalid.
pub(crate) fn change(check: Option<&str>, race: Option<&str>, order: Option<&str>) -> Result<()> {
    let mut settings = settings()?;
    if let Some(text) = check {
        settings.checks = parsers::checks(text).ok_or(Status::INVALID_VALUE)?;
        settings.api = parsers::has_api(text);
    }
    if let Some(text) = race {
        settings.race = parsers::race(text).ok_or(Status::INVALID_VALUE)?;
    }
    if let Some(text) = order {
        settings.order = text.parse().map_err(|_| Status::INVALID_VALUE)?;
        settings.schedule = settings.order.schedule();
    }
    complete_all()?;
    // What launches have written without that check is not known.
    if settings.checks.init && !self::settings()?.checks.init {
        engines().for_each(|engine| engine.vm().assume_written());
    }
    *CHANGED.write().unwrap_or_else(PoisonError::into_inner) = Some(settings);
    engines().for_each(|engine| engine.set_order(settings.order));
    Ok(())
}

/// Changes the limit of launches that are started from now on; 0 is none.
pub(crate) fn limit(max_instructions: u64) -> Result<()> {
    if max_instructions == 0 {
        return Err(Status::INVALID_VALUE);
    }
    complete_all()?;
    let settings = Settings { max_instructions, ..settings()? };
    *CHANGED.write().unwrap_or_else(PoisonError::into_inner) = Some(settings);
    Ok(())
}

/// Waits for all operations of all devices so far.
pub(crate) fn complete_all() -> Result<()> {
    engine::permitted()?;
    engines().for_each(|engine| engine.drain());
    Ok(())
}

/// The engines that were started; a forked child has none.
fn engines() -> impl Iterator<Item = Arc<Engine>> {
    let state = started().filter(|_| !has_forked());
    state.into_iter().flat_map(|state| &state.devices).filter_map(|device| device.engine_if_started())
}
