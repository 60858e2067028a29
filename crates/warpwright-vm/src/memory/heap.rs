//! The heap of `malloc` in kernels.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the addresses that it gives are multiples of.
const ALIGN: u64 = 16;

/// Room between what was given, so that a step too far is seen.
const GAP: u64 = 16;

/// A heap: first fit, in order of addresses.
#[derive(Debug)]
pub(crate) struct Heap {
    base: u64,
    bytes: u64,
    pieces: Mutex<Pieces>,
}

/// Pieces of a heap, by address, with their sizes.
#[derive(Debug, Default)]
struct Pieces {
    given: BTreeMap<u64, u64>,
    /// What was given, taken back, and not given again.
    taken_back: BTreeMap<u64, u64>,
}

/// The piece that holds the address: where it starts, and its size.
fn holding(pieces: &BTreeMap<u64, u64>, address: u64) -> Option<(u64, u64)> {
    let (&start, &size) = pieces.range(..=address).next_back()?;
    (address - start < size).then_some((start, size))
}

impl Heap {
    pub(crate) fn new(base: u64, bytes: u64) -> Self {
        Heap { base, bytes, pieces: Mutex::default() }
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
        let given = &pieces.given;
        let step = |address: u64, size: u64| (address + size + GAP).next_multiple_of(ALIGN);
        let last = given.last_key_value().map_or(self.base, |(&address, &size)| step(address, size));
        let end = self.base + self.bytes;
        let place = if last + bytes <= end {
            last
        } else {
            let mut place = self.base;
            for (&address, &size) in given.iter() {
                if place + bytes + GAP <= address {
                    break;
                }
                place = step(address, size);
            }
            place
        };
        if place + bytes > end {
            return None;
        }
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
            pieces.taken_back.insert(address, size);
        }
        size.is_some()
    }

    /// What was given and holds the address: where it starts, and its size.
    pub(crate) fn find(&self, address: u64) -> Option<(u64, u64)> {
        holding(&self.pieces().given, address)
    }

    /// Whether the address is in what was taken back.
    pub(crate) fn was_released(&self, address: u64) -> bool {
        holding(&self.pieces().taken_back, address).is_some()
    }
}
