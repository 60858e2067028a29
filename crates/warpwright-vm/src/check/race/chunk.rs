//! Chunks of global memory. Accesses to a chunk are only noted, as long as no two threads of the launch meet at a word of
//! it, of which one writes: most kernels read what nobody writes, and write what nobody else touches. Then nothing is
//! compared.
//!
//! When two threads meet, when an access is not a weak one of a thread, or when its block has learned from others, then what
//! has been noted is recorded in the chunk's rows, in its order, and what follows is recorded at once. A note knows the time
//! of its block, and up to when all threads of the block knew all that the block did. Where threads knew more, a row keeps
//! more than it must; nothing is lost.
//!
//! Notes are recorded, too, when there are many. Then rows that so many blocks have read that more readers add nothing
//! ([`List`](super::list::List)) are read without a note from there on.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::access::Piece;
use super::check::{Check, entry};
use super::clock::Clocks;
use super::entry::ROW_BYTES;
use super::note::{Claim, LONGEST_NOTE, NEXT_LANE, NON_COHERENT, Noted, READ, THREAD_SHIFT};
use super::row::Row;
use super::{Chance, Mode, RaceSpace, Unknown, WarpAccess};

/// Rows of a chunk of global memory, which share a lock.
pub(super) const CHUNK_ROWS: u64 = 64;
pub(super) const CHUNK_BYTES: u64 = CHUNK_ROWS * ROW_BYTES;
const WORDS: usize = (CHUNK_BYTES / 4) as usize;

pub(super) type Rows = [Row; CHUNK_ROWS as usize];

/// Words before a note: the block, its clock, and the floor of what its threads know.
const CONTEXT: usize = 3;

/// Words of notes of a chunk at first, and at most: few in tests, so that what is done about many is tested.
const FIRST_NOTES: usize = if cfg!(test) { 1 << 6 } else { 1 << 10 };
const MAX_NOTES: usize = FIRST_NOTES << if cfg!(test) { 1 } else { 3 };

/// In the place of a thread: several have read.
const SEVERAL: u32 = u32::MAX >> THREAD_SHIFT;

/// Neighbouring rows of global memory.
#[derive(Debug)]
pub(super) struct Chunk {
    contents: Mutex<Contents>,
}

impl Chunk {
    pub(super) fn new(number: u64, non_coherent: bool) -> Chunk {
        let contents = Contents {
            base: number * CHUNK_BYTES,
            is_open: true,
            non_coherent,
            words: Vec::new(),
            notes: Vec::new(),
            used: 0,
            crowded: [0; 2],
            rows: None,
            chance: Chance::default(),
        };
        Chunk { contents: Mutex::new(contents) }
    }

    #[inline(always)]
    pub(super) fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is kept of a chunk.
#[derive(Debug)]
pub(super) struct Contents {
    /// Its first address.
    base: u64,
    /// Accesses are noted.
    is_open: bool,
    /// The launch has reads that are not coherent, for which writes are marked.
    non_coherent: bool,
    /// The numbers of words.
    words: Vec<u32>,
    /// The notes, and how many words of them there are.
    notes: Vec<u32>,
    used: usize,
    /// The rows of which more readers need no note, those that are coherent and those that are not.
    crowded: [u64; 2],
    /// What was recorded.
    rows: Option<Box<Rows>>,
    chance: Chance,
}

impl Contents {
    /// The rows, into which accesses are recorded from now on.
    pub(super) fn rows(&mut self) -> &mut Rows {
        if self.is_open {
            self.record();
            self.is_open = false;
            (self.words, self.notes) = Default::default();
        }
        self.rows.get_or_insert_with(new_rows)
    }

    /// Notes an access of lanes so far from the first byte, or says that it must be recorded. `is_line`: it is one of a whole
    /// warp whose lanes are one behind the other, with at least four bytes each.
    #[inline(always)]
    pub(super) fn note(
        &mut self,
        access: &WarpAccess<'_>,
        (is_line, offsets): (bool, &[u32; 32]),
        kind: u32,
        noter: &Noter,
    ) -> bool {
        if !self.is_open {
            return false;
        }
        if self.is_crowded(access, (is_line, offsets), kind) {
            return true;
        }
        if self.used + CONTEXT + LONGEST_NOTE > self.notes.len() {
            self.make_room();
        }
        let (context, note) = self.notes[self.used..].split_at_mut(CONTEXT);
        context.copy_from_slice(&noter.context);
        let claim = noter.claim(kind);
        let length = match is_line {
            true => claim.enter_line(access, offsets[0], kind, &mut self.words, note),
            false => claim.enter(access, offsets, kind, &mut self.words, note),
        };
        match length {
            Some(length) => self.used += CONTEXT + length,
            None => {
                self.rows();
            }
        }
        self.is_open
    }

