//! What orders uses of tensor memory: a use is looked at together with the last ones of the same columns and lanes.
//!
//! Between an operation and a load or store of a warp stands a wait: for the commit of the operation, or for the warp's
//! stores. Whatever one warp uses behind another one, or behind an operation of one, it must know of, by the clocks of the
//! race check; operations of one warp are done in their order.

use crate::check::race::Agent;
use crate::check::{Action, Between, FindingKind, Hazard, RawFinding, RawPlace, RawSite, TensorWait};
use crate::launch::Race;
use crate::machine::{Block, FULL, LANES, Machine, TensorMemory, TensorUse, groups_of};
use crate::memory::SpaceKind;
use std::ops::Range;

impl Machine<'_> {
    /// An operation of a thread writes, or reads, columns of some lanes, and is not waited for; or its warp stores or loads
    /// them. What it meets must be complete.
    pub(super) fn uses_columns(
        &mut self,
        lane: usize,
        rank: u32,
        columns: Range<u32>,
        lanes: impl Iterator<Item = usize>,
        (by_warp, write): (bool, bool),
    ) {
        if !self.launch.options.checks.race {
            return;
        }
        let groups = groups_of(lanes);
        let Some(races) = self.block.checks.races() else { return };
        let (by, clock) = ((self.block.rank, self.thread(lane)), races.now());
        let new = TensorUse { pc: self.pc, by, by_warp, write, clock, number: 0 };
        let before: Vec<TensorUse> = self.tensor_of(rank).before(columns.clone(), groups, write).collect();
        if let Some((old, wait)) = before.iter().find_map(|old| Some((old, self.missing_wait(old, &new)?))) {
            self.found_in_flight(lane, columns.clone(), &new, old, wait);
        } else if let Some(old) = before.iter().find(|old| !self.is_ordered(old, &new)) {
            self.found_unordered(lane, columns.clone(), &new, old);
        }
        let new = self.cluster.tensor.issue(new);
        self.tensor(rank).note(columns, groups, new);
    }

    /// The tensor memory of a block of the cluster, to look at.
    fn tensor_of(&self, rank: u32) -> &TensorMemory {
        &self.block_of(rank).tensor
    }

    fn block_of(&self, rank: u32) -> &Block {
        if rank == self.block.rank { &self.block } else { &self.cluster.blocks[rank as usize] }
    }

    /// What was not waited for between two uses: by an operation and a warp, or by a warp that stores and another one.
    fn missing_wait(&self, old: &TensorUse, new: &TensorUse) -> Option<TensorWait> {
        let wait = match (old.by_warp, new.by_warp) {
            (false, true) => TensorWait::Commit,
            (true, false) if old.write => TensorWait::Stores,
            (true, true) if old.write && !are_of_warp(old, new) => TensorWait::Stores,
            // What is computed from what a warp has loaded comes behind the load: programs leave out that wait.
            (true, false) if self.launch.options.race == Race::Strict => TensorWait::Loads,
            _ => return None,
        };
        let is_missed = wait == TensorWait::Commit && !self.is_ordered(old, new);
        (is_missed || self.cluster.tensor.is_in_flight(old, wait)).then_some(wait)
    }

    /// Whether a use is ordered before another one: whatever some thread of a warp has done, or has learned, counts for the
    /// warp.
    fn is_ordered(&self, old: &TensorUse, new: &TensorUse) -> bool {
        let (rank, thread) = old.by;
        let is_in_order = old.by_warp || !new.by_warp;
        let Some(races) = self.block.checks.races() else { return true };
        if are_of_warp(old, new) && is_in_order || self.cluster.tensor.is_settled(old) {
            return true;
        }
        let of = (self.block_of(rank).number as u32, (thread / LANES as u32) as u8);
        let (lanes, agent) = match old.by_warp {
            true => (FULL, None),
            false => (1 << (thread % LANES as u32), Some(Agent::Tensor)),
        };
        races.is_known_to_warp(self.warp_index as u8, of, lanes, agent, old.clock)
    }

    /// The finding's sites: of the present use, and of an earlier one.
    fn sites_of(&self, lane: usize, columns: Range<u32>, new: &TensorUse, old: &TensorUse) -> [RawSite; 2] {
        let action = |of: &TensorUse| match (of.by_warp, of.write) {
            (true, true) => Action::Write,
            (true, false) => Action::Read,
            (false, true) => Action::AsyncWrite,
            (false, false) => Action::AsyncRead,
        };
        let bytes = 4 * (columns.end - columns.start);
        let memory =
            Some(RawPlace { space: SpaceKind::Tensor, address: columns.start.into(), bytes, frame: None });
        let (rank, thread) = old.by;
        let block = self.block_of(rank).number;
        [
            RawSite { memory, ..self.site(action(new), lane) },
            RawSite { pc: old.pc, action: action(old), block, thread, memory },
        ]
    }

    #[cold]
    fn found_unordered(&self, lane: usize, columns: Range<u32>, new: &TensorUse, old: &TensorUse) {
        let hazard = match (old.write, new.write) {
            (true, true) => Hazard::WriteAfterWrite,
            (true, false) => Hazard::ReadAfterWrite,
            _ => Hazard::WriteAfterRead,
        };
        let between = if old.by.0 == new.by.0 { Between::Warps } else { Between::Blocks };
        let kind = FindingKind::Race { hazard, between, space: SpaceKind::Tensor, same_value: false };
        let [second, first] = self.sites_of(lane, columns, new, old);
        self.launch.findings.add(RawFinding { kind, first, second: Some(second), count: 1 });
    }

    #[cold]
    fn found_in_flight(
        &self,
        lane: usize,
        columns: Range<u32>,
        new: &TensorUse,
        old: &TensorUse,
        wait: TensorWait,
    ) {
        let [first, second] = self.sites_of(lane, columns, new, old);
        let second = Some(RawSite { action: Action::Execute, memory: None, ..second });
        let kind = FindingKind::TensorMemoryInFlight { wait };
        self.launch.findings.add(RawFinding { kind, first, second, count: 1 });
    }
}

/// Whether one warp has made both uses.
fn are_of_warp(old: &TensorUse, new: &TensorUse) -> bool {
    let warp = |of: &TensorUse| (of.by.0, of.by.1 / LANES as u32);
    warp(old) == warp(new)
}
