//! Uniformity analysis of the values and the control flow of threads.
//!
//! A [`Level`] is the largest group of threads that provably agrees. The level of a register follows from its inputs,
//! by the rule of each instruction, and from the control flow under which it is written: a value written where only
//! some threads pass, or in a loop that threads leave at different times, differs between them. The level of a block
//! follows from the branches that decide whether the block runs (control dependence).
//!
//! The analysis deliberately ignores the possible values of registers, with one exception for values computed
//! directly from `%tid.x`: its quotient by 32, and comparisons that hold for whole warps, are the same within a warp
//! (if blocks are rows of whole warps).
//!
//! If one side of a branch leaves the function without meeting the other side again at any work, the branch does not
//! count: after `if (i >= n) return;` the remaining threads go on together.

use super::cfg::{BlockId, Cfg};
use super::control::Control;
use super::grouped::Grouped;
use super::stack::Stack;
use super::uses::Uses;
use crate::ir::*;
use crate::op::{Access, Level, Operands};

/// The levels of a function's registers and blocks.
#[derive(Clone, Debug)]
pub struct Uniformity {
    registers: Vec<Level>,
    control: Control,
}

impl Uniformity {
    /// Analyses a function, with its control-flow graph.
    pub fn new(function: &Function, cfg: &Cfg) -> Self {
        Self::with_uses(function, cfg, &Uses::new(function))
    }

    pub(super) fn with_uses(function: &Function, cfg: &Cfg, uses: &Uses) -> Self {
        Self::with_control(function, cfg, uses, Control::new(function, cfg))
    }

    pub(super) fn with_control(function: &Function, cfg: &Cfg, uses: &Uses, control: Control) -> Self {
        Analysis::new(function, cfg, uses, control).run()
    }

    /// The level of all values that a register holds.
    pub fn register(&self, reg: Reg) -> Level {
        self.registers[reg.0 as usize]
    }

    /// The threads that agree on whether they run a block, and how often.
    pub fn block(&self, id: BlockId) -> Level {
        self.control.level(id)
    }

    /// The branch because of which not all threads run the block, as the index of a statement.
    pub fn cause(&self, id: BlockId) -> Option<usize> {
        self.control.cause(id)
    }
}

struct Analysis<'a> {
    function: &'a Function,
    cfg: &'a Cfg,
    uses: &'a Uses,
    /// The level of the special registers that each statement reads.
    specials: Vec<Level>,
    thread_indices: Vec<bool>,
    carries: Carries,
    stack: Stack,
    /// The block of each statement.
    homes: Vec<BlockId>,
    /// The statements that read each register.
    readers: Grouped<u32>,
    control: Control,
    registers: Vec<Level>,
    pending: Vec<u32>,
    queued: Vec<bool>,
}

impl<'a> Analysis<'a> {
    fn new(function: &'a Function, cfg: &'a Cfg, uses: &'a Uses, control: Control) -> Self {
        let statements = function.statements();
        let mut specials = vec![Level::Grid; statements.len()];
        for (statement, special) in &uses.specials {
            let level = &mut specials[*statement as usize];
            *level = (*level).max(Level::of_special(*special, function));
        }
        let mut homes = vec![BlockId(0); statements.len()];
        for (i, block) in cfg.blocks().iter().enumerate() {
            homes[block.statements()].fill(BlockId(i as u32));
        }
        let mut registers = vec![Level::Grid; function.register_count() as usize];
        for reg in function.passed_registers(&function.params) {
            registers[reg.0 as usize] = Level::Unknown;
        }
        let reads = uses.all().filter(|(_, used)| used.access != Access::Write);
        let reads = reads.map(|(statement, used)| (used.reg.0 as usize, statement));
        Analysis {
            function,
            cfg,
            uses,
            specials,
            thread_indices: thread_indices(function, uses),
            carries: Carries::new(function),
            stack: Stack::new(function, uses),
            homes,
            readers: Grouped::new(registers.len(), reads),
            control,
            registers,
            pending: Vec::new(),
            // The first pass comes to all of them.
            queued: vec![true; statements.len()],
        }
    }

    fn run(mut self) -> Uniformity {
        for id in self.cfg.reverse_postorder() {
            for statement in self.cfg.block(*id).statements() {
                self.queued[statement] = false;
                self.evaluate(statement as u32);
            }
        }
        while let Some(statement) = self.pending.pop() {
            self.queued[statement as usize] = false;
            self.evaluate(statement);
        }
        Uniformity { registers: self.registers, control: self.control }
    }

