//! Accesses to shared memory that need not be compared, because no two threads met.
//!
//! Between two barriers of a block most words of shared memory are read only, or are one thread's own. So for each word
//! there is one number: since which barrier, which thread, and whether it wrote. As long as no thread meets another's
//! write, or writes what another has read, an access is noted, and no more. Atomic operations of words may meet one
//! another. At the next barrier of all threads the notes are thrown away: the threads know of these accesses from then on.
//!
//! When two threads meet, when something else than that barrier changes what threads know, or when an access is neither a
//! plain one of a thread nor such an operation that orders nothing, then the accesses noted so far are recorded in the rows,
//! in their order and with what was known all the time, and those that follow are recorded at once. So the findings are the
//! same.

use super::note::{
    ATOMIC, Claim, DEVICE, LONGEST_NOTE, NEXT_LANE, Noted, THREAD_SHIFT, WARP_SHIFT, WRITE, WROTE, kind,
};
use super::{AccessKind, Scope, Strength, WarpAccess};
use crate::simd::Level;

/// Bits of a word's number above the thread: the number of the barrier.
const INTERVAL: u32 = 1 << 12;

/// In the place of a thread: several have read; any have combined it by atomic operations, and done nothing else.
const SEVERAL: u32 = (1 << 11) - 1;
const COMBINED: u32 = SEVERAL - 1;

/// Words of notes between two barriers, at most: they had better stay in the host's caches.
const MAX_NOTES: usize = 1 << 15;

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
    /// Notes an access of a head, of lanes so far from the first word of these; or says that it must not be noted alone.
    /// `is_line`: it is one of a whole warp, lane by lane.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        allow(dead_code, reason = "nothing is compiled for other processors")
    )]
    #[inline(always)]
    pub(crate) fn enter(
        &mut self,
        access: &WarpAccess<'_>,
        (is_line, offsets): (bool, &[u32; 32]),
        head: u32,
        words: &mut [u32],
        note: &mut [u32],
    ) -> bool {
        let kind = head & (WRITE | ATOMIC | DEVICE);
        let (first, step) = if kind & ATOMIC == 0 { (self.mine, NEXT_LANE) } else { (self.combined, 0) };
        let claim = Claim { past: self.interval, first: first & !WROTE, step, several: self.several };
        let length = match is_line {
            true => claim.enter_line(access, offsets[0], kind, words, note),
            false => claim.enter(access, offsets, kind, words, note),
        };
        self.next = self.next.wrapping_add(length.unwrap_or(0));
        length.is_some()
    }

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
            (AccessKind::Atomic, Strength::Strong { scope, acquire: false, release: false })
                if quiet && (access.bytes, access.element) == (4, 4) =>
            {
                Some(ATOMIC | if scope == Scope::Device { DEVICE } else { 0 })
            }
            _ => kind(access),
        }
    }

    /// Notes an access, or says that it must be recorded after those that have been noted.
    pub(super) fn note(&mut self, access: &WarpAccess<'_>, quiet: bool) -> bool {
        self.has_agents |= access.kind.agent().is_some();
        let Some(kind) = Self::kind(access, quiet).filter(|_| access.base == 0) else { return false };
        if !self.is_open || self.used + LONGEST_NOTE > MAX_NOTES {
            return false;
        }
        let (thread, step) = match kind & ATOMIC {
            0 => (u32::from(access.warp) * 32, NEXT_LANE),
            _ => (COMBINED, 0),
        };
        let claim = Claim {
            past: self.interval,
            first: self.interval | thread << THREAD_SHIFT,
            step,
            several: self.interval | SEVERAL << THREAD_SHIFT,
        };
        self.level.run(
            #[inline(always)]
            || {
                let mut last = 0;
                for (lane, &offset) in access.offsets.iter().enumerate() {
                    last = last.max(u64::from(access.mask >> lane & 1) * offset);
                }
                self.reserve(last as usize + access.bytes as usize);
                let offsets = access.offsets.map(|offset| offset as u32);
                let note = &mut self.notes[self.used..];
                let length = claim.enter(access, &offsets, kind, &mut self.words, note);
                self.used += length.unwrap_or(0);
                length.is_some()
            },
        )
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
        while let Some((noted, rest)) = Noted::read(left) {
            record(&noted.access(0));
            left = rest;
        }
    }
}
