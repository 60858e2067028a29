//! Counters that a profiler would show: memory traffic as on hardware, and waiting at barriers.
//!
//! A *request* is an instruction that a warp executes. Requests to global and local memory are counted in *sectors*,
//! the 32 bytes in which caches are filled; a warp that reads 32 consecutive words touches 4. Local memory is laid
//! out as on hardware, word by word for all lanes of a warp. Requests to shared memory are counted in *passes*: each
//! of its 32 banks delivers one word per pass, a word that several lanes need goes to all of them, and lanes that
//! need more than a word are served in groups. Constants are read one address per pass.

use crate::check::race::AccessKind;
use crate::launch::Launch;
use crate::locality::{BlockSectors, Fetches, LaunchSectors};
use crate::machine::{LANES, LanesOf, Row64};
use crate::memory::{AllocationKind, Group, RegionKind};
use crate::simd::Level;

/// Bytes of a sector, the unit in which caches are filled.
pub(crate) const SECTOR: u64 = 32;

/// Banks of shared memory, each four bytes wide.
const BANKS: u64 = 32;

/// Accesses of one kind to one space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traffic {
    /// Instructions of a warp.
    pub requests: u64,
    /// Bytes that lanes requested.
    pub bytes: u64,
    /// For global and local memory, the sectors of 32 bytes that the requests touch; for shared memory and constants,
    /// the passes that they take.
    pub transactions: u64,
}

impl Traffic {
    fn add(&mut self, bytes: u64, transactions: u64) {
        self.requests += 1;
        self.bytes += bytes;
        self.transactions += transactions;
    }

    fn merge(&mut self, other: &Traffic) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.transactions += other.transactions;
    }
}

/// Accesses to one space, or to one allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpaceTraffic {
    /// Reads, including those of asynchronous copies.
    pub loads: Traffic,
    /// Writes, including those of asynchronous copies.
    pub stores: Traffic,
    /// Atomic operations.
    pub atomics: Traffic,
}

impl SpaceTraffic {
    fn add(&mut self, kind: AccessKind, bytes: u64, transactions: u64) {
        let traffic = match kind {
            AccessKind::Read | AccessKind::MapRead | AccessKind::AsyncRead(_) => &mut self.loads,
            AccessKind::Write | AccessKind::AsyncWrite(_) => &mut self.stores,
            AccessKind::Atomic | AccessKind::Swap | AccessKind::AsyncAtomic(_) => &mut self.atomics,
        };
        traffic.add(bytes, transactions);
    }

    fn merge(&mut self, other: &SpaceTraffic) {
        self.loads.merge(&other.loads);
        self.stores.merge(&other.stores);
        self.atomics.merge(&other.atomics);
    }
}

/// Waiting at the barriers of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BarrierWaits {
    /// The number of times that a warp waited for other warps. Every warp waits at a barrier except the last to
    /// arrive.
    pub waits: u64,
    /// The waiting time in instructions of the warps' own clocks: for each warp that waited, the number of
    /// instructions that the slowest warp had executed on arrival and this warp had not, summed up. It does not
    /// depend on the order in which the virtual GPU runs warps.
    pub instructions: u64,
}

impl BarrierWaits {
    /// A warp has waited.
    pub(crate) fn add(&mut self, instructions: u64) {
        self.waits += 1;
        self.instructions += instructions;
    }

    pub(crate) fn merge(&mut self, other: &BarrierWaits) {
        self.waits += other.waits;
        self.instructions += other.instructions;
    }
}

/// What one instruction has done to memory, and how it waited.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlaceCounters {
    pub(crate) global: Traffic,
    pub(crate) shared: Traffic,
    pub(crate) conflicts: u64,
    pub(crate) barrier: BarrierWaits,
    pub(crate) fetches: Fetches,
    /// The address of the allocation that it asks caches for; of several, one.
    pub(crate) fetched: Option<u64>,
}

impl PlaceCounters {
    fn merge(&mut self, other: &PlaceCounters) {
        self.global.merge(&other.global);
        self.shared.merge(&other.shared);
        self.conflicts += other.conflicts;
        self.barrier.merge(&other.barrier);
        self.fetches.merge(&other.fetches);
        self.fetched = self.fetched.or(other.fetched);
    }
}

