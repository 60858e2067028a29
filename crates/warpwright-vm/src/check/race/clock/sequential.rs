//! The order of `fence.sc` operations (PTX ISA 8.9.3): of two whose scopes include each other, one comes first, and
//! synchronises with the other.
//!
//! Which one the schedule happens to execute first says nothing: without more they may come in the other order as well,
//! and what races then is to be found. But if a thread accesses a location strongly behind its fence, and another
//! thread later writes it strongly in front of a fence of its own, then the first fence comes first: in the other order
//! the write would come before the access, and would have been read or replaced by it (8.10.1, 8.10.6). So a strong
//! access enters what its thread has fenced at the location, a strong write picks it up, and the next fence acquires it.

use std::sync::Arc;

use super::{Clocks, FencePoint, Floors, ScalarPlace, Scope, Seen, lanes};

/// What a lane has of `fence.sc`.
#[derive(Debug, Default)]
pub(super) struct Sequential {
    /// Its last fences, by scope.
    points: [Option<Arc<FencePoint>>; 2],
    /// The location where it has entered them last.
    entered: Option<ScalarPlace>,
    /// What fences before its next one have fenced.
    before: Seen,
}

impl Clocks {
    /// Lanes have executed `fence.sc`: they acquire what came before it.
    pub(super) fn acquire_sequential(&mut self, warp: u8, mask: u32, scope: Scope) {
        let Some(all) = &mut self.warps[usize::from(warp)].lanes else { return };
        let mut acquired = Vec::new();
        for lane in lanes(mask) {
            let Some(own) = &mut all[lane as usize].sequential else { continue };
            let seen = match scope {
                Scope::Device => std::mem::take(&mut own.before),
                Scope::Block => Seen { device: Floors::default(), block: own.before.block.clone() },
            };
            if !seen.is_empty() {
                acquired.push((lane, seen));
            }
        }
        self.learn(warp, mask, &acquired);
    }

    /// Whether a lane of the warp has executed `fence.sc`.
    pub(in super::super) fn has_sequential(&self, warp: u8) -> bool {
        self.warps[usize::from(warp)].sequential
    }

    /// A lane has fenced this by `fence.sc`, and accesses a location strongly. None if it has entered it there.
    pub(in super::super) fn enter_sequential(
        &mut self,
        warp: u8,
        lane: u32,
        place: ScalarPlace,
    ) -> Option<Seen> {
        let block = self.block;
        let all = self.warps[usize::from(warp)].lanes.as_mut()?;
        let own = all[lane as usize].sequential.as_mut()?;
        if own.entered.replace(place) == Some(place) {
            return None;
        }
        let fenced = |scope: Scope| {
            let point = own.points[scope as usize].as_ref();
            point.map(|point| point.released(block, lane)).unwrap_or_default()
        };
        Some(Seen { device: fenced(Scope::Device), block: fenced(Scope::Block) })
    }

    /// A lane writes a location strongly where others have entered this: their fences come before its next one.
    pub(in super::super) fn come_after(&mut self, warp: u8, lane: u32, seen: &Seen) {
        self.extra = true;
        self.acquainted = true;
        self.warps[usize::from(warp)].lanes()[lane as usize]
            .sequential
            .get_or_insert_default()
            .before
            .join(seen);
    }

    /// Keeps the point of `fence.sc` of a lane.
    pub(super) fn keep_sequential(&mut self, warp: u8, lane: u32, scope: Scope, point: Arc<FencePoint>) {
        let state = &mut self.warps[usize::from(warp)];
        state.sequential = true;
        let own = state.lanes()[lane as usize].sequential.get_or_insert_default();
        own.points[scope as usize] = Some(point);
        own.entered = None;
    }
}
