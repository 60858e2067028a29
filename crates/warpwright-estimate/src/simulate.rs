//! A multiprocessor that issues the instructions of resident warps, cycle by cycle.
//!
//! Each of four schedulers issues one instruction a cycle, of the warp that it has issued last if that may go on, otherwise
//! of the oldest one that may. A warp may go on when the stall of its last instruction is over, the scoreboards that it
//! waits for are free, and the unit takes another instruction: that is what the compiler's [`Control`] says, so no
//! dependence has to be found again. Results of variable latency free their scoreboard when they arrive.
//!
//! The register file of a scheduler has two banks, each of which gives one register of a warp a cycle, and operands have
//! three cycles to arrive (Huerta, Shoushtary, Cruz and González, arXiv 2503.20481).
//!
//! What the multiprocessor shares are queues: the unit for loads and stores takes a request for as many cycles as it has
//! passes; the L2 cache and the memory bring so many bytes a cycle, the part of this multiprocessor. So latencies grow by
//! themselves when a queue is long.
//!
//! [`Control`]: crate::machine::Control

use crate::pipes::{Cost, Memory, PIPES, Pipe};
use std::collections::VecDeque;

/// Schedulers of a multiprocessor.
pub(crate) const SCHEDULERS: usize = 4;

/// Scoreboards of a warp.
const SCOREBOARDS: usize = 6;

/// Cycles that the last warp's arrival at a barrier takes to let the others go.
const BARRIER: u64 = 20;

/// Cycles from a taken branch to the next instruction, beyond its stall.
const BRANCH: u64 = 6;

/// Cycles that operands take to be read by the unit for loads and stores, after the request has had its turn.
const READ: u64 = 8;

/// Cycles in which the operands of an instruction must have been read.
const OPERANDS: u64 = 3;

/// Cycles from the end of a block to the first instruction of the one that takes its place, and from a warp of it to the
/// next one.
const BLOCK_START: u64 = 220;
const WARP_START: u64 = 8;

/// Cycles that requests may wait for the L2 cache or the memory before the unit takes no more of them.
const BACKLOG: f64 = 3000.0;

/// What an instruction is to the scheduler.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) cost: Cost,
    pub(crate) control: crate::machine::Control,
    /// Registers that it reads, by bank.
    pub(crate) reads: [u8; 2],
    pub(crate) kind: Kind,
    /// For an access: what a request asks for.
    pub(crate) request: Request,
}

/// What an instruction does besides computing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    /// A branch, which may be taken.
    Branch,
    /// A barrier of the block.
    Barrier,
    /// Waits until a scoreboard has so many holders or fewer.
    Drain {
        scoreboard: u8,
        left: u16,
    },
    /// Ends a group of asynchronous copies: its scoreboard is held until they have arrived.
    Group,
    /// An asynchronous copy to shared memory.
    Copy,
}

/// What a request of a warp asks for on average.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Request {
    /// Cycles of the unit for loads and stores.
    pub(crate) passes: f64,
    /// Bytes that come from the L2 cache, or go to it.
    pub(crate) l2: f64,
    /// Bytes of these that come from the memory, or go to it.
    pub(crate) dram: f64,
}

/// What the multiprocessor has of what it shares, by cycle, and latencies in cycles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rates {
    pub(crate) l2_bytes: f64,
    pub(crate) dram_bytes: f64,
    pub(crate) l1_latency: f64,
    pub(crate) l2_latency: f64,
    pub(crate) dram_latency: f64,
    pub(crate) shared_latency: f64,
}

/// The work: blocks of warps, of which some are resident at once. All warps go the same way.
pub(crate) struct Work<'a> {
    pub(crate) steps: &'a [Step],
    /// The instructions of a warp, by ranges of steps.
    pub(crate) order: &'a [std::ops::Range<usize>],
    pub(crate) warps: usize,
    pub(crate) blocks: usize,
    pub(crate) resident: usize,
}

#[derive(Clone, Default)]
struct Warp {
    block: usize,
    /// Its place in the order, and in the range there.
    run: usize,
    at: usize,
    ready: u64,
    /// When each scoreboard gets free, by holder.
    scoreboards: [VecDeque<u64>; SCOREBOARDS],
    /// When the asynchronous copies since the last group arrive.
    copies: u64,
    at_barrier: bool,
    done: bool,
}

/// Cycles that the work takes.
pub(crate) fn simulate(work: &Work<'_>, rates: &Rates) -> u64 {
    let mut sm = Multiprocessor::new(work, *rates);
    for _ in 0..work.resident.min(work.blocks) {
        sm.begin_block(0);
    }
    let mut now = 0;
    while sm.running > 0 {
        now = sm.cycle(now);
    }
    // Stores go on after the warps have ended.
    now.max(sm.l2_free.max(sm.dram_free) as u64)
}

