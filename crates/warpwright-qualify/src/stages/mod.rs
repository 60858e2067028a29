//! The stages: what each does, item by item.

mod cases;
mod load;

use crate::event::Finding;
use serde::{Deserialize, Serialize};
use std::fmt;
use warpwright_runtime::Device;

/// A stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Stage {
    /// The correctness cases of the kernels, against float64.
    Cases,
    /// Every kernel and configuration of the catalogue through the driver.
    Load,
}

impl Stage {
    /// All stages, the most valuable first.
    pub const ALL: [Stage; 2] = [Stage::Cases, Stage::Load];

    /// Its name, as on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Cases => "cases",
            Stage::Load => "load",
        }
    }

    /// What it does, for people.
    pub const fn description(self) -> &'static str {
        match self {
            Stage::Cases => "kernels against float64",
            Stage::Load => "kernels through the compiler of the driver",
        }
    }

    pub(crate) fn items(self, quick: bool) -> Vec<Item> {
        match self {
            Stage::Cases => cases::items(quick),
            Stage::Load => load::items(quick),
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is wrong with what an item did; the findings that it has all the same come before.
pub(crate) type Outcome = Result<(), String>;

/// A piece of a stage that succeeds or fails by itself.
pub(crate) struct Item {
    pub(crate) name: String,
    pub(crate) run: Box<dyn Fn(&Device, &mut dyn FnMut(Finding)) -> Outcome>,
}
