//! Kernels built with checked pointers: each access to global memory is compared with the size of its argument, and
//! the kernel traps before it leaves it.
//!
//! Such a kernel stays within its arguments even if its author promises nothing. The build refuses what it cannot
//! check: addresses that belong to no argument, tables in global memory, calls with records, raw instructions
//! ([`K::op`](super::K::op)), and any memory instruction that is not listed here.
//!
//! ```text
//!     sub.u64   offset, address, base        of the access, in the buffer
//!     setp.ge   p, offset, bytes
//!     sub.u64   rest, bytes, offset
//!     setp.lt.or p, rest, size, p
//!     @p trap
//! ```

use super::any::AnyKernel;
use super::emit;
use super::kernel::{build_with, check_args};
use super::state::{Base, BlockId, Def, Inst, Loc, Node, POISON, State};
use super::{ArgDesc, BuildError, Built};
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::{Address, AddressBase, Arch, BoolOp, Cmp, DstPair, Imm, Reg, Space, Src, Type};
use warpwright_ptx::op::family::{self, Family};
use warpwright_ptx::op::{Op, compare::Setp, control, logic};

/// Builds a kernel with checked pointers, for devices that do not check accesses. It accesses global memory only
/// inside the buffers among its arguments, up to the lengths of [`ArgDesc::len`], and traps where it would leave
/// them. After the parameters of its arguments, the module has one `u64` parameter for each buffer, in order: the
/// buffer's length in bytes. The function also returns the arguments that were built, for the launch.
///
/// # Errors
/// Those of [`AnyKernel::build`], and an error where an access cannot be checked.
#[track_caller]
pub fn build_checked(
    kernel: &(impl AnyKernel + ?Sized),
    target: Arch,
) -> Result<(Built, Vec<ArgDesc>), BuildError> {
    kernel.check()?;
    let args = kernel.args();
    let built = build_with(&kernel.entry(), &kernel.launch(), target, Some(&args), true, |k| kernel.body(k))?;
    check_args(&args, &built, true)?;
    Ok((built, args))
}

/// What ends the names of parameters that no argument has.
const BYTES: &str = "$bytes";

/// The name of the parameter that says how many bytes a buffer has.
pub(super) fn bytes_of(buffer: &str) -> String {
    format!("{buffer}{BYTES}")
}

/// The name of the parameter with the byte length of a buffer, or of any other parameter.
pub(super) fn without_bytes(name: &str) -> &str {
    name.strip_suffix(BYTES).unwrap_or(name)
}

/// How far accesses to a pointer's memory may go: its base, and the register with the bytes from there on.
pub(super) type Bounds = Vec<(Reg, Reg)>;

/// What is to be checked of an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    base: Reg,
    bytes: Reg,
    /// Bytes of the access.
    size: u32,
    /// The register that says how many bytes are read after all, if one does.
    read: Option<Reg>,
}

/// What an instruction does with global memory.
enum Touches<'a> {
    /// Nothing.
    Nothing,
    /// An access to some bytes.
    Bytes(&'a Address, u32, Option<Reg>),
    /// It is not known here.
    Unknown,
}

fn is_local(space: Option<Space>) -> bool {
    matches!(space.map(Space::base), Some(Space::Shared | Space::Local | Space::Param | Space::Const))
}

fn touches(op: &Op) -> Touches<'_> {
    use Touches::*;
    let bytes = |space, address, ty: Type, lanes: Option<usize>| match is_local(space) {
        true => Nothing,
        false => Bytes(address, ty.bytes() * lanes.unwrap_or(1) as u32, None),
    };
    match op {
        Op::Ld(op) => bytes(op.space, &op.address, op.ty, op.vector.map(|vector| vector.elements())),
        Op::St(op) => bytes(op.space, &op.address, op.ty, op.vector.map(|vector| vector.elements())),
        Op::Atom(op) => bytes(op.space, &op.address, op.ty, op.vector.map(|vector| vector.elements())),
        Op::AtomCas(op) => bytes(op.space, &op.address, op.ty, None),
        Op::Red(op) => bytes(op.space, &op.address, op.ty, op.vector.map(|vector| vector.elements())),
        Op::CpAsync(op) => match (&op.size, &op.source_size) {
            (Src::Imm(Imm::Int(size)), None) => Bytes(&op.from, *size as u32, None),
            (Src::Imm(Imm::Int(size)), Some(Src::Reg(read))) => Bytes(&op.from, *size as u32, Some(*read)),
            _ => Unknown,
        },
        Op::Prefetch(op) => bytes(op.space, &op.address, Type::B8, None),
        op if computes(op) => Nothing,
        _ => Unknown,
    }
}

