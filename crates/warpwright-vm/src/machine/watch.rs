//! Whether a block that executes instructions makes progress.
//!
//! Threads that wait in a loop are busy, so an instruction count cannot distinguish a hopeless wait from a long
//! computation. The state can: if a block's registers, positions and own memory are the same as before, and nothing
//! around it has changed, it repeats itself for ever. A digest of the state is compared with that of one earlier
//! sample, which is replaced each time the number of samples has doubled; so cycles of any length are found
//! eventually. Of the registers, what counts is what a loop that a lane is in uses ([`crate::decode`]): a search may
//! count its steps for ever.
//!
//! The host may change global memory until it waits for the launch. This does not affect a block that reads no global
//! memory: when its cycle is found depends on its instructions alone, not on the host's threads.

use super::{Barrier, Block, Park, Warp};
use crate::decode::{Code, NO_STATEMENT};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Instructions of the block between two samples of its state; the second where the launch has stood still before.
const INTERVAL: u64 = 1 << 14;
const INTERVAL_AGAIN: u64 = 1 << 11;

/// What else there is to a block's going on, at a look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Around {
    /// Counts the changes by all that executes.
    pub(crate) changes: u64,
    /// The host waits, and so changes nothing.
    pub(crate) awaited: bool,
    /// The launch has stood still before.
    pub(crate) again: bool,
}

/// What is known of a block's states since something around it changed.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// At the time of all that follows.
    around: Around,
    /// The block's clock at the last look.
    clock: u64,
    samples: u64,
    /// A state from before.
    earlier: u64,
    /// The block has read global memory since then.
    read: bool,
    /// It has come back.
    circles: bool,
}

impl Block {
    /// Samples the block's state between two of its turns; `read` says whether it has read global memory in the last
    /// one.
    pub(crate) fn look(&mut self, code: &Code, around: Around, read: bool) {
        self.watch.read |= read;
        let before = self.watch.around;
        let host_differs = self.watch.read && before.awaited != around.awaited;
        if self.watch.samples == 0 || before.changes != around.changes || host_differs {
            let earlier = self.digest(code);
            self.watch =
                Watch { around, clock: self.clock, samples: 1, earlier, read: false, circles: false };
            return;
        }
        let interval = if around.again { INTERVAL_AGAIN } else { INTERVAL };
        if self.watch.circles || self.clock - self.watch.clock < interval {
            return;
        }
        let now = self.digest(code);
        let watch = &mut self.watch;
        watch.circles = now == watch.earlier;
        watch.clock = self.clock;
        watch.samples += 1;
        if watch.samples.is_power_of_two() && !watch.circles {
            (watch.earlier, watch.read, watch.around) = (now, false, around);
        }
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

    fn digest(&self, code: &Code) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.shared.hash(&mut hasher);
        for barrier in &self.barriers {
            barrier.digest(&mut hasher);
        }
        for warp in self.warps.iter().filter(|warp| warp.live != 0) {
            warp.digest(code, &mut hasher);
        }
        hasher.finish()
    }
}

impl Barrier {
    /// All but how often it was passed.
    fn digest(&self, hasher: &mut DefaultHasher) {
        if self.is_busy() {
            self.occupation().hash(hasher);
        }
        self.is_busy().hash(hasher);
    }
}

impl Warp {
    fn digest(&self, code: &Code, hasher: &mut DefaultHasher) {
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
    }
}
