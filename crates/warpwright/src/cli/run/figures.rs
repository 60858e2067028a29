//! The counters of a run: what the table shows, and the form that `--json` prints.

use super::class::class;
use super::locate::Location;
use crate::cli::json::object;
use serde::Serialize;
use std::collections::BTreeMap;
use warpwright_vm as vm;
use warpwright_vm::render::Renderer;

/// What a profiler would show of a launch.
pub(super) struct Counters<'a> {
    pub(super) all: &'a vm::Counters,
    /// Instructions by class, each counted once a warp and once an active lane.
    pub(super) classes: BTreeMap<&'static str, [u64; 2]>,
    /// Traffic of the buffers, by the parameters that point to them.
    pub(super) arguments: Vec<(&'a Pointed, vm::SpaceTraffic)>,
    /// Traffic of the module's variables that the kernel touched.
    pub(super) variables: Vec<(&'a str, vm::SpaceTraffic)>,
}

/// An instruction that was executed.
pub(super) struct Line<'a> {
    pub(super) place: Location,
    pub(super) counters: &'a vm::LineCounters,
    /// Times that the warp's place was taken: once an instruction, and a request to memory takes it for every
    /// 128 bytes of sectors, or for every pass.
    pub(super) slots: u64,
    /// Part of all slots.
    pub(super) share: f64,
}

/// A buffer that a parameter points to.
pub(super) struct Pointed {
    pub(super) parameter: String,
    pub(super) argument: String,
    pub(super) address: u64,
}

fn ratio(of: u64, by: u64) -> f64 {
    if by == 0 { 0.0 } else { of as f64 / by as f64 }
}

/// Requests of all kinds.
pub(super) fn requests(traffic: &vm::SpaceTraffic) -> u64 {
    traffic.loads.requests + traffic.stores.requests + traffic.atomics.requests
}

/// Accesses of warps: transactions are sectors of 32 bytes; of shared and constant memory, passes.
fn accesses(traffic: &vm::Traffic) -> impl Serialize + use<> {
    object! {
        requests: traffic.requests,
        bytes: traffic.bytes,
        transactions: traffic.transactions,
        per_request: ratio(traffic.transactions, traffic.requests),
    }
}

fn of_space(traffic: &vm::SpaceTraffic) -> impl Serialize + use<> {
    object! {
        loads: accesses(&traffic.loads),
        stores: accesses(&traffic.stores),
        atomics: accesses(&traffic.atomics),
    }
}

/// Waiting of warps for other warps of their block: how often, and by how many instructions the slowest came later.
fn waiting(barrier: &vm::BarrierWaits) -> impl Serialize + use<> {
    object! { waits: barrier.waits, instructions: barrier.instructions }
}

impl<'a> Counters<'a> {
    /// The counters of a launch whose parameters point to these buffers.
    pub(super) fn new(all: &'a vm::Counters, lines: &Renderer<'_>, pointed: &'a [Pointed]) -> Self {
        let mut classes = BTreeMap::<_, [u64; 2]>::new();
        for line in &all.lines {
            let ptx = lines.ptx(line.origin);
            let [warps, lanes] =
                classes.entry(class(ptx.as_ref().map_or(line.opcode, |(_, text)| text))).or_default();
            *warps += line.warps;
            *lanes += line.lanes;
        }
        let traffic_of = |buffer: &'a Pointed| {
            let found = all.allocations.iter().find(|(_, address, _)| *address == buffer.address);
            (buffer, found.map(|(_, _, traffic)| *traffic).unwrap_or_default())
        };
        let is_variable = |address: u64| pointed.iter().all(|buffer| buffer.address != address);
        let variables = all.allocations.iter().filter(|(_, address, _)| is_variable(*address));
        Counters {
            all,
            classes,
            arguments: pointed.iter().map(traffic_of).collect(),
            variables: variables.map(|(name, _, traffic)| (name.as_str(), *traffic)).collect(),
        }
    }

    /// All of it, for `--json`.
    pub(super) fn object(&self) -> impl Serialize {
        let vm::Counters { warp_instructions: warps, instructions: lanes, .. } = *self.all;
        let class = |(class, &[warps, lanes]): (&&'static str, &[u64; 2])| {
            (*class, object! { warps: warps, lanes: lanes })
        };
        let argument = |(buffer, traffic): &(&'a Pointed, vm::SpaceTraffic)| {
            object! {
                parameter: buffer.parameter.as_str(),
                argument: buffer.argument.as_str(),
                #[serde(flatten)]
                traffic: of_space(traffic),
            }
        };
        let variable = |(variable, traffic): &(&'a str, vm::SpaceTraffic)| {
            object! { variable: *variable, #[serde(flatten)] traffic: of_space(traffic) }
        };
        object! {
            instructions: object! {
                warps: warps,
                lanes: lanes,
                lanes_per_warp: ratio(lanes, warps),
                classes: self.classes.iter().map(class).collect::<BTreeMap<_, _>>(),
            },
            memory: object! {
                global: of_space(&self.all.global),
                constant: of_space(&self.all.constant),
                shared: of_space(&self.all.shared),
                local: of_space(&self.all.local),
            },
            arguments: self.arguments.iter().map(argument).collect::<Vec<_>>(),
            variables: self.variables.iter().map(variable).collect::<Vec<_>>(),
            // Of the grid, those that were executed.
            blocks: self.all.blocks,
            // Passes to shared memory beyond those that requests without conflicts take.
            shared_bank_conflicts: self.all.bank_conflicts,
            // Branches that divided a warp.
            divergent_branches: self.all.divergent_branches,
            barriers: waiting(&self.all.barrier),
        }
    }
}

impl Line<'_> {
    /// The line of the PTX, from 1, and what stands there.
    pub(super) fn ptx(&self) -> (u32, &str) {
        (self.place.ptx_line.unwrap_or(0), self.place.ptx.as_deref().unwrap_or(self.counters.opcode))
    }

    /// All of it, for `--json`.
    pub(super) fn object(&self) -> impl Serialize {
        let ((ptx_line, ptx), line) = (self.ptx(), self.counters);
        let moved = |traffic: &vm::Traffic| (traffic.requests > 0).then(|| accesses(traffic));
        object! {
            ptx_line: ptx_line,
            ptx: ptx,
            source: &self.place.source,
            warps: line.warps,
            lanes: line.lanes,
            slots: self.slots,
            share: self.share,
            // Times that it divided a warp.
            divergent: line.divergent,
            // What it moved from or to global and shared memory.
            global: moved(&line.global),
            shared: moved(&line.shared),
            shared_bank_conflicts: line.bank_conflicts,
            barriers: waiting(&line.barrier),
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
pub(super) fn hottest<'a>(counters: &'a vm::Counters, lines: &Renderer<'_>, top: usize) -> Vec<Line<'a>> {
    let all = counters.lines.iter().map(slots).sum();
    let mut hottest: Vec<&vm::LineCounters> = counters.lines.iter().collect();
    // Stable: what is equally hot stays in the order of the text.
    hottest.sort_by_key(|line| std::cmp::Reverse(slots(line)));
    hottest.truncate(top);
    let line = |counters: &'a vm::LineCounters| {
        let place = Location::new(counters.origin, counters.source.as_ref(), lines);
        let slots = slots(counters);
        Line { place, counters, slots, share: ratio(slots, all) }
    };
    hottest.into_iter().map(line).collect()
}
