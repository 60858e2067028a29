//! Reads through caches that are not coherent. What `ld.global.nc` reads must not change during the launch; otherwise the
//! read may return any of the values. What a texture or surface reads must not have been written by the launch before.
//!
//! Synchronisation does not help, so nothing is forgotten: for each of its bytes, a row keeps the first such read and
//! the first write of the launch.

use super::check::site;
use super::chunk::CHUNK_ROWS;
use super::entry::{Bytes, Entry, ROW_BYTES};
use super::shadow::{ChunkCache, GlobalRows};
use super::{Piece, Race, RaceSpace};

/// What a row keeps.
#[derive(Debug, Default)]
pub(super) struct Marks {
    reads: Side,
    writes: Side,
}

/// The first accesses of their kind, one of them in place; no byte has two.
#[derive(Debug, Default)]
struct Side {
    bytes: Bytes,
    first: Entry,
    rest: Vec<Entry>,
}

impl Side {
    /// Keeps what the access is the first to touch.
    fn keep(&mut self, new: &Entry) {
        let bytes = new.bytes.without(self.bytes);
        if !bytes.is_empty() {
            self.bytes = self.bytes.or(bytes);
            let mut entry = *new;
            entry.bytes = bytes;
            match self.first.bytes.is_empty() {
                true => self.first = entry,
                false => self.rest.push(entry),
            }
        }
    }

    /// One of those that access some of these bytes.
    fn find(&self, bytes: Bytes) -> Option<&Entry> {
        std::iter::once(&self.first).chain(&self.rest).find(|entry| !entry.bytes.and(bytes).is_empty())
    }

    fn forget(&mut self, bytes: Bytes) {
        self.bytes = self.bytes.without(bytes);
        self.first.bytes = self.first.bytes.without(bytes);
        self.rest.retain_mut(|entry| {
            entry.bytes = entry.bytes.without(bytes);
            !entry.bytes.is_empty()
        });
    }
}

impl Marks {
    /// Keeps an access if later ones matter for it, and yields the earliest that it must not meet, with the byte where
    /// they do.
    pub(super) fn meet(&mut self, new: &Entry, keeps: bool) -> Option<(Entry, u32)> {
        let (own, other) = match new.is_write() {
            true => (&mut self.writes, &self.reads),
            false => (&mut self.reads, &self.writes),
        };
        if keeps {
            own.keep(new);
        }
        let old = other.find(new.bytes)?;
        Some((*old, old.bytes.and(new.bytes).bits().trailing_zeros()))
    }

    /// Whether each byte has been read.
    pub(super) fn are_all_read(&self) -> bool {
        self.reads.bytes == Bytes::ALL
    }

    pub(super) fn forget(&mut self, bytes: Bytes) {
        self.reads.forget(bytes);
        self.writes.forget(bytes);
    }
}

/// A non-coherent read of global memory, or a write, in pieces: calls `found` with the conflicting accesses, once for each
/// instruction.
pub(super) fn access(
    pieces: &[Piece],
    (entry, keeps): (&Entry, bool),
    (rows, chunks): (&GlobalRows, &mut ChunkCache),
    found: &mut dyn FnMut(Race),
) {
    let mut told: Vec<u32> = Vec::new();
    for pieces in pieces.chunk_by(|a, b| a.row / CHUNK_ROWS == b.row / CHUNK_ROWS) {
        chunks.with_rows(rows, pieces[0].row / CHUNK_ROWS, |rows| {
            for piece in pieces {
                let new = entry.with(piece.bytes, piece.lanes);
                let Some((old, byte)) = rows[(piece.row % CHUNK_ROWS) as usize].marks().meet(&new, keeps)
                else {
                    continue;
                };
                if told.contains(&old.pc) {
                    continue;
                }
                told.push(old.pc);
                let side =
                    |entry: &Entry| site(entry, entry.warp(), entry.lanes_at(byte).trailing_zeros() % 32);
                found(Race {
                    space: RaceSpace::Global,
                    address: piece.row * ROW_BYTES + u64::from(byte),
                    first: side(&old),
                    second: side(&new),
                    same_value: false,
                });
            }
        });
    }
}
