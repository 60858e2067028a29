//! A launch: a grid of blocks over host threads, from its start to its report.

mod edge;
mod error;
mod executor;
mod lines;
mod mbarriers;
mod options;
mod report;
mod residents;
mod shape;

pub(crate) use edge::Footprints;
pub use edge::{Edge, Edges};
pub use error::{ClusterRule, LaunchError};
pub(crate) use executor::Executor;
pub use lines::Lines;
pub use mbarriers::MbarrierWait;
pub use options::{Checks, LaunchConfig, Options, Race, Schedule, UnknownCheck};
pub use report::{Counters, LineCounters, Report, Trap, TrapKind, Waiting};
pub(crate) use shape::Shape;

use crate::check::race::LaunchRaces;
use crate::check::{Collector, Finding, UsedLoads};
use crate::decode::Code;
use crate::locality::LaunchSectors;
use crate::machine::{Cluster, MAX_HELD, Machine, Step, Worker};
use crate::memory::GlobalMap;
use crate::module::Loaded;
use crate::random::Random;
use edge::Neighbours;
use report::{Places, Tally};
use residents::Residents;
use std::mem::take;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use warpwright_ptx::ir::Arch;

/// Warp instructions of a host thread after which, with nothing changed by any block, it looks whether its
/// blocks go round in circles; and where the order of things comes from a seed, which has no say from then on. What the
/// host does is left out: a seed gives the same order whatever it does.
const PATIENCE: u64 = 1 << 18;
const SEEDED_PATIENCE: u64 = 1 << 20;

/// What a turn counts for in which all threads of a block gave way, however few instructions they took.
const WAITING: u64 = 1 << 12;

/// Instructions of a host thread, without anything that others may notice, after which a launch makes way for others.
/// Until then a standstill has been found, if it is one.
const SLICE: u64 = 4 * PATIENCE;

/// Instructions of a host thread after which a launch makes way for others though it may change memory all the time.
const LONG: u64 = 1 << 24;

/// The same once the launch has stood still: most of it waits for the same again.
const PATIENCE_AGAIN: u64 = 1 << 11;

/// What a host thread stands at that has no blocks any more.
const GONE: u64 = u64::MAX;

/// How often a host thread whose blocks all wait yields its core before it sleeps, and how long it sleeps at most: the
/// host may change memory without a word.
const TIMES_TO_YIELD: usize = 16;
const LONGEST_SLEEP: Duration = Duration::from_micros(200);

/// Most bytes that a launch prints.
const MAX_OUTPUT: usize = 16 << 20;

/// What the checks and limits of a launch are, with what the device adds.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) checks: Checks,
    pub(crate) race: Race,
    pub(crate) seed: Option<u64>,
    /// Which cluster begins first, and how far the next one is from it, modulo how many there are.
    pub(crate) begin: (u64, u64),
    pub(crate) counters: bool,
    pub(crate) fetches: bool,
    /// Blocks that are executed: all of some clusters.
    pub(crate) blocks: u64,
    pub(crate) max_instructions: u64,
    pub(crate) cooperative: bool,
    /// Streaming multiprocessors of the device.
    pub(crate) multiprocessors: u32,
    /// Blocks that can be resident at once, on all of them.
    pub(crate) residency: u64,
    /// Where a cooperative grid keeps its barrier; 0 for others.
    pub(crate) workspace: u64,
    /// Whether kernels are compiled.
    pub(crate) native: crate::native::Native,
    pub(crate) tensor_core: crate::tensor::TensorCore,
    /// The device's architecture.
    pub(crate) arch: Arch,
    /// The architecture whose tensor core that is to be.
    pub(crate) tensor_sm: u16,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What all blocks of a launch share.
