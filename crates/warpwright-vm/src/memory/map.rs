//! The map from addresses to allocations.
//!
//! The most recently freed allocations stay known, so that accesses to them are reported; older ones are forgotten,
//! and their numbers and addresses may be used again. So the size of the map, and the time to copy it for a launch,
//! are proportional to the current allocations.

use super::address::{GLOBAL_WINDOW, overlapped_window};
use super::{Allocation, AllocationKind, Heap, HostWords, Object};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// Address space that belongs to one allocation comes in units of this.
const PAGE_BITS: u32 = 21;

/// Allocations that were given back and stay known.
const MAX_GHOSTS: usize = 1024;

/// Bytes within which pieces of the host's memory are taken for neighbours: a page.
const HOST_PIECES: u64 = 1 << 12;

/// Pages that are given before forgotten ones are given again.
const FRESH_PAGES: usize = 1 << 16;

/// All allocations, by address.
#[derive(Clone, Debug)]
pub(crate) struct GlobalMap {
    /// Where its addresses begin, and how many bytes of address space it has.
    first: u64,
    capacity: u64,
    /// Bytes that may be allocated at once, and that are.
    limit: u64,
    used: u64,
    /// For each page, one more than the index of the allocation that it belongs to; 0 for none.
    pages: Vec<u32>,
    /// By their numbers. What is forgotten has left a gap.
    allocations: Vec<Option<Arc<Allocation>>>,
    /// Memory of the host: where each piece begins and ends, and the index of its allocation. Pieces that were given
    /// back are among them until their addresses are mapped again. None of them overlap.
    host: BTreeMap<u64, (u64, u32)>,
    /// What was given back, the last one last.
    ghosts: VecDeque<u32>,
    /// Gaps among the allocations.
    free_ids: Vec<u32>,
    /// Runs of forgotten pages: the first, and how many. No two of them touch.
    free_pages: BTreeMap<u32, u32>,
}

/// Why memory of the host could not be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overlap {
    /// Other memory has some of its addresses: where that begins, and its size.
    Memory(u64, u64),
    /// Some of its addresses are those of shared, local or parameter memory, or of functions.
    Window(u64),
}

impl GlobalMap {
    /// Bytes of addresses that all devices of a host have that must differ in them.
    const CAPACITY: u64 = 1 << 44;

    /// Memory of which that many bytes can be allocated at once. Its addresses are part `index` of `count` equal
    /// parts of all addresses.
    pub(crate) fn new(limit: u64, index: u32, count: u32) -> Self {
        let count = u64::from(count.max(1));
        let capacity = (Self::CAPACITY / count) >> PAGE_BITS << PAGE_BITS;
        let first = GLOBAL_WINDOW + u64::from(index).min(count - 1) * capacity;
        GlobalMap {
            first,
            capacity,
            limit,
            used: 0,
            pages: Vec::new(),
            allocations: Vec::new(),
            host: BTreeMap::new(),
            ghosts: VecDeque::new(),
            free_ids: Vec::new(),
            free_pages: BTreeMap::new(),
        }
    }

    /// Bytes that are not allocated.
    pub(crate) fn unused(&self) -> u64 {
        self.limit - self.used
    }

    /// Allocates; `None` where there is no memory or no address space left.
    pub(crate) fn allocate(
        &mut self,
        bytes: u64,
        kind: AllocationKind,
        name: impl Into<String>,
    ) -> Option<Arc<Allocation>> {
        if bytes > self.unused() || bytes > self.capacity {
            return None;
        }
        let allocation = self.place(bytes, kind, name.into())?;
        self.put(allocation.clone());
        self.used += bytes;
        Some(allocation)
    }

    /// Gives addresses to an allocation that has no memory yet; `None` where there are none left.
    pub(crate) fn hold(&mut self, bytes: u64, name: &str) -> Option<Arc<Allocation>> {
        if bytes > self.capacity {
            return None;
        }
        let allocation = self.place(bytes, AllocationKind::Buffer, name.into())?;
        self.put(Arc::new(allocation.ghost()));
        Some(allocation)
    }

    /// Makes reserved memory accessible. Returns whether there is room for it.
    pub(crate) fn commit(&mut self, allocation: &Arc<Allocation>) -> bool {
        if allocation.bytes > self.unused() {
            return false;
        }
        let slot = self.allocations.get_mut(allocation.id as usize).and_then(Option::as_mut);
        let Some(slot) = slot.filter(|slot| slot.freed) else { return false };
        *slot = allocation.clone();
        self.used += allocation.bytes;
        true
    }

