//! The largest of many words, by counting digits.

use warpwright_ptx::dsl::{K, Pred, Ptr, Reg, Shared};
use warpwright_ptx::ir::Scope;

/// A digit of words: its lowest bit and its number of bits.
pub(super) type Digit = (u32, u32);

/// The digits of 32 bits.
pub(super) const WORD: &[Digit] = &[(21, 11), (10, 11), (0, 10)];
/// The digits of 21 bits.
pub(super) const SHORT: &[Digit] = &[(10, 11), (0, 10)];

const BINS: u32 = 1 << 11;

/// Where a block of a power of two threads counts digits.
#[derive(Clone, Copy)]
pub(super) struct Radix<'k> {
    k: K<'k>,
    threads: u32,
    counts: Ptr<'k, Shared, u32>,
    found: Ptr<'k, Shared, u32>,
}

impl<'k> Radix<'k> {
    #[track_caller]
    pub(super) fn new(k: K<'k>, threads: u32) -> Self {
        Radix { k, threads, counts: k.shared(BINS), found: k.shared(4) }
    }

    /// Finds the word that is `wanted`-th from the top, from 1 up to the number of candidates, among `n`. `word`
    /// says whether number `i` is a candidate, and its word. Yields that word, how many like it are among the
    /// `wanted`, and how many like it there are.
    ///
    /// From the highest digit down, all words with the digits that were found are counted by their next
    /// digit. All threads of the block take part.
    #[track_caller]
    pub(super) fn select(
        self,
        digits: &[Digit],
        n: u32,
        wanted: Reg<'k, u32>,
        word: impl Fn(Reg<'k, u32>) -> (Reg<'k, Pred>, Reg<'k, u32>),
    ) -> [Reg<'k, u32>; 3] {
        let Radix { k, counts, found, .. } = self;
        let start = [k.u32(0), wanted, k.u32(0)];
        digits.iter().enumerate().fold(start, |[prefix, wanted, _], (number, &(shift, bits))| {
            let bins = 1 << bits;
            k.each(k.strided(bins), |bin| counts.st(bin, 0));
            k.sync();
            k.each(k.strided(n).unroll(4), |i| {
                let (candidate, word) = word(i);
                let counted =
                    if number == 0 { candidate } else { candidate & (word >> (shift + bits)).eq(prefix) };
                k.when(counted, || counts.relaxed(Scope::Cta).reduce_add((word >> shift) & (bins - 1), 1));
            });
            k.sync();
            // Each thread has some bins side by side, those of the first the highest.
            let share = bins.div_ceil(self.threads);
            let bin = |i| k.u32(bins - 1) - (k.tid() * share + i);
            let there = k.tid().lt(bins / share);
            let own: Vec<_> = (0..share).map(|i| counts.ld_if(there, bin(i), 0)).collect();
            let sum = own.iter().fold(k.u32(0), |sum, &count| sum + count);
            let [up_to, _] = k.block_scan(sum);
            (0..share).zip(own).fold(up_to - sum, |above, (i, count)| {
                k.when(above.lt(wanted) & (above + count).ge(wanted), || {
                    found.st(0, bin(i));
                    found.st(1, wanted - above);
                    found.st(2, count);
                });
                above + count
            });
            k.sync();
            [(prefix << bits) | found.ld(0), found.ld(1), found.ld(2)]
        })
    }
}
