//! Placement of memory blocks with lifetimes in one address range.
//!
//! ```text
//!   offset ▲  ┌───────┐     ┌─────────┐
//!          │  │   a   │     │    d    │        begin and end of a block are steps; blocks that are needed
//!          │  └───────┘┌────┴───┐     │        at the same step do not overlap
//!          │  ┌────────┤   c    │─────┘
//!          │  │   b    └────────┘
//!          └──┴───────────────────────────► step
//! ```
//!
//! The module does not depend on the blocks' purpose: sizes and lifetimes go in, offsets come out. Invariants: two
//! blocks whose lifetimes overlap do not overlap in memory, except that a block may replace another at the step where
//! that one is used for the last time; offsets are multiples of the alignment; the peak is at least the bound, the
//! largest sum of bytes needed at one step.

mod fit;

/// A block of memory that is needed from one step to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Its size.
    pub bytes: u64,
    /// The first step that needs it.
    pub begin: u32,
    /// The last step that needs it.
    pub end: u32,
    /// Blocks of the same size, last needed at `begin`, that this block may replace: it takes the first one that no
    /// other block has taken.
    pub may_replace: Vec<usize>,
}

/// The offsets of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The offset of each block.
    pub offsets: Vec<u64>,
    /// The block that each block replaces.
    pub replaces: Vec<Option<usize>>,
    /// Bytes from the beginning of the range to the end of the last block.
    pub peak: u64,
    /// The lower bound of the peak of any placement: the largest sum of the bytes that one step needs.
    pub bound: u64,
}

/// Places the blocks; `None` if a step needs more bytes than there are addresses.
///
/// Blocks that replace one another count as one block with the lifetime of all. Blocks are placed one after the other
/// where they fit most tightly (Sekiyama et al. 2018; Pisarchyk and Lee 2020, *greedy by size*), in several orders, and
/// the best result is taken. If that wastes more than one or two per cent, similar orders are tried, in a number that
/// bounds the time. Finding an optimal placement is NP-hard.
///
/// ```
/// use warpwright_graph::place::{Block, place};
///
/// let block = |bytes, begin, end| Block { bytes, begin, end, ..Block::default() };
/// let placement = place(&[block(512, 0, 1), block(256, 1, 2), block(512, 2, 3)], 256);
/// let placement = placement.expect("a few bytes");
/// assert_eq!((placement.peak, placement.bound), (768, 768));
/// assert_eq!(placement.offsets[0], placement.offsets[2]);
/// ```
pub fn place(blocks: &[Block], alignment: u64) -> Option<Placement> {
    let (units, replaces) = unite(blocks, alignment)?;
    let bound = peak(&units, |unit| unit.bytes)?;
    // Sizes are rounded up, but for what lies last; and a few hundredths are not worth a search.
    let enough = peak(&units, |unit| unit.room)?.max(bound.saturating_add(bound / 64));
    let (offsets, peak) = fit::best(&units, enough)?;
    let mut of_blocks = vec![0; blocks.len()];
    for (unit, offset) in units.iter().zip(offsets) {
        unit.blocks.iter().for_each(|&block| of_blocks[block] = offset);
    }
    Some(Placement { offsets: of_blocks, replaces, peak, bound })
}

/// Blocks that have one place, one after the other.
#[derive(Clone, Debug)]
struct Unit {
    /// Their size.
    bytes: u64,
    /// That, up to where the next unit can begin.
    room: u64,
    begin: u32,
    end: u32,
    blocks: Vec<usize>,
}

impl Unit {
    /// How many steps need it.
    fn time(&self) -> u128 {
        u128::from(self.end - self.begin) + 1
    }
}

/// Decides which blocks replace which.
fn unite(blocks: &[Block], alignment: u64) -> Option<(Vec<Unit>, Vec<Option<usize>>)> {
    let mut replaces: Vec<Option<usize>> = vec![None; blocks.len()];
    let mut taken = vec![false; blocks.len()];
    for (i, block) in blocks.iter().enumerate() {
        let free = |&other: &usize| {
            let fits = |before: &Block| before.bytes == block.bytes && before.end == block.begin;
            // Blocks of one step cannot go round in a circle: what is replaced begins earlier.
            let earlier = |before: &Block| before.begin < block.begin;
            !taken[other] && blocks.get(other).is_some_and(|before| fits(before) && earlier(before))
        };
        let known = block.may_replace.iter().copied().filter(|&other| other < blocks.len());
        if let Some(other) = known.into_iter().find(free) {
            taken[other] = true;
            replaces[i] = Some(other);
        }
    }
    let mut next: Vec<Option<usize>> = vec![None; blocks.len()];
    for (i, &before) in replaces.iter().enumerate() {
        if let Some(before) = before {
            next[before] = Some(i);
        }
    }
    let mut units = Vec::new();
    for first in (0..blocks.len()).filter(|&i| replaces[i].is_none() && blocks[i].bytes > 0) {
        let Block { bytes, begin, mut end, .. } = blocks[first];
        let mut members = vec![first];
        while let Some(block) = members.last().and_then(|&last| next[last]) {
            end = end.max(blocks[block].end);
            members.push(block);
        }
        let room = bytes.checked_next_multiple_of(alignment.max(1))?;
        units.push(Unit { bytes, room, begin, end, blocks: members });
    }
    Some((units, replaces))
}

/// The largest sum of bytes needed at one step.
fn peak(units: &[Unit], size: impl Fn(&Unit) -> u64) -> Option<u64> {
    let mut changes: Vec<(u32, bool, u64)> = Vec::with_capacity(2 * units.len());
    for unit in units {
        changes.push((unit.begin, true, size(unit)));
        if let Some(after) = unit.end.checked_add(1) {
            changes.push((after, false, size(unit)));
        }
    }
    // What ends before a step does so before others begin at it.
    changes.sort_unstable_by_key(|&(step, begins, _)| (step, begins));
    let (mut live, mut peak) = (0u64, 0);
    for (_, begins, bytes) in changes {
        live = if begins { live.checked_add(bytes)? } else { live - bytes };
        peak = peak.max(live);
    }
    Some(peak)
}
