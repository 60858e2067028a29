//! Products of factors with block scales: where the scales stand, and their values.
//!
//! A register of each lane holds four scales. With lane 4g + t and a selector {byte, thread}:
//!
//! ```text
//!   a: row g in lane t = 2 · thread, row g + 8 in lane t = 2 · thread + 1      thread 0 or 1
//!   b: column g in lane t = thread                                             thread 0 to 3
//! ```
//!
//! The first scale of a row or column is the byte of the selector, those of the next blocks along k are in the bytes
//! above. What the other lanes hold is ignored.

use super::product::{FACTOR, Product, SUM, Sparse, factor, gather, scatter};
use crate::decode::Decoder;
use crate::launch::TrapKind;
use crate::machine::{LANES, Machine, Step};
use crate::tensor::{Accumulator, FloatElement, FloatProduct, Left, Scales};
use warpwright_ptx::ir::*;

/// Most scales of a factor.
const SCALES: usize = 64;

/// The rows of a factor's scales and of their selector.
#[derive(Clone, Copy, Debug)]
struct Side {
    scales: u32,
    byte: u32,
    thread: u32,
}

/// The scales of both factors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScaleRows {
    a: Side,
    b: Side,
    /// Blocks along k.
    blocks: usize,
    /// `ue4m3`, not `ue8m0`.
    fractions: bool,
    /// Two elements of a factor in a byte, not one.
    pub(super) pairs: bool,
}

impl ScaleRows {
    pub(super) fn new(
        d: &mut Decoder<'_, '_>,
        (a, b): ((&Srcs, &Srcs), (&Srcs, &Srcs)),
        blocks: usize,
        fractions: bool,
        pairs: bool,
    ) -> ScaleRows {
        let mut side = |(scales, selector): (&Srcs, &Srcs)| Side {
            scales: d.src32(&scales.as_slice()[0], Type::B32),
            byte: d.src32(&selector.as_slice()[0], Type::U16),
            thread: d.src32(&selector.as_slice()[1], Type::U16),
        };
        ScaleRows { a: side(a), b: side(b), blocks, fractions, pairs }
    }

    /// The scales of a factor, those of a row or column together. `lanes`: how many of a group of four lanes hold
    /// scales, one for each eight rows or columns.
    fn values(&self, side: Side, lanes: usize, m: &mut Machine<'_>) -> Result<[f64; SCALES], Step> {
        let lane = m.mask.trailing_zeros() as usize % LANES;
        let selected = |row: u32| m.registers.row32(row)[lane] as u16 as usize;
        let (byte, thread) = (selected(side.byte), selected(side.thread));
        if byte % self.blocks != 0 || byte > 4 - self.blocks || thread >= 4 / lanes {
            let message = format!(
                "there are no scales from byte {byte} on of thread {thread}: of {} scales, the byte is a multiple of that below 4, and the thread less than {}",
                self.blocks,
                4 / lanes
            );
            return Err(m.trap(TrapKind::BadOperand, message));
        }
        let words = m.registers.row32(side.scales);
        let mut values = [0.0; SCALES];
        for (index, value) in values.iter_mut().take(8 * lanes * self.blocks).enumerate() {
            let (line, block) = (index / self.blocks, index % self.blocks);
            let word = words[4 * (line % 8) + lanes * thread + line / 8];
            *value = scale(word >> (8 * (byte + block)) & 0xff, self.fractions);
        }
        Ok(values)
    }
}

impl Product {
    /// The product with scales.
    pub(super) fn scaled(
        &self,
        (a, b): (FloatElement, FloatElement),
        scales: ScaleRows,
        m: &mut Machine<'_>,
    ) -> Result<(), Step> {
        let (a_scales, b_scales) = (scales.values(scales.a, 2, m)?, scales.values(scales.b, 1, m)?);
        let mut left = [0.0; FACTOR];
        let mut right = [0.0; FACTOR];
        let mut added = [0.0; SUM];
        let mut result = [0.0; SUM];
        if scales.pairs {
            gather(&m.registers, &self.a, 4, |v| FloatElement::E2M1.decode(v), &mut left);
            gather(&m.registers, &self.b, 4, |v| FloatElement::E2M1.decode(v), &mut right);
        } else {
            factor(&m.registers, &self.a, a, &mut left);
            factor(&m.registers, &self.b, b, &mut right);
        }
        gather(&m.registers, &self.c, 32, f32::from_bits, &mut added);
        let columns = Sparse::columns(&self.sparse, m, &left)?;
        let left = Left { values: &left[self.parts(0).0], columns: columns.as_deref() };
        let product = FloatProduct { core: m.launch.options.tensor_core, a, b, sums: Accumulator::F32 };
        let of_blocks = Scales { blocks: scales.blocks, a: &a_scales, b: &b_scales };
        product.scaled(of_blocks, self.size, left, &right, &added, &mut result);
        scatter(m, &self.d, 32, f32::to_bits, &result);
        Ok(())
    }
}

/// The value of a scale: `ue4m3`, if it has `fractions`, or `ue8m0`.
pub(crate) fn scale(bits: u32, fractions: bool) -> f64 {
    match bits {
        // It has no sign.
        _ if fractions => FloatElement::E4M3.decode(bits & 0x7f).into(),
        0xff => f64::NAN,
        _ => f64::from_bits(u64::from(bits + 1023 - 127) << 52),
    }
}