    /// Whether a read needs no note.
    #[inline(always)]
    fn is_crowded(&self, access: &WarpAccess<'_>, (is_line, offsets): (bool, &[u32; 32]), kind: u32) -> bool {
        let crowded = match kind {
            READ => self.crowded[0],
            NON_COHERENT => self.crowded[1],
            _ => 0,
        };
        if crowded == 0 {
            return false;
        }
        const ROW: u32 = ROW_BYTES as u32;
        let mut rows = 0;
        if is_line {
            let count = (offsets[0] % ROW + 32 * access.bytes).div_ceil(ROW);
            rows = ((1 << count) - 1) << (offsets[0] / ROW);
        } else {
            for (lane, &offset) in offsets.iter().enumerate() {
                rows |= u64::from(access.mask >> lane & 1) << (offset / ROW % CHUNK_ROWS as u32);
            }
        }
        rows & !crowded == 0
    }

    #[cold]
    fn make_room(&mut self) {
        self.words.resize(WORDS, 0);
        let more = FIRST_NOTES.max(2 * self.notes.len());
        if more <= MAX_NOTES {
            self.notes.resize(more, 0);
            return;
        }
        self.record();
        let Some(rows) = &self.rows else { return };
        for (at, row) in rows.iter().enumerate() {
            let (crowded, marked) = row.is_crowded();
            self.crowded[0] |= u64::from(crowded) << at;
            self.crowded[1] |= u64::from(crowded && marked) << at;
        }
    }

    /// Records what has been noted.
    fn record(&mut self) {
        if self.used == 0 {
            return;
        }
        let rows = self.rows.get_or_insert_with(new_rows);
        let (mut clocks, mut pieces) = (Clocks::of_notes(), Vec::new());
        let mut left = &self.notes[..std::mem::take(&mut self.used)];
        while let Some((&[block, now, floor], rest)) = left.split_first_chunk::<CONTEXT>() {
            let Some((noted, rest)) = Noted::read(rest) else { break };
            left = rest;
            clocks.set(block, now.into(), floor.into());
            let access = noted.access(self.base);
            // Nobody met anybody.
            let mut race = |race| debug_assert!(false, "nobody was there: {race:?}");
            let number = (0, self.chance.next());
            Check::new(Mode::Normal, RaceSpace::Global, &access, &clocks, number, &Unknown, &mut race)
                .of_rows(&mut **rows, &mut pieces);
            if self.non_coherent && (access.kind.is_write() || noted.is_non_coherent()) {
                let entry = entry(&access, &clocks, clocks.now, 0);
                access.runs(|run| {
                    run.pieces(|Piece { row, bytes, lanes }| {
                        let row = &mut rows[(row % CHUNK_ROWS) as usize];
                        row.marks().meet(&entry.with(bytes, lanes), true);
                    });
                });
            }
        }
    }
}

fn new_rows() -> Box<Rows> {
    let rows: Vec<Row> = (0..CHUNK_ROWS).map(|_| Row::default()).collect();
    match rows.into_boxed_slice().try_into() {
        Ok(rows) => rows,
        Err(_) => Box::new(std::array::from_fn(|_| Row::default())),
    }
}

/// Who notes accesses: a warp of a block at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noter {
    context: [u32; CONTEXT],
    /// The number of the first lane.
    first: u32,
}

impl Noter {
    /// A warp of a block of so many threads. None where that has no number, and where the block has learned from others.
    #[inline]
    pub(super) fn new(clocks: &Clocks, threads: u32, warp: u8) -> Option<Noter> {
        let thread = u64::from(clocks.block) * u64::from(threads.next_multiple_of(32)) + u64::from(warp) * 32;
        // The number 0 says that nobody was there.
        let thread = u32::try_from(thread + 1).ok().filter(|thread| thread + 32 < SEVERAL)?;
        let now = u32::try_from(clocks.now).ok().filter(|_| !clocks.knows_others())?;
        let context = [clocks.block, now, clocks.settled() as u32];
        Some(Noter { context, first: thread << THREAD_SHIFT })
    }

    /// What it claims by an access of a kind.
    #[inline(always)]
    fn claim(&self, kind: u32) -> Claim {
        let several = SEVERAL << THREAD_SHIFT;
        // What is read without coherence nobody may write, whoever reads it.
        let (first, step) = if kind & NON_COHERENT == 0 { (self.first, NEXT_LANE) } else { (several, 0) };
        Claim { past: 1, first, step, several }
    }
}

/// The part of an access that is in a chunk, and may be noted: offsets from its first byte on, and which of the lanes.
#[inline(always)]
pub(super) fn part(access: &WarpAccess<'_>, base: u64, mask: u32) -> ([u32; 32], u32) {
    let (base, mut lanes) = (access.base.wrapping_sub(base), 0);
    let last = CHUNK_BYTES.saturating_sub(access.bytes.into());
    let mut offsets = [0; 32];
    for (lane, (to, &offset)) in offsets.iter_mut().zip(access.offsets).enumerate() {
        let offset = offset.wrapping_add(base);
        *to = offset as u32;
        lanes |= u32::from(offset <= last) << lane;
    }
    (offsets, lanes & mask)
}
