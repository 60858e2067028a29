//! Values for the columns of accumulators.

use super::super::Ptr;
use super::super::carry::carry_field;
use super::super::guard::{Guard, both};
use super::super::reg::{IntoReg, Reg};
use super::super::spread::List;
use super::super::state::{Loc, POISON};
use super::super::types::*;
use super::{K, Matrix, Operand, POISONED, Rows};
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir;

/// A value for each column of an accumulator tile: a handle, free to copy. The eight lanes that share a column
/// hold the same value.
#[derive(Clone, Copy)]
pub struct Columns<'k> {
    k: K<'k>,
    first: u32,
    columns: u32,
}

impl std::fmt::Debug for Columns<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Columns({})", self.columns)
    }
}

impl<'k> K<'k> {
    /// A value for each of `columns` columns, a multiple of 8: the closure computes it from the column's number.
    #[track_caller]
    pub fn columns_at(self, columns: u32, value: impl Fn(Reg<'k, u32>) -> Reg<'k, f32>) -> Columns<'k> {
        if columns == 0 || !columns.is_multiple_of(8) || columns > 1024 {
            let message = format!("values for {columns} columns; tiles have multiples of 8 columns, to 1024");
            self.state().mistake(Code::VectorShape, Location::caller(), message);
            return Columns { k: self, first: POISONED, columns };
        }
        // Two registers for each 8 columns: a lane's neighbours.
        let pair = self.lane_bits(0, 3) * 2;
        let numbers = (0..columns).step_by(8).flat_map(|first| [first, first + 1]);
        let values: Vec<_> = numbers.map(|number| value(pair + number).id).collect();
        Columns::from_registers(self, columns, &values)
    }
}

impl<'k> Columns<'k> {
    fn from_registers(k: K<'k>, columns: u32, regs: &[ir::Reg]) -> Self {
        let mut state = k.state();
        let first = state.fragments.len() as u32;
        state.fragments.extend_from_slice(regs);
        drop(state);
        Columns { k, first, columns }
    }

    fn registers(self) -> Vec<Reg<'k, f32>> {
        let count = if self.first == POISONED { 0 } else { self.columns as usize / 4 };
        let regs = self.k.state().fragments.get(self.first as usize..).unwrap_or_default()[..count].to_vec();
        regs.into_iter().map(|reg| Reg::new(self.k, reg)).collect()
    }

    /// Applies the function to every column's value.
    #[track_caller]
    pub fn map(self, f: impl Fn(Reg<'k, f32>) -> Reg<'k, f32>) -> Self {
        if self.first == POISONED {
            return self;
        }
        let next: Vec<_> = self.registers().into_iter().map(|value| f(value).id).collect();
        Self::from_registers(self.k, self.columns, &next)
    }

    /// The larger of each column's two values. Both must have the same number of columns (`E0016` otherwise).
    #[track_caller]
    pub fn max(self, other: Self) -> Self {
        if self.columns != other.columns {
            let message = format!("values for {} columns and for {}", self.columns, other.columns);
            self.k.state().mistake(Code::VectorShape, Location::caller(), message);
            return Columns { first: POISONED, ..self };
        }
        let pairs = self.registers().into_iter().zip(other.registers());
        let next: Vec<_> = pairs.map(|(one, other)| one.max(other).id).collect();
        match next.is_empty() {
            true => Columns { first: POISONED, ..self },
            false => Self::from_registers(self.k, self.columns, &next),
        }
    }
}

impl<'k> Rows<'k> {
    /// The same values for the columns of a transposed tile: column `i` has the value of row `i`. All lanes of the
    /// warp call it.
    #[track_caller]
    pub fn as_columns(self) -> Columns<'k> {
        let k = self.kernel();
        // The first of the four lanes that have the row.
        let lane = k.lane_bits(0, 3) * 8;
        let pair = |row: usize| [0, 4].map(|next| k.shuffle_idx(self.get(row), lane + next).id);
        let values: Vec<_> = (0..self.len() as usize / 8).flat_map(pair).collect();
        Columns::from_registers(k, self.len(), &values)
    }
}

impl<'k> Operand<'k> for Columns<'k> {
    fn mismatch(self, _: u32, columns: u32) -> Option<String> {
        (self.columns != columns).then(|| format!("values for {} columns", self.columns))
    }

    fn value(self, k: K<'k>, columns: u32, index: usize, _: Loc) -> Reg<'k, f32> {
        let place = index / 2 % (columns as usize / 8) * 2 + index % 2;
        let at = (self.first != POISONED).then_some(self.first as usize + place);
        let reg = at.and_then(|at| self.k.state().fragments.get(at).copied());
        Reg::new(k, reg.unwrap_or(POISON))
    }
}

