//! Knowledge released to memory locations, for threads that read them later.
//!
//! A strong write that follows a fence, or that releases, stores its knowledge at the location; a strong read that
//! observes the location may acquire it from there. Read-modify-writes continue the existing release. Most kernels
//! release nothing, and then nothing here is used.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::clock::Seen;
use super::entry::Scope;
use super::knowledge::Floors;

/// The blocks whose own releases to the device a location tells apart.
const MAX_RECENT: usize = 16;

/// Where a scalar begins, and its bytes. What overlaps in part is another location.
pub(super) type ScalarPlace = (u64, u32);

#[derive(Debug, Default)]
struct Location {
    /// Released at device scope.
    device: Floors,
    /// The part of it that the last blocks have released.
    recent: Vec<(u32, Floors)>,
    /// Blocks that are not among these any more have released, too.
    lost: bool,
    /// Released at block scope, by block.
    blocks: HashMap<u32, Floors>,
    /// The only thread whose strong writes have released all of it.
    by: Option<(u32, u16)>,
}

impl Location {
    fn join(&mut self, block: u32, released: &Seen) {
        if !released.block.is_empty() {
            self.blocks.entry(block).or_default().join(&released.block);
        }
        if released.device.is_empty() {
            return;
        }
        self.device.join(&released.device);
        if let Some((_, floors)) = self.recent.iter_mut().find(|(of, _)| *of == block) {
            return floors.join(&released.device);
        }
        if self.recent.len() == MAX_RECENT {
            self.recent.remove(0);
            self.lost = true;
        }
        self.recent.push((block, released.device.clone()));
    }
}

/// Locations by place.
#[derive(Debug, Default)]
pub(super) struct Locations {
    map: HashMap<ScalarPlace, Location>,
}

impl Locations {
    pub(super) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.map.clear();
    }

    /// A strong write of a thread of a block. With `replaces`, earlier releases of other threads are removed, since the
    /// value that carried them is overwritten. Those of the thread itself stay: a release that a strong write of the
    /// same thread follows is a release pattern.
    pub(super) fn release(
        &mut self,
        place: ScalarPlace,
        thread: (u32, u16),
        released: &Seen,
        replaces: bool,
    ) {
        let is_of_others = |location: &Location| location.by != Some(thread);
        if released.is_empty() {
            if replaces && self.map.get(&place).is_some_and(is_of_others) {
                self.map.remove(&place);
            }
            return;
        }
        let new = || Location { by: Some(thread), ..Location::default() };
        let location = self.map.entry(place).or_insert_with(new);
        if is_of_others(location) {
            match replaces {
                true => *location = new(),
                false => location.by = None,
            }
        }
        location.join(thread.0, released);
    }

    /// What a strong read of that scope by a thread of `block` observes.
    pub(super) fn observe(&self, place: ScalarPlace, block: u32, scope: Scope) -> Option<Seen> {
        let location = self.map.get(&place)?;
        let mut own = location.blocks.get(&block).cloned().unwrap_or_default();
        match location.recent.iter().find(|(of, _)| *of == block) {
            Some((_, floors)) => own.join(floors),
            // Which part the own block has released is not known any more. The others' part comes with it, which finds
            // a race less and never one too many.
            None if location.lost && location.device.get(block).is_some() => own.join(&location.device),
            None => {}
        }
        let mut device = own.clone();
        if scope == Scope::Device {
            device.join(&location.device);
        }
        Some(Seen { device, block: own })
    }
}

const SHARDS: usize = 64;

/// Locations in global memory, which blocks on several host threads reach.
///
/// A release is entered before memory changes, and an observation is looked up after memory was read, so a thread
/// that reads a released value finds the release. Conversely, a reader may find more than its value carried, which
/// can only hide a race; for that reason a write removes no earlier release unless one host thread runs all blocks.
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

    fn shard(&self, (address, _): ScalarPlace) -> MutexGuard<'_, Locations> {
        let at = (address >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        self.shards[at as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn release(&self, place: ScalarPlace, thread: (u32, u16), released: &Seen, replaces: bool) {
        if released.is_empty() && !replaces {
            return;
        }
        self.shard(place).release(place, thread, released, replaces);
        self.used.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Whether there is anything to observe.
    pub(super) fn is_used(&self) -> bool {
        fence(Ordering::SeqCst);
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn observe(&self, place: ScalarPlace, block: u32, scope: Scope) -> Option<Seen> {
        self.shard(place).observe(place, block, scope)
    }
}
