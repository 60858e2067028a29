//! Matrices in global memory, with their bounds.

use super::super::Ptr;
use super::super::convert::ConvertFrom;
use super::super::form::{FormId, NO_FACTOR};
use super::super::guard::both;
use super::super::handle::handle;
use super::super::reg::{Binary, IntoReg, Reg};
use super::super::state::{Def, Loc, State};
use super::super::types::*;
use super::{Acc, K, Tile};
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::{self, Type};

/// A row-major matrix in global memory: a handle, free to copy.
///
/// It knows its size, so that loads and stores of tiles stop at its edges.
pub struct Matrix<'k, T> {
    ptr: Ptr<'k, Global, T>,
    rows: Reg<'k, u32>,
    columns: Reg<'k, u32>,
    pitch: Reg<'k, u32>,
    /// What the kernel promised, in bytes.
    aligned: u32,
    checks: [bool; 2],
}

handle!(Matrix<T>);

impl<T: Data> std::fmt::Debug for Matrix<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Matrix({:?})", self.ptr)
    }
}

impl<'k, T: Data> Ptr<'k, Global, T> {
    /// The memory as a row-major matrix whose rows follow one another.
    #[track_caller]
    pub fn matrix(self, rows: impl IntoReg<'k, u32>, columns: impl IntoReg<'k, u32>) -> Matrix<'k, T> {
        let loc = Location::caller();
        let (rows, columns) = (rows.into_reg(self.k, loc), columns.into_reg(self.k, loc));
        Matrix { ptr: self, rows, columns, pitch: columns, aligned: 1, checks: [true; 2] }
    }
}

impl<'k, T: Data> Matrix<'k, T> {
    /// Sets the distance between rows, in elements.
    #[track_caller]
    pub fn pitch(self, pitch: impl IntoReg<'k, u32>) -> Self {
        Matrix { pitch: pitch.into_reg(self.ptr.k, Location::caller()), ..self }
    }

    /// Promises that every row begins at a multiple of `bytes` (up to 16) and has a length that is a multiple of it.
    /// If the number of columns and the pitch are host numbers, the build knows this itself.
    #[track_caller]
    pub fn aligned(self, bytes: u32) -> Self {
        if !matches!(bytes, 1 | 2 | 4 | 8 | 16) {
            let message = format!("rows aligned to {bytes} bytes; 1, 2, 4, 8 and 16 are possible");
            self.ptr.k.state().mistake(Code::Alignment, Location::caller(), message);
            return self;
        }
        Matrix { aligned: bytes, ..self }
    }

    /// Promises, if `fit` is true, that no tile reaches beyond the last row, so this is not checked.
    pub fn rows_fit(mut self, fit: bool) -> Self {
        self.checks[0] = !fit;
        self
    }

    /// Promises, if `fit` is true, that no tile reaches beyond the last column, so this is not checked.
    pub fn columns_fit(mut self, fit: bool) -> Self {
        self.checks[1] = !fit;
        self
    }

    /// The maximum number of bytes, up to `max`, that an access at a column may move at a time: rows begin at
    /// multiples of them, the column is one, and rows are so many long.
    pub(super) fn alignment(self, column: Reg<'k, u32>, max: u32) -> u32 {
        let size = T::TYPE.bytes();
        let mut state = self.ptr.k.state();
        let pointer = match state.pointers.get(self.ptr.id as usize) {
            Some(pointer) => state.forms_alignment(pointer.form, 1),
            None => size,
        };
        let rows = state.alignment_of(self.columns.id, size).min(state.alignment_of(self.pitch.id, size));
        let start = rows.min(pointer).max(self.aligned);
        start.min(state.alignment_of(column.id, size)).min(max).max(size.min(max))
    }

