//! Rotation: how many heads a lane turns by the same angles.

use super::{DeviceModel, Shape};
use warpwright_dsl::{BuildError, Config};

/// The launch of a [`Rope`](crate::Rope).
#[derive(Clone, Debug, PartialEq, Config)]
#[config(name = "rope")]
pub struct RopeShape {
    /// Heads of q, k and v.
    #[field(range = 1..=4096)]
    pub heads: u32,
    /// Tokens of the launch.
    #[field(range = 1..=u32::MAX)]
    pub tokens: u32,
}

/// How many heads a lane takes.
#[derive(Clone, Debug, PartialEq, Config)]
pub struct RopeChoice {
    /// Heads that a lane takes one after the other, with the same angles.
    #[field(range = 1..=16)]
    pub rounds: u32,
}

/// Heads that a lane takes where there are many.
const ROUNDS: u32 = 4;

impl Shape for RopeShape {
    type Choice = RopeChoice;

    /// Angles serve several heads where enough warps are left for half of what the device holds.
    fn estimate(&self, device: &DeviceModel) -> RopeChoice {
        let heads = u64::from(self.tokens) * u64::from(self.heads);
        let busy = u64::from(device.multiprocessors) * u64::from(device.warps / 2);
        RopeChoice { rounds: if heads >= busy * u64::from(ROUNDS) { ROUNDS } else { 1 } }
    }

    fn check(&self, _choice: &RopeChoice) -> Result<(), BuildError> {
        Ok(())
    }
}
