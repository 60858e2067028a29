//! Weights as the numbers that they stand for: ggml's formats, block by block, without rounding.

use super::error::ReferenceError;
use super::value::Value;
use crate::graph::{Element, TensorType};
use half::{bf16, f16};
use warpwright_kernels::{Dtype, WeightFormat};

/// The numbers that rows of a GGUF file stand for, exactly: every product of a scale and a quant is a number of
/// `f64`. Bytes beyond the last whole block are left out.
pub fn dequantize(format: WeightFormat, bytes: &[u8]) -> Vec<f64> {
    let blocks = bytes.chunks_exact(format.block_bytes() as usize);
    blocks.flat_map(|block| dequantize_block(format, block)).collect()
}

/// A weight tensor from its bytes.
pub(super) fn read(name: &str, ty: TensorType, bytes: &[u8]) -> Result<Value, ReferenceError> {
    let elements = ty.shape.elements();
    let needed = match ty.element {
        Element::Weights(format) => format.row_bytes(ty.shape.columns()).saturating_mul(ty.shape.rows()),
        Element::Float(dtype) => elements.saturating_mul(dtype.bytes().into()),
        Element::U64 => elements.saturating_mul(8),
        _ => elements.saturating_mul(4),
    };
    if bytes.len() as u64 != needed {
        return Err(ReferenceError::Bytes { name: name.into(), ty, given: bytes.len(), needed });
    }
    Ok(match ty.element {
        Element::Weights(format) => Value::Floats(dequantize(format, bytes)),
        Element::Float(Dtype::F32) => Value::Floats(dequantize(WeightFormat::F32, bytes)),
        Element::Float(Dtype::F16) => Value::Floats(dequantize(WeightFormat::F16, bytes)),
        Element::Float(Dtype::Bf16) => Value::Floats(dequantize(WeightFormat::Bf16, bytes)),
        Element::U64 => Value::Integers(integers::<8>(bytes)),
        _ => Value::Integers(integers::<4>(bytes)),
    })
}

fn integers<const BYTES: usize>(bytes: &[u8]) -> Vec<u64> {
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
    bytes.chunks_exact(BYTES).map(number).collect()
}

fn half(bytes: &[u8]) -> f64 {
    f16::from_le_bytes([bytes[0], bytes[1]]).to_f64()
}

fn dequantize_block(format: WeightFormat, block: &[u8]) -> Vec<f64> {
    match format {
        WeightFormat::F32 => vec![f32::from_le_bytes([block[0], block[1], block[2], block[3]]).into()],
        WeightFormat::F16 => vec![half(block)],
        WeightFormat::Bf16 => vec![bf16::from_le_bytes([block[0], block[1]]).to_f64()],
        WeightFormat::Q8_0 => block[2..].iter().map(|&q| half(block) * f64::from(q as i8)).collect(),
        WeightFormat::Q4_0 => {
            let (low, high) = nibbles(&block[2..]);
            low.into_iter().chain(high).map(|q| half(block) * (f64::from(q) - 8.0)).collect()
        }
        WeightFormat::Q4K => with_minima(block, |part| {
            let (low, high) = nibbles(&block[16 + part / 2 * 32..][..32]);
            if part % 2 == 0 { low } else { high }
        }),
        WeightFormat::Q5K => with_minima(block, |part| {
            let (low, high) = nibbles(&block[48 + part / 2 * 32..][..32]);
            let four = if part % 2 == 0 { low } else { high };
            // Bit `part` of the 32 bytes before is the fifth.
            four.iter().zip(&block[16..48]).map(|(q, fifth)| q + (fifth >> part & 1) * 16).collect()
        }),
        WeightFormat::Q6K => six_bits(block),
    }
}

/// The lower nibbles of the bytes, and the upper ones.
fn nibbles(bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
    (bytes.iter().map(|byte| byte & 15).collect(), bytes.iter().map(|byte| byte >> 4).collect())
}

/// Eight parts of 32 quants, each with a scale and a minimum of six bits.
///
/// Of the twelve bytes, the first four have the scales of parts 0 to 3 in their lower six bits, the next four
/// the minima; the last four have the lower halves of scales and minima of parts 4 to 7, whose upper two bits are
/// in the upper bits of the first eight bytes.
fn with_minima(block: &[u8], quants: impl Fn(usize) -> Vec<u8>) -> Vec<f64> {
    let (d, dmin, six) = (half(block), half(&block[2..]), &block[4..16]);
    let part = |part: usize| {
        let (scale, minimum) = match part {
            0..4 => (six[part] & 63, six[part + 4] & 63),
            _ => {
                let last = six[part + 4];
                (last & 15 | six[part - 4] >> 6 << 4, last >> 4 | six[part] >> 6 << 4)
            }
        };
        let (scale, minimum) = (d * f64::from(scale), dmin * f64::from(minimum));
        quants(part).into_iter().map(move |q| scale * f64::from(q) - minimum)
    };
    (0..8).flat_map(part).collect()
}

/// Two halves of 128 quants, each with 64 bytes of lower nibbles and 32 of upper pairs of bits; a scale for each 16.
fn six_bits(block: &[u8]) -> Vec<f64> {
    let d = half(&block[208..]);
    let quant = |i: usize| {
        let (half, quarter, at) = (i / 128, i % 128 / 32, i % 32);
        let lower = block[half * 64 + quarter % 2 * 32 + at] >> (quarter / 2 * 4) & 15;
        let upper = block[128 + half * 32 + at] >> (quarter * 2) & 3;
        f64::from(lower + upper * 16) - 32.0
    };
    (0..256).map(|i| d * f64::from(block[192 + i / 16] as i8) * quant(i)).collect()
}
