//! Uniformity of an instruction's results over threads: the vocabulary of its rule.
//!
//! A rule takes the [`Operands`] of one instruction and returns the [`Level`] of its results. Rules shared by many
//! instructions are functions here, which `instruction!` can use by name.
//!
//! A rule holds for threads that execute the instruction under the same control flow; the verifier adds the effects
//! of branches, loops and guards.

use crate::ir::*;

/// The threads that agree on a value, or on whether they run a block. Smaller is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Level {
    /// All threads of the grid.
    #[default]
    Grid,
    /// All threads of a cluster.
    Cluster,
    /// All threads of a block; blocks differ.
    Block,
    /// All threads of a block; it is unknown whether blocks differ.
    BlockData,
    /// All threads of a warp; warps differ.
    Warp,
    /// All threads of a warp; it is unknown whether warps differ.
    WarpData,
    /// None: it depends on the lane.
    Lane,
    /// Unknown: it depends on data.
    Unknown,
}

impl Level {
    /// All levels, the best first.
    pub const ALL: [Level; 8] = [
        Level::Grid,
        Level::Cluster,
        Level::Block,
        Level::BlockData,
        Level::Warp,
        Level::WarpData,
        Level::Lane,
        Level::Unknown,
    ];

    /// The level of a special register. `function` may fix the shape of the block; in a dimension of one thread, all
    /// threads have the same index.
    pub fn of_special(special: Special, function: &Function) -> Level {
        let axis = match (special.register, special.component) {
            (SpecialRegister::Tid, Some(Component::X)) => 0,
            (SpecialRegister::Tid, Some(Component::Y)) => 1,
            (SpecialRegister::Tid, Some(Component::Z)) => 2,
            // It is zero.
            (_, Some(Component::W)) => return Level::Grid,
            _ => return special.register.level(),
        };
        let one = function.directives.iter().any(|directive| match directive {
            FunctionDirective::ReqNtid(dims) | FunctionDirective::MaxNtid(dims) => {
                dims.get(axis).copied().unwrap_or(1) == 1
            }
            _ => false,
        });
        if one { Level::Grid } else { Level::Lane }
    }

    /// Whether it is unknown that threads disagree.
    pub fn is_undecided(self) -> bool {
        matches!(self, Level::BlockData | Level::WarpData | Level::Unknown)
    }

    /// The threads that agree, in words.
    pub fn description(self) -> &'static str {
        match self {
            Level::Grid => "the same for the whole grid",
            Level::Cluster => "the same within a cluster",
            Level::Block => "the same within a block",
            Level::BlockData => "the same within a block, and dependent on data",
            Level::Warp => "the same within a warp, and different from warp to warp",
            Level::WarpData => "the same within a warp, and dependent on data",
            Level::Lane => "different from lane to lane",
            Level::Unknown => "dependent on data",
        }
    }
}

/// A result whose level differs from that of the instruction's other results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Apart {
    /// Its register.
    pub reg: Reg,
    /// Its level.
    pub level: Level,
}

/// The known levels of an instruction's operands.
#[derive(Clone, Copy, Debug)]
pub struct Operands<'a> {
    /// The function that contains the instruction.
    pub function: &'a Function,
    /// The level of each register of the function.
    pub registers: &'a [Level],
    /// The worst level of everything that is read: registers, special registers and the carry flag.
    pub all: Level,
    /// For each register, whether it only ever holds `%tid.x`, or its remainder by a power of two that is a whole
    /// number of warps; empty if no register does.
    pub thread_indices: &'a [bool],
}

impl Operands<'_> {
    /// The level of one of the operands.
    pub fn of(&self, src: &Src) -> Level {
        match src {
            Src::Reg(reg) | Src::Not(reg) | Src::Sum(reg, _) => self.registers[reg.0 as usize],
            Src::Element(element) => self.registers[element.index.0 as usize],
            Src::Special(special) => Level::of_special(*special, self.function),
            Src::Imm(_) | Src::Symbol(_) | Src::Sink => Level::Grid,
        }
    }

    /// Whether an operand is `%tid.x`, or its remainder by a whole number of warps.
    pub fn is_thread_index(&self, src: &Src) -> bool {
        match src {
            Src::Reg(reg) => self.thread_indices.get(reg.0 as usize) == Some(&true),
            Src::Special(special) => {
                special.register == SpecialRegister::Tid && special.component == Some(Component::X)
            }
            Src::Not(_) | Src::Sum(..) | Src::Imm(_) | Src::Symbol(_) | Src::Element(_) | Src::Sink => false,
        }
    }

    /// The level of a value computed from `src` and constants. If `src` is a thread's index and `by_warp` says that
    /// all lanes of a warp get the same result, it is the warp's, since rows of a block are whole warps.
    pub fn of_thread(&self, src: &Src, by_warp: bool) -> Level {
        if by_warp && self.is_thread_index(src) { Level::Warp } else { self.all }
    }

    /// The level of a value that the operands locate, in memory or in another lane: the operands are its address, not
    /// its contents. It is uniform where they are.
    pub fn found(&self) -> Level {
        if self.all > Level::WarpData { Level::Unknown } else { self.all }
    }

    /// The level of a value that lanes of a warp compute together, the same for all of them: the lanes that `agreed`
    /// names, which must itself be uniform.
    pub fn together(&self, agreed: &[&Src]) -> Level {
        if agreed.iter().all(|src| self.of(src) <= Level::WarpData) {
            self.all.min(Level::WarpData)
        } else {
            Level::Unknown
        }
    }

    /// Whether an address in the parameter space is one of a kernel's, which no thread writes.
    pub fn is_kernel_parameter(&self, address: &Address) -> bool {
        let kernel = self.function.kind == FunctionKind::Entry;
        match address.base.symbol() {
            Some(Symbol::Local(id)) => kernel && self.function.params.contains(&Param::Variable(*id)),
            _ => kernel,
        }
    }
}

/// The same operands give the same result, and nothing else has a part in it.
pub(crate) fn pointwise<T>(_: &T, operands: &Operands<'_>) -> Level {
    operands.all
}

/// Nothing is written to a register.
pub(crate) fn nothing<T>(_: &T, _: &Operands<'_>) -> Level {
    Level::Unknown
}

/// Something else than the operands has a part in the result: memory that others change, time, or the place
/// of the lane in a matrix that lies over the warp.
pub(crate) fn unknown<T>(_: &T, _: &Operands<'_>) -> Level {
    Level::Unknown
}

/// The operands locate the result, in memory that does not change meanwhile.
pub(crate) fn found<T>(_: &T, operands: &Operands<'_>) -> Level {
    operands.found()
}
