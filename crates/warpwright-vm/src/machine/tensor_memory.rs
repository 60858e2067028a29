//! The tensor memory of a block: 128 lanes of 512 columns of 32 bits, which `tcgen05` allocates, reads and writes.

use std::ops::Range;

/// Lanes of tensor memory.
pub(crate) const TENSOR_LANES: usize = 128;

/// Its columns.
pub(crate) const TENSOR_COLUMNS: u32 = 512;

/// Columns are allocated in units of this.
const UNIT: u32 = 32;

/// The contents of what nobody has written: not a number, and not a small integer.
const UNWRITTEN: u32 = 0xffff_dead;

/// Columns that were allocated at once.
#[derive(Clone, Debug)]
struct Columns {
    range: Range<u32>,
    /// The instruction that allocated them, and its thread in the block.
    by: (u32, u32),
}

/// The tensor memory of a block.
#[derive(Debug, Default)]
pub(crate) struct TensorMemory {
    /// Column by column, the lanes of each together; empty before the first allocation.
    words: Vec<u32>,
    /// One bit for each lane, by column: what was written since it was allocated.
    written: Vec<u128>,
    /// In the order of the columns.
    allocated: Vec<Columns>,
    /// One bit for each unit that was ever allocated.
    known: u16,
    /// The block may allocate no more.
    pub(crate) relinquished: bool,
    /// Allocations for pairs of blocks so far, and whether the last of them still waits for that of the peer.
    pub(crate) pairs: u64,
    pub(crate) waits: bool,
    /// Counts what has changed it.
    pub(crate) changes: u64,
}

impl TensorMemory {
    /// Nothing is allocated.
    pub(super) fn clear(&mut self) {
        if self.changes != 0 {
            *self = TensorMemory::default();
        }
    }

    /// Allocates that many columns, in the first place where they fit: the first of them.
    pub(crate) fn allocate(&mut self, count: u32, by: (u32, u32)) -> Option<u32> {
        let mut first = 0;
        let mut at = 0;
        while let Some(next) = self.allocated.get(at).filter(|next| next.range.start < first + count) {
            first = next.range.end;
            at += 1;
        }
        if first + count > TENSOR_COLUMNS {
            return None;
        }
        if self.words.is_empty() {
            self.words = vec![UNWRITTEN; TENSOR_LANES * TENSOR_COLUMNS as usize];
            self.written = vec![0; TENSOR_COLUMNS as usize];
        }
        let range = first..first + count;
        self.known |= (((1u32 << (count / UNIT)) - 1) << (first / UNIT)) as u16;
        self.written[range.start as usize..range.end as usize].fill(0);
        self.allocated.insert(at, Columns { range, by });
        self.changes += 1;
        Some(first)
    }

    /// Frees what was allocated from that column on, with as many columns: whether there is such an allocation.
    pub(crate) fn free(&mut self, first: u32, count: u32) -> bool {
        let at = self.allocated.iter().position(|columns| columns.range == (first..first + count));
        self.changes += 1;
        at.map(|at| self.allocated.remove(at)).is_some()
    }

    /// Whether all of these columns are allocated.
    pub(crate) fn has(&self, columns: Range<u32>) -> bool {
        let mut first = columns.start;
        for allocated in &self.allocated {
            if allocated.range.contains(&first) {
                first = allocated.range.end;
            }
        }
        first >= columns.end
    }

    /// Whether a column was allocated, at some time.
    pub(crate) fn was_allocated(&self, column: u32) -> bool {
        column < TENSOR_COLUMNS && self.known >> (column / UNIT) & 1 != 0
    }

    /// The first of these columns that is not allocated.
    pub(crate) fn missing(&self, columns: Range<u32>) -> Option<u32> {
        columns.into_iter().find(|&column| !self.has(column..column + 1))
    }

    /// The columns that are allocated, in words.
    pub(crate) fn allocated(&self) -> String {
        match &*self.allocated {
            [] => "none".into(),
            some => {
                let ranges =
                    some.iter().map(|Columns { range, .. }| format!("{} to {}", range.start, range.end - 1));
                ranges.collect::<Vec<_>>().join(" and ")
            }
        }
    }

    /// What was never freed: how many columns, and who allocated them.
    pub(crate) fn left(&self) -> impl Iterator<Item = (u32, (u32, u32))> {
        self.allocated.iter().map(|columns| (columns.range.len() as u32, columns.by))
    }

    /// A word of a column that is allocated.
    #[inline(always)]
    pub(crate) fn word(&self, lane: usize, column: u32) -> u32 {
        self.words[column as usize * TENSOR_LANES + lane]
    }

    /// Whether it was written since it was allocated.
    #[inline(always)]
    pub(crate) fn is_written(&self, lane: usize, column: u32) -> bool {
        self.written[column as usize] >> lane & 1 != 0
    }

    /// Writes a word of a column that is allocated.
    #[inline(always)]
    pub(crate) fn set(&mut self, lane: usize, column: u32, word: u32) {
        self.words[column as usize * TENSOR_LANES + lane] = word;
        self.written[column as usize] |= 1 << lane;
    }
}

/// Whether that many columns can be allocated: a power of two of them, from 32 to 512.
pub(crate) fn is_column_count(count: u32) -> bool {
    count.is_power_of_two() && (UNIT..=TENSOR_COLUMNS).contains(&count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_taken_where_they_fit() {
        let mut memory = TensorMemory::default();
        assert_eq!(memory.allocate(128, (0, 0)), Some(0));
        assert_eq!(memory.allocate(32, (0, 0)), Some(128));
        assert_eq!(memory.allocate(256, (0, 0)), Some(160));
        assert_eq!(memory.allocate(128, (0, 0)), None);
        assert!(memory.has(100..416) && !memory.has(100..417) && !memory.has(500..501));
        assert!(!memory.free(128, 64) && !memory.free(100, 32) && memory.free(128, 32));
        assert!(!memory.has(100..129));
        assert_eq!(memory.allocated(), "0 to 127 and 160 to 415");
        assert_eq!((memory.missing(100..200), memory.missing(0..128)), (Some(128), None));
        assert!(memory.was_allocated(128) && !memory.was_allocated(416) && !memory.was_allocated(1000));
        assert_eq!(memory.allocate(64, (0, 0)), Some(416));
        assert_eq!(memory.allocate(32, (0, 0)), Some(128));
        memory.set(5, 130, 7);
        assert_eq!(
            (memory.word(5, 130), memory.is_written(5, 130), memory.is_written(4, 130)),
            (7, true, false)
        );
        // What comes next at that place was not written.
        assert!(memory.free(128, 32));
        assert_eq!(memory.allocate(32, (0, 0)), Some(128));
        assert!(!memory.is_written(5, 130));
    }
}
