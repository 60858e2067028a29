//! What a proxy fence covers of what threads know, and what they know of writes that the asynchronous proxy meets.

use super::super::proxy::Written;
use super::{Clocks, Knowledge, Known, ProxyFence, agent, done, lanes};
use std::sync::Arc;

impl Clocks {
    /// Fences by lanes of a warp between what they know and accesses through another proxy.
    pub(in super::super) fn fence_proxy(&mut self, warp: u8, mask: u32, fences: &[ProxyFence]) {
        let tick = self.tick();
        let mut all = Knowledge::clone(&self.common);
        // What the lanes know they all fence: who learns of it later learns of the fence, too.
        self.gather(warp, mask, false, &mut all);
        all.own.raise_lanes(warp, mask, self.whole(warp, mask), tick);
        let covered = Knowledge {
            own: all.own.covered(fences),
            foreign: all.foreign.map(&|known| known.covered(fences)),
        };
        self.extra = true;
        let whole = self.whole(warp, mask);
        let state = &mut self.warps[usize::from(warp)];
        let add = |known: &mut Option<Arc<Knowledge>>| {
            let mut sum = known.as_deref().cloned().unwrap_or_default();
            sum.join(&covered);
            *known = Some(Arc::new(sum));
        };
        if whole {
            return add(&mut state.known);
        }
        state.apart |= mask;
        lanes(mask).for_each(|lane| add(&mut state.lanes()[lane as usize].known));
    }

    /// Whether something holds of what a lane of a warp knows of a block, at any of its levels.
    fn any_knowledge(&self, warp: u8, lane: u32, block: u32, holds: impl Fn(&Known) -> bool) -> bool {
        let state = &self.warps[usize::from(warp)];
        let of_lane = state.lane(lane).and_then(|own| own.known.as_deref());
        [Some(&*self.common), state.known.as_deref(), of_lane].into_iter().flatten().any(|known| {
            match block == self.block {
                true => holds(&known.own),
                false => known.foreign.get(block).is_some_and(|known| holds(known)),
            }
        })
    }

    /// Whether a lane knows what another one of its warp did because the warp has synchronised since, or what its own
    /// agent did because it has waited for that.
    fn knows_by_itself(&self, warp: u8, lane: u32, (of, of_lane): (u8, u32), clock: u64) -> bool {
        let state = &self.warps[usize::from(warp)];
        let waited = || {
            let done = state.lane(lane).into_iter().flat_map(|own| done(&own.waited));
            of_lane == lane && done.into_iter().any(|(by, until)| agent(warp, by) == of && until > clock)
        };
        (of == warp && state.synced > clock) || waited()
    }

    /// Whether a lane of a warp knows a write.
    pub(in super::super) fn knows(&self, warp: u8, lane: u32, written: &Written) -> bool {
        let Written { clock, block, warp: of, lane: of_lane, .. } = *written;
        (block == self.block && of == warp && u32::from(of_lane) == lane)
            || self.any_knowledge(warp, lane, block, |known| known.lane(of, of_lane.into()) > clock)
            || (block == self.block && self.knows_by_itself(warp, lane, (of, of_lane.into()), clock))
    }

    /// Whether a lane of a warp knows what one of some lanes of a warp did, or what their agent did.
    pub(in super::super) fn is_known_to_warp(
        &self,
        warp: u8,
        (block, of): (u32, u8),
        of_lanes: u32,
        clock: u64,
    ) -> bool {
        let is_later = |known: &Known| lanes(of_lanes).any(|of_lane| known.lane(of, of_lane) > clock);
        lanes(u32::MAX).any(|lane| {
            let by_itself = || lanes(of_lanes).any(|at| self.knows_by_itself(warp, lane, (of, at), clock));
            self.any_knowledge(warp, lane, block, is_later) || (block == self.block && by_itself())
        })
    }

    /// Whether such a fence covers a write, as far as a lane knows.
    pub(in super::super) fn is_fenced(
        &self,
        warp: u8,
        lane: u32,
        fence: ProxyFence,
        written: &Written,
    ) -> bool {
        let Written { clock, block, warp: of, lane: of_lane, .. } = *written;
        self.any_knowledge(warp, lane, block, |known| {
            known.fenced(fence).is_some_and(|fenced| fenced.lane(of, of_lane.into()) > clock)
        })
    }
}
