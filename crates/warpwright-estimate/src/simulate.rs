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
                let line = crate::steps::SECTOR.max(l2);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Control;

    /// An `f32` instruction, with the cycles until the next one.
    fn plain(stall: u8) -> Step {
        Step {
            cost: Cost { pipe: Pipe::Fma, busy: 1.0, latency: 4.0, memory: None },
            control: Control { stall, ..Control::default() },
            reads: [0; 2],
            kind: Kind::Plain,
            request: Request::default(),
        }
    }

    /// An instruction that needs no unit.
    fn control(kind: Kind) -> Step {
        let cost = Cost { pipe: Pipe::Control, ..plain(1).cost };
        Step { cost, kind, ..plain(1) }
    }

    /// The instruction, behind what holds these scoreboards.
    fn waits(wait: u8, step: Step) -> Step {
        Step { control: Control { wait, ..step.control }, ..step }
    }

    /// The instruction, whose result holds a scoreboard.
    fn writes(scoreboard: u8, step: Step) -> Step {
        Step { control: Control { write: Some(scoreboard), ..step.control }, ..step }
    }

    /// An access that takes a cycle of the unit, of so many bytes of the L2 cache and of memory.
    fn access(memory: Memory, l2: f64, dram: f64) -> Step {
        Step {
            cost: Cost { pipe: Pipe::Memory, busy: 1.0, latency: 0.0, memory: Some(memory) },
            request: Request { passes: 1.0, l2, dram },
            ..plain(1)
        }
    }

    fn load(l2: f64, dram: f64) -> Step {
        access(Memory::Global { load: true }, l2, dram)
    }

    /// Round numbers: a line of 128 bytes takes 2 cycles of the L2 cache and 4 of memory.
    const RATES: Rates = Rates {
        l2_bytes: 64.0,
        dram_bytes: 32.0,
        l1_latency: 30.0,
        l2_latency: 200.0,
        dram_latency: 500.0,
        shared_latency: 20.0,
    };

    /// Cycles from the first instruction that is issued to behind the last one: of one block, all steps one behind the
    /// other.
    fn block_of(warps: usize, steps: &[Step]) -> u64 {
        let all = 0..steps.len();
        let order = std::slice::from_ref(&all);
        simulate(&Work { steps, order, warps, blocks: 1, resident: 1 }, &RATES) - BLOCK_START
    }

    /// Cycles that each of these instructions takes if there are very many of them.
    fn cycles_each(warps: usize, step: &Step) -> u64 {
        let many = |count: usize| block_of(warps, &vec![step.clone(); count]);
        let (long, short) = (many(3000), many(2000));
        assert_eq!((long - short) % 1000, 0, "a steady pace");
        (long - short) / 1000
    }

    #[test]
    fn warps_hide_the_stalls_of_each_other() {
        // A scheduler has a fourth of the warps, and issues an instruction a cycle.
        for (warps, stall, cycles) in
            [(1, 4, 4), (4, 4, 4), (8, 4, 4), (16, 4, 4), (32, 4, 8), (4, 1, 1), (4, 15, 15)]
        {
            assert_eq!(cycles_each(warps, &plain(stall)), cycles, "{warps} warps with a stall of {stall}");
        }
        assert_eq!(block_of(1, &vec![plain(4); 10]), 9 * 4 + 1, "nothing waits for the last stall");
    }

    #[test]
    fn a_unit_takes_an_instruction_when_it_is_done_with_the_last_one() {
        let on = |pipe, busy| Step { cost: Cost { pipe, busy, ..plain(1).cost }, ..plain(1) };
        // Units belong to a scheduler each, except the one for loads and stores.
        for (warps, step, cycles) in [
            (1, on(Pipe::Alu, 2.0), 2),
            (4, on(Pipe::Alu, 2.0), 2),
            (8, on(Pipe::Alu, 2.0), 4),
            (4, on(Pipe::Special, 8.0), 8),
            (1, access(Memory::Shared, 0.0, 0.0), 1),
            (4, access(Memory::Shared, 0.0, 0.0), 4),
        ] {
            assert_eq!(cycles_each(warps, &step), cycles, "{warps} warps on {:?}", step.cost.pipe);
        }
        // Different units take turns.
        let both: Vec<Step> = (0..1000).flat_map(|_| [on(Pipe::Alu, 2.0), on(Pipe::Fma, 2.0)]).collect();
        assert_eq!(block_of(4, &both).div_ceil(1000), 3, "two cycles each time, and some to begin");
    }

    #[test]
    fn a_bank_gives_one_register_a_cycle() {
        let reads = |reads| Step { reads, ..plain(1) };
        for (registers, cycles) in
            [([0, 0], 1), ([1, 1], 1), ([2, 0], 2), ([0, 2], 2), ([2, 1], 2), ([3, 0], 3)]
        {
            for warps in [4, 16] {
                let each = cycles_each(warps, &reads(registers));
                assert_eq!(each, cycles * warps as u64 / 4, "{registers:?}, {warps} warps");
            }
        }
        // Operands have some cycles to arrive: what is between such instructions costs nothing.
        let mixed: Vec<Step> = (0..1000).flat_map(|_| [reads([2, 0]), reads([0, 2])]).collect();
        assert_eq!(block_of(4, &mixed).div_ceil(1000), 3, "two cycles each time, and some to begin");
    }

    #[test]
    fn who_uses_a_load_waits_for_its_latency() {
        let global = Memory::Global { load: true };
        for (what, access, cycles) in [
            ("first-level cache", access(global, 0.0, 0.0), 30),
            ("L2 cache", access(global, 128.0, 0.0), 2 + 200),
            ("memory", access(global, 128.0, 128.0), 4 + 500),
            ("shared memory", access(Memory::Shared, 0.0, 0.0), 20),
            ("local memory", access(Memory::Local, 0.0, 0.0), 30),
        ] {
            // The unit takes a cycle, and the user one.
            let used = [writes(3, access.clone()), waits(1 << 3, plain(1))];
            assert_eq!(block_of(1, &used), 1 + cycles + 1, "{what}");
            let other = [writes(3, access.clone()), waits(1 << 2, plain(1))];
            assert!(block_of(1, &other) <= 1 + 4 + 1, "{what}: who waits for another one does not wait");
        }
        let special = Step { cost: Cost { pipe: Pipe::Special, latency: 18.0, ..plain(1).cost }, ..plain(1) };
        assert_eq!(block_of(1, &[writes(0, special), waits(1, plain(1))]), 18 + 1);
    }

    #[test]
    fn operands_of_a_store_are_free_before_it_arrives() {
        let store = access(Memory::Global { load: false }, 128.0, 0.0);
        let held = Step { control: Control { read: Some(1), ..store.control }, ..store };
        assert_eq!(block_of(1, &[held, waits(1 << 1, plain(1))]), 1 + READ + 1);
    }

    #[test]
    fn a_part_of_the_requests_misses() {
        // A quarter of a sector on average: each fourth request of an instruction asks for a whole one.
        let steps = [waits(1, writes(0, load(8.0, 0.0))), waits(1, plain(1))];
        let sector = (32.0 / RATES.l2_bytes).ceil() as u64;
        for (count, misses) in [(3, 0), (4, 1), (7, 1), (8, 2)] {
            let mut order = vec![0..1; count as usize];
            order.push(1..2);
            let work = Work { steps: &steps, order: &order, warps: 1, blocks: 1, resident: 1 };
            let cycles = count * (1 + 30) + misses * (sector + 200 - 30) + 1;
            assert_eq!(simulate(&work, &RATES) - BLOCK_START, cycles, "{count} loads");
        }
    }

    #[test]
    fn a_barrier_lets_warps_go_on_together() {
        // Behind it each warp takes the unit of the multiprocessor for long, so the last of them begins so much later.
        let long = Step { cost: Cost { busy: 100.0, ..load(0.0, 0.0).cost }, ..load(0.0, 0.0) };
        for warps in 1..=4 {
            let after = |step: Step| block_of(warps, &[step, long.clone()]);
            // A request may be in front of the unit for the last 16 cycles.
            let queue = if warps > 1 { (warps as u64 - 1) * 100 - 16 } else { 0 };
            assert_eq!(after(plain(1)), 1 + queue + 1, "{warps} warps, the first of which does not wait");
            let last = WARP_START * (warps as u64 - 1);
            let barrier = control(Kind::Barrier);
            assert_eq!(after(barrier), last + BARRIER + queue + 1, "{warps} warps");
        }
    }

    #[test]
    fn who_drains_copies_waits_for_those_that_it_needs() {
        let copy = |l2, dram| Step { kind: Kind::Copy, ..load(l2, dram) };
        let group = || writes(0, control(Kind::Group));
        // One group comes from the first-level cache, the other one from memory, with an instruction more behind.
        for (left, cycles) in [(0, 3 + 4 + 500 + 1), (1, 1 + 30 + 1), (2, 5)] {
            let drain = control(Kind::Drain { scoreboard: 0, left });
            let steps = [copy(0.0, 0.0), group(), copy(128.0, 128.0), group(), drain];
            // The queue of memory is done earlier in any case but the last.
            let expected = cycles.max(3 + 4);
            assert_eq!(block_of(1, &steps), expected, "with {left} groups left");
        }
        // Groups arrive in their order: a quick one behind a slow one as well.
        let steps = [
            copy(128.0, 128.0),
            group(),
            copy(0.0, 0.0),
            group(),
            control(Kind::Drain { scoreboard: 0, left: 0 }),
        ];
        assert_eq!(block_of(1, &steps), 1 + 4 + 500 + 1);
        // Copies that no group has are not waited for.
        let steps = [group(), copy(128.0, 128.0), control(Kind::Drain { scoreboard: 0, left: 0 })];
        assert_eq!(block_of(1, &steps), 2 + 4, "the end of the copy itself");
    }

    #[test]
    fn bytes_by_rate_bound_the_time() {
        let loads = 1000 * 16;
        for (what, step, each) in [
            ("memory", load(128.0, 128.0), 4.0),
            ("the L2 cache", load(128.0, 0.0), 2.0),
            ("memory for a half of the requests", load(128.0, 64.0), 2.0),
            ("memory for a quarter of them", load(128.0, 32.0), 2.0),
            ("sectors", load(32.0, 32.0), 1.0),
            ("stores", access(Memory::Global { load: false }, 128.0, 128.0), 4.0),
            (
                "passes",
                Step { request: Request { passes: 8.0, l2: 128.0, dram: 128.0 }, ..load(0.0, 0.0) },
                8.0,
            ),
        ] {
            let cycles = block_of(16, &vec![step; 1000]) as f64;
            let bound = f64::from(loads) * each;
            // Which requests miss is not spread evenly in time.
            assert!((bound..1.05 * bound).contains(&cycles), "{what}: {cycles} cycles for {bound}");
        }
    }

    #[test]
    fn requests_wait_in_a_queue_of_limited_length() {
        // Nobody uses the data, and still a warp cannot run ahead for ever: it ends about a backlog before the memory.
        let ends = |loads: usize| {
            let mut steps = vec![load(128.0, 128.0); loads];
            // What it does at last takes longer than the queue, so that the end is its own.
            steps.push(Step { control: Control { stall: 15, ..Control::default() }, ..plain(15) });
            let last = vec![plain(15); 400];
            steps.extend(last);
            block_of(1, &steps)
        };
        assert_eq!(ends(3000) - ends(2000), 1000 * 4, "it goes at the pace of memory");
        assert_eq!(ends(500) - ends(400), 100, "at first it goes at its own");
    }

    #[test]
    fn blocks_begin_when_others_end() {
        let steps = vec![plain(1); 50];
        let all = 0..50;
        let order = std::slice::from_ref(&all);
        let of =
            |blocks, resident| simulate(&Work { steps: &steps, order, warps: 1, blocks, resident }, &RATES);
        let alone = BLOCK_START + 50;
        assert_eq!(of(1, 1), alone);
        // The next one begins in the cycle in which the last instruction is issued.
        for (blocks, resident, turns) in
            [(2, 1, 2), (5, 1, 5), (2, 2, 1), (3, 2, 2), (4, 2, 2), (5, 2, 3), (3, 8, 1)]
        {
            assert_eq!(of(blocks, resident), turns * (alone - 1) + 1, "{blocks} blocks in {resident} places");
        }
    }

    #[test]
    fn a_place_is_taken_until_the_stores_of_its_block_have_arrived() {
        let steps = [access(Memory::Global { load: false }, 128.0, 0.0)];
        let all = 0..1;
        let order = std::slice::from_ref(&all);
        let of = |blocks| simulate(&Work { steps: &steps, order, warps: 1, blocks, resident: 1 }, &RATES);
        // A cycle of the unit, two of the L2 cache, and its latency; then another block begins.
        assert_eq!(of(2) - of(1), BLOCK_START + 1 + 2 + 200);
    }

    #[test]
    fn a_branch_that_is_taken_costs_more_than_one_that_is_not() {
        let steps = vec![plain(1), control(Kind::Branch), plain(1), control(Kind::Branch)];
        let of = |order: &[std::ops::Range<usize>]| {
            simulate(&Work { steps: &steps, order, warps: 1, blocks: 1, resident: 1 }, &RATES) - BLOCK_START
        };
        assert_eq!(of(&[0..2, 2..4]), 4, "it falls through");
        assert_eq!(of(&[0..2, 0..2]), 4 + BRANCH, "it goes back");
        assert_eq!(of(&[0..2, 0..2, 0..2]), 6 + 2 * BRANCH);
    }

    #[test]
    fn no_work_takes_no_time() {
        assert_eq!(simulate(&Work { steps: &[], order: &[], warps: 4, blocks: 3, resident: 2 }, &RATES), 0);
        assert_eq!(simulate(&Work { steps: &[], order: &[], warps: 4, blocks: 0, resident: 2 }, &RATES), 0);
    }
}