pub(crate) struct Launch {
    /// Its number on the device.
    pub(crate) number: u64,
    pub(crate) module: Arc<Loaded>,
    pub(crate) code: Arc<Code>,
    /// The kernel, by its index in the code.
    pub(crate) kernel: u32,
    /// Global memory as it was mapped when the launch began.
    pub(crate) memory: Arc<GlobalMap>,
    pub(crate) shape: Shape,
    pub(crate) options: Settings,
    /// Host threads that work on it, at most.
    workers: u32,
    /// The shares of the grid that no host thread works on, and how many they are.
    shares: Mutex<Vec<Share>>,
    waiting_shares: AtomicU32,
    next_cluster: AtomicU64,
    stopped: AtomicBool,
    executed: AtomicU64,
    /// Bytes that resident blocks hold.
    held: AtomicU64,
    /// Counts up whenever a block has done something that others may notice, has begun, or is over; and when
    /// it has looked at what changes by itself.
    changes: AtomicU64,
    /// For each host thread, one more than the number of changes at which its blocks went round in circles.
    standing: Box<[AtomicU64]>,
    /// The host waits for the end, and so changes nothing any more.
    awaited: AtomicBool,
    /// What stands still is not ended, but left by the host threads until it is resumed.
    may_stand: AtomicBool,
    /// It stands still, and host threads leave it.
    leaving: AtomicBool,
    /// For each host thread, whether its blocks have done nothing for long that others may notice, but look at memory.
    resting: Box<[AtomicBool]>,
    /// It was left because its blocks look at memory of the host.
    polls_host: AtomicBool,
    /// It was left to make way, and can go on.
    makes_way: AtomicBool,
    /// Instructions of a host thread, without anything that others may notice, after which it makes way.
    slice: AtomicU64,
    /// Counts what blocks have done that others may notice.
    acts: AtomicU64,
    /// The number of changes when it was resumed.
    resumed_at: AtomicU64,
    /// Instructions of a host thread after which it looks for a standstill.
    patience: AtomicU64,
    /// What the checks have found.
    pub(crate) findings: Collector,
    /// What the race check knows of global memory.
    pub(crate) races: LaunchRaces,
    /// The loads whose values only some threads use: the others are not looked at for races.
    pub(crate) used_loads: Arc<UsedLoads>,
    /// The sectors that it has touched, where these are counted.
    pub(crate) sectors: Option<LaunchSectors>,
    /// The launches that it may overlap with.
    neighbours: Neighbours,
    /// Host threads that have a block that does not wait, and those that sleep until something happens.
    awake: AtomicU32,
    sleepers: AtomicU32,
    asleep: Mutex<()>,
    woken: Condvar,
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Default)]
struct State {
    trap: Option<Trap>,
    tally: Tally,
    /// Where threads were that had not exited.
    places: Places,
    output: Vec<u8>,
    /// What its workers accessed, if another launch may overlap.
    footprints: Footprints,
    finished: u32,
    left: u32,
    /// All host threads have left it, and something is left to do.
    standing: bool,
    complete: bool,
}

/// What one host thread does of a launch.
struct Share {
    index: u32,
    /// Where it was left.
    left: Option<(Worker, Residents)>,
}

/// How far a launch has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The launch is over.
    Complete,
    /// Every thread that has not exited repeats the same steps until something else changes memory; or the launch has
    /// run for long and only looked at memory, so that it may wait for others.
    Standing {
        /// Whether, since it began or last stood still, it has done something that others may notice.
        changed: bool,
        /// Whether it polls memory that the host may change.
        polls_host: bool,
        /// Whether it can go on by itself: it has run for long, and makes way for others.
        makes_way: bool,
    },
}

