//! Loads and stores.

use crate::check::Touch;
use crate::check::race::AccessKind;
use crate::decode::{Decoder, File, Rows};
use crate::launch::TrapKind;
use crate::machine::{Inst, LANES, LanesOf, Machine, Row64, Step};
use crate::memory::{self, AccessSpec, Element, MemoryOp, Order, RegionKind, SpaceKind, UsedBytes};
use crate::native::Operation;
use crate::op::mbarrier::At;
use crate::simd::{LaneOp, lanes};
use warpwright_ptx::ir::*;
use warpwright_ptx::op::family::Memory as Op;
use warpwright_ptx::op::memory::StBulk;

pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    match op {
        Op::Ld(ld) => {
            let order = Order {
                proposes: d.is_proposing_load(),
                non_coherent: ld.nc,
                ..order(ld.semantics, ld.scope, ld.mmio)
            };
            d.code.non_coherent |= ld.nc;
            let at = At::decode(d, &ld.address, ld.space);
            emit_load(d, &ld.d, ld.ty, at, order);
        }
        Op::Ldu(ld) => {
            let at = At::decode(d, &ld.address, ld.space);
            emit_load(d, &ld.d, ld.ty, at, Order::WEAK);
        }
        Op::St(st) => {
            let order = order(st.semantics, st.scope, st.mmio);
            let at = At::decode(d, &st.address, st.space);
            let op = stored(d, st.a.as_slice(), st.ty, at, order);
            emit_store(d, op);
        }
        Op::StAsync(st) => {
            let order = order(st.semantics, st.scope, st.mmio);
            let at = At::decode(d, &st.address, st.space);
            let op = stored(d, st.a.as_slice(), st.ty, at, order);
            match &st.barrier {
                Some(barrier) => super::deferred::store(d, op, barrier, st.space),
                None => emit_store(d, op),
            }
        }
        Op::StBulk(op) => bulk(d, op),
        Op::Prefetch(_) | Op::Prefetchu(_) | Op::ApplyPriority(_) | Op::Discard(_) => d.emit_nothing(),
        Op::CreatePolicyFractional(op) => policy(d, op.d),
        Op::CreatePolicyRange(op) => policy(d, op.d),
        Op::CreatePolicyCvt(op) => policy(d, op.d),
        // A multimem address stands for one location of one device: the combination of one value is the value.
        Op::MultimemLdReduce(ld) => {
            let at = At::multimem(d, &ld.address);
            emit_load(d, &ld.d, ld.ty, at, order(ld.semantics, ld.scope, false));
        }
        Op::MultimemSt(st) => {
            let at = At::multimem(d, &st.address);
            let op = stored(d, st.a.as_slice(), st.ty, at, order(st.semantics, st.scope, false));
            emit_store(d, op);
        }
        Op::MultimemStAsync(st) => {
            let order = order(Some(st.semantics), Some(st.scope), false);
            let at = At::multimem(d, &st.address);
            let op = stored(d, std::slice::from_ref(&st.a), st.ty, at, order);
            emit_store(d, op);
        }
        Op::MultimemRed(red) => super::atomic::reduce_multimem(d, red),
        Op::CreatePolicyRangeFabric(_) => return false,
    }
    true
}

/// A cache policy says how long data is kept, which changes no result: it is zero.
fn policy(d: &mut Decoder<'_, '_>, dst: Dst) {
    let a = d.constant64(0);
    let rows = Rows { d: d.dst(dst), a, ..Rows::default() };
    d.emit(lanes::<super::convert::Copy64>(), rows);
}

/// Bytes that a bulk store fills at a time: its size is a multiple of that, and so is its address.
const FILLED: u32 = 8;

/// Fills shared memory with zeros, which is the only value that there is.
struct Fill {
    address: memory::Address,
    space: SpaceKind,
    /// The row with the bytes to fill.
    size: u32,
    /// A row of zeros.
    zero: u32,
}

fn bulk(d: &mut Decoder<'_, '_>, op: &StBulk) {
    let space = space(d, op.space, &op.address);
    let (address, size) = (d.address(&op.address), d.src64(&op.size, Type::U64));
    let fill = Fill { address, space, size, zero: d.constant64(0) };
    d.emit_boxed(move |m, _| m.fill(&fill));
}