/// Memory traffic, by space, by allocation and by instruction.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryCounters {
    pub(crate) global: SpaceTraffic,
    pub(crate) constant: SpaceTraffic,
    pub(crate) shared: SpaceTraffic,
    pub(crate) local: SpaceTraffic,
    /// Passes to shared memory beyond those that requests without conflicts take.
    pub(crate) conflicts: u64,
    /// By number of the allocation.
    pub(crate) allocations: Vec<SpaceTraffic>,
    /// What caches would be asked for, by number of the allocation.
    pub(crate) fetches: Vec<Fetches>,
    /// By instruction.
    pub(crate) places: Vec<PlaceCounters>,
}

impl MemoryCounters {
    pub(crate) fn new(launch: &Launch) -> Self {
        if !launch.options.counters {
            return Self::default();
        }
        MemoryCounters {
            allocations: vec![SpaceTraffic::default(); launch.memory.len()],
            fetches: vec![Fetches::default(); launch.memory.len()],
            places: vec![PlaceCounters::default(); launch.code.insts.len()],
            ..Self::default()
        }
    }

    pub(crate) fn merge(&mut self, other: &MemoryCounters) {
        for (into, from) in [
            (&mut self.global, &other.global),
            (&mut self.constant, &other.constant),
            (&mut self.shared, &other.shared),
            (&mut self.local, &other.local),
        ] {
            into.merge(from);
        }
        self.conflicts += other.conflicts;
        if self.allocations.len() < other.allocations.len() {
            self.allocations.resize(other.allocations.len(), SpaceTraffic::default());
        }
        self.allocations.iter_mut().zip(&other.allocations).for_each(|(into, from)| into.merge(from));
        if self.fetches.len() < other.fetches.len() {
            self.fetches.resize(other.fetches.len(), Fetches::default());
        }
        self.fetches.iter_mut().zip(&other.fetches).for_each(|(into, from)| into.merge(from));
        if self.places.len() < other.places.len() {
            self.places.resize(other.places.len(), PlaceCounters::default());
        }
        self.places.iter_mut().zip(&other.places).for_each(|(into, from)| into.merge(from));
    }

    /// An access of lanes of so many bytes each, at their offsets in a region.
    pub(crate) fn access(
        &mut self,
        (pc, kind): (u32, AccessKind),
        region: &RegionKind<'_>,
        lanes: (u32, u32, &Row64),
    ) {
        Level::detect().run(
            #[inline(always)]
            || self.add((pc, kind), region, lanes),
        );
    }

    #[inline(always)]
    fn add(
        &mut self,
        (pc, kind): (u32, AccessKind),
        region: &RegionKind<'_>,
        (bytes, mask, offsets): (u32, u32, &Row64),
    ) {
        let moved = u64::from(bytes) * u64::from(mask.count_ones());
        let Some(place) = self.places.get_mut(pc as usize) else { return };
        match region {
            RegionKind::Global(allocation) => {
                let count = sectors(offsets, allocation.base, bytes, mask);
                if let Some(space) = self.allocations.get_mut(allocation.id as usize) {
                    space.add(kind, moved, count);
                }
                if allocation.kind == AllocationKind::Constant {
                    self.constant.add(kind, moved, addresses(offsets, mask));
                } else {
                    self.global.add(kind, moved, count);
                    place.global.add(moved, count);
                }
            }
            RegionKind::Shared => {
                let Passes { passes, least } = passes(offsets, bytes, mask);
                self.shared.add(kind, moved, passes);
                self.conflicts += passes - least;
                place.shared.add(moved, passes);
                place.conflicts += passes - least;
            }
            RegionKind::Local => self.local.add(kind, moved, local_sectors(offsets, bytes, mask)),
            RegionKind::Param => {}
        }
    }

    /// What an access asks of caches: by a block, at a time of the warp.
    pub(crate) fn fetch(
        &mut self,
        (launch, block): (&LaunchSectors, &mut BlockSectors),
        (pc, now): (u32, u64),
        kind: AccessKind,
        group: &Group<'_>,
    ) {
        let RegionKind::Global(allocation) = group.region.kind else { return };
        if allocation.kind == AllocationKind::Constant {
            return;
        }
        let place = self.places.get_mut(pc as usize);
        let (Some(place), Some(whole)) = (place, self.fetches.get_mut(allocation.id as usize)) else {
            return;
        };
        let sectors = touched(&group.offsets, allocation.base, group.bytes, group.mask);
        let mut fetches = launch.access((kind, now), allocation, sectors.iter(), block);
        fetches.passes = passes(&group.offsets, group.bytes, group.mask).passes;
        place.fetches.merge(&fetches);
        place.fetched = place.fetched.or(Some(allocation.base));
        whole.merge(&fetches);
    }

