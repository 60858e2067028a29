//! Whether a cluster that executes instructions makes progress. Most often it is one block.
//!
//! Threads that wait in a loop are busy, so an instruction count cannot distinguish a hopeless wait from a long
//! computation. The state can: if its registers, positions and own memory are the same as before, and nothing
//! around it has changed, it repeats itself for ever. After some of its turns, a digest of the state is compared
//! with that of one earlier turn, which is replaced each time the number of digests has doubled; so cycles of any length
//! are found eventually (Brent). There are as many instructions between two digests as the state has bytes, so that a long
//! computation is not slowed down: when that is depends on the state alone, so turns of a cycle are chosen in a cycle, too. Of the registers, what counts is what a loop that a lane is in uses
//! ([`crate::decode`]): a search may count its steps for ever.
//!
//! Warps that search by themselves have cycles of different lengths, and the cluster's is their common multiple. As long
//! as no memory and no barrier changes, a warp's next state depends on its own alone: it is enough that each warp has
//! come back to a state of its own.
//!
//! The host may change global memory until it waits for the launch. This does not affect a cluster that reads no global
//! memory: when its cycle is found depends on its instructions alone, not on the host's threads.

use super::{Barrier, Cluster, Park, Warp};
use crate::decode::{Code, NO_STATEMENT};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::take;

/// What else there is to a block's going on, at a look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Around {
    /// Counts the changes by all that executes.
    pub(crate) changes: u64,
    /// The host waits, and so changes nothing.
    pub(crate) awaited: bool,
}

/// What a turn of a block did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// It has read global memory.
    pub(crate) read: bool,
    /// It may have changed memory.
    pub(crate) wrote: bool,
    /// Instructions of its warps.
    pub(crate) work: u64,
}

/// What is known of a block's states since something around it changed.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// At the time of all that follows.
    around: Around,
    /// Digests that were made.
    looks: u64,
    /// Instructions since the last one, and how many there are to be.
    work: u64,
    interval: u64,
    /// A turn since then may have changed memory.
    wrote: bool,
    /// The state after an earlier turn.
    earlier: State,
    /// The digest of shared memory, and of changes of tensor memory, at the last look.
    shared: u64,
    /// No turn since then may have changed memory or barriers.
    still: bool,
    /// For each warp, whether it has come back to its earlier state.
    returned: Vec<bool>,
    /// The block has read global memory since then.
    read: bool,
    /// It has come back.
    circles: bool,
}

/// Digests of a block's state.
#[derive(Debug, Default)]
struct State {
    shared: u64,
    /// The barriers, but for how often they were passed.
    barriers: u64,
    /// How often barriers were passed, which nothing depends on.
    passed: u64,
    warps: Vec<u64>,
}

impl State {
    fn is_that_of(&self, other: &State) -> bool {
        (self.shared, self.barriers, &self.warps) == (other.shared, other.barriers, &other.warps)
    }
}

impl Cluster {
    /// Compares the cluster's state after a turn with an earlier one, if it is time.
    pub(crate) fn look(&mut self, code: &Code, around: Around, turn: Turn) {
        let watch = &mut self.watch;
        watch.read |= turn.read;
        watch.wrote |= turn.wrote;
        watch.work += turn.work.max(1);
        if watch.work < watch.interval {
            return;
        }
        let before = watch.around;
        let host_differs = watch.read && before.awaited != around.awaited;
        let begins = watch.looks == 0 || before.changes != around.changes || host_differs;
        if watch.circles && !begins {
            return;
        }
        let wrote = take(&mut watch.wrote);
        watch.work = 0;
        let warps: usize = self.warps().map(Warp::bytes).sum();
        self.watch.interval = (size_of_val(&*self.shared) + warps) as u64;
        if begins || wrote {
            let tensor: Vec<u64> = self.blocks.iter().map(|block| block.tensor.changes).collect();
            self.watch.shared = digest(&(&self.shared, tensor));
        }
        let now = State {
            shared: self.watch.shared,
            barriers: digest(&self.barriers().map(Barrier::digest).collect::<Vec<_>>()),
            passed: self.barriers().map(|barrier| barrier.generation).sum(),
            warps: self.warps().map(|warp| warp.digest(code)).collect(),
        };
        let watch = &mut self.watch;
        let earlier = &watch.earlier;
        watch.looks = if begins { 1 } else { watch.looks + 1 };
        watch.still &= !wrote && (now.barriers, now.passed) == (earlier.barriers, earlier.passed);
        for ((returned, now), earlier) in watch.returned.iter_mut().zip(&now.warps).zip(&earlier.warps) {
            *returned |= now == earlier;
        }
        let all_returned = watch.still && watch.returned.iter().all(|returned| *returned);
        watch.circles = !begins && (all_returned || now.is_that_of(earlier));
        if watch.looks.is_power_of_two() && !watch.circles {
            let warps = self.blocks.iter_mut().flat_map(|block| &mut block.warps);
            warps.for_each(|warp| {
                warp.polled = None;
                warp.awaited.clear();
            });
            watch.returned.clear();
            watch.returned.resize(now.warps.len(), false);
            (watch.earlier, watch.still, watch.read, watch.around) = (now, true, false, around);
        }
    }

    fn barriers(&self) -> impl Iterator<Item = &Barrier> {
        self.blocks.iter().flat_map(|block| &block.barriers).chain([&self.barrier])
    }

    fn warps(&self) -> impl Iterator<Item = &Warp> {
        self.blocks.iter().flat_map(|block| block.warps.iter().map(|warp| &**warp))
    }

    /// Whether it has read global memory while it did the same again and again.
    pub(crate) fn has_read(&self) -> bool {
        self.watch.read
    }

    /// Whether it does the same again and again, as long as the count of changes is this one.
    pub(crate) fn circles(&self, changes: u64) -> bool {
        let watch = &self.watch;
        watch.circles && watch.around.changes == changes && (watch.around.awaited || !watch.read)
    }
}

fn digest(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Barrier {
    /// All but how often it was passed.
    fn digest(&self) -> u64 {
        if self.is_busy() { digest(&self.occupation()) } else { 0 }
    }
}

impl Warp {
    /// Bytes of its registers and its local memory: most of what a digest is made of.
    fn bytes(&self) -> usize {
        self.registers.bytes() + size_of_val(&*self.local)
    }

    fn digest(&self, code: &Code) -> u64 {
        if self.live == 0 {
            return 0;
        }
        let hasher = &mut DefaultHasher::new();
        let mut registers = self.registers.clone();
        // Not the functions that it calls: a lane may have left one, and have come into it again.
        let kernel = &code.functions[self.frames[0].function as usize];
        for (pc, lanes) in self.places() {
            let statement = Some(code.meta[pc as usize].statement).filter(|&at| at != NO_STATEMENT);
            for deciding in kernel.loops.deciding(pc, statement) {
                registers.keep(deciding, lanes);
            }
        }
        registers.hash(hasher);
        for path in &self.paths {
            (path.pc, path.mask, path.reconverges_at, path.frame, path.resume).hash(hasher);
            match path.park {
                Park::Ready => 0.hash(hasher),
                Park::Barrier { id, .. } => (1, id).hash(hasher),
                Park::Converge { need, key } => (2, need, key).hash(hasher),
            }
        }
        self.rest(hasher);
        hasher.finish()
    }
}