    /// An allocation with addresses of its own.
    fn place(&mut self, bytes: u64, kind: AllocationKind, name: String) -> Option<Arc<Allocation>> {
        // There is always room behind the end, so that a step too far is not in the next allocation.
        let page = self.find_pages(pages_of(bytes))?;
        // Variables are known by a range of numbers.
        let is_variable = matches!(kind, AllocationKind::Variable | AllocationKind::Constant);
        let id = if is_variable { self.allocations.len() as u32 } else { self.next_id() };
        let base = self.first + (u64::from(page) << PAGE_BITS);
        let allocation = Arc::new(Allocation::new(id, base, bytes, kind, name)?);
        self.take_pages(page, pages_of(bytes), id);
        Some(allocation)
    }

    fn next_id(&self) -> u32 {
        self.free_ids.last().copied().unwrap_or(self.allocations.len() as u32)
    }

    /// An allocation takes its number.
    fn put(&mut self, allocation: Arc<Allocation>) {
        let id = allocation.id as usize;
        if id == self.allocations.len() {
            self.allocations.push(Some(allocation));
        } else {
            // The gap that `next_id` has found.
            self.free_ids.pop();
            self.allocations[id] = Some(allocation);
        }
    }

    /// The first of that many consecutive free pages.
    fn find_pages(&self, count: u32) -> Option<u32> {
        let fresh = || {
            let end = self.pages.len() as u64 + u64::from(count);
            let (from, to) = (self.end(), self.first + (end << PAGE_BITS));
            // The host's memory may lie in the window, far behind.
            let free = end << PAGE_BITS <= self.capacity && self.host_overlap(from, to).is_none();
            free.then_some(self.pages.len() as u32)
        };
        let forgotten = || {
            let fits = self.free_pages.iter().filter(|&(_, &run)| run >= count);
            fits.min_by_key(|&(_, &run)| run).map(|(&first, _)| first)
        };
        if self.pages.len() < FRESH_PAGES { fresh().or_else(forgotten) } else { forgotten().or_else(fresh) }
    }

    /// Pages become an allocation's.
    fn take_pages(&mut self, first: u32, count: u32, id: u32) {
        if let Some(run) = self.free_pages.remove(&first)
            && run > count
        {
            self.free_pages.insert(first + count, run - count);
        }
        let end = (first + count) as usize;
        if self.pages.len() < end {
            self.pages.resize(end, 0);
        }
        self.pages[first as usize..end].fill(id + 1);
    }

    /// Pages are no one's again, as one run with those on either side.
    fn put_back_pages(&mut self, first: u32, count: u32) {
        self.pages[first as usize..(first + count) as usize].fill(0);
        let (mut first, mut count) = (first, count);
        if let Some(after) = self.free_pages.remove(&(first + count)) {
            count += after;
        }
        if let Some((&before, &run)) = self.free_pages.range(..first).next_back()
            && before + run == first
        {
            (first, count) = (before, run + count);
        }
        self.free_pages.insert(first, count);
    }

    /// Where the addresses end that were given to allocations.
    fn end(&self) -> u64 {
        self.first + ((self.pages.len() as u64) << PAGE_BITS)
    }

    /// Maps memory of the host, where it is for the host.
    pub(crate) fn map_host(
        &mut self,
        memory: Arc<HostWords>,
        bytes: u64,
        name: &str,
    ) -> Result<Arc<Allocation>, Overlap> {
        let id = self.next_id();
        self.put_host(Allocation::at_host(id, memory, bytes, name.into()))
    }

    /// The same, for memory that the host leaves to the device.
    pub(crate) fn lend(
        &mut self,
        memory: Arc<HostWords>,
        bytes: u64,
        name: &str,
    ) -> Result<Arc<Allocation>, Overlap> {
        let id = self.next_id();
        self.put_host(Allocation::lent(id, memory, bytes, name.into()))
    }

    /// Reserves address space of the host's choosing, in which the host maps memory.
    pub(crate) fn reserve(
        &mut self,
        address: u64,
        words: Arc<HostWords>,
        bytes: u64,
        name: &str,
    ) -> Result<Arc<Allocation>, Overlap> {
        let id = self.next_id();
        self.put_host(Allocation::reserved(id, address, words, bytes, name.into()))
    }

