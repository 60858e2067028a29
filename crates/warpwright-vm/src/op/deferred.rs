//! Stores and reductions that a thread does not wait for: an mbarrier counts their bytes, or they release.
//!
//! They are done when they are issued. The race check has the stores as accesses of the thread's asynchronous copies,
//! which nobody may rely on before the phase of the mbarrier is over.

use super::mbarrier::At;
use crate::check::Touch;
use crate::check::race::{AccessKind, Agent};
use crate::decode::Decoder;
use crate::launch::TrapKind;
use crate::machine::{LanesOf, Machine, Row64, Step};
use crate::memory::{MemoryOp, Order, RANK_MASK, RegionKind};
use warpwright_ptx::ir::{Address, Space};

/// `st.async` with an mbarrier.
pub(super) fn store(d: &mut Decoder<'_, '_>, op: MemoryOp, barrier: &Address, space: Option<Space>) {
    let at = At::decode(d, barrier, space);
    d.emit_boxed(move |m, _| m.store_async(&op, at).err().unwrap_or(Step::Next));
}

impl Machine<'_> {
    fn store_async(&mut self, op: &MemoryOp, at: At) -> Result<(), Step> {
        let (addresses, barriers) = (self.addresses(&op.address), self.addresses(&at.address));
        self.refuse_deferred(&addresses, &barriers)?;
        let touch =
            Touch { kind: AccessKind::AsyncWrite(Agent::Stores), element: op.bytes, order: Order::WEAK };
        let (mut todo, mut stored) = (self.mask, 0);
        self.worker.progress = true;
        while let Some(group) = self.next_group(op.spec(true), &addresses, &mut todo) {
            if !matches!(group.region.kind, RegionKind::Shared) {
                let message = "an asynchronous store that an mbarrier counts, to memory that is not shared";
                return Err(self.trap(TrapKind::BadOperand, message.to_owned()));
            }
            self.touches(touch, &group, &[]);
            self.store_elements(op, &group);
            stored |= group.mask;
        }
        let bytes = op.bytes * op.elements.len() as u32;
        self.complete_bytes((barriers, at.space), stored, bytes, Some(Agent::Stores))
    }

    /// What an mbarrier counts is for another block of the cluster, or the own: for one that has the mbarrier too.
    pub(super) fn refuse_deferred(&mut self, addresses: &Row64, barriers: &Row64) -> Result<(), Step> {
        if self.cluster.is_alone() {
            let message = "asynchronous stores to shared memory are for clusters of several blocks, and this block is \
                           alone in its own";
            return Err(self.trap(TrapKind::BadOperand, message.to_owned()));
        }
        let rank = |address: u64| address & RANK_MASK;
        let apart = |lane: &usize| rank(addresses[*lane]) != rank(barriers[*lane]);
        let Some(lane) = LanesOf(self.mask).find(apart) else { return Ok(()) };
        let message = format!(
            "an asynchronous store to {:#x} and its mbarrier at {:#x}: both must be in the same block's memory",
            addresses[lane], barriers[lane]
        );
        Err(self.trap(TrapKind::BadOperand, message))
    }
}
