//! Barriers and fences.

use crate::decode::{Decoder, Rows};
use crate::machine::{Arrival, FULL, Machine, NONE, Step};
use warpwright_ptx::ir::*;
use warpwright_ptx::op::Op;

pub(crate) fn decode(op: &Op, d: &mut Decoder<'_, '_>) -> bool {
    match op {
        Op::BarSync(bar) => barrier(d, &bar.a, bar.b.as_ref(), true, true),
        Op::BarArrive(bar) => barrier(d, &bar.a, Some(&bar.b), true, false),
        Op::BarrierSync(bar) => barrier(d, &bar.a, bar.b.as_ref(), bar.aligned, true),
        Op::BarrierArrive(bar) => barrier(d, &bar.a, Some(&bar.b), bar.aligned, false),
        Op::Membar(_) | Op::Fence(_) => d.emit_handler(|_, _| Step::Next, Rows::default()),
        _ => return false,
    }
    true
}

fn barrier(d: &mut Decoder<'_, '_>, id: &Src, count: Option<&Src>, aligned: bool, waits: bool) {
    let id = d.src32(id, Type::U32);
    let count = count.map(|count| d.src32(count, Type::U32));
    d.emit_boxed(move |m: &mut Machine<'_>, _| {
        if aligned && let Some(step) = m.converge(FULL, NONE) {
            return step;
        }
        let lane = m.mask.trailing_zeros() as usize;
        let id = m.registers.row32(id)[lane] & 15;
        let count = count.map(|row| m.registers.row32(row)[lane]);
        match m.arrive(Arrival { id, count, waits, holds: 0 }) {
            Ok(_) => Step::Next,
            Err(step) => step,
        }
    });
}
