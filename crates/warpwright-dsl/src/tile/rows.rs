//! Values for the rows of accumulators.

use super::super::carry::Carry;
use super::super::reg::{Binary, IntoReg, Reg};
use super::super::state::{Loc, POISON};
use super::super::types::Pred;
use super::{Acc, K, POISONED, Tile};
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir;

/// A value for each row of an accumulator tile: a handle, free to copy, and state that a fold carries.
/// The four lanes that share a row hold the same value.
#[derive(Clone, Copy)]
pub struct Rows<'k> {
    k: K<'k>,
    first: u32,
    rows: u32,
}

impl std::fmt::Debug for Rows<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rows({})", self.rows)
    }
}

impl<'k> K<'k> {
    /// The same value for each of `rows` rows, a multiple of 8.
    #[track_caller]
    pub fn rows(self, rows: u32, value: impl IntoReg<'k, f32>) -> Rows<'k> {
        let loc = Location::caller();
        let value = value.into_reg(self, loc);
        if rows == 0 || !rows.is_multiple_of(8) || rows > 1024 {
            let message = format!("values for {rows} rows; tiles have multiples of 8 rows, to 1024");
            self.state().mistake(Code::VectorShape, loc, message);
            return Rows::poison(self, rows);
        }
        Rows::from_registers(self, rows, &vec![value.id; rows as usize / 8])
    }
}

impl<'k> K<'k> {
    /// A value for each of `rows` rows, a multiple of 8: the closure computes it from the row's number, once for the
    /// rows of every four lanes.
    #[track_caller]
    pub fn rows_at(self, rows: u32, value: impl Fn(Reg<'k, u32>) -> Reg<'k, f32>) -> Rows<'k> {
        let zeros = self.rows(rows, 0.0);
        let Some(regs) = zeros.registers() else { return zeros };
        let row = self.lane_bits(2, 7);
        let values: Vec<_> = (0..).step_by(8).zip(regs).map(|(first, _)| value(row + first).id).collect();
        Rows::from_registers(self, rows, &values)
    }
}

/// An operand for values of rows: a host number, a register, or values for as many rows.
pub trait RowOperand<'k>: Copy {
    #[doc(hidden)]
    fn mismatch(self, rows: u32) -> Option<u32>;
    #[doc(hidden)]
    fn value(self, k: K<'k>, index: usize) -> Reg<'k, f32>;
}

impl<'k> RowOperand<'k> for f32 {
    fn mismatch(self, _: u32) -> Option<u32> {
        None
    }

    fn value(self, k: K<'k>, _: usize) -> Reg<'k, f32> {
        k.f32(self)
    }
}

impl<'k> RowOperand<'k> for Reg<'k, f32> {
    fn mismatch(self, _: u32) -> Option<u32> {
        None
    }

    fn value(self, _: K<'k>, _: usize) -> Reg<'k, f32> {
        self
    }
}

impl<'k> RowOperand<'k> for Rows<'k> {
    fn mismatch(self, rows: u32) -> Option<u32> {
        (self.rows != rows).then_some(self.rows)
    }

    fn value(self, _: K<'k>, index: usize) -> Reg<'k, f32> {
        self.get(index)
    }
}

/// Which of a lane's values for rows stands beside register `index` of accumulators.
pub(super) fn row_of(index: usize, columns: u32) -> usize {
    index / (columns / 4) as usize
}

impl<'k> Rows<'k> {
    pub(super) fn poison(k: K<'k>, rows: u32) -> Self {
        Rows { k, first: POISONED, rows }
    }

    /// A register for each 8 rows: a row for each four lanes.
    pub(super) fn from_registers(k: K<'k>, rows: u32, regs: &[ir::Reg]) -> Self {
        let mut state = k.state();
        let first = state.fragments.len() as u32;
        state.fragments.extend_from_slice(regs);
        drop(state);
        Rows { k, first, rows }
    }

    fn registers(self) -> Option<Vec<ir::Reg>> {
        if self.first == POISONED {
            return None;
        }
        let first = self.first as usize;
        Some(self.k.state().fragments[first..first + self.rows as usize / 8].to_vec())
    }

    pub(super) fn kernel(self) -> K<'k> {
        self.k
    }

    pub(super) fn get(self, index: usize) -> Reg<'k, f32> {
        let regs = if self.first == POISONED { None } else { Some(self.first as usize + index) };
        let reg = regs.and_then(|at| self.k.state().fragments.get(at).copied());
        Reg::new(self.k, reg.unwrap_or(POISON))
    }

    /// Number of rows.
    #[allow(clippy::len_without_is_empty, reason = "there is always a row")]
    pub fn len(self) -> u32 {
        self.rows
    }

