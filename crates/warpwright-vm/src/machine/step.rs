//! The loop that executes instructions, and the order in which warps and their divergent paths take turns.

use super::{Cluster, FULL, LANES, Machine, NONE, Park, Resume, Step, UNGUARDED};
use crate::check::WorkerChecks;
use crate::counters::MemoryCounters;
use crate::launch::{Footprints, Launch};
use crate::native::{Native, State};
use crate::random::Random;
use std::mem::swap;

/// Instructions that a warp executes before another has its turn.
const SLICE: u32 = 4096;

/// Time slices that each runnable path of a warp takes before the lanes that wait for it at a reconvergence point
/// continue by themselves.
const PATIENCE: u32 = 4;

/// The same where the launch may have come to a standstill: a power of two, so that loops of most lengths are at the same
/// place after few turns.
const STEADY_SLICE: u32 = 1024;

/// Turns of all its warps before a block gives way to another resident one, but not to one of its cluster; and at most,
/// where the order of things comes from a seed.
const ROUNDS: u32 = 8;
const MAX_ROUNDS: u32 = 64;

/// How often an instruction was executed.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Counts {
    /// By warps.
    pub(crate) warps: u64,
    /// By lanes.
    pub(crate) lanes: u64,
}

/// What belongs to the host thread that runs blocks.
#[derive(Debug)]
pub(crate) struct Worker {
    /// By instruction, as the interpreter has executed them.
    pub(crate) counts: Vec<Counts>,
    /// What native code needs, where some has run.
    pub(crate) native: Option<Box<State>>,
    /// Branches, by instruction, that divided a path.
    pub(crate) divergent: Vec<u64>,
    pub(crate) memory: MemoryCounters,
    /// What the checks keep.
    pub(crate) checks: WorkerChecks,
    /// What it accessed, if another launch may overlap.
    pub(crate) footprints: Footprints,
    /// Since this was last cleared, a warp has waited for an earlier launch.
    pub(crate) held: bool,
    /// Something was written since this was last cleared.
    pub(crate) progress: bool,
    /// Since this was last cleared, something was done that other blocks or the host may notice.
    pub(crate) outward: bool,
    /// Since this was last cleared, the clock was read, which changes by itself.
    pub(crate) timed: bool,
    /// Since this was last cleared, memory was accessed that is the host's as well, and changes by itself.
    pub(crate) polled_host: bool,
    /// Memory that the host can change was accessed since this was last cleared.
    pub(crate) read: bool,
    /// The launch may have come to a standstill: turns are taken one after the other, so that a block that
    /// is as it was before can only do the same again.
    pub(crate) steady: bool,
    /// Lane instructions that have been executed and not yet been reported to the launch.
    pub(crate) executed: u64,
    /// The longest clock of a warp.
    pub(crate) longest: u64,
    /// How many more it may execute before the launch has to hear of it.
    pub(crate) allowance: u64,
    /// The last instruction that had faults, by its block and the block's clock, and a bit for each kind.
    pub(crate) faults: ((u64, u64), u32),
    /// Where the order of things comes from, if it is by a seed.
    pub(crate) random: Option<Random>,
    /// The maximum of instructions in a turn of a warp, and of turns of all warps in a turn of a block. Some seeds have
    /// long turns, and some switch after almost every instruction.
    grain: (u32, u32),
}

impl Worker {
    pub(crate) fn new(launch: &Launch, mut random: Option<Random>) -> Self {
        let grain = random.as_mut().map_or(0, |random| random.below(4));
        Worker {
            grain: (SLICE >> (3 * grain), MAX_ROUNDS >> (2 * grain)),
            counts: vec![Counts::default(); launch.code.insts.len()],
            native: None,
            divergent: vec![0; launch.code.insts.len()],
            memory: MemoryCounters::new(launch),
            checks: WorkerChecks::default(),
            footprints: Footprints::default(),
            held: false,
            progress: false,
            outward: false,
            timed: false,
            polled_host: false,
            read: false,
            faults: ((0, 0), 0),
            steady: false,
            executed: 0,
            longest: 0,
            allowance: u64::MAX,
            random,
        }
    }

