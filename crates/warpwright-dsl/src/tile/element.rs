//! Accumulators, one element at a time.

use super::super::collective::Combine;
use super::super::reg::{Binary, Reg};
use super::super::state::{Loc, POISON};
use super::rows::row_of;
use super::{Acc, K, Rows, Tile};
use std::ops;
use std::panic::Location;
use warpwright_ptx::diag::Code;

/// What stands beside accumulators, one value for each: a host number or a register for all of them,
/// [`Rows`] for those of a row, [`Columns`](super::Columns) for those of a column, accumulators of the same
/// shape.
pub trait Operand<'k>: Copy {
    /// What is wrong with it beside a tile of that many rows and columns.
    #[doc(hidden)]
    fn mismatch(self, rows: u32, columns: u32) -> Option<String>;
    /// The value for register `index` of such a tile.
    #[doc(hidden)]
    fn value(self, k: K<'k>, columns: u32, index: usize, loc: Loc) -> Reg<'k, f32>;
}

impl<'k> Operand<'k> for f32 {
    fn mismatch(self, _: u32, _: u32) -> Option<String> {
        None
    }

    fn value(self, k: K<'k>, _: u32, _: usize, _: Loc) -> Reg<'k, f32> {
        k.f32(self)
    }
}

impl<'k> Operand<'k> for Reg<'k, f32> {
    fn mismatch(self, _: u32, _: u32) -> Option<String> {
        None
    }

    fn value(self, _: K<'k>, _: u32, _: usize, _: Loc) -> Reg<'k, f32> {
        self
    }
}

impl<'k> Operand<'k> for Rows<'k> {
    fn mismatch(self, rows: u32, _: u32) -> Option<String> {
        (self.len() != rows).then(|| format!("values for {} rows", self.len()))
    }

    fn value(self, _: K<'k>, columns: u32, index: usize, _: Loc) -> Reg<'k, f32> {
        self.get(row_of(index, columns))
    }
}

impl<'k> Operand<'k> for Tile<'k, Acc, f32> {
    fn mismatch(self, rows: u32, columns: u32) -> Option<String> {
        ((self.rows, self.columns) != (rows, columns)).then(|| self.describe())
    }

    fn value(self, k: K<'k>, _: u32, index: usize, _: Loc) -> Reg<'k, f32> {
        let reg = self.registers().and_then(|regs| regs.get(index).copied());
        Reg::new(k, reg.unwrap_or(POISON))
    }
}

impl<'k> Tile<'k, Acc, f32> {
    fn each_register(self, loc: Loc, f: impl Fn(usize, Reg<'k, f32>) -> Reg<'k, f32>) -> Self {
        let k = self.k;
        match self.usable(loc) {
            Some(regs) => {
                let next: Vec<_> =
                    regs.into_iter().enumerate().map(|(i, reg)| f(i, Reg::new(k, reg)).id).collect();
                Self::from_registers(k, self.rows, self.columns, &next)
            }
            None => Self::poison(k, self.rows, self.columns),
        }
    }

    fn combine(self, op: Binary, other: impl Operand<'k>, loc: Loc) -> Self {
        self.zip_at(other, loc, |x, y| x.binary(op, y, loc))
    }

    fn zip_at(
        self,
        other: impl Operand<'k>,
        loc: Loc,
        f: impl Fn(Reg<'k, f32>, Reg<'k, f32>) -> Reg<'k, f32>,
    ) -> Self {
        if let Some(what) = other.mismatch(self.rows, self.columns) {
            let message = format!("{} does not go with {what}", self.describe());
            self.k.state().mistake(Code::VectorShape, loc, message);
            return Self::poison(self.k, self.rows, self.columns);
        }
        self.each_register(loc, |i, x| f(x, other.value(self.k, self.columns, i, loc)))
    }

    /// The function of every element.
    #[track_caller]
    pub fn map(self, f: impl Fn(Reg<'k, f32>) -> Reg<'k, f32>) -> Self {
        self.each_register(Location::caller(), |_, x| f(x))
    }

    /// The function of every element and the value that stands beside it.
    #[track_caller]
    pub fn zip(
        self,
        other: impl Operand<'k>,
        f: impl Fn(Reg<'k, f32>, Reg<'k, f32>) -> Reg<'k, f32>,
    ) -> Self {
        self.zip_at(other, Location::caller(), f)
    }

    /// The function of every element, its row and its column in the tile.
    #[track_caller]
    pub fn map_at(self, f: impl Fn(Reg<'k, u32>, Reg<'k, u32>, Reg<'k, f32>) -> Reg<'k, f32>) -> Self {
        let k = self.k;
        let loc = Location::caller();
        let (row, pair) = (k.lane_bits(2, 7), k.lane_bits(0, 3));
        let blocks = (self.columns / 8).max(1);
        self.each_register(loc, |i, x| {
            let (block, part) = (i as u32 / 4, i as u32 % 4);
            let (down, across) = (block / blocks * 16 + part / 2 * 8, block % blocks * 8 + part % 2);
            let (row, column) = k.on_line(loc, || (row + down, pair * 2 + across));
            f(row, column, x)
        })
    }

    /// `2ˣ` of every element, to 2 ulp.
    #[track_caller]
    pub fn exp2(self) -> Self {
        let loc = Location::caller();
        self.k.on_line(loc, || self.each_register(loc, |_, x| x.exp2()))
    }

    /// `2ˣ` of every element, to 2 ulp; arguments and results below 2⁻¹²⁶ are zero, which saves instructions.
    #[track_caller]
    pub fn exp2_ftz(self) -> Self {
        let loc = Location::caller();
        self.k.on_line(loc, || self.each_register(loc, |_, x| x.exp2_ftz()))
    }

    /// Each element times `factor`, plus `addend`, rounded once.
    #[track_caller]
    pub fn mul_add(self, factor: f32, addend: f32) -> Self {
        let loc = Location::caller();
        self.k.on_line(loc, || self.each_register(loc, |_, x| x.mul_add(factor, addend)))
    }

    /// The larger of each element and what stands beside it.
    #[track_caller]
    pub fn max(self, other: impl Operand<'k>) -> Self {
        self.combine(Binary::Max, other, Location::caller())
    }

    /// The maximum of each row: a lane's part, then a butterfly over the four lanes that share the row.
    #[track_caller]
    pub fn row_max(self) -> Rows<'k> {
        self.reduce_rows(Combine::Max, Location::caller())
    }

    /// The sum of each row, added in `f32`: a lane's part, then a butterfly over the four lanes that share
    /// the row, which all get the same.
    #[track_caller]
    pub fn row_sum(self) -> Rows<'k> {
        self.reduce_rows(Combine::Sum, Location::caller())
    }

    /// The value of each row of a tile whose columns are all alike, such as a product with
    /// [`factor_b`](K::factor_b): a lane reads a column that it holds, and nothing is exchanged.
    #[track_caller]
    pub fn row_values(self) -> Rows<'k> {
        let Some(regs) = self.usable(Location::caller()) else { return Rows::poison(self.k, self.rows) };
        let rows = regs.chunks_exact(self.columns as usize / 2);
        let values: Vec<_> = rows.flat_map(|row| [row[0], row[2]]).collect();
        Rows::from_registers(self.k, self.rows, &values)
    }

