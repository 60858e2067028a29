//! Finds registers that are read before they are written.
//!
//! Only registers that some block reads before writing them take part, and of those only the ones whose first write
//! does not dominate the read. They are analysed 64 at a time, one bit each, so memory stays linear in the number of
//! blocks. A write under a guard counts as a write; otherwise, code that compilers generate for `if` would cause a
//! flood of findings.

use super::cfg::{BlockId, Cfg};
use super::grouped::Grouped;
use super::uses::Uses;
use crate::ir::*;
use crate::op::Access;

/// How sure it is that a register holds nothing when it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// No instruction of the function writes it.
    NeverWritten,
    /// No path to the read writes it.
    OnAllPaths,
    /// A path to the read does not write it.
    OnSomePath,
}

/// A read of a register that may hold nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unassigned {
    pub reg: Reg,
    pub statement: u32,
    pub gap: Gap,
}

/// The first such read of each register, in the order of the text.
pub(super) fn unassigned(function: &Function, cfg: &Cfg, uses: &Uses) -> Vec<Unassigned> {
    let mut exposed = Exposed::new(function, cfg, uses);
    if !exposed.reads.is_empty() {
        exposed.drop_dominated(cfg, uses);
    }
    if exposed.reads.is_empty() {
        return Vec::new();
    }
    let mut found = exposed.solve(function, cfg, uses);
    found.sort_by_key(|finding| finding.statement);
    found
}

/// A read in a block that does not write the register before.
#[derive(Clone, Copy, Default)]
struct Read {
    number: u32,
    block: BlockId,
}

struct Exposed {
    /// The registers that take part.
    regs: Vec<Reg>,
    reads: Vec<Read>,
    /// Number of a register among them; `u32::MAX` for others.
    numbers: Vec<u32>,
}

impl Exposed {
    fn new(function: &Function, cfg: &Cfg, uses: &Uses) -> Self {
        let count = function.register_count() as usize;
        // The last block, plus one, in which each register was written, or read before that.
        let mut written = vec![0u32; count];
        let mut read = vec![0u32; count];
        let mut numbers = vec![0u32; count];
        let mut regs = Vec::new();
        let mut reads = Vec::new();
        for id in cfg.reverse_postorder() {
            let stamp = id.0 + 1;
            for statement in cfg.block(*id).statements() {
                let list = uses.of(statement);
                for used in list.iter().filter(|used| used.access == Access::Read) {
                    let i = used.reg.0 as usize;
                    if written[i] != stamp && read[i] != stamp {
                        read[i] = stamp;
                        if numbers[i] == 0 {
                            regs.push(used.reg);
                            numbers[i] = regs.len() as u32;
                        }
                        reads.push(Read { number: numbers[i] - 1, block: *id });
                    }
                }
                for used in list.iter().filter(|used| used.access != Access::Read) {
                    written[used.reg.0 as usize] = stamp;
                }
            }
        }
        Exposed { regs, reads, numbers }
    }

    /// Drops the reads that every path reaches from the register's first write: in compiler output, nearly all of
    /// them.
    fn drop_dominated(&mut self, cfg: &Cfg, uses: &Uses) {
        let mut first = vec![None; self.regs.len()];
        for write in self.writes(cfg, uses) {
            first[write.number as usize].get_or_insert(write.block);
        }
        let tree = cfg.dominators();
        self.reads.retain(|read| {
            let write = first[read.number as usize];
            write.is_none_or(|block| block == read.block || !tree.dominates(block, read.block))
        });
        // Those that are left, numbered anew.
        let regs = std::mem::take(&mut self.regs);
        regs.iter().for_each(|reg| self.numbers[reg.0 as usize] = 0);
        for read in &mut self.reads {
            let reg = regs[read.number as usize];
            let number = &mut self.numbers[reg.0 as usize];
            if *number == 0 {
                self.regs.push(reg);
                *number = self.regs.len() as u32;
            }
            read.number = *number - 1;
        }
    }

    fn solve(&self, function: &Function, cfg: &Cfg, uses: &Uses) -> Vec<Unassigned> {
        let writes = self.writes(cfg, uses);
        let chunks = self.regs.len().div_ceil(64);
        let by_chunk = |number: u32| number as usize / 64;
        let writes = Grouped::new(chunks, writes.iter().map(|write| (by_chunk(write.number), *write)));
        let reads = Grouped::new(chunks, self.reads.iter().map(|read| (by_chunk(read.number), *read)));
        let mut solver = Solver::new(cfg);
        let mut found = Vec::new();
        for chunk in 0..chunks {
            let entry = self.parameters(function, chunk);
            solver.load(writes.of(chunk).iter().map(|write| (write.block, 1u64 << (write.number % 64))));
            let on_all = solver.solve(entry, true).to_vec();
            let missing =
                |states: &[u64], read: &Read| states[read.block.index()] >> (read.number % 64) & 1 == 0;
            if !reads.of(chunk).iter().any(|read| missing(&on_all, read)) {
                continue;
            }
            let on_any = solver.solve(entry, false);
            let mut reported = 0u64;
            for read in reads.of(chunk).iter().filter(|read| missing(&on_all, read)) {
                let bit = 1 << (read.number % 64);
                if reported & bit != 0 {
                    continue;
                }
                reported |= bit;
                let gap = if !missing(on_any, read) {
                    Gap::OnSomePath
                } else if writes.of(chunk).iter().any(|write| write.number == read.number) {
                    Gap::OnAllPaths
                } else {
                    Gap::NeverWritten
                };
                let reg = self.regs[read.number as usize];
                found.push(Unassigned { reg, statement: first_read(cfg, uses, read.block, reg), gap });
            }
        }
        found
    }

