//! Products `mma.m8n8k4` of f16 factors on the lanes, as the assembler translates them from Ampere on: fused
//! multiply-adds in `f32`, and `c` last.

use super::Accumulator;

/// `d = a · b + c`, 8 × 4 by 4 × 8, row-major; every value is an `f32` or an `f16`.
///
/// Sums in `f32`: c + (a₃b₃ + (a₂b₂ + (a₁b₁ + a₀b₀))). Sums in `f16`: (c + (a₁b₁ + a₀b₀)) + (a₃b₃ + a₂b₂) in `f32`, and the
/// result is rounded. Each a·b + s is rounded once. A NaN is canonical.
///
/// # Panics
///
/// If a slice is too short.
#[inline(always)]
pub fn product(sums: Accumulator, a: &[f32], b: &[f32], c: &[f32], d: &mut [f32]) {
    for (row, a) in a.chunks_exact(4).take(8).enumerate() {
        for column in 0..8 {
            let at = 8 * row + column;
            let factors = |k: usize| (a[k], b[8 * k + column]);
            let first = |k: usize| factors(k).0 * factors(k).1;
            let next = |k: usize, sum: f32| factors(k).0.mul_add(factors(k).1, sum);
            let sum = match sums {
                // The chain begins with +0, so that it is no −0.
                Accumulator::F32 => c[at] + next(3, next(2, next(1, first(0) + 0.0))),
                Accumulator::F16 => sums.round((c[at] + next(1, first(0))) + next(3, first(2))),
            };
            d[at] = if sum.is_nan() { super::float::NAN } else { sum };
        }
    }
}
