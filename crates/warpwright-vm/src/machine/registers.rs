//! The registers of a warp: rows of 32 lanes, in one file per width.
//!
//! A register of up to 32 bits is a row of `u32`, zero-extended; one of 64 bits a row of `u64`; one of
//! 128 bits two rows of `u64`, the low one first; a predicate a mask with a bit per lane. Constants are
//! rows as well, so that an operand is always a row. The rows of a function's frame start at the base of
//! the frame ([`Base`]): a call moves the base up.

use super::{Inst, Machine};
use crate::decode::{Deciding, File};
use crate::native::Lane;

/// All lanes of a warp.
pub(crate) const FULL: u32 = u32::MAX;

/// Number of lanes of a warp.
pub(crate) const LANES: usize = 32;

/// A row of up to 32 bits a lane.
pub(crate) type Row32 = [u32; LANES];

/// A row of 64 bits a lane.
pub(crate) type Row64 = [u64; LANES];

/// `f` of every lane. The `map` of arrays does the same, but is not made vector code.
#[inline(always)]
pub(crate) fn lanewise<A: Copy, R: Copy + Default>(row: &[A; LANES], f: impl Fn(A) -> R) -> [R; LANES] {
    let mut out = [R::default(); LANES];
    for lane in 0..LANES {
        out[lane] = f(row[lane]);
    }
    out
}

/// The lanes of a mask, in order.
#[derive(Clone, Copy)]
pub(crate) struct LanesOf(pub(crate) u32);

impl Iterator for LanesOf {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let lane = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(lane)
    }
}

/// A row that begins at a line of the host's cache.
#[derive(Clone, Copy, Debug, Hash)]
#[repr(C, align(64))]
struct Aligned<T>(T);

/// Where the rows of a frame start in each file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Base {
    pub(crate) w32: u32,
    pub(crate) w64: u32,
    pub(crate) pred: u32,
}

/// The register files of a warp.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Registers {
    pub(crate) base: Base,
    w32: Vec<Aligned<Row32>>,
    w64: Vec<Aligned<Row64>>,
    pred: Vec<u32>,
}

impl Registers {
    /// Bytes of all rows.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.w32) + size_of_val(&*self.w64) + size_of_val(&*self.pred)
    }

    /// Where the rows of the current frame are, by file.
    pub(crate) fn pointers(&mut self) -> (*mut u8, *mut u8, *mut u8) {
        let Base { w32, w64, pred } = self.base;
        (
            self.w32[w32 as usize..].as_mut_ptr().cast(),
            self.w64[w64 as usize..].as_mut_ptr().cast(),
            self.pred[pred as usize..].as_mut_ptr().cast(),
        )
    }

    /// Makes room for the frame at `base` with that many rows.
    pub(crate) fn reserve(&mut self, base: Base, rows: Base) {
        let grow = |len: usize, need: u32| len.max(need as usize);
        self.w32.resize(grow(self.w32.len(), base.w32 + rows.w32), Aligned([0; LANES]));
        self.w64.resize(grow(self.w64.len(), base.w64 + rows.w64), Aligned([0; LANES]));
        self.pred.resize(grow(self.pred.len(), base.pred + rows.pred), 0);
    }

    /// Bytes that making that room takes.
    pub(crate) fn missing(&self, base: Base, rows: Base) -> u64 {
        let more = |len: usize, need: u32| (need as usize).saturating_sub(len) as u64;
        more(self.w32.len(), base.w32 + rows.w32) * size_of::<Row32>() as u64
            + more(self.w64.len(), base.w64 + rows.w64) * size_of::<Row64>() as u64
            + more(self.pred.len(), base.pred + rows.pred) * size_of::<u32>() as u64
    }

    /// A row of the current frame.
    #[inline(always)]
    pub(crate) fn row32(&self, row: u32) -> &Row32 {
        &self.w32[(self.base.w32 + row) as usize].0
    }

    /// A row of the current frame.
    #[inline(always)]
    pub(crate) fn row64(&self, row: u32) -> &Row64 {
        &self.w64[(self.base.w64 + row) as usize].0
    }

    #[inline(always)]
    pub(crate) fn row32_mut(&mut self, row: u32) -> &mut Row32 {
        &mut self.w32[(self.base.w32 + row) as usize].0
    }

    #[inline(always)]
    pub(crate) fn row64_mut(&mut self, row: u32) -> &mut Row64 {
        &mut self.w64[(self.base.w64 + row) as usize].0
    }

    /// The lanes for which a predicate operand holds. The operand is a row with the negation in its lowest
    /// bit.
    #[inline(always)]
    pub(crate) fn predicate(&self, operand: u32) -> u32 {
        let mask = self.pred[(self.base.pred + (operand >> 1)) as usize];
        if operand & 1 == 0 { mask } else { !mask }
    }

    /// Sets a predicate for the lanes of `mask`. The row is not an operand: it has no negation bit.
    #[inline(always)]
    pub(crate) fn set_predicate(&mut self, row: u32, value: u32, mask: u32) {
        let slot = &mut self.pred[(self.base.pred + row) as usize];
        *slot = *slot & !mask | value & mask;
    }

    /// Clears all other bits of a row of the first frame, in the lanes of `mask`.
    pub(crate) fn keep(&mut self, Deciding { file, row, bits }: Deciding, mask: u32) {
        for lane in LanesOf(mask) {
            match file {
                File::Wide => self.w64[row as usize].0[lane] &= bits,
                _ => self.w32[row as usize].0[lane] &= bits as u32,
            }
        }
    }

    /// Writes the lanes of `mask`.
    #[inline(always)]
    pub(crate) fn set32(&mut self, row: u32, values: &Row32, mask: u32) {
        let row = self.row32_mut(row);
        if mask == FULL {
            *row = *values;
        } else {
            for lane in 0..LANES {
                row[lane] = if mask >> lane & 1 != 0 { values[lane] } else { row[lane] };
            }
        }
    }

    /// Writes the lanes of `mask`.
    #[inline(always)]
    pub(crate) fn set64(&mut self, row: u32, values: &Row64, mask: u32) {
        let row = self.row64_mut(row);
        if mask == FULL {
            *row = *values;
        } else {
            for lane in 0..LANES {
                row[lane] = if mask >> lane & 1 != 0 { values[lane] } else { row[lane] };
            }
        }
    }
}

