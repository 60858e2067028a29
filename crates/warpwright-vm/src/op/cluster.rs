//! Addresses of shared memory in the blocks of a cluster.
//!
//! The address of a shared variable has the rank of its block from bit 24 on, in the block itself too, as on devices:
//! programs find the even one of two blocks by clearing a bit.

use crate::decode::{Decoder, File};
use crate::launch::TrapKind;
use crate::machine::{LanesOf, Step, lanewise};
use crate::memory::{RANK_BITS, RANK_MASK};
use warpwright_ptx::ir::*;
use warpwright_ptx::op::cluster::{Getctarank, Mapa};
use warpwright_ptx::op::family::Cluster as Op;

pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    match op {
        Op::Mapa(op) => mapa(op, d),
        Op::Getctarank(op) => getctarank(op, d),
        Op::ClusterlaunchcontrolTryCancel(_) | Op::ClusterlaunchcontrolQueryCancel(_) => return false,
    }
    true
}

/// The row of an address: of a variable its generic one, where no space is said.
fn address(d: &mut Decoder<'_, '_>, src: &Src, space: Option<Space>) -> u32 {
    let row = d.src64(src, Type::U64);
    match (src, space) {
        (Src::Symbol(_), None) => super::convert::shared_to_generic(d, row),
        _ => row,
    }
}

fn mapa(op: &Mapa, d: &mut Decoder<'_, '_>) {
    let a = address(d, &op.a, op.space);
    let ranks = d.src32(&op.rank, Type::U32);
    let (file, to) = d.register(op.d.0);
    d.emit_boxed(move |m, _| {
        let (addresses, ranks) = (m.registers.row64(a), m.registers.row32(ranks));
        let blocks = m.cluster.blocks.len() as u32;
        if let Some(lane) = LanesOf(m.mask).find(|&lane| ranks[lane] >= blocks) {
            let message = format!("there is no block {} in a cluster of {blocks}", ranks[lane]);
            return m.trap(TrapKind::BadOperand, message);
        }
        let there =
            std::array::from_fn(|lane| addresses[lane] & !RANK_MASK | u64::from(ranks[lane]) << RANK_BITS);
        match file {
            File::Narrow => m.registers.set32(to, &lanewise(&there, |address| address as u32), m.mask),
            _ => m.registers.set64(to, &there, m.mask),
        }
        Step::Next
    });
}

fn getctarank(op: &Getctarank, d: &mut Decoder<'_, '_>) {
    let a = address(d, &op.a, op.space);
    let to = d.dst(op.d);
    d.emit_boxed(move |m, _| {
        let ranks = lanewise(m.registers.row64(a), |address| ((address & RANK_MASK) >> RANK_BITS) as u32);
        m.registers.set32(to, &ranks, m.mask);
        Step::Next
    });
}
