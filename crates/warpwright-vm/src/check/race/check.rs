//! Processes one access: splits it into parts and compares these with the rows.

use super::access::{Piece, Spot};
use super::chunk::{CHUNK_ROWS, Rows};
use super::clock::Clocks;
use super::entry::{Entry, ROW_BYTES, Stamp, lanes};
use super::knowledge::{AGENTS, agent};
use super::order::{Meeting, View};
use super::row::Row;
use super::shadow::{ChunkCache, GlobalRows, SharedRows};
use super::{AccessKind, Mode, Race, RaceSite, RaceSpace, Stored, Strength, WarpAccess};

/// One access under way.
pub(super) struct Check<'a, 'b> {
    mode: Mode,
    space: RaceSpace,
    access: &'a WarpAccess<'b>,
    /// What its entries have in common.
    entry: Entry,
    view: View<'a>,
    stored: &'a dyn Stored,
    race: &'a mut dyn FnMut(Race),
}

/// Rows by their numbers.
pub(super) trait RowsBy {
    fn row(&mut self, number: u64) -> &mut Row;
}

impl RowsBy for SharedRows {
    #[inline]
    fn row(&mut self, number: u64) -> &mut Row {
        self.at(number)
    }
}

impl RowsBy for Rows {
    #[inline]
    fn row(&mut self, number: u64) -> &mut Row {
        &mut self[(number % CHUNK_ROWS) as usize]
    }
}

impl<'a, 'b> Check<'a, 'b> {
    pub(super) fn new(
        mode: Mode,
        space: RaceSpace,
        access: &'a WarpAccess<'b>,
        clocks: &'a Clocks,
        (serial, chance): (u16, u32),
        stored: &'a dyn Stored,
        race: &'a mut dyn FnMut(Race),
    ) -> Self {
        let view = View::new(access.warp, clocks, space == RaceSpace::Shared, chance);
        Check { mode, space, access, entry: entry(access, clocks, clocks.now, serial), view, stored, race }
    }

    /// The access is to shared memory, or to one chunk.
    pub(super) fn of_rows(&mut self, rows: &mut impl RowsBy, pieces: &mut Vec<Piece>) {
        let access = self.access;
        let mut left = access.mask;
        if access.is_scattered() {
            for lane in lanes(access.mask) {
                let address = access.address(lane);
                if self.add(address, lane, rows.row(address / ROW_BYTES)) {
                    left &= !(1 << lane);
                }
            }
        }
        self.take_apart(left, pieces);
        for piece in &*pieces {
            self.piece(piece, rows.row(piece.row));
        }
    }

    /// The access is to global memory. Returns whether all of it is in pieces.
    pub(super) fn global(
        &mut self,
        rows: &GlobalRows,
        chunks: &mut ChunkCache,
        pieces: &mut Vec<Piece>,
    ) -> bool {
        let access = self.access;
        let mut left = access.mask;
        if access.is_scattered() {
            let chunk = |lanes: u32| access.address(lanes.trailing_zeros()) / (ROW_BYTES * CHUNK_ROWS);
            let mut todo = access.mask;
            while todo != 0 {
                let number = chunk(todo);
                chunks.with_rows(rows, number, |rows| {
                    while todo != 0 && chunk(todo) == number {
                        let lane = todo.trailing_zeros();
                        let address = access.address(lane);
                        if self.add(address, lane, &mut rows[(address / ROW_BYTES % CHUNK_ROWS) as usize]) {
                            left &= !(1 << lane);
                        }
                        todo &= todo - 1;
                    }
                });
            }
        }
        self.take_apart(left, pieces);
        for pieces in pieces.chunk_by(|a, b| a.row / CHUNK_ROWS == b.row / CHUNK_ROWS) {
            chunks.with_rows(rows, pieces[0].row / CHUNK_ROWS, |rows| {
                for piece in pieces {
                    self.piece(piece, &mut rows[(piece.row % CHUNK_ROWS) as usize]);
                }
            });
        }
        left == access.mask
    }

    /// A lane of a scattered access: whether nothing more has to be done about it.
    #[inline(always)]
    fn add(&self, address: u64, lane: u32, row: &mut Row) -> bool {
        Spot::new(address, self.access.bytes, 1 << lane)
            .is_some_and(|spot| row.add(&self.entry, &spot, &self.view))
    }

    /// Takes the access of some lanes apart.
    #[inline]
    fn take_apart(&mut self, mask: u32, pieces: &mut Vec<Piece>) {
        pieces.clear();
        if mask == 0 {
            return;
        }
        let access = WarpAccess { mask, ..*self.access };
        let stores = matches!(access.kind, AccessKind::Write | AccessKind::AsyncWrite(_))
            && access.strength == Strength::Weak;
        access.runs(|run| {
            if stores && let Some(lanes) = run.colliding() {
                self.collided(run.address, lanes);
            }
            run.pieces(|piece| pieces.push(piece));
        });
    }

