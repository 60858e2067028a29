//! The walk through a schedule: tokens, phases, items.
//!
//! All control flow is uniform within a block: it depends on read-only words of the schedule, and on values that one
//! thread has read and shared with the others.

use super::barrier::Between;
use super::format::{COUNTER_STRIDE, ITEM_WORDS, NONE};
use super::wait::{ScheduleCursor, Sought, Waits};
use super::{Assignment, Op};
use crate::Publish;
use warpwright_dsl::*;
use warpwright_ptx::ir::Scope;

/// A schedule, and what runs it.
#[derive(Clone, Copy)]
pub(super) struct Walk<'k, 'a> {
    pub(super) k: K<'k>,
    pub(super) ops: &'a [Op],
    pub(super) assignment: Assignment,
    pub(super) waits: Waits<'k>,
    pub(super) operands: Ptr<'k, Global, u64>,
    pub(super) items: Ptr<'k, Global, u32>,
    pub(super) bounds: Ptr<'k, Global, u32>,
    pub(super) counters: Ptr<'k, Global, u32>,
    pub(super) progress: Ptr<'k, Global, u32>,
    pub(super) phases: Reg<'k, u32>,
    /// At most.
    pub(super) tokens: Reg<'k, u32>,
    /// The item that the block has taken from a queue.
    pub(super) taken: Ptr<'k, Shared, u32>,
    /// Where it is while a body runs: [`Kept::WORDS`].
    pub(super) kept: Ptr<'k, Shared, u32>,
}

/// Token, phase, item and end: where a block is in its list, or in the phase's queue.
type At<'k> = [Reg<'k, u32>; 4];

/// Words of shared memory that keep values across a body, which uses all registers. They begin with those of [`At`].
pub(super) struct Kept;

impl Kept {
    /// The counter to signal.
    const SIGNAL: u32 = 4;
    /// The tile behind the item's last.
    pub(super) const END: u32 = 5;
    /// Where the instance's record begins.
    pub(super) const RECORD: u32 = 6;
    /// The tile of each team.
    pub(super) const TILES: u32 = 8;
    /// All of them.
    pub(super) const WORDS: u32 = 16;
}

fn cursor<'k>([token, phase, ..]: At<'k>) -> ScheduleCursor<'k> {
    ScheduleCursor { token, phase }
}

