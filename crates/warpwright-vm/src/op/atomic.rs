//! Atomic operations and reductions in memory.
//!
//! An operation on global memory of up to four bytes is an atomic operation of the host; a wider one holds the lock
//! of its allocation. Shared memory belongs to the host thread that runs the block. Lanes that access one location do
//! so one after the other, in the order of their numbers.

use crate::check::Touch;
use crate::check::race::AccessKind;
use crate::decode::{Decoder, Rows};
use crate::machine::{LANES, LanesOf, Machine, NONE, Row64, Step, lanewise};
use crate::memory::{
    AccessSpec, Address, Allocation, Element, Group, MemoryOp, Order, RegionKind, SpaceKind,
};
use crate::native::{self, Lane};
use crate::num::extremum::Extremum;
use crate::num::float::{add as add_f32, add_f64, add_to_memory_f64};
use crate::num::half::{PLAIN, add_bf16, add_f16, both};
use crate::op::mbarrier::At;
use crate::op::memory::{element, order, source, space};
use crate::op::swap::Swaps;
use std::array::{from_mut, from_ref};
use std::cell::Cell;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use warpwright_ptx::ir::{Dsts, Scope, Semantics, Src, Srcs, Type};
use warpwright_ptx::op::atomic::AtomicOp;
use warpwright_ptx::op::family::Atomic as Op;
use warpwright_ptx::op::memory::{MultimemOp, MultimemRed};

pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    match op {
        Op::Atom(op) => {
            let common = (op.semantics, op.scope, op.noftz);
            let address = (d.address(&op.address), space(d, op.space, &op.address));
            let op = decoded(d, Action::Combine(op.op), op.ty, common, address, &op.b, Some(&op.d));
            emit(d, op);
        }
        Op::Red(op) => {
            let common = (op.semantics, op.scope, op.noftz);
            let address = (d.address(&op.address), space(d, op.space, &op.address));
            let op = decoded(d, Action::Combine(op.op), op.ty, common, address, &op.b, None);
            emit(d, op);
        }
        Op::AtomCas(op) => {
            let common = (op.semantics, op.scope, false);
            let address = (d.address(&op.address), space(d, op.space, &op.address));
            let action = Action::Compare(source(d, &op.b, op.ty));
            let to = op.d.0.map_or(Dsts::Sink, Dsts::One);
            let op = decoded(d, action, op.ty, common, address, &Srcs::One(op.c.clone()), Some(&to));
            emit(d, op);
        }
        Op::RedAsync(op) => {
            let common = (Some(op.semantics), Some(op.scope), false);
            let address = (d.address(&op.address), space(d, op.space, &op.address));
            let (action, operand) = (Action::Combine(op.op), Srcs::One(op.b.clone()));
            let reduction = decoded(d, action, op.ty, common, address, &operand, None);
            match &op.barrier {
                None => emit(d, reduction),
                Some(barrier) => {
                    let at = At::decode(d, barrier, op.space);
                    d.emit_boxed(move |m, _| m.reduce_async(&reduction, at).err().unwrap_or(Step::Next));
                }
            }
        }
        Op::MultimemRedAsync(op) => {
            let common = (Some(op.semantics), Some(op.scope), false);
            let At { address, space } = At::multimem(d, &op.address);
            let (action, operand) = (Action::Combine(op.op), Srcs::One(op.b.clone()));
            let op = decoded(d, action, op.ty, common, (address, space), &operand, None);
            emit(d, op);
        }
    }
    true
}

/// `multimem.red`, which is for all threads of the system where it does not say more.
pub(super) fn reduce_multimem(d: &mut Decoder<'_, '_>, op: &MultimemRed) {
    let combine = match op.op {
        MultimemOp::Min => AtomicOp::Min,
        MultimemOp::Max => AtomicOp::Max,
        MultimemOp::Add => AtomicOp::Add,
        MultimemOp::And => AtomicOp::And,
        MultimemOp::Or => AtomicOp::Or,
        MultimemOp::Xor => AtomicOp::Xor,
    };
    let common = (op.semantics, Some(op.scope.unwrap_or(Scope::Sys)), false);
    let At { address, space } = At::multimem(d, &op.address);
    let op = decoded(d, Action::Combine(combine), op.ty, common, (address, space), &op.a, None);
    emit(d, op);
}

