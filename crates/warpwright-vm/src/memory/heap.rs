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
    /// What was given: address and size.
    given: Mutex<BTreeMap<u64, u64>>,
    /// What was taken back and not given again.
    freed: Mutex<BTreeMap<u64, u64>>,
}

impl Heap {
    pub(crate) fn new(base: u64, bytes: u64) -> Self {
        Heap { base, bytes, given: Mutex::default(), freed: Mutex::default() }
    }

    fn given(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address of `bytes` bytes; `None` where there is no room, or nothing is asked for.
    pub(crate) fn allocate(&self, bytes: u64) -> Option<u64> {
        if bytes == 0 || bytes > self.bytes {
            return None;
        }
        let mut given = self.given();
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
        given.insert(place, bytes);
        self.freed().retain(|&start, size| place + bytes <= start || start + *size <= place);
        Some(place)
    }

    /// Takes back what was given at that address. Whether it was.
    pub(crate) fn release(&self, address: u64) -> bool {
        let bytes = self.given().remove(&address);
        if let Some(bytes) = bytes {
            self.freed().insert(address, bytes);
        }
        bytes.is_some()
    }

    /// Whether an address was given, taken back, and not given again.
    pub(crate) fn was_freed(&self, address: u64) -> bool {
        let freed = self.freed();
        freed.range(..=address).next_back().is_some_and(|(&start, &size)| address - start < size)
    }

    fn freed(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.freed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was given and holds the address: where it starts, and its size.
    pub(crate) fn find(&self, address: u64) -> Option<(u64, u64)> {
        let given = self.given();
        let (&start, &size) = given.range(..=address).next_back()?;
        (address - start < size).then_some((start, size))
    }
}
