//! Accesses of native code, at which the checks look before they are done.

#![cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "nothing is compiled for other processors")
)]

use super::init::{InitBits, Written};
use super::race::{BlockRaces, LaunchRaces, Through, WarpAccess, WorkerRaces, byte_runs};
use crate::machine::{LANES, LanesOf};
use crate::memory::Allocation;

/// Bytes between the lanes of an access, at most, where it is quicker to look at all of them.
const NEAR: u32 = 1 << 11;

/// What looks at the accesses of a warp.
pub(crate) struct Noting<'a> {
    pub(crate) races: &'a mut BlockRaces,
    pub(super) worker: &'a mut WorkerRaces,
    pub(super) launch: &'a LaunchRaces,
    /// Reads of what was not written are looked for.
    pub(super) init: bool,
    /// Which bytes of shared memory were written.
    pub(crate) shared: &'a mut InitBits,
}

impl Noting<'_> {
    /// Whether that is all that is to be done about an access. If not, the access is the interpreter's. `is_line`: all lanes
    /// take part, one behind the other, with at least four bytes each; the first lane's offset is enough then.
    pub(crate) fn note(
        &mut self,
        allocation: &Allocation,
        (is_line, access): (bool, &WarpAccess<'_>),
        through: Through,
    ) -> bool {
        let Noting { races, worker, launch, init, .. } = self;
        let mut written = &allocation.written;
        let from = access.base.wrapping_sub(allocation.base);
        let looks = *init && !Written::is_all(&written);
        let runs = |each: &mut dyn FnMut(u64, u64)| {
            if is_line {
                return each(from.wrapping_add(access.offsets[0]), 32 * u64::from(access.bytes));
            }
            byte_runs(access.offsets, access.mask, access.bytes, |at, bytes| {
                each(from.wrapping_add(at), bytes)
            });
        };
        if looks && access.kind.is_read() {
            let mut all = true;
            runs(&mut |at, bytes| all &= Written::is_set(&written, at, bytes));
            if !all {
                return false;
            }
        }
        if !races.note(launch, worker, (is_line, access), through) {
            return false;
        }
        if looks && access.kind.is_write() {
            runs(&mut |at, bytes| Written::set(&mut written, at, bytes));
        }
        true
    }
}

impl InitBits {
    /// Whether all bytes of an access were written, of lanes so far from the first byte. `is_line`: it is one of a whole warp,
    /// lane by lane.
    #[inline(always)]
    pub(crate) fn are_written(
        &self,
        access: &WarpAccess<'_>,
        (is_line, offsets): (bool, &[u32; LANES]),
    ) -> bool {
        let is_set = |at: u32, bytes: u32| self.is_set(at.into(), bytes.into());
        if self.is_all() {
            return true;
        }
        if is_line {
            return is_set(offsets[0], LANES as u32 * access.bytes);
        }
        // Mostly all bytes were that are between the lanes.
        let (mut low, mut high) = (u32::MAX, 0);
        for (lane, &offset) in offsets.iter().enumerate() {
            let takes_part = (access.mask >> lane & 1).wrapping_neg();
            low = low.min(offset | !takes_part);
            high = high.max(offset & takes_part);
        }
        (high - low < NEAR && is_set(low, high + access.bytes - low))
            || LanesOf(access.mask).all(|lane| is_set(offsets[lane], access.bytes))
    }

    /// The same bytes are written.
    #[inline(always)]
    pub(crate) fn write(&mut self, access: &WarpAccess<'_>, (is_line, offsets): (bool, &[u32; LANES])) {
        match is_line {
            _ if self.is_all() => {}
            true => self.set(offsets[0].into(), LANES as u64 * u64::from(access.bytes)),
            false => {
                LanesOf(access.mask).for_each(|lane| self.set(offsets[lane].into(), access.bytes.into()))
            }
        }
    }
}
