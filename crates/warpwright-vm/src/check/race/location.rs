//! Knowledge released to memory locations, for threads that read them later.
//!
//! A strong write that follows a fence, or that releases, stores its knowledge at the location; a strong read that
//! observes the location may acquire it from there. Read-modify-writes continue the existing release. Most kernels
//! release nothing, and then nothing here is used.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::clock::Seen;
use super::knowledge::Floors;

#[derive(Debug, Default)]
struct Location {
    /// Released at device scope.
    device: Floors,
    /// Released at block scope, by block.
    blocks: HashMap<u32, Floors>,
    /// The only thread whose strong writes have released all of it.
    by: Option<u16>,
}

/// Locations by address.
#[derive(Debug, Default)]
pub(super) struct Locations {
    map: HashMap<u64, Location>,
}

impl Locations {
    pub(super) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.map.clear();
    }

    /// A strong write of a thread of `block`. With `replaces`, earlier releases of other threads are removed, since the
    /// value that carried them is overwritten. Those of the thread itself stay: a release that a strong write of the
    /// same thread follows is a release pattern.
    pub(super) fn release(
        &mut self,
        address: u64,
        (block, thread): (u32, u16),
        released: &Seen,
        replaces: bool,
    ) {
        let is_of_others = |location: &Location| location.by != Some(thread);
        if released.device.is_empty() && released.block.is_empty() {
            if replaces && self.map.get(&address).is_some_and(is_of_others) {
                self.map.remove(&address);
            }
            return;
        }
        let location =
            self.map.entry(address).or_insert_with(|| Location { by: Some(thread), ..Location::default() });
        if is_of_others(location) {
            match replaces {
                true => *location = Location { by: Some(thread), ..Location::default() },
                false => location.by = None,
            }
        }
        location.device.join(&released.device);
        if !released.block.is_empty() {
            location.blocks.entry(block).or_default().join(&released.block);
        }
    }

    /// What a strong read by a thread of `block` observes.
    pub(super) fn observe(&self, address: u64, block: u32) -> Option<Seen> {
        let location = self.map.get(&address)?;
        let mut seen = Seen { device: location.device.clone(), block: Floors::default() };
        // What the own block released to the device it released to the block too. The others' part comes
        // with it, which finds a race less and never one too many.
        if location.device.get(block).is_some() {
            seen.block = location.device.clone();
        }
        if let Some(own) = location.blocks.get(&block) {
            seen.device.join(own);
            seen.block.join(own);
        }
        Some(seen)
    }
}

const SHARDS: usize = 64;

/// Locations in global memory, which blocks on several host threads reach.
///
/// A release is entered before memory changes, and an observation is looked up after memory was read, so a thread
/// that reads a released value finds the release. Conversely, a reader may find more than its value carried, which
/// can only hide a race; for that reason a write never removes an earlier release.
#[derive(Debug)]
pub(super) struct GlobalLocations {
    shards: [Mutex<Locations>; SHARDS],
    /// Whether anything was released at all.
    used: AtomicBool,
}

impl GlobalLocations {
    pub(super) fn new() -> GlobalLocations {
        GlobalLocations { shards: std::array::from_fn(|_| Mutex::default()), used: AtomicBool::new(false) }
    }

    fn shard(&self, address: u64) -> MutexGuard<'_, Locations> {
        let at = (address >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        self.shards[at as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn release(&self, address: u64, of: (u32, u16), released: &Seen) {
        if released.device.is_empty() && released.block.is_empty() {
            return;
        }
        self.shard(address).release(address, of, released, false);
        self.used.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Whether there is anything to observe.
    pub(super) fn is_used(&self) -> bool {
        fence(Ordering::SeqCst);
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn observe(&self, address: u64, block: u32) -> Option<Seen> {
        self.shard(address).observe(address, block)
    }
}
