//! Copies and reductions of tiles of a tensor.

use super::agents;
use super::linear::{barriers_in_blocks, in_blocks};
use super::run::{Reduction, part};
use super::tensor_map::map_at;
use crate::check::Touch;
use crate::check::race::{AccessKind, Agent};
use crate::decode::Decoder;
use crate::device::{TensorElement, TensorMap, TensorSwizzle};
use crate::launch::TrapKind;
use crate::machine::{LANES, LanesOf, Machine, Row32, Step};
use crate::memory::{AccessSpec, Address, Group, Order, RANK_BITS, SpaceKind};
use crate::op::mbarrier::At;
use warpwright_ptx::ir::{Scope, Semantics, Srcs, TensorAddress, Type};
use warpwright_ptx::op::bulk_copy::*;
use warpwright_ptx::op::tcgen05::CtaGroup;

/// What shared memory of a tile is aligned to.
const TILE_ALIGN: u32 = 128;

/// Bytes of a tile at most: what an mbarrier counts.
const MAX_TILE: u64 = (1 << 20) - 1;

fn tile_bytes(map: &TensorMap) -> u64 {
    map.counts().skip(1).fold(map.row_bytes().into(), |bytes, count| bytes * u64::from(count))
}

/// A tensor map, and where in the tensor.
struct TensorPlace {
    map: Address,
    /// Rows of the coordinates, dimension 0 first. For rows of a matrix those of the four follow that of the column.
    coordinates: Vec<u32>,
    rank: usize,
    /// Four rows of a matrix.
    rows: bool,
}

impl TensorPlace {
    fn decode(
        d: &mut Decoder<'_, '_>,
        at: &TensorAddress,
        dim: TensorDim,
        mode: Option<LoadMode>,
    ) -> TensorPlace {
        let rows = matches!(mode, Some(LoadMode::Gather4 | LoadMode::Scatter4));
        let coordinates = at.coordinates.first().map_or(&[][..], Srcs::as_slice);
        let coordinates = coordinates.iter().map(|src| d.src32(src, Type::S32)).collect();
        TensorPlace { map: d.address(&at.base), coordinates, rank: dim.count(), rows }
    }
}

/// Whether a tile is none, but columns of a convolution.
pub(super) fn is_im2col(mode: Option<LoadMode>) -> bool {
    !matches!(mode, None | Some(LoadMode::Tile | LoadMode::Gather4 | LoadMode::Scatter4))
}

struct Tile {
    place: TensorPlace,
    shared: At,
    /// Whether shared memory is the destination.
    loads: bool,
    barrier: Option<At>,
    /// The row of the mask of blocks.
    ranks: Option<u32>,
    /// A barrier of each pair of blocks counts, not one of each block.
    pairs: bool,
    agents: [Agent; 2],
    reduction: Option<BulkReduction>,
}

/// Elements beside each other that are in the tensor, and in the tile.
struct Run {
    /// Where in global memory.
    address: u64,
    /// Where in the tile.
    at: u32,
    bytes: u32,
}

fn emit(d: &mut Decoder<'_, '_>, tile: Tile) {
    d.emit_boxed(move |m, _| m.copy_tile(&tile).err().unwrap_or(Step::Next));
}

pub(super) fn copy(d: &mut Decoder<'_, '_>, op: &CpAsyncBulkTensor) -> bool {
    let (memory, tensor, loads) = match (&op.to, &op.from) {
        (TensorEnd::Memory(to), TensorEnd::Tensor(from)) => (to, from, true),
        (TensorEnd::Tensor(to), TensorEnd::Memory(from)) => (from, to, false),
        _ => return false,
    };
    let place = TensorPlace::decode(d, tensor, op.dim, op.load_mode);
    let space = if loads { op.space } else { op.source };
    let tile = Tile {
        place,
        shared: At::decode(d, memory, Some(space)),
        loads,
        barrier: op.mbar.as_ref().map(|mbar| At::decode(d, mbar, Some(space))),
        ranks: op.cta_mask.as_ref().map(|mask| d.src32(mask, Type::U16)),
        pairs: op.cta_group == Some(CtaGroup::Two),
        agents: agents(op.completion),
        reduction: None,
    };
    emit(d, tile);
    true
}

