//! Copies from and to pageable host memory.
//!
//! The device copies only pinned memory asynchronously. So bytes go through pieces of pinned memory that streams share:
//!
//! ```text
//!  slice ──memcpy──► piece ──device──► buffer          a piece is full, or the stream goes: an event behind its copies
//!                      ▲                               the event is complete: the piece is free
//! ```
//!
//! A stream fills one piece with small copies, one after the other, with one event for all of them. If a stream has
//! many pieces that the device has not reached yet, the host waits for the first of them, and for nothing else.

use super::context::{Context, Unbound};
use super::error::{CallError, check};
use super::faults::ends_context;
use super::handles::{Event, Stream};
use super::memory::HostBlock;
use super::sys::{self, Status};
use crate::lock;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of a piece: a copy of them takes the device much longer than it takes to ask for it.
const PIECE: usize = 1 << 20;
/// The maximum number of full pieces of a stream before it waits.
const MAX_PIECES: usize = 16;
/// The number of pieces that a copy to the host runs ahead of the host.
const AHEAD: usize = 4;
/// Copies in a piece begin at multiples of this.
const ALIGN: usize = 64;

/// The free pieces of a device.
pub(crate) struct Staging {
    context: Arc<Context>,
    pieces: Mutex<Pieces>,
}

#[derive(Default)]
struct Pieces {
    free: Vec<Piece>,
    /// Of streams that are gone, in use until their events are complete.
    left: Vec<Piece>,
}

/// A piece of pinned memory with the event behind the copies that use it.
struct Piece {
    block: HostBlock,
    event: Event,
}

