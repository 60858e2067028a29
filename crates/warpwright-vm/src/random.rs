//! Pseudo-random numbers from a seed, for reproducible schedules.

/// A generator of pseudo-random numbers: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// A stride that visits all of `count` things.
    pub(crate) fn coprime(&mut self, count: u64) -> u64 {
        let gcd = |mut a: u64, mut b: u64| {
            while b != 0 {
                (a, b) = (b, a % b);
            }
            a
        };
        loop {
            let stride = 1 + self.below(count);
            if gcd(stride, count) == 1 {
                return stride;
            }
        }
    }

    /// A length of time, at most `most`, short ones as likely as long ones.
    pub(crate) fn slice(&mut self, max: u32) -> u32 {
        let bits = 32 - max.leading_zeros();
        let bound = 1u64 << self.below(bits.into());
        1 + self.below(bound.max(2).min(max.into())) as u32
    }
}
