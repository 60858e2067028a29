//! How the work is distributed: rows over blocks and groups of lanes, slices of rows over warps.
//!
//! ```text
//!   tile: 16 rows (fewer where more columns need the registers)
//!
//!             k ──►   slice 0     slice 1     slice 2     slice 3
//!   rows 0..4        ┌ warp 0 ┐  ┌ warp 1 ┐  ┌ warp 2 ┐  ┌ warp 0 ┐     lanes  0..8
//!   rows 4..8        │        │  │        │  │        │  │        │     lanes  8..16
//!   rows 8..12       │        │  │        │  │        │  │        │     lanes 16..24
//!   rows 12..16      └────────┘  └────────┘  └────────┘  └────────┘     lanes 24..32
//! ```
//!
//! A lane keeps a sum for each of its group's rows, and the activations that it reads serve all of them. So
//! a block reads each activation once, for all of its rows.

use super::format::Layout;
use warpwright_ptx::dsl::*;

/// Lanes that share a row.
pub(super) const LANES: u32 = 8;
/// Groups of lanes of a warp.
pub(super) const GROUPS: u32 = 32 / LANES;
/// Lanes whose shares lie in one superblock, or in half of the scales of a slice.
pub(super) const QUAD: u32 = 4;
/// Most warps of a block.
pub(super) const MAX_WARPS: u32 = 16;
/// Warps that keep a device busy: sixteen on each of 132 multiprocessors.
const ENOUGH_WARPS: u64 = 2048;

/// How a warp's lanes stand to the rows and slices.
#[derive(Clone, Copy)]
pub(super) struct Lanes<'k> {
    /// The group's number in the warp.
    pub(super) group: Reg<'k, u32>,
    /// The lane's number in the group.
    pub(super) unit: Reg<'k, u32>,
    /// The lane's number in the warp.
    pub(super) lane: Reg<'k, u32>,
    /// The warp's number in the block.
    pub(super) warp: Reg<'k, u32>,
    /// The quad's number in the group.
    pub(super) half: Reg<'k, u32>,
    /// The lane's number in its quad.
    pub(super) in_quad: Reg<'k, u32>,
}

impl<'k> Lanes<'k> {
    /// Computed once, outside of all loops, so that addresses are too.
    pub(super) fn new(k: K<'k>) -> Self {
        let lane = k.lane();
        let unit = lane % LANES;
        Lanes { group: lane / LANES, unit, lane, warp: k.warp(), half: unit / QUAD, in_quad: lane % QUAD }
    }
}

/// The rows of a tile that a group of lanes works on: those of one matrix, or as many of each of two.
#[derive(Clone, Copy)]
pub(super) struct Rows<'k> {
    /// Rows of the matrix.
    pub(super) n: u32,
    /// Rows of the tile.
    pub(super) tile: u32,
    /// Rows of a group.
    pub(super) group: u32,
    /// The first row of the tile.
    first: Reg<'k, u32>,
}

impl<'k> Rows<'k> {
    /// The rows of tile `tile`. The last tile begins earlier where it would end beyond the last row, so that
    /// no load needs a condition; what an earlier tile has stored is not stored again.
    pub(super) fn new(k: K<'k>, tile: Reg<'k, u32>, n: u32, group: u32) -> Self {
        let rows = group * GROUPS;
        let begin = tile * rows;
        let first = if n < rows {
            k.u32(0)
        } else if n.is_multiple_of(rows) {
            begin
        } else {
            begin.min(n - rows)
        };
        Rows { n, tile: rows, group, first }
    }

    /// Row `r` of the lane's group. Beyond the last row it is that one.
    pub(super) fn of_group(self, lanes: Lanes<'k>, r: impl IntoReg<'k, u32>) -> Reg<'k, u32> {
        let row = self.first + lanes.group * self.group + r;
        if self.n < self.tile { row.min(self.n - 1) } else { row }
    }

    /// Row `i` of the tile, and whether it is this tile's to store.
    pub(super) fn stored(self, tile: Reg<'k, u32>, i: Reg<'k, u32>) -> (Reg<'k, u32>, Option<Reg<'k, Pred>>) {
        let row = self.first + i;
        let own = if self.n < self.tile {
            Some(i.lt(self.n))
        } else if self.n.is_multiple_of(self.tile) {
            None
        } else {
            Some(row.ge(tile * self.tile))
        };
        (row, own)
    }
}

/// A slice of the rows.
#[derive(Clone, Copy)]
pub(super) struct Slice<'k> {
    /// Its number.
    pub(super) number: Reg<'k, u32>,
    /// Weights of a row in it: fewer than the layout's where it is the last.
    pub(super) weights: u32,
}

/// Slices of rows of `k` weights: whole ones, and the weights of the last where it is not whole.
pub(super) fn slices(layout: Layout, k: u32) -> (u32, u32) {
    (k / layout.slice(), k % layout.slice())
}

/// Has each warp of the block walk its slices: `body` is built once for whole slices and once for what is left.
pub(super) fn each_slice<'k>(
    k: K<'k>,
    layout: Layout,
    length: u32,
    warps: u32,
    lanes: Lanes<'k>,
    body: impl Fn(Slice<'k>),
) {
    let (whole, rest) = slices(layout, length);
    let full = |number| body(Slice { number, weights: layout.slice() });
    if whole > 0 && whole % warps == 0 {
        k.each(k.range(0..whole / warps).no_unroll(), |round| full(round * warps + lanes.warp));
    } else if whole > 0 {
        k.each(k.range(lanes.warp..k.u32(whole)).step(warps).no_unroll(), full);
    }
    if rest > 0 {
        let last = || body(Slice { number: k.u32(whole), weights: rest });
        if warps == 1 { last() } else { k.when(lanes.warp.eq(whole % warps), last) }
    }
}

/// Warps of a block: enough in all to keep a device busy, and a number that shares the slices evenly. Fewer
/// with more slices each would be better still, since a block's beginning and end cost as much as half a slice.
pub(super) fn warps(layout: Layout, k: u32, tiles: u64, most: u32) -> u32 {
    let slices = k.div_ceil(layout.slice()).max(1);
    let wanted = ENOUGH_WARPS.div_ceil(tiles.max(1)).clamp(2, 8) as u32;
    // What idles, in slices: all rounds are as long as the longest.
    let idle = |warps: u32| slices.div_ceil(warps) * warps - slices;
    let most = (2 * wanted).min(most).min(slices).max(1);
    let candidates = (wanted / 2).clamp(1, most)..=most;
    candidates.min_by_key(|&warps| (idle(warps) * 16 / slices, warps.abs_diff(wanted))).unwrap_or(1)
}
