//! `mma.m16n8k16` with factors of 16 bits and sums in `f32`: the common case, without conversion to row-major
//! matrices. Of such products `wgmma` and `tcgen05` consist, too.
//!
//! A register of a factor is a tile: 8 rows of the left one, or 8 columns of the right one, by 8 along k,
//! in words of two.
//!
//! ```text
//!               k ──►                                   k ──►
//!   rows 0..8     a[0]  a[2]          columns 0..8        b[0]  b[1]      lane 4g + t: row or column g,
//!   rows 8..16    a[1]  a[3]                                              k = 2t in the low half, 2t + 1 above
//!
//!   rows 0..8     c[0] c[1]           lane 4g + t: row g, column 2t in the first, 2t + 1 in the second
//!   rows 8..16    c[2] c[3]
//! ```
//!
//! The order of columns, and that of eight factors along k, does not matter, so they stay in the lanes' order: even
//! ones before odd ones.

use super::Product;
use super::product::{Arithmetic, MatrixProduct};
use crate::machine::{FULL, Inst, LANES, Machine, NONE, Row32, Step};
use crate::native::{Fragments, Operation, half_product};
use crate::simd::{LaneOp, Lanes, Level, lanes};
use crate::tensor::{Accumulation, Accumulator, COLUMNS, FloatElement, Size, split, tile};

const ROWS: usize = 16;
const K: usize = 16;
/// Rows of a tile.
const TILE: usize = 8;
/// Words of a row of a tile.
const WORDS: usize = 4;

/// The handlers of a product that has this form.
pub(super) fn handlers(product: &Product) -> Option<Lanes> {
    use FloatElement::*;
    let Arithmetic::Float { a, b, c: Accumulator::F32, d: Accumulator::F32 } = product.arithmetic else {
        return None;
    };
    let is_plain = product.count == 1 && product.sparse.is_none();
    if product.size != (Size { m: ROWS, n: COLUMNS, k: K }) || !is_plain {
        return None;
    }
    match (a, b) {
        (F16, F16) => Some(lanes::<HalfProduct<false>>()),
        (BF16, BF16) => Some(lanes::<HalfProduct<true>>()),
        _ => None,
    }
}

/// The product, with factors of `bf16` or `f16`.
struct HalfProduct<const BF16: bool>;

impl<const BF16: bool> LaneOp for HalfProduct<BF16> {
    const NATIVE: Option<Operation> = Some(Operation::MultiplyFragments { bf16: BF16 });

    #[inline(always)]
    fn run(m: &mut Machine<'_>, i: &Inst) -> Step {
        let element = if BF16 { FloatElement::BF16 } else { FloatElement::F16 };
        let (block, extra_bits) = match m.launch.options.tensor_core.accumulation(element) {
            Some(Accumulation { block, extra_bits, .. }) if matches!(block, 8 | 16) => (block, extra_bits),
            // The order of factors within eight matters, or there are no blocks.
            _ => return (lanes::<MatrixProduct>().at(Level::detect()))(m, i),
        };
        if let Some(step) = m.converge(FULL, NONE) {
            return step;
        }
        let launch = m.launch;
        let product = &launch.code.matrix.products[i.x as usize];
        let row = |rows: &[u32], number: usize| m.registers.row32(rows[number]);
        let of = Fragments {
            a: [0, 1, 2, 3].map(|number| row(&product.a.rows, number)),
            b: [0, 1].map(|number| row(&product.b.rows, number)),
            c: [0, 1, 2, 3].map(|number| row(&product.c.rows, number)),
        };
        let sums = multiply::<BF16>(of, (block, extra_bits));
        for (row, sums) in product.d.rows.iter().zip(&sums) {
            row.iter().for_each(|row| m.registers.set32(*row, sums, m.mask));
        }
        Step::Next
    }
}

