//! Accumulators as sums of factors of 16 bits.
//!
//! A half has fewer bits than an `f32`. The rounding error is a number too, and so is the error of rounding that. So
//! the sum of a few halves equals the `f32` except for its last bits, and the sum of their products equals the
//! product.

use super::super::reg::Reg;
use super::product::{blocks_of_a, blocks_of_bt};
use super::{A, Acc, B, Half, K, Rows, Tile};
use std::marker::PhantomData;
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir;

/// Accumulators as a sum of tiles of `T`: see [`Tile::as_terms`].
#[derive(Clone)]
pub struct Terms<'k, T> {
    k: K<'k>,
    rows: u32,
    columns: u32,
    /// Of each term two neighbours of every 8×8 block, by rows.
    words: Vec<Vec<ir::Reg>>,
    kind: PhantomData<T>,
}

/// Bits of the fraction of an `f32`, and what is added to its exponent.
const FRACTION: u32 = 23;
const BIAS: u32 = 127;

impl<'k> Tile<'k, Acc, f32> {
    /// Multiplies each row by a power of two that brings its largest magnitude between `2^exponent` (`exponent` from
    /// 0 to 14) and twice that, so that [terms](Self::as_terms) of half precision represent it to `2^(-25 -
    /// exponent)` of that at worst. Returns the tile and the powers that undo the scaling of each row. A row whose
    /// elements are all below `2⁻¹¹²` stays as far below.
    #[track_caller]
    pub fn normalized_rows(self, exponent: u32) -> (Self, Rows<'k>) {
        let k = self.k;
        k.on_line(Location::caller(), || {
            let largest = self.map(|element| element.abs()).row_max();
            // Its exponent alone; the inverse of a smaller one would not be a normal number.
            let power = largest.map(|largest| {
                (largest.bits::<u32>() & (0xff << FRACTION)).max((BIAS - 112) << FRACTION).bits()
            });
            let up =
                power.map(|power| (k.u32((2 * BIAS + exponent) << FRACTION) - power.bits::<u32>()).bits());
            let down = power.map(|power| (power.bits::<u32>() - (exponent << FRACTION)).bits());
            (self * up, down)
        })
    }

    /// The accumulators as a sum of `count` tiles of `T`, from 1 to 4: the first is the rounded accumulators, the
    /// next the rounded remainder, and so on. The relative error of each element is up to `2^(-11 · count)` in half
    /// precision and `2^(-8 · count)` in `Bf16`. Half precision represents nothing below `2⁻²⁵` and nothing above
    /// 65504.
    ///
    /// ```
    /// use warpwright_dsl::*;
    /// use warpwright_ptx::ir::Arch;
    ///
    /// // One warp: x · bᵀ, 16 x 8, where x (16 x 16) is f32 and b (8 x 16) half precision: to 2^-22 of Σ|x||b|.
    /// let built = build("near", &LaunchRule::new(32), Arch::sm(80), |k| {
    ///     let (x, b) = (k.ptr::<f32>("x"), k.ptr::<F16>("b").matrix(8, 16));
    ///     let b_tile = k.shared_tile::<F16>(8, 16);
    ///     b_tile.load(b, 0, 0);
    ///     k.sync();
    ///     let x = k.accumulators(16, 16).map_at(|row, column, _| x.ld(row * 16 + column));
    ///     // One term over the other: both products at once, added up after.
    ///     let products = x.as_terms::<F16>(2).stacked_a().mma(b_tile.load_bt(), k.accumulators(32, 8));
    ///     products.fold_rows(16).store(k.ptr_mut::<f32>("y").matrix(16, 8), 0, 0);
    /// })?;
    /// # Ok::<(), warpwright_ptx::diag::Diagnostics>(())
    /// ```
    #[track_caller]
    pub fn as_terms<T: Half>(self, count: u32) -> Terms<'k, T> {
        let (k, loc) = (self.k, Location::caller());
        let mut words = Vec::new();
        if !(1..=4).contains(&count) {
            let message = format!("{} as a sum of {count} tiles; 1 to 4 are possible", self.describe());
            k.state().mistake(Code::VectorShape, loc, message);
        } else if let Some(regs) = self.usable(loc) {
            let mut rest: Vec<_> =
                regs.chunks_exact(2).map(|pair| [pair[0], pair[1]].map(|id| Reg::new(k, id))).collect();
            k.on_line(loc, || {
                for term in 0..count {
                    let rounded: Vec<_> = rest.iter().map(|&[low, high]| T::pack_finite(low, high)).collect();
                    words.push(rounded.iter().map(|word| word.id).collect());
                    if term + 1 < count {
                        for (rest, &word) in rest.iter_mut().zip(&rounded) {
                            let [low, high] = T::unpack(word);
                            *rest = [rest[0] - low, rest[1] - high];
                        }
                    }
                }
            });
        }
        Terms { k, rows: self.rows, columns: self.columns, words, kind: PhantomData }
    }
}

impl<'k, T: Half> Terms<'k, T> {
    /// The terms stacked as one left factor, m × k: the first terms of all rows, then the next terms of all rows, and
    /// so on, padded with zeros to a multiple of 16 rows. k is a multiple of 16. Add up a product with it by
    /// [`fold_rows`](Tile::fold_rows), after [`row_block`](Tile::row_block) if there are padding rows.
    #[track_caller]
    pub fn stacked_a(&self) -> Tile<'k, A, T> {
        let (k, loc) = (self.k, Location::caller());
        let rows = self.rows * self.words.len() as u32;
        if self.words.is_empty() {
            return Tile::poison(k, rows, self.columns);
        }
        Tile::shaped(k, rows.next_multiple_of(16), self.columns, loc, |count| {
            let mut words = self.words.concat();
            let zero = k.u32(0).id;
            words.resize(count, k.state().register(zero, loc));
            blocks_of_a(&words, self.columns)
        })
    }

    /// The terms as right factors, each transposed: k × m for m × k accumulators, k a multiple of 16, without
    /// exchange between lanes. The sum of the products with them is the product.
    #[track_caller]
    pub fn as_bt(&self) -> Vec<Tile<'k, B, T>> {
        let (k, loc) = (self.k, Location::caller());
        let transposed = |words: &Vec<ir::Reg>| {
            Tile::shaped(k, self.columns, self.rows, loc, |_| blocks_of_bt(words, self.columns))
        };
        self.words.iter().map(transposed).collect()
    }
}