/// Whether an instruction touches no memory but shared memory of the block.
fn computes(op: &Op) -> bool {
    match op.family() {
        Family::Sums(_)
        | Family::Products(_)
        | Family::Functions(_)
        | Family::Signs(_)
        | Family::Extrema(_)
        | Family::Logic(_)
        | Family::Compare(_)
        | Family::Convert(_) => true,
        Family::Control(op) => {
            use family::Control::*;
            matches!(op, Bra(_) | BrxIdx(_) | Ret(_) | Exit(_) | Trap(_) | Brkpt(_) | Griddepcontrol(_))
        }
        Family::Sync(op) => {
            use family::Sync::*;
            let barrier = matches!(op, BarSync(_) | BarArrive(_) | BarRed(_) | BarWarpSync(_));
            let aligned = matches!(op, BarrierSync(_) | BarrierArrive(_) | BarrierRed(_));
            barrier || aligned || matches!(op, Membar(_) | Fence(_) | Nanosleep(_))
        }
        Family::Warp(op) => !matches!(op, family::Warp::ShflNoSync(_) | family::Warp::VoteNoSync(_)),
        Family::AsyncCopy(op) => {
            use family::AsyncCopy::*;
            matches!(op, CpAsyncCommitGroup(_) | CpAsyncWaitGroup(_) | CpAsyncWaitAll(_))
        }
        Family::Matrix(family::Matrix::Ldmatrix(op)) => is_local(op.space),
        Family::Matrix(family::Matrix::Stmatrix(op)) => is_local(op.space),
        Family::Matrix(_) => true,
        Family::Wmma(op) => matches!(op, family::Wmma::WmmaMma(_)),
        _ => false,
    }
}

impl State {
    /// Finds the accesses to check of each instruction, by its number; an access that cannot be checked is a mistake.
    pub(super) fn find_checks(&mut self) {
        let Some(bounds) = self.bounds.clone() else { return };
        self.checks = vec![None; self.insts.len()];
        for inst in 0..self.insts.len() {
            let loc = self.insts[inst].loc;
            let (address, size, read) = match touches(&self.ops[inst]) {
                Touches::Nothing => continue,
                Touches::Bytes(address, size, read) => (address.base.clone(), size, read),
                Touches::Unknown => {
                    let message = "an instruction on memory that checked pointers do not know";
                    self.mistake(Code::Parameter, loc, message);
                    continue;
                }
            };
            let pointer = match address {
                AddressBase::Reg(reg) => match self.values.get(reg.0 as usize).map(|value| value.def) {
                    Some(Def::Address(pointer)) => {
                        self.pointers.get(pointer as usize).map(|pointer| pointer.base)
                    }
                    _ => None,
                },
                _ => None,
            };
            let found = match pointer {
                Some(Base::Reg(base)) => bounds.iter().find(|(known, _)| *known == base),
                _ => None,
            };
            match found {
                Some(&(base, bytes)) => self.checks[inst] = Some(Check { base, bytes, size, read }),
                None => {
                    let message = "an access with checked pointers that is to no argument of the kernel";
                    self.mistake(Code::Parameter, loc, message);
                }
            }
        }
    }

    /// Appends the check of an access at an address, and the trap behind it.
    pub(super) fn emit_check(
        &mut self,
        check: Check,
        inst: Inst,
        address: &Address,
        block: BlockId,
        loc: Loc,
    ) {
        let AddressBase::Reg(at) = address.base else { return };
        let Check { base, bytes, size, read } = check;
        let int = |value: i64| Src::Imm(Imm::Int(value));
        let before = self.pure_in(block, Type::U64, loc, |d| emit::sub(Type::S64, d, at.into(), base.into()));
        let offset = match address.offset {
            0 => before,
            more => {
                self.pure_in(block, Type::U64, loc, |d| emit::add(Type::S64, d, before.into(), int(more)))
            }
        };
        let behind = self.pure_in(block, Type::Pred, loc, |d| {
            emit::setp(Cmp::Ge, Type::U64, d, offset.into(), bytes.into())
        });
        let rest =
            self.pure_in(block, Type::U64, loc, |d| emit::sub(Type::S64, d, bytes.into(), offset.into()));
        let mut outside = self.pure_in(block, Type::Pred, loc, |d| {
            let (cmp, bool_op, c) = (Cmp::Lt, Some(BoolOp::Or), Some(Src::Reg(behind)));
            let d = DstPair { first: Some(d), second: None };
            Setp { cmp, bool_op, ftz: false, ty: Type::U64, d, a: rest.into(), b: int(size.into()), c }.into()
        });
        let mut both = |state: &mut State, other: Reg| {
            outside = state
                .pure_in(block, Type::Pred, loc, |d| emit::and(Type::Pred, d, outside.into(), other.into()));
        };
        if let Some(read) = read {
            let any = self
                .pure_in(block, Type::Pred, loc, |d| emit::setp(Cmp::Ne, Type::U32, d, read.into(), int(0)));
            both(self, any);
        }
        if let Some((guard, negated)) = inst.guard {
            let holds = match negated {
                false => guard,
                true => self.pure_in(block, Type::Pred, loc, |d| {
                    logic::Not { ty: Type::Pred, d: warpwright_ptx::ir::Dst(d), a: guard.into() }.into()
                }),
            };
            both(self, holds);
        }
        let trap = self.push_inst(control::Trap {}, Some((outside, false)), POISON, loc);
        self.blocks[block.0 as usize].nodes.push(Node::Inst(trap));
        self.checks.resize(self.insts.len(), None);
    }
}
