//! Tracks which bytes were written, one bit each.
//!
//! A read of shared or global memory is a finding if any of its bytes was never written. What a thread loads from its
//! local memory is followed instead, see [`undefined`](super::undefined).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Bits of a word.
const BITS: u64 = 64;

/// Calls `each` with the words that hold the bits of a range, and with those bits, until it returns false.
#[inline(always)]
fn words(offset: u64, bytes: u64, mut each: impl FnMut(usize, u64) -> bool) -> bool {
    let end = offset + bytes;
    let mut at = offset;
    while at < end {
        let word = at / BITS;
        let stop = end.min((word + 1) * BITS);
        let bits = (u64::MAX >> (BITS - (stop - at))) << (at % BITS);
        if !each(word as usize, bits) {
            return false;
        }
        at = stop;
    }
    true
}

/// Which bytes of some memory were written.
pub(super) trait Written {
    /// Whether it is known that all were.
    fn is_all(&self) -> bool;

    /// Whether all of these bytes were written.
    fn is_set(&self, offset: u64, bytes: u64) -> bool;

    /// Bytes are written. They are inside.
    fn set(&mut self, offset: u64, bytes: u64);
}

/// Memory that one host thread uses at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct InitBits {
    words: Vec<u64>,
    /// Bytes that were not written yet.
    missing: u64,
}

impl InitBits {
    /// Makes it that many bytes, none of them written.
    pub(crate) fn reset(&mut self, bytes: u64) {
        self.words.clear();
        self.words.resize(bytes.div_ceil(BITS) as usize, 0);
        self.missing = bytes;
    }

    /// The bits, where not all bytes are known to be written.
    pub(crate) fn bits(&self) -> Option<&[u64]> {
        (self.missing != 0).then_some(&self.words)
    }

    /// Bytes mean nothing any more. They are inside.
    pub(crate) fn clear(&mut self, offset: u64, bytes: u64) {
        words(offset, bytes, |word, bits| {
            let word = &mut self.words[word];
            self.missing += u64::from((bits & *word).count_ones());
            *word &= !bits;
            true
        });
    }
}

impl Written for InitBits {
    #[inline(always)]
    fn is_all(&self) -> bool {
        self.missing == 0
    }

    #[inline]
    fn set(&mut self, offset: u64, bytes: u64) {
        words(offset, bytes, |word, bits| {
            let word = &mut self.words[word];
            self.missing -= u64::from((bits & !*word).count_ones());
            *word |= bits;
            true
        });
    }

    #[inline]
    fn is_set(&self, offset: u64, bytes: u64) -> bool {
        words(offset, bytes, |word, bits| self.words[word] & bits == bits)
    }
}

/// Memory that several host threads use at once.
#[derive(Debug, Default)]
pub(crate) struct SharedInitBits {
    /// Made when a part is written; before that nothing is, or all.
    words: OnceLock<Box<[AtomicU64]>>,
    bytes: u64,
    /// All of it is written, and the words say nothing.
    all: AtomicBool,
}

impl SharedInitBits {
    /// That many bytes, none of them written.
    pub(crate) fn new(bytes: u64) -> Self {
        SharedInitBits { words: OnceLock::new(), bytes, all: AtomicBool::new(false) }
    }

    /// Memory that is always all written.
    pub(crate) fn written() -> Self {
        SharedInitBits { words: OnceLock::new(), bytes: 0, all: AtomicBool::new(true) }
    }

    fn words(&self) -> &[AtomicU64] {
        self.words.get_or_init(|| (0..self.bytes.div_ceil(BITS)).map(|_| AtomicU64::new(0)).collect())
    }

    /// All bytes are written.
    pub(crate) fn set_all(&self) {
        self.all.store(true, Relaxed);
    }

    /// Whether all bytes were written at once.
    #[inline]
    pub(crate) fn is_all(&self) -> bool {
        self.all.load(Relaxed)
    }

