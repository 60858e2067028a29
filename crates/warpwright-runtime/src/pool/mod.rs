//! The caching, stream-ordered allocator: which block is used again, by whom and when.
//!
//! This is the decision alone, a data structure without devices: blocks are values of any type, and whether a
//! [`Point`] has been passed is the caller's knowledge. What must hold:
//!
//! - A block is given to a stream only if every operation that may use it comes before what that stream does
//!   next: its last uses are of that stream, or are complete.
//! - A block is in one place: with a buffer, or cached here.
//! - Sizes are exact. A device that checks bounds then checks them to the byte; rounding sizes, for devices on which
//!   allocation is slow, is the caller's.

use std::collections::{BTreeMap, VecDeque};

/// A place in the order of a stream: everything until its operation of that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) stream: u64,
    pub(crate) ticket: u64,
}

/// What the pool of a device has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStatistics {
    /// Bytes of buffers that live.
    pub live_bytes: u64,
    /// Bytes of blocks that were given back, and are kept for later buffers.
    pub cached_bytes: u64,
    /// The most bytes that lived at once.
    pub peak_bytes: u64,
    /// Buffers that live.
    pub live: u64,
    /// Blocks that are kept.
    pub cached: u64,
    /// Buffers allocated so far.
    pub allocations: u64,
    /// How many of them got a block that was used before.
    pub reused: u64,
    /// Blocks that were given back to the device.
    pub released: u64,
}

/// A block that nothing holds.
#[derive(Debug)]
pub(crate) struct Free<M> {
    pub(crate) block: M,
    /// The last operations that may use it: of the stream that had it, and of others.
    pub(crate) home: Point,
    pub(crate) others: Vec<Point>,
    /// Counts up with every block that is given back.
    age: u64,
}

impl<M> Free<M> {
    fn fits(&self, stream: u64, passed: &impl Fn(Point) -> bool) -> bool {
        let before = |point: &Point| point.stream == stream || passed(*point);
        before(&self.home) && self.others.iter().all(before)
    }
}

/// Blocks that are kept, by their size; those of a size in the order in which they were given back.
#[derive(Debug)]
pub(crate) struct Pool<M> {
    cached: BTreeMap<u64, VecDeque<Free<M>>>,
    /// Bytes that are kept at most.
    threshold: u64,
    given_back: u64,
    statistics: PoolStatistics,
}

impl<M> Pool<M> {
    /// A pool that keeps up to that many bytes.
    pub(crate) fn new(threshold: u64) -> Self {
        Pool { cached: BTreeMap::new(), threshold, given_back: 0, statistics: PoolStatistics::default() }
    }

    /// A block of that size for what a stream does next, if one is kept: the last one that was given back, whose
    /// bytes may still be in the caches, first of all of the stream's own.
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

    /// A new block of that size lives.
    pub(crate) fn allocated(&mut self, bytes: u64) {
        let statistics = &mut self.statistics;
        statistics.allocations += 1;
        statistics.live += 1;
        statistics.live_bytes += bytes;
        statistics.peak_bytes = statistics.peak_bytes.max(statistics.live_bytes);
    }

    /// A block is given back: operations until these points may use it. What is more than the pool keeps comes out.
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

    /// Keeps up to that many bytes: what is more comes out, the oldest first.
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

    /// Keeps up to that many bytes from now on.
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
