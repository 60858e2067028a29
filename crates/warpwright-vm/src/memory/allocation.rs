//! Global memory: allocations, and the map from addresses to them.
//!
//! Several host threads may touch an allocation at once, and a kernel with a race does. So memory is made of
//! atomic words of four bytes that are read and written with relaxed ordering: a race is the kernel's
//! trouble, never the host's. What is wider than a word is tied together by locks where the kernel asks
//! for atomicity; what is narrower changes its word by compare-and-swap.

use super::Heap;
use super::address::{GLOBAL_WINDOW, overlapped_window};
use crate::check::SharedInitBits;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Address space that belongs to one allocation comes in units of this.
const PAGE_BITS: u32 = 21;

/// What an allocation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllocationKind {
    /// Allocated by the host.
    Buffer,
    /// Memory of the host, which it may read and write while a kernel runs.
    Mapped,
    /// A `.global` variable of a module.
    Variable,
    /// A `.const` variable of a module.
    Constant,
    /// The heap of `malloc` in kernels.
    Heap,
}

/// A piece of global memory.
#[derive(Debug)]
pub(crate) struct Allocation {
    /// Its number, which no other one ever has.
    pub(crate) id: u32,
    /// Address of its first byte.
    pub(crate) base: u64,
    /// Its size.
    pub(crate) bytes: u64,
    pub(crate) kind: AllocationKind,
    /// What it is called in reports: the variable's name, or what the host said.
    pub(crate) name: String,
    /// It was given back: nothing may touch it.
    pub(crate) freed: bool,
    /// What `malloc` has given of it.
    pub(crate) heap: Option<Heap>,
    words: Words,
    /// Held while something wider than a word changes atomically.
    wide: Mutex<()>,
    /// Which bytes were written since it was allocated.
    pub(crate) written: SharedInitBits,
}

/// Where an allocation has its words. Both variants are a pointer and a length at one place, so that telling them
/// apart costs nothing.
#[derive(Debug)]
enum Words {
    /// In memory of its own.
    Own(Box<[AtomicU32]>),
    /// In memory that the host has.
    Host(&'static [AtomicU32]),
}

impl std::ops::Deref for Words {
    type Target = [AtomicU32];

    #[inline(always)]
    fn deref(&self) -> &[AtomicU32] {
        match self {
            Words::Own(words) => words,
            Words::Host(words) => words,
        }
    }
}

/// The words that hold that many bytes.
pub(crate) fn words_of_bytes(bytes: u64) -> usize {
    bytes.div_ceil(4) as usize
}

/// Words of zero; `None` where the host has no memory for them. Pages that are never touched take none.
fn zeros(count: usize) -> Option<Box<[AtomicU32]>> {
    // Asked for first, since what gives zeroed pages ends the process where there are none.
    Vec::<u32>::new().try_reserve_exact(count).ok()?;
    // In place, and without a write: `AtomicU32` has the layout of `u32`.
    let words: Vec<AtomicU32> = vec![0u32; count].into_iter().map(AtomicU32::new).collect();
    Some(words.into_boxed_slice())
}

/// Holds other wide atomic operations off.
pub(crate) type Exclusive<'a> = MutexGuard<'a, ()>;

impl Allocation {
    /// `None` where the host has no memory for it.
    fn new(id: u32, base: u64, bytes: u64, kind: AllocationKind, name: String) -> Option<Self> {
        let heap = (kind == AllocationKind::Heap).then(|| Heap::new(base, bytes));
        let words = Words::Own(zeros(words_of_bytes(bytes))?);
        // Variables without an initialiser are zero.
        let written = match kind {
            AllocationKind::Buffer | AllocationKind::Heap => SharedInitBits::new(bytes),
            AllocationKind::Mapped | AllocationKind::Variable | AllocationKind::Constant => {
                SharedInitBits::written()
            }
        };
        let (freed, wide) = (false, Mutex::new(()));
        Some(Allocation { id, base, bytes, kind, name, freed, heap, words, wide, written })
    }

    /// Memory that the host has: it is where it is for the host.
    fn of_host(id: u32, words: &'static [AtomicU32], bytes: u64, name: String) -> Self {
        Allocation {
            id,
            base: words.as_ptr().addr() as u64,
            bytes,
            kind: AllocationKind::Mapped,
            name,
            freed: false,
            heap: None,
            words: Words::Host(words),
            wide: Mutex::new(()),
            written: SharedInitBits::written(),
        }
    }

