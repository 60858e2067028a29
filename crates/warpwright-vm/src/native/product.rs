//! `mma.m16n8k16` with factors of 16 bits and sums in `f32`, by AVX-512: what [`tile`](crate::tensor) computes, for numbers
//! of common size.
//!
//! A product of two factors has at most 22 bits, so `f32` has it exactly. In units of the last bit that a block keeps it is
//! below 2^27, so a conversion to 32 bits cuts off the rest, and the sum of sixteen still fits.
//!
//! Everything stays where the lanes of the warp have it. A register has four rows, and of each of them
//!
//! ```text
//!   of the left factor   four numbers along k
//!   of sums              the even columns, or the odd ones
//!   of exponents         eight along k, or the even columns and then the odd ones, in 16 bits
//! ```
#![expect(
    unsafe_code,
    reason = "entering functions that are compiled for features of the processor, and their loads"
)]

use super::Fragments;
use crate::machine::Row32;
use crate::simd::Level;
use std::arch::x86_64::*;

/// Exponents of products and sums have at most this magnitude, so that scales and results are normal numbers.
const FARTHEST: i32 = 100;

/// Less than the exponent of any product, even if another exponent is added.
const NO_EXPONENT: i16 = -1000;

/// See [`half_product`](super::half_product).
pub(crate) fn half_product<const BF16: bool>(
    level: Level,
    of: Fragments<'_>,
    (block, extra_bits): (usize, i32),
    sums: &mut [Row32; 4],
) -> bool {
    // SAFETY: the level has these features.
    match (block, extra_bits) {
        _ if !level.has_avx512() => false,
        (16, 2) => unsafe { multiply::<BF16, 16, 2>(of, sums) },
        (8, 1) => unsafe { multiply::<BF16, 8, 1>(of, sums) },
        _ => false,
    }
}

/// Aligned to registers.
#[repr(C, align(64))]
struct Aligned<T>(T);

/// Words of half a row.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(row: &Row32, half: usize) -> __m512i {
    // SAFETY: a row has two halves of 64 bytes.
    unsafe { _mm512_loadu_si512(row.as_ptr().add(16 * (half % 2)).cast()) }
}

/// The exponents of halves, in 16 bits, and whether all of them can be multiplied here.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn exponents<const BF16: bool>(halves: __m512i) -> (__m512i, __mmask32) {
    let magnitudes = _mm512_and_si512(halves, _mm512_set1_epi16(0x7fff));
    let nonzero = _mm512_test_epi16_mask(magnitudes, magnitudes);
    let (fields, bias, last) = match BF16 {
        true => (_mm512_srli_epi16(magnitudes, 7), 127, 127 + FARTHEST / 2),
        false => (_mm512_srli_epi16(magnitudes, 10), 15, 30),
    };
    let mut outside = _mm512_cmpgt_epi16_mask(fields, _mm512_set1_epi16(last as i16));
    if BF16 {
        let first = _mm512_set1_epi16((127 - FARTHEST / 2) as i16);
        outside |= _mm512_mask_cmplt_epi16_mask(nonzero, fields, first);
    }
    // Subnormal numbers have the exponent of the least normal one.
    let fields = _mm512_max_epi16(fields, _mm512_set1_epi16(1));
    let exponents = _mm512_sub_epi16(fields, _mm512_set1_epi16(bias));
    (_mm512_mask_blend_epi16(nonzero, _mm512_set1_epi16(NO_EXPONENT), exponents), outside)
}

/// Where the right factor's halves come from, so that there are the columns of four steps along k.
const TURNED: [[u16; 32]; 2] = {
    let mut turned = [[0; 32]; 2];
    let mut at = 0;
    while at < 64 {
        let (k, column) = (at / 8, at % 8);
        turned[at / 32][at % 32] = (8 * (2 * (column % 4) + column / 4) + k) as u16;
        at += 1;
    }
    turned
};

/// The values of sixteen halves.
#[inline]
#[target_feature(enable = "avx512f")]
fn values<const BF16: bool>(halves: __m256i) -> __m512 {
    match BF16 {
        true => _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16)),
        false => _mm512_cvtph_ps(halves),
    }
}

