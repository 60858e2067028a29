//! A product of matrices that the lanes of a warp hold in their registers.

use super::halves;
use super::scaled::ScaleRows;
use crate::decode::{Decoder, Rows};
use crate::launch::TrapKind;
use crate::machine::{FULL, Inst, LANES, Machine, NONE, Registers, Row32, Step};
use crate::num::exact::Value;
use crate::num::float::fma_f64;
use crate::num::half::{f16_to_f32, f32_to_f16};
use crate::num::{Direction, Format};
use crate::simd::{LaneOp, lanes};
use crate::tensor::integer::{BitProduct, Overflow, bit_product};
use crate::tensor::{
    Accumulator, FloatElement, FloatProduct, Left, Size, Sparsity, Spread, TensorCore, double, fused, integer,
};
use warpwright_ptx::ir::*;

/// Most elements of a factor, and of a sum.
pub(super) const FACTOR: usize = 1024;
pub(super) const SUM: usize = 256;

/// A type of small integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Integer {
    pub(crate) bits: u32,
    pub(crate) signed: bool,
}

/// How elements are multiplied and added.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arithmetic {
    Float {
        a: FloatElement,
        b: FloatElement,
        c: Accumulator,
        d: Accumulator,
    },
    /// With scales of blocks along k, and sums in `f32`.
    Scaled {
        a: FloatElement,
        b: FloatElement,
        scales: ScaleRows,
    },
    Double(Rounding),
    Integer {
        a: Integer,
        b: Integer,
        overflow: Overflow,
    },
    Bits(BitProduct),
}

/// A matrix in the registers of the lanes.
pub(crate) struct Held {
    pub(crate) rows: Box<[u32]>,
    pub(crate) spread: Spread,
}

/// The matrix that results.
pub(crate) struct Results {
    /// `None`: it is not wanted.
    pub(crate) rows: Box<[Option<u32>]>,
    pub(crate) spread: Spread,
}

/// Where the values of a sparse left factor stand.
pub(crate) struct Sparse {
    pub(crate) sparsity: Sparsity,
    pub(crate) metadata: u32,
    pub(crate) selector: u32,
    pub(crate) ordered: bool,
}

/// A decoded product, or `count` of them side by side.
pub(crate) struct Product {
    pub(crate) arithmetic: Arithmetic,
    pub(crate) size: Size,
    pub(crate) count: usize,
    pub(crate) a: Held,
    pub(crate) b: Held,
    pub(crate) c: Held,
    pub(crate) d: Results,
    pub(crate) sparse: Option<Sparse>,
}

impl Product {
    pub(crate) fn emit(self, d: &mut Decoder<'_, '_>) {
        let x = d.code.matrix.products.len() as u32;
        let handlers = halves::handlers(&self).unwrap_or_else(lanes::<MatrixProduct>);
        d.code.matrix.products.push(self);
        d.emit(handlers, Rows { x, ..Rows::default() });
    }

    #[inline(always)]
    fn run(&self, m: &mut Machine<'_>) -> Step {
        let done = match self.arithmetic {
            Arithmetic::Float { a, b, c, d } => self.float((a, b), c, d, m),
            Arithmetic::Scaled { a, b, scales } => self.scaled((a, b), scales, m),
            Arithmetic::Double(rounding) => {
                self.double(rounding, m);
                Ok(())
            }
            Arithmetic::Integer { a, b, overflow } => self.integer((a, b), overflow, m),
            Arithmetic::Bits(op) => {
                self.bits(op, m);
                Ok(())
            }
        };
        done.err().unwrap_or(Step::Next)
    }

    #[inline(always)]
    fn float(
        &self,
        (a, b): (FloatElement, FloatElement),
        c: Accumulator,
        sums: Accumulator,
        m: &mut Machine<'_>,
    ) -> Result<(), Step> {
        let core = m.launch.options.tensor_core;
        // With `c` in `f32` the sums are too, and the result is converted at the end.
        let within = if c == sums || core == TensorCore::Exact { sums } else { Accumulator::F32 };
        let product = FloatProduct { core, a, b, sums: within };
        let mut left = [0.0; FACTOR / 2];
        let mut right = [0.0; FACTOR / 2];
        let mut added = [0.0; SUM];
        let mut result = [0.0; SUM];
        factor(&m.registers, &self.a, a, &mut left);
        factor(&m.registers, &self.b, b, &mut right);
        let columns = Sparse::columns(&self.sparse, m, &left)?;
        match c {
            Accumulator::F32 => gather(&m.registers, &self.c, 32, f32::from_bits, &mut added),
            Accumulator::F16 => gather(&m.registers, &self.c, 16, |v| f16_to_f32(v as u16), &mut added),
        }
        for number in 0..self.count {
            let (a, b, sum) = self.parts(number);
            let (left, right, added) = (&left[a], &right[b], &added[sum.clone()]);
            if self.count > 1 && core.fuses_quads() {
                fused::product(sums, left, right, added, &mut result[sum]);
            } else {
                let left = Left { values: left, columns: columns.as_deref() };
                product.product(self.size, left, right, added, &mut result[sum]);
            }
        }
        match sums {
            Accumulator::F32 => scatter(m, &self.d, 32, f32::to_bits, &result),
            Accumulator::F16 => scatter(m, &self.d, 16, |v| f32_to_f16(v).into(), &result),
        }
        Ok(())
    }

