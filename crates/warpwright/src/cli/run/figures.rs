//! The counters of a run, in the form that `--json` prints.

use super::class::class;
use super::locate::{Place, SourceLine};
use serde::Serialize;
use std::collections::BTreeMap;
use warpwright_vm as vm;
use warpwright_vm::render::Renderer;

/// What a profiler would show of a launch.
#[derive(Debug, Serialize)]
pub(super) struct Counters {
    pub(super) instructions: Instructions,
    pub(super) memory: Memory,
    /// Traffic of the buffers, by the parameters that point to them.
    pub(super) arguments: Vec<ByArgument>,
    /// Traffic of the module's variables that the kernel touched.
    pub(super) variables: Vec<ByVariable>,
    /// Passes to shared memory beyond those that requests without conflicts take.
    pub(super) shared_bank_conflicts: u64,
    /// Branches that divided a warp.
    pub(super) divergent_branches: u64,
    /// Waiting at the barriers of blocks.
    pub(super) barriers: Barriers,
}

/// Waiting of warps for other warps of their block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Barriers {
    /// How often a warp waited.
    pub(super) waits: u64,
    /// By how many instructions the slowest warp came later, summed over those that waited.
    pub(super) instructions: u64,
}

/// Instructions, each counted once a warp and once an active lane.
#[derive(Debug, Default, Serialize)]
pub(super) struct Instructions {
    pub(super) warps: u64,
    pub(super) lanes: u64,
    /// Active lanes of an instruction, on average.
    pub(super) lanes_per_warp: f64,
    pub(super) classes: BTreeMap<&'static str, Executed>,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Executed {
    pub(super) warps: u64,
    pub(super) lanes: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Memory {
    pub(super) global: SpaceTraffic,
    pub(super) constant: SpaceTraffic,
    pub(super) shared: SpaceTraffic,
    pub(super) local: SpaceTraffic,
}

#[derive(Debug, Serialize)]
pub(super) struct SpaceTraffic {
    pub(super) loads: Traffic,
    pub(super) stores: Traffic,
    pub(super) atomics: Traffic,
}

/// Accesses of warps.
#[derive(Debug, Serialize)]
pub(super) struct Traffic {
    pub(super) requests: u64,
    /// Bytes that lanes asked for.
    pub(super) bytes: u64,
    /// Sectors of 32 bytes; of shared and constant memory, passes.
    pub(super) transactions: u64,
    pub(super) per_request: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct ByArgument {
    pub(super) parameter: String,
    pub(super) argument: String,
    #[serde(flatten)]
    pub(super) traffic: SpaceTraffic,
}

#[derive(Debug, Serialize)]
pub(super) struct ByVariable {
    pub(super) variable: String,
    #[serde(flatten)]
    pub(super) traffic: SpaceTraffic,
}

/// An instruction that was executed.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    pub(super) ptx_line: u32,
    pub(super) ptx: String,
    pub(super) source: Option<SourceLine>,
    pub(super) warps: u64,
    pub(super) lanes: u64,
    /// Times that the warp's place was taken: once an instruction, and a request to memory takes it for every
    /// 128 bytes of sectors, or for every pass.
    pub(super) slots: u64,
    /// Part of all slots.
    pub(super) share: f64,
    /// Times that it divided a warp.
    pub(super) divergent: u64,
    /// What it moved from or to global memory.
    pub(super) global: Option<Traffic>,
    /// What it moved from or to shared memory.
    pub(super) shared: Option<Traffic>,
    /// Passes to shared memory beyond those that it would take without conflicts.
    pub(super) shared_bank_conflicts: u64,
    /// Waiting of warps at it.
    pub(super) barriers: Barriers,
}

fn ratio(of: u64, by: u64) -> f64 {
    if by == 0 { 0.0 } else { of as f64 / by as f64 }
}

impl From<&vm::Traffic> for Traffic {
    fn from(traffic: &vm::Traffic) -> Self {
        Traffic {
            requests: traffic.requests,
            bytes: traffic.bytes,
            transactions: traffic.transactions,
            per_request: ratio(traffic.transactions, traffic.requests),
        }
    }
}

impl From<&vm::SpaceTraffic> for SpaceTraffic {
    fn from(traffic: &vm::SpaceTraffic) -> Self {
        SpaceTraffic {
            loads: (&traffic.loads).into(),
            stores: (&traffic.stores).into(),
            atomics: (&traffic.atomics).into(),
        }
    }
}

impl SpaceTraffic {
    pub(super) fn requests(&self) -> u64 {
        self.loads.requests + self.stores.requests + self.atomics.requests
    }
}

impl From<&vm::BarrierWaits> for Barriers {
    fn from(barrier: &vm::BarrierWaits) -> Self {
        Barriers { waits: barrier.waits, instructions: barrier.instructions }
    }
}

/// A buffer that a parameter points to.
pub(super) struct Pointed {
    pub(super) parameter: String,
    pub(super) argument: String,
    pub(super) address: u64,
}

/// The counters of a launch whose parameters point to these buffers.
pub(super) fn counters(counters: &vm::Counters, lines: &Renderer<'_>, pointed: &[Pointed]) -> Counters {
    let mut classes = BTreeMap::<_, Executed>::new();
    for line in &counters.lines {
        let ptx = lines.ptx(line.origin);
        let entry = classes.entry(class(ptx.as_ref().map_or(line.opcode, |(_, text)| text))).or_default();
        entry.warps += line.warps;
        entry.lanes += line.lanes;
    }
    let arguments = pointed
        .iter()
        .map(|buffer| {
            let found = counters.allocations.iter().find(|(_, address, _)| *address == buffer.address);
            let traffic = found.map(|(_, _, traffic)| *traffic).unwrap_or_default();
            ByArgument {
                parameter: buffer.parameter.clone(),
                argument: buffer.argument.clone(),
                traffic: (&traffic).into(),
            }
        })
        .collect();
    let variables = counters
        .allocations
        .iter()
        .filter(|(_, address, _)| pointed.iter().all(|buffer| buffer.address != *address))
        .map(|(name, _, traffic)| ByVariable { variable: name.clone(), traffic: traffic.into() })
        .collect();
    let (warps, lanes) = (counters.warp_instructions, counters.instructions);
    Counters {
        instructions: Instructions { warps, lanes, lanes_per_warp: ratio(lanes, warps), classes },
        memory: Memory {
            global: (&counters.global).into(),
            constant: (&counters.constant).into(),
            shared: (&counters.shared).into(),
            local: (&counters.local).into(),
        },
        arguments,
        variables,
        shared_bank_conflicts: counters.bank_conflicts,
        divergent_branches: counters.divergent_branches,
        barriers: (&counters.barrier).into(),
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
pub(super) fn hottest(counters: &vm::Counters, lines: &Renderer<'_>, top: usize) -> Vec<Line> {
    let all = counters.lines.iter().map(slots).sum();
    let mut hottest: Vec<&vm::LineCounters> = counters.lines.iter().collect();
    // Stable: what is equally hot stays in the order of the text.
    hottest.sort_by_key(|line| std::cmp::Reverse(slots(line)));
    hottest.truncate(top);
    hottest
        .into_iter()
        .map(|line| {
            let place = Place::new(line.origin, line.source.as_ref(), lines);
            Line {
                ptx_line: place.ptx_line.unwrap_or(0),
                ptx: place.ptx.unwrap_or_else(|| line.opcode.to_string()),
                source: place.source,
                warps: line.warps,
                lanes: line.lanes,
                slots: slots(line),
                share: ratio(slots(line), all),
                divergent: line.divergent,
                global: (line.global.requests > 0).then(|| (&line.global).into()),
                shared: (line.shared.requests > 0).then(|| (&line.shared).into()),
                shared_bank_conflicts: line.bank_conflicts,
                barriers: (&line.barrier).into(),
            }
        })
        .collect()
}
