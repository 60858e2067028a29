//! A launch: a grid of blocks over host threads, from its start to its report.

mod error;
mod executor;
mod options;
mod report;
mod shape;

pub use error::LaunchError;
pub(crate) use executor::Executor;
pub use options::{Checks, LaunchConfig, Options, Race, Schedule};
pub use report::{Counters, LineCounters, Report, Trap, TrapKind, Waiting};
pub(crate) use shape::Shape;

use crate::check::Collector;
use crate::check::race::LaunchRaces;
use crate::decode::Code;
use crate::machine::{Around, Block, BlockStatus, MOST_HELD, Machine, Step, Worker, room_of_block};
use crate::memory::GlobalMap;
use crate::module::Loaded;
use crate::random::Random;
use report::{Places, Tally};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Warp instructions of a host thread after which, with nothing changed by any block, it looks whether its
/// blocks go round in circles. What the host does is left out: a seed gives the same order whatever it does.
const PATIENCE: u64 = 1 << 20;

/// What a host thread stands at that has no blocks any more.
const GONE: u64 = u64::MAX;

/// Most bytes that a launch prints.
const MOST_OUTPUT: usize = 16 << 20;

/// What the checks and limits of a launch are, with what the device adds.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) checks: Checks,
    pub(crate) race: Race,
    pub(crate) seed: Option<u64>,
    pub(crate) counters: bool,
    pub(crate) max_instructions: u64,
    pub(crate) cooperative: bool,
    /// Streaming multiprocessors of the device.
    pub(crate) multiprocessors: u32,
    /// Blocks that can be resident at once, on all of them.
    pub(crate) residency: u64,
    /// Where a cooperative grid keeps its barrier; 0 for others.
    pub(crate) workspace: u64,
    pub(crate) tensor_core: crate::tensor::TensorCore,
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
    joined: AtomicU32,
    next_block: AtomicU64,
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
    /// What the checks have found.
    pub(crate) findings: Collector,
    /// What the race check knows of global memory.
    pub(crate) races: LaunchRaces,
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
    finished: u32,
    complete: bool,
}

