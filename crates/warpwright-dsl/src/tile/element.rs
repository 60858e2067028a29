//! Accumulators, element by element.

use super::super::collective::Combine;
use super::super::reg::{Binary, Reg};
use super::super::state::{Loc, POISON};
use super::super::types::Pred;
use super::rows::row_of;
use super::{Acc, K, Rows, Tile};
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir;

/// An operand for accumulators, with one value for each: a host number or a register for all of them, [`Rows`] for
/// those of a row, [`Columns`](super::Columns) for those of a column, or accumulators of the same shape.
pub trait Operand<'k>: Copy {
    /// The reason why it does not fit a tile of that many rows and columns, if it does not.
    #[doc(hidden)]
    fn mismatch(self, rows: u32, columns: u32) -> Option<String>;
    /// Its value for register `index` of such a tile.
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

    /// Applies the function to every element.
    #[track_caller]
    pub fn map(self, f: impl Fn(Reg<'k, f32>) -> Reg<'k, f32>) -> Self {
        self.each_register(Location::caller(), |_, x| f(x))
    }

    /// Applies the function to every element and the operand's value for it.
    #[track_caller]
    pub fn zip(
        self,
        other: impl Operand<'k>,
        f: impl Fn(Reg<'k, f32>, Reg<'k, f32>) -> Reg<'k, f32>,
    ) -> Self {
        self.zip_at(other, Location::caller(), f)
    }

    /// Applies the function to every element with its row and its column in the tile.
    #[track_caller]
    pub fn map_at(self, f: impl Fn(Reg<'k, u32>, Reg<'k, u32>, Reg<'k, f32>) -> Reg<'k, f32>) -> Self {
        let k = self.k;
        let loc = Location::caller();
        let (row, pair) = (k.lane_bits(2, 7), k.lane_bits(0, 3));
        let blocks = (self.columns / 8).max(1);
        self.each_register(loc, |i, x| {
            let (block, part) = (i as u32 / 2, i as u32 % 2);
            let (down, across) = (block / blocks * 8, block % blocks * 8 + part);
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

    /// `2ˣ` of every element, to 2 ulp. Arguments and results below 2⁻¹²⁶ become zero, which saves instructions.
    #[track_caller]
    pub fn exp2_ftz(self) -> Self {
        let loc = Location::caller();
        self.k.on_line(loc, || self.each_register(loc, |_, x| x.exp2_ftz()))
    }

    /// Each element times its value in `factor`, plus its value in `addend`, rounded once.
    #[track_caller]
    pub fn mul_add(self, factor: impl Operand<'k>, addend: impl Operand<'k>) -> Self {
        let (k, columns, loc) = (self.k, self.columns, Location::caller());
        let wrong = [factor.mismatch(self.rows, columns), addend.mismatch(self.rows, columns)];
        if let Some(what) = wrong.into_iter().flatten().next() {
            let message = format!("{} does not go with {what}", self.describe());
            k.state().mistake(Code::VectorShape, loc, message);
            return Self::poison(k, self.rows, columns);
        }
        let fused = |i, x: Reg<'k, f32>| {
            x.mul_add(factor.value(k, columns, i, loc), addend.value(k, columns, i, loc))
        };
        k.on_line(loc, || self.each_register(loc, fused))
    }

    /// The larger of each element and its value in `other`.
    #[track_caller]
    pub fn max(self, other: impl Operand<'k>) -> Self {
        self.combine(Binary::Max, other, Location::caller())
    }

    /// The maximum of each row: each lane reduces its part, then a butterfly combines the four lanes that share the
    /// row.
    #[track_caller]
    pub fn row_max(self) -> Rows<'k> {
        self.reduce_rows(Combine::Max, Location::caller())
    }

    /// The sum of each row, added in `f32`: each lane adds its part, then a butterfly combines the four lanes that
    /// share the row, which all get the same sum.
    #[track_caller]
    pub fn row_sum(self) -> Rows<'k> {
        self.reduce_rows(Combine::Sum, Location::caller())
    }

    /// The value of each row of a tile whose columns are all equal, such as a product with [`factor_b`](K::factor_b).
    /// Each lane reads a column that it holds, so nothing is exchanged.
    #[track_caller]
    pub fn row_values(self) -> Rows<'k> {
        let Some(regs) = self.usable(Location::caller()) else { return Rows::poison(self.k, self.rows) };
        let values: Vec<_> = regs.chunks_exact(self.columns as usize / 4).map(|row| row[0]).collect();
        Rows::from_registers(self.k, self.rows, &values)
    }

    /// Whether the predicate holds for at least one element: the same in all lanes of the warp.
    #[track_caller]
    pub fn any(self, f: impl Fn(Reg<'k, f32>) -> Reg<'k, Pred>) -> Reg<'k, Pred> {
        let k = self.k;
        let regs = self.usable(Location::caller()).unwrap_or_default();
        let here = regs.into_iter().map(|reg| f(Reg::new(k, reg))).reduce(|a, b| a | b);
        here.map_or(Reg::new(k, POISON), |here| k.any(here))
    }

    /// The sums of stacked blocks of `rows` rows: row `i` is the sum of the rows `i`, `i + rows`, `i + 2 rows` and so
    /// on. `rows` is a multiple of 8 that divides the tile's rows; nothing is exchanged.
    #[track_caller]
    pub fn fold_rows(self, rows: u32) -> Self {
        let loc = Location::caller();
        if !self.divides(rows, self.rows, "rows", loc) {
            return Self::poison(self.k, rows, self.columns);
        }
        let parts = (0..self.rows).step_by(rows as usize).map(|first| self.row_block(first, rows));
        self.sum_of(parts.collect(), loc)
    }

    /// The sums of blocks of `columns` columns, side by side: column `j` is the sum of the columns `j`, `j +
    /// columns`, `j + 2 columns` and so on. `columns` is a multiple of 8 that divides the tile's columns. Nothing is
    /// exchanged, so you can add up sums of rows over many tiles before one [`row_sum`](Self::row_sum).
    #[track_caller]
    pub fn fold_columns(self, columns: u32) -> Self {
        let loc = Location::caller();
        let poison = Self::poison(self.k, self.rows, columns);
        if !self.divides(columns, self.columns, "columns", loc) {
            return poison;
        }
        let Some(regs) = self.usable(loc) else { return poison };
        let (across, part) = (self.columns as usize / 4, columns as usize / 4);
        let block = |first: usize| {
            let regs: Vec<_> =
                regs.chunks_exact(across).flat_map(|row| &row[first..][..part]).copied().collect();
            Self::from_registers(self.k, self.rows, columns, &regs)
        };
        self.sum_of((0..across).step_by(part).map(block).collect(), loc)
    }

    fn divides(self, part: u32, whole: u32, what: &str, loc: Loc) -> bool {
        let fits = part > 0 && part.is_multiple_of(8) && whole.is_multiple_of(part);
        if !fits {
            let message = format!("{} has no blocks of {part} {what}", self.describe());
            self.k.state().mistake(Code::VectorShape, loc, message);
        }
        fits
    }

    fn sum_of(self, parts: Vec<Self>, loc: Loc) -> Self {
        let sum = parts.into_iter().reduce(|sum, part| sum.combine(Binary::Add, part, loc));
        sum.unwrap_or_else(|| Self::poison(self.k, self.rows, self.columns))
    }

    /// Combines a lane's part of each row, then those of the four lanes that share it.
    fn reduce_rows(self, combine: Combine, loc: Loc) -> Rows<'k> {
        let k = self.k;
        let Some(regs) = self.usable(loc) else { return Rows::poison(k, self.rows) };
        let row = |row: &[ir::Reg]| {
            let mine = row.iter().map(|&reg| Reg::<f32>::new(k, reg)).reduce(|a, b| combine.apply(a, b, loc));
            k.butterfly(combine, mine.unwrap_or_else(|| k.f32(0.0)), 4, loc).id
        };
        let values: Vec<_> = regs.chunks_exact(self.columns as usize / 4).map(row).collect();
        Rows::from_registers(k, self.rows, &values)
    }
}

operators!(Tile<'k, Acc, f32>: Operand);