    /// The same place after it was given back.
    fn ghost(&self) -> Self {
        Allocation {
            id: self.id,
            base: self.base,
            bytes: self.bytes,
            kind: self.kind,
            name: self.name.clone(),
            freed: true,
            heap: None,
            words: Words::Own(Box::default()),
            wide: Mutex::new(()),
            written: SharedInitBits::written(),
        }
    }

    /// Whether kernels may change it.
    #[inline(always)]
    pub(crate) fn is_writable(&self) -> bool {
        self.kind != AllocationKind::Constant
    }

    /// The word at a byte offset from the start (rounded down to a word).
    #[inline(always)]
    pub(crate) fn word(&self, offset: u64) -> &AtomicU32 {
        &self.words[(offset >> 2) as usize]
    }

    /// Whether it takes none of the device's memory and none of its addresses.
    fn is_of_host(&self) -> bool {
        matches!(self.words, Words::Host(_))
    }

    /// All words.
    pub(crate) fn words(&self) -> &[AtomicU32] {
        &self.words
    }

    /// So many words from that byte offset on.
    #[inline(always)]
    pub(crate) fn run(&self, offset: u64, words: usize) -> &[AtomicU32] {
        &self.words[(offset >> 2) as usize..][..words]
    }

    /// Whether it may change, or be looked at, from outside while a kernel runs.
    #[inline(always)]
    pub(crate) fn is_mapped(&self) -> bool {
        self.kind == AllocationKind::Mapped
    }

    /// Excludes other operations on more than a word that must be atomic.
    pub(crate) fn exclusive(&self) -> Exclusive<'_> {
        self.wide.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies bytes in. The range is inside.
    pub(crate) fn write(&self, offset: u64, data: &[u8]) {
        let mut at = offset;
        let mut rest = data;
        while !rest.is_empty() {
            let within = (at & 3) as usize;
            let take = rest.len().min(4 - within);
            let word = self.word(at);
            if take == 4 {
                word.store(u32::from_le_bytes([rest[0], rest[1], rest[2], rest[3]]), Relaxed);
            } else {
                let mut value = [0; 4];
                value[within..within + take].copy_from_slice(&rest[..take]);
                let mask = (u32::MAX >> (32 - 8 * take)) << (8 * within);
                update(word, mask, u32::from_le_bytes(value));
            }
            at += take as u64;
            rest = &rest[take..];
        }
    }

    /// Copies bytes out. The range is inside.
    pub(crate) fn read(&self, offset: u64, data: &mut [u8]) {
        let mut at = offset;
        let mut done = 0;
        while done < data.len() {
            let within = (at & 3) as usize;
            let take = (data.len() - done).min(4 - within);
            let bytes = self.word(at).load(Relaxed).to_le_bytes();
            data[done..done + take].copy_from_slice(&bytes[within..within + take]);
            at += take as u64;
            done += take;
        }
    }
}

/// Changes the bits of `mask`, and no others.
#[inline]
pub(crate) fn update(word: &AtomicU32, mask: u32, value: u32) {
    let mut old = word.load(Relaxed);
    while let Err(now) = word.compare_exchange_weak(old, old & !mask | value & mask, Relaxed, Relaxed) {
        old = now;
    }
}

/// All allocations, by address.
#[derive(Clone, Debug)]
pub(crate) struct GlobalMap {
    /// Where its addresses begin, and how many bytes of address space it has.
    first: u64,
    capacity: u64,
    /// Bytes that may be allocated at once, and that are.
    limit: u64,
    used: u64,
    /// For each page, one more than the index of the allocation that it belongs to.
    pages: Vec<u32>,
    allocations: Vec<Arc<Allocation>>,
    /// Memory of the host: where each piece begins and ends, and the index of its allocation. Pieces that were given
    /// back are among them until their addresses are mapped again. None of them overlap.
    host: BTreeMap<u64, (u64, u32)>,
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

    /// Memory of which that many bytes can be allocated at once. The addresses are those of the part `index` of
    /// `count` equal parts of all.
    pub(crate) fn new(limit: u64, index: u32, count: u32) -> Self {
        let count = u64::from(count.max(1));
        let capacity = (Self::CAPACITY / count) >> PAGE_BITS << PAGE_BITS;
        let first = GLOBAL_WINDOW + u64::from(index).min(count - 1) * capacity;
        let (pages, allocations, host) = (Vec::new(), Vec::new(), BTreeMap::new());
        GlobalMap { first, capacity, limit, used: 0, pages, allocations, host }
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
        let pages = (bytes >> PAGE_BITS) + 1;
        if bytes > self.unused()
            || bytes > self.capacity
            || (self.pages.len() as u64 + pages) << PAGE_BITS > self.capacity
        {
            return None;
        }
        let id = self.allocations.len() as u32;
        let base = self.end();
        // The host's memory may lie in the window, far behind.
        if self.host_overlap(base, base + (pages << PAGE_BITS)).is_some() {
            return None;
        }
        let allocation = Arc::new(Allocation::new(id, base, bytes, kind, name.into())?);
        // There is always room behind the end, so that a step too far is not in the next allocation.
        self.pages.extend(std::iter::repeat_n(id + 1, pages as usize));
        self.allocations.push(allocation.clone());
        self.used += bytes;
        Some(allocation)
    }