impl<'k> Walk<'k, '_> {
    /// Token after token, until there are enough, an op says so, or a wait gives up.
    pub(super) fn run(&self, between: &impl Between<'k>) {
        let Walk { k, phases, tokens, .. } = *self;
        let zero_and_on = (k.u32(0), k.u32(1));
        k.fold_while(
            zero_and_on,
            |(token, on)| token.lt(tokens) & on.ne(0),
            |(token, _)| {
                let (_, token, on) = k.fold_while(
                    (k.u32(0), token, k.u32(1)),
                    |(phase, _, on)| phase.lt(phases) & on.ne(0),
                    |(phase, token, _)| {
                        let (ScheduleCursor { token, phase }, on) =
                            self.phase(ScheduleCursor { token, phase }, between);
                        (phase + 1, token, on)
                    },
                );
                // Nobody writes it before the first barrier of the next token, at which this block has looked.
                let progress = self.progress.relaxed(Scope::Gpu);
                let more = || progress.ld(Publish::FINISHED).eq(0).select(1, 0);
                let on = k.if_else(on.ne(0), more, || k.u32(0));
                (token + 1, on)
            },
        );
    }

    /// The block's items of a phase, and the wait for the others: where it is then, and 1 to go on, 0 to give up.
    fn phase(
        &self,
        cursor: ScheduleCursor<'k>,
        between: &impl Between<'k>,
    ) -> (ScheduleCursor<'k>, Reg<'k, u32>) {
        let k = self.k;
        let (cursor, on) = match self.assignment {
            Assignment::Static => self.list(cursor),
            Assignment::Queue => self.queue(cursor),
        };
        let on = k.if_else(
            on.ne(0),
            || {
                between.leave(cursor);
                between.enter(cursor)
            },
            || k.u32(0),
        );
        (cursor, on)
    }

    /// The items of the block's own list.
    fn list(
        &self,
        ScheduleCursor { token, phase }: ScheduleCursor<'k>,
    ) -> (ScheduleCursor<'k>, Reg<'k, u32>) {
        let k = self.k;
        let [first, end] = self.bounds.ld_vec::<2>((phase * k.nctaid() + k.ctaid()) * 2);
        let (at, on) = k.fold_while(
            ([token, phase, first, end], k.u32(1)),
            |([.., item, end], on)| item.lt(end) & on.ne(0),
            |(at, _)| {
                let ([token, phase, item, end], on) = self.item(at[2], at);
                ([token, phase, item + 1, end], on)
            },
        );
        (cursor(at), on)
    }

    /// Items that the block takes from the phase's queue. Each block takes one more than there are for it, so that the
    /// head goes up by a known number with each token.
    fn queue(
        &self,
        ScheduleCursor { token, phase }: ScheduleCursor<'k>,
    ) -> (ScheduleCursor<'k>, Reg<'k, u32>) {
        let k = self.k;
        let bounds = |phase: Reg<'k, u32>| self.bounds.ld_vec::<2>(phase * 2);
        let take = |[token, phase, _, count]: At<'k>| {
            let before = token * (count + k.nctaid());
            let head = self.counters.at(phase * COUNTER_STRIDE);
            k.when(k.tid().eq(0), || self.taken.st(0, head.atomic_add(0, 1) - before));
            k.sync();
            [token, phase, self.taken.ld(0), count]
        };
        let [first, end] = bounds(phase);
        let (at, on) = k.fold_while(
            (take([token, phase, first, end - first]), k.u32(1)),
            |([.., taken, count], on)| taken.lt(count) & on.ne(0),
            |(at, _)| {
                let [first, _] = bounds(at[1]);
                let (at, on) = self.item(first + at[2], at);
                (k.if_else(on.ne(0), || take(at), || at), on)
            },
        );
        (cursor(at), on)
    }

    /// One item: 1 to go on, 0 to give up, and where the block is, as before. Behind it all threads of the block have
    /// done their part.
    fn item(&self, item: Reg<'k, u32>, at: At<'k>) -> (At<'k>, Reg<'k, u32>) {
        let Walk { k, kept, .. } = *self;
        let words = self.items.at(item * ITEM_WORDS);
        let [op, record, first, end] = words.ld_vec::<4>(0);
        let [counter, value, signal, _] = words.ld_vec::<4>(4);
        let on = k.if_else(
            counter.ne(NONE),
            || {
                let word = self.counters.at(counter * COUNTER_STRIDE);
                let wanted = value * (at[0] + 1);
                self.waits.until(cursor(at), Sought::Counter(counter), word, wanted)
            },
            || k.u32(1),
        );
        k.if_else(
            on.ne(0),
            || {
                // Once all threads have read what was there before.
                k.sync();
                k.when(k.tid().eq(0), || {
                    kept.st_vec(0, at);
                    kept.st_vec(Kept::SIGNAL, [signal, end, record, k.u32(0)]);
                });
                k.sync();
                k.switch(op, self.ops.len() as u32, |case| {
                    self.ops[case as usize].run(k, self.operands, first, kept);
                });
                k.sync();
                let (at, signal) = (kept.ld_vec::<4>(0), kept.ld(Kept::SIGNAL));
                k.when(signal.ne(NONE) & k.tid().eq(0), || {
                    self.counters.at(signal * COUNTER_STRIDE).release(Scope::Gpu).reduce_add(0, 1);
                });
                (at, k.u32(1))
            },
            || (at, k.u32(0)),
        )
    }
}