    #[inline(always)]
    fn integer(
        &self,
        (a, b): (Integer, Integer),
        overflow: Overflow,
        m: &mut Machine<'_>,
    ) -> Result<(), Step> {
        let mut left = [0; FACTOR];
        let mut right = [0; FACTOR];
        let mut added = [0; SUM];
        let mut result = [0; SUM];
        let extend = |ty: Integer| {
            move |value: u32| {
                let top = value << (32 - ty.bits);
                if ty.signed { top as i32 >> (32 - ty.bits) } else { (top >> (32 - ty.bits)) as i32 }
            }
        };
        gather(&m.registers, &self.a, a.bits, extend(a), &mut left);
        gather(&m.registers, &self.b, b.bits, extend(b), &mut right);
        gather(&m.registers, &self.c, 32, |value| value as i32, &mut added);
        let columns = Sparse::columns(&self.sparse, m, &left)?;
        let (a, b, sum) = self.parts(0);
        let left = Left { values: &left[a], columns: columns.as_deref() };
        integer::product(overflow, self.size, left, &right[b], &added[sum.clone()], &mut result[sum]);
        scatter(m, &self.d, 32, |value| value as u32, &result);
        Ok(())
    }

    #[inline(always)]
    fn bits(&self, op: BitProduct, m: &mut Machine<'_>) {
        let mut left = [0; FACTOR / 8];
        let mut right = [0; FACTOR / 8];
        let mut added = [0; SUM];
        let mut result = [0; SUM];
        gather(&m.registers, &self.a, 32, |value| value, &mut left);
        gather(&m.registers, &self.b, 32, |value| value, &mut right);
        gather(&m.registers, &self.c, 32, |value| value as i32, &mut added);
        bit_product(op, self.size, &left, &right, &added, &mut result);
        scatter(m, &self.d, 32, |value| value as u32, &result);
    }

    #[inline(always)]
    fn double(&self, rounding: Rounding, m: &mut Machine<'_>) {
        let mut left = [0.0; SUM];
        let mut right = [0.0; SUM];
        let mut added = [0.0; SUM];
        let mut result = [0.0; SUM];
        gather_wide(&m.registers, &self.a, &mut left);
        gather_wide(&m.registers, &self.b, &mut right);
        gather_wide(&m.registers, &self.c, &mut added);
        let size = self.size;
        match direction(rounding) {
            Direction::Nearest => double::product(fma_f64, size, &left, &right, &added, &mut result),
            direction => {
                let fma = |x, y, z| directed_fma(direction, x, y, z);
                double::product(fma, size, &left, &right, &added, &mut result);
            }
        }
        for (index, row) in self.d.rows.iter().enumerate() {
            let Some(row) = *row else { continue };
            let positions = self.d.spread.lanes(index);
            let values = positions.map(|position| result[usize::from(position)].to_bits());
            m.registers.set64(row, &values, m.mask);
        }
    }

    /// Where the matrices of one of the products are.
    #[inline(always)]
    pub(super) fn parts(
        &self,
        number: usize,
    ) -> (std::ops::Range<usize>, std::ops::Range<usize>, std::ops::Range<usize>) {
        let part = |elements: usize| number * elements..(number + 1) * elements;
        let Size { m, n, k } = self.size;
        let kept = if self.sparse.is_some() { k / 2 } else { k };
        (part(m * kept), part(k * n), part(m * n))
    }
}

impl Sparse {
    /// Where these values of a left factor, row by row, stand, if its zeros are left out.
    pub(crate) fn columns<T: Default + PartialEq>(
        of: &Option<Sparse>,
        m: &mut Machine<'_>,
        values: &[T],
    ) -> Result<Option<Vec<u8>>, Step> {
        let Some(sparse) = of else { return Ok(None) };
        let lane = m.mask.trailing_zeros() as usize % LANES;
        let selector = m.registers.row32(sparse.selector)[lane] as usize;
        let metadata = *m.registers.row32(sparse.metadata);
        Sparsity { selector, ..sparse.sparsity }
            .columns(&metadata, sparse.ordered, values)
            .map(Some)
            .map_err(|invalid| m.trap(TrapKind::BadOperand, invalid.to_string()))
    }
}

