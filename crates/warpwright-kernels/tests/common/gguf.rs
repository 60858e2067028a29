//! Weights in the formats of GGUF, read one at a time: the reference that kernels are held to.
//!
//! `tests/weights.rs` holds it to what the `gguf` package of PyPI makes of the same bytes.

use super::f16;
use warpwright_kernels::weights::WeightFormat;

/// What a weight is made of: `scale · quant - minimum`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Weight {
    pub(crate) scale: f64,
    pub(crate) quant: i32,
    pub(crate) minimum: f64,
}

impl Weight {
    pub(crate) fn value(self) -> f64 {
        self.scale * f64::from(self.quant) - self.minimum
    }
}

fn half(bytes: &[u8], at: usize) -> f64 {
    f16(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

/// Scale and minimum of sub-block `j` of 8, from the 12 bytes that hold them.
pub(crate) fn six_bits(s: &[u8], j: usize) -> (u8, u8) {
    if j < 4 {
        (s[j] & 63, s[j + 4] & 63)
    } else {
        ((s[j + 4] & 15) | (s[j - 4] >> 6) << 4, (s[j + 4] >> 4) | (s[j] >> 6) << 4)
    }
}

/// Weight `i` of a block of a quantised format.
pub(crate) fn weight(format: WeightFormat, block: &[u8], i: usize) -> Weight {
    let nibble = |byte: u8, high: bool| i32::from(if high { byte >> 4 } else { byte & 15 });
    match format {
        WeightFormat::Q8_0 => {
            Weight { scale: half(block, 0), quant: i32::from(block[2 + i] as i8), minimum: 0.0 }
        }
        WeightFormat::Q4_0 => {
            Weight { scale: half(block, 0), quant: nibble(block[2 + i % 16], i >= 16) - 8, minimum: 0.0 }
        }
        WeightFormat::Q4K | WeightFormat::Q5K => {
            let (d, dmin, j) = (half(block, 0), half(block, 2), i / 32);
            let (scale, minimum) = six_bits(&block[4..16], j);
            let (fifth, quants) = match format {
                WeightFormat::Q5K => (block[16 + i % 32] >> j & 1, &block[48..]),
                _ => (0, &block[16..]),
            };
            let low = nibble(quants[j / 2 * 32 + i % 32], j % 2 == 1);
            Weight {
                scale: d * f64::from(scale),
                quant: low + 16 * i32::from(fifth),
                minimum: dmin * f64::from(minimum),
            }
        }
        WeightFormat::Q6K => {
            let (part, quarter, l) = (i / 128, i % 128 / 32, i % 32);
            let low = nibble(block[part * 64 + quarter % 2 * 32 + l], quarter >= 2);
            let upper = block[128 + part * 32 + l] >> (2 * quarter) & 3;
            let scale = f64::from(block[192 + i / 16] as i8) * half(block, 208);
            Weight { scale, quant: (low | i32::from(upper) << 4) - 32, minimum: 0.0 }
        }
        WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 => {
            panic!("{format} has no blocks")
        }
    }
}

/// Rows of weights, exactly.
pub(crate) fn dequantized(format: WeightFormat, bytes: &[u8]) -> Vec<f64> {
    let block = format.block_bytes() as usize;
    let blocks = bytes.chunks_exact(block);
    match format {
        WeightFormat::F32 => blocks.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]).into()).collect(),
        WeightFormat::F16 => blocks.map(|b| half(b, 0)).collect(),
        WeightFormat::Bf16 => {
            blocks.map(|b| f32::from_bits(u32::from_le_bytes([0, 0, b[0], b[1]])).into()).collect()
        }
        _ => {
            let weights = |block| (0..format.block() as usize).map(move |i| weight(format, block, i).value());
            blocks.flat_map(weights).collect()
        }
    }
}

/// Blocks of a quantised format, and the bits of the `f32` that the `gguf` package makes of them.
pub(crate) fn fixture(format: WeightFormat) -> (Vec<u8>, Vec<u32>) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/gguf");
    let read = |extension: &str| {
        let path = folder.join(format!("{format}.{extension}"));
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let words = read("f32");
    let bits = words.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    (read("blocks"), bits)
}
