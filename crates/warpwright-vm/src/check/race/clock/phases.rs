//! Barriers that have phases, in shared memory or of the cluster: what arrivals release, and what waits acquire.

use super::{Agent, Clocks, Floors, Known, Seen, agent, lanes};

/// A barrier in shared memory.
#[derive(Debug, Default)]
pub(super) struct Phases {
    /// Released by arrivals at the present phase.
    current: Floors,
    /// Released to those who saw the last phase complete.
    completed: Floors,
}

impl Clocks {
    /// Lanes arrive at a barrier in shared memory, or what an agent of theirs was to do so far, when it is done.
    pub(in super::super) fn phase_arrive(&mut self, barrier: u64, warp: u8, mask: u32, of: Option<Agent>) {
        self.extra = true;
        let released = match of {
            Some(agent) => self.release_copies(warp, mask, agent).device,
            None => self.release_together(warp, mask).device,
        };
        self.phases.entry(barrier).or_default().current.join(&released);
    }

    /// What is released when the asynchronous copies are complete that lanes have issued so far.
    pub(in super::super) fn release_copies(&mut self, warp: u8, mask: u32, of: Agent) -> Seen {
        self.extra = true;
        let tick = self.tick();
        let mut known = Known::default();
        known.raise_lanes(agent(warp, of), mask, self.whole(warp, mask), tick);
        let mut device = Floors::default();
        device.insert(self.block, known);
        Seen { device, block: Floors::default() }
    }

    /// Lanes arrive by a relaxed operation: a strong write, which releases what they have fenced before.
    pub(in super::super) fn phase_arrive_relaxed(&mut self, barrier: u64, warp: u8, mask: u32) {
        self.extra = true;
        for lane in lanes(mask) {
            let Seen { device, block } = self.fenced(warp, lane);
            let current = &mut self.phases.entry(barrier).or_default().current;
            current.join(&device);
            current.join(&block);
        }
    }

    /// A barrier in shared memory begins, or ends.
    pub(in super::super) fn phase_begin(&mut self, barrier: u64) {
        self.phases.remove(&barrier);
    }

    /// The phase of a barrier in shared memory is complete.
    pub(in super::super) fn phase_complete(&mut self, barrier: u64) {
        let phases = self.phases.entry(barrier).or_default();
        let current = std::mem::take(&mut phases.current);
        phases.completed.join(&current);
    }

    /// What is seen by whoever sees the phase complete.
    fn phase_seen(&self, barrier: u64) -> Option<Seen> {
        let completed = &self.phases.get(&barrier)?.completed;
        (!completed.is_empty()).then(|| Seen { device: completed.clone(), block: completed.clone() })
    }

    /// Lanes have seen the phase complete, and acquire.
    pub(in super::super) fn phase_wait(&mut self, barrier: u64, warp: u8, mask: u32) {
        let Some(seen) = self.phase_seen(barrier) else { return };
        let released: Vec<_> = lanes(mask).map(|lane| (lane, seen.clone())).collect();
        self.learn(warp, mask, &released);
    }

    /// Lanes have seen the phase complete by a relaxed operation: a fence may follow.
    pub(in super::super) fn phase_see(&mut self, barrier: u64, warp: u8, mask: u32) {
        let Some(seen) = self.phase_seen(barrier) else { return };
        for lane in lanes(mask) {
            self.observe(warp, lane, (barrier, 8), &seen);
        }
    }
}