pub(super) fn reduce(d: &mut Decoder<'_, '_>, op: &CpReduceAsyncBulkTensor) {
    let place = TensorPlace::decode(d, &op.to, op.dim, op.load_mode);
    let tile = Tile {
        place,
        shared: At::decode(d, &op.from, Some(op.source)),
        loads: false,
        barrier: None,
        ranks: None,
        pairs: false,
        agents: agents(op.completion),
        reduction: Some(op.reduction),
    };
    emit(d, tile);
}

/// A prefetch brings nothing that a program can see, but its map must be one.
pub(super) fn prefetch(d: &mut Decoder<'_, '_>, op: &CpAsyncBulkPrefetchTensor) {
    let place = TensorPlace::decode(d, &op.from, op.dim, op.load_mode);
    d.emit_boxed(move |m, _| {
        let maps = m.addresses(&place.map);
        for lane in LanesOf(m.mask) {
            if let Err(stop) = m.map_of_lane(&place, lane, maps[lane]) {
                return stop;
            }
        }
        Step::Next
    });
}

/// The atomic operation on the elements of a tensor; none where there is no such.
fn reduction(by: BulkReduction, element: TensorElement) -> Option<Reduction> {
    use BulkReduction::{Add, And, Dec, Inc, Max, Min, Or, Xor};
    use TensorElement::{BF16, F16, F32, F64, S32, S64, U32, U64};
    let ty = match (by, element) {
        (Add | Min | Max | Inc | Dec, U32) => Type::U32,
        (Add | Min | Max, S32) => Type::S32,
        (Add | Min | Max, U64) => Type::U64,
        (Min | Max, S64) => Type::S64,
        (Add | Min | Max, F16) => Type::F16,
        (Add | Min | Max, BF16) => Type::BF16,
        (Add, F32) => Type::F32,
        (Add, F64) => Type::F64,
        (And | Or | Xor, U32 | S32) => Type::B32,
        (And | Or | Xor, U64 | S64) => Type::B64,
        _ => return None,
    };
    Some(Reduction::new(by, ty, false))
}

/// The elements of a tile that are in the tensor, and the tile's bytes.
fn runs(map: &TensorMap, place: &TensorPlace, coordinates: &[i64]) -> (Vec<Run>, u32) {
    let bits = i64::from(map.element.bits());
    let row_bytes = map.row_bytes();
    let mut counts: Vec<u32> = map.counts().collect();
    if place.rows {
        counts[1] = coordinates.len() as u32 - 1;
    }
    let total: u32 = row_bytes * counts[1..].iter().product::<u32>();
    let first = coordinates[0].max(0);
    let end = (coordinates[0] + i64::from(map.tile[0])).min(map.dims[0] as i64);
    let mut runs = Vec::new();
    if first >= end {
        return (runs, total);
    }
    let bytes = ((end - first) * bits / 8) as u32;
    let skipped = ((first - coordinates[0]) * bits / 8) as u32;
    for index in 0..total / row_bytes {
        let mut left = index;
        let mut address = (map.address as i64).wrapping_add(first * bits / 8);
        let is_inside = (1..counts.len()).all(|dim| {
            let step = left % counts[dim];
            left /= counts[dim];
            let at = match place.rows {
                true => coordinates[1 + step as usize],
                false => coordinates[dim] + i64::from(step * map.steps[dim]),
            };
            address = address.wrapping_add(at.wrapping_mul(map.strides[dim - 1] as i64));
            (0..map.dims[dim] as i64).contains(&at)
        });
        if is_inside {
            runs.push(Run { address: address as u64, at: index * row_bytes + skipped, bytes });
        }
    }
    (runs, total)
}

