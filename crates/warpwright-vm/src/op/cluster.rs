//! Addresses of shared memory in the blocks of a cluster, and clusters that take over the work of others.
//!
//! The address of a shared variable has the rank of its block from bit 24 on, in the block itself too, as on devices:
//! programs find the even one of two blocks by clearing a bit.

use super::mbarrier::At;
use crate::check::race::{AccessKind, Agent};
use crate::decode::{Decoder, File};
use crate::launch::TrapKind;
use crate::machine::{LANES, LanesOf, Machine, Row32, Step, lanewise};
use crate::memory::{AccessSpec, RANK_BITS, RANK_MASK, RegionKind, SpaceKind};
use warpwright_ptx::ir::*;
use warpwright_ptx::op::cluster::{CancelQuery, ClusterlaunchcontrolQueryCancel, Getctarank, Mapa};
use warpwright_ptx::op::family::Cluster as Op;

pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    match op {
        Op::Mapa(op) => mapa(op, d),
        Op::Getctarank(op) => getctarank(op, d),
        Op::ClusterlaunchcontrolTryCancel(op) => {
            let (to, barrier) = (At::decode(d, &op.to, op.space), At::decode(d, &op.mbar, op.space));
            let to_all = op.multicast.is_some();
            d.emit_boxed(move |m, _| m.try_cancel(to, barrier, to_all).err().unwrap_or(Step::Next));
        }
        Op::ClusterlaunchcontrolQueryCancel(op) => query(op, d),
    }
    true
}

/// Bytes of the response to a request.
const RESPONSE: u32 = 16;

impl Machine<'_> {
    /// Each lane requests a cluster that has not begun. The response goes to the block, or to all of its cluster. It has
    /// the index of the first block of that cluster in three words, and in the fourth whether there was one.
    fn try_cancel(&mut self, to: At, barrier: At, to_all: bool) -> Result<(), Step> {
        let (addresses, barriers) = (self.addresses(&to.address), self.addresses(&barrier.address));
        (self.worker.progress, self.worker.outward) = (true, true);
        for lane in LanesOf(self.mask) {
            let response = match self.launch.cancel_cluster() {
                Some([x, y, z]) => [x, y, z, 1],
                None => [0; 4],
            };
            if !to_all {
                self.respond(response, lane, (addresses[lane], to.space), (barriers[lane], barrier.space))?;
                continue;
            }
            for rank in 0..self.cluster.blocks.len() as u64 {
                let there = |address: u64| (address & !RANK_MASK) | rank << RANK_BITS;
                let space = |space| if space == SpaceKind::Shared { SpaceKind::SharedCluster } else { space };
                let to = (there(addresses[lane]), space(to.space));
                self.respond(response, lane, to, (there(barriers[lane]), space(barrier.space)))?;
            }
        }
        Ok(())
    }

    fn respond(
        &mut self,
        response: [u32; 4],
        lane: usize,
        (to, space): (u64, SpaceKind),
        (barrier, space_of_barrier): (u64, SpaceKind),
    ) -> Result<(), Step> {
        let spec = AccessSpec { space, bytes: RESPONSE, align: RESPONSE, write: true };
        let mut todo = 1 << lane;
        let Some(group) = self.next_group(spec, &[to; LANES], &mut todo) else { return Ok(()) };
        if !matches!(group.region.kind, RegionKind::Shared) {
            let message = "a request to cancel a cluster, with a response to memory that is not shared";
            return Err(self.trap(TrapKind::BadOperand, message.to_owned()));
        }
        self.issued_copy(AccessKind::AsyncWrite(Agent::Stores), &group);
        for (at, word) in response.into_iter().enumerate() {
            self.write32(&group, 4 * at as u64, &[word; LANES]);
        }
        self.complete_bytes(([barrier; LANES], space_of_barrier), 1 << lane, RESPONSE, Some(Agent::Stores))
    }
}

fn query(op: &ClusterlaunchcontrolQueryCancel, d: &mut Decoder<'_, '_>) {
    let a = d.src128(&op.a, Type::B128);
    let word = move |m: &Machine<'_>, at: u32| -> Row32 {
        lanewise(m.registers.row64(a + at / 2), |half| (half >> (32 * (at % 2))) as u32)
    };
    let first = match op.query {
        CancelQuery::IsCanceled => {
            let to = op.d.as_slice().flatten().next().map(|reg| d.row(reg));
            d.emit_boxed(move |m, _| {
                let words = word(m, 3);
                let bits = (0..LANES).fold(0, |bits, lane| bits | u32::from(words[lane] != 0) << lane);
                to.into_iter().for_each(|to| m.registers.set_predicate(to, bits, m.mask));
                Step::Next
            });
            return;
        }
        CancelQuery::FirstCtaId | CancelQuery::FirstCtaIdX => 0,
        CancelQuery::FirstCtaIdY => 1,
        CancelQuery::FirstCtaIdZ => 2,
    };
    let to: Vec<Option<u32>> = op.d.as_slice().map(|reg| reg.map(|reg| d.row(reg))).collect();
    d.emit_boxed(move |m, _| {
        for (&to, at) in to.iter().zip(first..) {
            // The fourth has no meaning.
            let index = if at < 3 { word(m, at) } else { [0; LANES] };
            to.into_iter().for_each(|to| m.registers.set32(to, &index, m.mask));
        }
        Step::Next
    });
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
        // Compilers compute addresses that nobody uses: one of a block that is not there leads nowhere.
        let there = std::array::from_fn(|lane| {
            let rank = u64::from(ranks[lane]) << RANK_BITS;
            addresses[lane] & !RANK_MASK | rank.min(RANK_MASK)
        });
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
