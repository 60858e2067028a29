//! Notes of accesses, and the claims of threads to words of memory. As long as no two threads meet at a word, of which one
//! writes, accesses need not be compared: they are noted, and entered in the rows when that is over.

use super::entry::lanes;
use super::{AccessKind, Scope, Strength, WarpAccess};

/// In the number of a word: it was written.
pub(super) const WROTE: u32 = 1;

/// Where the thread is in the number of a word.
pub(super) const THREAD_SHIFT: u32 = 1;

/// The number that the next lane has, less that of a lane.
pub(crate) const NEXT_LANE: u32 = 1 << THREAD_SHIFT;

/// Lanes that are noted together.
const LANES: usize = 32;
const HALF: usize = LANES / 2;

/// A note: the instruction, then [`head`], the mask, and where the first lane of each half is. Behind these, where all lanes
/// of a half are that is scattered.
pub(crate) const NOTE: usize = 5;

/// Words of a note, at most.
pub(crate) const LONGEST_NOTE: usize = NOTE + 2 * HALF;

/// How the lanes of a half are said in the head of a note, in two bits for each: all are at one place, or one behind the
/// other, or those that take part are equally far from each other, by a word behind the note. Else they are scattered.
pub(crate) const SAME: u32 = 1;
pub(crate) const ASCENDING: u32 = 2;
const STRIDED: u32 = 3;

/// What kind of access a head says: those that are no reads, whether an atomic operation is for the whole device, and
/// whether a read is not coherent.
pub(crate) const READ: u32 = 0;
pub(crate) const WRITE: u32 = 1 << 4;
pub(crate) const ATOMIC: u32 = 1 << 5;
pub(crate) const DEVICE: u32 = 1 << 6;
pub(crate) const NON_COHERENT: u32 = 1 << 7;

/// The head of a note, without its halves and the warp.
pub(crate) const fn head(kind: u32, bytes: u32, element: u32) -> u32 {
    kind | bytes << 8 | element << 16
}

/// Where the warp is in the head of a note.
pub(super) const WARP_SHIFT: u32 = 24;

/// Bytes that a lane accesses, at most, where it is noted.
pub(super) const MAX_BYTES: u32 = 32;

/// Who claims words. The number of a word says who has accessed it, and whether it was written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    /// Numbers below this one are of the past.
    pub(super) past: u32,
    /// The number of the first lane that reads, and what the next one has more: 0 where all are as one.
    pub(super) first: u32,
    pub(super) step: u32,
    /// The number of what several have read.
    pub(super) several: u32,
}

impl Claim {
    /// Enters an access, of lanes that are so far from the first word, at the words that it accesses. Writes a note, and says
    /// how long it is; `None` if threads met, of which one writes.
    #[inline(always)]
    pub(super) fn enter(
        &self,
        access: &WarpAccess<'_>,
        offsets: &[u32; 32],
        kind: u32,
        words: &mut [u32],
        note: &mut [u32],
    ) -> Option<usize> {
        let (head_words, rest) = note.split_at_mut(NOTE);
        let (mut met, mut behind, mut halves) = (false, 0, 0);
        for half in 0..2 {
            let first = half * HALF;
            let of_half = &offsets[first..][..HALF];
            let (start, bytes) = (of_half[0] as usize, access.bytes);
            head_words[3 + half] = of_half[0];
            let is_whole = access.mask >> first & 0xffff == 0xffff && kind & ATOMIC == 0;
            let way = if is_whole { way(of_half, bytes) } else { 0 };
            halves |= way << (2 * half);
            met |= match way {
                SAME => {
                    let words = &mut words[start / 4..(start + bytes as usize).div_ceil(4)];
                    kind & WRITE != 0 || self.words(words, kind, |_| self.several)
                }
                ASCENDING => {
                    let words = &mut words[start / 4..][..HALF * bytes as usize / 4];
                    self.line(words, kind, first as u32, bytes)
                }
                _ => {
                    if let Some((start, stride)) = stride(of_half, access.mask >> first & 0xffff) {
                        (head_words[3 + half], rest[behind]) = (start, stride);
                        behind += 1;
                        halves |= STRIDED << (2 * half);
                    } else {
                        rest[behind..][..HALF].copy_from_slice(of_half);
                        behind += HALF;
                    }
                    let mask = access.mask & 0xffff << first;
                    match bytes {
                        8 => self.scattered::<2>(words, kind, offsets, mask),
                        16 => self.scattered::<4>(words, kind, offsets, mask),
                        32 => self.scattered::<8>(words, kind, offsets, mask),
                        _ => self.scattered::<1>(words, kind, offsets, mask),
                    }
                }
            };
        }
        if met {
            return None;
        }
        head_words[0] = access.pc;
        head_words[1] =
            head(kind, access.bytes, access.element) | halves | u32::from(access.warp) << WARP_SHIFT;
        head_words[2] = access.mask;
        Some(NOTE + behind)
    }

