//! Copies and reductions of consecutive bytes.

use super::run::{Reduction, part};
use super::{UNIT, agents, order};
use crate::check::Touch;
use crate::check::race::{AccessKind, Agent};
use crate::decode::Decoder;
use crate::launch::TrapKind;
use crate::machine::{LANES, LanesOf, Machine, Row32, Row64, Step};
use crate::memory::{AccessSpec, Order, RANK_BITS, RANK_MASK, SpaceKind};
use crate::op::mbarrier::At;
use warpwright_ptx::ir::{Address, Scope, Semantics, Space, Src, Type};
use warpwright_ptx::op::bulk_copy::{Completion, CpAsyncBulk, CpReduceAsyncBulk};
use warpwright_ptx::op::bulk_copy::{MultimemCpAsyncBulk, MultimemCpReduceAsyncBulk};

/// A copy or reduction as it was decoded.
struct Linear {
    to: At,
    from: At,
    /// Rows: bytes; how many of them at the beginning and the end are not needed; the blocks that it goes to; which
    /// bytes of every 16 are copied.
    size: u32,
    ignored: Option<[u32; 2]>,
    ranks: Option<u32>,
    byte_mask: Option<u32>,
    /// Where bytes are counted.
    barrier: Option<At>,
    agents: [Agent; 2],
    order: Order,
    /// From a block to another.
    to_peer: bool,
    reduction: Option<Reduction>,
}

pub(super) fn copy(d: &mut Decoder<'_, '_>, op: &CpAsyncBulk) {
    let mut row = |src: &Option<Src>, ty| src.as_ref().map(|src| d.src32(src, ty));
    let ignored = row(&op.ignore_left, Type::U32).zip(row(&op.ignore_right, Type::U32));
    let (ranks, byte_mask) = (row(&op.cta_mask, Type::U16), row(&op.byte_mask, Type::U16));
    let copy = Linear {
        to: At::decode(d, &op.to, Some(op.space)),
        from: At::decode(d, &op.from, Some(op.source)),
        size: d.src32(&op.size, Type::U32),
        ignored: ignored.map(Into::into),
        ranks,
        byte_mask,
        barrier: op.mbar.as_ref().map(|mbar| At::decode(d, mbar, Some(op.space))),
        agents: agents(op.completion),
        order: order(op.semantics, op.scope),
        to_peer: [op.space, op.source] == [Space::SharedCluster, Space::SharedCta],
        reduction: None,
    };
    d.emit_boxed(move |m, _| m.copy_bulk(&copy).err().unwrap_or(Step::Next));
}

pub(super) fn reduce(d: &mut Decoder<'_, '_>, op: &CpReduceAsyncBulk) {
    let copy = Linear {
        to: At::decode(d, &op.to, Some(op.space)),
        from: At::decode(d, &op.from, Some(op.source)),
        size: d.src32(&op.size, Type::U32),
        ignored: None,
        ranks: None,
        byte_mask: None,
        barrier: op.mbar.as_ref().map(|mbar| At::decode(d, mbar, Some(op.space))),
        agents: agents(op.completion),
        order: order(Some(op.semantics.unwrap_or(Semantics::Relaxed)), op.scope.or(Some(Scope::Gpu))),
        to_peer: op.space == Space::SharedCluster,
        reduction: Some(Reduction::new(op.reduction, op.ty, op.noftz)),
    };
    d.emit_boxed(move |m, _| m.copy_bulk(&copy).err().unwrap_or(Step::Next));
}

pub(super) fn copy_to_multimem(d: &mut Decoder<'_, '_>, op: &MultimemCpAsyncBulk) {
    let order = order(op.semantics, op.scope);
    let copy = Linear {
        byte_mask: op.byte_mask.as_ref().map(|mask| d.src32(mask, Type::U16)),
        ..Linear::to_multimem(d, [&op.to, &op.from], op.source, &op.size, order)
    };
    d.emit_boxed(move |m, _| m.copy_bulk(&copy).err().unwrap_or(Step::Next));
}

pub(super) fn reduce_multimem(d: &mut Decoder<'_, '_>, op: &MultimemCpReduceAsyncBulk) {
    let order = order(Some(op.semantics.unwrap_or(Semantics::Relaxed)), op.scope.or(Some(Scope::Gpu)));
    let copy = Linear {
        reduction: Some(Reduction::new(op.reduction, op.ty, op.noftz)),
        ..Linear::to_multimem(d, [&op.to, &op.from], op.source, &op.size, order)
    };
    d.emit_boxed(move |m, _| m.copy_bulk(&copy).err().unwrap_or(Step::Next));
}

