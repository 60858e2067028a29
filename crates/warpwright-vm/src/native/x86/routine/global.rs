//! The routine that notes an access to global memory for the checks.

use super::{Frame, answer};
use crate::check::race::{ASCENDING, AccessKind, NON_COHERENT, Strength, Through, WRITE, WarpAccess};
use crate::machine::LANES;
use crate::memory::Allocation;

/// A [`Routine`](super::Routine).
///
/// # Safety
///
/// Native code calls it for an access that the cache of that number answers, in whose frame is what looks at accesses.
#[expect(unsafe_code, reason = "the pointers of a frame")]
pub(in super::super) unsafe extern "sysv64" fn note_global(
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
        // SAFETY: there is a cache for each access. If it is of global memory, its allocation is one of the launch, which
        // keeps it. What looks at accesses is there until native code is left, and used here alone.
        let (cache, allocation, noting) = unsafe {
            let cache = &*frame.caches.add(number as usize);
            (cache, &*(cache.allocation as *const Allocation), &mut *frame.noting)
        };
        let (bytes, element) = (head >> 8 & 0xff, head >> 16 & 0xff);
        let is_line = head & ASCENDING != 0;
        let offsets = if is_line { [0; LANES] } else { frame.offsets.map(u64::from) };
        let kind = if head & WRITE != 0 { AccessKind::Write } else { AccessKind::Read };
        let through = if head & NON_COHERENT != 0 { Through::NonCoherent } else { Through::Coherent };
        let access = WarpAccess {
            warp: frame.warp,
            mask,
            base: (place as u64).wrapping_add(cache.apart),
            offsets: &offsets,
            bytes,
            element,
            pc,
            kind,
            strength: Strength::Weak,
        };
        noting.note(allocation, (is_line, &access), through)
    })
}
