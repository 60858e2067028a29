//! How alike the values and the control flow of threads are.
//!
//! A [`Level`] is the largest group of threads that surely agrees. Levels of registers come from what
//! they are computed from, from the special registers at the root, and from the control flow under
//! which they are written: a value written where only some threads pass, or in a loop that threads
//! leave at different times, differs between them. Levels of blocks come from the branches that
//! decide whether a block is run (control dependence).
//!
//! What is deliberately not known: which numbers a register may hold. Only what is computed straight
//! from `%tid.x` is looked at: its quotient by 32, and comparisons that no warp straddles, are the
//! same within a warp (where blocks are rows of whole warps).
//!
//! A branch whose one side runs out of the function without meeting the other side again at some
//! work does not count: after `if (i >= n) return;` the threads that are left go on together.

use super::cfg::{BlockId, Cfg};
use super::control::Control;
use super::uses::Uses;
use crate::ir::*;
use crate::op::warp::ShuffleMode;
use crate::op::{Access, Op};

/// The threads that agree on a value, or on whether they run a block. Smaller is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Level {
    /// All threads of the grid.
    #[default]
    Grid,
    /// All threads of a cluster.
    Cluster,
    /// All threads of a block.
    Block,
    /// All threads of a warp; warps differ.
    Warp,
    /// All threads of a warp; whether warps differ is not known.
    WarpData,
    /// None: it is computed from what tells lanes apart.
    Lane,
    /// It is not known: it depends on data.
    Unknown,
}

impl Level {
    pub(super) const COUNT: usize = 7;

    /// The level of a special register. `function` may fix the shape of the block, so that a
    /// dimension of one thread has one index.
    pub fn of_special(special: Special, function: &Function) -> Level {
        use SpecialRegister as S;
        match special.register {
            S::Tid => {
                let axis = match special.component {
                    Some(Component::X) => 0,
                    Some(Component::Y) => 1,
                    Some(Component::Z) => 2,
                    Some(Component::W) => return Level::Grid,
                    None => return Level::Lane,
                };
                let one = function.directives.iter().any(|directive| match directive {
                    FunctionDirective::ReqNtid(dims) | FunctionDirective::MaxNtid(dims) => {
                        dims.get(axis).copied().unwrap_or(1) == 1
                    }
                    _ => false,
                });
                if one { Level::Grid } else { Level::Lane }
            }
            S::LaneId | S::LaneMaskEq | S::LaneMaskLe | S::LaneMaskLt | S::LaneMaskGe | S::LaneMaskGt => {
                Level::Lane
            }
            S::WarpId => Level::Warp,
            S::CtaId | S::ClusterCtaId | S::ClusterCtaRank | S::SmId => Level::Block,
            S::ClusterId => Level::Cluster,
            S::Clock
            | S::ClockHi
            | S::Clock64
            | S::GlobalTimer
            | S::GlobalTimerLo
            | S::GlobalTimerHi
            | S::Pm0
            | S::Pm1
            | S::Pm2
            | S::Pm3
            | S::Pm4
            | S::Pm5
            | S::Pm6
            | S::Pm7
            | S::Pm0Wide
            | S::Pm1Wide
            | S::Pm2Wide
            | S::Pm3Wide
            | S::Pm4Wide
            | S::Pm5Wide
            | S::Pm6Wide
            | S::Pm7Wide => Level::Unknown,
            _ => Level::Grid,
        }
    }

    /// Whether it is not known that threads disagree.
    pub fn is_undecided(self) -> bool {
        matches!(self, Level::WarpData | Level::Unknown)
    }

    /// The threads that agree, in words.
    pub fn description(self) -> &'static str {
        match self {
            Level::Grid => "the same for the whole grid",
            Level::Cluster => "the same within a cluster",
            Level::Block => "the same within a block",
            Level::Warp => "the same within a warp, and different from warp to warp",
            Level::WarpData => "the same within a warp, and dependent on data",
            Level::Lane => "different from lane to lane",
            Level::Unknown => "dependent on data",
        }
    }
}

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

    /// The branch that keeps a block from being run by all: the index of a statement.
    pub fn cause(&self, id: BlockId) -> Option<usize> {
        self.control.cause(id)
    }
}

/// How the level of a result comes from those of what is read.
#[derive(Clone, Copy, Debug)]
enum Flow {
    /// The worst of them, and of this.
    Join(Level),
    /// The same for all lanes that take part: no worse than a warp's.
    Collective,
    /// What another lane holds: no longer known, where lanes differ.
    Exchange,
    /// What memory holds there: known to be alike where the address is.
    Load,
    /// This, whatever is read.
    Fixed(Level),
}

