//! The way through a schedule: tokens, phases, items.
//!
//! All that decides where a block goes is the same for all of its threads: words of the schedule, which nobody changes,
//! and what one thread has found out and told the others.

use super::barrier::Between;
use super::format::{COUNTER_STRIDE, ITEM_WORDS, NONE};
use super::wait::{Place, Sought, Waits};
use super::{Assignment, Op};
use crate::Publish;
use warpwright_ptx::dsl::*;
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
                let (_, on) = k.fold_while(
                    zero_and_on,
                    |(phase, on)| phase.lt(phases) & on.ne(0),
                    |(phase, _)| (phase + 1, self.phase(Place { token, phase }, between)),
                );
                // Nobody writes it before the first barrier of the next token, at which this block has looked.
                let progress = self.progress.relaxed(Scope::Gpu);
                let more = || progress.ld(Publish::FINISHED).eq(0).select(1, 0);
                let on = k.if_else(on.ne(0), more, || k.u32(0));
                (token + 1, on)
            },
        );
    }

    /// The block's items of a phase, and the wait for the others: 1 to go on, 0 to give up.
    fn phase(&self, place: Place<'k>, between: &impl Between<'k>) -> Reg<'k, u32> {
        let k = self.k;
        let on = match self.assignment {
            Assignment::Static => self.list(place),
            Assignment::Queue => self.queue(place),
        };
        k.if_else(
            on.ne(0),
            || {
                between.leave(place);
                between.enter(place)
            },
            || k.u32(0),
        )
    }

    /// The items of the block's own list.
    fn list(&self, place: Place<'k>) -> Reg<'k, u32> {
        let k = self.k;
        let list = place.phase * k.nctaid() + k.ctaid();
        let [first, end] = self.bounds.nc().ld_vec::<2>(list * 2);
        let (_, on) = k.fold_while(
            (first, k.u32(1)),
            |(item, on)| item.lt(end) & on.ne(0),
            |(item, _)| (item + 1, self.item(item, place)),
        );
        on
    }

    /// Items that the block takes from the phase's queue. Each block takes one more than there are for it, so that the
    /// head goes up by a known number with each token.
    fn queue(&self, place: Place<'k>) -> Reg<'k, u32> {
        let k = self.k;
        let [first, end] = self.bounds.nc().ld_vec::<2>(place.phase * 2);
        let count = end - first;
        let before = place.token * (count + k.nctaid());
        let head = self.counters.at(place.phase * COUNTER_STRIDE);
        let take = || {
            k.when(k.tid().eq(0), || self.taken.st(0, head.atomic_add(0, 1) - before));
            k.sync();
            self.taken.ld(0)
        };
        let (_, on) = k.fold_while(
            (take(), k.u32(1)),
            |(taken, on)| taken.lt(count) & on.ne(0),
            |(taken, _)| {
                let on = self.item(first + taken, place);
                (k.if_else(on.ne(0), take, || taken), on)
            },
        );
        on
    }

    /// One item: 1 to go on, 0 to give up. Behind it all threads of the block have done their part.
    fn item(&self, item: Reg<'k, u32>, place: Place<'k>) -> Reg<'k, u32> {
        let k = self.k;
        let words = self.items.at(item * ITEM_WORDS).nc();
        let [op, record, first, end] = words.ld_vec::<4>(0);
        let [counter, value, signal, _] = words.ld_vec::<4>(4);
        let on = k.if_else(
            counter.ne(NONE),
            || {
                let word = self.counters.at(counter * COUNTER_STRIDE);
                self.waits.until(place, Sought::Counter(counter), word, value * (place.token + 1))
            },
            || k.u32(1),
        );
        k.when(on.ne(0), || {
            k.switch(op, self.ops.len() as u32, |case| {
                self.ops[case as usize].run(k, (self.operands, record), (first, end));
            });
            k.sync();
            k.when(signal.ne(NONE) & k.tid().eq(0), || {
                self.counters.at(signal * COUNTER_STRIDE).release(Scope::Gpu).reduce_add(0, 1);
            });
        });
        on
    }
}