impl Linear {
    /// A copy from shared memory to multimem addresses, which a bulk group waits for.
    fn to_multimem(
        d: &mut Decoder<'_, '_>,
        [to, from]: [&Address; 2],
        source: Space,
        size: &Src,
        order: Order,
    ) -> Linear {
        Linear {
            to: At::multimem(d, to),
            from: At::decode(d, from, Some(source)),
            size: d.src32(size, Type::U32),
            ignored: None,
            ranks: None,
            byte_mask: None,
            barrier: None,
            agents: agents(Completion::BulkGroup),
            order,
            to_peer: false,
            reduction: None,
        }
    }
}

/// The addresses of one place in the blocks of a mask; that of the place itself without one.
pub(in crate::op) fn in_blocks(
    address: u64,
    space: SpaceKind,
    ranks: Option<u32>,
) -> impl Iterator<Item = (u64, SpaceKind)> {
    let one = ranks.is_none().then_some((address, space));
    let space = if space == SpaceKind::Shared { SpaceKind::SharedCluster } else { space };
    let ranks = LanesOf(ranks.unwrap_or(0));
    one.into_iter().chain(ranks.map(move |rank| (address & !RANK_MASK | (rank as u64) << RANK_BITS, space)))
}

/// The barriers of a copy that goes to the blocks of a mask: one in each block, or one in each of their pairs, in the even
/// or the odd block as the one that is named.
pub(super) fn barriers_in_blocks(
    address: u64,
    space: SpaceKind,
    ranks: Option<u32>,
    pairs: bool,
) -> impl Iterator<Item = (u64, SpaceKind)> {
    let odd = if pairs && ranks.is_some() { 1 << RANK_BITS } else { 0 };
    in_blocks(address, space, ranks).map(move |(at, space)| (at & !odd | address & odd, space))
}

impl<'a> Machine<'a> {
    fn copy_bulk(&mut self, op: &Linear) -> Result<(), Step> {
        let rows = |row: Option<u32>, m: &Self| row.map(|row| *m.registers.row32(row));
        let (to, from) = (self.addresses(&op.to.address), self.addresses(&op.from.address));
        let sizes: Row32 = *self.registers.row32(op.size);
        let (ranks, byte_masks) = (rows(op.ranks, self), rows(op.byte_mask, self));
        let ignored = op.ignored.map(|rows| rows.map(|row| *self.registers.row32(row)));
        let barriers: Option<(Row64, SpaceKind)> =
            op.barrier.map(|barrier| (self.addresses(&barrier.address), barrier.space));
        self.worker.progress = true;
        for lane in LanesOf(self.mask) {
            let size = sizes[lane];
            let ignored = ignored.map_or([0; 2], |rows| rows.map(|row| row[lane]));
            self.refuse_bulk(op, to[lane], size, ignored)?;
            let ranks = ranks.map(|ranks| ranks[lane] & 0xffff);
            let byte_mask = byte_masks.map_or(u16::MAX, |masks| masks[lane] as u16);
            if size != 0 && byte_mask != 0 {
                let mut done = 0;
                while done < size {
                    let [from, to] = [from[lane], to[lane]].map(|at| at.wrapping_add(done.into()));
                    let bytes = self.in_one_memory(op.to.space, to, size - done);
                    let from = (from, op.from.space);
                    self.copy_of_lane(op, lane, bytes, from, (to, ranks), ignored, byte_mask);
                    done += bytes;
                }
            }
            let Some((barriers, space)) = &barriers else { continue };
            for (barrier, space) in in_blocks(barriers[lane], *space, ranks) {
                self.complete_bytes(([barrier; LANES], space), 1 << lane, size, Some(Agent::Counted))?;
            }
        }
        Ok(())
    }

    /// How many of so many bytes from a multimem address on lead to one memory, and lie there as they do here. Elsewhere
    /// it is all of them.
    fn in_one_memory(&self, space: SpaceKind, address: u64, bytes: u32) -> u32 {
        let spec = AccessSpec { space, bytes: 1, align: 1, write: true };
        let region = (space == SpaceKind::Multimem).then(|| self.region_of(spec, address)).flatten();
        let left = region.map_or(u64::MAX, |region| region.start + region.bytes - address);
        left.min(bytes.into()) as u32
    }

