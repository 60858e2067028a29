//! Accesses through the asynchronous and the tensormap proxy, and writes that they may meet.

use super::FindingKind;
use super::observe::pair;
use super::race::{AccessKind, BlockRaces, Race, RaceSpace, WarpAccess};
use crate::launch::Launch;
use crate::memory::SpaceKind;

/// Looks at an access that is about to be recorded, of global memory, or of shared memory that begins at a `base` among
/// its addresses: 0 where that belongs to one block.
pub(super) fn look_for_proxies(
    launch: &Launch,
    races: &mut BlockRaces,
    kind: AccessKind,
    access: &WarpAccess<'_>,
    base: Option<u64>,
) {
    let written = (base != Some(0)).then_some(&launch.races);
    if !kind.is_of_other_proxy() {
        if kind.is_write() {
            races.wrote(written, access);
        }
        return;
    }
    let space = if base.is_none() { RaceSpace::Global } else { RaceSpace::Shared };
    let Some((missing, first, second, address)) = races.accessed_by_proxy(written, access, space) else {
        return;
    };
    let (address, place) = match base {
        None => (address, SpaceKind::Global),
        Some(base) => (launch.shape.shared_address(address - base), SpaceKind::Shared),
    };
    let race = Race { space, address, first, second, same_value: false };
    launch.findings.add(pair(FindingKind::ProxyFence { space: place, missing }, place, &race));
}
