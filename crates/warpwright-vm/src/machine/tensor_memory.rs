//! The tensor memory of a block: 128 lanes of 512 columns of 32 bits, which `tcgen05` allocates, reads and writes; and
//! which of the operations on it are known to be complete.
//!
//! An operation of a thread is complete when somebody has seen the phase of an mbarrier end at which a later commit of
//! that thread has arrived; a load or a store of a warp, when that warp has waited for it.

use std::collections::HashMap;
use std::ops::Range;

use super::LANES;
use crate::check::TensorWait;

/// Lanes of tensor memory.
pub(crate) const TENSOR_LANES: usize = 128;

/// Its columns.
pub(crate) const TENSOR_COLUMNS: u32 = 512;

/// Columns are allocated in units of this.
const UNIT: u32 = 32;

/// Groups of lanes that operations use apart.
const GROUPS: usize = 8;

/// The contents of what nobody has written: not a number, and not a small integer.
const UNWRITTEN: u32 = 0xffff_dead;

/// Columns that were allocated at once.
#[derive(Clone, Debug)]
struct Columns {
    range: Range<u32>,
    /// The instruction that allocated them, and its thread in the block.
    by: (u32, u32),
}

/// A use of tensor memory, by an operation of a thread of the cluster or by a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TensorUse {
    /// The instruction.
    pub(crate) pc: u32,
    /// The thread, or the first of the warp: the rank of its block, and its number there.
    pub(crate) by: (u32, u32),
    /// By a load or store of a warp.
    pub(crate) by_warp: bool,
    pub(crate) write: bool,
    /// The clock of the thread's block.
    pub(crate) clock: u64,
    /// Its number in the cluster.
    pub(crate) number: u64,
}

/// A commit that has arrived at an mbarrier.
#[derive(Debug)]
struct Commit {
    by: (u32, u32),
    /// The last operation before it.
    last: u64,
    /// The phase of the mbarrier is over.
    over: bool,
}

/// What commits and waits tell of a cluster's operations.
#[derive(Debug, Default)]
pub(crate) struct TensorProgress {
    operations: u64,
    /// Commits that have arrived, by the mbarrier.
    commits: HashMap<u32, Vec<Commit>>,
    /// By the thread, the last operation that is complete.
    complete: HashMap<(u32, u32), u64>,
    /// By the warp, the last store and the last load that may be complete.
    waited: HashMap<(u32, u32, TensorWait), u64>,
    /// The last use that counts as ordered before whatever follows.
    settled: u64,
}

impl TensorProgress {
    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        if self.operations != 0 {
            *self = TensorProgress::default();
        }
    }

    /// There is another use, which has its number from here.
    pub(crate) fn issue(&mut self, new: TensorUse) -> TensorUse {
        self.operations += 1;
        TensorUse { number: self.operations, ..new }
    }

    /// All uses so far count as ordered before whatever follows. Relaxed synchronisation orders tensor memory where it
    /// orders no other, so that nothing else is there to tell.
    pub(crate) fn settle(&mut self) {
        self.settled = self.operations;
    }

    /// Whether a use counts as ordered before whatever follows.
    pub(crate) fn is_settled(&self, operation: &TensorUse) -> bool {
        operation.number <= self.settled
    }

    /// The operations of a thread so far will have arrived at an mbarrier when its phase is over.
    pub(crate) fn commit(&mut self, barrier: u32, by: (u32, u32)) {
        self.commits.entry(barrier).or_default().push(Commit { by, last: self.operations, over: false });
    }

    /// The phase of an mbarrier is over.
    pub(crate) fn end(&mut self, barrier: u32) {
        self.commits.get_mut(&barrier).into_iter().flatten().for_each(|commit| commit.over = true);
    }

    /// Somebody has seen that.
    pub(crate) fn seen(&mut self, barrier: u32) {
        let Some(commits) = self.commits.get_mut(&barrier) else { return };
        commits.retain(|&Commit { by, last, over }| {
            if over {
                let complete = self.complete.entry(by).or_default();
                *complete = last.max(*complete);
            }
            !over
        });
    }

    /// A warp has waited for its loads, or for its stores.
    pub(crate) fn waited(&mut self, (rank, warp): (u32, u32), waited_for: TensorWait) {
        if self.operations != 0 {
            self.waited.insert((rank, warp, waited_for), self.operations);
        }
    }

    /// Whether nobody can know that an operation is complete.
    pub(crate) fn is_in_flight(&self, operation: &TensorUse, wait: TensorWait) -> bool {
        let (rank, thread) = operation.by;
        let complete = match wait {
            TensorWait::Commit => self.complete.get(&operation.by),
            _ => self.waited.get(&(rank, thread / LANES as u32, wait)),
        };
        complete.is_none_or(|&complete| complete < operation.number)
    }
}

