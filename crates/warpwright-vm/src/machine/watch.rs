//! Whether a block that executes instructions gets anywhere.
//!
//! Threads that wait in a loop are busy, so no count of instructions tells a hopeless wait from a long
//! computation. The state does: a block whose registers, places and own memory are what they were before,
//! while nothing around it has changed, does the same again for ever. It is compared by a digest, and with
//! one state taken down earlier, a new one each time that the number of looks has doubled: a circle of any
//! length is seen in the end.

use super::{Barrier, Block, Park, Warp};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Instructions of the block between two looks at its state.
const INTERVAL: u64 = 1 << 14;

/// What is known of a block's states since something around it changed.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Changes around the block at the time of all that follows.
    around: u64,
    /// The block's clock at the last look.
    clock: u64,
    looks: u64,
    /// A state from before.
    earlier: u64,
    /// It has come back.
    circles: bool,
}

impl Block {
    /// Looks at the state that the block is in between two of its turns. `around` counts the changes of
    /// everything else.
    pub(crate) fn look(&mut self, around: u64) {
        if self.watch.looks == 0 || self.watch.around != around {
            let earlier = self.digest();
            self.watch = Watch { around, clock: self.clock, looks: 1, earlier, circles: false };
            return;
        }
        if self.watch.circles || self.clock - self.watch.clock < INTERVAL {
            return;
        }
        let now = self.digest();
        let watch = &mut self.watch;
        watch.circles = now == watch.earlier;
        watch.clock = self.clock;
        watch.looks += 1;
        if watch.looks.is_power_of_two() {
            watch.earlier = now;
        }
    }

    /// Whether it does the same again and again, as long as nothing else changes.
    pub(crate) fn circles(&self, around: u64) -> bool {
        self.watch.circles && self.watch.around == around
    }

    fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.shared.hash(&mut hasher);
        for barrier in &self.barriers {
            barrier.digest(&mut hasher);
        }
        for warp in self.warps.iter().filter(|warp| warp.live != 0) {
            warp.digest(&mut hasher);
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
    fn digest(&self, hasher: &mut DefaultHasher) {
        self.registers.hash(hasher);
        for fragment in &self.fragments {
            (fragment.pc, fragment.mask, fragment.join, fragment.frame, fragment.resume).hash(hasher);
            match fragment.park {
                Park::Ready => 0.hash(hasher),
                Park::Barrier { id, .. } => (1, id).hash(hasher),
                Park::Converge { need, key } => (2, need, key).hash(hasher),
            }
        }
        self.rest(hasher);
    }
}
