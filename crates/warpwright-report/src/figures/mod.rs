//! The counters of a launch, and its hottest instructions.

mod class;

use crate::{Site, Source};
use class::class;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use warpwright_vm as vm;
use warpwright_vm::render::Renderer;

/// What a profiler would show of a launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Counters {
    /// What was executed.
    pub instructions: Instructions,
    /// Traffic by memory space.
    pub memory: MemoryTraffic,
    /// Traffic of the buffers, by the parameters that point to them.
    pub arguments: Vec<ArgumentTraffic>,
    /// Traffic of other allocations that the kernel touched: variables of the module.
    pub variables: Vec<VariableTraffic>,
    /// Blocks that were executed: all of the grid, or a sample.
    pub blocks: u64,
    /// Passes to shared memory beyond those that requests without conflicts take.
    pub shared_bank_conflicts: u64,
    /// Branches that divided a warp.
    pub divergent_branches: u64,
    /// Waiting at barriers.
    pub barriers: Waits,
}

/// Instructions that were executed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Instructions {
    /// Each counted once a warp.
    pub warps: u64,
    /// Each counted once an active lane.
    pub lanes: u64,
    /// Active lanes of a warp, on average.
    pub lanes_per_warp: f64,
    /// By class: what arithmetic is done in, or what kind of thing is done.
    pub classes: BTreeMap<String, Executed>,
}

/// How often instructions were executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executed {
    /// Once a warp.
    pub warps: u64,
    /// Once an active lane.
    pub lanes: u64,
}

/// Traffic by memory space.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemoryTraffic {
    /// Global memory.
    pub global: Traffic,
    /// Constant memory; parameters are not counted.
    pub constant: Traffic,
    /// Shared memory.
    pub shared: Traffic,
    /// Local memory.
    pub local: Traffic,
}

/// Traffic with a memory space or an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// Reads, including those of asynchronous copies.
    pub loads: Accesses,
    /// Writes, including those of asynchronous copies.
    pub stores: Accesses,
    /// Atomic operations.
    pub atomics: Accesses,
}

/// Accesses of warps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Accesses {
    /// Instructions of a warp.
    pub requests: u64,
    /// Bytes that lanes asked for.
    pub bytes: u64,
    /// Sectors of 32 bytes; of shared and constant memory, passes.
    pub transactions: u64,
    /// Transactions of a request, on average.
    pub per_request: f64,
}

/// Traffic of a buffer that a parameter points to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArgumentTraffic {
    /// The parameter's name.
    pub parameter: String,
    /// The argument as it was given.
    pub argument: String,
    /// Its traffic.
    #[serde(flatten)]
    pub traffic: Traffic,
}

/// Traffic of a module's variable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariableTraffic {
    /// The variable's name.
    pub variable: String,
    /// Its traffic.
    #[serde(flatten)]
    pub traffic: Traffic,
}

/// Waiting of warps for other warps of their block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// How often.
    pub waits: u64,
    /// By how many instructions the slowest came later, in total.
    pub instructions: u64,
}

/// An instruction that was executed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Line {
    /// Line of the PTX, from 1; 0 if there is no text.
    pub ptx_line: u32,
    /// The instruction, or its opcode if there is no text.
    pub ptx: String,
    /// The line of source.
    pub source: Option<Source>,
    /// Executions by warps.
    pub warps: u64,
    /// Executions by active lanes.
    pub lanes: u64,
    /// Times that the warp's place was taken: once an instruction, and a request to memory takes it for every
    /// 128 bytes of sectors, or for every pass.
    pub slots: u64,
    /// Part of all slots.
    pub share: f64,
    /// Times that it divided a warp.
    pub divergent: u64,
    /// What it moved from or to global memory.
    pub global: Option<Accesses>,
    /// What it moved from or to shared memory.
    pub shared: Option<Accesses>,
    /// Passes to shared memory beyond those that it would need without conflicts.
    pub shared_bank_conflicts: u64,
    /// Waiting of warps at it.
    pub barriers: Waits,
}

/// A buffer that a parameter points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferArgument {
    /// The parameter's name.
    pub parameter: String,
    /// The argument as it was given.
    pub argument: String,
    /// The buffer's address.
    pub address: u64,
}

fn ratio(of: u64, by: u64) -> f64 {
    if by == 0 { 0.0 } else { of as f64 / by as f64 }
}

impl From<&vm::Traffic> for Accesses {
    fn from(traffic: &vm::Traffic) -> Accesses {
        let vm::Traffic { requests, bytes, transactions, .. } = *traffic;
        Accesses { requests, bytes, transactions, per_request: ratio(transactions, requests) }
    }
}

