//! The routine that counts the memory traffic of an access.

use super::{Access, Frame, Routine};
use crate::check::race::{ASCENDING, ATOMIC, AccessKind, SAME, WRITE};
use crate::machine::{LANES, Row64};
use crate::memory::RegionKind;
use std::array::from_fn;

/// Bits of a head that say how a whole warp does an access.
const WAY: u32 = 3;

/// A [`Routine`].
pub(in super::super) enum CountAccess {}

impl Routine for CountAccess {
    #[expect(unsafe_code, reason = "the pointers of a frame")]
    unsafe fn goes_on(frame: &mut Frame, access: &Access) -> bool {
        // SAFETY: the counters are the host thread's, which has entered native code, and used here alone.
        let ((cache, allocation), counters) = unsafe { (access.cache(frame), &mut *frame.counters) };
        let (region, first) = match allocation {
            Some(all) => {
                let address = access.place.wrapping_add(cache.apart);
                (RegionKind::Global(all), address.wrapping_sub(all.base))
            }
            None if cache.from_shared != 0 => {
                (RegionKind::Shared, access.place.wrapping_sub(frame.shared as u64))
            }
            None => return true,
        };
        let bytes = access.bytes();
        let offsets: Row64 = match access.head & WAY {
            SAME => [first; LANES],
            ASCENDING => from_fn(|lane| first + lane as u64 * u64::from(bytes)),
            _ => frame.offsets.map(|offset| first.wrapping_add(offset.into())),
        };
        let kind = match access.head & (WRITE | ATOMIC) {
            WRITE => AccessKind::Write,
            0 => AccessKind::Read,
            _ => AccessKind::Atomic,
        };
        counters.access((access.pc, kind), &region, (bytes, access.mask, &offsets));
        true
    }
}
