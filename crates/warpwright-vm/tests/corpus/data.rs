//! Inputs from a seed, and numbers as bytes: what references and kernels share is the format alone.
//!
//! The narrow float formats are written here once more, apart from the virtual GPU's own, so that an
//! error there cannot hide.

/// A small generator (xorshift64*); a test's inputs depend on its seed only.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn u32(&mut self) -> u32 {
        (self.u64() >> 32) as u32
    }

    /// An integer of `low..high`.
    pub(crate) fn int(&mut self, low: i64, high: i64) -> i64 {
        low + (self.u64() % (high - low) as u64) as i64
    }

    /// A number of `low..high`.
    pub(crate) fn f64(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn f32s(&mut self, n: usize, low: f64, high: f64) -> Vec<f32> {
        (0..n).map(|_| self.f64(low, high) as f32).collect()
    }

    pub(crate) fn f64s(&mut self, n: usize, low: f64, high: f64) -> Vec<f64> {
        (0..n).map(|_| self.f64(low, high)).collect()
    }

    /// Bits of numbers of a narrow format.
    pub(crate) fn narrow(&mut self, format: Format, n: usize, low: f64, high: f64) -> Vec<u16> {
        (0..n).map(|_| format.bits(self.f64(low, high)) as u16).collect()
    }

    pub(crate) fn ints(&mut self, n: usize, low: i64, high: i64) -> Vec<i32> {
        (0..n).map(|_| self.int(low, high) as i32).collect()
    }

    pub(crate) fn u32s(&mut self, n: usize) -> Vec<u32> {
        (0..n).map(|_| self.u32()).collect()
    }

    pub(crate) fn u64s(&mut self, n: usize) -> Vec<u64> {
        (0..n).map(|_| self.u64()).collect()
    }

    pub(crate) fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.u32() as u8).collect()
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.int(0, i as i64 + 1) as usize);
        }
    }
}

/// A number as it lies in memory.
pub(crate) trait Number: Copy {
    fn put(self, into: &mut Vec<u8>);
    fn get(from: &[u8]) -> Self;
    const SIZE: usize;
}

macro_rules! numbers {
    ($($t:ty),*) => {$(
        impl Number for $t {
            fn put(self, into: &mut Vec<u8>) {
                into.extend(self.to_le_bytes());
            }

            fn get(from: &[u8]) -> Self {
                Self::from_le_bytes(from.try_into().expect("a chunk of the type's size"))
            }

            const SIZE: usize = size_of::<$t>();
        }
    )*};
}
numbers!(u8, i8, u16, i16, u32, i32, u64, i64, u128, i128, f32, f64);

impl<T: Number, const N: usize> Number for [T; N] {
    fn put(self, into: &mut Vec<u8>) {
        self.into_iter().for_each(|x| x.put(into));
    }

    fn get(from: &[u8]) -> Self {
        std::array::from_fn(|i| T::get(&from[i * T::SIZE..][..T::SIZE]))
    }

    const SIZE: usize = N * T::SIZE;
}

pub(crate) fn bytes<T: Number>(numbers: &[T]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(numbers.len() * T::SIZE);
    numbers.iter().for_each(|number| number.put(&mut bytes));
    bytes
}

pub(crate) fn numbers<T: Number>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(T::SIZE).map(T::get).collect()
}

/// A binary floating-point format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    F64,
    F32,
    F16,
    Bf16,
    E4m3,
    E5m2,
    /// Of six bits.
    E2m3,
    /// Of four bits.
    E2m1,
}

impl Format {
    pub(crate) fn size(self) -> usize {
        match self {
            Format::F64 => 8,
            Format::F32 => 4,
            Format::F16 | Format::Bf16 => 2,
            Format::E4m3 | Format::E5m2 | Format::E2m3 | Format::E2m1 => 1,
        }
    }

    /// Bits of the exponent and of the fraction.
    fn widths(self) -> (u32, u32) {
        match self {
            Format::F64 => (11, 52),
            Format::F32 => (8, 23),
            Format::F16 => (5, 10),
            Format::Bf16 => (8, 7),
            Format::E4m3 => (4, 3),
            Format::E5m2 => (5, 2),
            Format::E2m3 => (2, 3),
            Format::E2m1 => (2, 1),
        }
    }

    /// Half the distance from 1 to the next number: the relative error of one rounding.
    pub(crate) fn unit(self) -> f64 {
        (-(f64::from(self.widths().1) + 1.0)).exp2()
    }

