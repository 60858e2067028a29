//! The rows of memory: those of a block's shared memory, and those of global memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use super::entry::{Bytes, ROW_BYTES};
use super::row::Row;

/// Rows of a chunk of global memory, which share a lock.
pub(super) const CHUNK_ROWS: u64 = 64;
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

    pub(super) fn row(&mut self, number: u64) -> &mut Row {
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

pub(super) type Rows = [Row; CHUNK_ROWS as usize];

/// Neighbouring rows of global memory.
#[derive(Debug)]
struct Chunk {
    rows: Mutex<Box<Rows>>,
}

impl Chunk {
    fn new() -> Arc<Chunk> {
        let rows: Vec<Row> = (0..CHUNK_ROWS).map(|_| Row::default()).collect();
        let rows: Box<Rows> = match rows.into_boxed_slice().try_into() {
            Ok(rows) => rows,
            Err(_) => Box::new(std::array::from_fn(|_| Row::default())),
        };
        Arc::new(Chunk { rows: Mutex::new(rows) })
    }

    fn rows(&self) -> MutexGuard<'_, Box<Rows>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The rows of global memory that a launch has touched.
#[derive(Debug)]
pub(super) struct GlobalRows {
    shards: [RwLock<HashMap<u64, Arc<Chunk>>>; SHARDS],
}

impl GlobalRows {
    pub(super) fn new() -> GlobalRows {
        GlobalRows { shards: std::array::from_fn(|_| RwLock::default()) }
    }

    fn chunk(&self, number: u64) -> Arc<Chunk> {
        let shard = &self.shards[number as usize % SHARDS];
        if let Some(chunk) = shard.read().unwrap_or_else(PoisonError::into_inner).get(&number) {
            return chunk.clone();
        }
        let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
        shard.entry(number).or_insert_with(Chunk::new).clone()
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
        let chunk_bytes = CHUNK_ROWS * ROW_BYTES;
        for number in address / chunk_bytes..end.div_ceil(chunk_bytes) {
            let shard = self.shards[number as usize % SHARDS].read().unwrap_or_else(PoisonError::into_inner);
            let Some(chunk) = shard.get(&number) else { continue };
            for (at, row) in chunk.rows().iter_mut().enumerate() {
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

    /// Calls `with` with the rows of a chunk, exclusively.
    #[inline]
    pub(super) fn with_rows<R>(
        &mut self,
        rows: &GlobalRows,
        chunk: u64,
        with: impl FnOnce(&mut Rows) -> R,
    ) -> R {
        // Allocations begin at multiples of a power of two, and are walked together.
        let at = chunk.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let slot = &mut self.slots[at as usize % CACHED];
        let found = match slot {
            Some((cached, found)) if *cached == chunk => found,
            _ => &mut slot.insert((chunk, rows.chunk(chunk))).1,
        };
        with(&mut found.rows())
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
            shared.row(3).access(&entry, &view, &mut |_, _| {
                races += 1;
                true
            });
        }
        assert_eq!(races, 1);
        shared.reset();
        let view = super::super::order::View::new(0, &clocks, true, 0);
        shared.row(3).access(&entry, &view, &mut |_, _| {
            races += 1;
            true
        });
        assert_eq!(races, 1);
    }
}
