//! The grid barrier between two phases.
//!
//! Blocks count their arrivals; the last one resets the count to zero and starts the next generation, which the others
//! wait for. So the words are ready for the next barrier and for the next launch. The count uses acquire and release;
//! the generation is stored with release and polled with acquire, all at device scope. Whatever a block wrote before it
//! arrived is visible to all blocks after the barrier.

use super::format::{ARRIVED, GENERATION};
use super::wait::{ScheduleCursor, Sought, Waits};
use warpwright_dsl::*;
use warpwright_ptx::ir::Scope;

/// What separates a phase from the next. The walk knows no more of it, so that something finer can take its place.
pub(super) trait Between<'k> {
    /// The block has done its items of the phase. All threads call it.
    fn leave(&self, cursor: ScheduleCursor<'k>);

    /// Waits until what the next phase reads has been written; yields 1 to go on, 0 to give up.
    fn enter(&self, cursor: ScheduleCursor<'k>) -> Reg<'k, u32>;
}

/// A barrier of all blocks.
#[derive(Clone, Copy)]
pub(super) struct GridBarrier<'k> {
    pub(super) k: K<'k>,
    pub(super) waits: Waits<'k>,
    pub(super) words: Ptr<'k, Global, u32>,
    /// How many arrive.
    pub(super) blocks: Reg<'k, u32>,
    /// Phases of a token.
    pub(super) phases: Reg<'k, u32>,
    /// The generation in which the launch begins.
    pub(super) first: Ptr<'k, Shared, u32>,
}

impl<'k> GridBarrier<'k> {
    /// The barrier of the whole grid. All blocks see the same first generation: the next one cannot begin before all
    /// have arrived, which they do later.
    pub(super) fn new(k: K<'k>, waits: Waits<'k>, words: Ptr<'k, Global, u32>, phases: Reg<'k, u32>) -> Self {
        // In shared memory, where it takes no register of the bodies.
        let first = k.shared(1);
        k.when(k.tid().eq(0), || first.st(0, words.relaxed(Scope::Gpu).ld(GENERATION)));
        k.sync();
        GridBarrier { k, waits, words, blocks: k.nctaid(), phases, first }
    }

    /// The generation that begins when all blocks have left the phase.
    fn next(&self, cursor: ScheduleCursor<'k>) -> Reg<'k, u32> {
        self.first.ld(0) + 1 + cursor.token * self.phases + cursor.phase
    }
}

impl<'k> Between<'k> for GridBarrier<'k> {
    fn leave(&self, cursor: ScheduleCursor<'k>) {
        let GridBarrier { k, words, blocks, .. } = *self;
        k.sync();
        k.when(k.tid().eq(0), || {
            let before = words.acq_rel(Scope::Gpu).atomic_add(ARRIVED, 1);
            k.when(before.eq(blocks - 1), || {
                words.relaxed(Scope::Gpu).st(ARRIVED, 0);
                words.release(Scope::Gpu).st(GENERATION, self.next(cursor));
            });
        });
    }

    fn enter(&self, cursor: ScheduleCursor<'k>) -> Reg<'k, u32> {
        self.waits.until(cursor, Sought::Barrier, self.words.at(GENERATION), self.next(cursor))
    }
}