    /// The number that bits mean.
    pub(crate) fn value(self, bits: u64) -> f64 {
        let (exponent_bits, fraction_bits) = self.widths();
        let bias = (1 << (exponent_bits - 1)) - 1;
        let exponent = (bits >> fraction_bits) as i32 & ((1 << exponent_bits) - 1);
        let fraction = (bits & ((1 << fraction_bits) - 1)) as f64 / (1u64 << fraction_bits) as f64;
        let sign = if bits >> (exponent_bits + fraction_bits) & 1 == 1 { -1.0 } else { 1.0 };
        let top = exponent == (1 << exponent_bits) - 1;
        let all = bits & ((1 << fraction_bits) - 1) == (1 << fraction_bits) - 1;
        match self {
            Format::E4m3 if top && all => f64::NAN,
            Format::E4m3 | Format::E2m3 | Format::E2m1 => Self::scaled(sign, exponent, fraction, bias),
            _ if top && fraction == 0.0 => sign * f64::INFINITY,
            _ if top => f64::NAN,
            _ => Self::scaled(sign, exponent, fraction, bias),
        }
    }

    fn scaled(sign: f64, exponent: i32, fraction: f64, bias: i32) -> f64 {
        match exponent {
            0 => sign * fraction * f64::from(1 - bias).exp2(),
            _ => sign * (1.0 + fraction) * f64::from(exponent - bias).exp2(),
        }
    }

    /// The bits of the nearest number, ties to even. What is too large is infinite, or the largest
    /// finite number in the eight-bit formats, as kernels convert to those with `.satfinite`.
    pub(crate) fn bits(self, x: f64) -> u64 {
        match self {
            Format::F64 => return x.to_bits(),
            Format::F32 => return u64::from((x as f32).to_bits()),
            _ => {}
        }
        let (exponent_bits, fraction_bits) = self.widths();
        let bias = (1 << (exponent_bits - 1)) - 1;
        let sign = u64::from(x.is_sign_negative()) << (exponent_bits + fraction_bits);
        let (largest, nan) = match self {
            Format::F16 => (0x7c00, 0x7fff),
            Format::Bf16 => (0x7f80, 0x7fff),
            Format::E4m3 => (0x7e, 0x7f),
            Format::E2m3 => (0x1f, 0x1f),
            Format::E2m1 => (7, 7),
            _ => (0x7b, 0x7f),
        };
        if x.is_nan() {
            return nan;
        }
        let size = x.abs();
        if size.is_infinite() {
            return sign | largest;
        }
        let exponent = ((size.to_bits() >> 52) as i32 - 1023).max(1 - bias);
        let steps = (size * f64::from(fraction_bits as i32 - exponent).exp2()).round_ties_even() as u64;
        // The hidden one of a normal number carries into the exponent field.
        let bits = ((exponent + bias - 1) as u64) * (1 << fraction_bits) + steps;
        sign | bits.min(largest)
    }

    /// The bits of a number that is rounded by `random`, of `n` bits: away from zero if with it what is cut off makes a
    /// whole.
    pub(crate) fn bits_at_random(self, x: f64, random: u32, n: i32) -> u64 {
        let (exponent_bits, fraction_bits) = self.widths();
        let bias = (1 << (exponent_bits - 1)) - 1;
        let exponent = ((x.abs().to_bits() >> 52) as i32 - 1023).max(1 - bias);
        let step = f64::from(exponent - fraction_bits as i32).exp2();
        let parts = (x.abs() / step * f64::from(n).exp2()).floor() + f64::from(random);
        self.bits(((parts / f64::from(n).exp2()).floor() * step).copysign(x))
    }

    /// The nearest number of this format.
    pub(crate) fn round(self, x: f64) -> f64 {
        self.value(self.bits(x))
    }

    pub(crate) fn load(self, memory: &[u8]) -> Vec<f64> {
        let size = self.size();
        let bits = |chunk: &[u8]| chunk.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
        memory.chunks_exact(size).map(|chunk| self.value(bits(chunk))).collect()
    }

    /// Bytes of numbers, rounded to this format.
    pub(crate) fn store(self, numbers: &[f64]) -> Vec<u8> {
        numbers.iter().flat_map(|&x| self.bits(x).to_le_bytes().into_iter().take(self.size())).collect()
    }
}

#[test]
fn narrow_formats_round_trip() {
    for format in [Format::F16, Format::Bf16, Format::E4m3, Format::E5m2] {
        let top = 1u64 << (8 * format.size());
        for bits in 0..top {
            let x = format.value(bits);
            if x.is_finite() {
                assert_eq!(format.bits(x), bits, "{format:?} {x}");
            }
        }
    }
    assert_eq!(Format::F16.round(2049.0), 2048.0, "ties go to even");
    assert_eq!(Format::F16.round(65520.0), f64::INFINITY);
    assert_eq!(Format::E4m3.round(1000.0), 448.0);
    assert_eq!(Format::E5m2.round(1e9), 57344.0);
}
