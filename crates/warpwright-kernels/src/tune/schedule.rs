//! The persistent decoder: which work all blocks share, and the cost of a round of tiles.

use super::{DeviceModel, Shape};
use warpwright_dsl::{BuildError, Config};

/// The schedule of a persistent decoder.
#[derive(Clone, Debug, PartialEq, Config)]
#[config(name = "schedule")]
pub struct ScheduleShape {}

/// Costs, expressed as bytes of global memory moved in the same time.
#[derive(Clone, Debug, PartialEq, Config)]
pub struct ScheduleChoice {
    /// Work of at least this many bytes is shared by all blocks: the device moves them in the time of a barrier.
    #[field(range = 1..=u64::MAX)]
    pub large: u64,
    /// The cost of a round of a block's tiles besides the bytes that it moves.
    #[field(range = 0..=u64::MAX)]
    pub round: u64,
}

impl Shape for ScheduleShape {
    type Choice = ScheduleChoice;

    fn estimate(&self, device: &DeviceModel) -> ScheduleChoice {
        let round = device.bytes_in(device.wave) / u64::from(device.multiprocessors.max(1));
        ScheduleChoice { large: device.bytes_in(device.barrier).max(1), round }
    }

    fn check(&self, _choice: &ScheduleChoice) -> Result<(), BuildError> {
        Ok(())
    }
}
