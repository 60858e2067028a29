//! Decoded code: the executable form of a module.

use super::loops::Loops;
use super::slots::{File, Slots};
use crate::machine::{Base, Inst, LANES, Machine, Registers, Step};
use crate::memory::{MemoryOp, RANK_BITS};
use crate::native::Operation;
use crate::op::special::{Constancy, WarpPlace};
use std::fmt;
use warpwright_ptx::ir::{Origin, Special, VarId};

/// What a decoded instruction came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meta {
    /// Index of the function in the code.
    pub(crate) function: u32,
    /// Index of the statement in its body, or [`NO_STATEMENT`].
    pub(crate) statement: u32,
    pub(crate) origin: Origin,
    /// The place in [`Code::opcodes`] of what is counted here; `None` where another one of those that its
    /// statement became counts, or nothing does.
    pub(crate) opcode: Option<u16>,
}

/// The instruction was made by the decoder: reconvergence points, ends of functions.
pub(crate) const NO_STATEMENT: u32 = u32::MAX;

/// A handler that carries data.
pub(crate) type Boxed = Box<dyn for<'a> Fn(&mut Machine<'a>, &Inst) -> Step + Send + Sync>;

/// Where a parameter or a return value of a device function is, or what a call passes for it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ParamSlot {
    /// In the frame's memory: offset and size in bytes.
    Memory { offset: u32, bytes: u32 },
    /// In a register of up to 32 bits.
    Narrow(u32),
    /// In a register of 64 bits.
    Wide(u32),
    /// In a register of 128 bits: two rows.
    Double(u32),
    /// In a predicate register.
    Predicate(u32),
}

impl ParamSlot {
    /// A register, by its file and row.
    pub(crate) fn register((file, row): (File, u32)) -> Self {
        match file {
            File::Narrow => ParamSlot::Narrow(row),
            File::Wide => ParamSlot::Wide(row),
            File::Double => ParamSlot::Double(row),
            File::Predicate => ParamSlot::Predicate(row),
        }
    }
}

/// A function, decoded.
#[derive(Debug, Default)]
pub(crate) struct FunctionCode {
    pub(crate) name: String,
    /// Its first instruction.
    pub(crate) entry: u32,
    /// Where returns go: the end of the function.
    pub(crate) exit: u32,
    /// Rows of its frame.
    pub(crate) rows: Base,
    /// 32-bit registers that its variables take, by liveness; rows of constants are not among them.
    pub(crate) registers: u32,
    pub(crate) constants32: Vec<(u32, u32)>,
    pub(crate) constants64: Vec<(u32, u64)>,
    /// Rows of addresses of shared variables: their constants are those in a block of rank 0.
    pub(crate) shared32: Vec<(u32, u32)>,
    pub(crate) shared64: Vec<(u32, u64)>,
    pub(crate) constant_predicates: Vec<(u32, bool)>,
    /// Rows of special registers that stay the same while a warp runs.
    pub(crate) specials: Vec<(u32, Special)>,
    /// Rows of registers that may be read before they are written.
    pub(crate) unassigned32: Vec<u32>,
    pub(crate) unassigned64: Vec<u32>,
    pub(crate) unassigned_predicates: Vec<u32>,
    /// Bytes of its frame's memory.
    pub(crate) local_bytes: u32,
    /// The variables in it: offset and size.
    pub(crate) local_regions: Vec<(u64, u64)>,
    /// Whether it asks where the shared memory is that CUDA reserves.
    pub(crate) reserved_shared: bool,
    /// Whether it asks where a cooperative grid has its barrier.
    pub(crate) grid_barrier: bool,
    /// Which they are.
    pub(crate) local_variables: Vec<VarId>,
    /// Where its registers are.
    pub(crate) slots: Slots,
    /// Number of its statements.
    pub(crate) statements: u32,
    pub(crate) params: Vec<ParamSlot>,
    pub(crate) returns: Vec<ParamSlot>,
    /// A kernel's; empty for other functions.
    pub(crate) loops: Loops,
}

