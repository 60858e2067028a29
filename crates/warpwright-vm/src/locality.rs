//! Which sectors caches would be asked for, counted without a cache: how long ago a block has touched a sector, and
//! whether the launch has touched it before.
//!
//! How much a first-level cache keeps depends on the device and on what else is resident, and warps do not take turns
//! here as they do on hardware. So time is that of each warp by itself, in instructions since the block began and level
//! at barriers, and loads are counted by how long ago the sector was touched: within [`WINDOWS`] instructions or never.
//! Whoever knows the size of the cache picks the window.
//!
//! For each sector a block keeps the time of its first and its last access. Warps run one after the other here, so an
//! access between these counts as near: another warp may have brought the sector.

use crate::check::race::AccessKind;
use crate::counters::SECTOR;
use crate::memory::{Allocation, GlobalMap};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of a cache line: a cache looks up a request line by line.
pub const LINE: u64 = 128;

/// Numbers of instructions of a warp: loads are counted that touch a sector which the block has not touched for as many.
pub const WINDOWS: [u64; 6] = [1 << 6, 1 << 8, 1 << 10, 1 << 12, 1 << 14, u64::MAX];

/// What an instruction, or a launch, asks of caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fetches {
    /// Lines of [`LINE`] bytes that requests touch, counted for each request.
    pub lines: u64,
    /// Passes that requests take if the cache delivers from banks, as shared memory does.
    pub passes: u64,
    /// Sectors of loads that the block has not touched for as many instructions of a warp as [`WINDOWS`] says, by
    /// window. Those of the last one, the block has never touched.
    pub loaded: [u64; WINDOWS.len()],
    /// Sectors of loads that the launch has not loaded before.
    pub first_loaded: u64,
    /// Sectors of stores and atomics that the launch has not written before.
    pub first_written: u64,
}

impl Fetches {
    /// Adds those of another.
    pub(crate) fn merge(&mut self, other: &Fetches) {
        self.lines += other.lines;
        self.passes += other.passes;
        self.loaded.iter_mut().zip(other.loaded).for_each(|(into, from)| *into += from);
        self.first_loaded += other.first_loaded;
        self.first_written += other.first_written;
    }
}

/// A hash of numbers of sectors, which are spread well by a multiplication.
#[derive(Debug, Default)]
struct SectorHasher(u64);

impl Hasher for SectorHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

/// The sectors that a block has loaded, with the times of the first and the last access.
#[derive(Debug, Default)]
pub(crate) struct BlockSectors(HashMap<u64, (u64, u64), BuildHasherDefault<SectorHasher>>);

impl BlockSectors {
    /// A new block begins.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// For how many instructions the block has not touched the sector: `u64::MAX` if it never has.
    fn touch(&mut self, sector: u64, now: u64) -> u64 {
        match self.0.entry(sector) {
            Entry::Vacant(entry) => {
                entry.insert((now, now));
                u64::MAX
            }
            Entry::Occupied(mut entry) => {
                let (first, last) = entry.get_mut();
                let age = first.saturating_sub(now).max(now.saturating_sub(*last));
                (*first, *last) = ((*first).min(now), (*last).max(now));
                age
            }
        }
    }
}

/// The sectors of an allocation that a launch has loaded and written, a bit each.
struct Touched {
    loaded: Box<[AtomicU64]>,
    written: Box<[AtomicU64]>,
}

/// The sectors that a launch has touched, by number of the allocation.
#[derive(Default)]
pub(crate) struct LaunchSectors(Box<[OnceLock<Touched>]>);

impl LaunchSectors {
    /// None yet, of memory as it is mapped.
    pub(crate) fn new(memory: &GlobalMap) -> Self {
        LaunchSectors((0..memory.len()).map(|_| OnceLock::new()).collect())
    }

    /// What an access of a block asks for: sectors of an allocation, by their numbers from the beginning of the address
    /// space, in their order.
    pub(crate) fn access(
        &self,
        (kind, now): (AccessKind, u64),
        allocation: &Allocation,
        sectors: impl Iterator<Item = u64>,
        block: &mut BlockSectors,
    ) -> Fetches {
        let mut fetches = Fetches::default();
        let Some(touched) = self.0.get(allocation.id as usize) else { return fetches };
        let first = allocation.base / SECTOR;
        let touched = touched.get_or_init(|| {
            let words = ((allocation.base + allocation.bytes) / SECTOR - first) / 64 + 1;
            let bits = || (0..words).map(|_| AtomicU64::new(0)).collect();
            Touched { loaded: bits(), written: bits() }
        });
        let is_new = |bits: &[AtomicU64], sector: u64| {
            let (index, bit) = ((sector - first) / 64, 1 << ((sector - first) % 64));
            bits.get(index as usize).is_some_and(|word| word.fetch_or(bit, Relaxed) & bit == 0)
        };
        let mut line = None;
        for sector in sectors {
            fetches.lines += u64::from(line.replace(sector * SECTOR / LINE) != Some(sector * SECTOR / LINE));
            if kind.is_write() {
                fetches.first_written += u64::from(is_new(&touched.written, sector));
                continue;
            }
            let age = block.touch(sector, now);
            let far = |(count, window): (&mut u64, &u64)| *count += u64::from(age >= *window);
            fetches.loaded.iter_mut().zip(&WINDOWS).for_each(far);
            fetches.first_loaded += u64::from(is_new(&touched.loaded, sector));
        }
        fetches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_is_as_old_as_the_nearest_access_to_it() {
        let mut block = BlockSectors::default();
        assert_eq!(block.touch(7, 100), u64::MAX, "never touched");
        assert_eq!(block.touch(7, 100), 0);
        assert_eq!(block.touch(7, 130), 30, "later");
        assert_eq!(block.touch(7, 90), 10, "another warp, which runs later and is not as far");
        assert_eq!(block.touch(7, 110), 0, "between accesses");
        assert_eq!(block.touch(8, 110), u64::MAX);
        block.clear();
        assert_eq!(block.touch(7, 110), u64::MAX);
    }
}
