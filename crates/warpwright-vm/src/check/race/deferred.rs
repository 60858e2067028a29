//! Accesses to shared memory that need not be compared, because no two threads met.
//!
//! Between two barriers of a block most words of shared memory are read only, or are one thread's own. So for each word
//! there is one number: since which barrier, which thread, and whether it wrote. As long as no thread meets another's write,
//! or writes what another has read, an access is noted, and no more. Atomic operations of words may meet one another. At the next barrier of all threads the notes are
//! thrown away: the threads know of these accesses from then on.
//!
//! When two threads meet, when something else than that barrier changes what threads know, or when an access is neither a plain
//! one of a thread nor such an operation that orders nothing, then the accesses noted so far are recorded in the rows, in their order and with what was known all the
//! time, and those that follow are recorded at once. So the findings are the same.

use super::access::Half;
use super::entry::lanes;
use super::{AccessKind, Scope, Strength, WarpAccess};
use crate::simd::Level;

/// Bits of a word's number: whether it was written, then the thread, then the number of the barrier.
const WROTE: u32 = 1;
const THREAD_SHIFT: u32 = 1;
const THREAD: u32 = (1 << 11) - 1;
const INTERVAL: u32 = 1 << 12;

/// In the place of a thread: several have read; any have combined it by atomic operations, and done nothing else.
const SEVERAL: u32 = THREAD;
const COMBINED: u32 = THREAD - 1;

/// Words of notes between two barriers, at most: they had better stay in the host's caches.
const MAX_NOTES: usize = 1 << 15;

/// Lanes that are noted together.
const HALF: usize = 16;

/// A note: the instruction, then [`head`], the mask, and where the first lane of each half is. Behind these, where all lanes
/// of a half are that is scattered.
pub(crate) const NOTE: usize = 5;

/// Words of a note, at most.
pub(crate) const LONGEST_NOTE: usize = NOTE + 2 * HALF;

/// How the lanes of a half are said in the head of a note, in two bits for each: all are at one place, or one behind the
/// other. Else they are scattered.
pub(crate) const SAME: u32 = 1;
pub(crate) const ASCENDING: u32 = 2;

/// What kind of access a head says: those that are no reads, and whether an atomic operation is for the whole device.
pub(crate) const READ: u32 = 0;
pub(crate) const WRITE: u32 = 1 << 4;
pub(crate) const ATOMIC: u32 = 1 << 5;
pub(crate) const DEVICE: u32 = 1 << 6;

/// The head of a note, without its halves and the warp.
pub(crate) const fn head(kind: u32, bytes: u32, element: u32) -> u32 {
    kind | bytes << 8 | element << 16
}

/// Where the warp is in the head of a note.
const WARP_SHIFT: u32 = 24;

/// Bytes that a lane accesses, at most, where it is noted.
const MAX_BYTES: u32 = 32;

/// The accesses of a block since its last barrier.
#[derive(Debug)]
pub(super) struct Deferred {
    words: Vec<u32>,
    /// The number of the barrier, in its place.
    interval: u32,
    /// The notes, and how many words of them there are.
    notes: Vec<u32>,
    used: usize,
    /// Accesses since the barrier have been noted alone.
    is_open: bool,
    /// Agents have accessed shared memory: barriers say nothing of these.
    has_agents: bool,
    level: Level,
}

/// What native code needs to note accesses of a warp.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Notes {
    /// The numbers of words.
    pub(crate) words: *mut u32,
    /// Where the next note goes, and where none begins any more.
    pub(crate) next: *mut u32,
    pub(crate) end: *mut u32,
    /// Numbers from this one on are of the present interval.
    pub(crate) interval: u32,
    /// The number of a word that the first lane wrote; of one that several threads have read.
    pub(crate) mine: u32,
    pub(crate) several: u32,
    /// That of one that threads combined; 0 where atomic operations are recorded at once.
    pub(crate) combined: u32,
    /// The warp, as heads have it.
    pub(crate) warp: u32,
}

impl Notes {
    /// There is no room for any.
    pub(crate) const NONE: Notes = Notes {
        words: std::ptr::null_mut(),
        next: std::ptr::null_mut(),
        end: std::ptr::null_mut(),
        interval: 0,
        mine: 0,
        several: 0,
        combined: 0,
        warp: 0,
    };
}

/// The number that the next lane has, less that of a lane.
pub(crate) const NEXT_LANE: u32 = 1 << THREAD_SHIFT;

