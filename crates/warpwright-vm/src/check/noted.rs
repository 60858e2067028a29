//! Accesses of native code, at which the checks look before they are done.

use super::init::{InitBits, Written};
use super::race::{BlockRaces, LaunchRaces, Through, WarpAccess, WorkerRaces, byte_runs};
use crate::memory::Allocation;

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