    /// The writes of the registers that take part, once per block.
    fn writes(&self, cfg: &Cfg, uses: &Uses) -> Vec<Read> {
        let mut last = vec![u32::MAX; self.regs.len()];
        let mut writes = Vec::new();
        for id in cfg.reverse_postorder() {
            for used in cfg.block(*id).statements().flat_map(|statement| uses.of(statement)) {
                let number = self.numbers[used.reg.0 as usize];
                if used.access != Access::Read && number != 0 && last[number as usize - 1] != id.0 {
                    last[number as usize - 1] = id.0;
                    writes.push(Read { number: number - 1, block: *id });
                }
            }
        }
        writes
    }

    /// Registers of a chunk that hold an argument.
    fn parameters(&self, function: &Function, chunk: usize) -> u64 {
        let registers = function.passed_registers(&function.params);
        let numbers = registers.filter_map(|reg| self.numbers.get(reg.0 as usize));
        let numbers = numbers.filter(|&&number| number != 0 && (number as usize - 1) / 64 == chunk);
        numbers.fold(0, |bits, number| bits | 1 << ((number - 1) % 64))
    }
}

fn first_read(cfg: &Cfg, uses: &Uses, block: BlockId, reg: Reg) -> u32 {
    let reads = |statement: &usize| {
        uses.of(*statement).iter().any(|used| used.reg == reg && used.access == Access::Read)
    };
    cfg.block(block).statements().find(reads).map_or(0, |statement| statement as u32)
}

/// Which of 64 registers were written before each block.
struct Solver<'a> {
    cfg: &'a Cfg,
    written: Vec<u64>,
    before: Vec<u64>,
    after: Vec<u64>,
    /// A bit for each position in reverse postorder.
    pending: Vec<u64>,
    positions: Vec<u32>,
}

impl<'a> Solver<'a> {
    fn new(cfg: &'a Cfg) -> Self {
        let count = cfg.blocks().len();
        let mut positions = vec![0; count];
        for (position, id) in cfg.reverse_postorder().iter().enumerate() {
            positions[id.index()] = position as u32;
        }
        Solver {
            cfg,
            written: vec![0; count],
            before: vec![0; count],
            after: vec![0; count],
            pending: vec![0; cfg.reverse_postorder().len().div_ceil(64)],
            positions,
        }
    }

    fn load(&mut self, writes: impl Iterator<Item = (BlockId, u64)>) {
        self.written.fill(0);
        for (block, bit) in writes {
            self.written[block.index()] |= bit;
        }
    }

    /// The state before each block: written on all paths to it, or on any.
    fn solve(&mut self, entry: u64, on_all: bool) -> &[u64] {
        let start = if on_all { u64::MAX } else { 0 };
        self.after.fill(start);
        let order = self.cfg.reverse_postorder();
        self.pending.fill(u64::MAX);
        if let Some(last) = self.pending.last_mut()
            && !order.len().is_multiple_of(64)
        {
            *last = (1 << (order.len() % 64)) - 1;
        }
        let mut again = true;
        while std::mem::replace(&mut again, false) {
            for word in 0..self.pending.len() {
                while self.pending[word] != 0 {
                    let bit = self.pending[word].trailing_zeros();
                    self.pending[word] &= !(1 << bit);
                    let position = word * 64 + bit as usize;
                    again |= self.update(order[position], (position == 0).then_some(entry), on_all);
                }
            }
        }
        &self.before
    }

    /// Looks at a block again. Whether one before it has to be looked at once more.
    fn update(&mut self, id: BlockId, entry: Option<u64>, on_all: bool) -> bool {
        let from = self.cfg.predecessors(id).iter().filter(|from| self.cfg.is_reachable(**from));
        let from = from.map(|from| self.after[from.index()]);
        let mut state = match on_all {
            true => from.fold(u64::MAX, |all, state| all & state),
            false => from.fold(0, |any, state| any | state),
        };
        if let Some(entry) = entry {
            state = if on_all { state & entry } else { state | entry };
        }
        self.before[id.index()] = state;
        let after = state | self.written[id.index()];
        if after == self.after[id.index()] {
            return false;
        }
        self.after[id.index()] = after;
        let here = self.positions[id.index()];
        let mut back = false;
        for next in self.cfg.successors(id) {
            let position = self.positions[next.index()];
            self.pending[position as usize / 64] |= 1 << (position % 64);
            back |= position <= here;
        }
        back
    }
}
