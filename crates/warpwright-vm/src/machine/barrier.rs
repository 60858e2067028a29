//! The barriers of a block: sixteen numbered ones, and that of the cluster.

use super::{Block, LANES, Machine, Park, Resume, Step, Warp};
use crate::check::FindingKind;

/// The barrier of the cluster, which is this one block.
pub(crate) const CLUSTER_BARRIER: u32 = 16;

/// A barrier: the threads that have arrived in this generation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Barrier {
    /// How many times it has been completed.
    pub(crate) generation: u64,
    /// The lanes that have arrived, by warp. Empty where none has.
    arrived: Vec<u32>,
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
        self.arrived.iter().any(|&lanes| lanes != 0)
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
        self.stamps.clear();
        self.gathered = (0, 0);
        self.count = None;
    }

    /// Whether all have come. A warp counts once all its live lanes have arrived, and then with 32 threads.
    fn is_complete(&self, live: impl Fn(usize) -> u32) -> bool {
        let whole = |warp: usize, lanes: u32| lanes != 0 && live(warp) & !lanes == 0;
        match self.count {
            None => {
                (0..self.arrived.len()).all(|warp| live(warp) & !self.arrived[warp] == 0) && self.is_busy()
            }
            Some(count) => {
                let warps =
                    self.arrived.iter().enumerate().filter(|&(warp, &lanes)| whole(warp, lanes)).count();
                warps as u32 * 32 >= count && self.is_busy()
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
    /// The lanes whose predicate holds, for a reduction.
    pub(crate) holds: u32,
    /// Whether what its threads did before comes before what follows the barrier.
    pub(crate) releases: bool,
}

impl Block {
    /// Live lanes of a warp; the one that runs is given, since its place is empty.
    fn live_lanes(&self, warp: usize, running: (usize, u32)) -> u32 {
        if warp == running.0 { running.1 } else { self.warps[warp].live }
    }

    /// The barriers that wait for no more.
    fn complete_barriers(&self, running: usize, live: u32) -> u32 {
        let mut completed = 0;
        for id in 0..self.barriers.len() {
            let barrier = &self.barriers[id];
            if barrier.is_busy() && barrier.is_complete(|warp| self.live_lanes(warp, (running, live))) {
                completed |= 1 << id;
            }
        }
        completed
    }
}

impl Machine<'_> {
    /// Arrives at a barrier with the lanes of the mask. `None`: it goes on (it did not have to wait, or has
    /// waited; then with the reduction's result, the number of true predicates and of threads).
    pub(crate) fn arrive(&mut self, arrival: Arrival) -> Result<Option<(u32, u32)>, Step> {
        let Arrival { id, count, waits, holds, releases } = arrival;
        let slot = id as usize;
        if let Some(Resume::Passed { holds, threads }) = self.take_resume() {
            return Ok(Some((holds, threads)));
        }
        self.compare_counts(id, count);
        let warps = self.block.warps.len();
        let barrier = &mut self.block.barriers[slot];
        barrier.arrived.resize(warps, 0);
        barrier.waiting.resize(warps, 0);
        barrier.arrived[self.warp_index] |= self.mask;
        if waits {
            barrier.waiting[self.warp_index] |= self.mask;
        }
        barrier.gathered.0 += (holds & self.mask).count_ones();
        barrier.gathered.1 += self.mask.count_ones();
        if barrier.count.is_none() {
            barrier.count = count;
        }
        let generation = barrier.generation;
        if self.launch.options.counters {
            barrier.stamps.resize(warps, (0, 0));
            barrier.stamps[self.warp_index] = (self.warp.clock - u64::from(self.fuel), self.pc);
        }
        if waits {
            self.park(Park::Barrier { id, generation });
        } else {
            self.barrier_announced(id, releases);
        }
        self.settle_barriers();
        if waits { Err(Step::Reload) } else { Ok(None) }
    }

    /// All threads that arrive in a generation of a barrier must state the same number of threads, or none of them
    /// any: devices end with an illegal instruction otherwise, even if the number is that of all threads.
    fn compare_counts(&mut self, id: u32, count: Option<u32>) {
        let barrier = &self.block.barriers[id as usize];
        if !self.launch.options.checks.sync || !barrier.is_busy() || barrier.count == count {
            return;
        }
        let kind = FindingKind::BarrierCount { barrier: id, expected: barrier.count, said: count };
        let lane = self.mask.trailing_zeros() as usize & (LANES - 1);
        self.found(kind, lane);
    }

    /// Completes the barriers that wait for no more. To be called after arrivals and exits.
    pub(crate) fn settle_barriers(&mut self) {
        let completed = self.block.complete_barriers(self.warp_index, self.warp.live);
        for id in super::LanesOf(completed) {
            self.barrier_completed(id);
            self.count_waits(id);
            let barrier = &mut self.block.barriers[id];
            let (holds, threads) = barrier.gathered;
            let parked = Park::Barrier { id: id as u32, generation: barrier.generation };
            barrier.generation += 1;
            barrier.reset();
            for warp in self.block.warps.iter_mut().chain([&mut self.warp]) {
                warp.wake(parked, Resume::Passed { holds, threads });
            }
        }
    }

    /// A barrier is complete: how long its warps have waited for the slowest, by their clocks. Afterwards
    /// these agree.
    fn count_waits(&mut self, id: usize) {
        let barrier = &self.block.barriers[id];
        let stamps = barrier.stamps.iter().enumerate();
        // Of those that came together the first: the order in which warps run is of no matter.
        let Some((slowest, &(latest, _))) = stamps.rev().max_by_key(|(_, (clock, _))| *clock) else { return };
        let waiting = barrier.waiting.iter().zip(&barrier.stamps).enumerate();
        for (index, (_, &(clock, pc))) in waiting.filter(|(_, (lanes, _))| **lanes != 0) {
            if index == self.warp_index {
                self.warp.clock = latest + u64::from(self.fuel);
            } else {
                self.block.warps[index].clock = latest;
            }
            if index != slowest {
                self.worker.memory.waited(pc, latest - clock);
            }
        }
    }

    /// A barrier is complete: what the checks make of it.
    fn barrier_completed(&mut self, id: usize) {
        if !self.launch.options.checks.race {
            return;
        }
        let barrier = &self.block.barriers[id];
        let live = |warp| self.block.live_lanes(warp, (self.warp_index, self.warp.live));
        let all = (0..barrier.waiting.len()).all(|warp| live(warp) & !barrier.waiting[warp] == 0);
        let waiting = barrier.waiting.clone();
        self.barrier_passed(id as u32, &waiting, all && barrier.waiting == barrier.arrived);
    }
}

impl Warp {
    /// Lets the paths go on that are parked like this.
    fn wake(&mut self, parked: Park, resume: Resume) {
        for path in self.paths.iter_mut().filter(|path| path.park == parked) {
            path.park = Park::Ready;
            path.resume = Some(resume);
        }
    }
}
