//! The routine that notes an access to shared memory for the race check, and asks whether what it accesses was written. Where
//! checks would do more than that, the access is the interpreter's.

use super::{Access, Frame, Routine};
use crate::check::race::{ASCENDING, ATOMIC, AccessKind, LONGEST_NOTE, Strength, WRITE, WarpAccess};
use crate::machine::LANES;
use crate::simd::Level;

/// A [`Routine`].
pub(in super::super) enum NoteShared {}

impl Routine for NoteShared {
    #[expect(unsafe_code, reason = "the pointers of a frame")]
    unsafe fn goes_on(frame: &mut Frame, access: &Access) -> bool {
        let Access { pc, head, mask, place, .. } = *access;
        let notes = &mut frame.notes;
        if notes.next >= notes.end || head & ATOMIC != 0 && notes.combined == 0 {
            return false;
        }
        // SAFETY: there is room for a note from `next` on, if it is before `end`; there is a number for each word of shared
        // memory. Nothing else has them while native code runs; nor has it what looks at accesses.
        let (words, note, noting) = unsafe {
            let words =
                std::slice::from_raw_parts_mut(notes.words, (frame.shared_bytes as usize).div_ceil(4));
            let note = std::slice::from_raw_parts_mut(notes.next, LONGEST_NOTE);
            (words, note, &mut *frame.noting)
        };
        let start = place.wrapping_sub(frame.shared as u64) as u32;
        let (bytes, is_line) = (access.bytes(), head & ASCENDING != 0);
        let noted = WarpAccess {
            warp: frame.warp,
            mask,
            base: 0,
            // Where lanes are is said beside it.
            offsets: &[0; LANES],
            bytes,
            element: access.element(),
            pc,
            kind: AccessKind::Read,
            strength: Strength::Weak,
        };
        Level::detect().run(
            #[inline(always)]
            || {
                let offsets =
                    if is_line { [start; LANES] } else { frame.offsets.map(|offset| start + offset) };
                let places = (is_line, &offsets);
                let writes = head & WRITE != 0;
                let is_noted = (writes || noting.shared.are_written(&noted, places))
                    && notes.enter(&noted, places, head, words, note);
                if is_noted && writes {
                    noting.shared.write(&noted, places);
                }
                is_noted
            },
        )
    }
}