    /// Where the order of warps comes from at the moment, if not from their numbers.
    fn order(&mut self) -> Option<&mut Random> {
        if self.steady { None } else { self.random.as_mut() }
    }
}

/// How a turn of a block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockStatus {
    /// All threads have exited.
    Done,
    /// It has more to do.
    Running,
    /// The same, and all of its threads wait for other blocks.
    Waiting,
    /// All of its threads wait at barriers, or for lanes: another block of its cluster may let them go on.
    Blocked,
    /// The launch is over.
    Stopped,
}

impl<'a> Machine<'a> {
    pub(crate) fn new(launch: &'a Launch, worker: Worker) -> Self {
        Machine {
            launch,
            registers: Default::default(),
            mask: 0,
            active: 0,
            pc: 0,
            warp: Box::default(),
            warp_index: 0,
            block: Box::default(),
            cluster: Cluster::default(),
            fuel: 0,
            held: 0,
            gave_way: false,
            worker,
            native: [None; 2],
        }
    }

    /// Gives every block of the cluster a turn.
    pub(crate) fn run_cluster(&mut self) -> BlockStatus {
        let count = self.cluster.blocks.len();
        let before = self.cluster.clock();
        let order = match self.worker.order() {
            Some(random) if count > 1 => {
                Some((random.below(count as u64) as usize, random.coprime(count as u64) as usize))
            }
            _ => None,
        };
        let (mut running, mut waiting, mut blocked) = (false, false, false);
        for turn in 0..count {
            let rank = order.map_or(turn, |(first, stride)| (first + turn * stride) % count);
            if self.cluster.blocks[rank].is_done() {
                continue;
            }
            self.exchange_block(rank);
            let status = self.run_block();
            self.exchange_block(rank);
            match status {
                BlockStatus::Done => {}
                BlockStatus::Running => running = true,
                BlockStatus::Waiting => waiting = true,
                BlockStatus::Blocked => blocked = true,
                BlockStatus::Stopped => return BlockStatus::Stopped,
            }
        }
        match (running, waiting, blocked) {
            (true, ..) => BlockStatus::Running,
            (_, true, _) => BlockStatus::Waiting,
            (_, _, false) => BlockStatus::Done,
            _ if self.cluster.clock() != before || self.unblock() => BlockStatus::Running,
            _ => BlockStatus::Stopped,
        }
    }

    /// Gives every warp of the block some turns.
    fn run_block(&mut self) -> BlockStatus {
        let (max_fuel, max_rounds) = self.worker.grain;
        let rounds = if self.cluster.is_alone() { ROUNDS } else { 1 };
        let (rounds, slice) = if self.worker.steady { (1, STEADY_SLICE) } else { (rounds, SLICE) };
        let rounds = self.worker.order().map_or(rounds, |random| random.slice(max_rounds));
        for _ in 0..rounds {
            let (mut ran, mut busy) = (false, false);
            let count = self.block.warps.len();
            let order = self
                .worker
                .order()
                .map(|random| (random.below(count as u64) as usize, random.coprime(count as u64) as usize));
            for turn in 0..count {
                let index = order.map_or(turn, |(first, stride)| (first + turn * stride) % count);
                if self.block.warps[index].live == 0 {
                    continue;
                }
                let fuel = match self.worker.order() {
                    None => slice,
                    Some(random) => random.slice(max_fuel),
                };
                // What is left of the budget is not exceeded by more than an instruction.
                let left = self.worker.allowance.saturating_sub(self.worker.executed);
                let fuel = fuel.min((left / LANES as u64).min(u64::from(SLICE)) as u32 + 1);
                self.enter_warp(index);
                let (executed, stopped) = self.run_warp(fuel);
                self.leave_warp();
                ran |= executed;
                busy |= executed && !self.gave_way;
                if stopped {
                    return BlockStatus::Stopped;
                }
                if self.worker.executed > self.worker.allowance {
                    return BlockStatus::Running;
                }
            }
            if self.block.is_done() {
                self.look_for_unfinished();
                return BlockStatus::Done;
            }
            if !ran && !self.release_reconvergence() {
                return BlockStatus::Blocked;
            }
            if self.launch.is_stopped() {
                return BlockStatus::Stopped;
            }
            if ran && !busy {
                return BlockStatus::Waiting;
            }
        }
        BlockStatus::Running
    }