impl FunctionCode {
    /// Sets what is constant in the frame of a kernel, for a warp that begins. `prepared`: it was for another block of the
    /// launch, which had the same rank.
    pub(crate) fn start(&self, registers: &mut Registers, place: WarpPlace<'_>, prepared: bool) {
        if !prepared {
            return self.enter(registers, place, u32::MAX);
        }
        for &(row, special) in &self.specials {
            if Constancy::of(special.register) == Constancy::Block {
                registers.set32(row, &place.words(special), u32::MAX);
            }
        }
    }

    /// Makes room for the frame at the current base, and sets its constants for the lanes of the mask.
    pub(crate) fn enter(&self, registers: &mut Registers, place: WarpPlace<'_>, mask: u32) {
        registers.reserve(registers.base, self.rows);
        for &(row, special) in &self.specials {
            registers.set32(row, &place.words(special), mask);
        }
        let rank = place.block.rank;
        for &(row, address) in &self.shared32 {
            registers.set32(row, &[address.wrapping_add(rank << RANK_BITS); LANES], mask);
        }
        for &(row, address) in &self.shared64 {
            let address = address.wrapping_add(u64::from(rank) << RANK_BITS);
            registers.set64(row, &[address; LANES], mask);
        }
        for &(row, value) in &self.constants32 {
            registers.set32(row, &[value; LANES], mask);
        }
        for &(row, value) in &self.constants64 {
            registers.set64(row, &[value; LANES], mask);
        }
        for &(row, value) in &self.constant_predicates {
            registers.set_predicate(row, if value { u32::MAX } else { 0 }, mask);
        }
    }

    /// Gives registers that may be read before they are written a value that is always the same.
    pub(crate) fn clear_unassigned(&self, registers: &mut Registers) {
        self.clear_unassigned_lanes(registers, u32::MAX);
    }

    /// The same for some lanes.
    pub(crate) fn clear_unassigned_lanes(&self, registers: &mut Registers, mask: u32) {
        for &row in &self.unassigned32 {
            registers.set32(row, &[0; LANES], mask);
        }
        for &row in &self.unassigned64 {
            registers.set64(row, &[0; LANES], mask);
        }
        for &row in &self.unassigned_predicates {
            registers.set_predicate(row, 0, mask);
        }
    }

    /// Rows of local memory that a kernel needs for its own frame.
    pub(crate) fn local_words(&self) -> usize {
        self.local_bytes.div_ceil(4) as usize
    }
}

/// An instruction that the virtual GPU does not support: a launch that reaches it ends with a trap.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unsupported {
    /// The function that contains it.
    pub function: String,
    /// Index of its statement in the function.
    pub statement: u32,
    /// Its origin.
    pub origin: Origin,
    /// The instruction, and possible replacements.
    pub message: String,
}

/// A module, decoded.
#[derive(Default)]
pub(crate) struct Code {
    pub(crate) insts: Vec<Inst>,
    /// For each instruction, where it came from.
    pub(crate) meta: Vec<Meta>,
    /// What the compiler of native code knows of instructions, in their order.
    pub(crate) operations: Vec<(u32, Operation)>,
    /// Native code, as far as it was compiled.
    pub(crate) native: crate::native::Functions,
    /// The opcodes that are counted, each once.
    pub(crate) opcodes: Vec<&'static str>,
    pub(crate) functions: Vec<FunctionCode>,
    /// Loads and stores.
    pub(crate) memory: Vec<MemoryOp>,
    /// Handlers that carry data.
    pub(crate) boxed: Vec<Boxed>,
    /// Matrix products, and what else moves matrices.
    pub(crate) matrix: crate::op::matrix::Tables,
    /// Targets of indirect branches.
    pub(crate) tables: Vec<Vec<u32>>,
    /// What is not executed.
    pub(crate) unsupported: Vec<Unsupported>,
    /// Where instructions begin about which some device assumes something, in order.
    pub(crate) assumed: Vec<u32>,
    /// There are loads that are not coherent.
    pub(crate) non_coherent: bool,
    /// There are accesses by the asynchronous proxy.
    pub(crate) async_proxy: bool,
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code")
            .field("instructions", &self.insts.len())
            .field("functions", &self.functions)
            .finish()
    }
}
