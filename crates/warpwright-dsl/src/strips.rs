//! Rows of a matrix spread over the lanes of a warp, for arithmetic on the lanes.
//!
//! A *run* of neighbouring lanes reads a row in pieces of 16 bytes, one per lane; a warp reads as many rows at once
//! as it has runs. The length of a run is a power of two, so sums over a row are butterflies. If a row has fewer
//! pieces, the last lanes of a run read nothing and hold zeros; if it has more than 32, every lane holds several.
//!
//! ```text
//! 128 halves, 256 bytes:   lanes 0..16  row 0    lanes 16..32  row 1
//!  80 halves, 160 bytes:   lanes 0..10  row 0    lanes 16..26  row 1      6 lanes of each run idle
//! ```

use super::K;
use super::carry::carry_field;
use super::guard::{Guard, both};
use super::reg::{IntoReg, Reg};
use super::spread::{List, Spread};
use super::tile::Matrix;
use super::types::*;
use std::marker::PhantomData;
use std::panic::Location;

const WARP: u32 = 32;
/// Bytes of a piece.
const PIECE: u32 = 16;

/// Elements that lanes compute with in `f32`, and that divide a 32-bit word evenly.
pub trait StripElement: Data {
    /// The elements of a word, exactly.
    #[doc(hidden)]
    fn values<'k>(word: Reg<'k, u32>) -> Vec<Reg<'k, f32>>;
}

impl StripElement for f32 {
    fn values<'k>(word: Reg<'k, u32>) -> Vec<Reg<'k, f32>> {
        vec![word.bits()]
    }
}

impl StripElement for F16 {
    fn values<'k>(word: Reg<'k, u32>) -> Vec<Reg<'k, f32>> {
        word.bits::<F16x2>().f32x2().to_vec()
    }
}

impl StripElement for Bf16 {
    fn values<'k>(word: Reg<'k, u32>) -> Vec<Reg<'k, f32>> {
        word.bits::<Bf16x2>().f32x2().to_vec()
    }
}

/// The layout of rows of `columns` elements of `T` over the lanes of a warp: see [`K::strips`].
#[derive(Clone, Copy, Debug)]
pub struct Strips<'k, T> {
    k: K<'k>,
    columns: u32,
    lanes: u32,
    pieces: u32,
    kind: PhantomData<T>,
}

/// Rows as they were loaded: state that a loop carries. See [`Strips::load`].
#[derive(Clone, Copy, Debug)]
pub struct StripRows<'k, T> {
    words: List<'k, u32>,
    of_row: u32,
    kind: PhantomData<T>,
}

impl<'k> K<'k> {
    /// A layout of rows of `columns` elements, which must be a multiple of 16 bytes.
    pub fn strips<T: StripElement>(self, columns: u32) -> Strips<'k, T> {
        let total = (columns * T::TYPE.bytes()).div_ceil(PIECE).max(1);
        let lanes = total.min(WARP).next_power_of_two();
        Strips { k: self, columns, lanes, pieces: total.div_ceil(lanes), kind: PhantomData }
    }
}

impl<'k, T: StripElement> Strips<'k, T> {
    /// The number of rows that a warp reads at once.
    pub fn rows(self) -> u32 {
        WARP / self.lanes
    }

    /// Lanes of a run.
    pub(super) fn lanes(self) -> u32 {
        self.lanes
    }

    /// The number of elements of a row that a lane holds.
    pub fn width(self) -> u32 {
        PIECE / T::TYPE.bytes() * self.pieces
    }

    /// This lane's row among those that the warp reads at once.
    #[track_caller]
    pub fn row(self) -> Reg<'k, u32> {
        self.k.lane() >> self.lanes.trailing_zeros()
    }

    /// `count` sums over a row, spread over the lanes of its run.
    #[track_caller]
    pub fn spread(self, count: usize) -> Spread<'k> {
        self.k.spread(count, self.lanes)
    }

    /// The position in a row of the lane's vector `number`, one of [`width`](Self::width) `/ 4` vectors of four
    /// neighbours, and, if some lanes lie beyond the row, whether the row contains it.
    #[track_caller]
    pub fn vector(self, number: impl IntoReg<'k, u32>) -> (Reg<'k, u32>, Option<Reg<'k, Pred>>) {
        let number = number.into_reg(self.k, Location::caller());
        let vectors = PIECE / T::TYPE.bytes() / 4;
        let place = self.k.lane() & (self.lanes - 1);
        let column = (place + number / vectors * self.lanes) * (4 * vectors) + number % vectors * 4;
        let ragged = self.lanes * self.width() > self.columns;
        (column, ragged.then(|| column.lt(self.columns)))
    }

    /// Loads `count` times as many rows of a matrix as the warp reads at once, from `row` on. Where `wanted` does not
    /// hold, the result is `before`, or zeros; beyond the matrix's last row it is zeros, unless the rows
    /// [fit](Matrix::rows_fit). Rows begin at multiples of 16 bytes.
    #[track_caller]
    pub fn load(
        self,
        from: Matrix<'k, T>,
        row: Reg<'k, u32>,
        count: u32,
        wanted: impl Guard<'k>,
        before: Option<StripRows<'k, T>>,
    ) -> StripRows<'k, T> {
        let (k, wanted, elements) = (self.k, wanted.predicate(), PIECE / T::TYPE.bytes());
        let before = before.map(|before| before.words.to_vec());
        let place = k.lane() & (self.lanes - 1);
        let mut words: Vec<Reg<'k, u32>> = Vec::new();
        for step in 0..count {
            for piece in 0..self.pieces {
                let whole = (piece + 1) * self.lanes * elements <= self.columns;
                let column = (place + piece * self.lanes) * elements;
                let row = row + self.row() + step * self.rows();
                let (from, inside) = from.columns_fit(whole).place(row, column);
                let other = |i: usize| before.as_ref().map_or(k.u32(0), |before| before[words.len() + i]);
                let others = std::array::from_fn(other);
                words.extend(from.cast::<u32>().ld_vec_or::<4>(both(wanted, inside), 0, others));
            }
        }
        StripRows { words: k.list(words), of_row: 4 * self.pieces, kind: PhantomData }
    }
}

impl<'k, T: StripElement> StripRows<'k, T> {
    /// The lane's elements of its row `step` among the loaded rows.
    #[track_caller]
    pub fn values(self, step: u32) -> Vec<Reg<'k, f32>> {
        let (words, first) = (self.words.to_vec(), step * self.of_row);
        words[first as usize..][..self.of_row as usize].iter().flat_map(|&word| T::values(word)).collect()
    }
}

carry_field!(
    [T: StripElement] StripRows<'k, T>, words, |k| StripRows { words: List::poison(k), of_row: 0, kind: PhantomData },
    |rows, see| rows.words.shape(see)
);