struct Analysis<'a> {
    function: &'a Function,
    cfg: &'a Cfg,
    uses: &'a Uses,
    flows: Vec<Flow>,
    /// The block of each statement.
    homes: Vec<BlockId>,
    /// The statements that read each register.
    readers: Readers,
    control: Control,
    registers: Vec<Level>,
    pending: Vec<u32>,
    queued: Vec<bool>,
}

impl<'a> Analysis<'a> {
    fn new(function: &'a Function, cfg: &'a Cfg, uses: &'a Uses, control: Control) -> Self {
        let statements = function.statements();
        let threads = ThreadIndices::new(function, uses);
        let mut flows: Vec<Flow> = statements
            .iter()
            .map(|statement| match &statement.kind {
                StatementKind::Instruction(instruction) if threads.of_warp(&instruction.op) => {
                    Flow::Fixed(Level::Warp)
                }
                StatementKind::Instruction(instruction) => flow(function, &instruction.op),
                _ => Flow::Fixed(Level::Grid),
            })
            .collect();
        for (statement, special) in &uses.specials {
            if let Flow::Join(level) = &mut flows[*statement as usize] {
                *level = (*level).max(Level::of_special(*special, function));
            }
        }
        let mut homes = vec![BlockId(0); statements.len()];
        for (i, block) in cfg.blocks().iter().enumerate() {
            homes[block.statements()].fill(BlockId(i as u32));
        }
        let mut registers = vec![Level::Grid; function.register_count() as usize];
        for param in &function.params {
            if let Param::Register(reg) = param {
                registers[reg.0 as usize] = Level::Unknown;
            }
        }
        Analysis {
            function,
            cfg,
            uses,
            flows,
            homes,
            readers: Readers::new(function.register_count() as usize, uses),
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
        let mut sources = Level::Grid;
        let mut writes = false;
        for used in list {
            if used.access != Access::Write {
                sources = sources.max(self.registers[used.reg.0 as usize]);
            }
            writes |= used.access != Access::Read;
        }
        if self.cfg.block(id).terminator == Some(statement) {
            let decision = match &instruction.op {
                Op::Bra(bra) if bra.uniform => sources.min(Level::WarpData),
                Op::BrxIdx(brx) if brx.uniform => sources.min(Level::WarpData),
                _ => sources,
            };
            let level = decision.max(self.control.level(id));
            if level > Level::Grid {
                self.divide(id, statement, level);
            }
        }
        if !writes {
            return;
        }
        let value = match self.flows[statement as usize] {
            Flow::Join(base) => sources.max(base),
            Flow::Collective => sources.min(Level::WarpData),
            Flow::Load | Flow::Exchange if sources > Level::WarpData => Level::Unknown,
            Flow::Load | Flow::Exchange => sources,
            Flow::Fixed(level) => level,
        };
        // Threads that the guard keeps from writing hold what was there before.
        let guard = instruction.guard.map_or(Level::Grid, |guard| self.registers[guard.reg.0 as usize]);
        let level = value.max(guard).max(self.control.level(id));
        for used in list.iter().filter(|used| used.access != Access::Read) {
            let held = &mut self.registers[used.reg.0 as usize];
            if level > *held {
                *held = level;
                for &reader in self.readers.of(used.reg) {
                    if !std::mem::replace(&mut self.queued[reader as usize], true) {
                        self.pending.push(reader);
                    }
                }
            }
        }
    }

    /// The branch at the end of a block takes threads apart: what depends on it is looked at again.
    fn divide(&mut self, id: BlockId, statement: u32, level: Level) {
        let Analysis { control, cfg, queued, pending, .. } = self;
        control.divide(id, statement, level, &mut |raised| {
            for statement in cfg.block(raised).statements() {
                if !std::mem::replace(&mut queued[statement], true) {
                    pending.push(statement as u32);
                }
            }
        });
    }
}

/// The statements that read each register.
struct Readers {
    offsets: Vec<u32>,
    statements: Vec<u32>,
}

impl Readers {
    fn new(registers: usize, uses: &Uses) -> Self {
        let reads = || uses.all().filter(|(_, used)| used.access != Access::Write);
        let mut offsets = vec![0u32; registers + 1];
        reads().for_each(|(_, used)| offsets[used.reg.0 as usize + 1] += 1);
        for i in 0..registers {
            offsets[i + 1] += offsets[i];
        }
        let mut next = offsets.clone();
        let mut statements = vec![0; offsets[registers] as usize];
        for (statement, used) in reads() {
            let at = &mut next[used.reg.0 as usize];
            statements[*at as usize] = statement;
            *at += 1;
        }
        Readers { offsets, statements }
    }

