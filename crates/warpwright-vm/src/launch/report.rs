//! Reports of launches.

use super::lines::Lines;
use super::mbarriers::{MbarrierWait, waits};
use super::{Launch, State};
use crate::check::{Finding, Severity, SourceLine, SourceLines, resolve, shown};
use crate::counters::{BarrierWaits, MemoryCounters, SpaceTraffic, Traffic};
use crate::decode::NO_STATEMENT;
use crate::fidelity::{Assumption, assumptions};
use crate::locality::Fetches;
use crate::machine::{Barrier, Block, Cluster, Counts, LANES, Worker, too_much};
use crate::names::named;
use crate::render::{Renderer, symbol};
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::fmt::{Display, Write as _};
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use warpwright_ptx::ir::Origin;

named! {
    /// The reason why a launch ended before its threads did.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum TrapKind {
        /// The kernel executed `trap`.
        Instruction = "instruction",
        /// The virtual GPU does not support an instruction.
        Unsupported = "unsupported",
        /// `brx.idx` with an index outside its table.
        BadBranch = "bad-branch",
        /// A call to something that is not a function.
        BadCall = "bad-call",
        /// The local memory of a thread is full.
        StackOverflow = "stack-overflow",
        /// The resident blocks need more host memory than is allowed.
        OutOfMemory = "out-of-memory",
        /// An atomic operation on memory without atomics.
        BadAtomic = "bad-atomic",
        /// Something that is not an mbarrier was used as one, or an mbarrier was used beyond its limits.
        BadBarrier = "bad-barrier",
        /// The value of an operand is meaningless for the instruction.
        BadOperand = "bad-operand",
        /// An access by `.trap` outside of a surface.
        SurfaceBounds = "surface-bounds",
        /// An assertion of the kernel failed.
        Assertion = "assertion",
        /// `free` of memory that `malloc` did not return.
        BadFree = "bad-free",
        /// All threads that could continue wait for each other.
        Deadlock = "deadlock",
        /// The instruction limit was reached.
        Budget = "budget",
        /// The virtual GPU itself failed: a bug in it, not in the kernel.
        Internal = "internal",
    }
}

/// A launch ended before its threads did.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Trap {
    /// The kind of trap.
    pub kind: TrapKind,
    /// The message.
    pub message: String,
    /// The kernel.
    pub kernel: String,
    /// The instruction's origin, if the trap has one.
    pub origin: Option<Origin>,
    /// The source line of the instruction, if known.
    pub source: Option<SourceLine>,
    /// Block and thread (`%ctaid` and `%tid`), if the trap has one.
    pub thread: Option<([u32; 3], [u32; 3])>,
    /// Where the blocked threads were: those of the block, if all of it waits at barriers; otherwise, if no single
    /// instruction is to blame, those of all resident blocks.
    pub waiting: Vec<Waiting>,
    /// In a deadlock, the mbarriers that threads wait for: the first ones, if they are many.
    pub mbarriers: Vec<MbarrierWait>,
}

/// Threads that were at one instruction when a launch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiting {
    /// The instruction's origin.
    pub origin: Origin,
    /// Its source line, if known.
    pub source: Option<SourceLine>,
    /// The number of threads.
    pub threads: u64,
}

/// Counts for one instruction.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LineCounters {
    /// The instruction's origin.
    pub origin: Origin,
    /// Its source line, if known.
    pub source: Option<SourceLine>,
    /// The opcode.
    pub opcode: &'static str,
    /// Number of executions by warps.
    pub warps: u64,
    /// Number of executions by lanes.
    pub lanes: u64,
    /// Number of times that lanes diverged here.
    pub divergent: u64,
    /// Its traffic with global memory.
    pub global: Traffic,
    /// Its traffic with shared memory.
    pub shared: Traffic,
    /// Passes to shared memory beyond those that it would need without bank conflicts.
    pub bank_conflicts: u64,
    /// Waiting of warps at it.
    pub barrier: BarrierWaits,
    /// What it asks of caches, if that was counted.
    pub fetches: Fetches,
    /// The address of the buffer that it asks caches for, if that was counted; of several, one.
    pub fetched: Option<u64>,
}