    /// Puts an allocation at addresses of the host, which must be free.
    fn put_host(&mut self, allocation: Allocation) -> Result<Arc<Allocation>, Overlap> {
        let id = allocation.id;
        let allocation = Arc::new(allocation);
        let (start, end) = (allocation.base, allocation.base + allocation.bytes);
        if let Some(window) = overlapped_window(start, end) {
            return Err(Overlap::Window(window));
        }
        // Addresses that the device has given stay its own.
        if start < self.end() && end > self.first {
            let other = self.lookup(start).or_else(|| self.nearest(start));
            let (base, bytes) = other.map_or((self.first, 0), |other| (other.base, other.bytes));
            return Err(Overlap::Memory(base, bytes));
        }
        if let Some(other) = self.host_overlap(start, end) {
            return Err(Overlap::Memory(other.base, other.bytes));
        }
        let (from, to) = (start.saturating_sub(HOST_PIECES), end.saturating_add(HOST_PIECES));
        let near: Vec<(u64, u64, u32)> =
            self.host_within(from, to).map(|(&near, &(near_end, id))| (near, near_end, id)).collect();
        for &(near, near_end, _) in &near {
            if near < end && near_end > start {
                self.host.remove(&near);
            }
        }
        self.host.insert(start, (end, id));
        self.put(allocation.clone());
        near.iter().for_each(|&(_, _, id)| self.forget_ghost(id));
        Ok(allocation)
    }

    /// Forgets memory of the host that was given back and is close to a piece that is mapped now: the host's allocator
    /// has cut its memory anew, so that what an index too far meets was never the program's.
    fn forget_ghost(&mut self, id: u32) {
        if let Some(at) = self.ghosts.iter().position(|&ghost| ghost == id) {
            self.ghosts.remove(at);
            self.forget(id);
        }
    }

    /// The pieces of the host's memory that have addresses of that range.
    fn host_within(&self, start: u64, end: u64) -> impl Iterator<Item = (&u64, &(u64, u32))> {
        self.host.range(..end).rev().take_while(move |&(_, &(other_end, _))| other_end > start)
    }

    /// The host's memory that is mapped and has addresses of that range.
    fn host_overlap(&self, start: u64, end: u64) -> Option<&Allocation> {
        let mut found = self.host_within(start, end).filter_map(|(_, &(_, id))| self.at(id));
        found.find(|allocation| !allocation.freed)
    }

    /// Counts memory that the host keeps as the device's. Returns whether there is room.
    pub(crate) fn take(&mut self, bytes: u64) -> bool {
        let has_room = bytes <= self.unused();
        self.used += if has_room { bytes } else { 0 };
        has_room
    }

    /// All memory that there is counts as written.
    pub(crate) fn assume_written(&self) {
        self.allocations.iter().flatten().for_each(|allocation| allocation.written.set_all());
    }

    /// Counts it no longer.
    pub(crate) fn give_back(&mut self, bytes: u64) {
        self.used -= bytes;
    }

    /// Gives an allocation back. What it was stays known for a while.
    pub(crate) fn free(&mut self, id: u32) {
        if self.decommit(id) {
            self.retire(id);
        }
    }

    /// Takes the memory of an allocation, which keeps its addresses. Returns whether it had any.
    pub(crate) fn decommit(&mut self, id: u32) -> bool {
        let Some(Some(slot)) = self.allocations.get_mut(id as usize) else { return false };
        if slot.freed {
            return false;
        }
        if !slot.of_host {
            self.used -= slot.bytes;
        }
        *slot = Arc::new(slot.ghost());
        true
    }

    /// What has no memory any more will be forgotten.
    pub(crate) fn retire(&mut self, id: u32) {
        self.ghosts.push_back(id);
        if self.ghosts.len() > MAX_GHOSTS
            && let Some(oldest) = self.ghosts.pop_front()
        {
            self.forget(oldest);
        }
    }

    /// Forgets what was given back.
    fn forget(&mut self, id: u32) {
        let Some(ghost) = self.allocations.get_mut(id as usize).and_then(Option::take) else { return };
        self.free_ids.push(id);
        if !ghost.of_host {
            let page = (ghost.base - self.first) >> PAGE_BITS;
            self.put_back_pages(page as u32, pages_of(ghost.bytes));
        } else if self.host.get(&ghost.base).is_some_and(|&(_, other)| other == id) {
            self.host.remove(&ghost.base);
        }
    }

    /// Frees variables, by their numbers. The heap, which is created with the first module that needs one, stays for
    /// others.
    pub(crate) fn free_variables(&mut self, numbers: Range<usize>) {
        for id in numbers {
            if self.at(id as u32).is_some_and(|allocation| allocation.kind != AllocationKind::Heap) {
                self.free(id as u32);
            }
        }
    }