struct Multiprocessor<'a> {
    work: &'a Work<'a>,
    rates: Rates,
    /// The warps of each scheduler, oldest first.
    warps: [Vec<Warp>; SCHEDULERS],
    last: [usize; SCHEDULERS],
    pipes: [[f64; PIPES.len()]; SCHEDULERS],
    /// When each bank of registers has given what it was asked for.
    banks: [[u64; 2]; SCHEDULERS],
    memory_free: f64,
    l2_free: f64,
    dram_free: f64,
    /// What parts of requests have added up to, by step: which of them miss.
    owed: Vec<(f64, f64)>,
    begun: usize,
    running: usize,
    /// Warps of each block that are not done, and that are at a barrier.
    blocks: Vec<(usize, usize)>,
    /// When the stores of each block have arrived: its place is taken until then.
    stored: Vec<u64>,
}

impl<'a> Multiprocessor<'a> {
    fn new(work: &'a Work<'a>, rates: Rates) -> Self {
        Multiprocessor {
            work,
            rates,
            warps: Default::default(),
            last: [0; SCHEDULERS],
            pipes: [[0.0; PIPES.len()]; SCHEDULERS],
            banks: [[0; 2]; SCHEDULERS],
            memory_free: 0.0,
            l2_free: 0.0,
            dram_free: 0.0,
            owed: vec![(0.0, 0.0); work.steps.len()],
            begun: 0,
            running: 0,
            blocks: Vec::new(),
            stored: Vec::new(),
        }
    }

    /// A block takes its place; its warps go to the schedulers with the fewest.
    fn begin_block(&mut self, now: u64) {
        let block = self.begun;
        self.begun += 1;
        self.blocks.push((self.work.warps, 0));
        self.stored.push(0);
        for warp in 0..self.work.warps {
            let ready = now + BLOCK_START + WARP_START * warp as u64;
            let scheduler = (0..SCHEDULERS).min_by_key(|&scheduler| self.warps[scheduler].len()).unwrap_or(0);
            let done = self.work.order.is_empty();
            self.warps[scheduler].push(Warp { block, done, ready, ..Warp::default() });
            self.running += usize::from(!done);
        }
    }

    /// One cycle of all schedulers; which one comes next in which something may happen.
    fn cycle(&mut self, now: u64) -> u64 {
        let mut next = u64::MAX;
        for scheduler in 0..SCHEDULERS {
            let count = self.warps[scheduler].len();
            let first = self.last[scheduler].min(count.saturating_sub(1));
            let others = (0..count).filter(|&index| index != first);
            let mut issued = None;
            for index in (0..count.min(1)).map(|_| first).chain(others) {
                match self.earliest(scheduler, index, now) {
                    at if at <= now => {
                        issued = Some(index);
                        break;
                    }
                    at => next = next.min(at),
                }
            }
            if let Some(index) = issued {
                self.last[scheduler] = index;
                self.issue(scheduler, index, now);
                next = now + 1;
            }
        }
        if next == u64::MAX { now + 1 } else { next.max(now + 1) }
    }

    fn step(&self, warp: &Warp) -> usize {
        self.work.order[warp.run].start + warp.at
    }

    /// When a warp may issue its next instruction, as far as is known.
    fn earliest(&mut self, scheduler: usize, index: usize, now: u64) -> u64 {
        let warp = &self.warps[scheduler][index];
        if warp.done || warp.at_barrier {
            return u64::MAX;
        }
        if warp.ready > now {
            return warp.ready;
        }
        let step = &self.work.steps[self.step(warp)];
        let mut at = now;
        for scoreboard in 0..SCOREBOARDS {
            if step.control.wait >> scoreboard & 1 == 1 {
                at = at.max(warp.scoreboards[scoreboard].iter().copied().max().unwrap_or(0));
            }
        }
        if let Kind::Drain { scoreboard, left } = step.kind
            && let Some(holders) = warp.scoreboards.get(usize::from(scoreboard))
            && let Some(last) = holders.len().checked_sub(usize::from(left) + 1)
        {
            at = at.max(holders.iter().take(last + 1).copied().max().unwrap_or(0));
        }
        for (bank, reads) in self.banks[scheduler].iter().zip(step.reads) {
            if reads > 0 {
                at = at.max((bank + u64::from(reads)).saturating_sub(OPERANDS));
            }
        }
        let pipe = self.pipes[scheduler][step.cost.pipe as usize];
        at = at.max(pipe.ceil() as u64);
        if step.cost.pipe == Pipe::Memory {
            // A few requests wait in front of the unit.
            at = at.max((self.memory_free - 16.0).max(0.0).ceil() as u64);
            if step.request.l2 > 0.0 {
                at = at.max((self.l2_free.max(self.dram_free) - BACKLOG).max(0.0) as u64);
            }
        }
        at
    }

