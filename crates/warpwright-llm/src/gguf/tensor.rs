//! Description of a tensor in a file.

use super::format::TensorFormat;
use std::ops::Range;

/// A tensor's name, shape, format and location.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorInfo {
    /// Its name: `blk.0.attn_q.weight`.
    pub name: String,
    /// Its dimensions in ggml's order, at most four: the length of a row first, then the number of rows. A matrix that
    /// maps `k` numbers to `n` has `[k, n]`.
    pub dims: Vec<u64>,
    /// The format of its elements.
    pub ty: TensorFormat,
    /// Which of the file's parts it is in.
    pub(super) part: usize,
    /// Its bytes in that part.
    pub(super) range: Range<usize>,
}

impl TensorInfo {
    /// Number of its elements.
    pub fn elements(&self) -> u64 {
        self.dims.iter().product()
    }

    /// Bytes of its data.
    pub fn bytes(&self) -> u64 {
        self.range.len() as u64
    }

    /// The offset of its data in its part, in bytes.
    pub fn offset(&self) -> u64 {
        self.range.start as u64
    }

    /// The index of the part that it is in, from 0.
    pub fn part(&self) -> usize {
        self.part
    }

    /// The length of a row.
    pub fn row_len(&self) -> u64 {
        self.dims.first().copied().unwrap_or(1)
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.dims.iter().skip(1).product()
    }
}
