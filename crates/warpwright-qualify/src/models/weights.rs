//! Random weights as a file has them, of magnitudes with which activations stay about as large as they are.

use super::random::Random;
use std::collections::BTreeMap;
use warpwright_graph::{ComputeGraph, Element, Role, TensorType};
use warpwright_kernels::{Dtype, WeightFormat};

/// Bytes of all weights of a graph, by name: a function of the seed, the name and the type, so that graphs of one
/// model have the same.
pub fn random_weights(graph: &ComputeGraph, seed: u64) -> BTreeMap<String, Vec<u8>> {
    let weights = graph.tensors().iter().filter(|info| info.role == Role::Weight);
    weights.map(|info| (info.name.clone(), random_bytes(&info.name, info.ty, seed))).collect()
}

/// Bytes of a weight tensor: rows of a file, or floats.
///
/// Matrices `n × k` have a mean of about 0 and a deviation of about `1 / √k`; norms are between a half and one and
/// a half, biases up to a half, and factors of frequencies from 1 to 8.
///
/// # Panics
///
/// Where no weight has such a type.
pub fn random_bytes(name: &str, ty: TensorType, seed: u64) -> Vec<u8> {
    let mut random = Random::named(seed, name);
    let (elements, k) = (ty.shape.elements() as usize, ty.shape.columns());
    match ty.element {
        Element::Weights(format) => random_matrix(format, elements, 1.0 / f64::from(k).sqrt(), &mut random),
        Element::Float(Dtype::F32) => {
            let number = |random: &mut Random| match name {
                _ if name.contains("norm") => 1.0 + random.signed() / 2.0,
                _ if name.contains("freqs") => 4.5 + 3.5 * random.signed(),
                _ => random.signed() / 2.0,
            };
            (0..elements).flat_map(|_| (number(&mut random) as f32).to_le_bytes()).collect()
        }
        other => panic!("no weights of `{name}`, {other}"),
    }
}

/// So many weights in whole rows, with a mean of about 0 and such a deviation.
pub fn random_matrix(format: WeightFormat, elements: usize, deviation: f64, random: &mut Random) -> Vec<u8> {
    let blocks = elements / format.block() as usize;
    let mut all: Vec<u8> = (0..blocks).flat_map(|_| block(format, deviation, random)).collect();
    if format.has_tensor_scale() {
        // What blocks leave to it.
        all.extend(((deviation / 2.9) as f32).to_le_bytes());
    }
    all
}

/// A block of weights with such a deviation: every bit is random that can be without changing it much.
fn block(format: WeightFormat, deviation: f64, random: &mut Random) -> Vec<u8> {
    let half = |value: f64| half::f16::from_f64(value).to_le_bytes();
    // Uniform numbers deviate by the root of a third.
    let number = |random: &mut Random| random.signed() * deviation * 3f64.sqrt();
    match format {
        WeightFormat::F32 => (number(random) as f32).to_le_bytes().to_vec(),
        WeightFormat::F16 => half(number(random)).to_vec(),
        WeightFormat::Bf16 => half::bf16::from_f64(number(random)).to_le_bytes().to_vec(),
        // Bytes deviate by 74, nibbles by 4.6, their upper bits included by 9.2 and 18.5.
        WeightFormat::Q8_0 => [&half(spread(deviation / 74.0, random))[..], &bytes(32, random)].concat(),
        WeightFormat::Q4_0 => [&half(spread(deviation / 4.6, random))[..], &bytes(16, random)].concat(),
        WeightFormat::Q5_0 => [&half(spread(deviation / 9.2, random))[..], &bytes(20, random)].concat(),
        WeightFormat::Q4_1 | WeightFormat::Q5_1 => {
            let (quants, mean, count) =
                if format == WeightFormat::Q4_1 { (4.6, 7.5, 16) } else { (9.2, 15.5, 20) };
            let d = spread(deviation / quants, random);
            [&half(d)[..], &half(-d * mean), &bytes(count, random)].concat()
        }
        WeightFormat::Q2K => {
            // Quants deviate by 1.1 from 1.5; scales are 8 to 15, and minima as large.
            let d = spread(deviation / (1.1 * 11.5), random);
            let scales: Vec<u8> = (0..16).map(|_| (8 + random.below(8)) as u8 * 0x11).collect();
            [&scales[..], &bytes(64, random), &half(d), &half(d * 1.5)].concat()
        }
        // Quants deviate by 2.3, and scales by 18.5.
        WeightFormat::Q3K => {
            [&bytes(108, random)[..], &half(spread(deviation / (2.3 * 18.5), random))].concat()
        }
        // The table deviates by 67.
        WeightFormat::Iq4Nl => [&half(spread(deviation / 67.0, random))[..], &bytes(16, random)].concat(),
        WeightFormat::Iq4Xs => {
            [&half(spread(deviation / (67.0 * 18.5), random))[..], &bytes(134, random)].concat()
        }
        // Twice the floats of four bits deviate by 5.8.
        WeightFormat::Mxfp4 => {
            let exponent = 128 + spread(deviation / 5.8, random).abs().log2().round() as i32;
            [&[exponent as u8][..], &bytes(16, random)].concat()
        }
        // Scales of about 1.
        WeightFormat::Nvfp4 => {
            let scales: Vec<u8> = (0..4).map(|_| 0x35 + random.below(7) as u8).collect();
            [&scales[..], &bytes(32, random)].concat()
        }
        WeightFormat::Q4K | WeightFormat::Q5K => {
            let (quants, mean) = if format == WeightFormat::Q4K { (4.6, 7.5) } else { (9.2, 15.5) };
            let d = spread(deviation / (quants * 47.0), random);
            let scales: Vec<u8> = (0..8).map(|_| 32 + random.below(32) as u8).collect();
            // Minima that take the mean away, give or take a few.
            let minima: Vec<u8> = scales
                .iter()
                .map(|&scale| (scale + random.below(9) as u8).saturating_sub(4).min(63))
                .collect();
            let upper = if format == WeightFormat::Q4K { 0 } else { 32 };
            let six_bits = pack_six_bits(&scales, &minima);
            [&half(d)[..], &half(d * mean), &six_bits, &bytes(upper + 128, random)].concat()
        }
        WeightFormat::Q6K => {
            let d = spread(deviation / (18.5 * 96.0), random);
            let scale = |random: &mut Random| {
                let scale = 64 + random.below(64) as i8;
                (if random.once_in(2) { -scale } else { scale }) as u8
            };
            let quants = bytes(192, random);
            let scales: Vec<u8> = (0..16).map(|_| scale(random)).collect();
            [&quants[..], &scales, &half(d)].concat()
        }
    }
}

/// About that number: scales of blocks differ.
fn spread(about: f64, random: &mut Random) -> f64 {
    about * (1.0 + random.signed() / 4.0)
}

fn bytes(count: usize, random: &mut Random) -> Vec<u8> {
    (0..count).map(|_| random.bits() as u8).collect()
}

/// Eight scales and eight minima of six bits in twelve bytes, as ggml packs them.
fn pack_six_bits(scales: &[u8], minima: &[u8]) -> Vec<u8> {
    let lower = |six: &[u8], i: usize| six[i] & 63 | (six[i + 4] >> 4) << 6;
    let first = (0..4).map(|i| lower(scales, i));
    let second = (0..4).map(|i| lower(minima, i));
    let third = (4..8).map(|i| scales[i] & 15 | (minima[i] & 15) << 4);
    first.chain(second).chain(third).collect()
}