    /// Bytes are written. They are inside.
    #[inline]
    pub(crate) fn set(&self, offset: u64, bytes: u64) {
        if self.is_all() {
            return;
        }
        let all = self.words();
        words(offset, bytes, |word, bits| {
            let word = &all[word];
            if word.load(Relaxed) & bits != bits {
                word.fetch_or(bits, Relaxed);
            }
            true
        });
    }

    /// No byte is written any more, unless all always are. No kernel is running.
    pub(crate) fn clear_all(&self) {
        if self.bytes == 0 {
            return;
        }
        if let Some(words) = self.words.get() {
            words.iter().for_each(|word| word.store(0, Relaxed));
        }
        self.all.store(false, Relaxed);
    }

    /// These bytes are written where those of another memory are. No kernel is running.
    pub(crate) fn set_like(&self, offset: u64, other: &Self, from: u64, bytes: u64) {
        if self.bytes == 0 || other.is_set(from, bytes) {
            return self.set(offset, bytes);
        }
        if self.is_all() {
            self.words().iter().for_each(|word| word.store(u64::MAX, Relaxed));
            self.all.store(false, Relaxed);
        }
        // What is copied is mostly written in large pieces.
        let mut at = 0;
        while at < bytes {
            let piece = BITS.min(bytes - at);
            if other.is_set(from + at, piece) {
                self.set(offset + at, piece);
            } else {
                for byte in at..at + piece {
                    if other.is_set(from + byte, 1) {
                        self.set(offset + byte, 1);
                    } else {
                        self.clear(offset + byte, 1);
                    }
                }
            }
            at += piece;
        }
    }

    /// Bytes mean nothing any more.
    pub(crate) fn clear(&self, offset: u64, bytes: u64) {
        let Some(all) = self.words.get() else { return };
        words(offset, bytes, |word, bits| {
            all[word].fetch_and(!bits, Relaxed);
            true
        });
    }

    /// Whether all of these bytes were written.
    #[inline]
    pub(crate) fn is_set(&self, offset: u64, bytes: u64) -> bool {
        let all = self.words.get();
        self.is_all()
            || words(offset, bytes, |word, bits| {
                all.is_some_and(|all| all[word].load(Relaxed) & bits == bits)
            })
    }
}

impl Written for &SharedInitBits {
    #[inline]
    fn is_all(&self) -> bool {
        SharedInitBits::is_all(self)
    }

    #[inline]
    fn is_set(&self, offset: u64, bytes: u64) -> bool {
        SharedInitBits::is_set(self, offset, bytes)
    }

    #[inline]
    fn set(&mut self, offset: u64, bytes: u64) {
        SharedInitBits::set(self, offset, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_ranges_across_words() {
        let mut plain = InitBits::default();
        plain.reset(300);
        let shared = SharedInitBits::new(300);
        for (offset, bytes) in [(3, 1), (60, 8), (128, 64), (199, 101)] {
            assert!(!plain.is_set(offset, bytes) && !shared.is_set(offset, bytes));
            plain.set(offset, bytes);
            shared.set(offset, bytes);
            assert!(plain.is_set(offset, bytes) && shared.is_set(offset, bytes));
        }
        for (offset, bytes, set) in
            [(2, 2, false), (3, 1, true), (68, 1, false), (127, 2, false), (130, 60, true)]
        {
            assert_eq!(
                (plain.is_set(offset, bytes), shared.is_set(offset, bytes)),
                (set, set),
                "{offset}+{bytes}"
            );
        }
        shared.clear(140, 1);
        assert!(!shared.is_set(130, 60) && shared.is_set(141, 40));
        shared.set_all();
        assert!(shared.is_set(0, 300));
    }

    #[test]
    fn all_is_written_when_the_last_byte_is() {
        let mut bits = InitBits::default();
        bits.reset(300);
        bits.set(0, 200);
        bits.set(100, 199);
        assert!(!bits.is_all());
        bits.set(250, 50);
        assert!(bits.is_all());
        bits.reset(300);
        assert!(!bits.is_all() && !bits.is_set(0, 1));
    }
}
