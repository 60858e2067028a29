//! How the results of each instruction depend on its operands.

use warpwright_ptx::ir::*;
use warpwright_ptx::op::Op;
use warpwright_ptx::op::family::{Compare, Control, Convert, Family, Logic, Memory, Sums};

/// How the results of an instruction depend on its operands.
pub(super) enum Flow {
    /// Each bit of the results is one bit of these operands, or does not depend on them. Others control which.
    Moves(Vec<Reg>),
    /// Each bit of the results depends on one bit of each operand at most.
    Bitwise,
    /// A bit of the result depends on those of the operands up to its place.
    Carries,
    /// In whatever way, but on nothing else.
    Computes,
    /// The operands decide about more than the results.
    Uses,
    Load,
    Store(Option<Reg>),
    Call,
}

fn registers<'a>(sources: impl IntoIterator<Item = &'a Src>) -> Vec<Reg> {
    let register = |src: &Src| match src {
        Src::Reg(reg) => Some(*reg),
        _ => None,
    };
    sources.into_iter().filter_map(register).collect()
}

/// What an instruction does.
pub(super) fn flow(op: &Op) -> Flow {
    match op.family() {
        Family::Logic(op) => match op {
            Logic::And(_) | Logic::Or(_) | Logic::Xor(_) | Logic::Not(_) | Logic::Brev(_) => Flow::Bitwise,
            Logic::Lop3(op) if op.q.is_none() => Flow::Bitwise,
            Logic::Shl(op) => Flow::Moves(registers([&op.a])),
            Logic::Shr(op) => Flow::Moves(registers([&op.a])),
            Logic::Shf(op) => Flow::Moves(registers([&op.a, &op.b])),
            Logic::Bfe(op) => Flow::Moves(registers([&op.a])),
            Logic::Bfi(op) => Flow::Moves(registers([&op.a, &op.b])),
            Logic::Prmt(op) => Flow::Moves(registers([&op.a, &op.b])),
            _ => Flow::Computes,
        },
        Family::Compare(op) => match op {
            Compare::Selp(_) => Flow::Bitwise,
            Compare::Slct(op) => Flow::Moves(registers([&op.a, &op.b])),
            Compare::Setp(_) | Compare::Set(_) => Flow::Computes,
        },
        Family::Convert(op) => match op {
            Convert::Mov(op) if !op.a.as_slice().iter().any(|src| matches!(src, Src::Sum(..))) => {
                Flow::Moves(registers(op.a.as_slice()))
            }
            Convert::Cvt(op) if !op.sat && [op.d_type, op.a_type].iter().all(|ty| ty.is_integer()) => {
                Flow::Moves(registers([&op.a]))
            }
            _ => Flow::Computes,
        },
        Family::Sums(Sums::Add(op)) if !op.sat && op.ty.is_integer() => Flow::Carries,
        Family::Sums(Sums::Sub(op)) if !op.sat && op.ty.is_integer() => Flow::Carries,
        Family::Sums(_)
        | Family::Products(_)
        | Family::Functions(_)
        | Family::Signs(_)
        | Family::Extrema(_)
        | Family::Video(_) => Flow::Computes,
        Family::Memory(Memory::Ld(_) | Memory::Ldu(_)) => Flow::Load,
        Family::Memory(Memory::St(op)) => Flow::Store(match op.address.base {
            AddressBase::Reg(reg) => Some(reg),
            _ => None,
        }),
        Family::Control(Control::Call(_)) => Flow::Call,
        _ => Flow::Uses,
    }
}