impl Deferred {
    pub(super) fn new() -> Deferred {
        Deferred {
            words: Vec::new(),
            interval: 0,
            notes: Vec::new(),
            used: 0,
            is_open: false,
            has_agents: false,
            level: Level::detect(),
        }
    }

    /// Another block begins.
    pub(super) fn reset(&mut self) {
        self.has_agents = false;
        self.barrier();
    }

    /// All threads know of all accesses of threads.
    pub(super) fn barrier(&mut self) {
        self.used = 0;
        self.is_open = !self.has_agents;
        self.interval = self.interval.wrapping_add(INTERVAL);
        if self.interval == 0 {
            self.words.fill(0);
            self.interval = INTERVAL;
        }
    }

    /// Makes room for notes of so many bytes of shared memory.
    #[inline]
    fn reserve(&mut self, bytes: usize) {
        if self.notes.is_empty() {
            self.notes.resize(MAX_NOTES, 0);
        }
        let words = bytes.div_ceil(4);
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
    }

    /// The kind of an access that may only be noted. `quiet`: an atomic operation that does not acquire or release orders
    /// nothing.
    fn kind(access: &WarpAccess<'_>, quiet: bool) -> Option<u32> {
        match (access.kind, access.strength) {
            (AccessKind::Read, Strength::Weak) => Some(READ),
            (AccessKind::Write, Strength::Weak) => Some(WRITE),
            (AccessKind::Atomic, Strength::Strong { scope, acquire: false, release: false })
                if quiet && (access.bytes, access.element) == (4, 4) =>
            {
                Some(ATOMIC | if scope == Scope::Device { DEVICE } else { 0 })
            }
            _ => None,
        }
    }

    /// Notes an access, or says that it must be recorded after those that have been noted.
    pub(super) fn note(&mut self, access: &WarpAccess<'_>, quiet: bool) -> bool {
        self.has_agents |= access.kind.agent().is_some();
        let can_be = access.base == 0 && (1..=MAX_BYTES).contains(&access.bytes);
        let Some(kind) = Self::kind(access, quiet).filter(|_| can_be) else { return false };
        if !self.is_open || self.used + LONGEST_NOTE > MAX_NOTES {
            return false;
        }
        let last = self.level.run(
            #[inline(always)]
            || {
                let mut last = 0;
                for (lane, &offset) in access.offsets.iter().enumerate() {
                    last = last.max(u64::from(access.mask >> lane & 1) * offset);
                }
                last
            },
        );
        self.reserve(last as usize + access.bytes as usize);
        let write = kind != READ;
        let is_atomic = kind & ATOMIC != 0;
        let Deferred { words, interval, level, notes, used, .. } = self;
        let claim = Claim { interval: *interval, wrote: u32::from(write) * WROTE };
        let thread = u32::from(access.warp) * 32;
        let (head_words, rest) = notes[*used..].split_at_mut(NOTE);
        let mut rest = rest.chunks_exact_mut(HALF);
        let (mut met, mut scattered, mut halves) = (false, 0, 0);
        level.run(
            #[inline(always)]
            || {
                for half in 0..2 {
                    let first = half * HALF;
                    let is_whole = access.mask >> first & 0xffff == 0xffff;
                    let start = access.offsets[first];
                    let of_half = match is_whole && access.bytes.is_power_of_two() && !is_atomic {
                        true => access.half(first),
                        false => Half::Other,
                    };
                    head_words[3 + half] = start as u32;
                    let shift = access.bytes.trailing_zeros();
                    let at = start as usize / 4;
                    match of_half {
                        Half::Same => {
                            let end = (start as usize + access.bytes as usize).div_ceil(4);
                            met |= write | claim.words(&mut words[at..end], |_| SEVERAL);
                            halves |= SAME << (2 * half);
                        }
                        Half::Ascending if shift >= 2 => {
                            let words = &mut words[at..][..HALF << (shift - 2)];
                            met |=
                                claim.words(words, |at| thread + first as u32 + (at as u32 >> (shift - 2)));
                            halves |= ASCENDING << (2 * half);
                        }
                        _ => {
                            for lane in lanes(access.mask & 0xffff << first) {
                                let offset = access.offsets[lane as usize] as usize;
                                let end = (offset + access.bytes as usize).div_ceil(4);
                                let who = if is_atomic { COMBINED } else { thread + lane };
                                met |= claim.words(&mut words[offset / 4..end], |_| who);
                            }
                            if let Some(rest) = rest.next() {
                                let offsets = &access.offsets[first..][..HALF];
                                rest.iter_mut().zip(offsets).for_each(|(to, &offset)| *to = offset as u32);
                            }
                            scattered += 1;
                        }
                    }
                }
            },
        );
        if met {
            return false;
        }
        head_words[0] = access.pc;
        head_words[1] =
            head(kind, access.bytes, access.element) | halves | u32::from(access.warp) << WARP_SHIFT;
        head_words[2] = access.mask;
        *used += NOTE + scattered * HALF;
        true
    }