    /// A warp has waited at a barrier, for that many instructions of the slowest.
    pub(crate) fn waited(&mut self, pc: u32, instructions: u64) {
        if let Some(place) = self.places.get_mut(pc as usize) {
            place.barrier.add(instructions);
        }
    }
}

/// Whether all lanes access memory one behind the other.
#[inline(always)]
fn is_dense(offsets: &Row64, bytes: u32, mask: u32) -> bool {
    let step = |lane: usize| offsets[0].wrapping_add(u64::from(bytes) * lane as u64);
    mask == u32::MAX && (0..LANES).all(|lane| offsets[lane] == step(lane))
}

/// How many different sectors the lanes touch; offsets are from `base`.
#[inline(always)]
fn sectors(offsets: &Row64, base: u64, bytes: u32, mask: u32) -> u64 {
    let of = |offset: u64| base.wrapping_add(offset) / SECTOR;
    if is_dense(offsets, bytes, mask) {
        return of(offsets[LANES - 1] + u64::from(bytes) - 1) - of(offsets[0]) + 1;
    }
    let last = |offset: u64| of(offset + u64::from(bytes) - 1);
    let filled = filled(offsets, mask);
    let (low, high) = range(&filled);
    if last(high) - of(low) >= u64::from(u64::BITS) {
        return touched(offsets, base, bytes, mask).len();
    }
    let bit = |sector: u64| 1_u64 << (sector - of(low));
    let bits = filled.into_iter().fold(0, |all, offset| all | bit(of(offset)) | bit(last(offset)));
    u64::from(bits.count_ones())
}

/// The offsets of the lanes of a mask, and for the others that of one of these: what looks at all lanes alike is vector
/// instructions.
#[inline(always)]
fn filled(offsets: &Row64, mask: u32) -> Row64 {
    let mut filled = [offsets[mask.trailing_zeros() as usize % LANES]; LANES];
    for lane in 0..LANES {
        if mask >> lane & 1 != 0 {
            filled[lane] = offsets[lane];
        }
    }
    filled
}

/// The lowest and the highest offset.
#[inline(always)]
fn range(offsets: &Row64) -> (u64, u64) {
    offsets.iter().fold((u64::MAX, 0), |(low, high), &offset| (low.min(offset), high.max(offset)))
}

/// The different sectors that the lanes touch.
fn touched(offsets: &Row64, base: u64, bytes: u32, mask: u32) -> Numbers {
    let of = |offset: u64| base.wrapping_add(offset) / SECTOR;
    different(LanesOf(mask).flat_map(|lane| of(offsets[lane])..=of(offsets[lane] + u64::from(bytes) - 1)))
}

/// Different sectors of local memory: each word of a thread lies beside those of the other lanes.
fn local_sectors(offsets: &Row64, bytes: u32, mask: u32) -> u64 {
    let group = (SECTOR / 4) as usize;
    let sector = |lane: usize| offsets[lane] / 4 * LANES as u64 + (lane / group) as u64;
    different(LanesOf(mask).map(sector)).len() * u64::from(bytes.div_ceil(4))
}

/// Different addresses among those of the lanes.
fn addresses(offsets: &Row64, mask: u32) -> u64 {
    different(LanesOf(mask).map(|lane| offsets[lane])).len()
}

/// At most two numbers a lane.
struct Numbers {
    numbers: [u64; 2 * LANES],
    count: usize,
}

impl Numbers {
    fn len(&self) -> u64 {
        self.count as u64
    }

    fn iter(&self) -> impl Iterator<Item = u64> {
        self.numbers[..self.count].iter().copied()
    }
}

/// The numbers, each once. An access of a lane is in two sectors at most, so they are few.
fn different(all: impl Iterator<Item = u64>) -> Numbers {
    let mut out = Numbers { numbers: [0; 2 * LANES], count: 0 };
    for (into, number) in out.numbers.iter_mut().zip(all) {
        *into = number;
        out.count += 1;
    }
    out.numbers[..out.count].sort_unstable();
    let mut kept = 0;
    for index in 0..out.count {
        if index == 0 || out.numbers[index] != out.numbers[kept - 1] {
            out.numbers[kept] = out.numbers[index];
            kept += 1;
        }
    }
    out.count = kept;
    out
}

