//! Products of floating-point factors narrower than `f32`, with sums in `f32` or `f16`.
//!
//! All of it is `f64` arithmetic that is exact by construction: a product of two factors has at most 22 bits, scaling
//! is by powers of two, and a block's sum of integers stays below 2^53. Eight columns of a row are processed
//! together, without branches, so that the compiler vectorises them; a caller that compiles
//! [`product`](FloatProduct::product) or [`tile`] for a wider instruction set gets wider vectors.

use super::exact::ExactSum;
use super::{Accumulation, FloatElement, Left, Size, TensorCore};
use crate::num::half::{f16_to_f32, f32_to_f16, f64_to_f32_odd};

/// Columns that are computed together.
pub(crate) const LANES: usize = 8;

/// The longest inner dimension, that of sparse fp8.
const MAX_K: usize = 64;

/// Most blocks that k is cut into by scales.
const MAX_BLOCKS: usize = 6;

/// The canonical NaN, which every NaN becomes.
pub(super) const NAN: f32 = f32::from_bits(0x7fff_ffff);

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

/// Scales of the blocks that k is cut into, all of the same size.
#[derive(Clone, Copy, Debug)]
pub struct Scales<'a> {
    /// Number of blocks.
    pub blocks: usize,
    /// Of the left factor: m × `blocks`, row-major. All have few significant bits, as of `ue8m0` and `ue4m3`.
    pub a: &'a [f64],
    /// Of the right factor: n × `blocks`, with those of a column together.
    pub b: &'a [f64],
}

/// How factors are multiplied and added. Both have the same type, or both have eight bits or fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FloatProduct {
    /// The tensor core whose additions are followed.
    pub core: TensorCore,
    /// Type of the left factor.
    pub a: FloatElement,
    /// Type of the right factor.
    pub b: FloatElement,
    /// Type of the result.
    pub sums: Accumulator,
}

impl FloatProduct {
    /// `d = a · b + c` of `mma.sync` and `wmma`. `a` and `b` hold values of the factors' types, `c` values of `f32` or
    /// `f16`; `d` receives values of the result's type. `c` has values of `f16` if the result has.
    ///
    /// # Panics
    ///
    /// If a slice is shorter than `size` requires, `n` is not a multiple of 8, `k` exceeds 64, or factors of which a
    /// core takes halves are not a multiple of 4.
    #[inline(always)]
    pub fn product(self, size: Size, a: Left<'_, f32>, b: &[f32], c: &[f32], d: &mut [f32]) {
        // If one of them is rounded once, all is.
        let rule = self.core.accumulation(self.a).and(self.core.accumulation(self.b));
        self.product_by(rule, size, a, b, c, d);
    }

    /// `d = (scales · a) · (scales · b) + c`, rounded once, of factors of eight bits or fewer.
    ///
    /// # Panics
    ///
    /// If a slice is shorter than `size` and the number of blocks require.
    pub fn scaled(
        self,
        scales: Scales<'_>,
        size: Size,
        a: Left<'_, f32>,
        b: &[f32],
        c: &[f32],
        d: &mut [f32],
    ) {
        self.rounded_once(Some(scales), size, a, b, c, d);
    }

    /// The same by a given rule, which may be that of another instruction.
    ///
    /// # Panics
    ///
    /// As [`product`](Self::product) does.
    #[inline(always)]
    pub fn product_by(
        self,
        rule: Option<Accumulation>,
        size: Size,
        a: Left<'_, f32>,
        b: &[f32],
        c: &[f32],
        d: &mut [f32],
    ) {
        match rule {
            Some(rule) => self.aligned(rule, size, a, b, c, d),
            None => self.rounded_once(None, size, a, b, c, d),
        }
    }

