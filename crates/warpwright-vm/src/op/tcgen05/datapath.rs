//! Where the rows and columns of a product stand in tensor memory.
//!
//! Each lane of tensor memory has a part of the tensor core, which multiplies the row of `a` that stands in the same
//! lane, if `a` is in tensor memory, with the columns of `b` that are its own. Where a block has fewer than 128 rows,
//! its lanes share the columns, or only half of the lanes are used (layouts of the ISA, 9.7.18.10.5; r is a row of the
//! block, c a column of the product of n columns):
//!
//! ```text
//!   A, D   128 rows            lane r                          column c
//!   B, E    64 rows            lane r + 64 · (c / (n / 2))     column c % (n / 2)
//!   C, F    64 rows            lane r % 16 + 32 · (r / 16)     column c               from lane 0 or 16 on
//!   G       32 rows            lane r + 32 · (c / (n / 4))     column c % (n / 4)
//! ```

use super::descriptor::Shape;

/// How the lanes are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DataPath {
    /// Rows of a block.
    pub(super) rows: usize,
    /// Parts that the columns are in, each in lanes of its own.
    pub(super) parts: usize,
    /// Half of the lanes is used.
    is_half: bool,
}

impl DataPath {
    /// Of a product of `blocks` blocks, with `b` stationary or not.
    pub(super) fn new(shape: &Shape, blocks: usize, stationary: bool) -> DataPath {
        let rows = shape.m / blocks;
        let is_half = rows == 64 && !stationary && (blocks == 1 || shape.sparse);
        DataPath { rows, parts: if is_half { 1 } else { 128 / rows }, is_half }
    }

    /// The lane of a row, in a part.
    #[inline(always)]
    pub(super) fn lane(&self, row: usize, part: usize) -> usize {
        if self.is_half { row % 16 + row / 16 * 32 } else { row + self.rows * part }
    }

    /// Whether the product may begin at that lane.
    pub(super) fn begins_at(&self, lane: usize) -> bool {
        lane == 0 || self.is_half && lane == 16
    }
}
