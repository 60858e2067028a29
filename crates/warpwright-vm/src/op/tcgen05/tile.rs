//! Products where all of k is one block of additions, by tiles of 16 rows and eight columns: the sums are added to.
//! Matrices are row-major.

use crate::machine::Row32;
use crate::native::Fragments;
use crate::op::matrix::multiply;
use crate::tensor::{Accumulation, COLUMNS, FloatElement, Size, split, tile};

/// Rows that are computed together.
const ROWS: usize = 16;

/// With factors of `f16` or `bf16`, 16 along k, each tile as `mma.m16n8k16` has it.
#[inline(always)]
pub(super) fn halves<const BF16: bool>(
    rule: Accumulation,
    Size { n, .. }: Size,
    left: &[u16],
    right: &[u16],
    sums: &mut [f32],
) {
    const K: usize = 16;
    let fragments = |first| fragment(|column, k| right[k * n + first + column]);
    let b: Vec<_> = (0..n).step_by(COLUMNS).map(fragments).collect();
    for (left, sums) in left.chunks_exact(ROWS * K).zip(sums.chunks_exact_mut(ROWS * n)) {
        let [upper, lower] = [0, ROWS / 2].map(|first| fragment(|row, k| left[(first + row) * K + k]));
        let a = [&upper[0], &lower[0], &upper[1], &lower[1]];
        for (number, [first, second]) in b.iter().enumerate() {
            let place = |register: usize, lane: usize| {
                let (row, column) = (8 * (register / 2) + lane / 4, 2 * (lane % 4) + register % 2);
                row * n + COLUMNS * number + column
            };
            let c: [Row32; 4] = std::array::from_fn(|register| {
                std::array::from_fn(|lane| sums[place(register, lane)].to_bits())
            });
            let of = Fragments { a, b: [first, second], c: c.each_ref() };
            let results = multiply::<BF16>(of, (rule.block, rule.extra_bits));
            for (register, words) in results.iter().enumerate() {
                for (lane, &word) in words.iter().enumerate() {
                    sums[place(register, lane)] = f32::from_bits(word);
                }
            }
        }
    }
}

/// Two registers of a factor: of eight rows of `a` or columns of `b`, the first eight elements along k, and the others.
#[inline(always)]
fn fragment(element: impl Fn(usize, usize) -> u16) -> [Row32; 2] {
    std::array::from_fn(|number| {
        std::array::from_fn(|lane| {
            let (line, k) = (lane / 4, 8 * number + 2 * (lane % 4));
            u32::from(element(line, k)) | u32::from(element(line, k + 1)) << 16
        })
    })
}

/// With factors of `tf32`, eight along k.
#[inline(always)]
pub(super) fn words(rule: Accumulation, Size { n, .. }: Size, left: &[f32], right: &[f32], sums: &mut [f32]) {
    const K: usize = 8;
    let least = rule.least_exponent(FloatElement::TF32);
    let columns: Vec<_> = (0..n)
        .step_by(COLUMNS)
        .map(|first| {
            let mut columns = [[0.0; COLUMNS]; K];
            for (column, values) in columns.iter_mut().zip(right.chunks_exact(n)) {
                column.copy_from_slice(&values[first..][..COLUMNS]);
            }
            split(&columns, least)
        })
        .collect();
    for (left, sums) in left.chunks_exact(ROWS * K).zip(sums.chunks_exact_mut(ROWS * n)) {
        let mut rows = [[0.0; K]; ROWS];
        rows.as_flattened_mut().copy_from_slice(left);
        let rows = split(&rows, least);
        for (number, columns) in columns.iter().enumerate() {
            let mut tiles = [[0.0; COLUMNS]; ROWS];
            for (tile, sums) in tiles.iter_mut().zip(sums.chunks_exact(n)) {
                tile.copy_from_slice(&sums[COLUMNS * number..][..COLUMNS]);
            }
            tile::<ROWS, K, K>(rule.extra_bits, &rows, columns, &mut tiles);
            for (tile, sums) in tiles.iter().zip(sums.chunks_exact_mut(n)) {
                sums[COLUMNS * number..][..COLUMNS].copy_from_slice(tile);
            }
        }
    }
}
