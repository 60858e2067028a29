//! The accesses of a warp by one instruction, and their division into rows.

use super::entry::{Bytes, Lanes, ROW_BYTES, Scope, lanes};
use super::location::ScalarPlace;

/// How an instruction accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// A load.
    Read,
    /// A store.
    Write,
    /// A read-modify-write: `atom` or `red`.
    Atomic,
    /// A compare-and-swap that stores nothing: a read.
    Swap,
    /// A read of a tensor map, by an instruction that uses it: through the tensormap proxy.
    MapRead,
    /// The source of an asynchronous copy: read at any time until the copy is waited for.
    AsyncRead(Agent),
    /// The destination of an asynchronous copy: written at any time until it is waited for.
    AsyncWrite(Agent),
    /// The destination of an asynchronous reduction: changed at any time until it is waited for.
    AsyncAtomic(Agent),
}

/// Who performs an asynchronous access beside the thread that issued it. What one of them has done is waited for
/// together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    /// The copies of `cp.async`, which come in groups.
    Copies,
    /// Stores of threads that an `mbarrier` counts, and responses.
    Stores,
    /// Bulk copies that an `mbarrier` counts.
    Counted,
    /// The reads of bulk copies that come in groups: they may be waited for before the writes.
    GroupReads,
    /// Their writes.
    GroupWrites,
    /// The products of `wgmma`, which come in groups.
    Products,
    /// What `tcgen05` reads of shared memory, until a commit arrives at an `mbarrier`.
    Tensor,
}

/// What comes in groups that are counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupsOf {
    /// Copies of `cp.async`.
    Copies,
    /// Bulk copies.
    BulkCopies,
    /// Products of `wgmma`.
    Products,
}

impl Agent {
    pub(super) const COUNT: usize = 7;

    /// Whether it accesses memory by the asynchronous proxy.
    const fn is_of_async_proxy(self) -> bool {
        !matches!(self, Agent::Copies | Agent::Stores)
    }
}

impl AccessKind {
    /// Whether it changes memory.
    pub const fn is_write(self) -> bool {
        use AccessKind::{AsyncAtomic, AsyncWrite, Atomic, Write};
        matches!(self, Write | Atomic | AsyncWrite(_) | AsyncAtomic(_))
    }

    /// Whether the instruction reads memory.
    pub const fn is_read(self) -> bool {
        use AccessKind::{AsyncAtomic, AsyncRead, Atomic, MapRead, Read, Swap};
        matches!(self, Read | Atomic | Swap | MapRead | AsyncRead(_) | AsyncAtomic(_))
    }

    /// Whether it goes through the asynchronous or the tensormap proxy.
    pub(crate) const fn is_of_other_proxy(self) -> bool {
        match self.agent() {
            Some(agent) => agent.is_of_async_proxy(),
            None => matches!(self, AccessKind::MapRead),
        }
    }

    /// The asynchronous agent that performs it, if one does.
    pub const fn agent(self) -> Option<Agent> {
        match self {
            AccessKind::AsyncRead(agent) | AccessKind::AsyncWrite(agent) | AccessKind::AsyncAtomic(agent) => {
                Some(agent)
            }
            _ => None,
        }
    }
}

/// How an access gets to global memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// It is coherent with others.
    Coherent,
    /// A read through a cache that is not.
    NonCoherent,
    /// A read of a texture or surface.
    Texture,
}

/// The strength of an access in the memory model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strength {
    /// Weak: takes no part in synchronisation.
    Weak,
    /// Strong: `.relaxed`, `.volatile`, `.acquire`, `.release`, and every atomic.
    Strong {
        /// The scope in which it is strong.
        scope: Scope,
        /// Whether it acquires.
        acquire: bool,
        /// Whether it releases.
        release: bool,
    },
}

impl Strength {
    /// `.relaxed` and `.volatile`.
    pub const fn relaxed(scope: Scope) -> Strength {
        Strength::Strong { scope, acquire: false, release: false }
    }

