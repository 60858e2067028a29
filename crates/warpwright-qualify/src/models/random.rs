//! Random numbers that are the same every time: SplitMix64 (Steele, Lea and Flood 2014).

/// A source of random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// Those of a seed that belong to a name.
    pub fn named(seed: u64, name: &str) -> Self {
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let mut random = Random(name.bytes().fold(0xcbf2_9ce4_8422_2325, mix) ^ seed.rotate_left(17));
        random.bits();
        random
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A whole number below `end`.
    pub fn below(&mut self, end: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(end)) >> 32) as u32
    }

    /// One of these.
    pub fn of<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u32) as usize].clone()
    }

    /// True once in so many times.
    pub fn once_in(&mut self, times: u32) -> bool {
        self.below(times) == 0
    }

    /// A number in (-1, 1).
    pub fn signed(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}
