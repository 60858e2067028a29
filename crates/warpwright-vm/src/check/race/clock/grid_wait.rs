//! Who is behind `griddepcontrol.wait`: by executing it, or by a barrier behind a thread of the block that has.

use super::{Clocks, Knowledge, lanes};

impl Clocks {
    /// Lanes have passed `griddepcontrol.wait`.
    pub(in super::super) fn grid_wait(&mut self, warp: u8, mask: u32) {
        let known = self.grid_waits.iter().filter(|wait| wait.0 == warp).fold(0, |all, wait| all | wait.1);
        if mask & !known != 0 {
            self.grid_waits.push((warp, mask & !known, self.now));
        }
    }

    /// Whether a thread of the block has passed `griddepcontrol.wait`.
    pub(in super::super) fn has_grid_wait(&self) -> bool {
        !self.grid_waits.is_empty()
    }

    /// The lanes that have not passed `griddepcontrol.wait`, and that nothing orders behind a thread of the block that
    /// has: after that, earlier grids are complete and visible to the whole grid.
    pub(in super::super) fn before_grid_wait(&self, warp: u8, mask: u32) -> u32 {
        let mut open = mask;
        for &(of, waited, clock) in &self.grid_waits {
            if clock < self.common.own.all {
                return 0;
            }
            let state = &self.warps[usize::from(warp)];
            if of == warp {
                open &= !waited;
                if state.synced > clock {
                    return 0;
                }
            }
            let knows = |known: &Knowledge| lanes(waited).any(|lane| known.own.lane(of, lane) > clock);
            if knows(&self.common) || state.known.as_deref().is_some_and(knows) {
                return 0;
            }
            let own = |lane: u32| state.lane(lane).and_then(|own| own.known.as_deref());
            open &= !lanes(open)
                .filter(|&lane| own(lane).is_some_and(knows))
                .fold(0, |all, lane| all | 1 << lane);
        }
        open
    }
}