/// For each column of an accumulator tile, a loaded row of a narrow matrix: state that a loop can carry. See
/// [`Matrix::per_column`].
#[derive(Clone, Copy, Debug)]
pub struct PerColumn<'k> {
    k: K<'k>,
    /// Two neighbours in each, by columns of the tile; or, where rows are odd, one.
    words: List<'k, u32>,
    columns: u32,
    width: u32,
}

carry_field!(
    [] PerColumn<'k>, words, |k| PerColumn { k, words: List::poison(k), columns: 0, width: 1 },
    |rows, see| see(rows.columns, rows.width)
);

impl<'k> Matrix<'k, F16> {
    /// The rows from `row` on, one for each of `columns` columns of a tile, a multiple of 8: for instance the scales
    /// of a row's blocks, for the scores of that row. `wanted` and `before` are as in [`fragments`](Self::fragments).
    /// The host must know the matrix's number of columns.
    #[track_caller]
    pub fn per_column(
        self,
        row: impl IntoReg<'k, u32>,
        columns: u32,
        wanted: impl Guard<'k>,
        before: Option<PerColumn<'k>>,
    ) -> PerColumn<'k> {
        let (k, loc, wanted) = (self.kernel(), Location::caller(), wanted.predicate());
        let (row, width) = (row.into_reg(k, loc), self.host_columns(loc));
        let before = before.map(|before| before.words.to_vec());
        let mut words: Vec<Reg<'k, u32>> = Vec::new();
        let pair = k.lane_bits(0, 3) * 2;
        k.on_line(loc, || {
            for down in (0..columns).step_by(8).flat_map(|down| [down, down + 1]) {
                let (from, inside) = self.columns_fit(true).place(row + pair + down, k.u32(0));
                let wanted = both(wanted, inside);
                // As many bytes at once as the length of rows allows.
                let bytes = (2 * width) & (2 * width).wrapping_neg();
                let other = |i: usize| before.as_ref().map_or(k.u32(0), |words| words[i]);
                for first in (0..width).step_by(bytes.min(16) as usize / 2) {
                    let (at, from) = (words.len(), from.at(first));
                    match bytes {
                        2 => words.push(one(from.cast(), wanted, other(at))),
                        4 => words.extend(several::<1>(from.cast(), wanted, &other, at)),
                        8 => words.extend(several::<2>(from.cast(), wanted, &other, at)),
                        _ => words.extend(several::<4>(from.cast(), wanted, &other, at)),
                    }
                }
            }
        });
        PerColumn { k, words: k.list(words), columns, width }
    }
}

fn one<'k>(from: Ptr<'k, Global, u16>, wanted: Option<Reg<'k, Pred>>, other: Reg<'k, u32>) -> Reg<'k, u32> {
    from.ld_if(wanted, 0, other.to::<u16>()).to()
}

fn several<'k, const N: usize>(
    from: Ptr<'k, Global, u32>,
    wanted: Option<Reg<'k, Pred>>,
    other: &impl Fn(usize) -> Reg<'k, u32>,
    first: usize,
) -> [Reg<'k, u32>; N] {
    from.ld_vec_or(wanted, 0, std::array::from_fn(|i| other(first + i)))
}

impl<'k> PerColumn<'k> {
    /// Columns of the matrix.
    pub fn width(self) -> u32 {
        self.width
    }

    /// Column `j` of the matrix: a value for each column of the tile.
    #[track_caller]
    pub fn column(self, j: u32) -> Columns<'k> {
        let (k, loc) = (self.k, Location::caller());
        if j >= self.width {
            let message = format!("column {j} of {}", self.width);
            k.state().mistake(Code::VectorShape, loc, message);
            return Columns { k, first: POISONED, columns: self.columns };
        }
        let packed = self.width.is_multiple_of(2);
        let words = self.words.to_vec();
        let of_row = words.len() / (self.columns as usize / 4);
        let value = |row: &[Reg<'k, u32>]| match packed {
            true => row[j as usize / 2].bits::<F16x2>().f32x2()[j as usize % 2].id,
            false => row[j as usize].bits::<F16x2>().f32x2()[0].id,
        };
        let values: Vec<_> = k.on_line(loc, || words.chunks_exact(of_row).map(value).collect());
        Columns::from_registers(k, self.columns, &values)
    }
}
