//! What a tensor holds.

use super::error::ReferenceError;
use half::{bf16, f16};
use warpwright_graph::{Element, TensorType};
use warpwright_kernels::{CacheDtype, Dtype};

/// The elements of a tensor, the last dimension contiguous.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Floats, and weights and caches as the numbers that they stand for.
    Floats(Vec<f64>),
    /// Integers of 32 and of 64 bits.
    Integers(Vec<u64>),
}

impl Value {
    /// Integers of 32 bits.
    pub(crate) fn u32s(numbers: &[u32]) -> Self {
        Value::Integers(numbers.iter().map(|&number| number.into()).collect())
    }

    /// How many elements there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Value::Floats(floats) => floats.len(),
            Value::Integers(integers) => integers.len(),
        }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The floats; none of integers.
    pub(crate) fn floats(&self) -> &[f64] {
        match self {
            Value::Floats(floats) => floats,
            Value::Integers(_) => &[],
        }
    }

    /// The integers; none of floats.
    pub(crate) fn integers(&self) -> &[u64] {
        match self {
            Value::Floats(_) => &[],
            Value::Integers(integers) => integers,
        }
    }

    /// Zeros of a type.
    pub(super) fn zeros(ty: TensorType) -> Self {
        let len = ty.shape.elements() as usize;
        match ty.element {
            Element::U32 | Element::U64 => Value::Integers(vec![0; len]),
            _ => Value::Floats(vec![0.0; len]),
        }
    }

    /// Whether a tensor of the type can be this.
    pub(super) fn check(&self, name: &str, ty: TensorType) -> Result<(), ReferenceError> {
        let integers = matches!(ty.element, Element::U32 | Element::U64);
        let too_large = |&integer: &u64| ty.element == Element::U32 && integer > u32::MAX.into();
        let right = match self {
            Value::Floats(_) => !integers,
            Value::Integers(numbers) => integers && !numbers.iter().any(too_large),
        };
        if right && self.len() as u64 == ty.shape.elements() {
            return Ok(());
        }
        let given = match self {
            Value::Floats(floats) => format!("{} floats", floats.len()),
            Value::Integers(numbers) if numbers.iter().any(too_large) => {
                "integers, some of which have more than 32 bits".into()
            }
            Value::Integers(numbers) => format!("{} integers", numbers.len()),
        };
        Err(ReferenceError::Value { tensor: name.into(), ty, given })
    }

    /// What is left of it in a tensor of such elements: halves are rounded. Caches are rounded as rows come.
    pub(super) fn held(self, element: Element) -> Self {
        match (self, element) {
            (Value::Floats(floats), Element::Float(dtype)) => {
                Value::Floats(floats.into_iter().map(|value| hold(dtype, value)).collect())
            }
            (value, _) => value,
        }
    }
}

/// The number as the type holds it, to nearest, and in half precision within ±65504; `f32` holds all.
pub(super) fn hold(dtype: Dtype, value: f64) -> f64 {
    match dtype {
        Dtype::F32 => value,
        Dtype::F16 => f16::from_f64(value).to_f64().clamp(-65504.0, 65504.0),
        Dtype::Bf16 => bf16::from_f64(value).to_f64(),
    }
}

/// A row of a cache as its type holds it.
pub(super) fn hold_row(cache: CacheDtype, row: &[f64]) -> Vec<f64> {
    let each = |dtype| row.iter().map(|&value| hold(dtype, value)).collect();
    match cache {
        CacheDtype::F32 => each(Dtype::F32),
        CacheDtype::F16 => each(Dtype::F16),
        CacheDtype::Bf16 => each(Dtype::Bf16),
        CacheDtype::Q8_0 => row.chunks(32).flat_map(hold_block).collect(),
    }
}

/// Signed bytes with a scale in half precision: the largest magnitude is about 127 of it.
fn hold_block(block: &[f64]) -> Vec<f64> {
    let largest = block.iter().fold(0f64, |largest, value| largest.max(value.abs()));
    let scale = hold(Dtype::F16, largest / 127.0);
    if scale == 0.0 {
        return vec![0.0; block.len()];
    }
    block.iter().map(|value| scale * (value / scale).round_ties_even().clamp(-127.0, 127.0)).collect()
}
