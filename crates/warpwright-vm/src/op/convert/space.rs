//! `cvta` and `isspacep`: generic addresses and those of a space.

use crate::decode::{Decoder, File, Rows};
use crate::machine::{LANES, Step};
use crate::memory::{AllocationKind, LOCAL_WINDOW, PARAM_WINDOW, RANK_BITS, SHARED_WINDOW, Window, window};
use crate::native::{self, Binary, Lane};
use crate::simd::{lane_op, lanes};
use warpwright_ptx::ir::*;
use warpwright_ptx::op::convert::{Cvta, Isspacep};

lane_op! {
    Add64(a: u64, b: u64) -> u64 { a.wrapping_add(b) } => native::binary(Binary::Add, Some(Lane::U64));
    Add32(a: u32, b: u64) -> u32 { a.wrapping_add(b as u32) }
}

fn base(space: Space) -> u64 {
    match space.base() {
        Space::Shared => SHARED_WINDOW,
        Space::Local => LOCAL_WINDOW,
        Space::Param => PARAM_WINDOW,
        _ => 0,
    }
}

pub(super) fn cvta(op: &Cvta, d: &mut Decoder<'_, '_>) {
    let add = if op.to { base(op.space).wrapping_neg() } else { base(op.space) };
    let b = d.constant64(add);
    match d.register(op.d.0) {
        (File::Wide, row) => {
            let a = d.src64(&op.a, Type::U64);
            d.emit(lanes::<Add64>(), Rows { d: row, a, b, ..Rows::default() });
        }
        (_, row) => {
            let a = d.src32(&op.a, Type::U32);
            d.emit(lanes::<Add32>(), Rows { d: row, a, b, ..Rows::default() });
        }
    }
}

/// Whether each address is in memory of constants, or in other global memory; where nothing is counts as
/// global.
fn in_global(d: &mut Decoder<'_, '_>, dst: Dst, a: u32, constant: bool) {
    let dst = d.dst(dst);
    d.emit_boxed(move |m, _| {
        let addresses = *m.registers.row64(a);
        let is = |address: u64| {
            let allocation = m.launch.memory.lookup(address);
            let found = allocation.is_some_and(|found| found.kind == AllocationKind::Constant);
            window(address) == Window::Global && found == constant
        };
        let bits = (0..LANES).fold(0, |bits, lane| bits | u32::from(is(addresses[lane])) << lane);
        m.registers.set_predicate(dst, bits, m.mask);
        Step::Next
    });
}

/// Whether each address is in the window of shared memory, with the rank of the block.
fn in_own_shared(d: &mut Decoder<'_, '_>, dst: Dst, a: u32) {
    let dst = d.dst(dst);
    d.emit_boxed(move |m, _| {
        let own = SHARED_WINDOW >> RANK_BITS | u64::from(m.block.rank);
        let addresses = m.registers.row64(a);
        let bits =
            (0..LANES).fold(0, |bits, lane| bits | u32::from(addresses[lane] >> RANK_BITS == own) << lane);
        m.registers.set_predicate(dst, bits, m.mask);
        Step::Next
    });
}

/// A row with the generic addresses of those of shared memory in another.
pub(crate) fn shared_to_generic(d: &mut Decoder<'_, '_>, a: u32) -> u32 {
    let (row, b) = (d.temporary64(), d.constant64(SHARED_WINDOW));
    d.emit(lanes::<Add64>(), Rows { d: row, a, b, ..Rows::default() });
    row
}

lane_op! {
    IsShared(a: u64) -> bool { window(a) == Window::Shared }
    IsLocal(a: u64) -> bool { window(a) == Window::Local }
    IsParam(a: u64) -> bool { window(a) == Window::Param }
}

pub(super) fn isspacep(op: &Isspacep, d: &mut Decoder<'_, '_>) {
    let a = d.src64(&op.a, Type::U64);
    let handlers = match op.space.base() {
        // A peer's memory is in the window of the cluster, and not in that of the block.
        Space::Shared if op.space != Space::SharedCluster => return in_own_shared(d, op.d, a),
        Space::Shared => lanes::<IsShared>(),
        Space::Local => lanes::<IsLocal>(),
        Space::Param => lanes::<IsParam>(),
        space => return in_global(d, op.d, a, space == Space::Const),
    };
    let rows = Rows { d: d.dst(op.d), a, ..Rows::default() };
    d.emit(handlers, rows);
}
