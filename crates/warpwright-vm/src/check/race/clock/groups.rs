//! Groups of asynchronous operations, which a thread closes and waits for.

use super::super::Seen;
use super::{Agent, Clocks, Floors, GroupsOf, Known, agent, lanes};
use std::collections::VecDeque;

/// Groups of asynchronous copies of a warp that are remembered, so that a kernel that never waits for them does
/// not fill the host's memory.
const MAX_GROUPS: usize = 1024;

/// Groups that are not known to be complete, oldest first: lanes and clock.
#[derive(Debug, Default)]
pub(super) struct Groups(Vec<(u32, u64)>);

/// When each group of products of a warp was closed, as far as that is remembered.
#[derive(Debug, Default)]
pub(super) struct Closed {
    forgotten: u64,
    ticks: VecDeque<u64>,
}

impl Closed {
    fn push(&mut self, tick: u64) {
        self.ticks.push_back(tick);
        if self.ticks.len() > MAX_GROUPS {
            self.ticks.pop_front();
            self.forgotten += 1;
        }
    }

    /// When the last of the first so many groups was closed. What is forgotten is older than any that may be pending.
    fn last_of(&self, groups: u64) -> Option<u64> {
        let at = groups.checked_sub(self.forgotten + 1)?;
        self.ticks.get(at as usize).copied()
    }
}

impl Groups {
    fn commit(&mut self, mask: u32, tick: u64) {
        self.0.push((mask, tick));
        // Whoever waits for so many younger ones has waited for the oldest, too.
        if self.0.len() > MAX_GROUPS {
            self.0.remove(0);
        }
    }

    /// Calls `done` for the groups of lanes that are not their last `pending`: with the lane, and when it was closed.
    fn before_last(&mut self, mask: u32, pending: usize, keep: bool, mut done: impl FnMut(u32, u64)) {
        for lane in lanes(mask) {
            let of_lane = self.0.iter_mut().rev().filter(|(of, _)| of >> lane & 1 != 0);
            for (of, tick) in of_lane.skip(pending) {
                done(lane, *tick);
                *of &= !(u32::from(!keep) << lane);
            }
        }
        self.0.retain(|&(of, _)| of != 0);
    }
}

impl Clocks {
    /// Lanes close their groups of asynchronous operations of a kind.
    pub(in super::super) fn commit_group(&mut self, of: GroupsOf, warp: u8, mask: u32) {
        self.extra = true;
        let tick = self.tick();
        let state = &mut self.warps[usize::from(warp)];
        state.groups[of as usize].commit(mask, tick);
        if of == GroupsOf::Products {
            state.products.push(tick);
        }
    }

    /// Lanes have waited for so many groups of products of a warp of their warpgroup.
    pub(in super::super) fn wait_products_of(&mut self, warp: u8, mask: u32, other: u8, groups: u64) {
        let Some(tick) = self.warps[usize::from(other)].products.last_of(groups) else { return };
        let mut known = Known::default();
        known.raise_warp(agent(other, Agent::Products), tick);
        let mut device = Floors::default();
        device.insert(self.block, known);
        let seen = Seen { device, block: Floors::default() };
        let released: Vec<(u32, Seen)> = lanes(mask).map(|lane| (lane, seen.clone())).collect();
        self.learn(warp, mask, &released);
    }

    /// Lanes have waited until at most `pending` of their groups of a kind are incomplete, or have not been `read`.
    pub(in super::super) fn wait_group(
        &mut self,
        of: GroupsOf,
        warp: u8,
        mask: u32,
        pending: usize,
        read: bool,
    ) {
        let done: &[Agent] = match of {
            GroupsOf::Copies => &[Agent::Copies],
            GroupsOf::BulkCopies if read => &[Agent::GroupReads],
            GroupsOf::BulkCopies => &[Agent::GroupReads, Agent::GroupWrites],
            GroupsOf::Products => &[Agent::Products],
        };
        self.extra = true;
        let state = &mut self.warps[usize::from(warp)];
        let all = state.lanes.get_or_insert_with(Box::default);
        state.groups[of as usize].before_last(mask, pending, read, |lane, tick| {
            for &agent in done {
                let until = &mut all[lane as usize].waited[agent as usize];
                *until = tick.max(*until);
            }
        });
    }

    /// Lanes have waited for all their asynchronous copies, those in no group too.
    pub(in super::super) fn wait_all(&mut self, warp: u8, mask: u32) {
        let tick = self.tick();
        let state = &mut self.warps[usize::from(warp)];
        state.groups[GroupsOf::Copies as usize].before_last(mask, 0, false, |_, _| {});
        for lane in lanes(mask) {
            state.lanes()[lane as usize].waited[Agent::Copies as usize] = tick;
        }
        self.extra = true;
    }
}
