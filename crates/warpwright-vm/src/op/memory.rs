//! Loads and stores.

use crate::decode::{Decoder, File, Rows};
use crate::machine::{Inst, Machine, Step};
use crate::memory::{Element, MemoryOp, Order, SpaceKind};
use crate::simd::{LaneOp, lanes};
use warpwright_ptx::ir::*;
use warpwright_ptx::op::Op;

pub(crate) fn decode(op: &Op, d: &mut Decoder<'_, '_>) -> bool {
    match op {
        Op::Ld(ld) => {
            let order = Order {
                proposes: d.is_proposing_load(),
                non_coherent: ld.nc,
                ..order(ld.semantics, ld.scope, ld.mmio)
            };
            d.code.non_coherent |= ld.nc;
            emit_load(d, &ld.d, ld.ty, (ld.space, &ld.address), order);
        }
        Op::Ldu(ld) => emit_load(d, &ld.d, ld.ty, (ld.space, &ld.address), Order::WEAK),
        Op::St(st) => {
            let order = order(st.semantics, st.scope, st.mmio);
            let op = MemoryOp {
                address: d.address(&st.address),
                space: space(d, st.space, &st.address),
                bytes: st.ty.bytes(),
                elements: st.a.as_slice().iter().map(|src| source(d, src, st.ty)).collect(),
                signed: false,
                order,
            };
            let x = d.code.memory.len() as u32;
            d.code.memory.push(op);
            d.emit(lanes::<Store>(), Rows { x, ..Rows::default() });
        }
        Op::Prefetch(_) | Op::Prefetchu(_) | Op::ApplyPriority(_) | Op::Discard(_) => {
            d.emit_handler(|_, _| Step::Next, Rows::default());
        }
        Op::CreatePolicyFractional(op) => policy(d, op.d),
        Op::CreatePolicyRange(op) => policy(d, op.d),
        Op::CreatePolicyCvt(op) => policy(d, op.d),
        _ => return false,
    }
    true
}

/// A cache policy says how long data is kept, which changes no result: it is zero.
fn policy(d: &mut Decoder<'_, '_>, dst: Dst) {
    let a = d.constant64(0);
    let rows = Rows { d: d.dst(dst), a, ..Rows::default() };
    d.emit(lanes::<super::convert::Copy64>(), rows);
}

struct Load;

impl LaneOp for Load {
    #[inline(always)]
    fn run(m: &mut Machine<'_>, i: &Inst) -> Step {
        let launch = m.launch;
        m.load(&launch.code.memory[i.x as usize]);
        Step::Next
    }
}

struct Store;

impl LaneOp for Store {
    #[inline(always)]
    fn run(m: &mut Machine<'_>, i: &Inst) -> Step {
        let launch = m.launch;
        m.store(&launch.code.memory[i.x as usize]);
        Step::Next
    }
}

fn emit_load(
    d: &mut Decoder<'_, '_>,
    to: &Dsts,
    ty: Type,
    (from, address): (Option<Space>, &Address),
    order: Order,
) {
    let op = MemoryOp {
        address: d.address(address),
        space: space(d, from, address),
        bytes: ty.bytes(),
        elements: to.as_slice().map(|reg| reg.map_or(Element::Sink, |reg| element(d, reg))).collect(),
        signed: ty.is_signed(),
        order,
    };
    let x = d.code.memory.len() as u32;
    d.code.memory.push(op);
    d.emit(lanes::<Load>(), Rows { x, ..Rows::default() });
}

pub(crate) fn element(d: &Decoder<'_, '_>, reg: Reg) -> Element {
    match d.register(reg) {
        (File::Narrow | File::Predicate, row) => Element::Narrow(row),
        (File::Wide, row) => Element::Wide(row),
        (File::Double, row) => Element::Double(row),
    }
}

pub(crate) fn source(d: &mut Decoder<'_, '_>, src: &Src, ty: Type) -> Element {
    match src {
        Src::Sink => Element::Sink,
        Src::Reg(reg) => element(d, *reg),
        src if ty.bits() == 128 => Element::Double(d.src128(src, ty)),
        src if ty.bits() <= 32 => Element::Narrow(d.src32(src, ty)),
        src => Element::Wide(d.src64(src, ty)),
    }
}

/// The order that modifiers say.
pub(crate) fn order(semantics: Option<Semantics>, scope: Option<Scope>, mmio: bool) -> Order {
    let strong = match semantics {
        None | Some(Semantics::Weak) if !mmio => None,
        Some(Semantics::Volatile) | Some(Semantics::Mmio) => Some(Scope::Sys),
        _ => Some(scope.unwrap_or(Scope::Gpu)),
    };
    Order {
        strong,
        acquire: matches!(semantics, Some(Semantics::Acquire | Semantics::AcqRel | Semantics::SeqCst)),
        release: matches!(semantics, Some(Semantics::Release | Semantics::AcqRel | Semantics::SeqCst)),
        proposes: false,
        non_coherent: false,
    }
}

/// The space of an access. Parameters of a device function, and of calls, are in local memory.
pub(crate) fn space(d: &Decoder<'_, '_>, space: Option<Space>, address: &Address) -> SpaceKind {
    match space.map(Space::base) {
        None => SpaceKind::Generic,
        Some(Space::Global) => SpaceKind::Global,
        Some(Space::Const) => SpaceKind::Const,
        Some(Space::Shared) => SpaceKind::Shared,
        Some(Space::Local) => SpaceKind::Local,
        Some(Space::Param) => match &address.base {
            AddressBase::Symbol(Symbol::Local(id)) if d.is_kernel_param(*id) => SpaceKind::Param,
            AddressBase::Symbol(_) => SpaceKind::Local,
            _ if d.function.kind == FunctionKind::Entry => SpaceKind::Param,
            _ => SpaceKind::Local,
        },
        Some(_) => SpaceKind::Generic,
    }
}
