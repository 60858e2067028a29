//! Products of floating-point factors narrower than `f32`, with sums in `f32` or `f16`.
//!
//! All of it is `f64` arithmetic that happens to be exact: a product of two factors has at most 22
//! bits, scaling is by powers of two, and a block's sum of integers stays below 2^53. Eight columns
//! of a row go together, without branches, so that the compiler makes vectors of them; a caller that
//! compiles [`product`] for a wider instruction set gets wider vectors.

use super::exact::ExactSum;
use super::{Accumulation, FloatElement, Left, Size, TensorCore};
use crate::num::half::{f16_to_f32, f32_to_f16, f64_to_f32_odd};

/// Columns that are computed together.
const LANES: usize = 8;

/// The longest inner dimension, that of sparse fp8.
const MAX_K: usize = 64;

/// The canonical NaN, which every NaN becomes.
const NAN: f32 = f32::from_bits(0x7fff_ffff);

/// Stands for the exponent of zero, which no other exponent is below.
const NO_EXPONENT: f32 = -4096.0;

/// No block of products has a lower exponent, unless all of them are zero.
const LEAST_EXPONENT: f32 = -600.0;

/// The type of the sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Accumulator {
    /// Single precision.
    F32,
    /// Half precision: the result is rounded to nearest even.
    F16,
}

impl Accumulator {
    /// The nearest value of this type.
    #[inline(always)]
    pub fn round(self, value: f32) -> f32 {
        match self {
            Accumulator::F32 => value,
            Accumulator::F16 => f16_to_f32(f32_to_f16(value)),
        }
    }
}

/// How factors are multiplied and added. Both are of the same type, or both of eight bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FloatProduct {
    /// Whose additions.
    pub core: TensorCore,
    /// Type of the left factor.
    pub a: FloatElement,
    /// Type of the right factor.
    pub b: FloatElement,
    /// Type of the result.
    pub sums: Accumulator,
}

impl FloatProduct {
    /// `d = a · b + c`. `a` and `b` hold values of the factors' type, `c` values of `f32` or `f16`;
    /// `d` gets values of the result's type.
    ///
    /// # Panics
    ///
    /// If a slice is shorter than `size` says, `n` is no multiple of 8, or `k` exceeds 64.
    #[inline(always)]
    pub fn product(self, size: Size, a: Left<'_, f32>, b: &[f32], c: &[f32], d: &mut [f32]) {
        match self.core.accumulation(self.a) {
            Some(rule) => self.aligned(rule, size, a, b, c, d),
            None => self.exact(size, a, b, c, d),
        }
    }

    #[inline(always)]
    fn aligned(self, rule: Accumulation, size: Size, a: Left<'_, f32>, b: &[f32], c: &[f32], d: &mut [f32]) {
        let Size { m, n, k } = size;
        let (least_a, least_b) = (self.core.least_exponent(self.a), self.core.least_exponent(self.b));
        let kept = a.values.len() / m;
        assert!(k <= MAX_K && kept <= k && n % LANES == 0);
        let mut columns = Columns { values: [[0.0; LANES]; MAX_K], exponents: [[0.0; LANES]; MAX_K] };
        let mut row_values = [0.0; MAX_K];
        let mut row_exponents = [0.0; MAX_K];
        let mut row_columns = [0_u8; MAX_K];
        for (index, column) in row_columns.iter_mut().enumerate() {
            *column = index as u8;
        }
        for first in (0..n).step_by(LANES) {
            for (row, from) in b.chunks_exact(n).take(k).enumerate() {
                let from: &[f32; LANES] = from[first..].first_chunk().expect("n is a multiple of the lanes");
                for (lane, &value) in from.iter().enumerate() {
                    columns.values[row][lane] = f64::from(value);
                    columns.exponents[row][lane] = exponent(value, least_b);
                }
            }
            for row in 0..m {
                let from = &a.values[row * kept..][..kept];
                for (index, &value) in from.iter().enumerate() {
                    row_values[index] = f64::from(value);
                    row_exponents[index] = exponent(value, least_a);
                }
                if let Some(stands) = a.columns {
                    row_columns[..kept].copy_from_slice(&stands[row * kept..][..kept]);
                }
                let at = row * n + first;
                let mut sum: [f32; LANES] = *c[at..].first_chunk().expect("`c` is m × n");
                for start in (0..kept).step_by(rule.block) {
                    let end = (start + rule.block).min(kept);
                    let (values, exponents) = (&row_values[start..end], &row_exponents[start..end]);
                    let stands = &row_columns[start..end];
                    sum = block(rule.extra_bits, &columns, values, exponents, stands, sum);
                    if end.is_multiple_of(rule.step) || end == kept {
                        for value in &mut sum {
                            *value = self.sums.round(*value);
                        }
                    }
                }
                for (d, sum) in d[at..at + LANES].iter_mut().zip(sum) {
                    *d = if sum.is_nan() { NAN } else { sum };
                }
            }
        }
    }

