//! Allocations of global memory.
//!
//! Several host threads may access an allocation at once, and a kernel with a race does. So memory consists of atomic
//! words of four bytes that are read and written with relaxed ordering: a race affects the kernel, never the host.
//! Accesses wider than a word take locks where the kernel requires atomicity; narrower accesses change their word by
//! compare-and-swap.

use super::{Heap, Object, PageAccess, Pages};
use crate::check::SharedInitBits;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// What an allocation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// An array, which only textures and surfaces reach.
    Array,
    /// A handle of a texture or surface: it has no bytes.
    Handle,
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
    /// Its name in reports: the variable's name, or the one given by the host.
    pub(crate) name: String,
    /// It was given back: nothing may touch it.
    pub(crate) freed: bool,
    /// The host has the memory: it takes none of the device's, and none of its addresses.
    pub(super) of_host: bool,
    /// The parts that may be accessed, where that is not the whole.
    pub(super) parts: Option<Parts>,
    /// What a handle, or a variable of a texture or surface, stands for.
    object: RwLock<Option<Arc<Object>>>,
    words: Words,
    /// Held while something wider than a word changes atomically.
    wide: Mutex<()>,
    /// Which bytes were written since it was allocated.
    pub(crate) written: SharedInitBits,
}

/// Parts of an allocation that may be accessed.
#[derive(Debug)]
pub(super) enum Parts {
    /// What `malloc` has given of a heap.
    Heap(Heap),
    /// What the host has mapped in address space that it reserved.
    Pages(Pages),
}

impl Parts {
    /// The part that holds an address: where it begins, and its size.
    pub(super) fn find(&self, address: u64) -> Option<(u64, u64)> {
        match self {
            Parts::Heap(heap) => heap.find(address),
            Parts::Pages(pages) => pages.find(address),
        }
    }
}

/// Host memory that devices can map: words, with their owner.
///
/// A device holds it from [`Device::map_host`](crate::Device::map_host) on until the mapping is dropped and no
/// running launch may know it. `as_ref` must return the same words each time.
pub type HostWords = dyn AsRef<[AtomicU32]> + Send + Sync;

/// Where an allocation has its words.
struct Words {
    /// Its own words: none for host memory, so a missing word here means that the host's owner is asked for it.
    own: Box<[AtomicU32]>,
    host: Option<Arc<HostWords>>,
}

impl Words {
    fn own(own: Box<[AtomicU32]>) -> Self {
        Words { own, host: None }
    }

    /// All of them.
    fn all(&self) -> &[AtomicU32] {
        match &self.host {
            Some(host) => (**host).as_ref(),
            None => &self.own,
        }
    }

    /// A number of words, starting at an index.
    #[inline(always)]
    fn run(&self, first: usize, count: usize) -> &[AtomicU32] {
        match self.own.get(first..first.wrapping_add(count)) {
            Some(words) => words,
            None => self.run_of_host(first, count),
        }
    }

    /// One of them.
    #[inline(always)]
    fn one(&self, at: usize) -> &AtomicU32 {
        match self.own.get(at) {
            Some(word) => word,
            None => &self.run_of_host(at, 1)[0],
        }
    }

    #[cold]
    #[inline(never)]
    fn run_of_host(&self, first: usize, count: usize) -> &[AtomicU32] {
        &self.all()[first..][..count]
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} words", self.all().len())
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
    pub(super) fn new(id: u32, base: u64, bytes: u64, kind: AllocationKind, name: String) -> Option<Self> {
        let parts = (kind == AllocationKind::Heap).then(|| Parts::Heap(Heap::new(base, bytes)));
        let words = Words::own(zeros(words_of_bytes(bytes))?);
        // Variables without an initialiser are zero.
        let written = match kind {
            AllocationKind::Buffer | AllocationKind::Heap | AllocationKind::Array => {
                SharedInitBits::new(bytes)
            }
            AllocationKind::Mapped
            | AllocationKind::Variable
            | AllocationKind::Constant
            | AllocationKind::Handle => SharedInitBits::written(),
        };
        let (freed, of_host, wide) = (false, false, Mutex::new(()));
        let object = RwLock::default();
        Some(Allocation { id, base, bytes, kind, name, freed, of_host, parts, object, words, wide, written })
    }