    /// What no copy may ask for.
    fn refuse_bulk(&mut self, op: &Linear, to: u64, size: u32, ignored: [u32; 2]) -> Result<(), Step> {
        let message = if !size.is_multiple_of(UNIT) {
            format!("a bulk copy of {size} bytes: the size must be a multiple of {UNIT}")
        } else if let Some(bytes) = ignored.into_iter().find(|&bytes| bytes >= UNIT) {
            format!("a bulk copy that ignores {bytes} bytes at an end: it can ignore up to {}", UNIT - 1)
        } else if op.to_peer && (to & RANK_MASK) >> RANK_BITS == u64::from(self.block.rank) {
            let own = "a bulk copy from shared memory to that of the block itself";
            format!("{own}, at {to:#x}: the destination must be another block of the cluster")
        } else {
            return Ok(());
        };
        Err(self.trap(TrapKind::BadOperand, message))
    }

    #[expect(clippy::too_many_arguments, reason = "what a lane says of its copy")]
    fn copy_of_lane(
        &mut self,
        op: &Linear,
        lane: usize,
        size: u32,
        (from, from_space): (u64, SpaceKind),
        (to, ranks): (u64, Option<u32>),
        [left, right]: [u32; 2],
        byte_mask: u16,
    ) {
        let element = op.reduction.map_or(UNIT, |reduction| reduction.ty.bytes());
        let [reads, writes] = op.agents;
        // The source of a reduction is read weakly.
        let order_of_reads = if op.reduction.is_some() { Order::WEAK } else { op.order };
        let read = Touch { kind: AccessKind::AsyncRead(reads), element, order: order_of_reads };
        let kind = match op.reduction {
            None => AccessKind::AsyncWrite(writes),
            Some(_) => AccessKind::AsyncAtomic(writes),
        };
        let write = Touch { kind, element, order: op.order };
        // Of a short copy the ends may meet.
        let (left, needed) = (left.min(size), size.saturating_sub(left + right));
        let right = size - left - needed;
        // Where the beginning is not needed, its address says whether it is aligned.
        let align = if from.is_multiple_of(UNIT.into()) { 1 } else { UNIT };
        let spec = |space, bytes, align, write| AccessSpec { space, bytes, align, write };
        let source =
            self.run_at(lane, from.wrapping_add(left.into()), spec(from_space, needed, align, false));
        if let Some(source) = &source {
            self.touches_run(read, source);
        }
        for (to, space) in in_blocks(to, op.to.space, ranks) {
            let Some(target) = self.run_at(lane, to, spec(space, size, UNIT, true)) else { continue };
            let masked = || (0..size / UNIT).flat_map(|chunk| runs(UNIT * chunk, byte_mask));
            if byte_mask == u16::MAX {
                let same = |source| [left, right] == [0; 2] && self.holds_same(source, &target);
                let unchanged = op.reduction.is_none() && source.as_ref().is_some_and(same);
                self.touches_run_with(write, &target, unchanged);
            } else {
                let write = Touch { element: 1, ..write };
                masked().for_each(|(at, bytes)| self.touches_run(write, &part(&target, at, bytes)));
            }
            let Some(source) = &source else { continue };
            if let Some(reduction) = op.reduction {
                self.reduce_run(reduction, read, source, &target);
            } else if byte_mask == u16::MAX {
                self.forget_run(&part(&target, 0, left));
                self.forget_run(&part(&target, left + needed, right));
                self.copy_run(read, source, &part(&target, left, needed));
            } else {
                for (at, bytes) in masked() {
                    self.copy_run(read, &part(source, at, bytes), &part(&target, at, bytes));
                }
            }
        }
    }
}

/// The runs of bytes of 16 that are in a mask: where each is, from the first one on, and how many they are.
fn runs(first: u32, mask: u16) -> impl Iterator<Item = (u32, u32)> {
    let mut left = u32::from(mask);
    std::iter::from_fn(move || {
        (left != 0).then(|| {
            let at = left.trailing_zeros();
            let bytes = (left >> at).trailing_ones();
            left &= !(((1 << bytes) - 1) << at);
            (first + at, bytes)
        })
    })
}
