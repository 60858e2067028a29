//! Proxies: the asynchronous proxy, by which bulk copies and matrix operands access memory, sees what threads wrote only
//! behind a proxy fence; and the tensormap proxy, by which tensor maps are read, only behind two: one that releases, and
//! one that acquires what has been released.
//!
//! Of each word the last write of a thread is remembered, in programs that have bulk copies. What a thread knows has a
//! part that a proxy fence covers ([`Known::fenced`](super::knowledge::Known)): a fence takes all into it that its
//! thread knows, and it travels with knowledge; one that acquires takes what fences that release have covered, and marks
//! the map that it names. An access through the other proxy needs the write to be in that part of what its thread knows.
//! A write that the thread does not know at all is a race, which is found otherwise. What the asynchronous proxy wrote
//! itself needs no fence, nor does what a thread read before it is overwritten: that is how pipelines are built. What a
//! thread wrote needs one before it is overwritten by the letter only: compilers reuse memory without.

use super::entry::lanes;
use super::knowledge::{AGENTS, thread};
use super::{AccessKind, Agent, BlockRaces, LaunchRaces, Mode, ProxyFence, RaceSite, RaceSpace, WarpAccess};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a word, of which the last write is remembered.
const WORD: u64 = 4;
/// Words that are kept together.
const ROW: usize = 32;
/// Parts of global memory that have locks of their own.
const PARTS: usize = 64;

/// The last write of a thread to a word; there is none where the clock is 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Written {
    pub(super) clock: u64,
    pub(super) block: u32,
    pc: u32,
    /// The thread, or an agent of it.
    pub(super) warp: u8,
    pub(super) lane: u8,
    is_atomic: bool,
    /// It is part of a tensor map that somebody has acquired since.
    is_acquired: bool,
}

type Rows = HashMap<u64, [Written; ROW]>;

/// The last writes of threads to memory that several blocks see.
#[derive(Debug)]
pub(super) struct WrittenWords(Box<[Mutex<Rows>; PARTS]>);

impl Default for WrittenWords {
    fn default() -> Self {
        WrittenWords(Box::new(std::array::from_fn(|_| Mutex::default())))
    }
}

impl WrittenWords {
    fn part(&self, row: u64) -> MutexGuard<'_, Rows> {
        self.0[row as usize % PARTS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn clear(&self) {
        (0..PARTS as u64).for_each(|part| self.part(part).clear());
    }
}

/// The words of a range: their rows, and which of each.
fn rows(address: u64, bytes: u32) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
    let (first, end) = (address / WORD, (address + u64::from(bytes)).div_ceil(WORD));
    let row = ROW as u64;
    (first / row..end.div_ceil(row)).map(move |at| {
        let from = first.max(at * row) - at * row;
        let to = end.min((at + 1) * row) - at * row;
        (at, from as usize..to as usize)
    })
}

/// The fences that an access through another proxy needs.
fn needed(kind: AccessKind, space: RaceSpace) -> &'static [ProxyFence] {
    match (kind, space) {
        (AccessKind::MapRead, _) => &[ProxyFence::MapRelease, ProxyFence::MapAcquire],
        (_, RaceSpace::Shared) => &[ProxyFence::AsyncShared],
        (_, RaceSpace::Global) => &[ProxyFence::AsyncGlobal],
    }
}

impl BlockRaces {
    /// Threads write, to memory of the `launch` or to shared memory of the block.
    pub(crate) fn wrote(&mut self, launch: Option<&LaunchRaces>, access: &WarpAccess<'_>) {
        let warp = super::check::acting_warp(access);
        for lane in lanes(access.mask) {
            let written = Written {
                clock: self.clocks.now,
                block: self.clocks.block,
                pc: access.pc,
                warp,
                lane: lane as u8,
                is_atomic: access.kind == AccessKind::Atomic,
                is_acquired: false,
            };
            self.with_words(launch, access.address(lane), access.bytes, |word| *word = written);
        }
    }

