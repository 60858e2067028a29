//! The semantics of numbers against independent ones: `rustc_apfloat` for what is rounded, exact
//! integers and the loops of the ISA for the rest.

mod approx;
mod bits;
mod convert;
mod extremum;
mod float;
mod half;
mod integer;
mod video;

use super::exact::Direction;
use rustc_apfloat::Round;

/// Every direction, with the other library's name for it.
const DIRECTIONS: [(Direction, Round); 5] = [
    (Direction::Nearest, Round::NearestTiesToEven),
    (Direction::NearestAway, Round::NearestTiesToAway),
    (Direction::Zero, Round::TowardZero),
    (Direction::Down, Round::TowardNegative),
    (Direction::Up, Round::TowardPositive),
];

/// Random bits, the same in each run (xorshift).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// Bits of a number of a format with `fraction` bits behind the point: uniform bits, values near
    /// 1, subnormal and very large ones, short fractions (which make ties), zeros, infinities, NaN.
    fn float(&mut self, width: u32, fraction: u32) -> u64 {
        let all = u64::MAX >> (64 - width);
        let bits = self.next() & all;
        let sign = bits & (1 << (width - 1));
        let exponents = (1u64 << (width - 1 - fraction)) - 1;
        let bias = exponents / 2;
        let exponent = |e: u64| sign | e << fraction | bits & ((1 << fraction) - 1);
        let short = !((1u64 << fraction.saturating_sub(4)) - 1);
        match self.below(12) {
            0..=2 => bits,
            3 | 4 => exponent(bias - 3 + self.below(7)),
            5 => exponent(bias - 1 + self.below(3)) & short,
            6 => exponent(0),
            7 => exponent(self.below(u64::from(fraction) + 4)),
            8 => exponent(exponents - 1 - self.below(3)),
            9 => exponent(bias + u64::from(fraction) / 2 - self.below(2 * u64::from(fraction)).min(bias)),
            10 => sign | [0, 1, exponents << fraction, (exponents << fraction) + 1][self.below(4) as usize],
            _ => exponent(self.below(exponents)) & short,
        }
    }

    fn f32(&mut self) -> f32 {
        f32::from_bits(self.float(32, 23) as u32)
    }

    fn f64(&mut self) -> f64 {
        f64::from_bits(self.float(64, 52))
    }

    /// An integer of few or many bits, of either sign.
    fn integer(&mut self) -> u64 {
        let bits = self.next() >> self.below(64);
        match self.below(8) {
            0 => bits.wrapping_neg(),
            1 => 0,
            2 => u64::MAX << self.below(64),
            _ => bits,
        }
    }
}
