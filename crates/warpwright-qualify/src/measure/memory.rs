//! Contents of buffers: random, made by the device from a little that the host makes.

use super::Failure;
use crate::common::{encode, numbers as random_numbers};
use crate::models::{Random, random_matrix};
use warpwright_kernels::WeightFormat;
use warpwright_kernels::weights::{Planes, Repack};
use warpwright_ptx::ir::Type;
use warpwright_runtime::{AnyBuffer, Buffer, Stream};

/// Elements of the pattern that numbers repeat: no power of two, so that rows differ.
const PATTERN: usize = 65_521;

/// Weights of the pattern that matrices repeat, at least.
const WEIGHTS: u64 = 1 << 20;

/// `bytes` bytes that repeat a pattern. The device copies what it has until it has all.
fn tiled(stream: &Stream, pattern: &[u8], bytes: u64) -> Result<Buffer<u8>, Failure> {
    let len = usize::try_from(bytes)?;
    let buffer = stream.alloc::<u8>(len)?;
    let mut done = pattern.len().min(len);
    stream.memcpy_htod(&pattern[..done], &buffer.slice(..done)?)?;
    while done < len {
        // Whole patterns, so that what follows goes on where it stopped.
        let next = done.min(len - done);
        stream.memcpy_dtod(&buffer.slice(..next)?, &buffer.slice(done..done + next)?)?;
        done += next;
    }
    Ok(buffer)
}

/// `len` random numbers in (-1, 1) of a type, or small ones where it is an integer.
pub(crate) fn numbers(stream: &Stream, ty: Type, len: u64, seed: u64) -> Result<AnyBuffer, Failure> {
    let scale = if matches!(ty, Type::S8 | Type::U8) { 100.0 } else { 1.0 };
    let values: Vec<f64> =
        random_numbers(PATTERN.min(len.max(1) as usize), seed).iter().map(|x| x * scale).collect();
    let buffer = tiled(stream, &encode(ty, &values), len * u64::from(ty.bytes()))?;
    Ok(buffer.as_any().cast(ty)?)
}

/// Rows of a file, for a matrix of `n × k` random weights as models have them.
pub(crate) fn weights(
    stream: &Stream,
    format: WeightFormat,
    n: u32,
    k: u32,
    seed: u64,
) -> Result<Buffer<u8>, Failure> {
    let rows = WEIGHTS.div_ceil(k.into()).min(n.into());
    let elements = usize::try_from(rows * u64::from(k))?;
    let pattern = random_matrix(format, elements, 1.0 / f64::from(k).sqrt(), &mut Random::new(seed));
    let (bytes, of_rows) = (format.matrix_bytes(n.into(), k), rows * format.row_bytes(k));
    let (rows, scale) = pattern.split_at(usize::try_from(of_rows)?);
    let buffer = tiled(stream, rows, bytes)?;
    if !scale.is_empty() {
        // The scale of the whole matrix stands behind its rows.
        stream.memcpy_htod(scale, &buffer.slice(buffer.len() - scale.len()..)?)?;
    }
    Ok(buffer)
}

/// The same in planes, as products take it.
pub(crate) fn planes(
    stream: &Stream,
    format: WeightFormat,
    n: u32,
    k: u32,
    seed: u64,
) -> Result<AnyBuffer, Failure> {
    let rows = weights(stream, format, n, k, seed)?;
    let planes = stream.alloc::<u8>(usize::try_from(Planes::new(format, n, k).bytes())?)?;
    let kernel = stream.device().kernel(&Repack::new(format, n, k))?;
    kernel.bind().buffer("gguf", &rows).buffer("planes", &planes).launch(stream)?;
    Ok(planes.into_any())
}
