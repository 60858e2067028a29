//! Asynchronous copies: `cp.async` and its groups.

use crate::check::race::{AccessKind, Agent, GroupsOf};
use crate::decode::Decoder;
use crate::machine::{Copy, LANES, LanesOf, Machine, Row32, lanewise};
use crate::memory::{AccessSpec, Address, Group, RegionKind, SpaceKind};
use std::sync::atomic::Ordering::Relaxed;
use warpwright_ptx::ir::*;
use warpwright_ptx::op::async_copy::CpAsync;
use warpwright_ptx::op::family::AsyncCopy as Op;

pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    match op {
        Op::CpAsync(op) => copy(d, op),
        Op::CpAsyncCommitGroup(_) => d.emit_fallible(|m| {
            m.warp.copies.commit(m.mask);
            m.committed_groups(GroupsOf::Copies);
            Ok(())
        }),
        Op::CpAsyncWaitGroup(op) => wait(d, Some(op.n.imm().and_then(|imm| imm.bits()).unwrap_or(0) as u32)),
        Op::CpAsyncWaitAll(_) => wait(d, None),
        Op::CpAsyncMbarrierArrive(op) => super::mbarrier::arrive_with_copies(op, d),
    }
    true
}

/// Waits until at most `pending` groups of copies are under way, or none.
fn wait(d: &mut Decoder<'_, '_>, pending: Option<u32>) {
    d.emit_fallible(move |m| {
        m.end_copies(pending);
        match pending {
            Some(pending) => m.waited_for_groups(GroupsOf::Copies, pending, false),
            None => m.waited_for_all_copies(),
        }
        Ok(())
    });
}

/// How much a copy reads.
#[derive(Clone, Copy)]
enum SourceSize {
    /// All of it.
    Whole,
    /// The bytes that a row says.
    Row(u32),
    /// Nothing where a predicate holds.
    Unless(u32),
}

struct AsyncCopy {
    to: Address,
    from: Address,
    bytes: u32,
    size: SourceSize,
}

fn copy(d: &mut Decoder<'_, '_>, op: &CpAsync) {
    let bytes = match op.size {
        Src::Imm(imm) => imm.bits().unwrap_or(0) as u32,
        _ => 16,
    };
    let is_predicate = |src: &Src| match src {
        Src::Reg(reg) => d.register(*reg).0 == crate::decode::File::Predicate,
        Src::Not(_) => true,
        _ => false,
    };
    let size = match &op.source_size {
        None => SourceSize::Whole,
        Some(src) if is_predicate(src) => SourceSize::Unless(d.predicate(src)),
        Some(src) => SourceSize::Row(d.src32(src, Type::U32)),
    };
    let op = AsyncCopy { to: d.address(&op.to), from: d.address(&op.from), bytes, size };
    d.emit_fallible(move |m| {
        m.issue_copy(&op);
        Ok(())
    });
}

impl<'a> Machine<'a> {
    fn issue_copy(&mut self, op: &AsyncCopy) {
        let sizes: Row32 = match op.size {
            SourceSize::Whole => [op.bytes; LANES],
            SourceSize::Row(row) => lanewise(self.registers.row32(row), |size| size.min(op.bytes)),
            SourceSize::Unless(operand) => {
                let none = self.registers.predicate(operand);
                std::array::from_fn(|lane| if none >> lane & 1 != 0 { 0 } else { op.bytes })
            }
        };
        let mut copy = Copy::new(op.bytes / 4);
        let from = self.addresses(&op.from);
        let mut readable = 0;
        let mut todo = self.mask;
        while todo != 0 {
            let size = sizes[todo.trailing_zeros() as usize];
            let lanes =
                LanesOf(todo).filter(|&lane| sizes[lane] == size).fold(0, |all, lane| all | 1 << lane);
            todo &= !lanes;
            if size == 0 {
                readable |= lanes;
                continue;
            }
            let spec = AccessSpec { space: SpaceKind::Global, bytes: size, align: op.bytes, write: false };
            let mut todo = lanes;
            while let Some(group) = self.next_group(spec, &from, &mut todo) {
                self.issued_copy(AccessKind::AsyncRead(Agent::Copies), &group);
                let Group { region, mask, offsets, .. } = group;
                readable |= mask;
                if let RegionKind::Global(allocation) = region.kind {
                    let words = size.div_ceil(4) as usize;
                    let keep = u32::MAX >> (8 * (4 * words as u32 - size));
                    for lane in LanesOf(mask) {
                        let data = &mut copy.data[lane][..words];
                        for (word, from) in data.iter_mut().zip(allocation.run(offsets[lane], words)) {
                            *word = from.load(Relaxed);
                        }
                        data[words - 1] &= keep;
                    }
                }
            }
        }
        let to = self.addresses(&op.to);
        let spec = AccessSpec { space: SpaceKind::Shared, bytes: op.bytes, align: op.bytes, write: true };
        let mut todo = self.mask & readable;
        while let Some(group) = self.next_group(spec, &to, &mut todo) {
            self.issued_copy(AccessKind::AsyncWrite(Agent::Copies), &group);
            LanesOf(group.mask).for_each(|lane| copy.offsets[lane] = group.offsets[lane] as u32);
            copy.mask |= group.mask;
        }
        if let Some(oldest) = self.warp.copies.issue(copy) {
            write(&mut self.cluster.shared, &oldest, oldest.mask);
            self.worker.progress = true;
        }
    }

    /// Ends the copies of the lanes of the mask that are not in their last `pending` groups, or all.
    pub(crate) fn end_copies(&mut self, pending: Option<u32>) {
        let shared = &mut self.cluster.shared;
        self.warp.copies.end(self.mask, pending, |copy, lanes| write(shared, copy, lanes));
        self.worker.progress = true;
    }
}

/// Writes what lanes of a copy bring.
fn write(shared: &mut [u32], copy: &Copy, lanes: u32) {
    let words = copy.words as usize;
    for lane in LanesOf(lanes) {
        let first = copy.offsets[lane] as usize / 4;
        shared[first..first + words].copy_from_slice(&copy.data[lane][..words]);
    }
}
