//! Assignment of work: the tiles of each stage as items of blocks, and the waits of items.
//!
//! ```text
//!  a stage     q: 24 tiles          k: 8 tiles  v: 8 tiles, twice as large
//!              ├──────┬──────┬─────┼─┬────────┼────┬────┤
//!  static      block 0│block 1│block 2│block 3 │ 4  │ 5  │    ranges of about the same cost, cut anywhere
//!  queue       ├──┬──┬──┬──┬──┬──┼──┬──┼──┬──┬──┬──┤         items of a few tiles, to whoever comes next
//! ```
//!
//! Small instances are cut only between rounds of a block's warp groups, so that few blocks have to wait.

use super::error::ScheduleError;
use super::schedule::{Instance, Schedule, Stage};
use std::ops::Range;
use warpwright_kernels::persistent::Assignment;
pub use warpwright_kernels::persistent::format::Wait;

/// The items of a schedule, for a number of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Assigned {
    /// How items are assigned to blocks.
    pub assignment: Assignment,
    /// The blocks of the decoder.
    pub blocks: u32,
    /// The items, list after list.
    pub items: Vec<Item>,
    /// The items of each list: one list per phase and block, block by block within a phase, or with a queue one per
    /// phase.
    pub lists: Vec<Range<u32>>,
    /// Number of counters, including the queue heads at the beginning.
    pub counters: u32,
}

/// Tiles of an instance that one block computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Item {
    /// The instance: an index into [`Schedule::instances`].
    pub instance: usize,
    /// The first tile: x fastest, then y, then z.
    pub first: u32,
    /// The end of the tiles: one past the last.
    pub end: u32,
    /// The counter to wait for, and how many items increment it.
    pub wait: Option<Wait>,
    /// The counter that is incremented when the item is done.
    pub signal: Option<u32>,
}

/// Items that a queue has for each block, so that the last ones are short.
const ITEMS_OF_A_BLOCK: u64 = 4;

/// Most blocks of a decoder.
const MAX_BLOCKS: u32 = 65_535;

/// Tiles of an instance, by its place.
type TileRange = (usize, Range<u32>);

impl Schedule {
    /// Assigns the tiles to this many blocks.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Blocks`] if the number of blocks is zero or too large.
    pub fn assign(&self, blocks: u32, assignment: Assignment) -> Result<Assigned, ScheduleError> {
        if !(1..=MAX_BLOCKS).contains(&blocks) {
            return Err(ScheduleError::Blocks { blocks });
        }
        let phases = self.phases.len() as u32;
        let mut assigned = Assigned {
            assignment,
            blocks,
            items: Vec::new(),
            lists: Vec::new(),
            counters: assignment.first_counter(phases),
        };
        for phase in &self.phases {
            // By list, the items of all stages, one stage after the other.
            let count = if assignment == Assignment::Queue { 1 } else { blocks as usize };
            let mut lists: Vec<Vec<Item>> = vec![Vec::new(); count];
            let mut wait = None;
            for (i, stage) in phase.stages.iter().enumerate() {
                let last = i + 1 == phase.stages.len();
                let signal = (!last).then(|| {
                    assigned.counters += 1;
                    assigned.counters - 1
                });
                let parts = match assignment {
                    Assignment::Static => self.ranges(stage, &assigned),
                    Assignment::Queue => self.queued(stage, &assigned),
                };
                let value = parts.len() as u32;
                for (list, (instance, tiles)) in parts {
                    lists[list].push(Item { instance, first: tiles.start, end: tiles.end, wait, signal });
                }
                wait = signal.map(|counter| Wait { counter, value });
            }
            for list in lists {
                let first = assigned.items.len() as u32;
                assigned.items.extend(list);
                assigned.lists.push(first..assigned.items.len() as u32);
            }
        }
        Ok(assigned)
    }

    /// Teams of a block that run an instance.
    pub(super) fn teams_of(&self, instance: usize) -> u32 {
        self.instances.get(instance).map_or(1, |instance| (self.warps / instance.call.warps()).max(1))
    }

    /// Contiguous ranges of about the same cost, with their blocks.
    fn ranges(&self, stage: &Stage, assigned: &Assigned) -> Vec<(usize, TileRange)> {
        let known = || stage.instances.iter().filter_map(|&i| Some((i, self.instances.get(i)?)));
        let large = known().any(|(_, instance)| instance.large);
        let grain = |i: usize| if large { 1 } else { self.teams_of(i) };
        let chunks: u64 = known().map(|(i, instance)| instance.tiles().div_ceil(grain(i).into())).sum();
        let blocks = u64::from(assigned.blocks);
        let parts = chunks.clamp(1, blocks);
        let weight = |i: usize, instance: &Instance, tiles: u64| {
            u128::from(self.item_cost(instance, tiles, self.teams_of(i)))
        };
        let chunk_cost = |i: usize, instance: &Instance| weight(i, instance, grain(i).into()).max(1);
        let total: u128 = known()
            .map(|(i, instance)| {
                chunk_cost(i, instance) * u128::from(instance.tiles().div_ceil(grain(i).into()))
            })
            .sum();
        let mut all: Vec<(usize, TileRange)> = Vec::new();
        let mut before = 0u128;
        for (i, instance) in known() {
            let (own, grain) = (chunk_cost(i, instance), grain(i));
            let tiles = instance.tiles() as u32;
            for first in (0..tiles).step_by(grain as usize) {
                // By the middle of what it costs, and of few parts far from one another.
                let part = ((before + own / 2) * u128::from(parts) / total.max(1)) as u64;
                let block = (part.min(parts - 1) * blocks / parts) as usize;
                before += own;
                let end = tiles.min(first.saturating_add(grain));
                match all.last_mut() {
                    Some((last, (of, range))) if *last == block && *of == i => range.end = end,
                    _ => all.push((block, (i, first..end))),
                }
            }
        }
        all
    }

    /// Items of a few tiles.
    fn queued(&self, stage: &Stage, assigned: &Assigned) -> Vec<(usize, TileRange)> {
        let mut all = Vec::new();
        let known = || stage.instances.iter().filter_map(|&i| Some((i, self.instances.get(i)?)));
        let bytes: u128 = known().map(|(_, instance)| u128::from(instance.bytes.max(1))).sum();
        for (i, instance) in known() {
            let teams = u64::from(self.teams_of(i));
            let own = u128::from(u64::from(assigned.blocks) * ITEMS_OF_A_BLOCK);
            let items = (own * u128::from(instance.bytes.max(1))).div_ceil(bytes.max(1)) as u64;
            let grain = instance.tiles().div_ceil(items.max(1)).next_multiple_of(teams);
            let tiles = instance.tiles() as u32;
            let grain = u32::try_from(grain).unwrap_or(tiles).max(1);
            for first in (0..tiles).step_by(grain as usize) {
                all.push((0, (i, first..tiles.min(first.saturating_add(grain)))));
            }
        }
        all
    }
}