    /// A lane acquires a tensor map: what it knows to be released of it.
    pub(crate) fn acquired_map(
        &mut self,
        launch: &LaunchRaces,
        warp: u8,
        lane: u32,
        (address, bytes): (u64, u32),
    ) {
        let mut writes: Vec<Written> = Vec::new();
        self.with_words(Some(launch), address, bytes, |word| {
            if word.clock != 0 && writes.last().is_none_or(|last| !last.is_same(word)) {
                writes.push(*word);
            }
        });
        writes.retain(|written| {
            self.clocks.knows(warp, lane, written)
                && self.clocks.is_fenced(warp, lane, ProxyFence::MapRelease, written)
        });
        self.with_words(Some(launch), address, bytes, |word| {
            word.is_acquired |= writes.iter().any(|written| written.is_same(word));
        });
    }

    /// Another proxy accesses memory for lanes: the fence that is missing behind a write, if there is such a write, the
    /// write, the access that meets it, and where.
    pub(crate) fn accessed_by_proxy(
        &mut self,
        launch: Option<&LaunchRaces>,
        access: &WarpAccess<'_>,
        space: RaceSpace,
    ) -> Option<(ProxyFence, RaceSite, RaceSite, u64)> {
        let writes = access.kind.is_write();
        let only_writes = matches!(access.kind, AccessKind::AsyncWrite(_));
        let mut found = None;
        for lane in lanes(access.mask) {
            let address = access.address(lane);
            let mut others: Vec<Written> = Vec::new();
            self.with_words(launch, address, access.bytes, |word| {
                if word.clock != 0 && others.last().is_none_or(|last| !last.is_same(word)) {
                    others.push(*word);
                }
                if writes {
                    *word = Written::default();
                }
            });
            let clocks = &self.clocks;
            let missing = |written: &Written| {
                let is_looked_for = !only_writes || self.mode == Mode::Strict;
                if !is_looked_for || !clocks.knows(access.warp, lane, written) {
                    return None;
                }
                needed(access.kind, space).iter().copied().find(|&fence| {
                    let is_of_another_map = fence == ProxyFence::MapAcquire && !written.is_acquired;
                    is_of_another_map || !clocks.is_fenced(access.warp, lane, fence, written)
                })
            };
            let meets = |written: &Written| Some((missing(written)?, *written, lane, address));
            found = found.or_else(|| others.iter().find_map(meets));
        }
        let (missing, written, lane, address) = found?;
        let of = u32::from(written.warp % AGENTS) * 32 + u32::from(written.lane);
        let kind = match (written.warp >= AGENTS, written.is_atomic) {
            (true, _) => AccessKind::AsyncWrite(Agent::Copies),
            (_, true) => AccessKind::Atomic,
            _ => AccessKind::Write,
        };
        let first = RaceSite { pc: written.pc, kind, block: written.block, thread: of, bytes: WORD as u32 };
        let thread = u32::from(access.warp) * 32 + lane;
        let (pc, kind, block, bytes) = (access.pc, access.kind, self.clocks.block, access.bytes);
        Some((missing, first, RaceSite { pc, kind, block, thread, bytes }, address))
    }

    fn with_words(
        &mut self,
        launch: Option<&LaunchRaces>,
        address: u64,
        bytes: u32,
        mut each: impl FnMut(&mut Written),
    ) {
        for (row, words) in rows(address, bytes) {
            let mut of =
                |rows: &mut Rows| rows.entry(row).or_default()[words.clone()].iter_mut().for_each(&mut each);
            match launch {
                Some(launch) => of(&mut launch.written.part(row)),
                None => of(&mut self.written),
            }
        }
    }
}

impl Written {
    fn is_same(&self, other: &Written) -> bool {
        (self.clock, self.block, thread(self.warp, self.lane.into()))
            == (other.clock, other.block, thread(other.warp, other.lane.into()))
    }
}

/// What the words of a block's own memory were written by.
pub(super) type OwnWords = Rows;
