//! The heap of `malloc` in kernels.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the addresses that it gives are multiples of.
const ALIGN: u64 = 16;

/// Room between what was given, so that a step too far is seen.
const GAP: u64 = 16;

/// Bytes that a piece takes of the heap.
fn room(bytes: u64) -> u64 {
    (bytes + GAP).next_multiple_of(ALIGN)
}

/// A heap. It allocates behind everything else while there is room, so that freed memory is not reused at once, and
/// then by best fit.
#[derive(Debug)]
pub(crate) struct Heap {
    bytes: u64,
    pieces: Mutex<Pieces>,
}

/// Pieces of a heap, by address, with their sizes.
#[derive(Debug, Default)]
struct Pieces {
    given: BTreeMap<u64, u64>,
    /// What is not given, by address and by size. No two of them touch.
    free: BTreeMap<u64, u64>,
    free_by_size: BTreeSet<(u64, u64)>,
    /// What was given, taken back, and not given again.
    taken_back: BTreeMap<u64, u64>,
}

/// The piece that holds the address: where it starts, and its size.
fn holding(pieces: &BTreeMap<u64, u64>, address: u64) -> Option<(u64, u64)> {
    let (&start, &size) = pieces.range(..=address).next_back()?;
    (address - start < size).then_some((start, size))
}

impl Pieces {
    /// Takes that many bytes of what is free; where they begin.
    fn take(&mut self, bytes: u64) -> Option<u64> {
        let last = self.free.last_key_value().map(|(&start, &size)| (size, start));
        let fits = last.filter(|&(size, _)| size >= bytes);
        let (size, start) = fits.or_else(|| self.free_by_size.range((bytes, 0)..).next().copied())?;
        self.forget(start, size);
        if size > bytes {
            self.note(start + bytes, size - bytes);
        }
        Some(start)
    }

    /// Frees memory, and merges it with free memory on either side.
    fn put_back(&mut self, start: u64, size: u64) {
        let (mut start, mut end) = (start, start + size);
        if let Some((&before, &size)) = self.free.range(..start).next_back()
            && before + size == start
        {
            self.forget(before, size);
            start = before;
        }
        if let Some(&size) = self.free.get(&end) {
            self.forget(end, size);
            end += size;
        }
        self.note(start, end - start);
    }

    fn note(&mut self, start: u64, size: u64) {
        self.free.insert(start, size);
        self.free_by_size.insert((size, start));
    }

    fn forget(&mut self, start: u64, size: u64) {
        self.free.remove(&start);
        self.free_by_size.remove(&(size, start));
    }
}

impl Heap {
    pub(crate) fn new(base: u64, bytes: u64) -> Self {
        let mut pieces = Pieces::default();
        // The last piece needs no gap behind it.
        pieces.put_back(base, bytes / ALIGN * ALIGN + GAP);
        Heap { bytes, pieces: Mutex::new(pieces) }
    }

    /// Whether nothing was ever taken from it.
    pub(crate) fn is_untouched(&self) -> bool {
        let pieces = self.pieces();
        pieces.given.is_empty() && pieces.taken_back.is_empty()
    }

    fn pieces(&self) -> MutexGuard<'_, Pieces> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address of `bytes` bytes; `None` where there is no room, or nothing is asked for.
    pub(crate) fn allocate(&self, bytes: u64) -> Option<u64> {
        if bytes == 0 || bytes > self.bytes {
            return None;
        }
        let mut pieces = self.pieces();
        let place = pieces.take(room(bytes))?;
        pieces.given.insert(place, bytes);
        let end = place + bytes;
        let over: Vec<u64> = pieces
            .taken_back
            .range(..end)
            .rev()
            .take_while(|&(&start, &size)| start + size > place)
            .map(|(&start, _)| start)
            .collect();
        for start in over {
            pieces.taken_back.remove(&start);
        }
        Some(place)
    }

    /// Takes back what was given at that address. Whether anything was.
    pub(crate) fn release(&self, address: u64) -> bool {
        let mut pieces = self.pieces();
        let size = pieces.given.remove(&address);
        if let Some(size) = size {
            pieces.put_back(address, room(size));
            pieces.taken_back.insert(address, size);
        }
        size.is_some()
    }

    /// What was given and holds the address: where it starts, and its size.
    pub(crate) fn find(&self, address: u64) -> Option<(u64, u64)> {
        holding(&self.pieces().given, address)
    }

    /// The piece that holds the address, or the last one that begins before it: where it starts, its size,
    /// and whether it was taken back.
    pub(crate) fn nearest(&self, address: u64) -> Option<((u64, u64), bool)> {
        let pieces = self.pieces();
        let before = |pieces: &BTreeMap<u64, u64>| {
            pieces.range(..=address).next_back().map(|(&start, &size)| (start, size))
        };
        let (given, taken_back) = (before(&pieces.given), before(&pieces.taken_back));
        let is_later = |taken: &(u64, u64)| given.is_none_or(|given| taken.0 > given.0);
        match taken_back.filter(is_later) {
            Some(piece) => Some((piece, true)),
            None => given.map(|piece| (piece, false)),
        }
    }

    /// Whether the address is in what was taken back.
    pub(crate) fn was_released(&self, address: u64) -> bool {
        holding(&self.pieces().taken_back, address).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_freed_is_one_piece_again() {
        let heap = Heap::new(1 << 40, 1024);
        let pieces: Vec<u64> = std::iter::from_fn(|| heap.allocate(1)).collect();
        assert_eq!(pieces.len(), 1024 / 32);
        assert!(pieces.windows(2).all(|pair| pair[0] + 32 == pair[1]));
        // In an order in which pieces meet on either side.
        for &address in pieces.iter().step_by(2).chain(pieces.iter().skip(1).step_by(2)) {
            assert!(heap.release(address) && !heap.release(address));
        }
        assert!(heap.allocate(1025).is_none());
        assert_eq!(heap.allocate(1024), Some(1 << 40));
        assert!(heap.allocate(1).is_none() && !heap.was_released(1 << 40));
    }

    #[test]
    fn what_was_freed_is_not_given_again_at_once() {
        let heap = Heap::new(0x1000, 4096);
        let first = heap.allocate(100);
        assert_eq!(first, Some(0x1000));
        assert!(heap.release(0x1000) && heap.was_released(0x1000 + 99) && !heap.was_released(0x1000 + 100));
        let kept = heap.allocate(64);
        assert!(
            kept.is_some() && heap.find(0x1000 + 63) == Some((0x1000, 64)),
            "the heap was empty: {kept:?}"
        );
        let next = heap.allocate(64);
        assert!(heap.release(0x1000) && heap.allocate(64) > next);
    }
}
