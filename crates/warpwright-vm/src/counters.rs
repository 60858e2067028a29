//! What a profiler would show: memory traffic as the hardware would see it.

use crate::launch::Launch;
use crate::machine::{LanesOf, Row64};
use crate::memory::RegionKind;

/// Bytes of a sector, the unit in which caches are filled.
const SECTOR: u64 = 32;

/// Banks of shared memory, each four bytes wide.
const BANKS: u64 = 32;

/// Accesses of one kind to one space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traffic {
    /// Instructions of a warp.
    pub requests: u64,
    /// Bytes that lanes asked for.
    pub bytes: u64,
    /// Global memory: sectors of 32 bytes that the requests touch. Shared memory: passes that they take.
    pub transactions: u64,
}

impl Traffic {
    fn add(&mut self, bytes: u64, transactions: u64) {
        self.requests += 1;
        self.bytes += bytes;
        self.transactions += transactions;
    }

    /// Adds what another counter has seen.
    pub(crate) fn merge(&mut self, other: &Traffic) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.transactions += other.transactions;
    }
}

/// Loads and stores of one space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpaceTraffic {
    /// What was read.
    pub loads: Traffic,
    /// What was written.
    pub stores: Traffic,
}

/// Memory traffic, by space and by allocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryCounters {
    pub(crate) global: SpaceTraffic,
    pub(crate) shared: SpaceTraffic,
    pub(crate) local: SpaceTraffic,
    /// Passes to shared memory beyond the first of each request.
    pub(crate) conflicts: u64,
    /// By number of the allocation.
    pub(crate) allocations: Vec<SpaceTraffic>,
}

impl MemoryCounters {
    pub(crate) fn new(launch: &Launch) -> Self {
        let count = if launch.options.counters { launch.memory.len() } else { 0 };
        MemoryCounters { allocations: vec![SpaceTraffic::default(); count], ..Default::default() }
    }

    pub(crate) fn merge(&mut self, other: &MemoryCounters) {
        for (into, from) in [
            (&mut self.global, &other.global),
            (&mut self.shared, &other.shared),
            (&mut self.local, &other.local),
        ]
        .into_iter()
        .chain(self.allocations.iter_mut().zip(&other.allocations))
        {
            into.loads.merge(&from.loads);
            into.stores.merge(&from.stores);
        }
        self.conflicts += other.conflicts;
    }

    /// An access of `bytes` a lane, at byte offsets of the region. `dense`: all lanes, one behind the other.
    pub(crate) fn access(
        &mut self,
        kind: RegionKind<'_>,
        offsets: &Row64,
        bytes: u32,
        mask: u32,
        write: bool,
        dense: bool,
    ) {
        let moved = u64::from(bytes) * u64::from(mask.count_ones());
        let pick = |space: &mut SpaceTraffic, transactions: u64| {
            let traffic = if write { &mut space.stores } else { &mut space.loads };
            traffic.add(moved, transactions);
        };
        match kind {
            RegionKind::Global(allocation) => {
                let count =
                    if dense { sectors_dense(offsets[0], moved) } else { sectors(offsets, bytes, mask) };
                pick(&mut self.global, count);
                if let Some(space) = self.allocations.get_mut(allocation.id as usize) {
                    pick(space, count);
                }
            }
            RegionKind::Shared => {
                let least = moved.div_ceil(BANKS * 4).max(1);
                let passes = if dense { least } else { passes(offsets, bytes, mask) };
                pick(&mut self.shared, passes);
                self.conflicts += passes.saturating_sub(least_passes(bytes, mask));
            }
            RegionKind::Local => pick(&mut self.local, u64::from(bytes).div_ceil(4)),
            RegionKind::Param => {}
        }
    }
}

/// Passes that an access takes when no two lanes meet in a bank.
fn least_passes(bytes: u32, mask: u32) -> u64 {
    (u64::from(bytes) * u64::from(mask.count_ones())).div_ceil(BANKS * 4).max(1)
}

fn sectors_dense(first: u64, bytes: u64) -> u64 {
    (first + bytes - 1) / SECTOR - first / SECTOR + 1
}

/// Different sectors that the lanes touch.
fn sectors(offsets: &Row64, bytes: u32, mask: u32) -> u64 {
    let mut seen = [u64::MAX; 64];
    let mut count = 0;
    for lane in LanesOf(mask) {
        let last = (offsets[lane] + u64::from(bytes) - 1) / SECTOR;
        for sector in offsets[lane] / SECTOR..=last {
            let mut slot = sector as usize & 63;
            while seen[slot] != sector && seen[slot] != u64::MAX {
                slot = (slot + 1) & 63;
            }
            if seen[slot] != sector {
                seen[slot] = sector;
                count += 1;
            }
        }
    }
    count
}

/// The most different words that lanes want of one bank.
fn deepest_bank(offsets: &Row64, lanes: u32, words: u64) -> u64 {
    let wanted = || LanesOf(lanes).flat_map(|lane| (0..words).map(move |word| offsets[lane] / 4 + word));
    let mut first = [u64::MAX; BANKS as usize];
    let bank = |word: u64| (word % BANKS) as usize;
    let mut conflicts = false;
    for word in wanted() {
        let first = &mut first[bank(word)];
        conflicts |= *first != u64::MAX && *first != word;
        *first = word;
    }
    if !conflicts {
        return 1;
    }
    let mut different: Vec<u64> = wanted().collect();
    different.sort_unstable();
    different.dedup();
    let mut depth = [0; BANKS as usize];
    different.iter().for_each(|&word| depth[bank(word)] += 1);
    depth.into_iter().max().unwrap_or(1)
}

/// Passes to shared memory: the most different words that one bank must give. Wide accesses go by half or
/// quarter warps, as the hardware does.
fn passes(offsets: &Row64, bytes: u32, mask: u32) -> u64 {
    let words = u64::from(bytes.div_ceil(4));
    let group = (32 / words.clamp(1, 32)) as u32;
    let mut total = 0;
    let mut start = 0;
    while start < 32 {
        let lanes = mask & (((1u64 << group) - 1) as u32) << start;
        start += group;
        if lanes == 0 {
            continue;
        }
        total += deepest_bank(offsets, lanes, words);
    }
    total.max(1)
}
