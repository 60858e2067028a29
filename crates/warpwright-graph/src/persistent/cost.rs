//! A minimal cost model for schedules: bytes, and a cost for each round of a block's warp groups.
//!
//! Blocks share the device's bandwidth equally. Beside its bytes, a round of tiles has a
//! [fixed cost](warpwright_kernels::tune::ScheduleChoice) for reading operands, filling shared memory and adding up.
//! Barriers and waits cost only the time that blocks wait. The model balances work and shows which blocks idle, and where;
//! it does not predict times.

use super::assign::Assigned;
use super::schedule::{Instance, Schedule};
use std::ops::Range;
use warpwright_kernels::persistent::Assignment;

/// When each item runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeline {
    /// For each item the block that runs it, and its time range.
    pub items: Vec<(u32, Range<u64>)>,
    /// For each phase its time range.
    pub phases: Vec<Range<u64>>,
    /// For each block its working time.
    pub busy: Vec<u64>,
}

impl Timeline {
    /// From the first item to the end of the last phase.
    pub fn total(&self) -> u64 {
        self.phases.last().map_or(0, |phase| phase.end)
    }

    /// The share of the total time for which a block is idle: from 0 to 1.
    pub fn idle(&self, block: usize) -> f64 {
        let (busy, total) = (self.busy.get(block).copied().unwrap_or(0), self.total());
        if total == 0 { 0.0 } else { 1.0 - busy as f64 / total as f64 }
    }

    /// The mean of the blocks' idle shares.
    pub fn mean_idle(&self) -> f64 {
        let blocks = self.busy.len().max(1) as f64;
        (0..self.busy.len()).map(|block| self.idle(block)).sum::<f64>() / blocks
    }
}

impl Schedule {
    /// The cost of an item of `tiles` tiles, in rounds of `teams` warp groups.
    pub(super) fn item_cost(&self, instance: &Instance, tiles: u64, teams: u32) -> u64 {
        let bytes = u128::from(instance.bytes) * u128::from(tiles) / u128::from(instance.tiles().max(1));
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let rounds = tiles.div_ceil(u64::from(teams.max(1)));
        bytes.saturating_add(rounds.saturating_mul(self.costs.round)).max(1)
    }

    /// When each item runs by this model: as soon as its block has finished the preceding items and its waits are
    /// satisfied. Items of a queue go to the block that is free first. The times of an invalid schedule are
    /// meaningless.
    pub fn timeline(&self, assigned: &Assigned) -> Timeline {
        let blocks = assigned.blocks.max(1) as usize;
        let mut items = vec![(0, 0..0); assigned.items.len()];
        let (mut phases, mut busy) = (Vec::new(), vec![0; blocks]);
        let mut begin = 0u64;
        let mut ends = vec![0; assigned.counters as usize];
        for phase in 0..self.phases.len() {
            let mut free = vec![begin; blocks];
            let lists = match assigned.assignment {
                Assignment::Static => phase * blocks..(phase + 1) * blocks,
                Assignment::Queue => phase..phase + 1,
            };
            // Stage by stage: what an item waits for has run by then.
            let all = lists.clone().flat_map(|list| {
                let items = assigned.lists.get(list).cloned().unwrap_or(0..0);
                items.map(move |item| (list, item as usize))
            });
            let mut all: Vec<(usize, usize)> = all.collect();
            let stage = |item: usize| {
                let instance = assigned.items.get(item).map(|item| item.instance);
                let stages = &self.phases[phase].stages;
                stages.iter().position(|stage| instance.is_some_and(|i| stage.instances.contains(&i)))
            };
            all.sort_by_key(|&(_, item)| stage(item));
            for (list, i) in all {
                let Some(item) = assigned.items.get(i) else { continue };
                let Some(instance) = self.instances.get(item.instance) else { continue };
                let block = match assigned.assignment {
                    Assignment::Static => list - lists.start,
                    Assignment::Queue => (0..blocks).min_by_key(|&block| free[block]).unwrap_or(0),
                };
                let done = item.wait.and_then(|wait| ends.get(wait.counter as usize)).copied();
                let from = free[block].max(done.unwrap_or(begin));
                let teams = self.teams_of(item.instance);
                let cost = self.item_cost(instance, item.end.saturating_sub(item.first).into(), teams);
                let to = from.saturating_add(cost);
                if let Some(end) = item.signal.and_then(|counter| ends.get_mut(counter as usize)) {
                    *end = to.max(*end);
                }
                free[block] = to;
                busy[block] += cost;
                items[i] = (block as u32, from..to);
            }
            let end = free.into_iter().max().unwrap_or(begin);
            phases.push(begin..end);
            begin = end;
        }
        Timeline { items, phases, busy }
    }
}
