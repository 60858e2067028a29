//! Radix selection without sorting: finds how far down from the top of many words a number of words, or a share of
//! their weight, reaches.

use super::logits::Logits;
use warpwright_dsl::{AtomicAdd, K, Pred, Ptr, Reg, Scan, Shared};
use warpwright_ptx::ir::Scope;

/// A digit of words: its lowest bit and its number of bits.
pub(super) type Digit = (u32, u32);

/// The digits of 32 bits.
pub(super) const WORD: &[Digit] = &[(21, 11), (10, 11), (0, 10)];
/// The digits of 21 bits.
pub(super) const SHORT: &[Digit] = &[(10, 11), (0, 10)];

const BINS: u32 = 1 << 11;

/// What words weigh: their sums are exact, and do not depend on the order.
pub(super) trait Weight: Scan + AtomicAdd {
    fn zero(k: K<'_>) -> Reg<'_, Self>;
}

impl Weight for u32 {
    fn zero(k: K<'_>) -> Reg<'_, u32> {
        k.u32(0)
    }
}

impl Weight for u64 {
    fn zero(k: K<'_>) -> Reg<'_, u64> {
        k.u64(0)
    }
}

/// Where a block of a power of two threads adds up digits.
#[derive(Clone, Copy)]
pub(super) struct Radix<'k, W> {
    k: K<'k>,
    threads: u32,
    sums: Ptr<'k, Shared, W>,
    digit: Ptr<'k, Shared, u32>,
    found: Ptr<'k, Shared, W>,
}

/// The selected word, and the position of the cutoff among equal words.
pub(super) struct Selection<'k, W> {
    pub(super) word: Reg<'k, u32>,
    /// The weight wanted of the words equal to it.
    pub(super) wanted: Reg<'k, W>,
    /// The total weight of the words equal to it.
    pub(super) there: Reg<'k, W>,
}

impl<'k, W: Weight> Radix<'k, W> {
    #[track_caller]
    pub(super) fn new(k: K<'k>, threads: u32) -> Self {
        Radix { k, threads, sums: k.shared(BINS), digit: k.shared(1), found: k.shared(2) }
    }

    /// Goes down from the largest word until what it has passed weighs at least what is `wanted`, which is more
    /// than zero, of the total weight. `word` says of a logit, after its index, whether it takes part, its word
    /// and its weight. If all weigh less, the selected word is zero.
    ///
    /// From the highest digit down, all words with the digits that were found are added up by their next
    /// digit. All threads of the block take part.
    #[track_caller]
    pub(super) fn select(
        self,
        digits: &[Digit],
        logits: Logits<'k>,
        wanted: impl Fn(Reg<'k, W>) -> Reg<'k, W>,
        word: impl Fn(Reg<'k, u32>, Reg<'k, f32>) -> (Reg<'k, Pred>, Reg<'k, u32>, Reg<'k, W>),
    ) -> Selection<'k, W> {
        let Radix { k, sums, digit, found, .. } = self;
        let zero = W::zero(k);
        let start = Selection { word: k.u32(0), wanted: zero, there: zero };
        digits.iter().enumerate().fold(
            start,
            |Selection { word: prefix, wanted: left, .. }, (number, &(shift, bits))| {
                let bins = 1 << bits;
                k.each(k.strided(bins), |bin| sums.st(bin, zero));
                k.sync();
                k.when(k.tid().eq(0), || {
                    digit.st(0, 0);
                    found.st(0, zero);
                    found.st(1, zero);
                });
                logits.each(4, |i, x| {
                    let (candidate, word, weight) = word(i, x);
                    let added =
                        if number == 0 { candidate } else { candidate & (word >> (shift + bits)).eq(prefix) };
                    k.when(added, || {
                        sums.relaxed(Scope::Cta).reduce_add((word >> shift) & (bins - 1), weight)
                    });
                });
                k.sync();
                // Each thread has some bins side by side, those of the first the highest.
                let share = bins.div_ceil(self.threads);
                let bin = |i| k.u32(bins - 1) - (k.tid() * share + i);
                let there = k.tid().lt(bins / share);
                let own: Vec<_> = (0..share).map(|i| sums.ld_if(there, bin(i), zero)).collect();
                let sum = own.iter().fold(zero, |sum, &weight| sum + weight);
                let [up_to, total] = k.block_scan(sum);
                let wanted = if number == 0 { wanted(total) } else { left };
                (0..share).zip(own).fold(up_to - sum, |above, (i, weight)| {
                    k.when(above.lt(wanted) & (above + weight).ge(wanted), || {
                        digit.st(0, bin(i));
                        found.st(0, wanted - above);
                        found.st(1, weight);
                    });
                    above + weight
                });
                k.sync();
                Selection { word: (prefix << bits) | digit.ld(0), wanted: found.ld(0), there: found.ld(1) }
            },
        )
    }
}