impl<'a> Machine<'a> {
    /// The map at an address, which must be one for the instruction.
    fn map_of_lane(
        &mut self,
        place: &TensorPlace,
        lane: usize,
        address: u64,
    ) -> Result<Option<TensorMap>, Step> {
        let Some(bytes) = map_at(self, lane, address) else { return Ok(None) };
        let wrong = match TensorMap::from_bytes(&bytes) {
            Err(wrong) => wrong.to_string(),
            Ok(map) if map.dims.len() != place.rank => {
                format!("it is of a tensor of {} dimensions, not {}", map.dims.len(), place.rank)
            }
            Ok(map) if place.rows && map.tile[1] != 1 => {
                format!("its box has {} rows, and rows are copied one by one: it must have 1", map.tile[1])
            }
            Ok(map) if tile_bytes(&map) > MAX_TILE => {
                format!("its box has {} bytes, and a copy at most {MAX_TILE}", tile_bytes(&map))
            }
            Ok(map) => return Ok(Some(map)),
        };
        Err(self.trap(TrapKind::BadOperand, format!("the tensor map at {address:#x}: {wrong}")))
    }

    fn copy_tile(&mut self, op: &Tile) -> Result<(), Step> {
        let (maps, shared) = (self.addresses(&op.place.map), self.addresses(&op.shared.address));
        let coordinates: Vec<Row32> =
            op.place.coordinates.iter().map(|&row| *self.registers.row32(row)).collect();
        let barriers = op.barrier.map(|barrier| (self.addresses(&barrier.address), barrier.space));
        let ranks = op.ranks.map(|row| *self.registers.row32(row));
        self.worker.progress = true;
        for lane in LanesOf(self.mask) {
            let Some(map) = self.map_of_lane(&op.place, lane, maps[lane])? else { continue };
            let at: Vec<i64> = coordinates.iter().map(|row| i64::from(row[lane] as i32)).collect();
            if at[0] * i64::from(map.element.bits()) % 8 != 0 {
                let message = format!("a tile from element {} on of 4 bits: it must be even", at[0]);
                return Err(self.trap(TrapKind::BadOperand, message));
            }
            let (runs, total) = runs(&map, &op.place, &at);
            let ranks = ranks.map(|ranks| ranks[lane] & 0xffff);
            match op.loads {
                true => self.load_tile(op, lane, (&map, &runs, total), (shared[lane], ranks)),
                false => self.store_tile(op, lane, (&map, &runs, total), shared[lane])?,
            }
            let Some((barriers, space)) = &barriers else { continue };
            for (barrier, space) in barriers_in_blocks(barriers[lane], *space, ranks, op.pairs) {
                self.complete_bytes(([barrier; LANES], space), 1 << lane, total, Some(Agent::Counted))?;
            }
        }
        Ok(())
    }

    fn load_tile(
        &mut self,
        op: &Tile,
        lane: usize,
        (map, runs, total): (&TensorMap, &[Run], u32),
        (to, ranks): (u64, Option<u32>),
    ) {
        let [reads, writes] = op.agents;
        let read = Touch { kind: AccessKind::AsyncRead(reads), element: 16, order: Order::WEAK };
        let write = Touch { kind: AccessKind::AsyncWrite(writes), element: 16, order: Order::WEAK };
        let mut sources = Vec::with_capacity(runs.len());
        for run in runs {
            if let Some(source) = self.run_of_tensor(lane, run, false) {
                self.touches_run(read, &source);
                sources.push((run.at, source));
            }
        }
        for (to, space) in in_blocks(to, op.shared.space, ranks) {
            let spec = AccessSpec { space, bytes: total, align: TILE_ALIGN, write: true };
            let Some(target) = self.run_at(lane, to, spec) else { continue };
            self.touches_run(write, &target);
            let brought: u32 = runs.iter().map(|run| run.bytes).sum();
            if brought != total {
                self.fill_run(&target, map.fill());
            }
            for (at, source) in &sources {
                for (from, to, bytes) in pieces(map, to, *at, source.bytes) {
                    self.copy_run(read, &part(source, from, bytes), &part(&target, to, bytes));
                }
            }
            if map.element == TensorElement::TF32 {
                self.round_run(&target);
            }
        }
    }