    fn issue(&mut self, scheduler: usize, index: usize, now: u64) {
        let number = self.step(&self.warps[scheduler][index]);
        let step = &self.work.steps[number];
        let (cost, control) = (step.cost, step.control);
        for (bank, reads) in self.banks[scheduler].iter_mut().zip(step.reads) {
            *bank = (*bank).max(now) + u64::from(reads);
        }
        let mut arrival = now as f64 + cost.latency;
        let mut read = now;
        if cost.pipe == Pipe::Memory {
            let start = self.memory_free.max(now as f64);
            self.memory_free = start + cost.busy.max(step.request.passes);
            read = self.memory_free as u64 + READ;
            arrival =
                self.memory_free + self.answer(number, self.warps[scheduler][index].block, self.memory_free);
        } else {
            let unit = &mut self.pipes[scheduler][cost.pipe as usize];
            *unit = unit.max(now as f64) + cost.busy;
        }
        let arrival = arrival.ceil() as u64;
        let warp = &mut self.warps[scheduler][index];
        for holders in &mut warp.scoreboards {
            while holders.front().is_some_and(|&until| until <= now) {
                holders.pop_front();
            }
        }
        if let Some(scoreboard) = control.read {
            warp.scoreboards[usize::from(scoreboard)].push_back(read);
        }
        match (step.kind, control.write) {
            (Kind::Copy, _) => warp.copies = warp.copies.max(arrival),
            (Kind::Group, write) => {
                let until = std::mem::take(&mut warp.copies).max(now + 1);
                let holders = &mut warp.scoreboards[usize::from(write.unwrap_or(0)).min(SCOREBOARDS - 1)];
                let until = holders.back().copied().unwrap_or(0).max(until);
                holders.push_back(until);
            }
            (_, Some(scoreboard)) => warp.scoreboards[usize::from(scoreboard)].push_back(arrival),
            _ => {}
        }
        warp.ready = now + u64::from(control.stall).max(1);
        let last = warp.at + 1 == self.work.order[warp.run].len();
        let jumps = last
            && self
                .work
                .order
                .get(warp.run + 1)
                .is_none_or(|next| next.start != self.work.order[warp.run].end);
        if step.kind == Kind::Branch && jumps {
            warp.ready += BRANCH;
        }
        let barrier = step.kind == Kind::Barrier;
        warp.at += 1;
        if last {
            (warp.run, warp.at) = (warp.run + 1, 0);
        }
        let block = warp.block;
        if warp.run == self.work.order.len() {
            warp.done = true;
            self.running -= 1;
            self.blocks[block].0 -= 1;
        } else if barrier {
            warp.at_barrier = true;
            self.blocks[block].1 += 1;
        }
        self.settle(block, now);
    }

    /// Lets the warps of a block go on if all have come to the barrier, and another block begin if all are done.
    fn settle(&mut self, block: usize, now: u64) {
        let (left, waiting) = self.blocks[block];
        if left > 0 && waiting == left {
            self.blocks[block].1 = 0;
            for warp in self.warps.iter_mut().flatten().filter(|warp| warp.block == block) {
                warp.at_barrier = false;
                warp.ready = warp.ready.max(now + BARRIER);
            }
        }
        if left == 0 {
            for warps in &mut self.warps {
                warps.retain(|warp| warp.block != block);
            }
            self.last = [0; SCHEDULERS];
            if self.begun < self.work.blocks {
                self.begin_block(now.max(self.stored[block]));
            }
        }
    }

    /// Cycles until a request is answered that the unit passes on at a time.
    fn answer(&mut self, number: usize, block: usize, at: f64) -> f64 {
        let step = &self.work.steps[number];
        let rates = &self.rates;
        match step.cost.memory {
            Some(Memory::Shared) => rates.shared_latency,
            Some(Memory::Local) => rates.l1_latency,
            Some(Memory::Global { load }) => {
                let Request { l2, dram, .. } = step.request;
                if l2 <= 0.0 {
                    return rates.l1_latency;
                }
                // A part of the requests misses: whole ones, one after the other.
                let owed = &mut self.owed[number];
                let line = crate::estimate::SECTOR.max(l2);
                owed.0 += l2 / line;
                if owed.0 < 1.0 - 1e-9 {
                    return rates.l1_latency;
                }
                owed.0 -= 1.0;
                owed.1 += dram / l2;
                let misses = owed.1 >= 1.0 - 1e-9;
                owed.1 -= if misses { 1.0 } else { 0.0 };
                self.l2_free = self.l2_free.max(at) + line / rates.l2_bytes;
                let mut end = self.l2_free + rates.l2_latency;
                if misses {
                    self.dram_free = self.dram_free.max(at) + line / rates.dram_bytes;
                    end = end.max(self.dram_free + rates.dram_latency);
                }
                if load {
                    return end - at;
                }
                self.stored[block] = self.stored[block].max((self.l2_free + rates.l2_latency) as u64);
                0.0
            }
            _ => step.cost.latency,
        }
    }
}
