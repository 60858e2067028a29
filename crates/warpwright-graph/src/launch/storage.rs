//! The layout of a tensor in memory: one range, or several one after another.

use crate::graph::{Element, TensorType};
use warpwright_kernels::weights::Planes;
use warpwright_kernels::{CacheDtype, Dtype, ScaleRows, WeightFormat};
use warpwright_ptx::ir::Type;

/// Bytes that the parts of a tensor begin at multiples of.
pub(crate) const ALIGNMENT: u64 = 256;

/// A part of a tensor's memory: one argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plane {
    /// Type of its elements.
    pub dtype: Type,
    /// Number of its elements.
    pub len: u64,
    /// Its offset in the tensor's memory, in bytes.
    pub offset: u64,
}

impl Plane {
    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.len.saturating_mul(self.dtype.bytes().into())
    }
}

/// The layout of weights on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WeightLayout {
    /// Row after row, as in a GGUF file: for lookups.
    Rows,
    /// In the planes of `docs/weights.md`: for products.
    Planes,
}

impl WeightLayout {
    /// Bytes of `n` rows of `k` weights.
    pub fn bytes(self, format: WeightFormat, n: u32, k: u32) -> u64 {
        match self {
            WeightLayout::Rows => format.matrix_bytes(n.into(), k),
            WeightLayout::Planes => Planes::new(format, n, k).bytes(),
        }
    }
}

/// The parts of a tensor, in the order in which kernels take them: a single one, except for q8_0 caches (quants,
/// scales), `int8` (quants, scales) and scaled halves (halves, scales). For weights it is their bytes in planes.
pub fn planes(ty: TensorType) -> Vec<Plane> {
    let (all, rows, columns) = (ty.shape.elements(), ty.shape.rows(), ty.shape.columns());
    let parts = match ty.element {
        Element::Float(dtype) => vec![(dtype.ty(), all)],
        Element::U32 => vec![(Type::U32, all)],
        Element::U64 => vec![(Type::U64, all)],
        Element::Weights(format) => {
            let n = u32::try_from(rows).unwrap_or(u32::MAX);
            vec![(Type::U8, WeightLayout::Planes.bytes(format, n, columns))]
        }
        Element::Cache(CacheDtype::Q8_0) => vec![(Type::S8, all), (Type::F16, all / 32)],
        Element::Cache(dtype) => vec![(dtype.ty(), all)],
        Element::Int8 => vec![(Type::S8, all), (Type::F32, all / 32)],
        Element::Scaled { half, terms } => {
            let pitch = ScaleRows { d: columns, dtype: Dtype::F32, half, terms }.pitch();
            let halves = rows.saturating_mul(terms.into()).saturating_mul(pitch.into());
            vec![(half.ty(), halves), (Type::F32, rows)]
        }
    };
    let mut offset = 0;
    parts
        .into_iter()
        .map(|(dtype, len)| {
            let plane = Plane { dtype, len, offset };
            // Sizes that no device has end at the largest number there is.
            let end = offset.saturating_add(plane.bytes());
            offset = end.checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX);
            plane
        })
        .collect()
}

/// Bytes of a tensor.
pub(crate) fn bytes(ty: TensorType) -> u64 {
    planes(ty).last().map_or(0, |last| last.offset.saturating_add(last.bytes()))
}