    fn enter_warp(&mut self, index: usize) {
        self.warp_index = index;
        swap(&mut self.warp, &mut self.block.warps[index]);
        swap(&mut self.registers, &mut self.warp.registers);
    }

    fn leave_warp(&mut self) {
        swap(&mut self.registers, &mut self.warp.registers);
        swap(&mut self.warp, &mut self.block.warps[self.warp_index]);
    }

    /// No warp of the block can go on: the lanes that wait at reconvergence points do. Whether there are any.
    fn release_reconvergence(&mut self) -> bool {
        self.block.warps.iter_mut().fold(false, |released, warp| warp.release_reconvergence(FULL) | released)
    }

    /// No warp of the cluster can go on: those lanes do, with a finding, that wait for lanes that never come. If there are
    /// none, it is a deadlock.
    fn unblock(&mut self) -> bool {
        let mut forced = false;
        for rank in 0..self.cluster.blocks.len() {
            self.exchange_block(rank);
            forced |= self.force_lanes();
            self.exchange_block(rank);
        }
        if !forced {
            self.report_deadlock();
        }
        forced
    }

    fn force_lanes(&mut self) -> bool {
        let mut forced = false;
        for index in 0..self.block.warps.len() {
            self.enter_warp(index);
            if let Some(current) =
                self.warp.paths.iter().position(|f| matches!(f.park, Park::Converge { .. }))
            {
                self.warp.current = current;
                self.report_missing_lanes();
                self.warp.forced = true;
                let path = &mut self.warp.paths[current];
                path.park = Park::Ready;
                path.resume = Some(Resume::Forced);
                forced = true;
            }
            self.leave_warp();
        }
        forced
    }

    /// The next path that can run, beginning after the one that ran last.
    fn pick(&mut self) -> bool {
        // Most often there is one path, which can run, or waits at a barrier.
        if let [path] = &self.warp.paths[..] {
            self.warp.current = 0;
            return match path.park {
                Park::Ready => true,
                Park::Barrier { .. } => false,
                Park::Converge { .. } => self.meet(),
            };
        }
        let count = self.warp.paths.len();
        let first = self.warp.current;
        // A division takes longer than all of this.
        let next = |number: usize| if number < count { number } else { number % count };
        let ready = (first..first + count).map(next).find(|&i| self.warp.paths[i].park == Park::Ready);
        match ready {
            Some(index) => self.warp.current = index,
            None => return self.meet(),
        }
        true
    }