    pub(super) fn acquires(self) -> bool {
        matches!(self, Strength::Strong { acquire: true, .. })
    }

    pub(super) fn scope(self) -> Option<Scope> {
        match self {
            Strength::Weak => None,
            Strength::Strong { scope, .. } => Some(scope),
        }
    }
}

/// One memory instruction of a warp.
#[derive(Clone, Copy, Debug)]
pub struct WarpAccess<'a> {
    /// The warp, in its block.
    pub warp: u8,
    /// The lanes that take part.
    pub mask: u32,
    /// A base that is added to each lane's offset.
    pub base: u64,
    /// The offset of each lane's access from the base; arbitrary for lanes that are not in the mask.
    pub offsets: &'a [u64; 32],
    /// Number of bytes that each lane accesses, over all elements of a vector.
    pub bytes: u32,
    /// Bytes of one element; each element is a separate access in the memory model.
    pub element: u32,
    /// The instruction.
    pub pc: u32,
    /// The kind of access.
    pub kind: AccessKind,
    /// Its strength in the memory model.
    pub strength: Strength,
}

/// The data being stored. It is needed only when two writes conflict, since writing the same value is less severe.
/// Bytes are counted from the beginning of the lane's store.
pub trait Stored {
    /// Whether memory already holds the data that the lane is about to store to `bytes` bytes from `from`.
    fn is_in_memory(&self, lane: u32, from: u32, bytes: u32) -> bool;
    /// Whether two lanes, each from its own byte, are about to store the same `bytes` bytes.
    fn is_equal(&self, a: (u32, u32), b: (u32, u32), bytes: u32) -> bool;
}

/// What memory holds already.
#[derive(Clone, Copy, Debug)]
pub struct Unchanged;

impl Stored for Unchanged {
    fn is_in_memory(&self, _: u32, _: u32, _: u32) -> bool {
        true
    }
    fn is_equal(&self, _: (u32, u32), _: (u32, u32), _: u32) -> bool {
        true
    }
}

/// Unknown values, which count as different.
#[derive(Clone, Copy, Debug)]
pub struct Unknown;

impl Stored for Unknown {
    fn is_in_memory(&self, _: u32, _: u32, _: u32) -> bool {
        false
    }
    fn is_equal(&self, _: (u32, u32), _: (u32, u32), _: u32) -> bool {
        false
    }
}

/// The part of an access that is in one row and can be one entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// The row's number.
    pub(super) row: u64,
    pub(super) bytes: Bytes,
    pub(super) lanes: Lanes,
}

/// Whole pairs of bytes in one half of a row, which lanes access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    /// Which half of the row.
    pub(super) half: usize,
    /// Which bytes of the half.
    pub(super) bits: u64,
    /// The first pair, of the row.
    pub(super) first: usize,
    /// How many pairs.
    pub(super) count: usize,
    pub(super) lanes: u32,
}

impl Spot {
    /// Bytes from an address on, where they are whole pairs.
    #[inline(always)]
    pub(super) fn new(address: u64, bytes: u32, lanes: u32) -> Option<Spot> {
        let start = (address % ROW_BYTES) as u32;
        if (start | bytes) & 1 != 0 || start % 64 + bytes > 64 {
            return None;
        }
        let bits = (u64::MAX >> (64 - bytes)) << (start % 64);
        let (first, count) = ((start / 2) as usize, (bytes / 2) as usize);
        Some(Spot { half: (start / 64) as usize, bits, first, count, lanes })
    }

    /// All of its bytes.
    pub(super) fn bytes(&self) -> Bytes {
        let mut bytes = Bytes::default();
        bytes.add_half(self.half, self.bits);
        bytes
    }
}

