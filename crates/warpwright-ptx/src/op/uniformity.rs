//! How alike the threads' results of an instruction are: the vocabulary of its rule.
//!
//! A rule takes the [`Operands`] of one instruction and says the [`Level`] of what it writes. The rules that
//! many instructions have are functions here, and `instruction!` sees them by their names.
//!
//! What a rule says holds for threads that execute the instruction under the same control flow; what
//! branches, loops and guards add to it is the verifier's part.

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
    /// All threads of a block; whether blocks differ is not known.
    BlockData,
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

    /// The level of a special register. `function` may fix the shape of the block, so that a
    /// dimension of one thread has one index.
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

    /// Whether it is not known that threads disagree.
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

/// A result that is more or less alike than the others of its instruction are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Apart {
    /// Where it is written.
    pub reg: Reg,
    /// How alike it is.
    pub level: Level,
}

/// What is known of what an instruction reads.
#[derive(Clone, Copy, Debug)]
pub struct Operands<'a> {
    /// The function that the instruction is in.
    pub function: &'a Function,
    /// The level of each register of the function.
    pub registers: &'a [Level],
    /// The level of the worst that is read: registers, special registers and the carry flag.
    pub all: Level,
    /// For each register whether it holds `%tid.x`, or its remainder by a power of two that is a whole number
    /// of warps, and nothing else; empty where none does.
    pub thread_indices: &'a [bool],
}

impl Operands<'_> {
    /// The level of one of the operands.
    pub fn of(&self, src: &Src) -> Level {
        match src {
            Src::Reg(reg) | Src::Not(reg) => self.registers[reg.0 as usize],
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
            Src::Not(_) | Src::Imm(_) | Src::Symbol(_) | Src::Sink => false,
        }
    }

    /// What is computed of `src` and constants: where `src` is a thread's index and `by_warp` says that the
    /// lanes of a warp come to the same, as rows of a block are whole warps, it is the warp's.
    pub fn of_thread(&self, src: &Src, by_warp: bool) -> Level {
        if by_warp && self.is_thread_index(src) { Level::Warp } else { self.all }
    }

    /// What is found by the operands, in memory or in another lane: they tell where, not what. It is alike
    /// where they are.
    pub fn found(&self) -> Level {
        if self.all > Level::WarpData { Level::Unknown } else { self.all }
    }

    /// What lanes of a warp make of their values together, the same for all of them: those that `agreed`
    /// names, which must itself be alike.
    pub fn together(&self, agreed: &[&Src]) -> Level {
        if agreed.iter().all(|src| self.of(src) <= Level::WarpData) {
            self.all.min(Level::WarpData)
        } else {
            Level::Unknown
        }
    }

    /// Whether an address in the space of parameters is one of a kernel's, which no thread writes.
    pub fn is_kernel_parameter(&self, address: &Address) -> bool {
        let kernel = self.function.kind == FunctionKind::Entry;
        match &address.base {
            AddressBase::Symbol(Symbol::Local(id)) => {
                kernel && self.function.params.contains(&Param::Variable(*id))
            }
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

/// The operands say where the result is found, in memory that nobody changes meanwhile.
pub(crate) fn found<T>(_: &T, operands: &Operands<'_>) -> Level {
    operands.found()
}
