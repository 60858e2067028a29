//! What instructions tell the checks.

use crate::machine::{Machine, Row32, Row64};
use crate::memory::{Order, Region};
use warpwright_ptx::ir::{Scope, Semantics};

impl<'a> Machine<'a> {
    /// Lanes execute a collective of the warp whose mask leaves them out.
    pub(crate) fn report_outside_mask(&mut self, _lanes: u32) {}

    /// Lanes read from a lane that does not take part.
    pub(crate) fn report_absent_source(&mut self, _lanes: u32) {}

    /// `bar.warp.sync`: the lanes named have met.
    pub(crate) fn warp_synced(&mut self, _members: &Row32, _present: u32) {}

    /// A fence.
    pub(crate) fn fenced(&mut self, _scope: Scope, _semantics: Option<Semantics>) {}

    /// An atomic operation is about to be done.
    pub(crate) fn observe_atomic(
        &mut self,
        _order: Order,
        _region: &Region<'a>,
        _offsets: &Row64,
        _bytes: u32,
        _element: u32,
        _mask: u32,
    ) {
    }

    /// An atomic operation has been done.
    pub(crate) fn observed_atomic(
        &mut self,
        _order: Order,
        _region: &Region<'a>,
        _offsets: &Row64,
        _bytes: u32,
        _element: u32,
        _mask: u32,
    ) {
    }

    /// An asynchronous copy has been issued that reads.
    pub(crate) fn observe_copy_read(
        &mut self,
        _region: &Region<'a>,
        _offsets: &Row64,
        _bytes: u32,
        _mask: u32,
    ) {
    }

    /// An asynchronous copy has been issued that writes.
    pub(crate) fn observe_copy_write(
        &mut self,
        _region: &Region<'a>,
        _offsets: &Row64,
        _bytes: u32,
        _mask: u32,
    ) {
    }

    /// Groups of asynchronous copies have been closed.
    pub(crate) fn committed_copies(&mut self) {}

    /// Asynchronous copies have been waited for.
    pub(crate) fn waited_for_copies(&mut self, _pending: Option<u32>) {}

    /// There is an mbarrier now, or none any more.
    pub(crate) fn began_mbarrier(&mut self, _at: u32) {}

    /// A lane has arrived at an mbarrier.
    pub(crate) fn arrived_at_mbarrier(&mut self, _at: u32, _lane: usize, _releases: bool) {}

    /// The asynchronous copies of a lane have arrived at an mbarrier.
    pub(crate) fn copies_arrived_at_mbarrier(&mut self, _at: u32, _lane: usize) {}

    /// The phase of an mbarrier is over.
    pub(crate) fn completed_mbarrier(&mut self, _at: u32) {}

    /// A lane has seen that the phase of an mbarrier is over.
    pub(crate) fn waited_at_mbarrier(&mut self, _at: u32, _lane: usize) {}
}
