//! The rows of memory: those of a block's shared memory, and those of global memory.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::WarpAccess;
use super::chunk::{CHUNK_BYTES, CHUNK_ROWS, Chunk, Noter, Rows, part};
use super::entry::{Bytes, ROW_BYTES};
use super::row::Row;

const SHARDS: usize = 32;
/// Chunks that a worker finds without asking the others.
const CACHED: usize = 256;

/// Rows of shared memory. They are reused for the next block: entries of another block count as empty.
#[derive(Debug, Default)]
pub(super) struct SharedRows {
    rows: Vec<(u64, Row)>,
    /// Counts the blocks that used the rows.
    use_number: u64,
}

impl SharedRows {
    /// Begins another block.
    pub(super) fn reset(&mut self) {
        self.use_number += 1;
    }

    /// The row of a number.
    pub(super) fn at(&mut self, number: u64) -> &mut Row {
        let at = number as usize;
        if self.rows.len() <= at {
            self.rows.resize_with(at + 1, Default::default);
        }
        let (used, row) = &mut self.rows[at];
        if *used != self.use_number {
            *used = self.use_number;
            row.clear();
        }
        row
    }
}

/// The rows of global memory that a launch has touched.
#[derive(Debug)]
pub(super) struct GlobalRows {
    shards: [RwLock<HashMap<u64, Arc<Chunk>>>; SHARDS],
    /// There are reads that are not coherent.
    non_coherent: bool,
}

impl GlobalRows {
    pub(super) fn new(non_coherent: bool) -> GlobalRows {
        GlobalRows { shards: std::array::from_fn(|_| RwLock::default()), non_coherent }
    }

    #[cold]
    fn chunk(&self, number: u64) -> Arc<Chunk> {
        let shard = &self.shards[number as usize % SHARDS];
        if let Some(chunk) = shard.read().unwrap_or_else(PoisonError::into_inner).get(&number) {
            return chunk.clone();
        }
        let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
        shard.entry(number).or_insert_with(|| Chunk::new(number, self.non_coherent).into()).clone()
    }

    /// Forgets all accesses.
    pub(super) fn clear(&self) {
        for shard in &self.shards {
            *shard.write().unwrap_or_else(PoisonError::into_inner) = HashMap::new();
        }
    }

    /// Forgets the accesses to bytes of memory that were freed and become something else.
    pub(super) fn forget(&self, address: u64, bytes: u64) {
        let end = address.saturating_add(bytes);
        for number in address / CHUNK_BYTES..end.div_ceil(CHUNK_BYTES) {
            let shard = self.shards[number as usize % SHARDS].read().unwrap_or_else(PoisonError::into_inner);
            let Some(chunk) = shard.get(&number) else { continue };
            for (at, row) in chunk.lock().rows().iter_mut().enumerate() {
                let start = (number * CHUNK_ROWS + at as u64) * ROW_BYTES;
                let (from, to) = (address.max(start), end.min(start + ROW_BYTES));
                if from < to {
                    row.forget(Bytes::range((from - start) as u32, (to - from) as u32));
                }
            }
        }
    }
}

/// The chunks that a worker used last, by the low bits of their numbers.
#[derive(Debug)]
pub(super) struct ChunkCache {
    slots: Vec<Option<(u64, Arc<Chunk>)>>,
}

impl ChunkCache {
    pub(super) fn new() -> ChunkCache {
        ChunkCache { slots: vec![None; CACHED] }
    }

    #[inline(always)]
    fn chunk(&mut self, rows: &GlobalRows, chunk: u64) -> &Chunk {
        // Allocations begin at multiples of a power of two, and are walked together.
        let at = chunk.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let slot = &mut self.slots[at as usize % CACHED];
        if slot.as_ref().is_none_or(|&(cached, _)| cached != chunk) {
            *slot = None;
        }
        &slot.get_or_insert_with(|| (chunk, rows.chunk(chunk))).1
    }

    /// Calls `with` with the rows of a chunk, exclusively.
    #[inline]
    pub(super) fn with_rows<R>(
        &mut self,
        rows: &GlobalRows,
        chunk: u64,
        with: impl FnOnce(&mut Rows) -> R,
    ) -> R {
        with(self.chunk(rows, chunk).lock().rows())
    }

    /// Notes an access of a kind: the lanes whose access must be recorded. `is_line`: it is one of a whole warp whose lanes are
    /// one behind the other, with at least four bytes each.
    #[inline(always)]
    pub(super) fn note(
        &mut self,
        rows: &GlobalRows,
        access: &WarpAccess<'_>,
        (is_line, kind): (bool, u32),
        noter: &Noter,
    ) -> u32 {
        let start = access.base.wrapping_add(access.offsets[0]);
        let first = start % CHUNK_BYTES;
        if is_line && first + u64::from(32 * access.bytes) <= CHUNK_BYTES {
            let mut chunk = self.chunk(rows, start / CHUNK_BYTES).lock();
            let offsets = &[first as u32; 32];
            return if chunk.note(access, (true, offsets), kind, noter) { 0 } else { access.mask };
        }
        let of_line;
        let mut access = *access;
        if is_line {
            of_line = std::array::from_fn(|lane| access.offsets[0] + lane as u64 * u64::from(access.bytes));
            access.offsets = &of_line;
        }
        let (mut todo, mut left) = (access.mask, 0);
        while todo != 0 {
            let number = access.address(todo.trailing_zeros()) / CHUNK_BYTES;
            let (offsets, mask) = part(&access, number * CHUNK_BYTES, todo);
            let part = WarpAccess { mask, ..access };
            let is_noted =
                mask != 0 && self.chunk(rows, number).lock().note(&part, (false, &offsets), kind, noter);
            // A lane that is in no chunk alone is recorded, too.
            let lanes = if mask == 0 { todo & todo.wrapping_neg() } else { mask };
            left |= if is_noted { 0 } else { lanes };
            todo &= !lanes;
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_shared_memory_is_new_to_the_next_block() {
        use super::super::entry::{Lanes, Stamp};
        let mut shared = SharedRows::default();
        shared.reset();
        let stamp = Stamp {
            block: 0,
            clock: 1,
            pc: 0,
            warp: 0,
            write: true,
            atomic: false,
            strong: None,
            element: 4,
            serial: 0,
        };
        let entry = stamp.entry().with(Bytes::range(0, 4), Lanes::Set(1));
        let mut clocks = super::super::clock::Clocks::new(super::super::Mode::Normal);
        clocks.reset(0, 64);
        let mut races = 0;
        for warp in 0..2 {
            let view = super::super::order::View::new(warp, &clocks, true, 0);
            let entry = Stamp { warp, ..stamp }.entry().with(entry.bytes, Lanes::Set(1));
            shared.at(3).access(&entry, &view, &mut |_, _| {
                races += 1;
                true
            });
        }
        assert_eq!(races, 1);
        shared.reset();
        let view = super::super::order::View::new(0, &clocks, true, 0);
        shared.at(3).access(&entry, &view, &mut |_, _| {
            races += 1;
            true
        });
        assert_eq!(races, 1);
    }
}