/// Neighbouring lanes that access neighbouring bytes, or the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) address: u64,
    pub(super) bytes: u32,
    pub(super) lanes: RunLanes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunLanes {
    /// All of these access all of the bytes.
    Same(u32),
    /// Lane by lane, from this one, `1 << shift` bytes each.
    Ascending { first: u32, shift: u8 },
}

/// Bytes that a lane of a scattered access accesses at most.
const SMALL: u32 = 16;
/// Neighbouring lanes without neighbouring addresses, from which on an access is scattered.
const SCATTERED: u32 = 6;

/// Lanes that are looked at together first.
const HALF: usize = 16;

/// What half of a warp does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    Same,
    Ascending,
    Other,
}

impl Run {
    /// The lanes, where all access the same bytes and there are several.
    pub(super) fn colliding(&self) -> Option<u32> {
        match self.lanes {
            RunLanes::Same(mask) if mask & (mask - 1) != 0 => Some(mask),
            _ => None,
        }
    }

    /// The first lane, and how far behind each lane the next one accesses memory.
    pub(super) fn first(&self) -> (u32, u32) {
        match self.lanes {
            RunLanes::Same(mask) => (mask.trailing_zeros(), 0),
            RunLanes::Ascending { first, shift } => (first, 1 << shift),
        }
    }

    /// Calls `each` with the part in every row.
    #[inline]
    pub(super) fn pieces(&self, mut each: impl FnMut(Piece)) {
        let (mut address, end) = (self.address, self.address.saturating_add(u64::from(self.bytes)));
        while address < end {
            let row = address / ROW_BYTES;
            let stop = end.min((row + 1) * ROW_BYTES);
            let bytes = Bytes::range((address % ROW_BYTES) as u32, (stop - address) as u32);
            let lanes = match self.lanes {
                RunLanes::Same(mask) => Lanes::Set(mask),
                RunLanes::Ascending { first, shift } => {
                    let start = (row * ROW_BYTES) as i64 - self.address as i64;
                    Lanes::Affine { shift, base: (i64::from(first) + (start >> shift)) as i8 }
                }
            };
            each(Piece { row, bytes, lanes });
            address = stop;
        }
    }
}