    fn evaluate(&mut self, statement: u32) {
        let StatementKind::Instruction(instruction) = &self.function.statements()[statement as usize].kind
        else {
            return;
        };
        let id = self.homes[statement as usize];
        if !self.cfg.is_reachable(id) {
            return;
        }
        let uses = self.uses;
        let list = uses.of(statement as usize);
        let carry = instruction.op.carry();
        let mut sources = self.specials[statement as usize];
        let mut writes = false;
        for used in list {
            if used.access != Access::Write && !self.stack.is_pointer(used.reg) {
                sources = sources.max(self.registers[used.reg.0 as usize]);
            }
            writes |= used.access != Access::Read;
        }
        let ends = self.cfg.block(id).terminator == Some(statement);
        self.stack.store(statement, sources.max(self.control.level(id)), &mut |loads| {
            queue(&mut self.queued, &mut self.pending, loads);
        });
        if !writes && !ends {
            return;
        }
        if carry.reads {
            sources =
                sources.max(self.carries.before(statement, self.cfg.block(id).statements().start as u32));
        }
        let operands = Operands {
            function: self.function,
            registers: &self.registers,
            all: sources,
            thread_indices: &self.thread_indices,
        };
        let found = self.stack.loaded(statement);
        let value = found.unwrap_or_else(|| instruction.op.uniformity(&operands));
        let apart = instruction.op.apart(&operands);
        // Threads that the guard keeps from writing hold what was there before.
        let guard = instruction.guard.map_or(Level::Grid, |guard| self.registers[guard.reg.0 as usize]);
        let least = guard.max(self.control.level(id));
        for used in list.iter().filter(|used| used.access != Access::Read) {
            let value = apart.filter(|apart| apart.reg == used.reg).map_or(value, |apart| apart.level);
            let held = &mut self.registers[used.reg.0 as usize];
            if value.max(least) > *held {
                *held = value.max(least);
                queue(&mut self.queued, &mut self.pending, self.readers.of(used.reg.0 as usize));
            }
        }
        if carry.writes {
            queue(&mut self.queued, &mut self.pending, self.carries.raise(statement, value.max(least)));
        }
        let decision = value.max(self.control.level(id));
        if ends && decision > Level::Grid {
            self.divide(id, statement, decision);
        }
    }

    /// The branch at the end of a block diverges: everything that depends on it is analysed again.
    fn divide(&mut self, id: BlockId, statement: u32, level: Level) {
        let Analysis { control, cfg, queued, pending, .. } = self;
        control.divide(id, statement, level, &mut |raised| {
            cfg.block(raised).statements().for_each(|statement| queue(queued, pending, &[statement as u32]));
        });
    }
}

/// Notes that statements are to be looked at again.
fn queue(queued: &mut [bool], pending: &mut Vec<u32>, statements: &[u32]) {
    let new =
        statements.iter().filter(|&&statement| !std::mem::replace(&mut queued[statement as usize], true));
    pending.extend(new);
}

/// The level of the carry flag. Instructions that read it stand behind the one that sets it, most often in the
/// same block.
struct Carries {
    /// The statements that set it, whether each does so for all threads, and the level that it gets.
    writers: Vec<(u32, bool, Level)>,
    /// The statements that read it.
    readers: Vec<u32>,
    /// The worst level that any of them gives it.
    any: Level,
}

impl Carries {
    fn new(function: &Function) -> Self {
        let mut carries = Carries { writers: Vec::new(), readers: Vec::new(), any: Level::Grid };
        for (i, statement) in (0..).zip(function.statements()) {
            let StatementKind::Instruction(instruction) = &statement.kind else { continue };
            let carry = instruction.op.carry();
            if carry.writes {
                carries.writers.push((i, instruction.guard.is_none(), Level::Grid));
            }
            if carry.reads {
                carries.readers.push(i);
            }
        }
        carries
    }

    /// The level of the flag that a statement reads, in a block that begins at `start`: that of the last statement that
    /// sets it there, or of any.
    fn before(&self, statement: u32, start: u32) -> Level {
        let earlier = self.writers.partition_point(|writer| writer.0 < statement);
        match self.writers[..earlier].last() {
            Some(&(writer, true, level)) if writer >= start => level,
            _ => self.any,
        }
    }

    /// Notes the level that a statement gives the flag. Returns the statements that read it and may have used a better
    /// level.
    fn raise(&mut self, statement: u32, level: Level) -> &[u32] {
        let at = self.writers.partition_point(|writer| writer.0 < statement);
        let held = std::mem::replace(&mut self.writers[at].2, level);
        let behind = |statement| self.readers.partition_point(|&reader| reader <= statement);
        if level > self.any {
            self.any = level;
            &self.readers
        } else if level > held {
            // Up to the one that sets it next, which may read it.
            let next = self.writers.get(at + 1).map_or(u32::MAX, |writer| writer.0);
            &self.readers[behind(statement)..behind(next)]
        } else {
            &[]
        }
    }
}

/// Number of writes of each register; more than 255 counts as 255.
pub(super) fn writes(function: &Function, uses: &Uses) -> Vec<u8> {
    let mut writes = vec![0u8; function.register_count() as usize];
    for (_, used) in uses.all().filter(|(_, used)| used.access != Access::Read) {
        let count = &mut writes[used.reg.0 as usize];
        *count = count.saturating_add(1);
    }
    writes
}

/// For each register whether it holds a thread's index ([`Operands::is_thread_index`]), whoever reads it: it is
/// written once. Empty where none does.
fn thread_indices(function: &Function, uses: &Uses) -> Vec<bool> {
    if !uses.specials.iter().any(|(_, special)| special.register == SpecialRegister::Tid) {
        return Vec::new();
    }
    let writes = writes(function, uses);
    let mut holds = vec![false; writes.len()];
    for (i, statement) in function.statements().iter().enumerate() {
        let StatementKind::Instruction(instruction) = &statement.kind else { continue };
        let operands = Operands { function, registers: &[], all: Level::Unknown, thread_indices: &holds };
        if instruction.op.is_thread_index(&operands) {
            let written = uses.of(i).iter().find(|used| used.access == Access::Write);
            if let Some(used) = written.filter(|used| writes[used.reg.0 as usize] == 1) {
                holds[used.reg.0 as usize] = true;
            }
        }
    }
    holds
}