    /// Accumulators of so many columns, a multiple of the tile's: the tile again and again, side by side. They share
    /// its registers.
    #[track_caller]
    pub fn repeated(self, columns: u32) -> Self {
        let (k, loc) = (self.k, Location::caller());
        if !columns.is_multiple_of(self.columns) {
            let message = format!(
                "{} is not repeated to {columns} columns: it fits no whole number of times",
                self.describe()
            );
            k.state().mistake(Code::VectorShape, loc, message);
            return Self::poison(k, self.rows, columns);
        }
        let Some(regs) = self.usable(loc) else { return Self::poison(k, self.rows, columns) };
        let times = (columns / self.columns) as usize;
        Tile::shaped(k, self.rows, columns, loc, |_| {
            regs.chunks_exact(self.columns as usize / 2).flat_map(|row| row.repeat(times)).collect()
        })
    }

    /// Combines a lane's part of each row, then those of the four lanes that share it.
    fn reduce_rows(self, combine: Combine, loc: Loc) -> Rows<'k> {
        let k = self.k;
        let Some(regs) = self.usable(loc) else { return Rows::poison(k, self.rows) };
        let mut values = Vec::with_capacity(self.rows as usize / 8);
        for row in regs.chunks_exact(self.columns as usize / 2) {
            for half in 0..2 {
                let mine = (row.iter().enumerate())
                    .filter(|(i, _)| i / 2 % 2 == half)
                    .map(|(_, &reg)| Reg::<f32>::new(k, reg))
                    .reduce(|a, b| combine.apply(a, b, loc));
                let mine = mine.unwrap_or_else(|| k.f32(0.0));
                values.push(k.butterfly(combine, mine, 4, loc).id);
            }
        }
        Rows::from_registers(k, self.rows, &values)
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident;)*) => {
        $(impl<'k, X: Operand<'k>> ops::$trait<X> for Tile<'k, Acc, f32> {
            type Output = Self;
            #[track_caller]
            fn $method(self, other: X) -> Self {
                self.combine(Binary::$op, other, Location::caller())
            }
        })*
    };
}

operators! {
    Add add Add;
    Sub sub Sub;
    Mul mul Mul;
    Div div Div;
}