    #[inline(always)]
    fn at(&self, id: u32) -> Option<&Allocation> {
        self.allocations.get(id as usize)?.as_deref()
    }

    /// The allocation whose address range contains `address`. Its data may end earlier.
    #[inline(always)]
    pub(crate) fn lookup(&self, address: u64) -> Option<&Allocation> {
        let page = address.wrapping_sub(self.first) >> PAGE_BITS;
        match self.pages.get(page as usize) {
            // One less than 0 is the number of none.
            Some(&index) => self.at(index.wrapping_sub(1)),
            None => self.lookup_host(address),
        }
    }

    /// The texture or surface of a handle.
    pub(crate) fn object(&self, handle: u64) -> Option<Arc<Object>> {
        let found = self.lookup(handle).filter(|found| !found.freed && found.base == handle)?;
        found.object()
    }

    /// The piece of the host's memory that an address is in.
    #[inline(never)]
    fn lookup_host(&self, address: u64) -> Option<&Allocation> {
        let (_, &(end, id)) = self.host.range(..=address).next_back()?;
        self.at(id).filter(|_| address < end)
    }

    /// The allocation that is nearest to an address that is in none.
    pub(crate) fn nearest(&self, address: u64) -> Option<&Allocation> {
        let distance = |allocation: &Allocation| {
            let end = allocation.base + allocation.bytes;
            if address < allocation.base { allocation.base - address } else { address.saturating_sub(end) }
        };
        // Addresses of the host come back: what is there now comes before what was.
        let rank = |allocation: &&Allocation| (distance(allocation), allocation.freed);
        self.allocations.iter().rev().filter_map(Option::as_deref).min_by_key(rank)
    }

    /// The allocation of that number.
    pub(crate) fn get(&self, id: u32) -> Option<&Arc<Allocation>> {
        self.allocations.get(id as usize)?.as_ref()
    }

    /// The heap, if there is one.
    pub(crate) fn heap(&self) -> Option<&Heap> {
        self.allocations.iter().flatten().find_map(|allocation| allocation.heap())
    }

    /// Puts a heap of another size in the place of the one that is there, if there is one. Returns whether there is room.
    pub(crate) fn replace_heap(&mut self, bytes: u64) -> bool {
        let old = self.allocations.iter().flatten().find(|allocation| allocation.heap().is_some()).cloned();
        let Some(old) = old else { return bytes <= self.unused() };
        let is_placed = old.bytes == bytes || self.allocate(bytes, AllocationKind::Heap, "heap").is_some();
        if is_placed && old.bytes != bytes {
            self.free(old.id);
        }
        is_placed
    }

    /// One more than the largest number of an allocation so far.
    pub(crate) fn len(&self) -> usize {
        self.allocations.len()
    }
}

