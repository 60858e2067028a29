//! How the results of each instruction depend on its operands.

use warpwright_ptx::ir::*;
use warpwright_ptx::op::Op;
use warpwright_ptx::op::family::{
    Compare, Control, Convert, Extrema, Family, Functions, Logic, Memory, Products, Signs, Sums, Tcgen05,
    Warp,
};

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
    /// The same for each of the elements that a register holds, of so many bits.
    Elements(u32),
    /// The operands decide about more than the results.
    Uses,
    Load,
    /// To an address in this register.
    Store(Option<Reg>),
    /// From lane to lane, as these say.
    Shuffle(Vec<Reg>),
    Call,
}

fn registers<'a>(sources: impl IntoIterator<Item = &'a Src>) -> Vec<Reg> {
    let register = |src: &Src| match src {
        Src::Reg(reg) => Some(*reg),
        _ => None,
    };
    sources.into_iter().filter_map(register).collect()
}

fn computes(ty: Type) -> Flow {
    match ty {
        Type::U8X4 | Type::S8X4 => Flow::Elements(8),
        Type::F16X2 | Type::BF16X2 | Type::U16X2 | Type::S16X2 => Flow::Elements(16),
        Type::F32X2 => Flow::Elements(32),
        _ => Flow::Computes,
    }
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
            Compare::Setp(op) => computes(op.ty),
            Compare::Set(op) => computes(op.ty),
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
        Family::Sums(Sums::Add(op)) => computes(op.ty),
        Family::Sums(Sums::Sub(op)) => computes(op.ty),
        Family::Products(Products::Mul(op)) => computes(op.ty),
        Family::Products(Products::Fma(op)) => computes(op.ty),
        Family::Functions(Functions::Ex2(op)) => computes(op.ty),
        Family::Functions(Functions::Tanh(op)) => computes(op.ty),
        Family::Signs(Signs::Abs(op)) => computes(op.ty),
        Family::Signs(Signs::Neg(op)) => computes(op.ty),
        Family::Extrema(Extrema::Min(op)) => computes(op.ty),
        Family::Extrema(Extrema::Max(op)) => computes(op.ty),
        Family::Sums(_)
        | Family::Products(_)
        | Family::Functions(_)
        | Family::Signs(_)
        | Family::Video(_) => Flow::Computes,
        Family::Memory(Memory::Ld(_) | Memory::Ldu(_) | Memory::MultimemLdReduce(_)) => Flow::Load,
        Family::Memory(Memory::St(op)) => Flow::Store(register_of(&op.address)),
        Family::Memory(Memory::MultimemSt(op)) => Flow::Store(register_of(&op.address)),
        Family::Warp(Warp::Shfl(op)) => Flow::Shuffle(registers([&op.b, &op.c, &op.mask])),
        Family::Warp(Warp::ShflNoSync(op)) => Flow::Shuffle(registers([&op.b, &op.c])),
        Family::Control(Control::Call(_)) => Flow::Call,
        // What is in tensor memory counts as defined.
        Family::Tcgen05(Tcgen05::Tcgen05St(op)) => Flow::Moves(registers(op.a.as_slice())),
        _ => Flow::Uses,
    }
}

/// The register that an address is computed from.
fn register_of(address: &Address) -> Option<Reg> {
    match address.base {
        AddressBase::Reg(reg) => Some(reg),
        AddressBase::Element(ref element) => Some(element.index),
        _ => None,
    }
}