    fn of(&self, reg: Reg) -> &[u32] {
        &self.statements[self.offsets[reg.0 as usize] as usize..self.offsets[reg.0 as usize + 1] as usize]
    }
}

/// The registers that hold `%tid.x`, or its remainder by a power of two that is a whole number of
/// warps, and nothing else.
struct ThreadIndices {
    /// For each register; empty where there is none.
    holds: Vec<bool>,
}

impl ThreadIndices {
    fn new(function: &Function, uses: &Uses) -> Self {
        let mut found = ThreadIndices { holds: Vec::new() };
        if !uses.specials.iter().any(|(_, special)| special.register == SpecialRegister::Tid) {
            return found;
        }
        found.holds.resize(function.register_count() as usize, false);
        for instruction in function.instructions() {
            match &instruction.op {
                Op::Mov(mov) => {
                    if let (Dsts::One(reg), Srcs::One(Src::Special(special))) = (&mov.d, &mov.a)
                        && special.register == SpecialRegister::Tid
                        && special.component == Some(Component::X)
                    {
                        found.holds[reg.0 as usize] = true;
                    }
                }
                Op::And(and) if found.is_index(&and.a) => {
                    if let Src::Imm(imm) = and.b
                        && imm.bits().is_some_and(|mask| mask & 31 == 31 && mask & mask.wrapping_add(1) == 0)
                    {
                        found.holds[and.d.0.0 as usize] = true;
                    }
                }
                _ => {}
            }
        }
        let mut written = vec![false; found.holds.len()];
        for (_, used) in uses.all().filter(|(_, used)| used.access != Access::Read) {
            let i = used.reg.0 as usize;
            if std::mem::replace(&mut written[i], true) {
                found.holds[i] = false;
            }
        }
        found
    }

    fn is_index(&self, src: &Src) -> bool {
        matches!(src, Src::Reg(reg) if self.holds.get(reg.0 as usize) == Some(&true))
    }

    /// Whether an instruction computes from `%tid.x` something that is the same within a warp.
    fn of_warp(&self, op: &Op) -> bool {
        let thread = |src: &Src| self.is_index(src);
        match op {
            Op::Shr(shr) => thread(&shr.a) && matches!(shr.b, Src::Imm(Imm::Int(5..=31))),
            Op::Div(div) => thread(&div.a) && matches!(div.b, Src::Imm(Imm::Int(n)) if n > 0 && n % 32 == 0),
            Op::And(and) => {
                thread(&and.a) && matches!(and.b, Src::Imm(imm) if imm.bits().is_some_and(|n| n & 31 == 0))
            }
            Op::Setp(setp) if setp.c.is_none() && thread(&setp.a) => match (setp.cmp, &setp.b) {
                (Cmp::Lt | Cmp::Ge | Cmp::Lo | Cmp::Hs, Src::Imm(Imm::Int(n))) => n % 32 == 0,
                (Cmp::Le | Cmp::Gt | Cmp::Ls | Cmp::Hi, Src::Imm(Imm::Int(n))) => n % 32 == 31,
                _ => false,
            },
            _ => false,
        }
    }
}

/// How an instruction's result depends on what it reads.
fn flow(function: &Function, op: &Op) -> Flow {
    match op {
        Op::Shfl(shuffle) => match (shuffle.mode, &shuffle.b) {
            (ShuffleMode::Idx, Src::Imm(_)) => Flow::Collective,
            _ => Flow::Exchange,
        },
        Op::Vote(_) | Op::Redux(_) | Op::ActiveMask(_) => Flow::Collective,
        Op::Match(_) => Flow::Exchange,
        Op::Elect(_) => Flow::Fixed(Level::Lane),
        Op::Ld(load) => match load.space.map(Space::base) {
            Some(Space::Local) => Flow::Fixed(Level::Unknown),
            Some(Space::Param) if !is_kernel_parameter(function, &load.address) => {
                Flow::Fixed(Level::Unknown)
            }
            _ => Flow::Load,
        },
        Op::Call(_) => Flow::Fixed(Level::Unknown),
        _ => named_flow(op),
    }
}

fn is_kernel_parameter(function: &Function, address: &Address) -> bool {
    let kernel = function.kind == FunctionKind::Entry;
    match &address.base {
        AddressBase::Symbol(Symbol::Local(id)) => kernel && function.params.contains(&Param::Variable(*id)),
        _ => kernel,
    }
}

/// By the first word of the opcode: the families are large.
fn named_flow(op: &Op) -> Flow {
    let name = op.name();
    let root = name.split_once('.').map_or(name, |(root, _)| root);
    match root {
        "atom" | "mbarrier" | "ldmatrix" | "ldu" | "alloca" | "stacksave" => Flow::Fixed(Level::Unknown),
        "wmma" | "tcgen05" => Flow::Fixed(Level::Unknown),
        "bar" | "barrier" => Flow::Fixed(Level::Block),
        _ => Flow::Join(Level::Grid),
    }
}