    /// What native code needs to note accesses of a warp to so many bytes of shared memory; `quiet` as above.
    pub(super) fn notes(&mut self, warp: u8, bytes: u64, quiet: bool) -> Notes {
        if !self.is_open {
            return Notes::NONE;
        }
        self.reserve(bytes as usize);
        let end = MAX_NOTES - LONGEST_NOTE;
        let interval = self.interval;
        let range = self.notes.as_mut_ptr_range();
        Notes {
            words: self.words.as_mut_ptr(),
            next: range.start.wrapping_add(self.used),
            end: range.start.wrapping_add(end),
            interval,
            mine: interval | (u32::from(warp) * 32) << THREAD_SHIFT | WROTE,
            several: interval | SEVERAL << THREAD_SHIFT,
            combined: if quiet { interval | COMBINED << THREAD_SHIFT | WROTE } else { 0 },
            warp: u32::from(warp) << WARP_SHIFT,
        }
    }

    /// Native code has made notes, up to the next one.
    pub(super) fn noted(&mut self, notes: &Notes) {
        if self.is_open && !notes.next.is_null() {
            self.used = (notes.next as usize - self.notes.as_ptr() as usize) / size_of::<u32>();
        }
    }

    /// Calls `record` with the accesses that have been noted. From now on they are recorded at once.
    pub(super) fn settle(&mut self, mut record: impl FnMut(&WarpAccess<'_>)) {
        self.is_open = false;
        let mut left = &self.notes[..std::mem::take(&mut self.used)];
        while let Some((&[pc, head, mask, low, high], rest)) = left.split_first_chunk::<NOTE>() {
            left = rest;
            let (bytes, element) = (head >> 8 & 0xff, head >> 16 & 0xff);
            let mut offsets = [0; 32];
            for (half, start) in [low, high].into_iter().enumerate() {
                let offsets = &mut offsets[half * HALF..][..HALF];
                let step = match head >> (2 * half) & 3 {
                    SAME => 0,
                    ASCENDING => bytes,
                    _ => {
                        let (scattered, rest) = left.split_at(HALF);
                        left = rest;
                        // What is said of lanes that took no part is of no meaning, and must not differ.
                        for lane in lanes(mask >> (half * HALF) & 0xffff) {
                            offsets[lane as usize] = scattered[lane as usize].into();
                        }
                        continue;
                    }
                };
                (0..).zip(offsets).for_each(|(lane, to)| *to = (start + lane * step).into());
            }
            let scope = if head & DEVICE != 0 { Scope::Device } else { Scope::Block };
            let (kind, strength) = match head & (WRITE | ATOMIC) {
                READ => (AccessKind::Read, Strength::Weak),
                WRITE => (AccessKind::Write, Strength::Weak),
                _ => (AccessKind::Atomic, Strength::relaxed(scope)),
            };
            let warp = (head >> WARP_SHIFT) as u8;
            record(&WarpAccess {
                warp,
                mask,
                base: 0,
                offsets: &offsets,
                bytes,
                element,
                pc,
                kind,
                strength,
            });
        }
    }
}

/// An access that threads claim words for.
#[derive(Clone, Copy)]
struct Claim {
    interval: u32,
    wrote: u32,
}

impl Claim {
    /// Enters threads at the words that they access: whether one meets another there, of which one writes.
    #[inline(always)]
    fn words(self, words: &mut [u32], who: impl Fn(usize) -> u32) -> bool {
        let Claim { interval, wrote } = self;
        let mut met = 0;
        for (at, word) in words.iter_mut().enumerate() {
            let (old, who) = (*word, who(at));
            let is_old = old < interval;
            let is_own = old >> THREAD_SHIFT & THREAD == who;
            met |= u32::from(!is_old & !is_own & ((wrote | old) & WROTE != 0));
            let kept = if is_own { old | wrote } else { interval | SEVERAL << THREAD_SHIFT };
            *word = if is_old { interval | who << THREAD_SHIFT | wrote } else { kept };
        }
        met != 0
    }
}
