//! The routine that counts the memory traffic of an access.

use super::{Frame, answer};
use crate::check::race::{ASCENDING, ATOMIC, AccessKind, SAME, WRITE};
use crate::machine::{LANES, Row64};
use crate::memory::{Allocation, RegionKind};
use std::array::from_fn;

/// Bits of a head that say how a whole warp does an access.
const WAY: u32 = 3;

/// A [`Routine`](super::Routine).
///
/// # Safety
///
/// Native code calls it for an access that the cache of that number answers, in whose frame are the counters of the host
/// thread.
#[expect(unsafe_code, reason = "the pointers of a frame")]
pub(in super::super) unsafe extern "sysv64" fn count_access(
    frame: *mut Frame,
    pc: u32,
    head: u32,
    mask: u32,
    place: *mut u8,
    number: u32,
) -> bool {
    // SAFETY: native code passes the frame that it was entered with, and waits meanwhile.
    let frame = unsafe { &mut *frame };
    answer(frame, |frame| {
        // SAFETY: there is a cache for each access. If it has an allocation, that is one of the launch, which keeps it. The
        // counters are the host thread's, which has entered native code, and used here alone.
        let (cache, allocation, counters) = unsafe {
            let cache = &*frame.caches.add(number as usize);
            (cache, (cache.allocation as *const Allocation).as_ref(), &mut *frame.counters)
        };
        let (region, first) = match allocation {
            Some(all) => {
                let address = (place as u64).wrapping_add(cache.apart);
                (RegionKind::Global(all), address.wrapping_sub(all.base))
            }
            None if cache.from_shared != 0 => {
                (RegionKind::Shared, (place as u64).wrapping_sub(frame.shared as u64))
            }
            None => return true,
        };
        let bytes = head >> 8 & 0xff;
        let offsets: Row64 = match head & WAY {
            SAME => [first; LANES],
            ASCENDING => from_fn(|lane| first + lane as u64 * u64::from(bytes)),
            _ => frame.offsets.map(|offset| first.wrapping_add(offset.into())),
        };
        let kind = match head & (WRITE | ATOMIC) {
            WRITE => AccessKind::Write,
            0 => AccessKind::Read,
            _ => AccessKind::Atomic,
        };
        counters.access((pc, kind), &region, (bytes, mask, &offsets));
        true
    })
}
