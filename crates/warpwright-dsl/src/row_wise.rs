//! Matrices that are processed row by row, however they are stored: accumulators of the tensor cores, and sums spread
//! over the lanes. So you write an algorithm by rows, such as an online softmax, once.

use super::carry::{Carry, carry_field};
use super::collective::Combine;
use super::reg::{Binary, Reg};
use super::spread::{List, Spread};
use super::tile::{Acc, Rows, Tile};
use super::types::*;
use std::ops;
use std::panic::Location;

/// A value for each row of a matrix that a warp holds.
pub trait RowVector<'k>: Carry<'k> + ops::Sub<Output = Self> + ops::Sub<f32, Output = Self> {
    /// The larger of each row's two values.
    fn max(self, other: Self) -> Self;

    /// `2ˣ` of every row's value, to 2 ulp; results below 2⁻¹²⁶ are zero.
    fn exp2_ftz(self) -> Self;

    /// Calls the closure with every row's number and value, once for each row, in one of the lanes.
    fn each(self, f: impl Fn(Reg<'k, u32>, Reg<'k, f32>));
}

/// A matrix of `f32` that a warp holds.
pub trait RowWise<'k>:
    Carry<'k>
    + ops::Add<Output = Self>
    + ops::Sub<Self::Rows, Output = Self>
    + ops::Mul<Self::Rows, Output = Self>
{
    /// Values for its rows.
    type Rows: RowVector<'k>;

    /// `2ˣ` of every element, to 2 ulp; results below 2⁻¹²⁶ are zero.
    fn exp2_ftz(self) -> Self;

    /// The maximum of each row, over the warp.
    fn row_max(self) -> Self::Rows;

    /// The sum of each row, over the warp.
    fn row_sum(self) -> Self::Rows;

    /// Whether the predicate holds for an element or more: the same in all lanes of the warp.
    fn any(self, f: impl Fn(Reg<'k, f32>) -> Reg<'k, Pred>) -> Reg<'k, Pred>;
}

impl<'k> RowVector<'k> for Rows<'k> {
    #[track_caller]
    fn max(self, other: Self) -> Self {
        Rows::max(self, other)
    }

    #[track_caller]
    fn exp2_ftz(self) -> Self {
        Rows::exp2_ftz(self)
    }

    #[track_caller]
    fn each(self, f: impl Fn(Reg<'k, u32>, Reg<'k, f32>)) {
        Rows::each(self, f);
    }
}

impl<'k> RowWise<'k> for Tile<'k, Acc, f32> {
    type Rows = Rows<'k>;

    #[track_caller]
    fn exp2_ftz(self) -> Self {
        Tile::exp2_ftz(self)
    }

    #[track_caller]
    fn row_max(self) -> Rows<'k> {
        Tile::row_max(self)
    }

    #[track_caller]
    fn row_sum(self) -> Rows<'k> {
        Tile::row_sum(self)
    }

    #[track_caller]
    fn any(self, f: impl Fn(Reg<'k, f32>) -> Reg<'k, Pred>) -> Reg<'k, Pred> {
        Tile::any(self, f)
    }
}

/// Matrices of `rows × columns`, one for each run of lanes of the warp, each spread over the lanes of its run: a
/// [`Spread`] with rows and columns. All runs have the same rows; each row continues from run to run.
#[derive(Clone, Copy, Debug)]
pub struct SpreadTile<'k> {
    spread: Spread<'k>,
    columns: usize,
    own: List<'k, f32>,
}

/// A value for each row of a [`SpreadTile`]: a handle, free to copy, which a fold can carry.
#[derive(Clone, Copy, Debug)]
pub struct SpreadRows<'k> {
    /// With each of the lane's elements its row's value.
    by_element: SpreadTile<'k>,
}

