//! Allocation of rows to registers.
//!
//! Compilers declare thousands of virtual registers, of which few are live at once. Each gets a row for the range of
//! text over which it is live (linear scan: Poletto and Sarkar, TOPLAS 1999). This is correct even if lanes of a warp
//! diverge: each lane follows a path of the control-flow graph, and has its own column.
//!
//! A register that is live at the function's beginning may be read before it is written. It keeps its row from there
//! on.

use crate::machine::Base;
use std::collections::BinaryHeap;
use std::ops::RangeInclusive;
use warpwright_ptx::ir::*;
use warpwright_ptx::op::{Access, Visitor};
use warpwright_ptx::verify::{BlockId, Cfg};

/// A register file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum File {
    /// Up to 32 bits.
    Narrow,
    /// 64 bits.
    Wide,
    /// 128 bits: two rows of the wide file.
    Double,
    /// One bit.
    Predicate,
}

impl File {
    pub(crate) fn of(ty: Type) -> File {
        match ty.bits() {
            1 => File::Predicate,
            ..=32 => File::Narrow,
            64 => File::Wide,
            _ => File::Double,
        }
    }
}

/// Where the registers of a function are.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    /// For each register, its file and row.
    pub(crate) rows: Vec<(File, u32)>,
    /// Number of rows.
    pub(crate) count: Base,
    /// Registers that may be read before they are written.
    pub(crate) unassigned: Vec<Reg>,
    intervals: Vec<Interval>,
}

impl Slots {
    /// The statements from the first to the last at which a register has its row.
    pub(crate) fn live(&self, reg: Reg) -> RangeInclusive<u32> {
        let Interval { start, end } = self.intervals[reg.0 as usize];
        start..=end
    }
}

/// Where a register is live: from and to which statement.
#[derive(Clone, Copy, Debug)]
struct Interval {
    start: u32,
    end: u32,
}

const NOWHERE: Interval = Interval { start: u32::MAX, end: 0 };

impl Interval {
    fn extend(&mut self, at: u32) {
        self.start = self.start.min(at);
        self.end = self.end.max(at);
    }
}

/// What a statement does with registers, in order.
fn visit(function: &Function, statement: usize, mut each: impl FnMut(Access, Reg, bool)) {
    let StatementKind::Instruction(instruction) = &function.statements()[statement].kind else { return };
    let guarded = instruction.guard.is_some();
    if let Some(guard) = instruction.guard {
        each(Access::Read, guard.reg, false);
    }
    struct Each<F>(F, bool);
    impl<F: FnMut(Access, Reg, bool)> Visitor for Each<F> {
        fn reg(&mut self, access: Access, reg: Reg) {
            (self.0)(access, reg, self.1);
        }
    }
    // What is read comes first: sources are read before the destination is written.
    let mut writes = Vec::new();
    let mut visitor = Each(
        |access, reg, guarded| match access {
            Access::Write => writes.push(reg),
            _ => each(access, reg, guarded),
        },
        guarded,
    );
    instruction.op.visit(&mut visitor);
    for reg in writes {
        each(Access::Write, reg, guarded);
    }
}

/// Sets of registers, one a block.
struct Sets {
    words: usize,
    bits: Vec<u64>,
}

impl Sets {
    fn new(count: usize, members: usize) -> Self {
        let words = members.div_ceil(64);
        Sets { words, bits: vec![0; count * words] }
    }

    fn of(&self, set: usize) -> &[u64] {
        &self.bits[set * self.words..][..self.words]
    }

    fn insert(&mut self, set: usize, member: u32) {
        self.bits[set * self.words + member as usize / 64] |= 1 << (member % 64);
    }

    fn contains(&self, set: usize, member: u32) -> bool {
        self.bits[set * self.words + member as usize / 64] >> (member % 64) & 1 != 0
    }

    fn members(&self, set: usize) -> impl Iterator<Item = u32> {
        self.of(set).iter().enumerate().flat_map(|(word, &bits)| {
            (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| word as u32 * 64 + bit)
        })
    }
}

/// Gives every register of a function its row. The caller sets `params` and takes `returns`.
pub(crate) fn allocate(function: &Function, cfg: &Cfg, params: &[Reg], returns: &[Reg]) -> Slots {
    let count = function.register_count() as usize;
    let mut intervals = vec![NOWHERE; count];
    let global = spanning(function, cfg, &mut intervals);
    let unassigned = flow(function, cfg, &global, &mut intervals);
    for &reg in params.iter().chain(returns) {
        intervals[reg.0 as usize].extend(0);
    }
    for &reg in returns {
        intervals[reg.0 as usize].extend(function.statements().len() as u32);
    }
    let mut slots = scan(function, intervals);
    let set = |reg: &Reg| params.contains(reg) || returns.contains(reg);
    slots.unassigned = unassigned.into_iter().filter(|reg| !set(reg)).collect();
    slots
}

