//! A schedule as data for people and programs, with names instead of handles.
//!
//! The JSON of a report has its fields in this order and with these names. `version` is [`VERSION`]: it increases when
//! a field is removed or changes its meaning; added fields do not change it. Times are costs: bytes.

use serde::{Deserialize, Serialize};

/// The version of the JSON that this crate writes.
pub const VERSION: u32 = 1;

/// An assigned schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ScheduleReport {
    /// The version of this form: [`VERSION`].
    pub version: u32,
    /// How items are assigned to blocks: `static` or `queue`.
    pub assignment: String,
    /// Warps of a block.
    pub warps: u32,
    /// The cost of a round of tiles in addition to its bytes.
    pub round_bytes: u64,
    /// Sums.
    pub totals: ScheduleTotals,
    /// The phases, in order.
    pub phases: Vec<PhaseReport>,
    /// The blocks.
    pub blocks: Vec<BlockReport>,
    /// The ops of the decoder.
    pub ops: Vec<OpReport>,
    /// The instances, in the order of the plan.
    pub instances: Vec<InstanceReport>,
    /// The items, list after list.
    pub items: Vec<ItemReport>,
}

/// Sums of a token.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ScheduleTotals {
    /// Grid barriers: one after each phase.
    pub barriers: usize,
    /// Stages of all phases.
    pub stages: usize,
    /// Instances.
    pub instances: usize,
    /// Items.
    pub items: usize,
    /// Tiles.
    pub tiles: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Bytes of the matrices of products among them.
    pub weight_bytes: u64,
    /// The total time.
    pub cost: u64,
    /// The mean share of the time for which a block is idle: from 0 to 1.
    pub idle: f64,
}

/// The work between two barriers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PhaseReport {
    /// When it begins.
    pub from: u64,
    /// When it ends.
    pub to: u64,
    /// The mean share of the phase for which a block is idle: from 0 to 1.
    pub idle: f64,
}

/// A block of the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BlockReport {
    /// Its working time.
    pub busy: u64,
    /// The share of a token's time for which it is idle: from 0 to 1.
    pub idle: f64,
}

/// An op of the decoder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OpReport {
    /// Its name.
    pub code: String,
    /// How many instances run it.
    pub instances: usize,
}

/// A launch of the plan, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InstanceReport {
    /// What its step does: `products`; or `appended`.
    pub does: String,
    /// The family of the step: `mat_mul`.
    pub family: String,
    /// The step's index in the plan; `None` for launches outside the plan.
    pub step: Option<usize>,
    /// Names of the tensors that it makes.
    pub makes: Vec<String>,
    /// The kernel, with its sizes.
    pub kernel: String,
    /// Its op: an index into `ops`.
    pub op: usize,
    /// Its phase: an index into `phases`.
    pub phase: usize,
    /// Its stage, from 0 in each phase.
    pub stage: usize,
    /// Its grid, in tiles.
    pub grid: [u32; 3],
    /// Tiles in all.
    pub tiles: u64,
    /// Warps of a warp group, which computes one tile at a time.
    pub warps: u32,
    /// Its items.
    pub items: usize,
    /// Bytes that it moves.
    pub bytes: u64,
    /// Bytes of matrices of products among them.
    pub weight_bytes: u64,
}

/// Tiles that one block computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ItemReport {
    /// The block: of a queue the one that is free first.
    pub block: u32,
    /// Its instance: a place in `instances`.
    pub instance: usize,
    /// The first tile.
    pub first: u32,
    /// The tile behind the last.
    pub end: u32,
    /// What it waits for, if anything.
    pub wait: Option<WaitReport>,
    /// The counter that it counts, if any.
    pub signal: Option<u32>,
    /// When it begins.
    pub from: u64,
    /// When it ends.
    pub to: u64,
}

/// What an item waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WaitReport {
    /// The counter.
    pub counter: u32,
    /// How many items count it.
    pub value: u32,
}