    /// Memory that the host has: it is where it is for the host.
    pub(super) fn at_host(id: u32, host: Arc<HostWords>, bytes: u64, name: String) -> Self {
        Allocation {
            id,
            base: (*host).as_ref().as_ptr().addr() as u64,
            bytes,
            kind: AllocationKind::Mapped,
            name,
            freed: false,
            of_host: true,
            parts: None,
            object: RwLock::default(),
            words: Words { own: Box::default(), host: Some(host) },
            wide: Mutex::new(()),
            written: SharedInitBits::written(),
        }
    }

    /// Memory that the host has and leaves to the device, as if that had allocated it: nothing is written yet.
    pub(super) fn lent(id: u32, host: Arc<HostWords>, bytes: u64, name: String) -> Self {
        let written = SharedInitBits::new(bytes);
        Allocation { kind: AllocationKind::Buffer, written, ..Allocation::at_host(id, host, bytes, name) }
    }

    /// Address space that the host has reserved, all of it without memory yet. The words are those that the addresses
    /// stand for.
    pub(super) fn reserved(id: u32, base: u64, words: Arc<HostWords>, bytes: u64, name: String) -> Self {
        Allocation {
            base,
            kind: AllocationKind::Buffer,
            parts: Some(Parts::Pages(Pages::default())),
            ..Allocation::at_host(id, words, bytes, name)
        }
    }

    /// The same place after it was given back.
    pub(super) fn ghost(&self) -> Self {
        Allocation {
            id: self.id,
            base: self.base,
            bytes: self.bytes,
            kind: self.kind,
            name: self.name.clone(),
            freed: true,
            of_host: self.of_host,
            parts: None,
            object: RwLock::default(),
            words: Words::own(Box::default()),
            wide: Mutex::new(()),
            written: SharedInitBits::written(),
        }
    }

    /// Its words, if nobody else has a part in them and all of them may be accessed.
    pub(crate) fn own_words(&self) -> Option<&[AtomicU32]> {
        let is_plain = self.parts.is_none() && self.words.host.is_none() && !self.is_mapped();
        is_plain.then_some(&self.words.own)
    }

    /// Whether kernels may change what is at an address of it.
    #[inline(always)]
    pub(crate) fn is_writable(&self, address: u64) -> bool {
        match &self.parts {
            Some(Parts::Pages(pages)) => pages.access(address) == PageAccess::ReadWrite,
            _ => self.kind != AllocationKind::Constant,
        }
    }

    /// The heap that it is.
    pub(crate) fn heap(&self) -> Option<&Heap> {
        match &self.parts {
            Some(Parts::Heap(heap)) => Some(heap),
            _ => None,
        }
    }

    /// What is mapped in it, if it is reserved address space.
    pub(crate) fn pages(&self) -> Option<&Pages> {
        match &self.parts {
            Some(Parts::Pages(pages)) => Some(pages),
            _ => None,
        }
    }

    /// Whether loads and stores reach it.
    #[inline(always)]
    pub(crate) fn is_addressable(&self) -> bool {
        self.kind < AllocationKind::Array
    }

    /// The texture or surface that it is a handle or a variable of.
    pub(crate) fn object(&self) -> Option<Arc<Object>> {
        self.object.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets what it stands for.
    pub(crate) fn bind(&self, object: Option<Object>) {
        *self.object.write().unwrap_or_else(PoisonError::into_inner) = object.map(Arc::new);
    }

    /// The word at a byte offset from the start (rounded down to a word).
    #[inline(always)]
    pub(crate) fn word(&self, offset: u64) -> &AtomicU32 {
        self.words.one((offset >> 2) as usize)
    }

    /// All words.
    pub(crate) fn words(&self) -> &[AtomicU32] {
        self.words.all()
    }

    /// A number of words, starting at a byte offset.
    #[inline(always)]
    pub(crate) fn run(&self, offset: u64, words: usize) -> &[AtomicU32] {
        self.words.run((offset >> 2) as usize, words)
    }

    /// Whether it may change, or be looked at, from outside while a kernel runs.
    #[inline(always)]
    pub(crate) fn is_mapped(&self) -> bool {
        self.kind == AllocationKind::Mapped
    }

    /// Whether the host has the memory, which other devices may have too.
    pub(crate) fn is_of_host(&self) -> bool {
        self.of_host
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