fn direction(rounding: Rounding) -> Direction {
    match rounding {
        Rounding::Rz => Direction::Zero,
        Rounding::Rm => Direction::Down,
        Rounding::Rp => Direction::Up,
        _ => Direction::Nearest,
    }
}

/// `x · y + z`, rounded once.
fn directed_fma(direction: Direction, x: f64, y: f64, z: f64) -> f64 {
    let value = |x: f64| Value::unpack(&Format::F64, x.to_bits());
    f64::from_bits(value(x).times(value(y)).add(value(z), direction).round(&Format::F64, direction, false))
}

/// Any product.
pub(super) struct MatrixProduct;

impl LaneOp for MatrixProduct {
    #[inline(always)]
    fn run(m: &mut Machine<'_>, i: &Inst) -> Step {
        if let Some(step) = m.converge(FULL, NONE) {
            return step;
        }
        let launch = m.launch;
        launch.code.matrix.products[i.x as usize].run(m)
    }
}

/// The values of a factor. One loop for each type, so that each becomes vectors.
#[inline(always)]
pub(super) fn factor(registers: &Registers, held: &Held, element: FloatElement, out: &mut [f32]) {
    match element {
        FloatElement::F16 => gather(registers, held, 16, |v| FloatElement::F16.decode(v), out),
        FloatElement::BF16 => gather(registers, held, 16, |v| FloatElement::BF16.decode(v), out),
        FloatElement::TF32 => gather(registers, held, 32, |v| FloatElement::TF32.decode(v), out),
        FloatElement::E4M3 => gather(registers, held, 8, |v| FloatElement::E4M3.decode(v), out),
        FloatElement::E5M2 => gather(registers, held, 8, |v| FloatElement::E5M2.decode(v), out),
        FloatElement::E3M2 => gather(registers, held, 8, |v| FloatElement::E3M2.decode(v), out),
        FloatElement::E2M3 => gather(registers, held, 8, |v| FloatElement::E2M3.decode(v), out),
        // In the middle of a byte.
        FloatElement::E2M1 => gather(registers, held, 8, |v| FloatElement::E2M1.decode(v >> 2), out),
    }
}

/// From the lanes' registers to a row-major matrix. `decode` sees the element's bits at the low end,
/// and its neighbours' above.
#[inline(always)]
pub(crate) fn gather<T: Copy + Default>(
    registers: &Registers,
    held: &Held,
    bits: u32,
    decode: impl Fn(u32) -> T,
    out: &mut [T],
) {
    let packed = (32 / bits) as usize;
    for (number, &row) in held.rows.iter().enumerate() {
        let row = registers.row32(row);
        for part in 0..packed {
            let shift = bits * part as u32;
            let positions = held.spread.lanes(number * packed + part);
            let mut values = [T::default(); LANES];
            for lane in 0..LANES {
                values[lane] = decode(row[lane] >> shift);
            }
            for (&position, &value) in positions.iter().zip(&values) {
                out[usize::from(position)] = value;
            }
        }
    }
}

fn gather_wide(registers: &Registers, held: &Held, out: &mut [f64]) {
    for (index, &row) in held.rows.iter().enumerate() {
        for (&position, &value) in held.spread.lanes(index).iter().zip(registers.row64(row)) {
            out[usize::from(position)] = f64::from_bits(value);
        }
    }
}

/// From a row-major matrix to the lanes' registers.
#[inline(always)]
pub(crate) fn scatter<T: Copy + Default>(
    m: &mut Machine<'_>,
    results: &Results,
    bits: u32,
    encode: impl Fn(T) -> u32,
    from: &[T],
) {
    let packed = (32 / bits) as usize;
    for (number, row) in results.rows.iter().enumerate() {
        let Some(row) = *row else { continue };
        let mut words: Row32 = [0; LANES];
        for part in 0..packed {
            let shift = bits * part as u32;
            let positions = results.spread.lanes(number * packed + part);
            let mut values = [T::default(); LANES];
            for (value, &position) in values.iter_mut().zip(positions) {
                *value = from[usize::from(position)];
            }
            for lane in 0..LANES {
                words[lane] |= encode(values[lane]) << shift;
            }
        }
        m.registers.set32(row, &words, m.mask);
    }
}
