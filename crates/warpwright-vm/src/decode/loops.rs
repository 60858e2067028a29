//! What decides how a loop goes on.
//!
//! A search that never ends may count its steps: its registers never repeat, and still it does the same again and
//! again. What repeats is the part of them that the loop itself uses. For each loop of a function (a strongly connected
//! part of its graph), this finds the bits of each register on which a branch, an address, a stored value, or any other
//! effect within the loop depends. Bits that only wander on (a count that is read after the loop, the high bits of an
//! index of which the low ones are taken) are not among them.
//!
//! A lane that is at the same instruction of a loop of the kernel twice has executed nothing outside the loop in
//! between. So if the bits that the loop uses are the same, and memory is, it stays in the loop for ever.

use super::slots::{File, Slots};
use std::ops::{Range, RangeInclusive};
use warpwright_ptx::ir::*;
use warpwright_ptx::op::arith::{Add, Mad, Mul, Rem, Sub};
use warpwright_ptx::op::compare::Selp;
use warpwright_ptx::op::convert::{Cvt, Mov};
use warpwright_ptx::op::logic::{And, Not, Or, Shl, Shr, Xor};
use warpwright_ptx::op::{Access, Op};
use warpwright_ptx::verify::{BlockId, Cfg};

/// The loops of a function.
#[derive(Debug, Default)]
pub(crate) struct Loops {
    /// The instructions of each block that is in a loop, the number of the loop, and the block's first statement; in
    /// the order of the code.
    blocks: Vec<(Range<u32>, usize, u32)>,
    /// The registers that each loop names.
    registers: Vec<Vec<Used>>,
}

/// What a loop uses of a register.
#[derive(Debug)]
struct Used {
    file: File,
    row: u32,
    /// The statements at which the row is the register's.
    live: RangeInclusive<u32>,
    bits: u64,
}

/// The bits of a row that decide how a loop goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deciding {
    pub(crate) file: File,
    pub(crate) row: u32,
    pub(crate) bits: u64,
}

impl Loops {
    /// For lanes at an instruction: the rows of which only some bits decide how their loop goes on. `statement` is the
    /// instruction's, if it has one. Empty outside of loops.
    pub(crate) fn deciding(&self, pc: u32, statement: Option<u32>) -> Vec<Deciding> {
        let at = self.blocks.partition_point(|(code, ..)| code.end <= pc);
        let Some((_, number, first)) = self.blocks.get(at).filter(|(code, ..)| code.contains(&pc)) else {
            return Vec::new();
        };
        let statement = statement.unwrap_or(*first);
        let mut rows: Vec<Deciding> = Vec::new();
        for &Used { file, row, ref live, bits } in &self.registers[*number] {
            // A row that is no register's at the moment holds what nobody reads.
            let bits = if live.contains(&statement) { bits } else { 0 };
            match rows.last_mut().filter(|last| (last.file, last.row) == (file, row)) {
                Some(last) => last.bits |= bits,
                None => rows.push(Deciding { file, row, bits }),
            }
        }
        rows.retain(|deciding| deciding.bits != u64::MAX);
        rows
    }
}

/// The loops of a function; the instructions of its blocks begin at `starts`, and all end at `end`.
pub(super) fn loops(function: &Function, cfg: &Cfg, slots: &Slots, starts: &[u32], end: u32) -> Loops {
    let mut loops = Loops::default();
    for mut members in strongly_connected(cfg) {
        members.sort_unstable();
        let statements = || members.iter().flat_map(|&id| cfg.block(id).statements());
        let number = loops.registers.len();
        loops.registers.push(used(function, slots, statements));
        loops.blocks.extend(members.iter().map(|&id| {
            let after = starts.get(id.index() + 1).copied().unwrap_or(end);
            (starts[id.index()]..after, number, cfg.block(id).first)
        }));
    }
    loops.blocks.sort_unstable_by_key(|(code, ..)| code.start);
    loops
}

/// The largest sets of blocks that reach each other, but for single blocks that do not reach themselves (Kosaraju).
fn strongly_connected(cfg: &Cfg) -> Vec<Vec<BlockId>> {
    let mut seen = vec![false; cfg.blocks().len()];
    let mut sets = Vec::new();
    for &root in cfg.reverse_postorder() {
        let mut members = Vec::new();
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            if cfg.is_reachable(id) && !std::mem::replace(&mut seen[id.index()], true) {
                members.push(id);
                open.extend(cfg.predecessors(id));
            }
        }
        if members.len() > 1 || members == [root] && cfg.successors(root).contains(&root) {
            sets.push(members);
        }
    }
    sets
}

/// The registers that statements name, by rows, with the bits that have effects there. Predicates count as a whole:
/// what they depend on, a comparison for one, has an effect already.
fn used<I: Iterator<Item = usize>>(
    function: &Function,
    slots: &Slots,
    statements: impl Fn() -> I,
) -> Vec<Used> {
    let mut bits = std::collections::HashMap::new();
    let mut flows = Vec::new();
    for statement in statements() {
        let StatementKind::Instruction(instruction) = &function.statements()[statement].kind else {
            continue;
        };
        let flow = Flow::of(&instruction.op);
        let reads = if flow.is_some() { 0 } else { u64::MAX };
        instruction.op.visit(&mut |access, reg| {
            *bits.entry(reg).or_insert(0) |= if access == Access::Write { 0 } else { reads };
        });
        flows.extend(flow);
    }
    loop {
        let mut changed = false;
        for flow in flows.iter().rev() {
            let result = bits[&flow.d];
            for (src, how) in &flow.srcs {
                let now = bits.entry(*src).or_insert(0);
                changed |= how.needed(result) & !*now != 0;
                *now |= how.needed(result);
            }
        }
        if !changed {
            break;
        }
    }
    let mut used: Vec<Used> = bits
        .into_iter()
        .filter_map(|(reg, bits)| {
            let (file, row) = slots.rows[reg.0 as usize];
            let whole = if file == File::Narrow { u64::from(u32::MAX) } else { u64::MAX };
            let bits = if bits & whole == whole { u64::MAX } else { bits };
            matches!(file, File::Narrow | File::Wide).then(|| Used { file, row, live: slots.live(reg), bits })
        })
        .collect();
    used.sort_unstable_by_key(|used| (used.file == File::Wide, used.row));
    used
}

