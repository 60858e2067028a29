//! Values for the columns of accumulators.

use super::super::reg::Reg;
use super::super::state::{Loc, POISON};
use super::{K, Operand, POISONED};
use std::panic::Location;
use warpwright_ptx::diag::Code;

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
    /// A value for each of `columns` columns, a multiple of 8: what the closure makes of the column's number.
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
        let mut state = self.state();
        let first = state.fragments.len() as u32;
        state.fragments.extend_from_slice(&values);
        drop(state);
        Columns { k: self, first, columns }
    }
}

impl<'k> Operand<'k> for Columns<'k> {
    fn mismatch(self, _: u32, columns: u32) -> Option<String> {
        (self.columns != columns).then(|| format!("values for {} columns", self.columns))
    }

    fn value(self, k: K<'k>, columns: u32, index: usize, _: Loc) -> Reg<'k, f32> {
        let place = index / 4 % (columns as usize / 8) * 2 + index % 2;
        let at = (self.first != POISONED).then_some(self.first as usize + place);
        let reg = at.and_then(|at| self.k.state().fragments.get(at).copied());
        Reg::new(k, reg.unwrap_or(POISON))
    }
}