impl WarpAccess<'_> {
    /// Where a lane accesses memory.
    pub(super) fn address(&self, lane: u32) -> u64 {
        self.base.wrapping_add(self.offsets[lane as usize])
    }

    /// The locations that a lane accesses: the elements of a vector are accesses of their own.
    pub(super) fn places(&self, lane: u32) -> impl Iterator<Item = ScalarPlace> {
        let (start, element) = (self.address(lane), self.element);
        (0..self.bytes.div_ceil(element))
            .map(move |at| (start.wrapping_add(u64::from(at * element)), element))
    }

    /// Whether neighbouring lanes may share an entry: their bytes tile a row.
    fn tiles(&self) -> bool {
        self.bytes.is_power_of_two() && self.bytes <= 32
    }

    /// Whether the lanes had better be looked at one by one.
    #[inline]
    pub(super) fn is_scattered(&self) -> bool {
        if self.bytes > SMALL || self.kind.agent().is_some() {
            return false;
        }
        let gaps_in = |offsets: &[u64]| {
            let is_gap = |pair: &[u64]| {
                let step = pair[1].wrapping_sub(pair[0]);
                step != 0 && step != self.bytes.into()
            };
            offsets.windows(2).fold(0, |gaps, pair| gaps + u32::from(is_gap(pair)))
        };
        // Most accesses show what they are in the first lanes.
        let (first, rest) = (&self.offsets[..9], &self.offsets[8..]);
        let mut gaps = gaps_in(first);
        if gaps < 2 && self.mask == u32::MAX {
            return false;
        }
        // Lanes that take no part leave gaps too.
        gaps += (self.mask & !(self.mask << 1)).count_ones() + gaps_in(rest);
        gaps > SCATTERED
    }

    /// Calls `each` with runs of lanes that together are the access.
    #[inline(always)]
    pub(super) fn runs(&self, mut each: impl FnMut(Run)) {
        if self.mask == u32::MAX && self.tiles() {
            let address = |lane: usize| self.base.wrapping_add(self.offsets[lane]);
            match (self.half(0), self.half(HALF)) {
                (Half::Ascending, Half::Ascending) => {
                    let bytes = self.bytes * HALF as u32;
                    if address(HALF) == address(0).wrapping_add(bytes.into()) {
                        each(self.ascending(0, 2 * HALF));
                    } else {
                        each(self.ascending(0, HALF));
                        each(self.ascending(HALF, HALF));
                    }
                    return;
                }
                (Half::Same, Half::Same) => {
                    let run = |lanes, first| Run {
                        address: address(first),
                        bytes: self.bytes,
                        lanes: RunLanes::Same(lanes),
                    };
                    if address(0) == address(HALF) {
                        each(run(u32::MAX, 0));
                    } else {
                        each(run(0xffff, 0));
                        each(run(0xffff_0000, HALF));
                    }
                    return;
                }
                _ => {}
            }
        }
        self.runs_by_lane(each);
    }

    /// Whether all lanes take part, one behind the other, with at least four bytes each.
    #[inline(always)]
    pub(super) fn is_line(&self) -> bool {
        let start = self.offsets[0];
        let mut other = 0;
        for (lane, &offset) in (0..).zip(self.offsets) {
            other |= offset ^ start.wrapping_add(lane * u64::from(self.bytes));
        }
        let aligned = self.base.wrapping_add(start).is_multiple_of(self.bytes.into());
        other == 0 && self.mask == u32::MAX && matches!(self.bytes, 4 | 8 | 16 | 32) && aligned
    }

    /// Lanes from `first` on, beside each other.
    fn ascending(&self, first: usize, count: usize) -> Run {
        Run {
            address: self.base.wrapping_add(self.offsets[first]),
            bytes: self.bytes * count as u32,
            lanes: RunLanes::Ascending { first: first as u32, shift: self.bytes.trailing_zeros() as u8 },
        }
    }

    /// What half of the lanes do, all of which take part.
    #[inline(always)]
    pub(super) fn half(&self, first: usize) -> Half {
        let start = self.offsets[first];
        let (mut same, mut ascending) = (0, 0);
        for lane in 0..HALF {
            let at = self.offsets[first + lane];
            same |= at ^ start;
            ascending |= at ^ start.wrapping_add(lane as u64 * u64::from(self.bytes));
        }
        let aligned = self.base.wrapping_add(start).is_multiple_of(self.bytes.into());
        match (same, ascending) {
            (0, _) => Half::Same,
            (_, 0) if aligned => Half::Ascending,
            _ => Half::Other,
        }
    }

    fn runs_by_lane(&self, mut each: impl FnMut(Run)) {
        let size = u64::from(self.bytes);
        let shift = self.bytes.trailing_zeros() as u8;
        let tiles = self.tiles();
        let aligned = |address: u64| address & (size - 1) == 0;
        let mut run: Option<Run> = None;
        let mut last = 0;
        for lane in lanes(self.mask) {
            let address = self.address(lane);
            if let Some(open) = &mut run {
                let (start, end) = (open.address, open.address.wrapping_add(u64::from(open.bytes)));
                match open.lanes {
                    RunLanes::Same(mask) if address == start => {
                        open.lanes = RunLanes::Same(mask | 1 << lane);
                        continue;
                    }
                    RunLanes::Same(mask)
                        if tiles
                            && mask == 1 << last
                            && lane == last + 1
                            && address == end
                            && aligned(start) =>
                    {
                        open.lanes = RunLanes::Ascending { first: last, shift };
                        open.bytes += self.bytes;
                        last = lane;
                        continue;
                    }
                    RunLanes::Ascending { .. } if lane == last + 1 && address == end => {
                        open.bytes += self.bytes;
                        last = lane;
                        continue;
                    }
                    _ => each(*open),
                }
            }
            run = Some(Run { address, bytes: self.bytes, lanes: RunLanes::Same(1 << lane) });
            last = lane;
        }
        if let Some(run) = run {
            each(run);
        }
    }
}

