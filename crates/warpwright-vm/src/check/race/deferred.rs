//! Accesses to shared memory that need not be compared, because no two threads met.
//!
//! Between two barriers of a block most words of shared memory are read only, or are one thread's own. So for each word
//! there is one number: since which barrier, which thread, and whether it wrote. As long as no thread meets another's write,
//! or writes what another has read, an access is noted, and no more. At the next barrier of all threads the notes are
//! thrown away: the threads know of these accesses from then on.
//!
//! When two threads meet, when something else than that barrier changes what threads know, or when an access is not a plain
//! one of a thread, then the accesses noted so far are recorded in the rows, in their order and with what was known all the
//! time, and those that follow are recorded at once. So the findings are the same.

use super::access::{Run, RunLanes};
use super::{AccessKind, Strength, WarpAccess};
use crate::simd::Level;

/// Bits of a word's number: whether it was written, then the thread, then the number of the barrier.
const WROTE: u32 = 1;
const THREAD_SHIFT: u32 = 1;
const THREAD: u32 = (1 << 11) - 1;
const INTERVAL: u32 = 1 << 12;

/// In the place of a thread: several have read.
const SEVERAL: u32 = THREAD;

/// Runs of lanes that are noted between two barriers, at most: they had better stay in the host's caches.
const MAX_RUNS: usize = 8192;

/// What is noted of an access, besides its runs.
#[derive(Clone, Copy, Debug)]
struct Noted {
    warp: u8,
    kind: AccessKind,
    mask: u32,
    bytes: u32,
    element: u32,
    pc: u32,
    /// As for the access that is recorded at once.
    number: (u16, u32),
    /// How many runs it has.
    runs: u32,
}

/// The accesses of a block since its last barrier.
#[derive(Debug)]
pub(super) struct Deferred {
    words: Vec<u32>,
    /// The number of the barrier, in its place.
    interval: u32,
    accesses: Vec<Noted>,
    runs: Vec<Run>,
    /// Accesses since the barrier have been noted alone.
    is_open: bool,
    /// Agents have accessed shared memory: barriers say nothing of these.
    has_agents: bool,
    level: Level,
}

impl Deferred {
    pub(super) fn new() -> Deferred {
        Deferred {
            words: Vec::new(),
            interval: 0,
            accesses: Vec::new(),
            runs: Vec::new(),
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
        self.accesses.clear();
        self.runs.clear();
        self.is_open = !self.has_agents;
        self.interval = self.interval.wrapping_add(INTERVAL);
        if self.interval == 0 {
            self.words.fill(0);
            self.interval = INTERVAL;
        }
    }

    /// Notes an access, or says that it must be recorded after those that have been noted.
    pub(super) fn note(&mut self, access: &WarpAccess<'_>, number: (u16, u32)) -> bool {
        self.has_agents |= access.kind.agent().is_some();
        let is_plain = matches!(access.kind, AccessKind::Read | AccessKind::Write)
            && access.strength == Strength::Weak
            && access.base == 0;
        if !self.is_open || !is_plain || self.runs.len() >= MAX_RUNS {
            return false;
        }
        let first = self.runs.len();
        let Deferred { runs, words, interval, level, .. } = self;
        let write = access.kind == AccessKind::Write;
        let met = level.run(
            #[inline(always)]
            || {
                let mut met = false;
                access.runs(
                    #[inline(always)]
                    |run| {
                        runs.push(run);
                        let end = run.address.saturating_add(run.bytes.into()).div_ceil(4) as usize;
                        if words.len() < end {
                            words.resize(end, 0);
                        }
                        let words = &mut words[(run.address / 4) as usize..end];
                        met |= claim(&run, words, *interval, u32::from(access.warp) * 32, write);
                    },
                );
                met
            },
        );
        if met {
            self.runs.truncate(first);
            return false;
        }
        let WarpAccess { warp, kind, mask, bytes, element, pc, .. } = *access;
        let runs = (self.runs.len() - first) as u32;
        self.accesses.push(Noted { warp, kind, mask, bytes, element, pc, number, runs });
        true
    }

    /// Calls `record` with the accesses that have been noted, and their numbers. From now on they are recorded at once.
    pub(super) fn settle(&mut self, mut record: impl FnMut(&WarpAccess<'_>, (u16, u32))) {
        self.is_open = false;
        let mut runs = self.runs.drain(..);
        for noted in self.accesses.drain(..) {
            let Noted { warp, kind, mask, bytes, element, pc, number, runs: count } = noted;
            let mut offsets = [0; 32];
            for run in runs.by_ref().take(count as usize) {
                run.each_lane(|lane, address| offsets[lane as usize] = address);
            }
            let strength = Strength::Weak;
            let offsets = &offsets;
            record(&WarpAccess { warp, mask, base: 0, offsets, bytes, element, pc, kind, strength }, number);
        }
    }
}

/// Enters threads at the words that a run accesses: whether one meets another there, of which one writes.
#[inline(always)]
fn claim(run: &Run, words: &mut [u32], interval: u32, thread: u32, write: bool) -> bool {
    match run.lanes {
        RunLanes::Same(mask) => {
            let several = mask & (mask - 1) != 0;
            let who = if several { SEVERAL } else { thread + mask.trailing_zeros() };
            enter(words, interval, write, |_| who) || several && write
        }
        RunLanes::Ascending { first, shift: shift @ 2.. } => {
            enter(words, interval, write, |at| thread + first + (at as u32 >> (shift - 2)))
        }
        RunLanes::Ascending { first, shift } => {
            let mut met = false;
            for at in 0..run.bytes >> shift {
                let word = (run.address % 4) as u32 + (at << shift);
                let word = std::slice::from_mut(&mut words[word as usize / 4]);
                met |= enter(word, interval, write, |_| thread + first + at);
            }
            met
        }
    }
}

#[inline(always)]
fn enter(words: &mut [u32], interval: u32, write: bool, who: impl Fn(usize) -> u32) -> bool {
    let (wrote, mut met) = (u32::from(write) * WROTE, 0);
    for (at, word) in words.iter_mut().enumerate() {
        let (old, who) = (*word, who(at));
        let is_old = old < interval;
        let is_own = old >> THREAD_SHIFT & THREAD == who;
        met |= u32::from(!is_old & !is_own & (write | (old & WROTE != 0)));
        let kept = if is_own { old | wrote } else { interval | SEVERAL << THREAD_SHIFT };
        *word = if is_old { interval | who << THREAD_SHIFT | wrote } else { kept };
    }
    met != 0
}