/// What happens to memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// The operand is combined with what is there.
    Combine(AtomicOp),
    /// The operand is stored if memory holds the given value.
    Compare(Element),
}

/// A decoded operation.
#[derive(Clone, Debug)]
pub(super) struct Atomic {
    pub(super) action: Action,
    pub(super) ty: Type,
    pub(super) address: Address,
    pub(super) space: SpaceKind,
    /// Subnormal sums stay what they are in global memory too.
    pub(super) noftz: bool,
    pub(super) order: Order,
    /// Whether it reads, for the memory model: `red` does not, nor does an `atom` whose result is never used. What it
    /// would observe, the program could not know.
    pub(super) reads: bool,
    /// Operands, and where what was there goes.
    pub(super) elements: Box<[(Element, Element)]>,
}

/// Elements of a vector at most.
const MAX_ELEMENTS: usize = 8;

fn emit(d: &mut Decoder<'_, '_>, op: Atomic) {
    if op.ty.bits() == 128 {
        d.emit_boxed(move |m, _| m.atomic128(&op));
    } else if op.elements.len() == 1 {
        match op.native(d) {
            Some((operation, rows)) => {
                d.emit_carrying(rows, move |m, _| m.atomic::<1>(&op));
                d.is_native(operation);
            }
            None => d.emit_boxed(move |m, _| m.atomic::<1>(&op)),
        }
    } else {
        d.emit_boxed(move |m, _| m.atomic::<MAX_ELEMENTS>(&op));
    }
}

fn decoded(
    d: &mut Decoder<'_, '_>,
    action: Action,
    ty: Type,
    (semantics, scope, noftz): (Option<Semantics>, Option<Scope>, bool),
    (address, space): (Address, SpaceKind),
    operands: &Srcs,
    to: Option<&Dsts>,
) -> Atomic {
    let reads = to.is_some_and(|to| {
        matches!(semantics, Some(Semantics::Acquire | Semantics::AcqRel))
            || to.as_slice().flatten().any(|reg| d.is_used_later(reg))
    });
    let to = to.unwrap_or(&Dsts::Sink).as_slice();
    let mut to = to.map(|reg| reg.map_or(Element::Sink, |reg| element(d, reg))).collect::<Vec<_>>();
    let operands: &[Src] = operands.as_slice();
    to.resize(operands.len(), Element::Sink);
    let elements = operands.iter().zip(to).map(|(src, to)| (source(d, src, ty), to)).collect();
    let order = order(Some(semantics.unwrap_or(Semantics::Relaxed)), scope, false);
    Atomic { action, ty, address, space, noftz, order, reads, elements }
}

impl Atomic {
    fn spec(&self) -> AccessSpec {
        let bytes = self.ty.bytes() * self.elements.len() as u32;
        AccessSpec { space: self.space, bytes, align: bytes, write: true }
    }

    /// What it is for the compiler of native code, and its rows, with an access that is put into the code's table.
    fn native(&self, d: &mut Decoder<'_, '_>) -> Option<(native::Operation, Rows)> {
        let lane = match self.ty {
            Type::U32 | Type::B32 => Lane::U32,
            Type::S32 => Lane::S32,
            _ => return None,
        };
        let (Action::Combine(op), [(Element::Narrow(a), to)]) = (self.action, &self.elements[..]) else {
            return None;
        };
        if matches!(op, AtomicOp::Inc | AtomicOp::Dec) || self.space != SpaceKind::Shared {
            return None;
        }
        let to_row = match *to {
            Element::Narrow(row) => row,
            Element::Sink => NONE,
            Element::Wide(_) | Element::Double(_) => return None,
        };
        let b = d.code.memory.len() as u32;
        d.code.memory.push(MemoryOp {
            address: self.address,
            space: self.space,
            bytes: self.ty.bytes(),
            elements: [*to].into(),
            signed: false,
            order: Order::WEAK,
        });
        let rows = Rows { d: to_row, a: *a, b, ..Rows::default() };
        let orders = self.reads || self.order.acquire || self.order.release;
        let scope = self.order.strong.filter(|_| !orders);
        Some((native::Operation::Atomic(op, lane, scope), rows))
    }

