//! `cvta` and `isspacep`: generic addresses and those of a space.

use crate::decode::{Decoder, File, Rows};
use crate::memory::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, Window, window};
use crate::simd::{lane_op, lanes};
use warpwright_ptx::ir::*;
use warpwright_ptx::op::convert::{Cvta, Isspacep};

lane_op! {
    Add64(a: u64, b: u64) -> u64 { a.wrapping_add(b) }
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

lane_op! {
    IsShared(a: u64) -> bool { window(a) == Window::Shared }
    IsLocal(a: u64) -> bool { window(a) == Window::Local }
    IsParam(a: u64) -> bool { window(a) == Window::Param }
    IsGlobal(a: u64) -> bool { window(a) == Window::Global }
}

pub(super) fn isspacep(op: &Isspacep, d: &mut Decoder<'_, '_>) {
    let handlers = match op.space.base() {
        Space::Shared => lanes::<IsShared>(),
        Space::Local => lanes::<IsLocal>(),
        Space::Param => lanes::<IsParam>(),
        _ => lanes::<IsGlobal>(),
    };
    let a = d.src64(&op.a, Type::U64);
    let rows = Rows { d: d.dst(op.d), a, ..Rows::default() };
    d.emit(handlers, rows);
}