    /// The same of a whole warp whose lanes are one behind the other from an offset on, with at least four bytes each.
    #[inline(always)]
    pub(super) fn enter_line(
        &self,
        access: &WarpAccess<'_>,
        start: u32,
        kind: u32,
        words: &mut [u32],
        note: &mut [u32],
    ) -> Option<usize> {
        let words = &mut words[start as usize / 4..][..LANES * access.bytes as usize / 4];
        if self.line(words, kind, 0, access.bytes) {
            return None;
        }
        let ways = ASCENDING | ASCENDING << 2 | u32::from(access.warp) << WARP_SHIFT;
        note[..NOTE].copy_from_slice(&[
            access.pc,
            head(kind, access.bytes, access.element) | ways,
            u32::MAX,
            start,
            start + HALF as u32 * access.bytes,
        ]);
        Some(NOTE)
    }

    /// The number of a lane.
    #[inline(always)]
    fn number(&self, lane: u32) -> u32 {
        self.first.wrapping_add(self.step * lane)
    }

    /// Enters lanes from one on at words, each of so many bytes.
    #[inline(always)]
    fn line(&self, words: &mut [u32], kind: u32, first: u32, bytes: u32) -> bool {
        match bytes.trailing_zeros() - 2 {
            0 => self.words(words, kind, |at| self.number(first + at as u32)),
            shift => self.words(words, kind, |at| self.number(first + (at as u32 >> shift))),
        }
    }

    /// Enters lanes of a mask, of which each accesses so many words, or part of one.
    #[inline(always)]
    fn scattered<const COUNT: usize>(
        &self,
        words: &mut [u32],
        kind: u32,
        offsets: &[u32; LANES],
        mask: u32,
    ) -> bool {
        let mut met = false;
        for lane in lanes(mask) {
            let words = &mut words[offsets[lane as usize] as usize / 4..][..COUNT];
            met |= self.words(words, kind, |_| self.number(lane));
        }
        met
    }

    /// Enters threads, by their numbers, at words: whether one meets another there, of which one writes. That word stays as it
    /// is: who enters there again meets it again.
    #[inline(always)]
    fn words(&self, words: &mut [u32], kind: u32, number: impl Fn(usize) -> u32) -> bool {
        let wrote = u32::from(kind & (WRITE | ATOMIC) != 0) * WROTE;
        let mut met = 0;
        for (at, word) in words.iter_mut().enumerate() {
            let (old, new) = (*word, number(at));
            let is_past = old < self.past;
            let is_own = (old ^ new) & !WROTE == 0;
            let meets = !is_past & !is_own & ((wrote | old) & WROTE != 0);
            met |= u32::from(meets);
            let kept = if is_own { old | wrote } else { self.several };
            let entered = if is_past { new | wrote } else { kept };
            *word = if meets { old } else { entered };
        }
        met != 0
    }
}