impl Launch {
    #[allow(clippy::too_many_arguments, reason = "a launch consists of as many parts")]
    pub(crate) fn new(
        number: u64,
        module: Arc<Loaded>,
        kernel: u32,
        memory: Arc<GlobalMap>,
        shape: Shape,
        options: Settings,
        workers: u32,
        edges: &Edges,
    ) -> Self {
        let seeded = options.seed.is_some();
        let max_workers = if seeded { 1 } else { workers };
        let clusters = options.blocks / u64::from(shape.cluster_blocks());
        let workers = clusters.clamp(1, u64::from(max_workers.max(1))) as u32;
        let sectors = options.fetches.then(|| LaunchSectors::new(&memory));
        let used_loads = match options.race {
            Race::Normal if options.checks.race => module.used_loads(kernel, &shape),
            _ => Arc::default(),
        };
        let races = LaunchRaces::new(workers == 1, module.code.non_coherent);
        Launch {
            number,
            code: module.code.clone(),
            module,
            kernel,
            memory,
            shape,
            options,
            workers,
            shares: Mutex::new((0..workers).map(|index| Share { index, left: None }).collect()),
            waiting_shares: AtomicU32::new(workers),
            next_cluster: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            executed: AtomicU64::new(0),
            held: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            standing: (0..workers).map(|_| AtomicU64::new(0)).collect(),
            awaited: AtomicBool::new(false),
            may_stand: AtomicBool::new(edges.before.is_some()),
            leaving: AtomicBool::new(false),
            resting: (0..workers).map(|_| AtomicBool::new(false)).collect(),
            polls_host: AtomicBool::new(false),
            makes_way: AtomicBool::new(false),
            slice: AtomicU64::new(SLICE),
            acts: AtomicU64::new(0),
            resumed_at: AtomicU64::new(0),
            patience: AtomicU64::new(if seeded { SEEDED_PATIENCE } else { PATIENCE }),
            findings: Collector::default(),
            races,
            used_loads,
            sectors,
            neighbours: edges.into(),
            awake: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            asleep: Mutex::new(()),
            woken: Condvar::new(),
            state: Mutex::new(State::default()),
            done: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Whether no more instructions are to be executed.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    /// Ends it: a trap of its own, or the host's wish.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    /// Something has happened that more than one block may notice.
    fn changed(&self) {
        self.changes.fetch_add(1, SeqCst);
        if self.sleepers.load(SeqCst) > 0 {
            drop(lock(&self.asleep));
            self.woken.notify_all();
        }
    }

    /// Gives the core away: all blocks of a host thread wait, and nothing has happened since `changes`. What they wait for
    /// is done by another host thread, which may want this core. After some times the thread sleeps until something
    /// happens, if there is another one that does not wait.
    fn give_way(&self, times: usize, changes: u64) {
        if times <= TIMES_TO_YIELD || self.awake.load(SeqCst) == 0 {
            return std::thread::yield_now();
        }
        let asleep = lock(&self.asleep);
        self.sleepers.fetch_add(1, SeqCst);
        // Whoever counts a change afterwards sees the sleeper.
        if self.changes.load(SeqCst) == changes && !self.is_stopped() && !self.is_leaving() {
            let _ = self.woken.wait_timeout(asleep, LONGEST_SLEEP);
        }
        self.sleepers.fetch_sub(1, SeqCst);
    }

    /// The host waits for its end. Until now it may have changed memory.
    fn host_waits(&self) {
        self.awaited.store(true, Release);
    }

    /// The blocks of a host thread go round in circles until the count of changes is another one. Whether
    /// that is so of all, and nothing can come that would change it.
    fn stands_still(&self, index: u32, changes: u64) -> bool {
        self.standing[index as usize].store(changes + 1, Release);
        let still = |standing: &AtomicU64| [changes + 1, GONE].contains(&standing.load(Acquire));
        self.standing.iter().all(still) && self.changes.load(Acquire) == changes
    }

    /// Decides about a launch in which nothing can happen any more: host threads leave it if the caller wants that
    /// and something outside could change it; otherwise it is ended. A launch that polls the host's memory goes on.
    fn stall(&self, clusters: &[Cluster]) {
        // The end of the launch in front of it changes something, too.
        let may_change = self.is_held() || clusters.iter().any(Cluster::has_read);
        if self.may_stand.load(Relaxed) && may_change {
            self.leaving.store(true, Release);
        } else {
            self.trap(report::stall(self, clusters.iter()));
        }
    }

    /// The blocks of a host thread have looked at memory, and done nothing else for long that others may notice. If that
    /// is so of all, they leave the launch for a moment, where that is wished for.
    fn rest(&self, index: u32, polls_host: bool) {
        self.resting[index as usize].store(true, Release);
        if self.may_stand.load(Relaxed) && self.resting.iter().all(|resting| resting.load(Acquire)) {
            self.polls_host.store(polls_host, Relaxed);
            self.makes_way.store(!polls_host, Relaxed);
            self.leaving.store(true, Release);
        }
    }

    /// The blocks of a host thread wait for the launch in front of this one. If that is so of all, they leave.
    fn stay(&self, index: u32) {
        self.resting[index as usize].store(true, Release);
        if self.may_stand.load(Relaxed) && self.resting.iter().all(|resting| resting.load(Acquire)) {
            self.leaving.store(true, Release);
        }
    }

    /// Whether host threads are to leave it where it is.
    fn is_leaving(&self) -> bool {
        self.leaving.load(Relaxed)
    }

    /// From now on it is left where it is when it stands still.
    pub(crate) fn let_stand(&self) {
        self.may_stand.store(true, Relaxed);
    }

    /// Whether it has been left; it goes on when it is submitted again.
    pub(crate) fn resume(&self) -> bool {
        let mut state = self.state();
        if !take(&mut state.standing) {
            return false;
        }
        state.left = 0;
        drop(state);
        self.leaving.store(false, Relaxed);
        if self.makes_way.swap(false, Relaxed) {
            // It may be no wait at all, but a long computation.
            self.slice.store((2 * self.slice.load(Relaxed)).min(LONG), Relaxed);
        } else {
            self.patience.store(PATIENCE_AGAIN, Relaxed);
        }
        self.standing.iter().for_each(|standing| {
            let gone = standing.load(Relaxed) == GONE;
            standing.store(if gone { GONE } else { 0 }, Relaxed);
        });
        self.changed();
        self.polls_host.store(false, Relaxed);
        self.resumed_at.store(self.acts.load(Acquire), Relaxed);
        self.waiting_shares.store(lock(&self.shares).len() as u32, Release);
        true
    }

    /// Waits until it is over or stands still.
    pub(crate) fn wait_for_progress(&self) -> Progress {
        let mut state = self.state();
        while !state.complete && !state.standing {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.complete {
            return Progress::Complete;
        }
        Progress::Standing {
            changed: self.acts.load(Acquire) != self.resumed_at.load(Relaxed),
            polls_host: self.polls_host.load(Relaxed),
            makes_way: self.makes_way.load(Relaxed),
        }
    }

    /// Waits until it is over, or a point in time. Returns whether it is over.
    pub(crate) fn wait_until(&self, end: Instant) -> bool {
        let mut state = self.state();
        while !state.complete {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.done.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// It stands still for good: ended with the trap that says so.
    pub(crate) fn give_up(&self) {
        let shares = lock(&self.shares);
        let left = shares.iter().filter_map(|share| share.left.as_ref());
        let trap = match self.is_held() {
            true => report::held(self),
            false => report::stall(self, left.flat_map(|(_, left)| &left.clusters)),
        };
        drop(shares);
        self.trap(trap);
    }

    /// Ends it with a trap. The first one counts.
    pub(crate) fn trap(&self, trap: Trap) {
        self.state().trap.get_or_insert(trap);
        self.stop();
    }

    /// Works on it with this host thread, if it wants another one.
    fn work(&self) {
        let Some(Share { index, left }) = self.take_share() else { return };
        let execute = || {
            let (worker, mut residents, begun) = match left {
                Some((worker, residents)) => (worker, residents, true),
                None => {
                    let random = self.options.seed.map(Random::new);
                    (Worker::new(self, random), Residents::new(self, index), false)
                }
            };
            let mut machine = Machine::new(self, worker);
            if !begun {
                residents.begin(self, &machine);
            }
            residents.run(self, &mut machine);
            (machine.worker, residents)
        };
        // A mistake of the virtual GPU's own ends the launch, and leaves neither the host waiting nor the
        // device unusable: what the blocks shared are atomics, and locks that are taken poisoned or not.
        match catch_unwind(AssertUnwindSafe(execute)) {
            Ok((worker, residents))
                if self.is_leaving() && !self.is_stopped() && !residents.clusters.is_empty() =>
            {
                lock(&self.shares).push(Share { index, left: Some((worker, residents)) });
                self.leave(|state| state.left += 1);
            }
            Ok((worker, residents)) => {
                self.standing[index as usize].store(GONE, Release);
                self.resting[index as usize].store(true, Release);
                let places = report::places(&residents.clusters);
                self.finish(Some((worker, places)));
            }
            Err(panic) => {
                self.standing[index as usize].store(GONE, Release);
                self.resting[index as usize].store(true, Release);
                self.trap(report::failure(self, panic.as_ref()));
                self.finish(None);
            }
        }
    }

    /// A share that no host thread works on.
    fn take_share(&self) -> Option<Share> {
        if !self.wants_workers() {
            return None;
        }
        let mut shares = lock(&self.shares);
        // Shares that were left meanwhile are not for now.
        if self.waiting_shares.load(Relaxed) == 0 {
            return None;
        }
        self.waiting_shares.fetch_sub(1, Relaxed);
        if shares.is_empty() { None } else { Some(shares.remove(0)) }
    }

    /// A host thread has left it or done its share.
    fn leave(&self, count: impl FnOnce(&mut State)) {
        let mut state = self.state();
        count(&mut state);
        if state.finished + state.left == self.workers {
            state.complete = state.left == 0;
            state.standing = state.left > 0;
            if state.complete {
                self.open_dependents();
            }
            self.done.notify_all();
        }
    }

    /// Blocks take some of the host's memory. Whether they may.
    pub(crate) fn hold(&self, bytes: u64) -> bool {
        self.held.fetch_add(bytes, Relaxed).saturating_add(bytes) <= MAX_HELD
    }

    /// Whether blocks run on several host threads.
    pub(crate) fn is_parallel(&self) -> bool {
        self.workers > 1
    }

    /// Whether it wants more host threads than it has.
    fn wants_workers(&self) -> bool {
        self.waiting_shares.load(Acquire) > 0
    }

    fn finish(&self, ended: Option<(Worker, Places)>) {
        self.leave(|state| {
            if let Some((worker, places)) = ended {
                state.tally.merge(&worker);
                state.footprints.merge(worker.footprints);
                places.into_iter().for_each(|(pc, threads)| *state.places.entry(pc).or_default() += threads);
            }
            state.finished += 1;
        });
    }

    /// Takes the output of a kernel. Output beyond the limit is dropped, as on hardware.
    pub(crate) fn print(&self, text: &[u8]) {
        let mut state = self.state();
        if state.output.len() + text.len() <= MAX_OUTPUT {
            state.output.extend_from_slice(text);
        }
    }

    /// Whether it is over.
    pub(crate) fn is_complete(&self) -> bool {
        self.state().complete
    }

    /// Whether no host thread has anything to do with it: it is over, or stands still.
    fn is_left(&self) -> bool {
        let state = self.state();
        state.complete || state.standing
    }

    /// What it has done and found; after its end.
    pub(crate) fn report(self: &Arc<Self>) -> Report {
        let footprints = take(&mut self.state().footprints);
        let overlaps: Vec<Finding> = if self.has_neighbours() { self.settle(footprints) } else { Vec::new() };
        report::build(self, &self.state(), overlaps)
    }

    /// Takes a cluster that has not begun, which never will: the index of its first block. Those of a cooperative grid
    /// have all begun.
    pub(crate) fn cancel_cluster(&self) -> Option<[u32; 3]> {
        let number = if self.options.cooperative { None } else { self.take_cluster() };
        number.map(|number| self.shape.block_index(self.shape.block_of(number, 0)))
    }

    /// The number of a cluster that has not begun, if there is one.
    fn take_cluster(&self) -> Option<u64> {
        let sample = self.options.blocks / u64::from(self.shape.cluster_blocks());
        // Looked at first, so that the number does not run away.
        if self.next_cluster.load(Relaxed) >= sample {
            return None;
        }
        let turn = self.next_cluster.fetch_add(1, Relaxed);
        if turn >= sample {
            return None;
        }
        let clusters = self.shape.clusters();
        let (first, stride) = self.options.begin;
        let turn = sampled(turn, sample, clusters);
        Some(
            ((u128::from(first) + u128::from(turn) * u128::from(stride)) % u128::from(clusters.max(1)))
                as u64,
        )
    }
}

/// Runs of neighbours that a sample of a grid consists of.
const RUNS: u64 = 4;

/// Which block of a grid stands at a turn of a sample: the sample consists of runs, each in the middle of an equal part
/// of the grid.
fn sampled(turn: u64, sample: u64, blocks: u64) -> u64 {
    let runs = RUNS.min(sample);
    let run = turn * runs / sample.max(1);
    let start = |run: u64, of: u64| (u128::from(run) * u128::from(of)).div_ceil(runs.into()) as u64;
    let length = |of: u64| start(run + 1, of) - start(run, of);
    start(run, blocks) + (length(blocks) - length(sample)) / 2 + turn - start(run, sample)
}

impl Machine<'_> {
    /// Ends the launch with a trap at this instruction.
    #[cold]
    pub(crate) fn trap(&mut self, kind: TrapKind, message: String) -> Step {
        let lane = self.mask.trailing_zeros().min(31) as usize;
        let trap = report::trap_at(self.launch, kind, message, self.pc, self.block.number, self.thread(lane));
        self.launch.trap(trap);
        Step::Stop
    }

    /// The clock of the block, in warp instructions.
    pub(crate) fn now(&self) -> u64 {
        self.block.clock
    }

    /// Every thread of the cluster waits.
    pub(crate) fn report_deadlock(&mut self) {
        self.launch.trap(report::deadlock(self.launch, &self.cluster));
    }
}

#[cfg(test)]
mod tests {
    use super::sampled;

    #[test]
    fn a_sample_has_different_blocks_from_all_over_the_grid() {
        for blocks in 1..60 {
            for sample in 1..=blocks {
                let mut numbers: Vec<u64> = (0..sample).map(|turn| sampled(turn, sample, blocks)).collect();
                if sample == blocks {
                    assert!(numbers.iter().copied().eq(0..blocks), "all of {blocks}, in their order");
                }
                numbers.dedup();
                assert_eq!(numbers.len() as u64, sample, "{sample} of {blocks}");
                assert!(numbers.is_sorted() && numbers.last() < Some(&blocks), "{sample} of {blocks}");
            }
        }
        assert!((0..8).map(|turn| sampled(turn, 8, 800)).eq([99, 100, 299, 300, 499, 500, 699, 700]));
        assert_eq!(sampled(0, 1, 9), 4, "the middle");
        assert_eq!(sampled(3, 4, u64::MAX >> 3), 2017612633061982207);
    }
}
