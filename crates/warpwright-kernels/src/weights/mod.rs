//! Weights: their formats in a GGUF file, their planes on the device, and the kernels between the two.
//!
//! ```text
//!   GGUF rows ──► Repack ──► planes ──► matrix products
//!      │   ◄── Unpack ◄──
//!      └────► Embedding
//! ```
//!
//! [`WeightFormat`] is what a tensor's type in the file says; [`Planes`] is where its parts lie on the
//! device, as `docs/weights.md` says. What a block's bytes in a file mean is decoded here, on the device. Planes are decoded
//! here for products with matrices (`chunks`), and in `linear::gemv` for products with vectors, whose lanes share a row out
//! in another way.

pub(crate) mod chunks;
pub(crate) mod gguf;
mod planes;
pub(crate) mod repack;
mod words;

pub use planes::{Part, Plane, Planes};
pub use repack::{Repack, RepackArgs, Unpack, UnpackArgs};

use warpwright_dsl::BuildError;

/// How a weight matrix is stored: a row of `k` weights is `k / block` consecutive blocks in the file.
///
/// The block formats are those of ggml (`ggml-common.h`); numbers are little-endian, `d` and `dmin` are `f16`.
///
/// | format | weights, bytes of a block | weight |
/// | --- | --- | --- |
/// | `f32`, `f16`, `bf16` | 1, 4 or 2 | itself |
/// | `q8_0` | 32, 34 | `d · q`, `q` a signed byte |
/// | `q4_0` | 32, 18 | `d · (q - 8)`, `q` of 4 bits |
/// | `q4_k` | 256, 144 | `d · sc · q - dmin · m`, `q` of 4 bits, `sc` and `m` of 6 bits for each 32 |
/// | `q5_k` | 256, 176 | the same, `q` of 5 bits |
/// | `q6_k` | 256, 210 | `d · sc · (q - 32)`, `q` of 6 bits, `sc` a signed byte for each 16 |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, warpwright_dsl::Choice)]
pub enum WeightFormat {
    /// Single precision.
    F32,
    /// Half precision.
    F16,
    /// The upper half of single precision.
    Bf16,
    /// Signed bytes, a scale for each 32.
    Q8_0,
    /// Four bits, a scale for each 32.
    Q4_0,
    /// Four bits, scales and minima in superblocks of 256.
    Q4K,
    /// Five bits, scales and minima in superblocks of 256.
    Q5K,
    /// Six bits, scales in superblocks of 256.
    Q6K,
}

impl WeightFormat {
    /// The number by which a GGUF file names it.
    pub const fn ggml_type(self) -> u32 {
        match self {
            WeightFormat::F32 => 0,
            WeightFormat::F16 => 1,
            WeightFormat::Q4_0 => 2,
            WeightFormat::Q8_0 => 8,
            WeightFormat::Q4K => 12,
            WeightFormat::Q5K => 13,
            WeightFormat::Q6K => 14,
            WeightFormat::Bf16 => 30,
        }
    }

    /// The format that a GGUF file names by that number, if it is one of these.
    pub fn from_ggml_type(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.ggml_type() == number)
    }

    /// Weights of a block: the length of a row is a multiple of it.
    pub const fn block(self) -> u32 {
        match self {
            WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 => 1,
            WeightFormat::Q8_0 | WeightFormat::Q4_0 => 32,
            WeightFormat::Q4K | WeightFormat::Q5K | WeightFormat::Q6K => 256,
        }
    }

    /// Bytes of a block in the file.
    pub const fn block_bytes(self) -> u32 {
        match self {
            WeightFormat::F32 => 4,
            WeightFormat::F16 | WeightFormat::Bf16 => 2,
            WeightFormat::Q8_0 => 34,
            WeightFormat::Q4_0 => 18,
            WeightFormat::Q4K => 144,
            WeightFormat::Q5K => 176,
            WeightFormat::Q6K => 210,
        }
    }

    /// Blocks of a row of `k` weights; what is less than a block is not counted.
    pub const fn blocks(self, k: u32) -> u32 {
        k / self.block()
    }

    /// Bytes of a row of `k` weights in the file.
    pub const fn row_bytes(self, k: u32) -> u64 {
        self.blocks(k) as u64 * self.block_bytes() as u64
    }

    /// Bytes that the address of every block in the file is a multiple of, where rows begin at a multiple
    /// of 32.
    pub const fn alignment(self) -> u32 {
        let bytes = self.block_bytes();
        let power = 1 << bytes.trailing_zeros();
        if power < 16 { power } else { 16 }
    }

    /// Whether a row may have `k` weights: whole blocks, and one at least.
    pub(crate) fn check_row(self, field: &'static str, k: u32) -> Result<(), BuildError> {
        if k > 0 && k.is_multiple_of(self.block()) {
            return Ok(());
        }
        Err(BuildError::field(field, k, format!("a multiple of {}, the block of {self}", self.block())))
    }

    /// Whether weights are numbers by themselves, with no scale beside them.
    pub const fn is_float(self) -> bool {
        self.block() == 1
    }
}