    #[inline]
    fn piece(&mut self, piece: &Piece, row: &mut Row) {
        let new = self.entry.with(piece.bytes, piece.lanes);
        let Check { mode, space, access, view, stored, race, .. } = self;
        // Earlier accesses of which it is known that both store the same.
        let mut same = None;
        let mut found = |old: &Entry, meeting: Meeting| {
            let sides = Sides { mode: *mode, space: *space, access, stored: *stored };
            let (settled, found) = sides.found(piece.row, old, &new, meeting, &mut same);
            if let Some(found) = found {
                race(found);
            }
            settled
        };
        row.access(&new, view, &mut found);
    }

    /// Several lanes store to the same bytes with one instruction.
    #[cold]
    fn collided(&mut self, address: u64, mask: u32) {
        let first = mask.trailing_zeros();
        let all = self.access.bytes;
        let different =
            lanes(mask & (mask - 1)).find(|&lane| !self.stored.is_equal((first, 0), (lane, 0), all));
        if different.is_none() && self.mode == Mode::Normal {
            return;
        }
        let second = different.unwrap_or(31 - mask.leading_zeros());
        let race = Race {
            space: self.space,
            address,
            first: site(&self.entry, self.entry.warp(), first),
            second: site(&self.entry, self.entry.warp(), second),
            same_value: different.is_none(),
        };
        (self.race)(race);
    }
}

/// What the entries of an access have in common.
pub(super) fn entry(access: &WarpAccess<'_>, clocks: &Clocks, clock: u64, serial: u16) -> Entry {
    let stamp = Stamp {
        block: clocks.block,
        clock,
        pc: access.pc,
        warp: acting_warp(access),
        write: access.kind.is_write(),
        atomic: matches!(access.kind, AccessKind::Atomic | AccessKind::Swap | AccessKind::AsyncAtomic(_)),
        strong: access.strength.scope(),
        element: access.element,
        serial,
    };
    stamp.entry()
}

/// The warp of a thread, or of the agent that acts for it.
pub(super) fn acting_warp(access: &WarpAccess<'_>) -> u8 {
    access.kind.agent().map_or(access.warp, |of| agent(access.warp, of))
}

pub(super) fn site(entry: &Entry, warp: u8, lane: u32) -> RaceSite {
    let kind = match (entry.agent(), entry.is_write(), entry.is_atomic()) {
        (Some(agent), _, true) => AccessKind::AsyncAtomic(agent),
        (Some(agent), true, _) => AccessKind::AsyncWrite(agent),
        (Some(agent), false, _) => AccessKind::AsyncRead(agent),
        (None, _, true) => AccessKind::Atomic,
        (None, true, _) => AccessKind::Write,
        (None, false, _) => AccessKind::Read,
    };
    let warp = u32::from(warp % AGENTS);
    RaceSite { pc: entry.pc, kind, block: entry.block, thread: warp * 32 + lane, bytes: entry.element() }
}

/// What tells how bad a race is.
struct Sides<'a, 'b> {
    mode: Mode,
    space: RaceSpace,
    access: &'a WarpAccess<'b>,
    stored: &'a dyn Stored,
}

impl Sides<'_, '_> {
    /// Two accesses meet that nothing orders. Says whether that settles it: where the two store the same, they
    /// may store something else elsewhere. `same` is the last one of which that was said already.
    #[cold]
    fn found(
        &self,
        row: u64,
        old: &Entry,
        new: &Entry,
        meeting: Meeting,
        same: &mut Option<(u32, u8, u32)>,
    ) -> (bool, Option<Race>) {
        let Meeting { warp, before, lane, byte, bytes } = meeting;
        let address = row * ROW_BYTES + u64::from(byte);
        let stores = matches!(self.access.kind, AccessKind::Write | AccessKind::AsyncWrite(_));
        let weak_stores = stores && old.is_write() && !old.is_atomic();
        let from = |lane: u32| address.wrapping_sub(self.access.address(lane)) as u32;
        let same_value = weak_stores
            && if old.is_same_execution(new) {
                self.stored.is_equal((before, from(before)), (lane, from(lane)), bytes)
            } else {
                self.stored.is_in_memory(lane, from(lane), bytes)
            };
        if same_value {
            let who = (old.block, warp, old.pc);
            if self.mode == Mode::Normal || same.replace(who) == Some(who) {
                return (false, None);
            }
        }
        let race = Race {
            space: self.space,
            address,
            first: site(old, warp, before),
            second: site(new, new.warp(), lane),
            same_value,
        };
        (!same_value, Some(race))
    }
}