impl<'k> Spread<'k> {
    /// The sums over each run of `values`, as rows of `columns`: see [`sums`](Self::sums).
    #[track_caller]
    pub fn sum_tile(self, columns: usize, values: &[Reg<'k, f32>]) -> SpreadTile<'k> {
        self.tile(columns, self.sums(values))
    }

    /// A matrix filled with one value.
    #[track_caller]
    pub fn filled(self, columns: usize, value: f32) -> SpreadTile<'k> {
        self.tile(columns, vec![self.kernel().f32(value); self.slots()])
    }

    fn tile(self, columns: usize, own: Vec<Reg<'k, f32>>) -> SpreadTile<'k> {
        SpreadTile { spread: self, columns: columns.max(1), own: self.kernel().list(own) }
    }
}

impl<'k> SpreadTile<'k> {
    fn rows(self) -> usize {
        self.spread.count() / self.columns
    }

    /// Element (`row`, `column`) of each run's matrix, in all lanes of the run. All lanes of the warp call it.
    #[track_caller]
    pub fn get(self, row: usize, column: usize) -> Reg<'k, f32> {
        self.spread.get(&self.own.to_vec(), row * self.columns + column)
    }

    /// The value of each row that the host gives, in all lanes.
    #[track_caller]
    fn of_rows(self, values: &[Reg<'k, f32>]) -> SpreadRows<'k> {
        let by_element: Vec<_> = values.iter().flat_map(|&value| vec![value; self.columns]).collect();
        SpreadRows { by_element: self.spread.tile(self.columns, self.spread.own(&by_element)) }
    }

    #[track_caller]
    fn zip(self, other: Self, f: impl Fn(Reg<'k, f32>, Reg<'k, f32>) -> Reg<'k, f32>) -> Self {
        let pairs = self.own.to_vec().into_iter().zip(other.own.to_vec());
        self.spread.tile(self.columns, pairs.map(|(one, other)| f(one, other)).collect())
    }

    #[track_caller]
    fn reduce_rows(self, combine: Combine) -> SpreadRows<'k> {
        let loc = Location::caller();
        let row = |row| {
            let elements = (0..self.columns).map(|column| self.get(row, column));
            let of_run = elements.reduce(|one, other| combine.apply(one, other, loc));
            self.spread.over_runs(combine, of_run.unwrap_or_else(|| self.spread.kernel().f32(0.0)), loc)
        };
        self.of_rows(&(0..self.rows()).map(row).collect::<Vec<_>>())
    }
}

impl<'k> SpreadRows<'k> {
    /// The value of row `row`, in all lanes. All lanes of the warp call it.
    #[track_caller]
    pub fn get(self, row: usize) -> Reg<'k, f32> {
        self.by_element.get(row, 0)
    }
}

carry_field!(
    [] SpreadTile<'k>, own, |k| k.spread(1, 1).filled(1, 0.0),
    |tile, see| see(tile.rows() as u32, tile.columns as u32)
);
carry_field!(
    [] SpreadRows<'k>, by_element, |k| SpreadRows { by_element: Carry::poison(k) },
    |rows, see| rows.by_element.shape(see)
);

macro_rules! operators {
    ($($trait:ident $method:ident $left:ident $right:ty => |$other:ident| $tile:expr;)*) => {
        $(impl<'k> ops::$trait<$right> for $left<'k> {
            type Output = Self;
            #[track_caller]
            fn $method(self, $other: $right) -> Self {
                let loc = Location::caller();
                operators!($left self, $tile, |a, b| a.binary(Binary::$trait, b, loc))
            }
        })*
    };
    (SpreadTile $self:ident, $tile:expr, $f:expr) => { $self.zip($tile, $f) };
    (SpreadRows $self:ident, $tile:expr, $f:expr) => {
        SpreadRows { by_element: $self.by_element.zip($tile, $f) }
    };
}

operators! {
    Add add SpreadTile SpreadTile<'k> => |other| other;
    Sub sub SpreadTile SpreadRows<'k> => |other| other.by_element;
    Mul mul SpreadTile SpreadRows<'k> => |other| other.by_element;
    Sub sub SpreadRows SpreadRows<'k> => |other| other.by_element;
}

impl<'k> ops::Sub<f32> for SpreadRows<'k> {
    type Output = Self;
    #[track_caller]
    fn sub(self, other: f32) -> Self {
        SpreadRows { by_element: self.by_element.zip(self.by_element, |value, _| value - other) }
    }
}

impl<'k> RowVector<'k> for SpreadRows<'k> {
    #[track_caller]
    fn max(self, other: Self) -> Self {
        SpreadRows { by_element: self.by_element.zip(other.by_element, |one, other| one.max(other)) }
    }

    #[track_caller]
    fn exp2_ftz(self) -> Self {
        SpreadRows { by_element: self.by_element.exp2_ftz() }
    }

    #[track_caller]
    fn each(self, f: impl Fn(Reg<'k, u32>, Reg<'k, f32>)) {
        let k = self.by_element.spread.kernel();
        let values: Vec<_> = (0..self.by_element.rows()).map(|row| self.get(row)).collect();
        k.when(k.lane().eq(0), || (0..).zip(&values).for_each(|(row, &value)| f(k.u32(row), value)));
    }
}

impl<'k> RowWise<'k> for SpreadTile<'k> {
    type Rows = SpreadRows<'k>;

    #[track_caller]
    fn exp2_ftz(self) -> Self {
        self.zip(self, |value, _| value.exp2_ftz())
    }

    #[track_caller]
    fn row_max(self) -> SpreadRows<'k> {
        self.reduce_rows(Combine::Max)
    }

    #[track_caller]
    fn row_sum(self) -> SpreadRows<'k> {
        self.reduce_rows(Combine::Sum)
    }

    #[track_caller]
    fn any(self, f: impl Fn(Reg<'k, f32>) -> Reg<'k, Pred>) -> Reg<'k, Pred> {
        let k = self.spread.kernel();
        let here = self.own.to_vec().into_iter().map(f).reduce(|one, other| one | other);
        k.any(here.unwrap_or_else(|| k.pred(false)))
    }
}
