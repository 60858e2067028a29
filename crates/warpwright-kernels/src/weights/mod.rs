//! Weights: their formats in a GGUF file, their planes on the device, and the kernels that convert between the two.
//!
//! ```text
//!   GGUF rows ──► Repack ──► planes ──► units ──► matrix products
//!      │   ◄── Unpack ◄──
//!      └────► Embedding
//! ```
//!
//! Each format is a file in `formats` that defines its blocks (`format`, `scales`). The rest serves all formats:
//! [`Planes`] is the layout of a matrix on the device (`docs/weights.md`), `codes` the layout of bits there, `units`
//! reads 64 weights of a row for a product, `halves` converts them for the tensor cores, and `gguf` decodes eight
//! weights of a file's row.

mod codes;
mod format;
mod formats;
pub(crate) mod gguf;
pub(crate) mod halves;
mod planes;
pub(crate) mod repack;
mod scales;
pub(crate) mod units;
mod words;

pub(crate) use codes::Floating;
pub use format::Weight;
pub use formats::WeightFormat;
pub(crate) use planes::UNIT;
pub use planes::{Plane, Planes};
pub use repack::{Repack, RepackArgs, Unpack, UnpackArgs};

use crate::data::floats::Dtype;
use format::Quants;
use warpwright_dsl::{BuildError, Choice, Domain};

impl WeightFormat {
    /// The number of the format in a GGUF file.
    pub const fn ggml_type(self) -> u32 {
        self.format().ggml_type
    }

    /// The format with this number in a GGUF file, if it is supported.
    pub fn from_ggml_type(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.ggml_type() == number)
    }

    /// Weights of a block; the length of a row is a multiple of it.
    pub const fn block(self) -> u32 {
        self.format().block
    }

    /// Bytes of a block in the file.
    pub const fn block_bytes(self) -> u32 {
        self.format().bytes
    }

    /// Whole blocks in a row of `k` weights.
    pub const fn blocks(self, k: u32) -> u32 {
        k / self.block()
    }

    /// Bytes of a row of `k` weights in the file.
    pub const fn row_bytes(self, k: u32) -> u64 {
        self.blocks(k) as u64 * self.block_bytes() as u64
    }

    /// Bytes of a matrix of `n` rows of `k` weights: the rows as in the file, followed by an `f32` scale of the matrix
    /// if the format has one ([`has_tensor_scale`](Self::has_tensor_scale)).
    pub const fn matrix_bytes(self, n: u64, k: u32) -> u64 {
        let scale = if self.has_tensor_scale() { 4 } else { 0 };
        n.saturating_mul(self.row_bytes(k)).saturating_add(scale)
    }

    /// Alignment of every block in the file, in bytes, if rows begin at a multiple of 32.
    pub const fn alignment(self) -> u32 {
        let bytes = self.block_bytes();
        let power = 1 << bytes.trailing_zeros();
        if power < 16 { power } else { 16 }
    }

    /// Whether weights are stored as floats, without a scale.
    pub const fn is_float(self) -> bool {
        self.block() == 1
    }

    /// Whether a matrix has a scale of its own in addition to its blocks: a tensor of one `f32` in a file.
    pub const fn has_tensor_scale(self) -> bool {
        match self.quants() {
            Some(quants) => quants.tensor_scale,
            None => false,
        }
    }

    /// The components of the weights in these blocks, without rounding: the reference for kernels. Bytes after the last
    /// whole block and a scale of the matrix are ignored.
    pub fn weights(self, rows: &[u8]) -> Vec<Weight> {
        let number = |quant| Weight { scale: 1.0, quant, minimum: 0.0 };
        let blocks = rows.chunks_exact(self.block_bytes() as usize);
        match (self.quants(), self.float()) {
            (Some(quants), _) => {
                let of_block = |block| (0..self.block() as usize).map(move |i| quants.weight(block, i));
                blocks.flat_map(of_block).collect()
            }
            (None, Dtype::F16) => blocks.map(|bytes| number(scales::half(bytes, 0))).collect(),
            // The upper half of an `f32`, or all of it.
            (None, _) => blocks
                .map(|bytes| {
                    let bits = bytes.iter().fold(0u32, |bits, &byte| bits >> 8 | u32::from(byte) << 24);
                    number(f32::from_bits(bits).into())
                })
                .collect(),
        }
    }

    /// The weights of a matrix from its bytes, [`matrix_bytes`](Self::matrix_bytes) in number.
    pub fn dequantize(self, n: u64, k: u32, bytes: &[u8]) -> Vec<f64> {
        let (rows, scale) = bytes.split_at((n * self.row_bytes(k)) as usize);
        let scale = <[u8; 4]>::try_from(scale).map_or(1.0, |bytes| f32::from_le_bytes(bytes).into());
        self.weights(rows).into_iter().map(|weight| weight.value() * scale).collect()
    }

    /// How its blocks are made; `None` where weights are numbers by themselves.
    pub(crate) const fn quants(self) -> Option<&'static Quants> {
        self.format().quants.as_ref()
    }

    /// The type of weights that are numbers by themselves.
    pub(crate) const fn float(self) -> Dtype {
        match self {
            WeightFormat::F16 => Dtype::F16,
            WeightFormat::Bf16 => Dtype::Bf16,
            _ => Dtype::F32,
        }
    }

    /// The half type for products of this format on the tensor cores.
    pub fn half(self) -> Dtype {
        self.quants().map_or(self.float(), |quants| quants.half)
    }

    /// Whether a row may have `k` weights: whole blocks, and one at least.
    pub(crate) fn check_row(self, field: &'static str, k: u32) -> Result<(), BuildError> {
        if k > 0 && k.is_multiple_of(self.block()) {
            return Ok(());
        }
        Err(BuildError::field(field, k, format!("a multiple of {}, the block of {self}", self.block())))
    }
}

/// The formats that have scales: all but the first three.
pub(crate) const QUANTISED: Domain = Domain::OneOf(<WeightFormat as Choice>::NAMES.split_at(3).1);