/// Pages that an allocation takes.
fn pages_of(bytes: u64) -> u32 {
    // The capacity has no more of them than that.
    ((bytes >> PAGE_BITS) + 1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    fn allocate(map: &mut GlobalMap, bytes: u64) -> Option<(u32, u64)> {
        let found = map.allocate(bytes, AllocationKind::Buffer, "")?;
        Some((found.id, found.base))
    }

    #[test]
    fn what_was_given_back_long_ago_is_given_again() {
        // 64 pages.
        let mut map = GlobalMap::new(u64::MAX, 3, 1 << 17);
        let kept = allocate(&mut map, 5 << PAGE_BITS).unwrap();
        let mut given = Vec::new();
        while let Some((id, base)) = allocate(&mut map, 1) {
            given.push(base);
            map.free(id);
        }
        assert_eq!(given.len(), 64 - 6);
        assert!(given.iter().all(|&base| map.lookup(base).is_some_and(|found| found.freed)));
        // Nothing is forgotten that is among the last.
        for id in map.ghosts.clone() {
            map.forget(id);
        }
        map.ghosts.clear();
        assert!(given.iter().all(|&base| map.lookup(base).is_none()));
        assert_eq!(map.free_pages, BTreeMap::from([(6, 58)]), "one run");
        assert_eq!(map.lookup(kept.1).map(|found| found.id), Some(kept.0));
        // Numbers and addresses come back, and what is large finds room.
        let (id, base) = allocate(&mut map, 57 << PAGE_BITS).unwrap();
        assert_eq!((base, map.lookup(base + (57 << PAGE_BITS)).unwrap().id), (given[0], id));
        assert!(allocate(&mut map, 1).is_none());
        assert!(map.len() <= 60 && map.free_pages.is_empty());
    }

    #[test]
    fn only_the_last_stay_known() {
        let mut map = GlobalMap::new(u64::MAX, 0, 1);
        let bases: Vec<u64> = (0..MAX_GHOSTS + 10)
            .map(|_| {
                let (id, base) = allocate(&mut map, 1).unwrap();
                map.free(id);
                base
            })
            .collect();
        let known = |base: &&u64| map.lookup(**base).is_some();
        assert_eq!(bases.iter().filter(known).count(), MAX_GHOSTS);
        assert!(bases[..10].iter().all(|&base| map.lookup(base).is_none()));
        assert!(map.len() <= MAX_GHOSTS + 2, "numbers come back");
    }

    #[test]
    fn held_addresses_have_memory_at_times() {
        let mut map = GlobalMap::new(100, 0, 1);
        let held = map.hold(60, "").unwrap();
        let is_there = |map: &GlobalMap| map.lookup(held.base).is_some_and(|found| !found.freed);
        assert!(!is_there(&map) && map.unused() == 100);
        for _ in 0..2 {
            assert!(map.commit(&held) && !map.commit(&held));
            assert!(is_there(&map) && map.unused() == 40);
            assert!(map.decommit(held.id) && !map.decommit(held.id));
            assert!(!is_there(&map) && map.unused() == 100);
        }
        // It is never forgotten, however much comes and goes, and gets memory only where there is room.
        for _ in 0..MAX_GHOSTS + 10 {
            let (id, base) = allocate(&mut map, 50).unwrap();
            assert!(base != held.base && !map.commit(&held));
            map.free(id);
        }
        assert!(map.lookup(held.base).is_some());
        map.retire(held.id);
        assert_eq!(map.ghosts.back(), Some(&held.id));
    }

    #[test]
    fn memory_of_the_host_is_cut_anew() {
        let mut map = GlobalMap::new(u64::MAX, 0, 1);
        let words: Arc<HostWords> = Arc::new([const { AtomicU32::new(0) }; 8192]);
        let base = (*words).as_ref().as_ptr().addr() as u64;
        let place = |map: &mut GlobalMap, offset: u64, bytes: u64| {
            let allocation =
                Allocation::reserved(map.next_id(), base + offset, words.clone(), bytes, "".into());
            map.put_host(allocation).unwrap().id
        };
        let far = place(&mut map, 16384, 8);
        let first = place(&mut map, 32, 16);
        let kept = place(&mut map, 64, 8);
        [far, first].into_iter().for_each(|id| map.free(id));
        // It ends where the first one began, and more was the allocator's than it says.
        let second = place(&mut map, 16, 16);
        assert!(map.lookup(base + 36).is_none());
        assert_eq!(map.nearest(base + 36).map(|found| found.id), Some(second));
        assert!(map.lookup(base + 16384).is_some_and(|found| found.freed), "far away it is known");
        assert!(map.lookup(base + 64).is_some_and(|found| found.id == kept && !found.freed));
        // One that has its addresses from another is no other one's neighbour later.
        map.free(second);
        let again = place(&mut map, 16, 16);
        map.free(again);
        let before = place(&mut map, 0, 16);
        assert_eq!(map.nearest(base + 20).map(|found| found.id), Some(before));
        // Numbers are given once.
        map.free(before);
        let ids: Vec<u32> = (0..3).map(|at| place(&mut map, 128 + 16 * at, 16)).collect();
        assert!(ids.iter().all(|id| map.get(*id).is_some_and(|found| !found.freed)));
        assert_eq!(ids.iter().chain([&kept]).collect::<std::collections::BTreeSet<_>>().len(), 4);
    }

    #[test]
    fn variables_have_numbers_in_a_row() {
        let mut map = GlobalMap::new(u64::MAX, 0, 1);
        for _ in 0..MAX_GHOSTS + 3 {
            let (id, _) = allocate(&mut map, 1).unwrap();
            map.free(id);
        }
        assert!(!map.free_ids.is_empty());
        let before = map.len();
        let ids = [AllocationKind::Variable, AllocationKind::Constant]
            .map(|kind| map.allocate(4, kind, "").unwrap().id as usize);
        assert_eq!(ids, [before, before + 1]);
        assert!(allocate(&mut map, 1).unwrap().0 < before as u32, "and others in the gaps");
        map.free_variables(before..before + 2);
        assert!(ids.iter().all(|&id| map.get(id as u32).is_some_and(|found| found.freed)));
    }
}