    /// Runs the warp until it waits, has exited or has used up its fuel: whether it did anything, and
    /// whether the launch is over.
    fn run_warp(&mut self, fuel: u32) -> (bool, bool) {
        let launch = self.launch;
        let insts = &launch.code.insts[..];
        // Undefined values are followed before each instruction.
        (self.fuel, self.held) = if self.warp.undefined.is_empty() { (fuel, 0) } else { (0, fuel) };
        self.warp.clock += u64::from(self.fuel);
        self.gave_way = false;
        let mut lanes = 0u64;
        let (mut stopped, mut function) = (false, 0);
        'paths: while self.pick() {
            let path = &self.warp.paths[self.warp.current];
            let mut pc = path.pc;
            let active = path.mask;
            // Counting bits takes long where the processor's instruction for it may not be used.
            let active_count = u64::from(active.count_ones());
            self.active = active;
            let frame = &self.warp.frames[path.frame as usize];
            self.registers.base = frame.base;
            function = frame.function;
            // An instruction at which it has waited, or that is followed, is the interpreter's.
            let mut is_interpreted = path.resume.is_some();
            let native = self.native_code(function);
            loop {
                if self.fuel == 0 && self.held != 0 {
                    self.follow(pc);
                    is_interpreted = true;
                } else if self.fuel == 0 {
                    self.warp.paths[self.warp.current].pc = pc;
                    self.next_path();
                    break 'paths;
                }
                // What native code has left is the interpreter's.
                if let Some(native) = native
                    && self.held == 0
                    && !is_interpreted
                    && let Some(entry) = native.entry(pc)
                    && entry.need <= self.fuel
                {
                    match self.run_native(native, entry, pc, active_count, &mut lanes) {
                        Step::Goto(next) => pc = next,
                        _ => break,
                    }
                    if self.fuel == 0 {
                        continue;
                    }
                }
                is_interpreted = false;
                let inst = &insts[pc as usize];
                let mask = if inst.guard == UNGUARDED {
                    active
                } else {
                    active & self.registers.predicate(inst.guard)
                };
                self.fuel -= 1;
                self.block.clock += 1;
                if mask == 0 {
                    pc += 1;
                    continue;
                }
                self.mask = mask;
                self.pc = pc;
                let counts = &mut self.worker.counts[pc as usize];
                counts.warps += 1;
                let count = if mask == active { active_count } else { u64::from(mask.count_ones()) };
                counts.lanes += count;
                lanes = lanes.wrapping_add(count);
                if let Some(native) = native {
                    self.fill_cache(native, pc);
                }
                match (inst.run)(self, inst) {
                    Step::Next => pc += 1,
                    Step::Goto(target) => pc = target,
                    Step::Reload => break,
                    Step::Stop => {
                        stopped = true;
                        break 'paths;
                    }
                }
            }
        }
        if launch.options.native == Native::Auto {
            launch.code.native.warm(function, fuel - self.fuel - self.held);
        }
        self.worker.executed += lanes;
        self.warp.clock -= u64::from(self.fuel);
        self.worker.longest = self.worker.longest.max(self.warp.clock);
        (self.fuel + self.held != fuel, stopped)
    }

    /// The running path has used up its time slice. The next path runs, if there is one; after a while, lanes that
    /// wait at a reconvergence point do.
    fn next_path(&mut self) {
        let ready = self.warp.paths.iter().filter(|path| path.park == Park::Ready).count();
        let polled = self.warp.polls >= super::POLLS;
        if polled {
            self.warp.polls = 0;
        }
        self.warp.slices = if self.warp.waits_at_reconvergence() { self.warp.slices + 1 } else { 0 };
        if polled || self.warp.slices >= PATIENCE * ready.max(1) as u32 {
            // It may wait for lanes at a reconvergence point.
            self.warp.release_reconvergence(FULL);
            self.warp.slices = 0;
        }
        self.warp.current = (self.warp.current + 1) % self.warp.paths.len();
    }

    /// All paths are parked. Paths continue if the lanes that they wait for have exited. Paths that wait for one another
    /// by the same key at different instructions continue once all have arrived. Lanes that are waited for do not wait at a
    /// reconvergence point: they may be on their way to exit.
    fn meet(&mut self) -> bool {
        let mut needed = 0;
        for index in 0..self.warp.paths.len() {
            let Park::Converge { need, key } = self.warp.paths[index].park else { continue };
            needed |= need;
            if need & self.warp.live & !self.warp.paths[index].mask == 0 {
                self.warp.paths[index].park = Park::Ready;
                self.warp.current = index;
                return true;
            }
            if key == NONE {
                continue;
            }
            let same = Park::Converge { need, key };
            let come = self.warp.paths.iter().filter(|f| f.park == same).fold(0, |all, f| all | f.mask);
            if need & self.warp.live & !come == 0 {
                self.warp.hold_meeting(same, come);
                self.warp.current = index;
                return true;
            }
        }
        let released = self.warp.release_reconvergence(needed);
        if released {
            self.warp.current = self.warp.paths.len() - 1;
        }
        released
    }
}