/// The counters that a profiler would show.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Blocks that were executed: all of the grid, or a sample.
    pub blocks: u64,
    /// Instructions × active lanes.
    pub instructions: u64,
    /// Instructions of warps.
    pub warp_instructions: u64,
    /// Instructions of the warp that took the longest, those of the warps that it waited for at barriers included.
    pub longest_warp: u64,
    /// Instructions × active lanes, by opcode.
    pub by_opcode: BTreeMap<&'static str, u64>,
    /// Branches that divided a warp.
    pub divergent_branches: u64,
    /// Global memory.
    pub global: SpaceTraffic,
    /// Constant memory; parameters are not counted.
    pub constant: SpaceTraffic,
    /// Shared memory.
    pub shared: SpaceTraffic,
    /// Local memory.
    pub local: SpaceTraffic,
    /// Passes to shared memory beyond those that requests would need without bank conflicts.
    pub bank_conflicts: u64,
    /// Waiting at the barriers of blocks.
    pub barrier: BarrierWaits,
    /// Global and constant memory by allocation: name, address, traffic.
    pub allocations: Vec<(String, u64, SpaceTraffic)>,
    /// What was asked of caches, if that was counted, by allocation: address, bytes, sectors.
    pub fetches: Vec<(u64, u64, Fetches)>,
    /// By instruction, in the order of the text.
    pub lines: Lines,
}

/// The results and findings of a launch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The kernel.
    pub kernel: String,
    /// The findings of the checks, including accesses that were not performed, in the order of the text.
    pub findings: Vec<Finding>,
    /// The trap, if one ended the launch before its threads did. A launch that was [cancelled](crate::Running::cancel) has
    /// none.
    pub trap: Option<Trap>,
    /// What was executed.
    pub counters: Counters,
    /// What it executed whose results on hardware may be others, each form once.
    pub assumptions: Vec<Assumption>,
    /// What the kernel printed.
    pub output: String,
    /// The PTX that the module was loaded from, if known.
    pub text: Option<Arc<str>>,
}

impl Report {
    /// Whether it has neither findings nor a trap.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.trap.is_none()
    }

    /// Whether the kernel is wrong: a finding is an error, or there is a trap. Warnings are not.
    pub fn has_errors(&self) -> bool {
        self.trap.is_some() || self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// The counts in words: `2 findings and a trap`.
    pub fn summary(&self) -> String {
        let findings = match self.findings.len() {
            1 => "1 finding".to_owned(),
            count => format!("{count} findings"),
        };
        match &self.trap {
            Some(_) if self.findings.is_empty() => "a trap".to_owned(),
            Some(_) => format!("{findings} and a trap"),
            None => findings,
        }
    }
}

/// As a [`Renderer`] shows it.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}`: {}", symbol(&self.kernel), Renderer::of_report(self).report(self))
    }
}

/// What the workers have counted.
#[derive(Debug, Default)]
pub(super) struct Tally {
    counts: Vec<Counts>,
    divergent: Vec<u64>,
    memory: MemoryCounters,
    longest: u64,
}

impl Tally {
    pub(super) fn merge(&mut self, worker: &Worker) {
        self.counts.resize(worker.counts.len(), Counts::default());
        self.divergent.resize(worker.divergent.len(), 0);
        for (into, from) in self.counts.iter_mut().zip(&worker.counts) {
            into.warps += from.warps;
            into.lanes += from.lanes;
        }
        if let Some(native) = &worker.native {
            for (into, from) in self.counts.iter_mut().zip(native.counts()) {
                into.warps += from.warps;
                into.lanes += from.lanes;
            }
        }
        for (into, from) in self.divergent.iter_mut().zip(&worker.divergent) {
            *into += from;
        }
        self.memory.merge(&worker.memory);
        self.longest = self.longest.max(worker.longest);
    }
}

pub(super) fn trap_at(
    launch: &Launch,
    kind: TrapKind,
    message: String,
    pc: u32,
    block: u64,
    thread: u32,
) -> Trap {
    let meta = &launch.code.meta[pc as usize];
    Trap {
        kind,
        message,
        kernel: kernel(launch),
        origin: (meta.statement != NO_STATEMENT).then_some(meta.origin),
        source: SourceLines::new(&launch.module).of(pc),
        thread: Some(site(launch, block, thread)),
        waiting: Vec::new(),
        mbarriers: Vec::new(),
    }
}

