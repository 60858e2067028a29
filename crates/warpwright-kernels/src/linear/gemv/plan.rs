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

use super::tile::Product;
use super::weights::Layout;
use warpwright_dsl::*;

/// Lanes that share a row.
pub(super) const LANES: u32 = 8;
/// Groups of lanes of a warp.
pub(super) const GROUPS: u32 = 32 / LANES;
/// Lanes whose units lie in one superblock.
const QUAD: u32 = 4;
/// Most warps of a block.
pub(crate) const MAX_WARPS: u32 = 16;
/// How a warp's lanes stand to the rows and slices.
#[derive(Clone, Copy)]
pub(super) struct Lanes<'k> {
    /// The group's number in the warp.
    pub(super) group: Reg<'k, u32>,
    /// The lane's number in the group.
    pub(super) in_group: Reg<'k, u32>,
    /// The lane's number in the warp.
    pub(super) lane: Reg<'k, u32>,
    /// The warp's number in the block.
    pub(super) warp: Reg<'k, u32>,
    /// The quad's number in the group, and the lane's in the quad.
    pub(super) quad: Reg<'k, u32>,
    pub(super) in_quad: Reg<'k, u32>,
}

impl<'k> Lanes<'k> {
    /// Computed once, outside of all loops, so that addresses are too.
    pub(super) fn new(k: K<'k>) -> Self {
        Self::of(k.lane(), k.warp())
    }

    fn of(lane: Reg<'k, u32>, warp: Reg<'k, u32>) -> Self {
        let in_group = lane % LANES;
        Lanes { group: lane / LANES, in_group, lane, warp, quad: in_group / QUAD, in_quad: in_group % QUAD }
    }
}

/// The rows of a tile that a group of lanes works on: those of one matrix, or as many of each of two.
#[derive(Clone, Copy)]
pub(super) struct Rows<'k> {
    /// Rows of the matrix.
    pub(super) n: Dim<'k>,
    /// Rows of a group.
    pub(super) group: u32,
    /// Where the tile begins, and the first row that it reads.
    begin: Reg<'k, u32>,
    first: Reg<'k, u32>,
}

impl<'k> Rows<'k> {
    /// The rows of tile `tile`. The last tile begins earlier where it would end beyond the last row, so that
    /// no load needs a condition; what an earlier tile has stored is not stored again.
    pub(super) fn new(k: K<'k>, tile: Reg<'k, u32>, n: Dim<'k>, group: u32) -> Self {
        let rows = group * GROUPS;
        let begin = tile * rows;
        let first = match n.is_at_most(rows - 1) {
            true => k.u32(0),
            false if n.is_multiple_of(rows) => begin,
            false => begin.min(n.reg() - rows),
        };
        Rows { n, group, begin, first }
    }

    /// Rows of the tile.
    pub(super) fn tile(self) -> u32 {
        self.group * GROUPS
    }

    /// The first row of the lane's group. Beyond the last row it is that one.
    pub(super) fn of_group(self, lanes: Lanes<'k>) -> Reg<'k, u32> {
        let row = self.first + lanes.group * self.group;
        if self.are_few() { row.min(self.n.reg() - 1) } else { row }
    }

    /// How many rows further row `r` of the group is.
    pub(super) fn further(self, lanes: Lanes<'k>, r: u32) -> Reg<'k, u32> {
        let r = lanes.lane.kernel().u32(r);
        if self.are_few() { r.min(self.n.reg() - 1 - self.of_group(lanes)) } else { r }
    }

    /// Whether the matrix has fewer rows than a tile.
    fn are_few(self) -> bool {
        self.n.is_at_most(self.tile() - 1)
    }

    /// Row `i` of the tile, and whether it is this tile's to store.
    pub(super) fn stored(self, i: Reg<'k, u32>) -> (Reg<'k, u32>, Option<Reg<'k, Pred>>) {
        let row = self.first + i;
        let own = match self.are_few() {
            true => Some(i.lt(self.n)),
            false if self.n.is_multiple_of(self.tile()) => None,
            false => Some(row.ge(self.begin)),
        };
        (row, own)
    }
}

/// A slice of the rows.
#[derive(Clone, Copy)]
pub(super) struct Slice<'k> {
    /// Its number.
    pub(super) number: Reg<'k, u32>,
    /// Weights of a row in it where it is the last and not whole.
    pub(super) rest: Option<Reg<'k, u32>>,
}

/// How rows are divided into slices.
#[derive(Clone, Copy)]
pub(super) struct Slices<'k> {
    layout: Layout,
    /// Whole ones of a row.
    whole: Dim<'k>,
    /// Weights of the last where it is not whole, else none.
    rest: Dim<'k>,
    /// Warps that share them.
    warps: u32,
}

impl<'k> Slices<'k> {
    /// Those of rows of `columns` weights.
    pub(super) fn new(k: K<'k>, layout: Layout, columns: u32, warps: u32) -> Self {
        let [whole, rest] = [columns / layout.slice(), columns % layout.slice()].map(|size| k.dim(size));
        Slices { layout, whole, rest, warps }
    }

    /// Has each warp of the block walk its slices: `body` is built once for whole slices and once for what is left, for
    /// which the lanes' numbers are computed anew: what comes of them takes no registers before.
    pub(super) fn each(self, k: K<'k>, lanes: Lanes<'k>, body: impl Fn(Slice<'k>, Option<Lanes<'k>>)) {
        let Slices { layout, whole, rest, warps } = self;
        let full = |number| body(Slice { number, rest: None }, None);
        if whole.is_at_most(0) {
        } else if whole.is_multiple_of(warps) {
            k.each(k.upto(whole / warps).no_unroll(), |round| full(round * warps + lanes.warp));
        } else {
            k.each(k.range(lanes.warp..whole.reg()).step(warps).no_unroll(), full);
        }
        if rest.is_at_most(0) {
            return;
        }
        // Superblocks are half a slice: if anything is left, it is one.
        let half = layout.slice() / 2;
        let rest = Some(if layout.format.block() == half { k.u32(half) } else { rest.reg() });
        let own = || Lanes::of(k.var(lanes.lane).get(), lanes.warp);
        let last = || body(Slice { number: whole.anew().reg(), rest }, Some(own()));
        k.when((warps > 1).then(|| lanes.warp.eq(whole % warps)), last);
    }
}

impl Product {
    /// About as many warps of a block as are wanted, `most` at most, and a number that shares the slices evenly. Fewer with
    /// more slices each would be better still, since a block's beginning and end cost as much as half a slice.
    pub(super) fn warps_near(&self, wanted: u32, max: u32) -> u32 {
        let slices = self.k.div_ceil(self.layout().slice()).max(1);
        // What idles, in slices: all rounds are as long as the longest.
        let idle = |warps: u32| slices.div_ceil(warps) * warps - slices;
        let max = (2 * wanted).min(max).min(slices).max(1);
        let candidates = (wanted / 2).clamp(1, max)..=max;
        candidates.min_by_key(|&warps| (idle(warps) * 16 / slices, warps.abs_diff(wanted))).unwrap_or(1)
    }
}
