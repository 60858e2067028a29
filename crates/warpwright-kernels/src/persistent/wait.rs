//! Bounded waits: a thread polls a word of global memory until the word reaches a count, or until the poll budget runs
//! out.
//!
//! One thread polls with acquire at device scope, and the block waits for it at a block barrier, so all of the block
//! sees what was released with the count. Words count up, modulo 2³².
//!
//! The first block whose budget runs out writes the fault and raises the flag. All others see the flag between two
//! polls and give up too.

use super::format::{AT_BARRIER, AT_COUNTER, GAVE_UP};
use warpwright_dsl::*;
use warpwright_ptx::ir::Scope;

/// Polls without a pause.
const EAGER: u32 = 16;

/// Nanoseconds between the following polls.
const PAUSE: u32 = 64;

/// Factor of the poll budget at the barrier: blocks that wait for a counter know better what is missing, so they give up
/// first.
const AT_BARRIER_TIMES: u32 = 4;

/// A block's position in the schedule.
#[derive(Clone, Copy)]
pub(super) struct ScheduleCursor<'k> {
    /// The token, from 0 in each launch.
    pub(super) token: Reg<'k, u32>,
    pub(super) phase: Reg<'k, u32>,
}

/// The target of a wait.
#[derive(Clone, Copy)]
pub(super) enum Sought<'k> {
    /// The grid's barrier.
    Barrier,
    /// A counter, by its index.
    Counter(Reg<'k, u32>),
}

/// The waits of a block.
#[derive(Clone, Copy)]
pub(super) struct Waits<'k> {
    k: K<'k>,
    /// The buffer `barrier`, which has the flag.
    words: Ptr<'k, Global, u32>,
    fault: Ptr<'k, Global, u32>,
    /// Maximum number of polls, for a counter.
    budget: Reg<'k, u32>,
    /// The results that the polling thread shares with the block: of the barrier, and of counters. There is a block
    /// barrier between two waits of the same kind, but not between one for the barrier and one for a counter.
    verdicts: [Ptr<'k, Shared, u32>; 2],
}

impl<'k> Waits<'k> {
    pub(super) fn new(
        k: K<'k>,
        words: Ptr<'k, Global, u32>,
        fault: Ptr<'k, Global, u32>,
        budget: Reg<'k, u32>,
    ) -> Self {
        Waits { k, words, fault, budget, verdicts: [k.shared(1), k.shared(1)] }
    }

    /// Waits until `word` has been counted up to `wanted`; yields 1 to go on, and 0 to give up. All threads of the block
    /// call it.
    pub(super) fn until(
        self,
        cursor: ScheduleCursor<'k>,
        sought: Sought<'k>,
        word: Ptr<'k, Global, u32>,
        wanted: Reg<'k, u32>,
    ) -> Reg<'k, u32> {
        let Waits { k, words, budget, verdicts: [of_barrier, of_counter], .. } = self;
        let (verdict, budget) = match sought {
            Sought::Barrier => (of_barrier, budget.min(u32::MAX / AT_BARRIER_TIMES) * AT_BARRIER_TIMES),
            Sought::Counter(_) => (of_counter, budget),
        };
        k.when(k.tid().eq(0), || {
            let poll = || word.acquire(Scope::Gpu).ld(0);
            let missing = |seen: Reg<'k, u32>| (seen - wanted).bits::<i32>().lt(0);
            let zero = k.u32(0);
            let (seen, _, gave_up) = k.fold_while(
                (poll(), zero, zero),
                |(seen, polls, gave_up)| missing(seen) & polls.lt(budget) & gave_up.eq(0),
                |(_, polls, _)| {
                    k.when(polls.ge(EAGER), || k.nanosleep(PAUSE));
                    // Asked for first, so that both are under way at once.
                    let gave_up = words.relaxed(Scope::Gpu).ld(GAVE_UP);
                    (poll(), polls + 1, gave_up)
                },
            );
            k.when(missing(seen) & gave_up.eq(0), || self.report(cursor, sought, wanted, seen));
            verdict.st(0, missing(seen).select(0, 1));
        });
        k.sync();
        verdict.ld(0)
    }

    /// Raises the flag; the first to do so says why.
    fn report(
        self,
        cursor: ScheduleCursor<'k>,
        sought: Sought<'k>,
        wanted: Reg<'k, u32>,
        seen: Reg<'k, u32>,
    ) {
        let Waits { k, words, fault, .. } = self;
        let (code, counter) = match sought {
            Sought::Barrier => (AT_BARRIER, k.u32(0)),
            Sought::Counter(counter) => (AT_COUNTER, counter),
        };
        let before = words.atomic_cas(GAVE_UP, 0u32, 1u32);
        k.when(before.eq(0), || {
            let values = [k.ctaid(), cursor.phase, cursor.token, counter, wanted, seen];
            for (value, word) in values.into_iter().zip(1u32..) {
                fault.relaxed(Scope::Sys).st(word, value);
            }
            fault.release(Scope::Sys).st(0, code);
        });
    }
}