    /// Applies the function to every row's value.
    #[track_caller]
    pub fn map(self, f: impl Fn(Reg<'k, f32>) -> Reg<'k, f32>) -> Self {
        match self.registers() {
            Some(regs) => {
                let next: Vec<_> = regs.into_iter().map(|reg| f(Reg::new(self.k, reg)).id).collect();
                Self::from_registers(self.k, self.rows, &next)
            }
            None => self,
        }
    }

    /// Accumulators with `columns` columns, a multiple of 8, which have the row's value in each: they share its registers.
    #[track_caller]
    pub fn accumulators(self, columns: u32) -> Tile<'k, Acc, f32> {
        let (k, loc) = (self.k, Location::caller());
        let Some(values) = self.registers() else { return Tile::poison(k, self.rows, columns) };
        Tile::shaped(k, self.rows, columns, loc, |_| {
            values.iter().flat_map(|&value| vec![value; columns as usize / 4]).collect()
        })
    }

    /// Applies the function to every row's value and the operand's value for it.
    #[track_caller]
    pub fn zip(
        self,
        other: impl RowOperand<'k>,
        f: impl Fn(Reg<'k, f32>, Reg<'k, f32>) -> Reg<'k, f32>,
    ) -> Self {
        self.zip_at(other, Location::caller(), f)
    }

    /// Runs the closure for every row of the warp's tile, with the row's number and value, each in one of the lanes
    /// that share it.
    #[track_caller]
    pub fn each(self, f: impl Fn(Reg<'k, u32>, Reg<'k, f32>)) {
        let (k, loc) = (self.k, Location::caller());
        let Some(regs) = self.registers() else { return };
        let (row, first) = k.on_line(loc, || (k.lane_bits(2, 7), k.lane_bits(0, 3).eq(0)));
        k.when(first, || {
            for (i, &reg) in (0..).zip(&regs) {
                f(row + i * 8, Reg::new(k, reg));
            }
        });
    }

    /// Whether the predicate holds for at least one row of the warp's tile: the same in all of its lanes.
    #[track_caller]
    pub fn any(self, f: impl Fn(Reg<'k, f32>) -> Reg<'k, Pred>) -> Reg<'k, Pred> {
        let k = self.k;
        let here = self
            .registers()
            .and_then(|regs| regs.into_iter().map(|reg| f(Reg::new(k, reg))).reduce(|a, b| a | b));
        match here {
            Some(here) => k.any(here),
            None => Reg::new(k, POISON),
        }
    }

    fn combine(self, op: Binary, other: impl RowOperand<'k>, loc: Loc) -> Self {
        self.zip_at(other, loc, |x, y| x.binary(op, y, loc))
    }

    fn zip_at(
        self,
        other: impl RowOperand<'k>,
        loc: Loc,
        f: impl Fn(Reg<'k, f32>, Reg<'k, f32>) -> Reg<'k, f32>,
    ) -> Self {
        if let Some(rows) = other.mismatch(self.rows) {
            let message = format!("values for {} rows do not go with values for {rows}", self.rows);
            self.k.state().mistake(Code::VectorShape, loc, message);
            return Self::poison(self.k, self.rows);
        }
        let Some(regs) = self.registers() else { return self };
        let next: Vec<_> = (regs.into_iter().enumerate())
            .map(|(i, reg)| f(Reg::new(self.k, reg), other.value(self.k, i)).id)
            .collect();
        Self::from_registers(self.k, self.rows, &next)
    }

    /// The larger of each row's value and the operand's value for it.
    #[track_caller]
    pub fn max(self, other: impl RowOperand<'k>) -> Self {
        self.combine(Binary::Max, other, Location::caller())
    }

    /// `2ˣ` of every row's value, to 2 ulp.
    #[track_caller]
    pub fn exp2(self) -> Self {
        self.k.on_line(Location::caller(), || self.map(|x| x.exp2()))
    }

    /// `2ˣ` of every row's value, to 2 ulp; results below 2⁻¹²⁶ become zero, which saves instructions.
    #[track_caller]
    pub fn exp2_ftz(self) -> Self {
        self.k.on_line(Location::caller(), || self.map(|x| x.exp2_ftz()))
    }

    /// `1 / x` of every row's value, correctly rounded.
    #[track_caller]
    pub fn rcp(self) -> Self {
        self.k.on_line(Location::caller(), || self.map(|x| x.rcp()))
    }
}

operators!(Rows<'k>: RowOperand);

impl<'k> Carry<'k> for Rows<'k> {
    fn each(&self, see: &mut dyn FnMut(ir::Reg)) {
        match self.registers() {
            Some(regs) => regs.into_iter().for_each(see),
            None => see(POISON),
        }
    }

    fn rebuild(&self, k: K<'k>, next: &mut dyn FnMut() -> ir::Reg) -> Self {
        let count = self.registers().map_or(1, |regs| regs.len());
        let regs: Vec<_> = (0..count).map(|_| next()).collect();
        if self.first == POISONED || regs.contains(&POISON) {
            return Self::poison(k, self.rows);
        }
        Self::from_registers(k, self.rows, &regs)
    }

    fn poison(k: K<'k>) -> Self {
        Self::poison(k, 0)
    }

    fn shape(&self, see: &mut dyn FnMut(u32, u32)) {
        see(self.rows, 1);
    }
}