/// An instruction whose only effect is its result, of which some bits depend on some bits of its operands only.
struct Flow {
    d: Reg,
    srcs: Vec<(Reg, How)>,
}

/// The bits of an operand on which bits of a result depend.
#[derive(Clone, Copy)]
enum How {
    /// The same bits.
    Same,
    /// The same bits and those below: carries go upwards.
    Below {
        width: u32,
    },
    /// Those bits alone.
    Among(u64),
    /// Those that were shifted by so many bits.
    Left(u8),
    Right(u8),
    /// The low bits, of which the highest is repeated above where the value is signed.
    Extended {
        width: u32,
        signed: bool,
    },
    /// All of them.
    Whole,
}

/// The lowest bits.
fn low(width: u32) -> u64 {
    1u64.checked_shl(width).map_or(u64::MAX, |bit| bit - 1)
}

impl How {
    fn needed(self, result: u64) -> u64 {
        if result == 0 {
            return 0;
        }
        match self {
            How::Same => result,
            How::Below { width } => u64::MAX >> result.leading_zeros() & low(width),
            How::Among(bits) => result & bits,
            How::Left(by) => result.checked_shr(by.into()).unwrap_or(0),
            How::Right(by) => result.checked_shl(by.into()).unwrap_or(0),
            How::Extended { width, signed } => {
                let above = result & !low(width) != 0;
                result & low(width) | if signed && above { 1 << (width - 1) } else { 0 }
            }
            How::Whole => u64::MAX,
        }
    }
}

impl Flow {
    fn of(op: &Op) -> Option<Flow> {
        use How::*;
        let imm = |src: &Src| src.imm().and_then(Imm::bits);
        let below = |ty: Type| Below { width: ty.bits() };
        let (d, srcs): (Reg, [(&Src, How); 3]) = match op {
            Op::Add(Add { ty, sat: false, cc: false, d, a, b, .. })
            | Op::Sub(Sub { ty, sat: false, cc: false, d, a, b, .. })
                if ty.is_integer() =>
            {
                (d.0, [(a, below(*ty)), (b, below(*ty)), NO_OPERAND])
            }
            Op::Mul(Mul { half: Some(MulHalf::Lo | MulHalf::Wide), ty, d, a, b, .. }) => {
                (d.0, [(a, below(*ty)), (b, below(*ty)), NO_OPERAND])
            }
            Op::Mad(Mad { half: Some(MulHalf::Lo | MulHalf::Wide), cc: false, ty, d, a, b, c, .. }) => {
                (d.0, [(a, below(*ty)), (b, below(*ty)), (c, Below { width: 64 })])
            }
            Op::Rem(Rem { ty, d, a, b }) if !ty.is_signed() && imm(b).is_some_and(u64::is_power_of_two) => {
                (d.0, [(a, Among(imm(b)? - 1)), NO_OPERAND, NO_OPERAND])
            }
            Op::And(And { d, a, b, .. }) => {
                (d.0, [(a, imm(b).map_or(Same, Among)), (b, imm(a).map_or(Same, Among)), NO_OPERAND])
            }
            Op::Or(Or { d, a, b, .. }) | Op::Xor(Xor { d, a, b, .. }) => {
                (d.0, [(a, Same), (b, Same), NO_OPERAND])
            }
            Op::Not(Not { d, a, .. }) => (d.0, [(a, Same), NO_OPERAND, NO_OPERAND]),
            Op::Shl(Shl { ty, d, a, b }) => {
                let how = imm(b).and_then(|by| u8::try_from(by).ok()).map_or(below(*ty), Left);
                (d.0, [(a, how), (b, Whole), NO_OPERAND])
            }
            Op::Shr(Shr { ty, d, a, b }) if !ty.is_signed() => {
                let how = imm(b).and_then(|by| u8::try_from(by).ok()).map_or(Whole, Right);
                (d.0, [(a, how), (b, Whole), NO_OPERAND])
            }
            Op::Cvt(Cvt { sat: false, d_type, a_type, d, a, b: None, .. })
                if d_type.is_integer() && a_type.is_integer() =>
            {
                // The result fills a wider register by its own sign.
                let signed = d_type.is_signed() || a_type.is_signed();
                let width = d_type.bits().min(a_type.bits());
                (d.0, [(a, Extended { width, signed }), NO_OPERAND, NO_OPERAND])
            }
            Op::Selp(Selp { d, a, b, c, .. }) => (d.0, [(a, Same), (b, Same), (c, Whole)]),
            Op::Mov(Mov { vector: None, d: Dsts::One(d), a: Srcs::One(a), .. }) => {
                (*d, [(a, Same), NO_OPERAND, NO_OPERAND])
            }
            _ => return None,
        };
        // Where a constant is added on the way, all bits count.
        if srcs.iter().any(|(src, _)| matches!(src, Src::Sum(..))) {
            return None;
        }
        let srcs = srcs.into_iter().filter_map(|(src, how)| Some((src.reg()?, how))).collect();
        Some(Flow { d, srcs })
    }
}

const NO_OPERAND: (&Src, How) = (&Src::Sink, How::Same);
