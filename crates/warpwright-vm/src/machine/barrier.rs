//! Barriers: the sixteen of a block, and that of the cluster.

use super::{FULL, LANES, LanesOf, Machine, Park, Resume, Step, Warp};
use crate::check::FindingKind;
use std::mem::take;

/// The number of the cluster's barrier, behind those of the block.
pub(crate) const CLUSTER_BARRIER: u32 = 16;

/// A barrier: the threads that have arrived in this generation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Barrier {
    /// How many times it has been completed.
    pub(crate) generation: u64,
    /// The lanes that have arrived, by warp; of the cluster's barrier, the warps of all its blocks. Empty where none has.
    arrived: Vec<u32>,
    /// Warps of which lanes have arrived.
    come: u32,
    /// Those of them that wait, and did not only announce themselves.
    waiting: Vec<u32>,
    /// The clocks of the warps that have arrived, and where they wait.
    stamps: Vec<(u64, u32)>,
    /// The number of threads that it waits for; `None` for all of the block.
    count: Option<u32>,
    /// The result of a reduction so far: lanes with a true predicate, lanes in total.
    gathered: (u32, u32),
}

impl Barrier {
    /// Whether any thread waits at it, or has announced itself.
    pub(crate) fn is_busy(&self) -> bool {
        !self.arrived.is_empty()
    }

    /// The threads at it in this generation, with everything known about them.
    pub(super) fn occupation(&self) -> impl std::hash::Hash {
        (&self.arrived, &self.waiting, self.count, self.gathered)
    }

    /// The lanes that have arrived, by warp.
    pub(crate) fn arrived(&self) -> &[u32] {
        &self.arrived
    }

    /// The number of threads that it waits for, where one was given.
    pub(crate) fn count(&self) -> Option<u32> {
        self.count
    }

    pub(crate) fn reset(&mut self) {
        self.arrived.clear();
        self.waiting.clear();
        self.come = 0;
        self.stamps.clear();
        self.gathered = (0, 0);
        self.count = None;
    }

    /// Whether enough warps have come, of so many of which lanes have not exited.
    fn has_enough(&self, running: u32) -> bool {
        match self.count {
            None => self.come >= running,
            Some(count) => self.come * LANES as u32 >= count,
        }
    }

    /// Whether all have come. A warp counts once all its live lanes have arrived, and then with 32 threads.
    fn is_complete(&self, live: impl Fn(usize) -> u32) -> bool {
        let arrived = self.arrived.iter().copied().enumerate();
        match self.count {
            // Most often the last warp is the last one to come.
            None => {
                let has_come = |(warp, lanes): (usize, u32)| lanes == FULL || live(warp) & !lanes == 0;
                arrived.rev().all(has_come) && self.is_busy()
            }
            Some(count) => {
                let whole = arrived.filter(|&(warp, lanes)| lanes != 0 && live(warp) & !lanes == 0).count();
                whole as u32 * 32 >= count && self.is_busy()
            }
        }
    }
}

/// How an instruction takes part in a barrier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Which barrier.
    pub(crate) id: u32,
    /// The number of threads, where it is said.
    pub(crate) count: Option<u32>,
    /// Whether it waits.
    pub(crate) waits: bool,
    /// For a reduction: the lanes whose predicate holds.
    pub(crate) holds: Option<u32>,
    /// Whether what its threads did before comes before what follows the barrier.
    pub(crate) releases: bool,
}

