//! Copies and reductions of tiles of a tensor, and of columns of a convolution.

use super::agents;
use super::linear::{barriers_in_blocks, in_blocks};
use super::run::{Reduction, part};
use super::tensor_map::map_at;
use super::walk::{self, Run, Walk};
use crate::check::Touch;
use crate::check::race::{AccessKind, Agent};
use crate::decode::Decoder;
use crate::device::{Im2colMode, TensorElement, TensorInterleave, TensorMap, TensorSwizzle};
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

/// A tensor map, and where in the tensor.
struct TensorPlace {
    map: Address,
    /// Rows of the coordinates, dimension 0 first. For rows of a matrix those of the four follow that of the column.
    coordinates: Vec<u32>,
    /// Rows of the offsets of columns.
    offsets: Vec<u32>,
    rank: usize,
    /// Four rows of a matrix.
    rows: bool,
    columns: Option<Im2colMode>,
}

impl TensorPlace {
    fn decode(
        d: &mut Decoder<'_, '_>,
        at: &TensorAddress,
        dim: TensorDim,
        mode: Option<LoadMode>,
        offsets: Option<&Srcs>,
    ) -> TensorPlace {
        let coordinates = at.coordinates.first().map_or(&[][..], Srcs::as_slice);
        let coordinates = coordinates.iter().map(|src| d.src32(src, Type::S32)).collect();
        let offsets = offsets.map_or(&[][..], Srcs::as_slice);
        let offsets = offsets.iter().map(|src| d.src32(src, Type::U16)).collect();
        let columns = match mode {
            Some(LoadMode::Im2col | LoadMode::Im2colNoOffs) => Some(Im2colMode::Spatial),
            Some(LoadMode::Im2colW) => Some(Im2colMode::Wide),
            Some(LoadMode::Im2colW128) => Some(Im2colMode::Wide128),
            _ => None,
        };
        let rows = matches!(mode, Some(LoadMode::Gather4 | LoadMode::Scatter4));
        TensorPlace { map: d.address(&at.base), coordinates, offsets, rank: dim.count(), rows, columns }
    }
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

fn emit(d: &mut Decoder<'_, '_>, tile: Tile) {
    d.emit_boxed(move |m, _| m.copy_tile(&tile).err().unwrap_or(Step::Next));
}

pub(super) fn copy(d: &mut Decoder<'_, '_>, op: &CpAsyncBulkTensor) -> bool {
    let (memory, tensor, loads) = match (&op.to, &op.from) {
        (TensorEnd::Memory(to), TensorEnd::Tensor(from)) => (to, from, true),
        (TensorEnd::Tensor(to), TensorEnd::Memory(from)) => (from, to, false),
        _ => return false,
    };
    let place = TensorPlace::decode(d, tensor, op.dim, op.load_mode, op.offsets.as_ref());
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
    let place = TensorPlace::decode(d, &op.to, op.dim, op.load_mode, None);
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
    let place = TensorPlace::decode(d, &op.from, op.dim, op.load_mode, op.offsets.as_ref());
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
    use TensorElement::{BF16, F16, F32, F32Ftz, F64, S32, S64, U32, U64};
    let ty = match (by, element) {
        (Add | Min | Max | Inc | Dec, U32) => Type::U32,
        (Add | Min | Max, S32) => Type::S32,
        (Add | Min | Max, U64) => Type::U64,
        (Min | Max, S64) => Type::S64,
        (Add | Min | Max, F16) => Type::F16,
        (Add | Min | Max, BF16) => Type::BF16,
        (Add, F32 | F32Ftz) => Type::F32,
        (Add, F64) => Type::F64,
        (And | Or | Xor, U32 | S32) => Type::B32,
        (And | Or | Xor, U64 | S64) => Type::B64,
        _ => return None,
    };
    // The type says whether subnormals stay.
    Some(Reduction::new(by, ty, element == F32))
}

/// What the bytes of a map are for.
fn is_for(columns: Option<Im2colMode>) -> &'static str {
    match columns {
        None => "tiles",
        Some(Im2colMode::Spatial) => "`.im2col`",
        Some(Im2colMode::Wide) => "`.im2col::w`",
        Some(Im2colMode::Wide128) => "`.im2col::w::128`",
    }
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
        let columns = |map: &TensorMap| map.im2col.as_ref().map(|im2col| im2col.mode);
        let mut kind = TrapKind::BadOperand;
        let wrong = match TensorMap::from_bytes(&bytes) {
            Err(wrong) => wrong.to_string(),
            Ok(map) if map.dims.len() != place.rank => {
                format!("it is of a tensor of {} dimensions, not {}", map.dims.len(), place.rank)
            }
            Ok(map) if place.rows && map.tile[1] != 1 => {
                format!("its box has {} rows, and rows are copied one by one: it must have 1", map.tile[1])
            }
            Ok(map) if columns(&map) != place.columns => {
                let (is_for, copy) = (is_for(columns(&map)), is_for(place.columns));
                format!("it is for {is_for}, and the copy is one of {copy}")
            }
            Ok(map) if map.interleave == TensorInterleave::B16 && map.swizzle != TensorSwizzle::None => {
                kind = TrapKind::Unsupported;
                "slices of 16 bytes with swizzling are not executed by the virtual GPU".to_owned()
            }
            Ok(map) => return Ok(Some(map)),
        };
        Err(self.trap(kind, format!("the tensor map at {address:#x}: {wrong}")))
    }

    /// What a copy is made of, which must be allowed.
    fn walk<'m>(
        &mut self,
        op: &Tile,
        map: &'m TensorMap,
        coordinates: &[i64],
        offsets: &[u32],
    ) -> Result<Walk<'m>, Step> {
        let elements = match map.element {
            _ if map.interleave != TensorInterleave::None => 1,
            TensorElement::B4x16 => 2,
            element if element.is_padded() => 128,
            _ => 1,
        };
        let bytes = |rows: u64| u64::from(map.row_bytes()) * rows;
        let rows = map.counts().skip(1).fold(1, |rows, count| rows * u64::from(count));
        let walk = match &map.im2col {
            _ if coordinates[0].rem_euclid(elements) != 0 => Err(format!(
                "a tile from element {} on, of {} bits: it must be a multiple of {elements}",
                coordinates[0],
                map.element.bits()
            )),
            None if bytes(rows) > MAX_TILE => {
                Err(format!("a tile of {} bytes: it has at most {MAX_TILE}", bytes(rows)))
            }
            None => Ok(walk::tile(map, op.place.rows, coordinates)),
            Some(im2col) if !op.loads && im2col.lower.iter().any(|&corner| corner < 0) => {
                Err("columns to a tensor whose lower corner is negative".to_owned())
            }
            Some(im2col) if !op.loads && im2col.upper.iter().any(|&corner| corner > 0) => {
                Err("columns to a tensor whose upper corner is positive".to_owned())
            }
            Some(_) if !op.loads && coordinates.iter().any(|&at| at < 0) => {
                Err("columns to a tensor from a negative coordinate on".to_owned())
            }
            Some(im2col) => walk::columns(map, im2col, coordinates, offsets),
        };
        match walk {
            Ok(walk) if u64::from(walk.bytes()) > MAX_TILE => {
                let message = format!("columns of {} bytes: they have at most {MAX_TILE}", walk.bytes());
                Err(self.trap(TrapKind::BadOperand, message))
            }
            Ok(walk) => Ok(walk),
            Err(message) => Err(self.trap(TrapKind::BadOperand, message)),
        }
    }

    fn copy_tile(&mut self, op: &Tile) -> Result<(), Step> {
        let (maps, shared) = (self.addresses(&op.place.map), self.addresses(&op.shared.address));
        let rows =
            |rows: &[u32]| -> Vec<Row32> { rows.iter().map(|&row| *self.registers.row32(row)).collect() };
        let (coordinates, offsets) = (rows(&op.place.coordinates), rows(&op.place.offsets));
        let barriers = op.barrier.map(|barrier| (self.addresses(&barrier.address), barrier.space));
        let ranks = op.ranks.map(|row| *self.registers.row32(row));
        self.worker.progress = true;
        for lane in LanesOf(self.mask) {
            let Some(map) = self.map_of_lane(&op.place, lane, maps[lane])? else { continue };
            let at: Vec<i64> = coordinates.iter().map(|row| i64::from(row[lane] as i32)).collect();
            let offsets: Vec<u32> = offsets.iter().map(|row| row[lane] & 0xffff).collect();
            let walk = self.walk(op, &map, &at, &offsets)?;
            let total = walk.bytes();
            let ranks = ranks.map(|ranks| ranks[lane] & 0xffff);
            match op.loads {
                true => self.load_tile(op, lane, (&map, &walk), (shared[lane], ranks))?,
                false => self.store_tile(op, lane, (&map, &walk), shared[lane])?,
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
        (map, walk): (&TensorMap, &Walk<'_>),
        (to, ranks): (u64, Option<u32>),
    ) -> Result<(), Step> {
        if map.element.is_padded() && map.swizzle == TensorSwizzle::B128Atom64 {
            let message = "a copy of elements of 6 bits with a swizzling by 64 bytes: it is for stores";
            return Err(self.trap(TrapKind::BadOperand, message.to_owned()));
        }
        let (runs, total) = (&walk.runs, walk.bytes());
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
            let spec = AccessSpec { space, bytes: walk.extent(), align: TILE_ALIGN, write: true };
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
            if map.element.rounds() {
                self.round_run(&target);
            }
            if map.element.is_padded() {
                self.forget_padding(map, &target, to);
            }
        }
        Ok(())
    }

    /// Behind each 16 elements that are padded is nothing.
    fn forget_padding(&mut self, map: &TensorMap, target: &Group<'a>, to: u64) {
        let elements = 2 * map.element.bits();
        for unit in (0..target.bytes).step_by(16) {
            for (_, to, bytes) in pieces(map, to, unit + elements, 16 - elements) {
                self.forget_run(&part(target, to, bytes));
            }
        }
    }

    fn store_tile(
        &mut self,
        op: &Tile,
        lane: usize,
        (map, walk): (&TensorMap, &Walk<'_>),
        from: u64,
    ) -> Result<(), Step> {
        let [reads, writes] = op.agents;
        let read = Touch { kind: AccessKind::AsyncRead(reads), element: 16, order: Order::WEAK };
        let mut write = Touch { kind: AccessKind::AsyncWrite(writes), element: 16, order: Order::WEAK };
        let for_loads = match map.element {
            TensorElement::B4x16P64 => Some("elements of 4 bits that are padded"),
            _ if map.swizzle == TensorSwizzle::B128Atom32Flip8 => {
                Some("a swizzling that exchanges halves of 16 bytes")
            }
            _ => None,
        };
        if let Some(what) = for_loads {
            let message = format!("a copy to a tensor with {what}: it is for loads");
            return Err(self.trap(TrapKind::BadOperand, message));
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
        let spec = AccessSpec { space, bytes: walk.extent(), align: TILE_ALIGN, write: false };
        let Some(source) = self.run_at(lane, from, spec) else { return Ok(()) };
        self.touches_run(read, &source);
        for run in &walk.runs {
            let Some(target) = self.run_of_tensor(lane, run, true) else { continue };
            if map.element == TensorElement::B6x16P32 {
                // A unit of 16 bytes stays together.
                let Some((_, from, bytes)) = pieces(map, from, run.at, 16).next() else { continue };
                self.touches_run(write, &target);
                self.pack_run(read, &part(&source, from, bytes), &target);
                continue;
            }
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