    pub(super) fn touch(&self) -> Touch {
        // A packed value is two scalars for the memory model.
        let element = match self.ty {
            Type::F16X2 | Type::BF16X2 => 2,
            ty => ty.bytes(),
        };
        Touch { kind: AccessKind::Atomic, element, order: self.order }
    }
}

/// `old` combined with `b`; bits above the type's width are of no meaning.
#[inline(always)]
fn combine(op: AtomicOp, ty: Type, ftz: bool, old: u64, b: u64) -> u64 {
    let words = [old as u32, b as u32];
    let halves = [old as u16, b as u16];
    match (op, ty) {
        (AtomicOp::And, _) => old & b,
        (AtomicOp::Or, _) => old | b,
        (AtomicOp::Xor, _) => old ^ b,
        (AtomicOp::Exch, _) => b,
        (AtomicOp::Inc, _) => {
            if old >= b {
                0
            } else {
                old + 1
            }
        }
        (AtomicOp::Dec, _) => {
            if old == 0 || old > b {
                b
            } else {
                old - 1
            }
        }
        (AtomicOp::Add, Type::F32) => {
            let [a, b] = words.map(f32::from_bits);
            let sum = if ftz { add_f32::<true, false>(a, b) } else { add_f32::<false, false>(a, b) };
            sum.to_bits().into()
        }
        // Shared memory has no such operation: there it is an addition and a `cas`. Only global memory flushes.
        (AtomicOp::Add, Type::F64) if ftz => add_to_memory_f64(old, b),
        (AtomicOp::Add, Type::F64) => add_f64(f64::from_bits(b), f64::from_bits(old)).to_bits(),
        (op, Type::F16) => half_f16(op, halves).into(),
        (op, Type::F16X2) => both(words, |halves| half_f16(op, halves)).into(),
        (op, Type::BF16) => half_bf16(op, halves).into(),
        (op, Type::BF16X2) => both(words, |halves| half_bf16(op, halves)).into(),
        (AtomicOp::Add, _) => old.wrapping_add(b),
        (AtomicOp::Min, Type::S32) => (words[0] as i32).min(words[1] as i32) as u32 as u64,
        (AtomicOp::Max, Type::S32) => (words[0] as i32).max(words[1] as i32) as u32 as u64,
        (AtomicOp::Min, Type::S64) => (old as i64).min(b as i64) as u64,
        (AtomicOp::Max, Type::S64) => (old as i64).max(b as i64) as u64,
        (AtomicOp::Min, _) => old.min(b),
        (AtomicOp::Max, _) => old.max(b),
    }
}

fn extremum(op: AtomicOp) -> Extremum {
    Extremum { max: op == AtomicOp::Max, ..Extremum::default() }
}

fn half_f16(op: AtomicOp, [a, b]: [u16; 2]) -> u16 {
    match op {
        AtomicOp::Min | AtomicOp::Max => extremum(op).f16(a, b),
        _ => add_f16::<false, PLAIN>(a, b),
    }
}

fn half_bf16(op: AtomicOp, [a, b]: [u16; 2]) -> u16 {
    match op {
        AtomicOp::Min | AtomicOp::Max => extremum(op).bf16(a, b),
        _ => add_bf16::<PLAIN>(a, b),
    }
}

/// Changes a place of shared memory: what was there.
#[inline(always)]
fn change_shared(words: &mut [u32], offset: u64, bytes: u32, change: impl Fn(u64) -> u64) -> u64 {
    let at = (offset >> 2) as usize;
    match bytes {
        4 => {
            let old = words[at];
            words[at] = change(old.into()) as u32;
            old.into()
        }
        8 => {
            let old = u64::from(words[at]) | u64::from(words[at + 1]) << 32;
            let new = change(old);
            words[at] = new as u32;
            words[at + 1] = (new >> 32) as u32;
            old
        }
        _ => {
            let shift = 8 * (offset & 2);
            let old = words[at] >> shift & 0xffff;
            let new = change(old.into()) as u32 & 0xffff;
            words[at] = words[at] & !(0xffff << shift) | new << shift;
            old.into()
        }
    }
}