    /// Where the addresses end that were given to allocations.
    fn end(&self) -> u64 {
        self.first + ((self.pages.len() as u64) << PAGE_BITS)
    }

    /// Maps memory of the host, where it is for the host.
    pub(crate) fn map_host(
        &mut self,
        words: &'static [AtomicU32],
        bytes: u64,
        name: &str,
    ) -> Result<Arc<Allocation>, Overlap> {
        let id = self.allocations.len() as u32;
        let allocation = Arc::new(Allocation::of_host(id, words, bytes, name.into()));
        let (start, end) = (allocation.base, allocation.base + bytes);
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
        let over: Vec<u64> = self.host_within(start, end).map(|(&start, _)| start).collect();
        for start in over {
            self.host.remove(&start);
        }
        self.host.insert(start, (end, id));
        self.allocations.push(allocation.clone());
        Ok(allocation)
    }

    /// The pieces of the host's memory that have addresses of that range.
    fn host_within(&self, start: u64, end: u64) -> impl Iterator<Item = (&u64, &(u64, u32))> {
        self.host.range(..end).rev().take_while(move |&(_, &(other_end, _))| other_end > start)
    }

    /// The host's memory that is mapped and has addresses of that range.
    fn host_overlap(&self, start: u64, end: u64) -> Option<&Allocation> {
        let mut found = self.host_within(start, end).map(|(_, &(_, id))| &*self.allocations[id as usize]);
        found.find(|allocation| !allocation.freed)
    }

    /// Gives an allocation back. What it was stays known.
    pub(crate) fn free(&mut self, id: u32) {
        if let Some(slot) = self.allocations.get_mut(id as usize)
            && !slot.freed
        {
            if !slot.is_of_host() {
                self.used -= slot.bytes;
            }
            *slot = Arc::new(slot.ghost());
        }
    }

    /// Gives back variables, by their numbers. The heap, which came with the first module that wants one,
    /// stays for others.
    pub(crate) fn free_variables(&mut self, numbers: Range<usize>) {
        for id in numbers {
            if self.allocations[id].kind != AllocationKind::Heap {
                self.free(id as u32);
            }
        }
    }

    /// The allocation whose address space `address` is in. Its end may lie before.
    #[inline(always)]
    pub(crate) fn lookup(&self, address: u64) -> Option<&Allocation> {
        let page = address.wrapping_sub(self.first) >> PAGE_BITS;
        match self.pages.get(page as usize) {
            Some(&index) => Some(&self.allocations[index as usize - 1]),
            None => self.lookup_host(address),
        }
    }

    /// The piece of the host's memory that an address is in.
    #[inline(never)]
    fn lookup_host(&self, address: u64) -> Option<&Allocation> {
        let (_, &(end, id)) = self.host.range(..=address).next_back()?;
        (address < end).then(|| &*self.allocations[id as usize])
    }

    /// The allocation that is nearest to an address that is in none.
    pub(crate) fn nearest(&self, address: u64) -> Option<&Allocation> {
        let distance = |allocation: &&Arc<Allocation>| {
            let end = allocation.base + allocation.bytes;
            if address < allocation.base { allocation.base - address } else { address.saturating_sub(end) }
        };
        // Addresses of the host come back: what is there now comes before what was.
        let rank = |allocation: &&Arc<Allocation>| (distance(allocation), allocation.freed);
        self.allocations.iter().rev().min_by_key(rank).map(|allocation| &**allocation)
    }

    /// The allocation of that number.
    pub(crate) fn get(&self, id: u32) -> Option<&Arc<Allocation>> {
        self.allocations.get(id as usize)
    }

    /// The heap, if there is one.
    pub(crate) fn heap(&self) -> Option<&Heap> {
        self.allocations.iter().find_map(|allocation| allocation.heap.as_ref())
    }

    /// How many there have been.
    pub(crate) fn len(&self) -> usize {
        self.allocations.len()
    }
}