    /// The pointer to an element, and whether the matrix has it, where that is to be checked.
    #[track_caller]
    pub(crate) fn place(
        self,
        row: Reg<'k, u32>,
        column: Reg<'k, u32>,
    ) -> (Ptr<'k, Global, T>, Option<Reg<'k, Pred>>) {
        self.place_further((row, 0), column)
    }

    /// Does the same for a row given as a base row and an offset: several rows share the computation of the check.
    #[track_caller]
    pub(super) fn place_further(
        self,
        (row, further): (Reg<'k, u32>, u32),
        column: Reg<'k, u32>,
    ) -> (Ptr<'k, Global, T>, Option<Reg<'k, Pred>>) {
        // Rows before the first are sums with something that is taken off.
        let not_before = {
            let mut state = row.k.state();
            let form = state.form_of(row.id);
            let unsigned = |reg| !matches!(state.type_of(reg), Some(ir::Type::S32 | ir::Type::S64));
            let mut terms = state.forms.terms(form).iter();
            state.forms.constant(form) >= 0
                && terms.all(|term| term.coefficient >= 0 && [term.a, term.b].into_iter().all(unsigned))
        };
        let below = match (further, not_before) {
            _ if !self.checks[0] => None,
            (1.., true) => Some((self.rows.max(row) - row).gt(further)),
            _ => Some((row + further).lt(self.rows)),
        };
        let row = row + further;
        let before = if self.checks[1] { Some(column.lt(self.columns)) } else { None };
        (self.ptr.at(row * self.pitch + column), both(below, before))
    }

    pub(super) fn kernel(self) -> K<'k> {
        self.ptr.k
    }

    /// The number of columns, which the host knows; a mistake otherwise.
    pub(super) fn host_columns(self, loc: Loc) -> u32 {
        let mut state = self.ptr.k.state();
        match state.int_of(self.columns.id).and_then(|columns| u32::try_from(columns).ok()) {
            Some(columns) => columns,
            None => {
                state.mistake(Code::VectorShape, loc, "the number of columns is to be a host number");
                0
            }
        }
    }

    /// An element, or zero outside the matrix.
    #[track_caller]
    pub fn ld(self, row: impl IntoReg<'k, u32>, column: impl IntoReg<'k, u32>) -> Reg<'k, T>
    where
        T: Number,
        T::Literal: Default,
    {
        let (k, loc) = (self.ptr.k, Location::caller());
        let (ptr, inside) = self.place(row.into_reg(k, loc), column.into_reg(k, loc));
        ptr.ld_if(inside, 0, k.value::<T>(T::Literal::default()))
    }

    /// Stores those elements of a row, from a column on, that are inside the matrix; in one access if its alignment
    /// allows.
    #[track_caller]
    pub fn st<const N: usize>(
        self,
        row: impl IntoReg<'k, u32>,
        column: impl IntoReg<'k, u32>,
        values: [Reg<'k, T>; N],
    ) {
        let (k, loc) = (self.ptr.k, Location::caller());
        let (row, column) = (row.into_reg(k, loc), column.into_reg(k, loc));
        let bytes = T::TYPE.bytes() * N as u32;
        if bytes <= 16 && self.alignment(column, 16).is_multiple_of(bytes) {
            let (ptr, inside) = self.place(row, column);
            return ptr.st_vec_if(inside, 0, values);
        }
        for (i, value) in (0..).zip(values) {
            let (ptr, inside) = self.place(row, column + i);
            ptr.st_if(inside, 0, value);
        }
    }
}

impl<'k> Tile<'k, Acc, f32> {
    /// Stores the accumulators, rounded to `T`, at `row` and `column` of the matrix, except those outside it.
    #[track_caller]
    pub fn store<T: ConvertFrom<f32>>(
        self,
        to: Matrix<'k, T>,
        row: impl IntoReg<'k, u32>,
        column: impl IntoReg<'k, u32>,
    ) {
        let (k, loc) = (self.k, Location::caller());
        let place = (row.into_reg(k, loc), column.into_reg(k, loc));
        let pack = |low: Reg<'k, f32>, high: Reg<'k, f32>| match T::TYPE {
            Type::F16 => low.pack_f16(high).bits(),
            _ => low.pack_bf16(high).bits(),
        };
        k.on_line(loc, || self.store_by(to, place, |value| value.to(), pack, loc));
    }