impl From<&vm::SpaceTraffic> for Traffic {
    fn from(traffic: &vm::SpaceTraffic) -> Traffic {
        let vm::SpaceTraffic { loads, stores, atomics, .. } = traffic;
        Traffic { loads: loads.into(), stores: stores.into(), atomics: atomics.into() }
    }
}

impl Traffic {
    /// Requests of all kinds.
    pub fn requests(&self) -> u64 {
        self.loads.requests + self.stores.requests + self.atomics.requests
    }
}

impl From<&vm::BarrierWaits> for Waits {
    fn from(barrier: &vm::BarrierWaits) -> Waits {
        Waits { waits: barrier.waits, instructions: barrier.instructions }
    }
}

impl Counters {
    /// The counters of a launch with these arguments.
    pub fn new(all: &vm::Counters, arguments: &[BufferArgument], renderer: &Renderer<'_>) -> Counters {
        let mut classes = BTreeMap::<String, Executed>::new();
        for line in &all.lines {
            let ptx = renderer.ptx(line.origin);
            let class = class(ptx.as_ref().map_or(line.opcode, |(_, text)| text));
            let executed = match classes.get_mut(class) {
                Some(executed) => executed,
                None => classes.entry(class.to_owned()).or_default(),
            };
            executed.warps += line.warps;
            executed.lanes += line.lanes;
        }
        let argument = |buffer: &BufferArgument| {
            let found = all.allocations.iter().find(|(_, address, _)| *address == buffer.address);
            ArgumentTraffic {
                parameter: buffer.parameter.clone(),
                argument: buffer.argument.clone(),
                traffic: (&found.map(|(_, _, traffic)| *traffic).unwrap_or_default()).into(),
            }
        };
        let is_variable = |address: u64| arguments.iter().all(|buffer| buffer.address != address);
        let variables = all.allocations.iter().filter(|(_, address, _)| is_variable(*address));
        let (warps, lanes) = (all.warp_instructions, all.instructions);
        Counters {
            instructions: Instructions { warps, lanes, lanes_per_warp: ratio(lanes, warps), classes },
            memory: MemoryTraffic {
                global: (&all.global).into(),
                constant: (&all.constant).into(),
                shared: (&all.shared).into(),
                local: (&all.local).into(),
            },
            arguments: arguments.iter().map(argument).collect(),
            variables: variables
                .map(|(name, _, traffic)| VariableTraffic { variable: name.clone(), traffic: traffic.into() })
                .collect(),
            blocks: all.blocks,
            shared_bank_conflicts: all.bank_conflicts,
            divergent_branches: all.divergent_branches,
            barriers: (&all.barrier).into(),
        }
    }
}

/// Sectors that the hardware moves at a time.
const SECTORS_A_SLOT: u64 = 4;

/// How often the warp's place was taken.
fn slots(line: &vm::LineCounters) -> u64 {
    let global = line.global.transactions.div_ceil(SECTORS_A_SLOT).saturating_sub(line.global.requests);
    let shared = line.shared.transactions.saturating_sub(line.shared.requests);
    line.warps + global + shared
}

/// The instructions that took the most slots, at most `top` of them.
pub fn hottest(counters: &vm::Counters, renderer: &Renderer<'_>, top: usize) -> Vec<Line> {
    let all = counters.lines.iter().map(slots).sum();
    let mut hottest: Vec<&vm::LineCounters> = counters.lines.iter().collect();
    // Stable: what is equally hot stays in the order of the text.
    hottest.sort_by_key(|line| std::cmp::Reverse(slots(line)));
    hottest.truncate(top);
    let moved = |traffic: &vm::Traffic| (traffic.requests > 0).then(|| traffic.into());
    let line = |line: &vm::LineCounters| {
        let place = Site::new(line.origin, line.source.as_ref(), renderer);
        let slots = slots(line);
        Line {
            ptx_line: place.ptx_line.unwrap_or(0),
            ptx: place.ptx.unwrap_or_else(|| line.opcode.to_owned()),
            source: place.source,
            warps: line.warps,
            lanes: line.lanes,
            slots,
            share: ratio(slots, all),
            divergent: line.divergent,
            global: moved(&line.global),
            shared: moved(&line.shared),
            shared_bank_conflicts: line.bank_conflicts,
            barriers: (&line.barrier).into(),
        }
    };
    hottest.into_iter().map(line).collect()
}