/// The sums, added by blocks of 8 or 16 factors along k and with bits besides those of `f32`.
#[inline(always)]
pub(crate) fn multiply<const BF16: bool>(of: Fragments<'_>, (block, extra_bits): (usize, i32)) -> [Row32; 4] {
    let mut sums = [[0; LANES]; 4];
    // Numbers of common size, where the level has a way.
    if half_product::<BF16>(Level::detect(), of, (block, extra_bits), &mut sums) {
        return sums;
    }
    let element = if BF16 { FloatElement::BF16 } else { FloatElement::F16 };
    match block {
        16 => by_tiles::<16>(of, element, extra_bits),
        _ => by_tiles::<8>(of, element, extra_bits),
    }
}

#[inline(always)]
fn by_tiles<const BLOCK: usize>(of: Fragments<'_>, element: FloatElement, extra_bits: i32) -> [Row32; 4] {
    let least = element.least_exponent();
    let mut left = [[0.0; K]; ROWS];
    for (number, words) in of.a.into_iter().enumerate() {
        let (low, high) = (halves(element, words, 0), halves(element, words, 16));
        let (first_row, first_k) = (TILE * (number % 2), TILE * (number / 2));
        for g in 0..TILE {
            let k = &mut left[first_row + g][first_k..first_k + TILE];
            k[..WORDS].copy_from_slice(&low[WORDS * g..WORDS * (g + 1)]);
            k[WORDS..].copy_from_slice(&high[WORDS * g..WORDS * (g + 1)]);
        }
    }
    let mut right = [[0.0; COLUMNS]; K];
    for (number, words) in of.b.into_iter().enumerate() {
        // By t, then by column: the even ones first.
        let mut turned = [0; LANES];
        for t in 0..WORDS {
            for column in 0..COLUMNS {
                let g = 2 * (column % WORDS) + column / WORDS;
                turned[COLUMNS * t + column] = words[WORDS * g + t];
            }
        }
        let (low, high) = (halves(element, &turned, 0), halves(element, &turned, 16));
        for t in 0..WORDS {
            let k = TILE * number + t;
            right[k].copy_from_slice(&low[COLUMNS * t..COLUMNS * (t + 1)]);
            right[k + WORDS].copy_from_slice(&high[COLUMNS * t..COLUMNS * (t + 1)]);
        }
    }
    let mut sums = sums(of.c);
    tile::<ROWS, K, BLOCK>(extra_bits, &split(&left, least), &split(&right, least), &mut sums);
    words(&sums)
}

/// Sums of eight columns, those in the order of the lanes, from the four registers that hold them.
#[inline(always)]
pub(crate) fn sums(rows: [&Row32; 4]) -> [[f32; COLUMNS]; ROWS] {
    let mut sums = [[0.0; COLUMNS]; ROWS];
    for (number, words) in rows.into_iter().enumerate() {
        let (first_row, odd) = (TILE * (number / 2), WORDS * (number % 2));
        for g in 0..TILE {
            for t in 0..WORDS {
                sums[first_row + g][odd + t] = f32::from_bits(words[WORDS * g + t]);
            }
        }
    }
    sums
}

/// The registers for such sums.
#[inline(always)]
pub(crate) fn words(sums: &[[f32; COLUMNS]; ROWS]) -> [Row32; 4] {
    let mut rows = [[0; LANES]; 4];
    for (number, words) in rows.iter_mut().enumerate() {
        let (first_row, odd) = (TILE * (number / 2), WORDS * (number % 2));
        for g in 0..TILE {
            for t in 0..WORDS {
                words[WORDS * g + t] = sums[first_row + g][odd + t].to_bits();
            }
        }
    }
    rows
}

/// The values of the halves of words.
#[inline(always)]
fn halves(element: FloatElement, words: &Row32, shift: u32) -> [f32; LANES] {
    let mut values = [0.0; LANES];
    for lane in 0..LANES {
        values[lane] = element.decode(words[lane] >> shift);
    }
    values
}
