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
use warpwright_dsl::*;

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
        Self::of(k.lane(), || k.warp())
    }

    fn of(lane: Reg<'k, u32>, warp: impl FnOnce() -> Reg<'k, u32>) -> Self {
        let unit = lane % LANES;
        Lanes { group: lane / LANES, unit, lane, warp: warp(), half: unit / QUAD, in_quad: lane % QUAD }
    }

    /// The same, computed again: what comes of it takes no registers before this.
    fn again(self, k: K<'k>) -> Self {
        Self::of(here(k, self.lane), || self.warp)
    }
}

/// The rows of a tile that a group of lanes works on: those of one matrix, or as many of each of two.
#[derive(Clone, Copy)]
pub(super) struct Rows<'k> {
    /// Rows of the matrix.
    pub(super) n: Size<'k>,
    /// Rows of the tile.
    pub(super) tile: u32,
    /// Rows of a group.
    pub(super) group: u32,
    /// The first row of the tile.
    first: Reg<'k, u32>,
    /// The first row of the group, where what a row begins with is not known.
    of_group: Option<Reg<'k, u32>>,
    /// Whether the matrix has fewer rows than a tile.
    few: bool,
}

impl<'k> Rows<'k> {
    /// The rows of tile `tile`. The last tile begins earlier where it would end beyond the last row, so that
    /// no load needs a condition; what an earlier tile has stored is not stored again.
    pub(super) fn new(
        k: K<'k>,
        lanes: Lanes<'k>,
        tile: Reg<'k, u32>,
        n: Size<'k>,
        (few, group): (bool, u32),
    ) -> Self {
        let rows = group * GROUPS;
        let begin = tile * rows;
        let first = match n.known() {
            _ if few => k.u32(0),
            Some(n) if n.is_multiple_of(rows) => begin,
            _ => begin.min(n.reg() - rows),
        };
        let of_group = n.known().is_none().then(|| (first + lanes.group * group).bits());
        Rows { n, tile: rows, group, first, of_group, few }
    }

    /// Whether the rows of a group follow one another at a distance that is not known.
    pub(super) fn follow(self) -> bool {
        self.of_group.is_some() && !self.few
    }

    /// Row `r` of the lane's group. Beyond the last row it is that one.
    pub(super) fn of_group(self, lanes: Lanes<'k>, r: impl IntoReg<'k, u32>) -> Reg<'k, u32> {
        let row = match self.of_group {
            Some(first) => first + r,
            None => self.first + lanes.group * self.group + r,
        };
        if self.few { row.min(self.n.reg() - 1) } else { row }
    }

    /// Row `i` of the tile, and whether it is this tile's to store.
    pub(super) fn stored(self, tile: Reg<'k, u32>, i: Reg<'k, u32>) -> (Reg<'k, u32>, Option<Reg<'k, Pred>>) {
        let row = self.first + i;
        let own = match self.n.known() {
            _ if self.few => Some(i.lt(self.n.reg())),
            Some(n) if n.is_multiple_of(self.tile) => None,
            _ => Some(row.ge(tile * self.tile)),
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
    pub(super) rest: Option<Rest<'k>>,
    /// How the lanes stand to it, where that is to be computed for it alone.
    pub(super) lanes: Option<Lanes<'k>>,
}

/// Weights of a slice that is not whole.
#[derive(Clone, Copy)]
pub(super) struct Rest<'k> {
    pub(super) weights: Reg<'k, u32>,
    /// The same where it is known.
    pub(super) known: Option<u32>,
}

/// How rows are divided into slices.
#[derive(Clone, Copy)]
pub(super) struct Slices<'k> {
    /// Whole ones of a row.
    pub(super) whole: Size<'k>,
    /// Weights of the last where it is not whole, else none.
    pub(super) rest: Size<'k>,
    /// Warps that share them.
    pub(super) warps: Size<'k>,
}

/// Slices of rows of `k` weights: whole ones, and the weights of the last where it is not whole.
pub(super) fn slices(layout: Layout, k: u32) -> (u32, u32) {
    (k / layout.slice(), k % layout.slice())
}

/// Has each warp of the block walk its slices: `body` is built once for whole slices and once for what is left.
pub(super) fn each_slice<'k>(
    k: K<'k>,
    layout: Layout,
    slices: Slices<'k>,
    lanes: Lanes<'k>,
    body: impl Fn(Slice<'k>),
) {
    let Slices { whole, rest, warps } = slices;
    let full = |number| body(Slice { number, rest: None, lanes: None });
    match (whole.known(), warps.known()) {
        (Some(0), _) => {}
        (Some(whole), Some(warps)) if whole % warps == 0 => {
            k.each(k.range(0..whole / warps).no_unroll(), |round| full(round * warps + lanes.warp));
        }
        (Some(whole), Some(warps)) => {
            k.each(k.range(lanes.warp..k.u32(whole)).step(warps).no_unroll(), full);
        }
        _ => k.each(k.range(here(k, lanes.warp)..whole.reg()).step(warps.reg()).no_unroll(), full),
    }
    let last = |known: Option<u32>| {
        let weights = known.map_or(rest.reg(), |known| k.u32(known));
        let rest = Some(Rest { weights, known });
        body(match whole.known() {
            Some(_) => Slice { number: whole.reg(), rest, lanes: None },
            None => Slice { number: here(k, whole.reg()), rest, lanes: Some(lanes.again(k)) },
        });
    };
    match (rest.known(), whole.known(), warps.known()) {
        (Some(0), ..) => {}
        (known @ Some(_), _, Some(1)) => last(known),
        (known @ Some(_), Some(whole), Some(warps)) => k.when(lanes.warp.eq(whole % warps), || last(known)),
        _ => {
            // Superblocks are half a slice: if anything is left, it is one.
            let known = layout.units().then_some(layout.slice() / 2);
            let mine = lanes.warp.eq(whole.reg() & (warps.reg() - 1)) & rest.reg().ne(0);
            k.when(mine, || last(known));
        }
    }
}

/// The value, as one that is known from here on: the addresses of all rows have the same beginning, to which it is
/// added last.
fn here<'k>(k: K<'k>, value: Reg<'k, u32>) -> Reg<'k, u32> {
    k.var(value).get()
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

/// Warps that a team of a caller's block may have.
pub(super) const TEAMS: [u32; 4] = [1, 2, 4, 8];

/// [`warps`] for a team.
pub(super) fn team_warps(layout: Layout, k: u32, tiles: u64, most: u32) -> u32 {
    let wanted = warps(layout, k, tiles, most);
    let slices = k.div_ceil(layout.slice()).max(1);
    let idle = |warps: u32| slices.div_ceil(warps) * warps - slices;
    let candidates = TEAMS.into_iter().filter(|&warps| warps <= most && warps < 2 * slices);
    candidates.min_by_key(|&warps| (idle(warps) * 16 / slices, warps.abs_diff(wanted))).unwrap_or(1)
}