    fn store_tile(
        &mut self,
        op: &Tile,
        lane: usize,
        (map, runs, total): (&TensorMap, &[Run], u32),
        from: u64,
    ) -> Result<(), Step> {
        let [reads, writes] = op.agents;
        let read = Touch { kind: AccessKind::AsyncRead(reads), element: 16, order: Order::WEAK };
        let mut write = Touch { kind: AccessKind::AsyncWrite(writes), element: 16, order: Order::WEAK };
        if map.swizzle == TensorSwizzle::B128Atom32Flip8 {
            let message =
                "a copy to a tensor with a swizzling that exchanges halves of 16 bytes: it is for loads";
            return Err(self.trap(TrapKind::BadOperand, message.to_owned()));
        }
        let by = op.reduction.map(|by| (by, reduction(by, map.element)));
        let by = match by {
            None => None,
            Some((_, Some(by))) => {
                let order = crate::op::memory::order(Some(Semantics::Relaxed), Some(Scope::Gpu), false);
                write = Touch { kind: AccessKind::AsyncAtomic(writes), element: by.ty.bytes(), order };
                Some(by)
            }
            Some((by, None)) => {
                let message =
                    format!("the reduction `.{by}` of a tensor of {:?} elements: there is none", map.element);
                return Err(self.trap(TrapKind::BadOperand, message));
            }
        };
        let space = op.shared.space;
        let spec = AccessSpec { space, bytes: total, align: TILE_ALIGN, write: false };
        let Some(source) = self.run_at(lane, from, spec) else { return Ok(()) };
        self.touches_run(read, &source);
        for run in runs {
            let Some(target) = self.run_of_tensor(lane, run, true) else { continue };
            let parts = || pieces(map, from, run.at, run.bytes);
            let mut all =
                parts().map(|(to, from, bytes)| (part(&source, from, bytes), part(&target, to, bytes)));
            let unchanged = by.is_none() && all.all(|(from, to)| self.holds_same(&from, &to));
            self.touches_run_with(write, &target, unchanged);
            for (to, from, bytes) in parts() {
                let (from, to) = (part(&source, from, bytes), part(&target, to, bytes));
                match by {
                    None => self.copy_run(read, &from, &to),
                    Some(by) => self.reduce_run(by, read, &from, &to),
                }
            }
        }
        Ok(())
    }

    fn run_of_tensor(&mut self, lane: usize, run: &Run, write: bool) -> Option<Group<'a>> {
        let spec = AccessSpec { space: SpaceKind::Global, bytes: run.bytes, align: 1, write };
        self.run_at(lane, run.address, spec)
    }
}

/// The pieces of a run that stay together in shared memory: where each is in the run, where it goes in the tile at an
/// address, and its bytes.
fn pieces(map: &TensorMap, tile: u64, at: u32, bytes: u32) -> impl Iterator<Item = (u32, u32, u32)> + use<> {
    let (swizzle, unit) = (map.swizzle, map.swizzle.unit());
    // The rank of the block is no part of its own addresses.
    let tile = tile & ((1 << RANK_BITS) - 1);
    let mut done = 0;
    std::iter::from_fn(move || {
        (done < bytes).then(|| {
            let address = tile + u64::from(at + done);
            let most = unit.map_or(bytes, |unit| unit - (address % u64::from(unit)) as u32);
            let piece = (done, (swizzle.place(address) - tile) as u32, most.min(bytes - done));
            done += piece.2;
            piece
        })
    })
}
