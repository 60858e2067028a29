//! Weights in the formats of GGUF: matrices to test with, and what the `gguf` package of PyPI makes of blocks.
//!
//! The reference that kernels are held to is `WeightFormat::weights`, which `tests/weights.rs` holds to that package.

use warpwright_dsl::{bf16_bits, f16_bits};
use warpwright_kernels::weights::WeightFormat;

/// Rows of weights, exactly.
pub fn dequantized(format: WeightFormat, bytes: &[u8]) -> Vec<f64> {
    format.weights(bytes).into_iter().map(|weight| weight.value()).collect()
}

/// Random bytes, the same every time for a seed.
pub fn bytes(count: u64, seed: u64) -> Vec<u8> {
    let numbers = super::numbers(count as usize, seed);
    numbers.into_iter().map(|x| ((x + 1.0) * 32_768.0) as u32 as u8).collect()
}

/// A matrix of blocks with any quants and any scales of sub-blocks, whose weights are of the size that models have.
pub fn matrix(format: WeightFormat, n: u32, k: u32, seed: u64) -> Vec<u8> {
    let all = format.matrix_bytes(n.into(), k);
    let mut file = bytes(all, seed);
    let random = super::numbers((all / u64::from(format.block_bytes())) as usize, seed + 1);
    for (block, x) in file.chunks_exact_mut(format.block_bytes() as usize).zip(&random) {
        let mut put = |at: usize, value: f64| {
            block[at..at + 2].copy_from_slice(&f16_bits(value as f32).to_le_bytes());
        };
        match format {
            WeightFormat::F32 => block.copy_from_slice(&(*x as f32).to_le_bytes()),
            WeightFormat::F16 => put(0, *x),
            WeightFormat::Bf16 => block.copy_from_slice(&bf16_bits(*x as f32).to_le_bytes()),
            WeightFormat::Q8_0 | WeightFormat::Q4_0 | WeightFormat::Q5_0 => put(0, *x / 64.0),
            WeightFormat::Q4_1 | WeightFormat::Q5_1 => {
                put(0, *x / 64.0);
                put(2, -(x + 1.0) / 8.0);
            }
            WeightFormat::Q2K => {
                put(80, *x / 64.0);
                put(82, (x + 1.0) / 32.0);
            }
            WeightFormat::Q3K => put(108, *x / 128.0),
            WeightFormat::Q4K | WeightFormat::Q5K => {
                put(0, *x / 512.0);
                put(2, (x + 1.0) / 128.0);
            }
            WeightFormat::Q6K => put(208, *x / 1024.0),
            WeightFormat::Iq4Nl => put(0, *x / 256.0),
            WeightFormat::Iq4Xs => put(0, *x / 4096.0),
            WeightFormat::Mxfp4 => block[0] = (120 + (x * 6.0) as i32) as u8,
            WeightFormat::Nvfp4 => block[..4].iter_mut().for_each(|scale| *scale = *scale % 96 + 8),
        }
    }
    if format.has_tensor_scale() {
        let scale = (0.25 + seed as f32 / 64.0).to_le_bytes();
        let at = file.len() - 4;
        file[at..].copy_from_slice(&scale);
    }
    file
}

/// Blocks of a quantised format, and the bits of the `f32` that the `gguf` package makes of them.
pub fn fixture(format: WeightFormat) -> (Vec<u8>, Vec<u32>) {
    macro_rules! files {
        ($($name:literal)*) => {
            match format.to_string().as_str() {
                $($name => (
                    include_bytes!(concat!("fixtures/", $name, ".blocks")).to_vec(),
                    include_bytes!(concat!("fixtures/", $name, ".f32")).as_slice(),
                ),)*
                other => panic!("no fixture has blocks of {other}"),
            }
        };
    }
    let (blocks, words) = files! {
        "q4_0" "q4_1" "q5_0" "q5_1" "q8_0" "q2_k" "q3_k" "q4_k" "q5_k" "q6_k" "iq4_nl" "iq4_xs" "mxfp4" "nvfp4"
    };
    let bits = words.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    (blocks, bits)
}
