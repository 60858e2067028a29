//! Which launches may overlap with the one in front of them.
//!
//! A kernel that waits for earlier grids may read its constants before, and reads them through a cache that does not see
//! what other kernels write. So **a launch that takes as constant what the launch in front of it may write begins behind
//! it**: that is rare (weights that were just brought into another layout), and needs no thought of the caller's.

use crate::op::{Launch, Op};
use std::ops::Range;

/// What a launch accesses, in ranges of addresses. By default it takes nothing to be constant, and may write anything: of
/// a raw launch nothing is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Access {
    /// What it takes to be constant.
    pub(crate) constants: Vec<Range<u64>>,
    /// What it may write; `None` for anything.
    pub(crate) writes: Option<Vec<Range<u64>>>,
}

/// What may be written by the operations in front of one, if that begins before they are complete. By default nothing
/// is in front.
#[derive(Debug, Default)]
pub(crate) struct InFront {
    writes: Vec<Range<u64>>,
    anything: bool,
}

impl InFront {
    /// What is behind an operation, if it is what it says on overlapping.
    pub(crate) fn behind(op: &Op) -> Self {
        let mut front = InFront::default();
        front.pass(op);
        front
    }

    /// Anything may be in front.
    pub(crate) fn forget(&mut self) {
        self.anything = true;
    }

    /// Takes the next operation, and decides whether it overlaps.
    pub(crate) fn next(&mut self, op: &mut Op) {
        if let Op::Launch { launch, overlaps } = op {
            *overlaps = self.allows(launch);
        }
        self.pass(op);
    }

    /// Whether a launch may overlap with what is in front of it.
    pub(crate) fn allows(&self, launch: &Launch) -> bool {
        let meets = |constant: &Range<u64>| {
            let shared = |written: &Range<u64>| written.start < constant.end && constant.start < written.end;
            self.anything || self.writes.iter().any(shared)
        };
        launch.shape.dependent && !launch.access.constants.iter().any(meets)
    }

    fn pass(&mut self, op: &Op) {
        self.writes.clear();
        self.anything = false;
        let Op::Launch { launch, overlaps } = op else { return };
        match &launch.access.writes {
            // One that waits late may be in flight with those in front of it.
            Some(writes) if launch.waits_first || !overlaps => self.writes.extend_from_slice(writes),
            _ => self.anything = true,
        }
    }
}
