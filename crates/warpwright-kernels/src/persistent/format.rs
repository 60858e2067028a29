//! The schedule's layout in device memory: the words that the host writes and the kernel reads.
//!
//! This module does not depend on graphs or devices: it turns numbers into words. All words are little-endian.
//!
//! | buffer | element | holds | written by |
//! | --- | --- | --- | --- |
//! | `operands` | `u64` | records, one for each instance of an op: see [`record`] | the host, once |
//! | `items` | `u32` | [`ITEM_WORDS`] for each item: see [`Item`] | the host, once |
//! | `bounds` | `u32` | two for each list of items: see [`encode_bounds`] | the host, once |
//! | `barrier` | `u32` | [`BARRIER_WORDS`]: arrivals, generation, the flag of a fault | the kernel; zeroed by the host |
//! | `counters` | `u32` | [`COUNTER_STRIDE`] for each counter | the kernel; zeroed by the host |
//! | `fault` | `u32` | [`FAULT_WORDS`]: see [`Fault`] | the kernel; zeroed by the host |
//! | `progress` | `u32` | what [`Publish`](crate::Publish) says | that op; the host, as it says |
//!
//! The first three buffers are read-only while the kernel runs. **The host zeroes `barrier`, `counters` and `fault`
//! before each launch**: a launch that gave up leaves them unchanged, and counters start at zero in each launch. Within
//! a launch nothing is reset: counters and queue heads continue from token to token, and so do the values that they are
//! compared with, modulo 2³².

use std::fmt;
use std::ops::Range;

/// No counter.
pub const NONE: u32 = u32::MAX;

/// Words of an item.
pub const ITEM_WORDS: u32 = 8;

/// Words of the buffer `barrier`.
pub const BARRIER_WORDS: u32 = 96;

/// Words from one counter to the next: each counter has its own memory sector.
pub const COUNTER_STRIDE: u32 = 8;

/// Words of the buffer `fault`.
pub const FAULT_WORDS: u32 = 8;

/// Words (`u64`) of a record's head, before its arguments.
pub const RECORD_HEAD: usize = 2;

/// Where the blocks count their arrivals at the grid's barrier.
pub(crate) const ARRIVED: u32 = 0;
/// How often all have come.
pub(crate) const GENERATION: u32 = 32;
/// Not zero: a wait has run out of polls, and all others give up.
pub(crate) const GAVE_UP: u32 = 64;

/// An item of work: tiles of one instance of an op, done by the warp groups of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Item {
    /// The op: an index into the kernel's list.
    pub op: u32,
    /// Where the record of the op's instance begins in `operands`, in elements: a multiple of 2.
    pub operands: u32,
    /// The first tile: x fastest, then y, then z.
    pub first: u32,
    /// The end of the tiles: one past the last.
    pub end: u32,
    /// The wait before the item begins.
    pub wait: Option<Wait>,
    /// The counter that is incremented when the item is done.
    pub signal: Option<u32>,
}

/// A wait for items of the same token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wait {
    /// The counter.
    pub counter: u32,
    /// How many items increment the counter in each token.
    pub value: u32,
}

impl Item {
    /// The item's words:
    ///
    /// | word | holds |
    /// | --- | --- |
    /// | 0 | op |
    /// | 1 | operands |
    /// | 2, 3 | first tile, end |
    /// | 4, 5 | the counter to wait for, or [`NONE`], and its value |
    /// | 6 | the counter to count up, or [`NONE`] |
    /// | 7 | zero |
    pub fn encode(&self) -> [u32; ITEM_WORDS as usize] {
        let (counter, value) = self.wait.map_or((NONE, 0), |wait| (wait.counter, wait.value));
        [self.op, self.operands, self.first, self.end, counter, value, self.signal.unwrap_or(NONE), 0]
    }

    /// The item with these words.
    pub fn decode(words: [u32; ITEM_WORDS as usize]) -> Self {
        let [op, operands, first, end, counter, value, signal, _] = words;
        let some = |counter| (counter != NONE).then_some(counter);
        let wait = some(counter).map(|counter| Wait { counter, value });
        Item { op, operands, first, end, wait, signal: some(signal) }
    }
}

/// The words of `items`.
pub fn encode_items(items: impl IntoIterator<Item = Item>) -> Vec<u32> {
    items.into_iter().flat_map(|item| item.encode()).collect()
}

/// The words of `bounds`: for each list the index of its first item and the index past its last. A static assignment
/// has a list for each phase and block, block by block within a phase; a queue has one list for each phase. A list may
/// be empty.
pub fn encode_bounds(lists: impl IntoIterator<Item = Range<u32>>) -> Vec<u32> {
    lists.into_iter().flat_map(|list| [list.start, list.end]).collect()
}

