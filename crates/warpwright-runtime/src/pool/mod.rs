//! The caching, stream-ordered allocator: it decides which stream may reuse which block, and when.
//!
//! It is a pure data structure without devices: blocks are values of any type, and the caller says whether a [`Point`]
//! has been passed. Invariants:
//!
//! - A block is given to a stream only if every operation that may use it comes before that stream's next operation:
//!   its last uses are of that stream, or are complete.
//! - A block is either held by a buffer or cached here.
//! - Sizes are exact, so a device that checks bounds checks them to the byte. Rounding sizes, for devices on which
//!   allocation is slow, is the caller's task.

use std::collections::{BTreeMap, VecDeque};

/// A point in the order of a stream: after its operation of that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) stream: u64,
    pub(crate) ticket: u64,
}

/// Counters of a device's pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStatistics {
    /// Bytes of live buffers.
    pub live_bytes: u64,
    /// Bytes of cached blocks.
    pub cached_bytes: u64,
    /// The maximum of `live_bytes` so far.
    pub peak_bytes: u64,
    /// Live buffers.
    pub live: u64,
    /// Cached blocks.
    pub cached: u64,
    /// Buffers allocated so far.
    pub allocations: u64,
    /// How many of them reused a block.
    pub reused: u64,
    /// Blocks released to the device.
    pub released: u64,
}

/// A free block.
#[derive(Debug)]
pub(crate) struct Free<M> {
    pub(crate) block: M,
    /// The last operations that may use it: of its home stream, and of others.
    pub(crate) home: Point,
    pub(crate) others: Vec<Point>,
    /// A sequence number of blocks that were returned.
    age: u64,
}

impl<M> Free<M> {
    fn fits(&self, stream: u64, passed: &impl Fn(Point) -> bool) -> bool {
        let before = |point: &Point| point.stream == stream || passed(*point);
        before(&self.home) && self.others.iter().all(before)
    }
}

/// The cached blocks by size; those of a size in the order of their return.
#[derive(Debug)]
pub(crate) struct Pool<M> {
    cached: BTreeMap<u64, VecDeque<Free<M>>>,
    /// The maximum number of cached bytes.
    threshold: u64,
    given_back: u64,
    statistics: PoolStatistics,
}

impl<M> Pool<M> {
    /// A pool that caches up to that many bytes.
    pub(crate) fn new(threshold: u64) -> Self {
        Pool { cached: BTreeMap::new(), threshold, given_back: 0, statistics: PoolStatistics::default() }
    }

    /// A cached block of that size for the next operations of a stream. Prefers the stream's own blocks, and among them
    /// the last one returned, whose bytes may still be in the caches.
    pub(crate) fn take(&mut self, bytes: u64, stream: u64, passed: impl Fn(Point) -> bool) -> Option<M> {
        let list = self.cached.get_mut(&bytes)?;
        let own = list.iter().rposition(|free| free.home.stream == stream && free.fits(stream, &passed));
        let index = own.or_else(|| list.iter().rposition(|free| free.fits(stream, &passed)))?;
        let free = list.remove(index)?;
        if list.is_empty() {
            self.cached.remove(&bytes);
        }
        self.uncached(bytes);
        self.statistics.reused += 1;
        self.allocated(bytes);
        Some(free.block)
    }

    /// Counts a new block of that size.
    pub(crate) fn allocated(&mut self, bytes: u64) {
        let statistics = &mut self.statistics;
        statistics.allocations += 1;
        statistics.live += 1;
        statistics.live_bytes += bytes;
        statistics.peak_bytes = statistics.peak_bytes.max(statistics.live_bytes);
    }

    /// Returns a block to the pool: operations until these points may use it. Yields the blocks beyond the threshold.
    pub(crate) fn give(&mut self, block: M, bytes: u64, home: Point, others: Vec<Point>) -> Vec<Free<M>> {
        self.statistics.live -= 1;
        self.statistics.live_bytes -= bytes;
        self.statistics.cached += 1;
        self.statistics.cached_bytes += bytes;
        self.given_back += 1;
        let free = Free { block, home, others, age: self.given_back };
        self.cached.entry(bytes).or_default().push_back(free);
        self.trim(self.threshold)
    }

    /// Trims the cache to that many bytes: yields the other blocks, the oldest first.
    pub(crate) fn trim(&mut self, keep: u64) -> Vec<Free<M>> {
        let mut out = Vec::new();
        while self.statistics.cached_bytes > keep || (keep == 0 && self.statistics.cached > 0) {
            let oldest = |list: &VecDeque<Free<M>>| list.front().map_or(u64::MAX, |free| free.age);
            let size = self.cached.iter().min_by_key(|(_, list)| oldest(list)).map(|(&size, _)| size);
            let Some(size) = size else { break };
            let Some(list) = self.cached.get_mut(&size) else { break };
            let free = list.pop_front();
            if list.is_empty() {
                self.cached.remove(&size);
            }
            if let Some(free) = free {
                self.uncached(size);
                self.statistics.released += 1;
                out.push(free);
            }
        }
        out
    }

    /// Sets the threshold.
    pub(crate) fn set_threshold(&mut self, bytes: u64) -> Vec<Free<M>> {
        self.threshold = bytes;
        self.trim(bytes)
    }

    pub(crate) fn statistics(&self) -> PoolStatistics {
        self.statistics
    }

    fn uncached(&mut self, bytes: u64) {
        self.statistics.cached -= 1;
        self.statistics.cached_bytes -= bytes;
    }
}

#[cfg(test)]
mod tests;