/// Changes a place of global memory: what was there.
#[inline(always)]
fn change_global(allocation: &Allocation, offset: u64, bytes: u32, change: impl Fn(u64) -> u64) -> u64 {
    let replace = |word: &AtomicU32, change: &dyn Fn(u32) -> u32| {
        let mut old = word.load(Acquire);
        while let Err(now) = word.compare_exchange_weak(old, change(old), AcqRel, Acquire) {
            old = now;
        }
        old
    };
    match bytes {
        4 => replace(allocation.word(offset), &|old| change(old.into()) as u32).into(),
        8 => {
            let _lock = allocation.exclusive();
            let (low, high) = (allocation.word(offset), allocation.word(offset + 4));
            let old = u64::from(low.load(Relaxed)) | u64::from(high.load(Relaxed)) << 32;
            let new = change(old);
            low.store(new as u32, Relaxed);
            high.store((new >> 32) as u32, Relaxed);
            old
        }
        _ => {
            let shift = 8 * (offset & 2);
            let new = |old: u32| {
                let half = change((old >> shift & 0xffff).into()) as u32 & 0xffff;
                old & !(0xffff << shift) | half << shift
            };
            u64::from(replace(allocation.word(offset), &new) >> shift & 0xffff)
        }
    }
}

/// Combines a value with an element in memory, in global memory or in that of the cluster.
pub(super) fn combine_in_memory(
    shared: &mut [u32],
    region: RegionKind<'_>,
    offset: u64,
    (op, ty, noftz): (AtomicOp, Type, bool),
    value: u64,
) {
    let bytes = ty.bytes();
    match region {
        RegionKind::Global(allocation) => {
            change_global(allocation, offset, bytes, |old| combine(op, ty, !noftz, old, value))
        }
        _ => change_shared(shared, offset, bytes, |old| combine(op, ty, false, old, value)),
    };
}

impl<'a> Machine<'a> {
    /// A reduction whose bytes an mbarrier counts.
    fn reduce_async(&mut self, op: &Atomic, at: At) -> Result<(), Step> {
        let (addresses, barriers) = (self.addresses(&op.address), self.addresses(&at.address));
        self.refuse_deferred(&addresses, &barriers)?;
        match self.atomic::<1>(op) {
            Step::Next => self.complete_bytes((barriers, at.space), self.mask, op.ty.bytes(), None),
            stop => Err(stop),
        }
    }

    fn operand(&self, element: Element) -> Row64 {
        match element {
            Element::Sink => [0; LANES],
            Element::Narrow(row) => lanewise(self.registers.row32(row), u64::from),
            Element::Wide(row) | Element::Double(row) => *self.registers.row64(row),
        }
    }

    fn keep(&mut self, element: Element, values: &Row64, mask: u32) {
        match element {
            Element::Sink => {}
            Element::Narrow(row) => self.registers.set32(row, &lanewise(values, |value| value as u32), mask),
            Element::Wide(row) | Element::Double(row) => self.registers.set64(row, values, mask),
        }
    }

    /// What a lane's place holds.
    fn there(&self, group: &Group<'_>, lane: usize, bytes: u32) -> u64 {
        self.there_at(group, group.offsets[lane], bytes)
    }

    fn there_at(&self, group: &Group<'_>, at: u64, bytes: u32) -> u64 {
        let word = |at: u64| match group.region.kind {
            RegionKind::Global(allocation) => allocation.word(at).load(Acquire),
            _ => self.cluster.shared.get((at >> 2) as usize).copied().unwrap_or(0),
        };
        match bytes {
            4 => word(at).into(),
            8 => u64::from(word(at)) | u64::from(word(at + 4)) << 32,
            _ => u64::from(word(at) >> (8 * (at & 2)) & 0xffff),
        }
    }

    /// Changes what the lanes of a group access, one lane after the other: whether anything is other than before, or
    /// nothing where this memory has no atomic operations. `old` is what was there.
    #[inline(always)]
    fn change<const N: usize>(
        &mut self,
        op: &Atomic,
        group: &Group<'a>,
        values: (&Row64, &[Row64; N]),
        old: &mut [Row64; N],
    ) -> Option<bool> {
        let (ty, noftz) = (op.ty, op.noftz);
        match op.action {
            // Most operations count: they have a loop of their own, without choices for each lane.
            Action::Combine(AtomicOp::Add) if matches!(ty, Type::U32 | Type::S32) => {
                self.change_by((op, 4), group, values, old, |_, old, operand, _| old.wrapping_add(operand))
            }
            action => {
                self.change_by((op, ty.bytes()), group, values, old, |is_global, old, operand, compare| {
                    match action {
                        Action::Compare(_) if old == compare => operand,
                        Action::Compare(_) => old,
                        Action::Combine(by) => combine(by, ty, is_global && !noftz, old, operand),
                    }
                })
            }
        }
    }