/// Barriers that wait for no more lanes look at all warps. The block and the warp that run are not in their places.
impl Machine<'_> {
    /// A barrier of the block, or the cluster's.
    pub(crate) fn barrier(&self, id: u32) -> &Barrier {
        self.block.barriers.get(id as usize).unwrap_or(&self.cluster.barrier)
    }

    fn barrier_mut(&mut self, id: u32) -> &mut Barrier {
        self.block.barriers.get_mut(id as usize).unwrap_or(&mut self.cluster.barrier)
    }

    /// How many warps a barrier is for, and which of them is the first of the block.
    fn warps_at(&self, id: u32) -> (usize, usize) {
        let warps = self.block.warps.len();
        match id {
            CLUSTER_BARRIER => (warps * self.cluster.blocks.len(), warps * self.block.rank as usize),
            _ => (warps, 0),
        }
    }

    /// The warp that runs, among those of a barrier.
    pub(crate) fn warp_at(&self, id: u32) -> usize {
        self.warps_at(id).1 + self.warp_index
    }

    /// A warp, among those of a barrier.
    fn warp_of(&mut self, id: u32, warp: usize) -> &mut Warp {
        let (_, first) = self.warps_at(id);
        let warps = self.block.warps.len();
        match warp.checked_sub(first).filter(|own| *own < warps) {
            Some(own) if own == self.warp_index => &mut self.warp,
            Some(own) => &mut self.block.warps[own],
            None => &mut self.cluster.blocks[warp / warps].warps[warp % warps],
        }
    }

    /// Live lanes of a warp, among those of a barrier.
    fn live_lanes(&self, id: u32, warp: usize) -> u32 {
        let (_, first) = self.warps_at(id);
        let warps = self.block.warps.len();
        match warp.checked_sub(first).filter(|own| *own < warps) {
            Some(own) if own == self.warp_index => self.warp.live,
            Some(own) => self.block.warps[own].live,
            None => self.cluster.blocks[warp / warps].warps[warp % warps].live,
        }
    }

    /// Arrives at a barrier with the lanes of the mask. Otherwise it goes on: it does not have to wait, or it has for a
    /// reduction, whose result this is, the number of true predicates and of threads.
    pub(crate) fn arrive(&mut self, arrival: Arrival) -> Result<Option<(u32, u32)>, Step> {
        let Arrival { id, count, waits, holds, releases } = arrival;
        if let Some(Resume::Passed { holds, threads }) = self.take_resume() {
            return Ok(Some((holds, threads)));
        }
        self.compare_counts(id, count);
        let (warp, (warps, _)) = (self.warp_at(id), self.warps_at(id));
        let (mask, now) = (self.mask, (self.warp.clock - u64::from(self.fuel), self.pc));
        let counters = self.launch.options.counters;
        if id != CLUSTER_BARRIER {
            self.block.barriers_used |= 1 << id;
        }
        let barrier = self.barrier_mut(id);
        if !barrier.is_busy() {
            barrier.arrived.resize(warps, 0);
            barrier.waiting.resize(warps, 0);
        }
        barrier.come += u32::from(barrier.arrived[warp] == 0);
        barrier.arrived[warp] |= mask;
        if waits {
            barrier.waiting[warp] |= mask;
        }
        if let Some(holds) = holds {
            barrier.gathered.0 += (holds & mask).count_ones();
            barrier.gathered.1 += mask.count_ones();
        }
        if barrier.count.is_none() {
            barrier.count = count;
        }
        let generation = barrier.generation;
        if counters {
            barrier.stamps.resize(warps, (0, 0));
            barrier.stamps[warp] = now;
        }
        if waits {
            let asks = holds.is_some();
            self.warp.park(mask, self.pc, Park::Barrier { id, generation, asks });
            if asks {
                self.not_yet();
            }
        } else {
            self.barrier_announced(id, releases);
        }
        self.settle_barrier(id);
        if waits { Err(Step::Reload) } else { Ok(None) }
    }

    /// All threads that arrive in a generation of a barrier must state the same number of threads, or none of them
    /// any: devices end with an illegal instruction otherwise, even if the number is that of all threads.
    fn compare_counts(&mut self, id: u32, count: Option<u32>) {
        let barrier = self.barrier(id);
        if !self.launch.options.checks.sync || !barrier.is_busy() || barrier.count == count {
            return;
        }
        let kind = FindingKind::BarrierCount { barrier: id, expected: barrier.count, said: count };
        let lane = self.mask.trailing_zeros() as usize & (LANES - 1);
        self.found(kind, lane);
    }

    /// Lanes have exited: completes the barriers that wait for no more.
    pub(crate) fn settle_barriers(&mut self) {
        let used = self.block.barriers_used;
        LanesOf(used).for_each(|id| self.settle_barrier(id as u32));
        self.settle_barrier(CLUSTER_BARRIER);
    }

    /// Lanes have arrived at a barrier, or exited: completes it if it waits for no more.
    fn settle_barrier(&mut self, id: u32) {
        let barrier = self.barrier(id);
        // Most often it is clear without a look at other warps that it waits for some.
        if !barrier.is_busy() || id != CLUSTER_BARRIER && !barrier.has_enough(self.block.running) {
            return;
        }
        if !barrier.is_complete(|warp| self.live_lanes(id, warp)) {
            return;
        }
        self.barrier_completed(id);
        self.count_waits(id);
        let barrier = self.barrier_mut(id);
        let (holds, threads) = barrier.gathered;
        let completed = barrier.generation;
        barrier.generation += 1;
        barrier.reset();
        let resume = Resume::Passed { holds, threads };
        self.warp.wake((id, completed), resume);
        self.block.warps.iter_mut().for_each(|warp| warp.wake((id, completed), resume));
        if id == CLUSTER_BARRIER {
            let others = self.cluster.blocks.iter_mut().flat_map(|block| &mut block.warps);
            others.for_each(|warp| warp.wake((id, completed), resume));
        }
    }

    /// A barrier is complete: how long its warps have waited for the slowest, by their clocks. Afterwards
    /// these agree.
    fn count_waits(&mut self, id: u32) {
        if self.barrier(id).stamps.is_empty() {
            return;
        }
        let barrier = self.barrier_mut(id);
        let (stamps, waiting) = (take(&mut barrier.stamps), take(&mut barrier.waiting));
        // Of those that came together the first: the order in which warps run is of no matter.
        let latest = stamps.iter().enumerate().rev().max_by_key(|(_, (clock, _))| *clock);
        let Some((slowest, &(latest, _))) = latest else { return };
        for (warp, &(clock, pc)) in stamps.iter().enumerate().filter(|(warp, _)| waiting[*warp] != 0) {
            let fuel = if warp == self.warp_at(id) { self.fuel } else { 0 };
            self.warp_of(id, warp).clock = latest + u64::from(fuel);
            if warp != slowest {
                self.worker.memory.waited(pc, latest - clock);
            }
        }
        let barrier = self.barrier_mut(id);
        (barrier.stamps, barrier.waiting) = (stamps, waiting);
    }

    /// A barrier is complete: what the checks make of it.
    fn barrier_completed(&mut self, id: u32) {
        if !self.launch.options.checks.race {
            return;
        }
        let barrier = self.barrier(id);
        let waiting = &barrier.waiting;
        let all = (0..waiting.len()).all(|warp| self.live_lanes(id, warp) & !waiting[warp] == 0);
        let has_exited = (0..waiting.len()).any(|warp| self.live_lanes(id, warp) == 0);
        let (waiting, all) = (waiting.clone(), all && barrier.waiting == barrier.arrived);
        // Who has exited need not come, and has done all that it was to do with tensor memory.
        if has_exited {
            self.cluster.tensor.settle();
        }
        self.barrier_passed(id, &waiting, all);
    }
}

impl Warp {
    /// Lets the paths go on that wait at a barrier until this generation of it is over.
    fn wake(&mut self, completed: (u32, u64), resume: Resume) {
        for path in &mut self.paths {
            match path.park {
                Park::Barrier { id, generation, asks } if (id, generation) == completed => {
                    path.park = Park::Ready;
                    match asks {
                        true => path.resume = Some(resume),
                        false => path.pc += 1,
                    }
                }
                _ => {}
            }
        }
    }
}