    #[inline(always)]
    fn aligned(self, rule: Accumulation, size: Size, a: Left<'_, f32>, b: &[f32], c: &[f32], d: &mut [f32]) {
        let Size { m, n, k } = size;
        let (least_a, least_b) = (rule.least_exponent(self.a), rule.least_exponent(self.b));
        let kept = a.values.len() / m;
        assert!(k <= MAX_K && kept <= k && n % LANES == 0);
        assert!(!rule.halved || kept.is_multiple_of(4));
        // The first of two instructions takes the first half of what `order` gives.
        let order = |index: usize| if rule.halved { halved(index, kept) } else { index };
        let part = if rule.halved { kept / 2 } else { kept };
        let (length, step) = (rule.block.min(part).max(1), rule.step.min(part).max(1));
        let mut columns = Columns { values: [[0.0; LANES]; MAX_K], exponents: [[0.0; LANES]; MAX_K] };
        let mut row_values = [0.0; MAX_K];
        let mut row_exponents = [0.0; MAX_K];
        let mut row_columns = [0_u8; MAX_K];
        for (index, column) in row_columns.iter_mut().take(kept).enumerate() {
            *column = order(index) as u8;
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
                for index in 0..kept {
                    let value = from[order(index)];
                    row_values[index] = f64::from(value);
                    row_exponents[index] = exponent(value, least_a);
                }
                if let Some(stands) = a.columns {
                    let stands = &stands[row * kept..][..kept];
                    for (index, column) in row_columns.iter_mut().take(kept).enumerate() {
                        *column = stands[order(index)];
                    }
                }
                let at = row * n + first;
                let added: [f32; LANES] = *c[at..].first_chunk().expect("`c` is m × n");
                let mut sum = if rule.halved { [0.0; LANES] } else { added };
                for start in (0..kept).step_by(length) {
                    let end = (start + length).min(kept);
                    let factors = row_values[start..end].iter().zip(&row_exponents[start..end]);
                    let terms =
                        factors.zip(&row_columns[start..end]).map(|((&value, &exponent), &column)| {
                            let column = usize::from(column) % MAX_K;
                            Term {
                                value,
                                exponent,
                                others: &columns.values[column],
                                exponents: &columns.exponents[column],
                            }
                        });
                    let from_register = start.is_multiple_of(step);
                    let to_register = end.is_multiple_of(step) || end == kept;
                    let least = match self.sums {
                        Accumulator::F16 if from_register => FloatElement::F16.least_exponent(),
                        _ => -126,
                    };
                    let (exact, unit) = block(rule.extra_bits, least, terms, sum);
                    sum = match self.sums {
                        Accumulator::F16 if to_register => nearest_half(exact, unit),
                        _ => rounded(exact, unit, rule.extra_bits),
                    };
                }
                if rule.halved {
                    for (sum, added) in sum.iter_mut().zip(added) {
                        *sum = self.sums.round(*sum + added);
                    }
                }
                for (d, sum) in d[at..at + LANES].iter_mut().zip(sum) {
                    *d = if sum.is_nan() { NAN } else { sum };
                }
            }
        }
    }

    fn rounded_once(
        self,
        scales: Option<Scales<'_>>,
        size: Size,
        a: Left<'_, f32>,
        b: &[f32],
        c: &[f32],
        d: &mut [f32],
    ) {
        let Size { m, n, k } = size;
        let kept = a.values.len() / m;
        let blocks = scales.map_or(1, |scales| scales.blocks);
        let simple = self.a.sums_exactly() && self.b.sums_exactly();
        for row in 0..m {
            for column in 0..n {
                let mut sum = ExactSum::new(f64::from(c[row * n + column]));
                let mut scaled = [1.0; MAX_BLOCKS];
                if let Some(scales) = scales {
                    let (a, b) = (&scales.a[row * blocks..], &scales.b[column * blocks..]);
                    scaled.iter_mut().zip(a.iter().zip(b)).for_each(|(scale, (a, b))| *scale = a * b);
                }
                let mut parts = [0.0; MAX_BLOCKS];
                for index in row * kept..(row + 1) * kept {
                    let stands = a.columns.map_or(index - row * kept, |stands| usize::from(stands[index]));
                    let product = f64::from(a.values[index]) * f64::from(b[stands * n + column]);
                    let block = stands * blocks / k;
                    if simple {
                        parts[block] += product;
                    } else {
                        sum.add(product * scaled[block]);
                    }
                }
                if simple {
                    parts.iter().zip(scaled).take(blocks).for_each(|(part, scale)| sum.add(part * scale));
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

/// `sums = a · b + sums` for rows of a tile and eight columns, with additions in blocks of `BLOCK`
/// factors along k, of which there are whole blocks.
///
/// Factors within a block, and columns, may stand in any order that is the same everywhere: the result
/// is the same.
#[inline(always)]
pub(crate) fn tile<const M: usize, const K: usize, const BLOCK: usize>(
    extra_bits: i32,
    a: &Factors<M, K>,
    b: &Factors<K, LANES>,
    sums: &mut [[f32; LANES]; M],
) {
    const { assert!(K.is_multiple_of(BLOCK)) };
    let (Factors { values: a_values, exponents: a_exponents }, b_values, b_exponents) =
        (a, &b.values, &b.exponents);
    // Step by step for all rows, since those do not wait for one another.
    for first in (0..K).step_by(BLOCK) {
        let mut largest = [[0.0; LANES]; M];
        for row in 0..M {
            for lane in 0..LANES {
                largest[row][lane] = exponent(sums[row][lane], -126);
            }
            for k in first..first + BLOCK {
                for lane in 0..LANES {
                    largest[row][lane] =
                        larger(a_exponents[row][k] + b_exponents[k][lane], largest[row][lane]);
                }
            }
        }
        let mut added = [[0.0; LANES]; M];
        let mut units = [[0.0; LANES]; M];
        for row in 0..M {
            let (scale, unit) = alignment(largest[row], extra_bits);
            units[row] = unit;
            // Two sums, which wait half as long for one another.
            let mut parts = [[0.0; LANES]; 2];
            for lane in 0..LANES {
                parts[0][lane] = (f64::from(sums[row][lane]) * scale[lane]).trunc();
            }
            for k in first..first + BLOCK {
                let part = &mut parts[k % 2];
                for lane in 0..LANES {
                    part[lane] += (a_values[row][k] * b_values[k][lane] * scale[lane]).trunc();
                }
            }
            for lane in 0..LANES {
                added[row][lane] = parts[0][lane] + parts[1][lane];
            }
        }
        for row in 0..M {
            sums[row] = rounded(added[row], units[row], extra_bits);
        }
    }
    for value in sums.as_flattened_mut() {
        *value = if value.is_nan() { NAN } else { *value };
    }
}

/// Factors as `f64`, and their exponents.
pub(crate) struct Factors<const M: usize, const N: usize> {
    values: [[f64; N]; M],
    exponents: [[f32; N]; M],
}

/// Prepares factors; `least` is their least exponent.
#[inline(always)]
pub(crate) fn split<const M: usize, const N: usize>(factors: &[[f32; N]; M], least: i32) -> Factors<M, N> {
    let (mut values, mut exponents) = ([[0.0; N]; M], [[0.0; N]; M]);
    for (to, &factor) in values.as_flattened_mut().iter_mut().zip(factors.as_flattened()) {
        *to = f64::from(factor);
    }
    for (to, &factor) in exponents.as_flattened_mut().iter_mut().zip(factors.as_flattened()) {
        *to = exponent(factor, least);
    }
    Factors { values, exponents }
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

/// A whole number of less than 2^22 as an integer. A cast would look for what does not fit, lane by lane.
#[inline(always)]
fn whole(value: f32) -> i32 {
    // The last bit of a sum with this is that of the ones.
    const ONES: f32 = 1.5 * (1 << 23) as f32;
    (value + ONES).to_bits().wrapping_sub(ONES.to_bits()) as i32
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

/// A factor of a row, and the ones of eight columns that it is multiplied with.
#[derive(Clone, Copy)]
struct Term<'a> {
    value: f64,
    exponent: f32,
    others: &'a [f64; LANES],
    exponents: &'a [f32; LANES],
}

/// Where element `index` stands among `kept` ones, if the lower two of each four come before the upper two.
#[inline(always)]
fn halved(index: usize, kept: usize) -> usize {
    let half = kept / 2;
    let (upper, within) = (index / half, index % half);
    4 * (within / 2) + 2 * upper + within % 2
}

/// One block of products of a row with eight columns, and the running values as one more term each: sums in units,
/// and the units. `least` is the least exponent of a running value.
#[inline(always)]
fn block<'a>(
    extra_bits: i32,
    least: i32,
    terms: impl Iterator<Item = Term<'a>> + Clone,
    running: [f32; LANES],
) -> ([f64; LANES], [f64; LANES]) {
    let mut largest = [NO_EXPONENT; LANES];
    for lane in 0..LANES {
        largest[lane] = exponent(running[lane], least);
    }
    for Term { exponent, exponents, .. } in terms.clone() {
        for lane in 0..LANES {
            largest[lane] = larger(exponent + exponents[lane], largest[lane]);
        }
    }
    let (scale, unit) = alignment(largest, extra_bits);
    let mut sum = [0.0; LANES];
    for lane in 0..LANES {
        sum[lane] = (f64::from(running[lane]) * scale[lane]).trunc();
    }
    for Term { value, others, .. } in terms {
        for lane in 0..LANES {
            sum[lane] += (value * others[lane] * scale[lane]).trunc();
        }
    }
    (sum, unit)
}

/// The factor that turns terms into integers, by their largest exponent, and its inverse. If all terms are zero, any
/// scale will do.
#[inline(always)]
fn alignment(largest: [f32; LANES], extra_bits: i32) -> ([f64; LANES], [f64; LANES]) {
    let (mut scale, mut unit) = ([0.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        let last_bit = whole(larger(largest[lane], LEAST_EXPONENT)) - 23 - extra_bits;
        scale[lane] = power_of_two(-last_bit);
        unit[lane] = power_of_two(last_bit);
    }
    (scale, unit)
}

/// Sums of integers in units. Toward zero: what is beyond the significant bits is cut off. NaNs and
/// infinities stay.
#[inline(always)]
fn rounded(sum: [f64; LANES], unit: [f64; LANES], extra_bits: i32) -> [f32; LANES] {
    let cut = u64::MAX << (52 - (23 + extra_bits.min(0)));
    let mut result = [0.0; LANES];
    for lane in 0..LANES {
        let value = f64::from_bits((sum[lane] * unit[lane]).to_bits() & cut);
        // What is too small for `f32` is +0 whatever its sign.
        result[lane] = toward_zero(value) + 0.0;
    }
    result
}

/// Sums of integers in units as the nearest values of `f16`.
#[inline(always)]
fn nearest_half(sum: [f64; LANES], unit: [f64; LANES]) -> [f32; LANES] {
    let mut result = [0.0; LANES];
    for lane in 0..LANES {
        result[lane] = Accumulator::F16.round(f64_to_f32_odd(sum[lane] * unit[lane])) + 0.0;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const M: usize = 16;
    const K: usize = 16;

    /// Factors of 16 bits near one another, of any kind, or zeros.
    fn factor(random: &mut Random, element: FloatElement) -> f32 {
        let bits = random.below(1 << 16) as u32;
        match (random.below(16), element) {
            (0, _) => element.decode(bits),
            (1 | 2, _) => 0.0,
            (_, FloatElement::F16) => element.decode(bits & 0x8fff | 0x3000),
            _ => element.decode(bits & 0x83ff | 0x3c00),
        }
    }

    /// Any sum, or one that has to do with the products.
    fn sum(random: &mut Random) -> f32 {
        match random.below(4) {
            0 => f32::from_bits(random.below(1 << 32) as u32),
            1 => 0.0,
            _ => random.below(1 << 24) as f32 / (1 << 20) as f32 - 8.0,
        }
    }

    fn compare<const BLOCK: usize>(random: &mut Random, core: TensorCore, element: FloatElement) {
        let rule = core.accumulation(element).expect("a core that adds in blocks");
        assert_eq!(rule.block, BLOCK);
        let mut a = [[0.0; K]; M];
        let mut b = [[0.0; LANES]; K];
        let mut c = [[0.0; LANES]; M];
        a.as_flattened_mut().iter_mut().for_each(|a| *a = factor(random, element));
        b.as_flattened_mut().iter_mut().for_each(|b| *b = factor(random, element));
        c.as_flattened_mut().iter_mut().for_each(|c| *c = sum(random));
        let mut expected = [0.0; M * LANES];
        let product = FloatProduct { core, a: element, b: element, sums: Accumulator::F32 };
        let (left, size) = (Left::dense(a.as_flattened()), Size { m: M, n: LANES, k: K });
        product.product(size, left, b.as_flattened(), c.as_flattened(), &mut expected);
        let least = rule.least_exponent(element);
        tile::<M, K, BLOCK>(rule.extra_bits, &split(&a, least), &split(&b, least), &mut c);
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(c.as_flattened()), bits(&expected), "{core} {element:?}");
    }

    #[test]
    fn a_tile_is_the_product_bit_by_bit() {
        let mut random = Random::new(21);
        for _ in 0..300 {
            for element in [FloatElement::F16, FloatElement::BF16] {
                compare::<16>(&mut random, TensorCore::H100, element);
                compare::<8>(&mut random, TensorCore::A100, element);
            }
        }
    }
}