    /// [`store`](Self::store) to half precision; values beyond its largest number, including infinities, become ±65504.
    #[track_caller]
    pub fn store_finite(
        self,
        to: Matrix<'k, F16>,
        row: impl IntoReg<'k, u32>,
        column: impl IntoReg<'k, u32>,
    ) {
        let (k, loc) = (self.k, Location::caller());
        let place = (row.into_reg(k, loc), column.into_reg(k, loc));
        let pack = |low: Reg<'k, f32>, high| low.pack_f16_saturating(high).bits();
        k.on_line(loc, || self.store_by(to, place, |value| value.to_f16_saturating(), pack, loc));
    }

    /// Stores by functions that round: one element, and two halves in a word.
    fn store_by<T: Data>(
        self,
        to: Matrix<'k, T>,
        (row, column): (Reg<'k, u32>, Reg<'k, u32>),
        round: impl Fn(Reg<'k, f32>) -> Reg<'k, T>,
        pack: impl Fn(Reg<'k, f32>, Reg<'k, f32>) -> Reg<'k, u32>,
        loc: Loc,
    ) {
        let k = self.k;
        let Some(regs) = self.usable(loc) else { return };
        let (g, t) = (k.lane_bits(2, 7), k.lane_bits(0, 3));
        let (row, column) = (row.binary(Binary::Add, g, loc), column.binary(Binary::Add, t * 2, loc));
        let blocks = (self.columns / 8) as usize;
        for (n, pair) in regs.chunks_exact(2).enumerate() {
            let (down, across) = ((n / blocks * 8) as u32, (n % blocks * 8) as u32);
            let (row, column) = (row + down, column + across);
            let [low, high] = [0, 1].map(|i| Reg::<f32>::new(k, pair[i]));
            if !matches!(T::TYPE, Type::F16 | Type::BF16) || to.alignment(column, 4) < 4 {
                to.st(row, column, [low, high].map(&round));
                continue;
            }
            // Two neighbours, as one access.
            let (ptr, inside) = to.place(row, column);
            ptr.cast::<u32>().st_if(inside, 0, pack(low, high));
        }
    }
}

impl State {
    /// The known number of bytes, up to 16, that `size` times an integer is a multiple of.
    pub(super) fn alignment_of(&mut self, reg: ir::Reg, size: u32) -> u32 {
        if self.values.get(reg.0 as usize).is_none() {
            return size;
        }
        let form = self.form_of(reg);
        self.forms_alignment(form, size.into())
    }

    fn forms_alignment(&self, form: FormId, size: i64) -> u32 {
        let terms = self.forms.terms(form).iter().map(|term| {
            let counted = if term.b == NO_FACTOR { self.counted_by(term.a) } else { 1 };
            term.coefficient.wrapping_mul(counted)
        });
        let bits = terms.chain([self.forms.constant(form)]).fold(16, |bits, n| bits | n.wrapping_mul(size));
        1 << bits.trailing_zeros()
    }

    /// The power of two that every value of a loop's counter is a multiple of; 1 for other registers.
    fn counted_by(&self, reg: ir::Reg) -> i64 {
        let Def::Carried(id, 0) = self.value(reg).def else { return 1 };
        let looped = &self.loops[id as usize];
        let Some((_, step)) = looped.induction.filter(|&(counter, _)| counter == reg) else { return 1 };
        match (self.int_of(looped.carried[0].init), self.int_of(step)) {
            (Some(first), Some(step)) => 1 << (first | step | 16).trailing_zeros(),
            _ => 1,
        }
    }
}