/// The type of a value that one lane of a row holds.
pub(crate) trait Cell: Copy {
    /// What it is for the compiler of native code, if that has such values.
    const LANE: Option<Lane> = None;
    /// What the file holds for 32 lanes.
    type Row: Copy;
    /// The results of 32 lanes, before they are written.
    type Out: Copy;

    fn row(registers: &Registers, operand: u32) -> Self::Row;
    fn get(row: &Self::Row, lane: usize) -> Self;
    fn out() -> Self::Out;
    fn put(out: &mut Self::Out, lane: usize, value: Self);
    fn write(registers: &mut Registers, row: u32, out: &Self::Out, mask: u32);
}

macro_rules! cell {
    ($($ty:ty: $lane:expr, $row:ident, $wide:ty, $set:ident, |$get:ident| $from:expr, |$put:ident| $to:expr;)*) => {$(
        impl Cell for $ty {
            const LANE: Option<Lane> = $lane;
            type Row = [$wide; LANES];
            type Out = [$wide; LANES];

            #[inline(always)]
            fn row(registers: &Registers, operand: u32) -> Self::Row {
                *registers.$row(operand)
            }

            #[inline(always)]
            fn get(row: &Self::Row, lane: usize) -> Self {
                let $get = row[lane];
                $from
            }

            #[inline(always)]
            fn out() -> Self::Out {
                [0; LANES]
            }

            #[inline(always)]
            fn put(out: &mut Self::Out, lane: usize, $put: Self) {
                out[lane] = $to;
            }

            #[inline(always)]
            fn write(registers: &mut Registers, row: u32, out: &Self::Out, mask: u32) {
                registers.$set(row, out, mask);
            }
        }
    )*};
}

cell! {
    u8: None, row32, u32, set32, |v| v as u8, |v| v.into();
    i8: None, row32, u32, set32, |v| v as i8, |v| (v as u8).into();
    u16: Some(Lane::U16), row32, u32, set32, |v| v as u16, |v| v.into();
    i16: Some(Lane::S16), row32, u32, set32, |v| v as i16, |v| (v as u16).into();
    u32: Some(Lane::U32), row32, u32, set32, |v| v, |v| v;
    i32: Some(Lane::S32), row32, u32, set32, |v| v as i32, |v| v as u32;
    f32: Some(Lane::F32), row32, u32, set32, |v| f32::from_bits(v), |v| v.to_bits();
    u64: Some(Lane::U64), row64, u64, set64, |v| v, |v| v;
    i64: Some(Lane::S64), row64, u64, set64, |v| v as i64, |v| v as u64;
    f64: None, row64, u64, set64, |v| f64::from_bits(v), |v| v.to_bits();
}

impl Cell for bool {
    type Row = u32;
    type Out = Row32;

    #[inline(always)]
    fn row(registers: &Registers, operand: u32) -> u32 {
        registers.predicate(operand)
    }

    #[inline(always)]
    fn get(row: &u32, lane: usize) -> bool {
        row >> lane & 1 != 0
    }

    #[inline(always)]
    fn out() -> Row32 {
        [0; LANES]
    }

    #[inline(always)]
    fn put(out: &mut Row32, lane: usize, value: bool) {
        out[lane] = if value { 1 << lane } else { 0 };
    }

    #[inline(always)]
    fn write(registers: &mut Registers, row: u32, out: &Row32, mask: u32) {
        registers.set_predicate(row, out.iter().fold(0, |all, lane| all | lane), mask);
    }
}

/// `d = f(a)` in every lane.
#[inline(always)]
pub(crate) fn map1<A: Cell, R: Cell>(m: &mut Machine<'_>, i: &Inst, f: impl Fn(A) -> R) {
    let a = A::row(&m.registers, i.a);
    let mut out = R::out();
    for lane in 0..LANES {
        R::put(&mut out, lane, f(A::get(&a, lane)));
    }
    R::write(&mut m.registers, i.d, &out, m.mask);
}

/// `d = f(a, b)` in every lane.
#[inline(always)]
pub(crate) fn map2<A: Cell, B: Cell, R: Cell>(m: &mut Machine<'_>, i: &Inst, f: impl Fn(A, B) -> R) {
    let a = A::row(&m.registers, i.a);
    let b = B::row(&m.registers, i.b);
    let mut out = R::out();
    for lane in 0..LANES {
        R::put(&mut out, lane, f(A::get(&a, lane), B::get(&b, lane)));
    }
    R::write(&mut m.registers, i.d, &out, m.mask);
}

/// `d = f(a, b, c)` in every lane.
#[inline(always)]
pub(crate) fn map3<A: Cell, B: Cell, C: Cell, R: Cell>(
    m: &mut Machine<'_>,
    i: &Inst,
    f: impl Fn(A, B, C) -> R,
) {
    let a = A::row(&m.registers, i.a);
    let b = B::row(&m.registers, i.b);
    let c = C::row(&m.registers, i.c);
    let mut out = R::out();
    for lane in 0..LANES {
        R::put(&mut out, lane, f(A::get(&a, lane), B::get(&b, lane), C::get(&c, lane)));
    }
    R::write(&mut m.registers, i.d, &out, m.mask);
}