    /// The same, of elements of so many bytes. `result` is what memory holds after: whether it is global, what it held,
    /// the operand, and what a compare-and-swap expects.
    #[inline(always)]
    fn change_by<const N: usize>(
        &mut self,
        (op, bytes): (&Atomic, u32),
        group: &Group<'a>,
        (compare, operands): (&Row64, &[Row64; N]),
        old: &mut [Row64; N],
        result: impl Fn(bool, u64, u64, u64) -> u64,
    ) -> Option<bool> {
        let keep_bits = u64::MAX >> (64 - 8 * bytes);
        let count = if N == 1 { 1 } else { op.elements.len() };
        let changed = Cell::new(false);
        for lane in LanesOf(group.mask) {
            for index in 0..count {
                let at = group.offsets[lane] + u64::from(bytes) * index as u64;
                let (operand, compare) = (operands[index][lane], compare[lane]);
                let change = |is_global: bool, old: u64| {
                    let new = result(is_global, old, operand, compare) & keep_bits;
                    changed.set(changed.get() | (new != old));
                    new
                };
                old[index][lane] = match group.region.kind {
                    RegionKind::Global(allocation) => {
                        change_global(allocation, at, bytes, |old| change(true, old))
                    }
                    RegionKind::Shared => {
                        change_shared(&mut self.cluster.shared, at, bytes, |old| change(false, old))
                    }
                    RegionKind::Local | RegionKind::Param => return None,
                };
            }
        }
        Some(changed.get())
    }

    /// `change` for a compare-and-swap, where it matters to the checks which lanes store.
    #[cold]
    fn swap(
        &mut self,
        op: &Atomic,
        group: &Group<'a>,
        (compare, operand): (&Row64, &Row64),
        old: &mut Row64,
    ) -> Option<bool> {
        let bytes = op.ty.bytes();
        for lane in LanesOf(group.mask) {
            old[lane] = self.there(group, lane, bytes);
        }
        let swaps = Swaps::foresee(group, (compare, operand), old);
        self.touches_swaps(op, swaps, group);
        let mut changed = false;
        for lane in LanesOf(group.mask & !swaps.before) {
            if swaps.behind >> lane & 1 != 0 {
                old[lane] = self.there(group, lane, bytes);
                if old[lane] != compare[lane] {
                    continue;
                }
                self.touches_swap(op, group, lane);
            }
            let lane = group.part(1 << lane);
            changed |= self.change(op, &lane, (compare, from_ref(operand)), from_mut(old))?;
        }
        if op.reads {
            self.observed_swaps(op, swaps, group);
        }
        Some(changed)
    }

    /// Up to `N` elements of up to 64 bits.
    fn atomic<const N: usize>(&mut self, op: &Atomic) -> Step {
        let addresses = self.addresses(&op.address);
        self.atomic_at::<N>(op, &addresses, self.mask)
    }

    /// The same at given addresses, for lanes of those that execute.
    pub(super) fn atomic_at<const N: usize>(&mut self, op: &Atomic, addresses: &Row64, mask: u32) -> Step {
        let bytes = op.ty.bytes();
        let keep_bits = u64::MAX >> (64 - 8 * bytes);
        let mut operands = [[0; LANES]; N];
        for (into, &(element, _)) in operands.iter_mut().zip(&op.elements) {
            *into = lanewise(&self.operand(element), |value| value & keep_bits);
        }
        let compare = match op.action {
            Action::Compare(element) => lanewise(&self.operand(element), |value| value & keep_bits),
            Action::Combine(_) => [0; LANES],
        };
        let mut old = [[0; LANES]; N];
        let mut changed = false;
        let mut outward = self.worker.outward;
        let mut todo = mask;
        while let Some(group) = &self.next_group(op.spec(), addresses, &mut todo) {
            let is_swap = matches!(op.action, Action::Compare(_));
            let changes = if is_swap && self.foresees_swaps() {
                self.swap(op, group, (&compare, &operands[0]), &mut old[0])
            } else {
                self.touches(op.touch(), group, &[]);
                let changes = self.change(op, group, (&compare, &operands), &mut old);
                if op.reads && changes.is_some() {
                    self.observed(op.touch(), group);
                }
                changes
            };
            let Some(changes) = changes else { return self.not_atomic() };
            changed |= changes;
            outward |= changes && matches!(group.region.kind, RegionKind::Global(_));
        }
        // An attempt that changed nothing is but a look.
        self.worker.outward = outward;
        self.polled(op.spec(), addresses, changed);
        for (values, &(_, element)) in old.iter().zip(&op.elements) {
            self.keep(element, values, mask);
        }
        Step::Next
    }