/// Calls `each` with offsets and lengths that together are the bytes of the lanes of `mask`: one call for
/// a coalesced access.
pub(crate) fn byte_runs(offsets: &[u64; 32], mask: u32, bytes: u32, mut each: impl FnMut(u64, u64)) {
    let access = WarpAccess {
        warp: 0,
        mask,
        base: 0,
        offsets,
        bytes,
        element: bytes,
        pc: 0,
        kind: AccessKind::Read,
        strength: Strength::Weak,
    };
    access.runs(|run| each(run.address, run.bytes.into()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(offsets: &[u64; 32], mask: u32, bytes: u32) -> WarpAccess<'_> {
        WarpAccess {
            warp: 0,
            mask,
            base: 0x1_0000,
            offsets,
            bytes,
            element: 4,
            pc: 0,
            kind: AccessKind::Read,
            strength: Strength::Weak,
        }
    }

    /// The lanes of every byte, as the rows say it.
    fn spread(access: &WarpAccess<'_>) -> std::collections::BTreeMap<u64, u32> {
        let mut found = std::collections::BTreeMap::new();
        access.runs(|run| {
            run.pieces(|Piece { row, bytes, lanes: of, .. }| {
                for byte in (0..128u32).filter(|byte| bytes.bits() >> byte & 1 != 0) {
                    let mask = match of {
                        Lanes::Set(mask) => mask,
                        Lanes::Affine { shift, base } => 1 << ((byte >> shift) as i32 + i32::from(base)),
                    };
                    *found.entry(row * 128 + u64::from(byte) - 0x1_0000).or_default() |= mask;
                }
            });
        });
        found
    }

    #[test]
    fn every_lane_accesses_its_own_bytes_whatever_the_pattern() {
        type Pattern = fn(u64) -> u64;
        let patterns: [(u32, Pattern); 12] = [
            (4, |lane| 0x1000 + 4 * (lane % 16) + 256 * (lane / 16)),
            (4, |lane| 0x1000 + 4 * (lane / 16)),
            (2, |lane| 0x1004 + 34 * lane),
            (4, |lane| 0x1000 + 4 * lane),
            (4, |lane| 0x103c + 4 * lane),
            (16, |lane| 0x1030 + 16 * lane),
            (2, |lane| 0x1002 + 2 * lane),
            (8, |_| 0x2008),
            (4, |lane| 0x1000 + 4 * (lane % 16)),
            (4, |lane| 0x1000 + 132 * lane),
            (1, |lane| 0x1000 + lane * 7 % 32),
            (32, |lane| 0x1000 + 32 * (lane / 2)),
        ];
        for (at, (bytes, pattern)) in patterns.into_iter().enumerate() {
            for mask in [u32::MAX, 0x0ff0_0f0f, 1 << 31] {
                let addresses = std::array::from_fn(|lane| pattern(lane as u64));
                let mut expected = std::collections::BTreeMap::new();
                for lane in lanes(mask) {
                    for byte in 0..u64::from(bytes) {
                        *expected.entry(pattern(u64::from(lane)) + byte).or_default() |= 1u32 << lane;
                    }
                }
                assert_eq!(
                    spread(&access(&addresses, mask, bytes)),
                    expected,
                    "pattern {at}, mask {mask:#x}"
                );
            }
        }
    }

    #[test]
    fn a_coalesced_access_is_one_run() {
        let addresses = std::array::from_fn(|lane| 0x1000 + 4 * lane as u64);
        let mut runs = 0;
        access(&addresses, u32::MAX, 4).runs(|_| runs += 1);
        assert_eq!(runs, 1);
    }
}