impl Launch {
    pub(crate) fn new(
        number: u64,
        module: Arc<Loaded>,
        kernel: u32,
        memory: Arc<GlobalMap>,
        shape: Shape,
        options: Settings,
        workers: u32,
    ) -> Self {
        let most = if options.seed.is_some() { 1 } else { workers };
        let workers = shape.blocks().clamp(1, u64::from(most.max(1))) as u32;
        Launch {
            number,
            code: module.code.clone(),
            module,
            kernel,
            memory,
            shape,
            options,
            workers,
            joined: AtomicU32::new(0),
            next_block: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            executed: AtomicU64::new(0),
            held: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            standing: (0..workers).map(|_| AtomicU64::new(0)).collect(),
            awaited: AtomicBool::new(false),
            findings: Collector::default(),
            races: LaunchRaces::new(),
            state: Mutex::new(State::default()),
            done: Condvar::new(),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.changes.fetch_add(1, AcqRel);
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

    /// Ends it with a trap. The first one counts.
    pub(crate) fn trap(&self, trap: Trap) {
        self.state().trap.get_or_insert(trap);
        self.stop();
    }

    /// Works on it with this host thread, if it wants another one.
    fn work(&self) {
        let index = self.joined.fetch_add(1, Relaxed);
        if index >= self.workers {
            return;
        }
        let execute = || {
            let random = self.options.seed.map(Random::new);
            let mut machine = Machine::new(self, Worker::new(self, random));
            let mut residents = Residents::new(self, index);
            residents.run(&mut machine);
            (machine.worker, report::places(&residents.blocks))
        };
        // A mistake of the virtual GPU's own ends the launch, and leaves neither the host waiting nor the
        // device unusable: what the blocks shared are atomics, and locks that are taken poisoned or not.
        match catch_unwind(AssertUnwindSafe(execute)) {
            Ok(ended) => self.finish(Some(ended)),
            Err(panic) => {
                self.trap(report::failure(self, panic.as_ref()));
                self.finish(None);
            }
        }
    }

    /// Blocks take some of the host's memory. Whether they may.
    pub(crate) fn hold(&self, bytes: u64) -> bool {
        self.held.fetch_add(bytes, Relaxed).saturating_add(bytes) <= MOST_HELD
    }

    /// Whether it wants more host threads than it has.
    fn wants_workers(&self) -> bool {
        self.joined.load(Relaxed) < self.workers
    }

    fn finish(&self, ended: Option<(Worker, Places)>) {
        let mut state = self.state();
        if let Some((worker, places)) = ended {
            state.tally.merge(&worker);
            places.into_iter().for_each(|(pc, threads)| *state.places.entry(pc).or_default() += threads);
        }
        state.finished += 1;
        if state.finished == self.workers {
            state.complete = true;
            self.done.notify_all();
        }
    }

    /// Takes what a kernel prints. What does not fit is dropped, as hardware does.
    pub(crate) fn print(&self, text: &[u8]) {
        let mut state = self.state();
        if state.output.len() + text.len() <= MOST_OUTPUT {
            state.output.extend_from_slice(text);
        }
    }

    /// Waits for its end.
    pub(crate) fn wait(&self) {
        let mut state = self.state();
        while !state.complete {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether it is over.
    pub(crate) fn is_complete(&self) -> bool {
        self.state().complete
    }

    /// What it has done and found; after its end.
    pub(crate) fn report(&self) -> Report {
        report::build(self, &self.state())
    }

    fn take_block(&self) -> Option<u64> {
        // Looked at first, so that the number does not run away.
        if self.next_block.load(Relaxed) >= self.shape.blocks() {
            return None;
        }
        let turn = self.next_block.fetch_add(1, Relaxed);
        (turn < self.shape.blocks()).then_some(turn)
    }
}

/// The blocks that a host thread has begun and not finished.
struct Residents<'a> {
    launch: &'a Launch,
    blocks: Vec<Block>,
    /// Blocks that are over, to be used again.
    spare: Vec<Block>,
    /// How many there may be.
    most: u64,
    /// Which host thread this is.
    index: u32,
}

impl<'a> Residents<'a> {
    fn new(launch: &'a Launch, index: u32) -> Self {
        let share = launch.options.residency.div_ceil(u64::from(launch.workers)).max(1);
        Residents { launch, blocks: Vec::new(), spare: Vec::new(), most: share, index }
    }

    fn admit(&mut self, number: u64) {
        let launch = self.launch;
        let used = self.spare.pop();
        if used.is_none() && !launch.hold(room_of_block(&launch.shape, &launch.code, launch.kernel)) {
            return launch.trap(report::out_of_memory(launch));
        }
        let mut block = used.unwrap_or_default();
        block.start(number, &launch.shape, &launch.code, launch.kernel);
        block.checks.start(launch, number);
        self.blocks.push(block);
    }

    /// Begins another block, if there is one and it may.
    fn admit_next(&mut self) -> bool {
        // A cooperative grid has all of its blocks from the start.
        if self.launch.options.cooperative || self.blocks.len() as u64 >= self.most {
            return false;
        }
        match self.launch.take_block() {
            Some(turn) => {
                self.admit(turn);
                true
            }
            None => false,
        }
    }

    fn run(&mut self, m: &mut Machine<'a>) {
        let launch = self.launch;
        if launch.options.cooperative {
            let all = (self.index as u64..launch.shape.blocks()).step_by(launch.workers as usize);
            for number in all {
                self.admit(number);
                if launch.is_stopped() {
                    break;
                }
            }
        } else {
            self.admit_next();
            if m.worker.random.is_some() {
                while self.blocks.len() < 8 && self.admit_next() {}
            }
        }
        let mut turn = 0;
        let mut waiting = 0;
        let mut stalled = 0;
        let mut seen = launch.changes.load(Acquire);
        while !self.blocks.is_empty() && !launch.is_stopped() {
            turn = match &mut m.worker.random {
                None => turn % self.blocks.len(),
                Some(random) => random.below(self.blocks.len() as u64) as usize,
            };
            let before = self.blocks[turn].clock;
            m.worker.allowance =
                launch.options.max_instructions.saturating_sub(launch.executed.load(Relaxed));
            m.exchange_block(&mut self.blocks[turn]);
            let status = m.run_block();
            m.exchange_block(&mut self.blocks[turn]);
            self.account(m);
            let progressed = m.take_progress();
            let read = m.take_read();
            if m.take_outward() {
                launch.changed();
            }
            waiting = if matches!(status, BlockStatus::Waiting) { waiting + 1 } else { 0 };
            match status {
                BlockStatus::Stopped => break,
                BlockStatus::Done => {
                    let block = self.blocks.swap_remove(turn);
                    self.spare.push(block);
                    launch.changed();
                    if self.blocks.is_empty() || m.worker.random.is_some() {
                        self.admit_next();
                    }
                }
                BlockStatus::Running | BlockStatus::Waiting => {
                    let now = launch.changes.load(Acquire);
                    stalled = if now == seen { stalled + (self.blocks[turn].clock - before) } else { 0 };
                    seen = now;
                    m.worker.steady = stalled > PATIENCE;
                    if m.worker.steady {
                        let around = Around { changes: now, awaited: launch.awaited.load(Acquire) };
                        self.blocks[turn].look(around, read);
                        let circles = self.blocks.iter().all(|block| block.circles(now));
                        if circles && launch.stands_still(self.index, now) {
                            launch.trap(report::stall(launch, self.blocks.len()));
                        }
                    }
                    // It may wait for a block that has not begun.
                    if !progressed && self.admit_next() {
                        launch.changed();
                    }
                    turn += 1;
                    if waiting > self.blocks.len() {
                        // What its blocks wait for may want this core.
                        std::thread::yield_now();
                    }
                }
            }
        }
        launch.standing[self.index as usize].store(GONE, Release);
    }

    fn account(&self, m: &mut Machine<'_>) {
        let executed = std::mem::take(&mut m.worker.executed);
        let total = self.launch.executed.fetch_add(executed, Relaxed) + executed;
        if total > self.launch.options.max_instructions {
            self.launch.trap(report::budget(self.launch));
        }
    }
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

    /// Every thread of the block waits.
    pub(crate) fn report_deadlock(&mut self) {
        self.launch.trap(report::deadlock(self.launch, &self.block));
    }
}