    /// One element of 128 bits.
    fn atomic128(&mut self, op: &Atomic) -> Step {
        let Some(&(Element::Double(operand), to)) = op.elements.first() else { return Step::Next };
        let addresses = self.addresses(&op.address);
        let halves = |m: &Self, row: u32| [*m.registers.row64(row), *m.registers.row64(row + 1)];
        let operand = halves(self, operand);
        let compare = match op.action {
            Action::Compare(Element::Double(row)) => Some(halves(self, row)),
            _ => None,
        };
        let mut old = [[0; LANES]; 2];
        let mut stop = None;
        let mut changed = false;
        let mut outward = self.worker.outward;
        let mask = self.mask;
        let mut todo = mask;
        while let Some(group) = self.next_group(op.spec(), &addresses, &mut todo) {
            let m = &mut *self;
            let Group { region, mask, ref offsets, .. } = group;
            let _lock = match region.kind {
                RegionKind::Global(allocation) => Some(allocation.exclusive()),
                _ => None,
            };
            let mut swaps = Swaps::ALL_STORE;
            if let Some(compare) = &compare
                && m.foresees_swaps()
            {
                let pairs = |halves: &[Row64; 2]| std::array::from_fn(|lane| halves.map(|half| half[lane]));
                let there =
                    |lane: usize| [m.there(&group, lane, 8), m.there_at(&group, offsets[lane] + 8, 8)];
                let mut found = [[0; 2]; LANES];
                LanesOf(mask).for_each(|lane| found[lane] = there(lane));
                swaps = Swaps::foresee(&group, (&pairs(compare), &pairs(&operand)), &mut found);
            }
            m.touches_swaps(op, swaps, &group);
            for lane in LanesOf(mask) {
                let mut change = |at: u64, change: &dyn Fn(u64) -> u64| match region.kind {
                    RegionKind::Global(allocation) => {
                        let (low, high) = (allocation.word(at), allocation.word(at + 4));
                        let old = u64::from(low.load(Relaxed)) | u64::from(high.load(Relaxed)) << 32;
                        let new = change(old);
                        low.store(new as u32, Relaxed);
                        high.store((new >> 32) as u32, Relaxed);
                        old
                    }
                    RegionKind::Shared => change_shared(&mut m.cluster.shared, at, 8, change),
                    RegionKind::Local | RegionKind::Param => {
                        stop = Some(());
                        0
                    }
                };
                let at = offsets[lane];
                let now = [change(at, &|old| old), change(at + 8, &|old| old)];
                if compare.is_none_or(|compare| compare.map(|half| half[lane]) == now) {
                    let changes = operand.map(|half| half[lane]) != now;
                    changed |= changes;
                    outward |= changes && matches!(region.kind, RegionKind::Global(_));
                    change(at, &|_| operand[0][lane]);
                    change(at + 8, &|_| operand[1][lane]);
                }
                (old[0][lane], old[1][lane]) = (now[0], now[1]);
            }
            if op.reads {
                m.observed_swaps(op, swaps, &group);
            }
        }
        self.worker.outward = outward;
        self.polled(op.spec(), &addresses, changed);
        if stop.is_some() {
            return self.not_atomic();
        }
        if let Element::Double(row) = to {
            self.registers.set64(row, &old[0], mask);
            self.registers.set64(row + 1, &old[1], mask);
        }
        Step::Next
    }

    #[cold]
    fn not_atomic(&mut self) -> Step {
        let message = "an atomic operation on local memory or parameters: it is for global and shared memory";
        self.trap(crate::launch::TrapKind::BadAtomic, message.into())
    }
}