/// Notes where each register stands, and lists those that more than one block names, or that a block does
/// not write first.
fn spanning(function: &Function, cfg: &Cfg, intervals: &mut [Interval]) -> Vec<Reg> {
    const UNSEEN: u32 = u32::MAX;
    const SPANS: u32 = u32::MAX - 1;
    let mut home = vec![UNSEEN; intervals.len()];
    let mut global = Vec::new();
    for (number, block) in cfg.blocks().iter().enumerate() {
        for statement in block.statements() {
            visit(function, statement, |access, reg, guarded| {
                let index = reg.0 as usize;
                intervals[index].extend(statement as u32);
                let defines = access == Access::Write && !guarded;
                let local = home[index] == number as u32 || home[index] == UNSEEN && defines;
                if local {
                    home[index] = number as u32;
                } else if home[index] != SPANS {
                    home[index] = SPANS;
                    global.push(reg);
                }
            });
        }
    }
    global
}

/// Extends the intervals of registers that live across blocks; lists those live at the beginning.
fn flow(function: &Function, cfg: &Cfg, global: &[Reg], intervals: &mut [Interval]) -> Vec<Reg> {
    let blocks = cfg.blocks().len();
    let mut number = vec![u32::MAX; intervals.len()];
    for (i, reg) in global.iter().enumerate() {
        number[reg.0 as usize] = i as u32;
    }
    let (mut used, mut defined) = (Sets::new(blocks, global.len()), Sets::new(blocks, global.len()));
    for (index, block) in cfg.blocks().iter().enumerate() {
        for statement in block.statements() {
            visit(function, statement, |access, reg, guarded| {
                let member = number[reg.0 as usize];
                if member == u32::MAX {
                    return;
                }
                if access != Access::Write {
                    if !defined.contains(index, member) {
                        used.insert(index, member);
                    }
                } else if !guarded {
                    defined.insert(index, member);
                }
            });
        }
    }
    let mut live_in = Sets { words: used.words, bits: used.bits.clone() };
    let mut live_out = Sets::new(blocks, global.len());
    let words = used.words;
    let order: Vec<usize> = cfg.reverse_postorder().iter().rev().map(|id| id.index()).collect();
    let mut changed = true;
    while changed {
        changed = false;
        for &block in &order {
            for &next in cfg.successors(BlockId(block as u32)) {
                for word in 0..words {
                    live_out.bits[block * words + word] |= live_in.bits[next.index() * words + word];
                }
            }
            for word in 0..words {
                let at = block * words + word;
                let now = used.bits[at] | live_out.bits[at] & !defined.bits[at];
                changed |= now != live_in.bits[at];
                live_in.bits[at] = now;
            }
        }
    }
    for (index, block) in cfg.blocks().iter().enumerate() {
        for member in live_in.members(index) {
            intervals[global[member as usize].0 as usize].extend(block.first);
        }
        for member in live_out.members(index) {
            intervals[global[member as usize].0 as usize].extend(block.end);
        }
    }
    if blocks == 0 { Vec::new() } else { live_in.members(0).map(|member| global[member as usize]).collect() }
}

/// The linear scan.
fn scan(function: &Function, intervals: Vec<Interval>) -> Slots {
    let mut order: Vec<u32> =
        (0..intervals.len() as u32).filter(|&reg| intervals[reg as usize].start != u32::MAX).collect();
    order.sort_by_key(|&reg| intervals[reg as usize].start);
    let mut rows: Vec<(File, u32)> = Vec::with_capacity(intervals.len());
    for range in &function.registers {
        let file = File::of(range.ty);
        rows.extend((0..range.count * range.width()).map(|_| (file, 0)));
    }
    let mut pools = [Pool::default(), Pool::default(), Pool::default()];
    for reg in order {
        let Interval { start, end } = intervals[reg as usize];
        let row = &mut rows[reg as usize];
        row.1 = match row.0 {
            File::Narrow => pools[0].take(start, end),
            File::Wide => pools[1].take(start, end),
            File::Predicate => pools[2].take(start, end),
            File::Double => {
                pools[1].count += 2;
                pools[1].count - 2
            }
        };
    }
    let count = Base { w32: pools[0].count, w64: pools[1].count, pred: pools[2].count };
    Slots { rows, count, unassigned: Vec::new(), intervals }
}

/// The rows of one file.
#[derive(Default)]
struct Pool {
    count: u32,
    free: Vec<u32>,
    /// Rows in use, the one that becomes free first on top.
    busy: BinaryHeap<std::cmp::Reverse<(u32, u32)>>,
}

impl Pool {
    fn take(&mut self, start: u32, end: u32) -> u32 {
        while let Some(&std::cmp::Reverse((until, row))) = self.busy.peek()
            && until < start
        {
            self.busy.pop();
            self.free.push(row);
        }
        let row = self.free.pop().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        });
        self.busy.push(std::cmp::Reverse((end, row)));
        row
    }
}