impl Machine<'_> {
    fn fill(&mut self, fill: &Fill) -> Step {
        let sizes: Row64 = *self.registers.row64(fill.size);
        if let Some(lane) = LanesOf(self.mask).find(|&lane| !sizes[lane].is_multiple_of(FILLED.into())) {
            let message = format!("a bulk store of {} bytes: the size must be a multiple of 8", sizes[lane]);
            return self.trap(TrapKind::BadOperand, message);
        }
        let spec = AccessSpec { space: fill.space, bytes: FILLED, align: FILLED, write: true };
        let touch = Touch { kind: AccessKind::Write, element: FILLED, order: Order::WEAK };
        let mut addresses = self.addresses(&fill.address);
        let mut done = 0;
        let mut lanes = self.mask;
        self.worker.progress = true;
        loop {
            lanes = LanesOf(lanes).filter(|&lane| sizes[lane] > done).fold(0, |all, lane| all | 1 << lane);
            if lanes == 0 {
                return Step::Next;
            }
            // A lane that has left its memory has been reported, and ends here.
            let mut todo = std::mem::take(&mut lanes);
            while let Some(group) = self.next_group(spec, &addresses, &mut todo) {
                if !matches!(group.region.kind, RegionKind::Shared) {
                    let message = "a bulk store to memory that is not shared".to_string();
                    return self.trap(TrapKind::BadOperand, message);
                }
                self.touches(touch, &group, &[Element::Wide(fill.zero)]);
                for word in [0, 4] {
                    self.write32(&group, word, &[0; LANES]);
                }
                lanes |= group.mask;
            }
            addresses = addresses.map(|address| address.wrapping_add(FILLED.into()));
            done += u64::from(FILLED);
        }
    }
}

struct Load;

impl LaneOp for Load {
    const NATIVE: Option<Operation> = Some(Operation::Load);

    #[inline(always)]
    fn run(m: &mut Machine<'_>, i: &Inst) -> Step {
        let launch = m.launch;
        m.load(&launch.code.memory[i.x as usize]);
        Step::Next
    }
}

struct Store;

impl LaneOp for Store {
    const NATIVE: Option<Operation> = Some(Operation::Store);

    #[inline(always)]
    fn run(m: &mut Machine<'_>, i: &Inst) -> Step {
        let launch = m.launch;
        m.store(&launch.code.memory[i.x as usize]);
        Step::Next
    }
}

/// A store of these sources.
fn stored(
    d: &mut Decoder<'_, '_>,
    from: &[Src],
    ty: Type,
    At { address, space }: At,
    order: Order,
) -> MemoryOp {
    MemoryOp {
        address,
        space,
        bytes: ty.bytes(),
        elements: from.iter().map(|src| source(d, src, ty)).collect(),
        signed: false,
        order,
    }
}

fn emit_store(d: &mut Decoder<'_, '_>, op: MemoryOp) {
    let x = d.code.memory.len() as u32;
    d.code.memory.push(op);
    d.emit(lanes::<Store>(), Rows { x, ..Rows::default() });
}

fn emit_load(d: &mut Decoder<'_, '_>, to: &Dsts, ty: Type, At { address, space }: At, order: Order) {
    let op = MemoryOp {
        address,
        space,
        bytes: ty.bytes(),
        elements: to.as_slice().map(|reg| reg.map_or(Element::Sink, |reg| element(d, reg))).collect(),
        signed: ty.is_signed(),
        order,
    };
    let op = match UsedBytes::new(op, d.used_bytes_mask()) {
        Ok(load) => {
            d.emit_boxed(move |m, _| {
                m.load_used(&load);
                Step::Next
            });
            return;
        }
        Err(op) => op,
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
        ..Order::WEAK
    }
}

/// The space of an access: where the text says none, that of the variable that it names. Parameters of a device
/// function, and of calls, are in local memory.
pub(crate) fn space(d: &Decoder<'_, '_>, space: Option<Space>, address: &Address) -> SpaceKind {
    let named = || Some(d.symbols.index.variable(d.function, address.base.symbol()?)?.space);
    let said = space.or_else(named);
    match said.map(Space::base) {
        None => SpaceKind::Generic,
        Some(Space::Shared) if said == Some(Space::SharedCluster) => SpaceKind::SharedCluster,
        Some(Space::Global) => SpaceKind::Global,
        Some(Space::Const) => SpaceKind::Const,
        Some(Space::Shared) => SpaceKind::Shared,
        Some(Space::Local) => SpaceKind::Local,
        Some(Space::Param) => match address.base.symbol() {
            Some(Symbol::Local(id)) if d.is_kernel_param(*id) => SpaceKind::Param,
            Some(_) => SpaceKind::Local,
            _ if d.function.kind == FunctionKind::Entry => SpaceKind::Param,
            _ => SpaceKind::Local,
        },
        Some(_) => SpaceKind::Generic,
    }
}
