//! The routine that notes an access to global memory for the checks.

use super::{Access, Frame, Routine};
use crate::check::race::{ASCENDING, AccessKind, NON_COHERENT, Strength, Through, WRITE, WarpAccess};
use crate::machine::LANES;

/// A [`Routine`].
pub(in super::super) enum NoteGlobal {}

impl Routine for NoteGlobal {
    #[expect(unsafe_code, reason = "the pointers of a frame")]
    unsafe fn goes_on(frame: &mut Frame, access: &Access) -> bool {
        // SAFETY: what looks at accesses is there until native code is left, and used here alone.
        let ((cache, allocation), noting) = unsafe { (access.cache(frame), &mut *frame.noting) };
        let Some(allocation) = allocation else { return false };
        let Access { pc, head, mask, place, .. } = *access;
        let is_line = head & ASCENDING != 0;
        let offsets = if is_line { [0; LANES] } else { frame.offsets.map(u64::from) };
        let kind = if head & WRITE != 0 { AccessKind::Write } else { AccessKind::Read };
        let through = if head & NON_COHERENT != 0 { Through::NonCoherent } else { Through::Coherent };
        let noted = WarpAccess {
            warp: frame.warp,
            mask,
            base: place.wrapping_add(cache.apart),
            offsets: &offsets,
            bytes: access.bytes(),
            element: access.element(),
            pc,
            kind,
            strength: Strength::Weak,
        };
        noting.note(allocation, (is_line, &noted), through)
    }
}