/// How the lanes of a half, which all take part, are said: at one place, one behind the other, or else.
#[inline(always)]
fn way(offsets: &[u32], bytes: u32) -> u32 {
    let (mut same, mut ascending) = (0, offsets[0] & (bytes - 1));
    for (lane, &offset) in (0..).zip(offsets) {
        same |= offset ^ offsets[0];
        ascending |= offset ^ (offsets[0].wrapping_add(lane * bytes));
    }
    match (same, ascending) {
        (0, _) => SAME,
        (_, 0) if matches!(bytes, 4 | 8 | 16 | 32) => ASCENDING,
        _ => 0,
    }
}

/// Where a first lane would be, and how far from each other the lanes of a mask are, if all are equally far.
#[inline(always)]
fn stride(offsets: &[u32], mask: u32) -> Option<(u32, u32)> {
    let first = (mask.trailing_zeros() as usize) % HALF;
    let from = offsets[first];
    let stride = offsets[(first + 1) % HALF].wrapping_sub(from);
    let start = from.wrapping_sub(stride.wrapping_mul(first as u32));
    let mut differs = 0;
    for (lane, &offset) in offsets.iter().enumerate() {
        let there = start.wrapping_add(stride.wrapping_mul(lane as u32));
        differs |= (offset ^ there) & (mask >> lane & 1).wrapping_neg();
    }
    (differs == 0).then_some((start, stride))
}

/// The kind of an access that may be noted: a weak one of a thread.
pub(super) fn kind(access: &WarpAccess<'_>) -> Option<u32> {
    let can_be =
        access.bytes.is_power_of_two() && access.bytes <= MAX_BYTES && access.strength == Strength::Weak;
    match access.kind {
        AccessKind::Read if can_be => Some(READ),
        AccessKind::Write if can_be => Some(WRITE),
        _ => None,
    }
}

/// What a note says.
pub(super) struct Noted {
    pub(super) offsets: [u64; 32],
    mask: u32,
    head: u32,
    pc: u32,
}

impl Noted {
    /// The first note of several, and those behind it.
    pub(super) fn read(notes: &[u32]) -> Option<(Noted, &[u32])> {
        let (&[pc, head, mask, low, high], mut left) = notes.split_first_chunk::<NOTE>()?;
        let bytes = head >> 8 & 0xff;
        let mut offsets = [0; 32];
        for (half, start) in [low, high].into_iter().enumerate() {
            let offsets = &mut offsets[half * HALF..][..HALF];
            let step = match head >> (2 * half) & 3 {
                SAME => 0,
                ASCENDING => bytes,
                STRIDED => {
                    let (stride, rest) = left.split_first()?;
                    left = rest;
                    *stride
                }
                _ => {
                    let (scattered, rest) = left.split_at(HALF);
                    left = rest;
                    // What is said of lanes that took no part is of no meaning, and must not differ.
                    for lane in lanes(mask >> (half * HALF) & 0xffff) {
                        offsets[lane as usize] = scattered[lane as usize].into();
                    }
                    continue;
                }
            };
            for lane in lanes(mask >> (half * HALF) & 0xffff) {
                offsets[lane as usize] = start.wrapping_add(lane.wrapping_mul(step)).into();
            }
        }
        Some((Noted { offsets, mask, head, pc }, left))
    }

    /// The access, from a base on.
    pub(super) fn access(&self, base: u64) -> WarpAccess<'_> {
        let Noted { offsets, mask, head, pc } = self;
        let scope = if head & DEVICE != 0 { Scope::Device } else { Scope::Block };
        let (kind, strength) = match head & (WRITE | ATOMIC) {
            READ => (AccessKind::Read, Strength::Weak),
            WRITE => (AccessKind::Write, Strength::Weak),
            _ => (AccessKind::Atomic, Strength::relaxed(scope)),
        };
        WarpAccess {
            warp: (head >> WARP_SHIFT) as u8,
            mask: *mask,
            base,
            offsets,
            bytes: head >> 8 & 0xff,
            element: head >> 16 & 0xff,
            pc: *pc,
            kind,
            strength,
        }
    }

    pub(super) fn is_non_coherent(&self) -> bool {
        self.head & NON_COHERENT != 0
    }
}