/// The first and the last 64 bits of the four parts of a register.
#[inline]
#[target_feature(enable = "avx512f")]
fn divided(register: __m512i) -> [__m256i; 2] {
    let turned = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), register);
    [_mm512_castsi512_si256(turned), _mm512_extracti64x4_epi64(turned, 1)]
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn multiply<const BF16: bool, const BLOCK: usize, const EXTRA_BITS: i32>(
    of: Fragments<'_>,
    sums: &mut [Row32; 4],
) -> bool {
    let mut outside = 0;
    // The right factor along k: the even columns, then the odd ones.
    let mut right = Aligned([[0.0_f32; 8]; 16]);
    let mut right_exponents = Aligned([[0_i16; 8]; 16]);
    for (number, row) in of.b.into_iter().enumerate() {
        for (part, index) in TURNED.iter().enumerate() {
            let first = 8 * number + 4 * part;
            // SAFETY: an index of 64 bytes; four steps along k from `first` on are there.
            unsafe {
                let index = _mm512_loadu_si512(index.as_ptr().cast());
                let halves = _mm512_permutex2var_epi16(load(row, 0), index, load(row, 1));
                let (exponents, beyond) = exponents::<BF16>(halves);
                outside |= beyond;
                _mm512_store_si512(right_exponents.0.as_mut_ptr().add(first).cast(), exponents);
                let of = [_mm512_castsi512_si256(halves), _mm512_extracti64x4_epi64(halves, 1)];
                let to = right.0.as_mut_ptr().add(first);
                _mm512_store_ps(to.cast(), values::<BF16>(of[0]));
                _mm512_store_ps(to.add(2).cast(), values::<BF16>(of[1]));
            }
        }
    }
    let mut wrong = _mm512_setzero_si512();
    for rows in 0..4 {
        let (upper, half) = (rows / 2, rows % 2);
        let words = [load(of.a[upper], half), load(of.a[2 + upper], half)];
        let (exponents_0, beyond_0) = exponents::<BF16>(words[0]);
        let (exponents_1, beyond_1) = exponents::<BF16>(words[1]);
        outside |= beyond_0 | beyond_1;
        let left_exponents = [exponents_0, exponents_1];
        let ([first, second], [third, fourth]) = (divided(words[0]), divided(words[1]));
        let left = [first, second, third, fourth];
        let left: [__m512; 4] = [
            values::<BF16>(left[0]),
            values::<BF16>(left[1]),
            values::<BF16>(left[2]),
            values::<BF16>(left[3]),
        ];
        let mut sum = [load(of.c[2 * upper], half), load(of.c[2 * upper + 1], half)];
        for start in (0..16).step_by(BLOCK) {
            let mut largest = _mm512_set1_epi16(-FARTHEST as i16);
            for k in start..start + BLOCK {
                let place = (2 * k % 16) as i16;
                let left =
                    _mm512_shuffle_epi8(left_exponents[k / 8], _mm512_set1_epi16(place | (place + 1) << 8));
                // SAFETY: eight exponents of 16 bits.
                let right = unsafe { _mm_load_si128(right_exponents.0.as_ptr().add(k).cast()) };
                let both = _mm512_add_epi16(left, _mm512_broadcast_i32x4(right));
                largest = _mm512_max_epi16(largest, both);
            }
            let mut scales = [_mm512_setzero_ps(); 2];
            let mut units = [_mm512_setzero_ps(); 2];
            let mut added = [_mm512_setzero_si512(); 2];
            for (columns, largest) in divided(largest).into_iter().enumerate() {
                let bits = sum[columns];
                let magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(i32::MAX));
                let (least, most) = (127 - FARTHEST, 127 + FARTHEST);
                let from_least = _mm512_sub_epi32(magnitude, _mm512_set1_epi32(least << 23));
                let nonzero = _mm512_test_epi32_mask(magnitude, magnitude);
                let beyond = _mm512_mask_cmpge_epu32_mask(
                    nonzero,
                    from_least,
                    _mm512_set1_epi32((most - least) << 23),
                );
                outside |= __mmask32::from(beyond);
                let exponent = _mm512_sub_epi32(_mm512_srli_epi32(magnitude, 23), _mm512_set1_epi32(127));
                let largest = _mm512_max_epi32(_mm512_cvtepi16_epi32(largest), exponent);
                // 2 to the power of what the last bit of a sum is, and its inverse.
                let last = _mm512_sub_epi32(largest, _mm512_set1_epi32(23 + EXTRA_BITS));
                let one = _mm512_set1_epi32(127);
                units[columns] = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(one, last), 23));
                scales[columns] = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_sub_epi32(one, last), 23));
                added[columns] =
                    _mm512_cvttps_epi32(_mm512_mul_ps(_mm512_castsi512_ps(bits), scales[columns]));
            }
            let mut parts = [_mm512_setzero_si512(); 2];
            for fours in start / 4..(start + BLOCK) / 4 {
                let left = left[fours];
                let left = [
                    _mm512_permute_ps(left, 0x00),
                    _mm512_permute_ps(left, 0x55),
                    _mm512_permute_ps(left, 0xaa),
                    _mm512_permute_ps(left, 0xff),
                ];
                for (k, left) in left.into_iter().enumerate() {
                    for columns in 0..2 {
                        // SAFETY: four even or odd columns.
                        let right = unsafe {
                            _mm_load_ps(right.0.as_ptr().add(4 * fours + k).cast::<f32>().add(4 * columns))
                        };
                        let product = _mm512_mul_ps(left, _mm512_broadcast_f32x4(right));
                        let cut = _mm512_cvttps_epi32(_mm512_mul_ps(product, scales[columns]));
                        parts[columns] = _mm512_add_epi32(parts[columns], cut);
                    }
                }
            }
            for columns in 0..2 {
                let (part, added) = (parts[columns], added[columns]);
                let all = _mm512_add_epi32(part, added);
                // The sign is wrong where both have the other one.
                let overflow = _mm512_and_si512(_mm512_xor_si512(part, all), _mm512_xor_si512(added, all));
                wrong = _mm512_or_si512(wrong, overflow);
                let cut = _mm512_cvt_roundepi32_ps::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(all);
                sum[columns] = _mm512_castps_si512(_mm512_mul_ps(cut, units[columns]));
            }
        }
        for columns in 0..2 {
            // SAFETY: half a row.
            unsafe {
                let to = sums[2 * upper + columns].as_mut_ptr().add(16 * half);
                _mm512_storeu_si512(to.cast(), sum[columns]);
            }
        }
    }
    outside == 0 && _mm512_movepi32_mask(wrong) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::tensor::{Accumulator, FloatElement, FloatProduct, Left, Size, Spread, TensorCore};

    const SIZE: Size = Size { m: 16, n: 8, k: 16 };

    /// A half: any, a zero, the largest one below 2 or 4, or one of common size.
    fn half(random: &mut Random, kind: u64, bf16: bool) -> u32 {
        let bits = random.below(1 << 16) as u32;
        let around_one = if bf16 { bits & 0x83ff | 0x3c00 } else { bits & 0x8fff | 0x3000 };
        match (kind, random.below(64)) {
            (2, _) => 0x3fff,
            (0, 0) => bits,
            (0, _) | (_, 0..4) => bits & 0x8000,
            (1, _) => bits & 0x8000 | 0x3fff,
            (3, 4..32) if !bf16 => bits & 0xbfff,
            (4, 4..32) if bf16 => bits & 0x807f | (random.below(101) as u32 + 77) << 7,
            _ => around_one,
        }
    }

    fn sum(random: &mut Random, kind: u64) -> u32 {
        match (kind, random.below(16)) {
            (0, 0) => random.below(1 << 32) as u32,
            (2, _) => 0x3fff_ffff,
            (_, 0..4) => (random.below(2) as u32) << 31,
            (3, 4..8) => (random.below(200) as u32 + 28) << 23 | random.below(1 << 23) as u32,
            _ => (random.below(1 << 24) as f32 / (1 << 20) as f32 - 8.0).to_bits(),
        }
    }

    /// Row by row, as they stand in the registers of the lanes.
    fn matrix<const N: usize>(
        spread: &Spread,
        rows: &[Row32; N],
        of: impl Fn(u32) -> f32,
        bits: u32,
    ) -> Vec<f32> {
        let packed = (32 / bits) as usize;
        let mut matrix = vec![0.0; spread.rows() * spread.columns()];
        for (number, row) in rows.iter().enumerate() {
            for part in 0..packed {
                for (&at, word) in spread.lanes(number * packed + part).iter().zip(row) {
                    matrix[usize::from(at)] = of(word >> (bits * part as u32));
                }
            }
        }
        matrix
    }

    /// How many of some products are computed here, which are those that the general way computes.
    fn compare<const BF16: bool>(random: &mut Random, core: TensorCore, kind: u64) -> u32 {
        let element = if BF16 { FloatElement::BF16 } else { FloatElement::F16 };
        let rule = core.accumulation(element).expect("a core that adds in blocks");
        let mut count = 0;
        for _ in 0..100 {
            let (mut a, mut b, mut c) = ([[0; 32]; 4], [[0; 32]; 2], [[0; 32]; 4]);
            for word in a.as_flattened_mut().iter_mut().chain(b.as_flattened_mut()) {
                *word = half(random, kind, BF16) | half(random, kind, BF16) << 16;
            }
            c.as_flattened_mut().iter_mut().for_each(|word| *word = sum(random, kind));
            let of = Fragments { a: a.each_ref(), b: b.each_ref(), c: c.each_ref() };
            let mut sums = [[0; 32]; 4];
            if !half_product::<BF16>(Level::detect(), of, (rule.block, rule.extra_bits), &mut sums) {
                continue;
            }
            count += 1;
            let decode = |bits| element.decode(bits);
            let left = matrix(&Spread::left(16, 16, 2, 8), &a, decode, 16);
            let right = matrix(&Spread::right(16, 8, 2, 4), &b, decode, 16);
            let added = matrix(&Spread::accumulator(16, 8), &c, f32::from_bits, 32);
            let found = matrix(&Spread::accumulator(16, 8), &sums, f32::from_bits, 32);
            let mut expected = [0.0; 128];
            let general = FloatProduct { core, a: element, b: element, sums: Accumulator::F32 };
            general.product(SIZE, Left::dense(&left), &right, &added, &mut expected);
            let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&found), bits(&expected), "{core} {element:?} {kind}");
        }
        count
    }

    #[test]
    fn numbers_of_common_size_are_multiplied_as_in_the_general_way() {
        if !Level::detect().has_avx512() {
            return;
        }
        let mut random = Random::new(5);
        for core in [TensorCore::H100, TensorCore::A100] {
            for kind in 0..6 {
                let counts =
                    [compare::<false>(&mut random, core, kind), compare::<true>(&mut random, core, kind)];
                // Any bits are often no number of common size; sums of sixteen products of nearly four and another number
                // do not fit.
                let expected = match (kind, core) {
                    (2, TensorCore::H100) => 0..1,
                    (0, _) => 0..101,
                    (3, _) => 1..101,
                    // Sums of the first block may be too small for the second one.
                    (4, _) => 90..101,
                    _ => 100..101,
                };
                assert!(counts.iter().all(|count| expected.contains(count)), "{core}, {kind}: {counts:?}");
            }
        }
    }

    /// Each place of each factor and sum: one number that is infinite, or none.
    #[test]
    fn what_is_no_number_of_common_size_is_computed_elsewhere() {
        if !Level::detect().has_avx512() {
            return;
        }
        let is_done = |bf16: bool, of: Fragments<'_>| {
            let mut sums = [[0; 32]; 4];
            match bf16 {
                true => half_product::<true>(Level::detect(), of, (16, 2), &mut sums),
                false => half_product::<false>(Level::detect(), of, (16, 2), &mut sums),
            }
        };
        let cases =
            [(false, 0x3c00, 0x7c00), (false, 0x3c00, 0xfe00), (true, 0x3f80, 0x7f80), (true, 0x3f80, 1)];
        let ones = [0x3f80_0000; 32];
        for (bf16, usual, other) in cases {
            let usual = usual | usual << 16;
            let factors = [usual; 32];
            let all = Fragments { a: [&factors; 4], b: [&factors; 2], c: [&ones; 4] };
            assert!(is_done(bf16, all));
            for lane in 0..32 {
                for shift in [0, 16] {
                    let mut row = factors;
                    row[lane] = usual & !(0xffff << shift) | other << shift;
                    for number in 0..6 {
                        let mut of = all;
                        match number {
                            0..4 => of.a[number] = &row,
                            _ => of.b[number - 4] = &row,
                        }
                        assert!(!is_done(bf16, of), "{other:#x} in lane {lane} of register {number}");
                    }
                }
                for other in [0x7f80_0000, 0x7fff_ffff, 1, 0x0c80_0000, 0x7200_0000_u32] {
                    let mut row = ones;
                    row[lane] = other;
                    for number in 0..4 {
                        let mut of = all;
                        of.c[number] = &row;
                        assert!(!is_done(bf16, of), "{other:#x} in lane {lane} of sums {number}");
                    }
                }
            }
        }
    }
}