/// The last operations that write and that read, store and load.
#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    by_operations: [Option<TensorUse>; 2],
    by_warps: [Option<TensorUse>; 2],
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
    /// The last uses of a column, for each 16 lanes; empty where nobody asks for them.
    uses: Vec<[Uses; GROUPS]>,
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
        if let Some(uses) = self.uses.get_mut(range.start as usize..range.end as usize) {
            uses.fill([Uses::default(); GROUPS]);
        }
        self.allocated.insert(at, Columns { range, by });
        self.changes += 1;
        Some(first)
    }

    /// The block gives up the right to allocate.
    pub(crate) fn relinquish(&mut self) {
        self.relinquished = true;
        self.changes += 1;
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

    /// An operation writes, or reads, columns that are allocated, in groups of 16 lanes; or a warp stores or loads them.
    pub(crate) fn note(&mut self, columns: Range<u32>, groups: u8, operation: TensorUse) {
        let TensorUse { by_warp, write, .. } = operation;
        self.uses.resize(TENSOR_COLUMNS as usize, [Uses::default(); GROUPS]);
        for uses in &mut self.uses[columns.start as usize..columns.end as usize] {
            for (group, uses) in uses.iter_mut().enumerate() {
                if groups >> group & 1 == 0 {
                    continue;
                }
                // What meets an operation that writes has been found, and comes before all that follows the operation.
                if write && !by_warp {
                    uses.by_warps = [None; 2];
                }
                let uses = if by_warp { &mut uses.by_warps } else { &mut uses.by_operations };
                uses[usize::from(!write)] = Some(operation);
            }
        }
    }

    /// The uses that a read of columns, or a write, meets: many columns have the same, which are given once as long as
    /// they follow one another.
    pub(crate) fn before(
        &self,
        columns: Range<u32>,
        groups: u8,
        write: bool,
    ) -> impl Iterator<Item = TensorUse> {
        let uses = self.uses.get(columns.start as usize..columns.end as usize).unwrap_or(&[]);
        let mut last = [0; 4];
        let all = uses.iter().flat_map(|uses| uses.iter().enumerate());
        let here = all.filter(move |(group, _)| groups >> group & 1 != 0).map(|(_, uses)| uses);
        here.flat_map(|Uses { by_operations, by_warps }| by_operations.iter().chain(by_warps).enumerate())
            .filter_map(|(of, one)| Some((of, (*one)?)))
            .filter(move |&(of, one)| {
                (write || one.write) && std::mem::replace(&mut last[of], one.number) != one.number
            })
            .map(|(_, one)| one)
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

    /// A word of a column that is allocated becomes one that nobody `wrote`, or somebody did.
    pub(crate) fn move_to(&mut self, lane: usize, column: u32, word: u32, wrote: bool) {
        self.set(lane, column, word);
        self.written[column as usize] &= !(u128::from(!wrote) << lane);
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

/// The groups of 16 lanes that lanes are in.
pub(crate) fn groups_of(lanes: impl Iterator<Item = usize>) -> u8 {
    lanes.fold(0, |all, lane| all | 1 << (lane / (TENSOR_LANES / GROUPS)))
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
