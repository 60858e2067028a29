//! The routine that notes an access to shared memory for the race check, and asks whether what it accesses was written. Where
//! checks would do more than that, the access is the interpreter's.

use super::{Frame, answer};
use crate::check::race::{ASCENDING, ATOMIC, AccessKind, LONGEST_NOTE, Strength, WRITE, WarpAccess};
use crate::machine::LANES;
use crate::simd::Level;

/// A [`Routine`](super::Routine).
///
/// # Safety
///
/// Native code calls it, in whose frame there is room for notes, and numbers of words, as `next` and `end` say; and what looks
/// at accesses.
#[expect(unsafe_code, reason = "the pointers of a frame")]
pub(in super::super) unsafe extern "sysv64" fn note_shared(
    frame: *mut Frame,
    pc: u32,
    head: u32,
    mask: u32,
    place: *mut u8,
    _: u32,
) -> bool {
    // SAFETY: native code passes the frame that it was entered with, and waits meanwhile.
    let frame = unsafe { &mut *frame };
    answer(frame, |frame| {
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
        let start = (place as u64).wrapping_sub(frame.shared as u64) as u32;
        let (bytes, is_line) = (head >> 8 & 0xff, head & ASCENDING != 0);
        let access = WarpAccess {
            warp: frame.warp,
            mask,
            base: 0,
            // Where lanes are is said beside it.
            offsets: &[0; LANES],
            bytes,
            element: head >> 16 & 0xff,
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
                let is_noted = (writes || noting.shared.are_written(&access, places))
                    && notes.enter(&access, places, head, words, note);
                if is_noted && writes {
                    noting.shared.write(&access, places);
                }
                is_noted
            },
        )
    })
}