/// How often shared memory is asked for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Passes {
    passes: u64,
    /// The same if no two lanes of a group met in a bank.
    least: u64,
}

/// Passes to shared memory: the most different words that one bank must give. Accesses of more than a word
/// go by groups of lanes that together fill the banks, as the hardware does.
#[inline(always)]
fn passes(offsets: &Row64, bytes: u32, mask: u32) -> Passes {
    let words = u64::from(bytes.div_ceil(4)).clamp(1, BANKS);
    let group = LANES / words as usize;
    if is_dense(offsets, bytes, mask) && offsets[0].is_multiple_of(4) {
        return Passes { passes: words, least: words };
    }
    let mut out = Passes { passes: 0, least: 0 };
    for start in (0..LANES).step_by(group) {
        let lanes = mask & (u32::MAX >> (LANES - group)) << start;
        let passes = if lanes == 0 { 0 } else { deepest_bank(offsets, words, lanes) };
        out.passes += passes;
        out.least += passes.min(1);
    }
    out
}

/// The most different words that the lanes want of one bank.
#[inline(always)]
fn deepest_bank(offsets: &Row64, words: u64, lanes: u32) -> u64 {
    let (low, high) = range(&filled(offsets, lanes));
    let (low, high) = (low / 4, high / 4 + words);
    if high - low <= BANKS {
        return 1;
    }
    let wanted = LanesOf(lanes).flat_map(|lane| (0..words).map(move |word| offsets[lane] / 4 + word - low));
    if high - low <= BANKS * u64::from(u64::BITS) {
        let mut of_bank = [0_u64; BANKS as usize];
        wanted.for_each(|word| of_bank[(word % BANKS) as usize] |= 1 << (word / BANKS));
        return of_bank.iter().map(|words| u64::from(words.count_ones())).max().unwrap_or(0);
    }
    let mut depth = [0; BANKS as usize];
    different(wanted).iter().for_each(|word| depth[(word % BANKS) as usize] += 1);
    depth.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::collections::BTreeSet;

    const ALL: u32 = u32::MAX;

    fn row(mut offset: impl FnMut(u64) -> u64) -> Row64 {
        std::array::from_fn(|lane| offset(lane as u64))
    }

    /// Passes, and how many of them are conflicts.
    fn shared(bytes: u32, mask: u32, offset: impl Fn(u64) -> u64) -> (u64, u64) {
        let Passes { passes, least } = passes(&row(offset), bytes, mask);
        (passes, passes - least)
    }

    #[test]
    fn sectors_that_lanes_touch() {
        let count = |bytes, mask, offset: &dyn Fn(u64) -> u64| sectors(&row(offset), 0, bytes, mask);
        assert_eq!(count(4, ALL, &|lane| 4 * lane), 4, "128 bytes");
        assert_eq!(count(4, ALL, &|lane| 4 * (31 - lane)), 4, "the order of lanes is of no matter");
        assert_eq!(count(4, ALL, &|lane| 4 * lane + 16), 5, "128 bytes that begin within a sector");
        assert_eq!(count(4, ALL, &|lane| 128 * lane), 32, "a stride of 32 words");
        assert_eq!(count(4, ALL, &|lane| 8 * lane), 8, "every second word");
        assert_eq!(count(4, ALL, &|_| 40), 1, "all the same word");
        assert_eq!(count(1, ALL, &|lane| lane), 1);
        assert_eq!(count(8, ALL, &|lane| 8 * lane), 8);
        assert_eq!(count(16, ALL, &|lane| 16 * lane), 16);
        assert_eq!(count(16, 0xff, &|lane| 64 * lane), 8);
        assert_eq!(count(4, 0x8000_0001, &|lane| 4 * lane), 2, "the first lane and the last");
        // A variable that does not begin with a sector: its bytes 0 to 31 lie in two.
        assert_eq!(sectors(&row(|lane| 4 * (lane % 8)), 16, 4, ALL), 2);
    }

    #[test]
    fn passes_and_bank_conflicts() {
        assert_eq!(shared(4, ALL, |lane| 4 * lane), (1, 0));
        assert_eq!(shared(4, ALL, |lane| 4 * lane + 4), (1, 0), "rotated by a bank");
        assert_eq!(shared(4, ALL, |_| 64), (1, 0), "one word for all");
        assert_eq!(shared(4, ALL, |lane| 128 * lane), (32, 31), "a column of 32 words a row");
        assert_eq!(shared(4, ALL, |lane| 132 * lane), (1, 0), "a column of 33 words a row");
        assert_eq!(shared(4, ALL, |lane| 8 * lane), (2, 1), "every second word");
        assert_eq!(shared(4, 0x0000_ffff, |lane| 8 * lane), (1, 0), "half of the lanes fill the banks");
        assert_eq!(shared(4, 1, |_| 0), (1, 0));
        assert_eq!(shared(2, ALL, |lane| 2 * lane), (1, 0), "two lanes share a word");
        assert_eq!(shared(1, ALL, |lane| 128 * lane), (32, 31));
        // Two words a lane go by halves of the warp, four by quarters.
        assert_eq!(shared(8, ALL, |lane| 8 * lane), (2, 0));
        assert_eq!(shared(8, ALL, |lane| 16 * lane), (4, 2));
        assert_eq!(shared(16, ALL, |lane| 16 * lane), (4, 0));
        assert_eq!(shared(16, ALL, |_| 0), (4, 0));
        assert_eq!(shared(16, ALL, |lane| 128 * lane), (32, 28), "rows of 128 bytes, unswizzled");
        assert_eq!(shared(16, 0xff, |lane| 128 * lane), (8, 7));
        // Rows of 128 bytes whose 16-byte pieces are exchanged by the row's number.
        assert_eq!(shared(16, ALL, |lane| 128 * lane + 16 * (lane % 8)), (4, 0));
    }

    /// Offsets in a line, in several, or far apart, in any order: as sets of numbers say.
    #[test]
    fn random_accesses_are_counted_as_sets_count() {
        let mut random = Random::new(7);
        let mut next = |below: u64| random.below(below);
        for _ in 0..4000 {
            let bytes = 1 << next(5);
            let (reach, base) = (1 << next(17), next(640));
            let offsets = row(|_| bytes * next(1 + reach / bytes));
            let mask = [ALL, 1 << next(32), (next(1 << 32) as u32).max(1)][next(3) as usize];
            let lanes = |some: u32| LanesOf(mask & some).map(|lane| offsets[lane]);
            let touched: BTreeSet<u64> =
                lanes(ALL).flat_map(|at| (at..at + bytes).map(|byte| (base + byte) / SECTOR)).collect();
            assert_eq!(
                sectors(&offsets, base, bytes as u32, mask),
                touched.len() as u64,
                "{offsets:?} {bytes}"
            );
            let group = 32 / bytes.div_ceil(4);
            let of_group = |first: u64| {
                let some = (((1_u64 << group) - 1) << first) as u32;
                let words: BTreeSet<u64> =
                    lanes(some).flat_map(|at| (at..at + bytes).map(|byte| byte / 4)).collect();
                (0..BANKS).map(|bank| words.iter().filter(|word| *word % BANKS == bank).count()).max()
            };
            let all: usize = (0..32).step_by(group as usize).filter_map(of_group).sum();
            assert_eq!(passes(&offsets, bytes as u32, mask).passes, all as u64, "{offsets:?} {bytes}");
        }
    }

    #[test]
    fn local_memory_lies_lane_beside_lane() {
        let count = |bytes, mask, offset: &dyn Fn(u64) -> u64| local_sectors(&row(offset), bytes, mask);
        assert_eq!(count(4, ALL, &|_| 8), 4, "the same word of every thread");
        assert_eq!(count(8, ALL, &|_| 8), 8);
        assert_eq!(count(1, ALL, &|_| 9), 4);
        assert_eq!(count(4, 0xff, &|_| 8), 1);
        assert_eq!(count(4, ALL, &|lane| 4 * lane), 32, "another word of every thread");
    }

    #[test]
    fn constants_are_read_one_address_a_pass() {
        assert_eq!(addresses(&row(|_| 12), ALL), 1);
        assert_eq!(addresses(&row(|lane| 4 * (lane / 16)), ALL), 2);
        assert_eq!(addresses(&row(|lane| 4 * lane), 0xf), 4);
    }
}