/// The record of an instance, in the order in which the kernel reads it. The first word holds the grid's x in its low
/// half and y in its high half, the second holds z. Then come `words`, one for each of the op's
/// [operands](super::Op::operands): the address of a buffer, the bits of a number, or the element of `operands` at
/// which a table begins. Tables lie between records, and instances may share them. A zero pads the record to a multiple
/// of 16 bytes.
pub fn record(grid: [u32; 3], words: &[u64]) -> Vec<u64> {
    let [x, y, z] = grid.map(u64::from);
    let mut record = vec![x | y << 32, z];
    record.extend(words);
    record.resize(record.len().next_multiple_of(2), 0);
    record
}

/// Why a launch gave up: a wait ran out of polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fault {
    /// What was waited for.
    pub awaited: Awaited,
    /// The block that waited.
    pub block: u32,
    /// The phase that it was in, or had finished.
    pub phase: u32,
    /// The token, counted from 0 in each launch.
    pub token: u32,
    /// The value that the word was to reach.
    pub wanted: u32,
    /// The value that the last poll saw.
    pub seen: u32,
}

/// What a block waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Awaited {
    /// All blocks, at the end of a phase; `wanted` and `seen` are generations of the barrier.
    Barrier,
    /// A counter of items.
    Counter(u32),
    /// An unknown code.
    Unknown(u32),
}

/// Codes of the targets of waits; zero if there is no fault.
pub(crate) const AT_BARRIER: u32 = 1;
pub(crate) const AT_COUNTER: u32 = 2;

impl Fault {
    /// Decodes the words of `fault`; `None` if they report no fault.
    ///
    /// | word | holds |
    /// | --- | --- |
    /// | 0 | the code: 0 none, 1 the barrier, 2 a counter |
    /// | 1, 2, 3 | block, phase, token |
    /// | 4 | the counter |
    /// | 5, 6 | the wanted value, the value seen |
    /// | 7 | zero |
    ///
    /// The code is written last, with release at system scope: a host that polls while the kernel runs and sees the
    /// code also sees the other words.
    pub fn decode(words: [u32; FAULT_WORDS as usize]) -> Option<Self> {
        let [code, block, phase, token, counter, wanted, seen, _] = words;
        let awaited = match code {
            0 => return None,
            AT_BARRIER => Awaited::Barrier,
            AT_COUNTER => Awaited::Counter(counter),
            other => Awaited::Unknown(other),
        };
        Some(Fault { awaited, block, phase, token, wanted, seen })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { awaited, block, phase, token, wanted, seen } = self;
        write!(f, "block {block} gave up in phase {phase} of token {token}: it waited for ")?;
        match awaited {
            Awaited::Barrier => {
                write!(f, "generation {wanted} of the grid's barrier, which stayed at {seen}")
            }
            Awaited::Counter(counter) => {
                write!(f, "counter {counter} to reach {wanted}, which stayed at {seen}")
            }
            Awaited::Unknown(code) => write!(f, "{wanted} and saw {seen} (code {code})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_back() {
        let item = Item { op: 3, operands: 18, first: 5, end: 9, wait: None, signal: None };
        let waiting = Item { wait: Some(Wait { counter: 7, value: 2 }), signal: Some(0), ..item };
        for item in [item, waiting, Item { signal: Some(4), ..item }] {
            assert_eq!(Item::decode(item.encode()), item);
        }
        assert_eq!(item.encode(), [3, 18, 5, 9, NONE, 0, NONE, 0]);
        assert_eq!(waiting.encode(), [3, 18, 5, 9, 7, 2, 0, 0]);
        assert_eq!(encode_items([item, waiting]).len(), 2 * ITEM_WORDS as usize);
    }

    #[test]
    fn records_are_whole_sixteen_bytes() {
        let words = record([3, 2, 1], &[0x1000, 7, 9, 0x3f80_0000]);
        assert_eq!(words, [0x2_0000_0003, 1, 0x1000, 7, 9, 0x3f80_0000]);
        assert_eq!(record([1; 3], &[1, 2, 40])[RECORD_HEAD..], [1, 2, 40, 0]);
    }

    #[test]
    fn lists_have_two_bounds_each() {
        assert_eq!(encode_bounds([0..2, 2..2, 2..5]), [0, 2, 2, 2, 2, 5]);
    }

    #[test]
    fn faults_are_read_by_their_code() {
        assert_eq!(Fault::decode([0, 1, 2, 3, 4, 5, 6, 0]), None);
        let barrier = Fault { awaited: Awaited::Barrier, block: 1, phase: 2, token: 3, wanted: 5, seen: 6 };
        assert_eq!(Fault::decode([1, 1, 2, 3, 4, 5, 6, 0]), Some(barrier));
        let counter = Fault { awaited: Awaited::Counter(4), ..barrier };
        assert_eq!(Fault::decode([2, 1, 2, 3, 4, 5, 6, 0]), Some(counter));
        assert_eq!(
            Fault::decode([9, 1, 2, 3, 4, 5, 6, 0]),
            Some(Fault { awaited: Awaited::Unknown(9), ..barrier })
        );
    }
}