    fn exact(self, size: Size, a: Left<'_, f32>, b: &[f32], c: &[f32], d: &mut [f32]) {
        let Size { m, n, .. } = size;
        let kept = a.values.len() / m;
        for row in 0..m {
            for column in 0..n {
                let mut sum = ExactSum::new(f64::from(c[row * n + column]));
                for index in row * kept..(row + 1) * kept {
                    let stands = a.columns.map_or(index - row * kept, |stands| usize::from(stands[index]));
                    sum.add(f64::from(a.values[index]) * f64::from(b[stands * n + column]));
                }
                let rounded = match self.sums {
                    Accumulator::F32 => sum.round_to_odd() as f32,
                    // Odd again: the first of two roundings must not make a tie.
                    Accumulator::F16 => self.sums.round(f64_to_f32_odd(sum.round_to_odd())),
                };
                d[row * n + column] = if rounded.is_nan() { NAN } else { rounded };
            }
        }
    }
}

/// Exponent of a factor or sum, not normalised below the least one; zeros have none. Exponents are
/// `f32`: the compiler would take the largest of integers along k, not by column.
#[inline(always)]
fn exponent(value: f32, least: i32) -> f32 {
    let field = (value.to_bits() >> 23) as i32 & 0xff;
    let exponent = (field - 127).max(least) as f32;
    if value == 0.0 { NO_EXPONENT } else { exponent }
}

/// The larger of two numbers.
#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// 2^`exponent`, for exponents of normal numbers.
#[inline(always)]
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// Eight columns of the right factor.
struct Columns {
    values: [[f64; LANES]; MAX_K],
    exponents: [[f32; LANES]; MAX_K],
}

/// One block of products of a row with eight columns, and the running values as one more term each.
#[inline(always)]
fn block(
    extra_bits: i32,
    columns: &Columns,
    values: &[f64],
    exponents: &[f32],
    stands: &[u8],
    running: [f32; LANES],
) -> [f32; LANES] {
    let mut largest = [NO_EXPONENT; LANES];
    for lane in 0..LANES {
        largest[lane] = exponent(running[lane], -126);
    }
    for (&exponent, &stands) in exponents.iter().zip(stands) {
        let others = &columns.exponents[stands as usize % MAX_K];
        for lane in 0..LANES {
            largest[lane] = larger(exponent + others[lane], largest[lane]);
        }
    }
    // Aligned terms are integers; where all terms are zero, any scale will do.
    let mut scale = [0.0; LANES];
    let mut unit = [0.0; LANES];
    for lane in 0..LANES {
        let last_bit = larger(largest[lane], LEAST_EXPONENT) as i32 - 23 - extra_bits;
        scale[lane] = power_of_two(-last_bit);
        unit[lane] = power_of_two(last_bit);
    }
    let mut sum = [0.0; LANES];
    for lane in 0..LANES {
        sum[lane] = (f64::from(running[lane]) * scale[lane]).trunc();
    }
    for (&value, &stands) in values.iter().zip(stands) {
        let others = &columns.values[stands as usize % MAX_K];
        for lane in 0..LANES {
            sum[lane] += (value * others[lane] * scale[lane]).trunc();
        }
    }
    // Toward zero: what is beyond the significant bits is cut off. NaNs and infinities stay.
    let cut = u64::MAX << (52 - (23 + extra_bits.min(0)));
    let mut result = [0.0; LANES];
    for lane in 0..LANES {
        let value = f64::from_bits((sum[lane] * unit[lane]).to_bits() & cut) + 0.0;
        result[lane] = toward_zero(value);
    }
    result
}

/// The `f32` of a value with at most 24 significant bits: infinite past the largest, and toward zero
/// where it is subnormal.
#[inline(always)]
fn toward_zero(value: f64) -> f32 {
    let nearest = value as f32;
    let away = f64::from(nearest).abs() > value.abs() && nearest.is_finite();
    f32::from_bits(nearest.to_bits() - u32::from(away))
}