/// Parts of a copy to the host that were issued to the device, first in, first out. It needs no allocation: most copies
/// to the host are of a few bytes.
#[derive(Default)]
struct Ahead<'a> {
    parts: [Option<(Piece, &'a mut [u8])>; AHEAD],
    first: usize,
    len: usize,
}

impl<'a> Ahead<'a> {
    /// There is room for one more.
    fn push(&mut self, part: (Piece, &'a mut [u8])) {
        self.parts[(self.first + self.len) % AHEAD] = Some(part);
        self.len += 1;
    }

    fn front(&self) -> Option<&(Piece, &'a mut [u8])> {
        self.parts[self.first].as_ref()
    }

    fn pop(&mut self) -> Option<(Piece, &'a mut [u8])> {
        let part = self.parts[self.first].take()?;
        self.first = (self.first + 1) % AHEAD;
        self.len -= 1;
        Some(part)
    }
}

/// The pieces of a stream.
pub(crate) struct Lane {
    staging: Arc<Staging>,
    stream: Arc<Stream>,
    /// The one that is being filled, and up to where.
    open: Option<(Piece, usize)>,
    /// Those that are full, in the order of the stream.
    full: VecDeque<Piece>,
}

impl Staging {
    pub(crate) fn new(context: &Arc<Context>) -> Self {
        Staging { context: context.clone(), pieces: Mutex::default() }
    }

    /// A piece that nothing uses. The context is bound.
    fn take(&self) -> Result<Piece, CallError> {
        let mut pieces = lock(&self.pieces);
        if pieces.free.is_empty() {
            let _unbound = Unbound::new();
            let (free, left) = std::mem::take(&mut pieces.left).into_iter().partition(|piece| {
                // An error is the context's, which the next call will tell.
                piece.event.is_complete().unwrap_or(false)
            });
            (pieces.free, pieces.left) = (free, left);
        }
        if let Some(piece) = pieces.free.pop() {
            return Ok(piece);
        }
        drop(pieces);
        let event = Event::new(&self.context, false)?;
        match HostBlock::new(&self.context, PIECE)? {
            Some(block) => Ok(Piece { block, event }),
            None => Err(CallError::new("cuMemHostAlloc", Status::OUT_OF_MEMORY)),
        }
    }

    fn give(&self, pieces: impl IntoIterator<Item = Piece>) {
        lock(&self.pieces).free.extend(pieces);
    }

    /// Copies to the host after the stream's operations so far, and waits for completion. The context is bound.
    pub(crate) fn download(&self, stream: &Stream, source: u64, target: &mut [u8]) -> Result<(), CallError> {
        stream.must_not_capture("cuMemcpyDtoHAsync")?;
        let _unbound = Unbound::new();
        if target.is_empty() {
            // There is no copy that could be waited for.
            return stream.synchronize();
        }
        let mut ahead = Ahead::default();
        let result = self.fetch(stream, source, target, &mut ahead);
        // The device may still write them, unless the context is lost.
        if result.is_err()
            && ahead.len > 0
            && let Err(error) = stream.synchronize()
            && !ends_context(error.code)
        {
            // It is not known until when.
            std::mem::forget(ahead);
            return result;
        }
        self.give(ahead.parts.into_iter().flatten().map(|(piece, _)| piece));
        result
    }

    fn fetch<'a>(
        &self,
        stream: &Stream,
        source: u64,
        target: &'a mut [u8],
        ahead: &mut Ahead<'a>,
    ) -> Result<(), CallError> {
        let mut from = source;
        for part in target.chunks_mut(PIECE) {
            if ahead.len == AHEAD {
                self.land(ahead)?;
            }
            let piece = self.take()?;
            let to = piece.block.start();
            // SAFETY: the piece has room for the part, and stays until the event that follows is complete; the caller
            // says that the source is so long, and allocated in the order of the stream.
            let asked = unsafe { sys::cuMemcpyDtoHAsync_v2(to.cast(), from, part.len(), stream.handle) };
            let asked = check("cuMemcpyDtoHAsync", asked).and_then(|()| piece.event.record(stream));
            from += part.len() as u64;
            ahead.push((piece, part));
            asked?;
        }
        while ahead.len > 0 {
            self.land(ahead)?;
        }
        Ok(())
    }

    /// Takes what the first piece has, when it has it.
    fn land(&self, ahead: &mut Ahead<'_>) -> Result<(), CallError> {
        if let Some((piece, _)) = ahead.front() {
            piece.event.synchronize()?;
        }
        if let Some((piece, part)) = ahead.pop() {
            // SAFETY: the device has written as many bytes as the part has, and is done with the piece.
            unsafe { piece.block.start().copy_to_nonoverlapping(part.as_mut_ptr(), part.len()) };
            self.give([piece]);
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let pieces = self.pieces.get_mut().unwrap_or_else(PoisonError::into_inner);
        if self.context.bind().is_ok() {
            // The device must be done with what goes. An error is the context's: it is lost, and nothing is in use.
            pieces.left.iter().for_each(|piece| drop(piece.event.synchronize()));
        }
    }
}

impl Lane {
    pub(crate) fn new(staging: &Arc<Staging>, stream: &Arc<Stream>) -> Self {
        Lane { staging: staging.clone(), stream: stream.clone(), open: None, full: VecDeque::new() }
    }

    /// Copies to the device after the stream's operations so far. The slice may be reused when this returns. The
    /// context is bound.
    pub(crate) fn upload(&mut self, data: &[u8], target: u64) -> Result<(), CallError> {
        // The piece is of other bytes when their graph is replayed.
        self.stream.must_not_capture("cuMemcpyHtoDAsync")?;
        let mut to = target;
        for part in data.chunks(PIECE) {
            let at = self.room(part.len())?;
            let Some((piece, used)) = &mut self.open else { continue };
            // SAFETY: `room` has found that many bytes there which no copy uses.
            let from = unsafe { piece.block.start().add(at) };
            // SAFETY: as above; the slice does not overlap our pieces.
            unsafe { from.copy_from_nonoverlapping(part.as_ptr(), part.len()) };
            *used = at + part.len();
            // SAFETY: the piece stays until an event behind this copy is complete; the caller says that the target
            // has the room, and is allocated in the order of the stream.
            let asked = unsafe { sys::cuMemcpyHtoDAsync_v2(to, from.cast(), part.len(), self.stream.handle) };
            check("cuMemcpyHtoDAsync", asked)?;
            to += part.len() as u64;
        }
        Ok(())
    }

    /// Where that many bytes fit into the open piece, which is a new one if need be.
    fn room(&mut self, bytes: usize) -> Result<usize, CallError> {
        if let Some((piece, used)) = &self.open {
            let at = used.next_multiple_of(ALIGN);
            if at + bytes <= piece.block.bytes() {
                return Ok(at);
            }
            piece.event.record(&self.stream)?;
            self.full.extend(self.open.take().map(|(piece, _)| piece));
        }
        let piece = self.next()?;
        self.open = Some((piece, 0));
        Ok(0)
    }

    /// A piece that nothing uses.
    fn next(&mut self) -> Result<Piece, CallError> {
        let _unbound = Unbound::new();
        let mut free = None;
        while let Some(first) = self.full.front() {
            // With as many pieces as it may have, the stream waits for its first one.
            if free.is_none() && self.full.len() >= MAX_PIECES {
                first.event.synchronize()?;
            } else if !first.event.is_complete()? {
                break;
            }
            let more = std::mem::replace(&mut free, self.full.pop_front());
            self.staging.give(more);
        }
        match free {
            Some(piece) => Ok(piece),
            None => self.staging.take(),
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let mut open = self.open.take().map(|(piece, _)| piece);
        if let Some(piece) = &open
            && self.staging.context.bind().is_ok()
            && let Err(error) = piece.event.record(&self.stream)
            && !ends_context(error.code)
        {
            // The device may still read it, and it is not known until when.
            std::mem::forget(open.take());
        }
        lock(&self.staging.pieces).left.extend(self.full.drain(..).chain(open));
    }
}
