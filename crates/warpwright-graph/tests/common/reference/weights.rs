//! Weights as the numbers that they stand for, without rounding.

use super::error::ReferenceError;
use super::value::Value;
use warpwright_graph::{Element, TensorType};
use warpwright_kernels::{Dtype, WeightFormat};

/// The numbers that rows of a GGUF file stand for, exactly: every product of a scale and a quant is a number of
/// `f64`. Bytes beyond the last whole block are left out.
pub(crate) fn dequantize(format: WeightFormat, rows: &[u8]) -> Vec<f64> {
    format.weights(rows).into_iter().map(|weight| weight.value()).collect()
}

/// A weight tensor from its bytes.
pub(super) fn read(name: &str, ty: TensorType, bytes: &[u8]) -> Result<Value, ReferenceError> {
    let elements = ty.shape.elements();
    let needed = match ty.element {
        Element::Weights(format) => format.matrix_bytes(ty.shape.rows(), ty.shape.columns()),
        Element::Float(dtype) => elements.saturating_mul(dtype.bytes().into()),
        Element::U64 => elements.saturating_mul(8),
        _ => elements.saturating_mul(4),
    };
    if bytes.len() as u64 != needed {
        return Err(ReferenceError::Bytes { name: name.into(), ty, given: bytes.len(), needed });
    }
    let floats =
        |format: WeightFormat| Value::Floats(format.dequantize(ty.shape.rows(), ty.shape.columns(), bytes));
    Ok(match ty.element {
        Element::Weights(format) => floats(format),
        Element::Float(Dtype::F32) => floats(WeightFormat::F32),
        Element::Float(Dtype::F16) => floats(WeightFormat::F16),
        Element::Float(Dtype::Bf16) => floats(WeightFormat::Bf16),
        Element::U64 => Value::Integers(integers::<8>(bytes)),
        _ => Value::Integers(integers::<4>(bytes)),
    })
}

fn integers<const BYTES: usize>(bytes: &[u8]) -> Vec<u64> {
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
    bytes.chunks_exact(BYTES).map(number).collect()
}