/// The trap of a launch whose blocks hold too much.
pub(super) fn out_of_memory(launch: &Launch) -> Trap {
    ended(launch, TrapKind::OutOfMemory, too_much())
}

fn site(launch: &Launch, block: u64, thread: u32) -> ([u32; 3], [u32; 3]) {
    let [x, y, z, _] = launch.shape.thread_index(thread);
    (launch.shape.block_index(block), [x, y, z])
}

fn kernel(launch: &Launch) -> String {
    launch.kernel_name()
}

/// The trap of a cluster whose threads all wait at barriers.
pub(super) fn deadlock(launch: &Launch, cluster: &Cluster) -> Trap {
    let of = if cluster.is_alone() { "block" } else { "cluster" };
    let mut message = format!("all threads of the {of} that have not exited wait at barriers");
    let mut tell = |name: &dyn Display, barrier: &Barrier, blocks: &[Box<Block>]| {
        if !barrier.is_busy() {
            return;
        }
        let come: u32 = barrier.arrived().iter().map(|lanes| lanes.count_ones()).sum();
        let all = blocks.iter().flat_map(|block| &block.warps).map(|warp| warp.live.count_ones()).sum();
        let count = barrier.count().unwrap_or(all);
        let _ = write!(message, "; {name} waits for {count} threads, and {come} have come");
    };
    for block in &cluster.blocks {
        let [x, y, z] = block.index;
        for (id, barrier) in block.barriers.iter().enumerate() {
            match cluster.is_alone() {
                true => tell(&format_args!("barrier {id}"), barrier, from_ref(block)),
                false => tell(&format_args!("barrier {id} of block ({x},{y},{z})"), barrier, from_ref(block)),
            }
        }
    }
    tell(&"the barrier of the cluster", cluster.barrier(), &cluster.blocks);
    let mut trap = ended(launch, TrapKind::Deadlock, message);
    trap.waiting = waiting(launch, &places(from_ref(cluster)));
    let mut warps =
        cluster.blocks.iter().flat_map(|block| block.warps.iter().enumerate().map(move |at| (block, at)));
    let first = warps.find_map(|(block, (index, warp))| {
        let path = warp.paths.first()?;
        Some((block.number, path.pc, (index * LANES) as u32 + path.mask.trailing_zeros()))
    });
    if let Some((block, pc, thread)) = first {
        trap.origin = Some(launch.code.meta[pc as usize].origin);
        trap.source = SourceLines::new(&launch.module).of(pc);
        trap.thread = Some(site(launch, block, thread));
    }
    trap
}

/// The trap of a launch that does nothing any more.
pub(super) fn stall<'a>(launch: &Launch, clusters: impl Iterator<Item = &'a Cluster> + Clone) -> Trap {
    let mbarriers = waits(launch, clusters.clone());
    let mut resident = 0;
    let mut polled = Vec::new();
    for block in clusters.flat_map(|cluster| &cluster.blocks) {
        resident += 1;
        polled.extend(block.warps.iter().filter(|warp| warp.live != 0).filter_map(|warp| warp.polled));
    }
    let mut message =
        "every thread that has not exited does the same again and again, and nothing changes: they \
                       wait for something that never comes"
            .to_owned();
    if let Some(&first) = polled.first() {
        let elsewhere = polled.iter().any(|place| *place != first);
        let more = if elsewhere { ", among others" } else { "" };
        let _ = write!(message, "; they poll {}{more}", shown(launch, first));
    }
    let begun = launch.next_cluster.load(Relaxed) * u64::from(launch.shape.cluster_blocks());
    if !launch.options.cooperative && begun < launch.options.blocks {
        let _ = write!(
            message,
            "; {} blocks of the grid have not begun, since {resident} are resident on this host thread and there \
             is no room for more: only a cooperative launch has all blocks resident",
            launch.options.blocks - begun
        );
    }
    Trap { mbarriers, ..ended(launch, TrapKind::Deadlock, message) }
}

/// The trap of a launch that waits for the one in front of it, which will never be over.
pub(super) fn held(launch: &Launch) -> Trap {
    let message = "it waits at `griddepcontrol.wait` for an earlier launch that does not end".to_owned();
    ended(launch, TrapKind::Deadlock, message)
}

/// The trap of a launch that executes too much.
pub(super) fn budget(launch: &Launch) -> Trap {
    let message = format!("more than {} instructions were executed", launch.options.max_instructions);
    ended(launch, TrapKind::Budget, message)
}

