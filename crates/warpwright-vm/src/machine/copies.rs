//! Asynchronous copies of the threads of a warp, from issue to wait.
//!
//! The source is read when the copy is issued, and the destination is written when the thread waits for it; the
//! thread may not rely on either moment. A lane's copies complete in the order of their groups.

use super::{LANES, LanesOf, Row32};
use std::collections::VecDeque;

/// Copies of a warp that are under way at once. Further ones end the oldest, as hardware may at any time, so
/// that a kernel that never waits does not fill the host's memory.
const MAX_UNDER_WAY: usize = 1024;

/// A copy of up to 16 bytes in each lane.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Copy {
    /// The lanes for which it is under way.
    pub(crate) mask: u32,
    /// Where to, in shared memory.
    pub(crate) offsets: [u32; LANES],
    /// What, in words, by lane: those of a lane go to one place.
    pub(crate) data: [[u32; 4]; LANES],
    /// Words that are written.
    pub(crate) words: u32,
    /// The group of each lane's copy.
    group: Row32,
}

impl Copy {
    pub(crate) fn new(words: u32) -> Self {
        let nothing = [0; LANES];
        Copy { mask: 0, offsets: nothing, data: [[0; 4]; LANES], words, group: nothing }
    }
}

/// The copies of a warp.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Copies {
    under_way: VecDeque<Copy>,
    /// Groups that each lane has committed.
    committed: Row32,
}

impl Copies {
    pub(super) fn clear(&mut self) {
        self.under_way.clear();
        self.committed = [0; LANES];
    }

    /// Issues a copy: it belongs to the next group that each lane commits. The oldest, if it has to end now.
    pub(crate) fn issue(&mut self, mut copy: Copy) -> Option<Copy> {
        if copy.mask != 0 {
            copy.group = self.committed;
            self.under_way.push_back(copy);
        }
        if self.under_way.len() > MAX_UNDER_WAY { self.under_way.pop_front() } else { None }
    }

    /// Closes the groups of these lanes.
    pub(crate) fn commit(&mut self, mask: u32) {
        LanesOf(mask).for_each(|lane| self.committed[lane] += 1);
    }

    /// Ends the copies of these lanes that are not in their last `pending` groups, or all of them: calls
    /// `write` for each with the lanes for which it ends.
    pub(crate) fn end(&mut self, mask: u32, pending: Option<u32>, mut write: impl FnMut(&Copy, u32)) {
        let committed = self.committed;
        self.under_way.retain_mut(|copy| {
            let ends = |lane: &usize| match pending {
                None => true,
                Some(pending) => copy.group[*lane] < committed[*lane].saturating_sub(pending),
            };
            let over = LanesOf(copy.mask & mask).filter(ends).fold(0, |all, lane| all | 1 << lane);
            if over != 0 {
                write(copy, over);
                copy.mask &= !over;
            }
            copy.mask != 0
        });
    }
}