/// The trap of a launch in which the virtual GPU panicked.
pub(super) fn failure(launch: &Launch, panic: &(dyn Any + Send)) -> Trap {
    let words = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without words");
    let message = format!("the virtual GPU failed, which is a mistake in it and not in the kernel: {words}");
    ended(launch, TrapKind::Internal, message)
}

/// A launch ended, and no single instruction did it. Where its threads were is known when all of its host
/// threads have ended.
fn ended(launch: &Launch, kind: TrapKind, message: String) -> Trap {
    Trap {
        kind,
        message,
        kernel: kernel(launch),
        origin: None,
        source: None,
        thread: None,
        waiting: Vec::new(),
        mbarriers: Vec::new(),
    }
}

/// How many threads are at which instruction.
pub(super) type Places = BTreeMap<u32, u64>;

/// Where the threads of clusters are that have not exited.
pub(super) fn places(clusters: &[Cluster]) -> Places {
    let mut places = Places::new();
    let blocks = clusters.iter().flat_map(|cluster| &cluster.blocks);
    for (pc, lanes) in blocks.flat_map(|block| &block.warps).flat_map(|warp| warp.places()) {
        *places.entry(pc).or_default() += u64::from(lanes.count_ones());
    }
    places
}

fn waiting(launch: &Launch, places: &Places) -> Vec<Waiting> {
    let mut lines = SourceLines::new(&launch.module);
    let waiting = |(&pc, &threads)| {
        let origin = launch.code.meta[pc as usize].origin;
        Waiting { origin, source: lines.of(pc), threads }
    };
    places.iter().map(waiting).collect()
}

pub(super) fn build(launch: &Launch, state: &State, overlaps: Vec<Finding>) -> Report {
    let kernel = kernel(launch);
    let mut findings = resolve(launch, &kernel);
    findings.extend(overlaps);
    let mut trap = state.trap.clone();
    if let Some(trap) = trap.as_mut().filter(|trap| trap.origin.is_none() && trap.waiting.is_empty()) {
        trap.waiting = waiting(launch, &state.places);
    }
    Report {
        kernel,
        findings,
        trap,
        counters: counters(launch, &state.tally),
        assumptions: assumptions(launch, |pc| {
            state.tally.counts.get(pc as usize).is_some_and(|count| count.warps != 0)
        }),
        output: String::from_utf8_lossy(&state.output).into_owned(),
        text: launch.module.text.get().cloned(),
    }
}

fn counters(launch: &Launch, tally: &Tally) -> Counters {
    let mut counters = Counters {
        blocks: launch.options.blocks,
        longest_warp: tally.longest,
        global: tally.memory.global,
        constant: tally.memory.constant,
        shared: tally.memory.shared,
        local: tally.memory.local,
        bank_conflicts: tally.memory.conflicts,
        divergent_branches: tally.divergent.iter().sum(),
        ..Counters::default()
    };
    for (index, traffic) in tally.memory.allocations.iter().enumerate() {
        if *traffic != SpaceTraffic::default()
            && let Some(allocation) = launch.memory.get(index as u32)
        {
            counters.allocations.push((allocation.name.clone(), allocation.base, *traffic));
        }
    }
    for (index, fetches) in tally.memory.fetches.iter().enumerate() {
        if *fetches != Fetches::default()
            && let Some(allocation) = launch.memory.get(index as u32)
        {
            counters.fetches.push((allocation.base, allocation.bytes, *fetches));
        }
    }
    let mut lanes = vec![0; launch.code.opcodes.len()];
    for (pc, count) in tally.counts.iter().enumerate().filter(|(_, count)| count.warps != 0) {
        let Some(opcode) = launch.code.meta[pc].opcode else { continue };
        counters.instructions += count.lanes;
        counters.warp_instructions += count.warps;
        lanes[usize::from(opcode)] += count.lanes;
        if let Some(place) = tally.memory.places.get(pc) {
            counters.barrier.merge(&place.barrier);
        }
    }
    counters.lines = Lines::new(&launch.module, &tally.counts, &tally.divergent, &tally.memory.places);
    let executed = launch.code.opcodes.iter().copied().zip(lanes).filter(|(_, lanes)| *lanes != 0);
    counters.by_opcode.extend(executed);
    counters
}
