//! Structured sparsity: the positions of the values of a left factor whose zeros are left out.
//!
//! A row is cut into chunks, each of which keeps half of its elements. A chunk's four bits of metadata are two
//! positions, the lower one first:
//!
//! | factors | chunk | kept | a position stands for |
//! |---|---|---|---|
//! | tf32 | 2 | 1 | half an element: only 0, 1 and 2, 3 mean something |
//! | f16, bf16, 8 bits | 4 | 2 | an element |
//! | 4 bits | 8 | 4 | two elements |
//!
//! The lanes of a group of four (g = ℓ / 4) hold the metadata of rows g and g + 8. The selector f determines which
//! lanes are used; the others are ignored. One register holds 8 chunks:
//!
//! ```text
//!   16 and 32 bits, 4 chunks in a row:  lane f          row g in the low half, row g + 8 in the high
//!   16 and 32 bits, 8 chunks:           lanes 2f, 2f+1  likewise, chunks 0–3 and 4–7
//!    4 and  8 bits, 8 chunks:           lanes 2f, 2f+1  row g, row g + 8
//!    4 and  8 bits, 16 chunks:          lanes 0 … 3     likewise chunks 0–7, then 8–15
//! ```

use std::fmt;

/// Rows of every sparse left factor.
const ROWS: usize = 16;

/// The sparsity of a left factor of 16 rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sparsity {
    /// Columns, including zeros.
    pub k: usize,
    /// Bits of an element.
    pub bits: u32,
    /// The lanes that hold the metadata.
    pub selector: usize,
}

/// Metadata without a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidMetadata {
    /// The lane whose register contains it, or that of tensor memory.
    pub lane: usize,
    /// The four bits.
    pub bits: u8,
    /// Row of the chunk in the left factor.
    pub row: usize,
    /// First column of the chunk.
    pub column: usize,
}

impl fmt::Display for InvalidMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InvalidMetadata { lane, bits, row, column } = self;
        write!(
            f,
            "sparse metadata {bits:#06b} of lane {lane}, for row {row} from column {column} on, means nothing: it is two \
             different positions, the lower one first for `::ordered_metadata` (`tf32`: 0b0100 or 0b1110); equal ones are \
             for zeros"
        )
    }
}

impl std::error::Error for InvalidMetadata {}

impl Sparsity {
    /// Number of elements of a chunk.
    pub fn chunk(self) -> usize {
        match self.bits {
            32 => 2,
            4 => 8,
            _ => 4,
        }
    }

    /// Lane that holds the metadata of a chunk, and its lowest bit there.
    fn place(self, row: usize, chunk: usize) -> (usize, usize) {
        let (group, upper) = (4 * (row % 8), row / 8);
        let chunks = self.k / self.chunk();
        match (self.bits, chunks) {
            (16 | 32, 4) => (group + self.selector % 4, 16 * upper + 4 * chunk),
            (16 | 32, _) => (group + 2 * (self.selector % 2) + chunk / 4, 16 * upper + 4 * (chunk % 4)),
            (_, 8) => (group + 2 * (self.selector % 2) + upper, 4 * chunk),
            _ => (group + 2 * (chunk / 8) + upper, 4 * (chunk % 8)),
        }
    }

    /// The column of each kept value, 16 × k/2, row-major, from the metadata of all lanes. `ordered` metadata must
    /// have the lower position first. The `values` stand in the same order.
    ///
    /// # Errors
    ///
    /// If a chunk's positions are equal and its values are not all zero, are out of order where order is required, or,
    /// for elements of 32 bits, do not denote an element: the ISA gives these no meaning. Equal positions are what
    /// CUTLASS writes for a chunk of zeros.
    pub fn columns<T: Default + PartialEq>(
        self,
        metadata: &[u32; 32],
        ordered: bool,
        values: &[T],
    ) -> Result<Vec<u8>, InvalidMetadata> {
        let width = self.chunk();
        let mut columns = Vec::with_capacity(ROWS * self.k / 2);
        for row in 0..ROWS {
            for chunk in 0..self.k / width {
                let (lane, shift) = self.place(row, chunk);
                let bits = (metadata[lane] >> shift & 15) as u8;
                let column = width * chunk;
                if !keep(self.bits, bits, column, ordered, values, &mut columns) {
                    return Err(InvalidMetadata { lane, bits, row, column });
                }
            }
        }
        Ok(columns)
    }
}

/// Adds the columns of the values that are kept of a chunk that begins at `column`, by its four bits of metadata: whether
/// these mean something for elements of so many bits. Of all `values`, those of the chunk are the next ones.
pub(crate) fn keep<T: Default + PartialEq>(
    element: u32,
    bits: u8,
    column: usize,
    ordered: bool,
    values: &[T],
    columns: &mut Vec<u8>,
) -> bool {
    let (first, second, base) = (bits & 3, bits >> 2, column as u8);
    let kept = if element == 4 { 4 } else { 2 };
    let fits = match element {
        32 => bits == 0b0100 || bits == 0b1110,
        _ if first == second => {
            let values = values.get(columns.len()..columns.len() + kept);
            values.is_some_and(|values| values.iter().all(|value| *value == T::default()))
        }
        _ if ordered => first < second,
        _ => true,
    };
    match element {
        _ if !fits => {}
        32 => columns.push(base + first / 2),
        4 => columns.extend([first, second].into_iter().flat_map(|p| {
            let pair = base + 2 * p;
            [pair, pair + 1]
        })),
        _ => columns.extend([base + first, base + second]),
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONZERO: [u8; 16 * 64] = [1; 16 * 64];

    #[test]
    fn positions_of_two_in_four_are_those_of_the_metadata() {
        // f16, m16n8k32, second pair of lanes: row 3 (g = 3), row 11.
        let sparsity = Sparsity { k: 32, bits: 16, selector: 1 };
        let mut metadata = [0x4444_4444; 32];
        metadata[4 * 3 + 2] = 0x9444_444e;
        metadata[4 * 3 + 3] = 0x4444_84c4;
        let columns = sparsity.columns(&metadata, true, &NONZERO).unwrap();
        let row = |row: usize| &columns[row * 16..][..16];
        assert_eq!(row(3)[..4], [2, 3, 4, 5], "0b1110 in the lowest chunk of the first lane");
        assert_eq!(row(3)[8..], [16, 17, 20, 23, 24, 25, 28, 30]);
        assert_eq!(row(11)[4..8], [8, 9, 13, 14], "0b1001 in the highest chunk of the first lane");
        assert_eq!(row(11)[8..], [16, 17, 20, 21, 24, 25, 28, 29]);
    }

    #[test]
    fn a_row_has_lanes_of_its_own_with_narrow_elements() {
        let sparsity = Sparsity { k: 64, bits: 8, selector: 0 };
        let mut metadata = [0x4444_4444; 32];
        metadata[4 * 6 + 3] = 0xe444_4444;
        let columns = sparsity.columns(&metadata, true, &NONZERO).unwrap();
        assert_eq!(columns[14 * 32 + 30..15 * 32], [62, 63], "row 14, chunk 15");
        assert_eq!(columns[6 * 32 + 30..7 * 32], [60, 61]);

        let sparsity = Sparsity { k: 64, bits: 4, selector: 1 };
        let mut metadata = [0x4444_4444; 32];
        metadata[4 * 6 + 2] = 0x4444_4494;
        let columns = sparsity.columns(&metadata, true, &NONZERO).unwrap();
        assert_eq!(columns[6 * 32 + 4..6 * 32 + 8], [10, 11, 12, 13], "pairs 1 and 2 of the second chunk");
    }

    #[test]
    fn one_of_two_is_named_by_both_of_its_halves() {
        let sparsity = Sparsity { k: 8, bits: 32, selector: 2 };
        let mut metadata = [0; 32];
        for group in 0..8 {
            metadata[4 * group + 2] = 0x4e4e_44ee;
        }
        let columns = sparsity.columns(&metadata, true, &NONZERO).unwrap();
        assert_eq!(columns[..4], [1, 3, 4, 6]);
        assert_eq!(columns[8 * 4..9 * 4], [1, 2, 5, 6]);
        metadata[2] = 0x4e4e_448e;
        let refused = sparsity.columns(&metadata, true, &NONZERO).unwrap_err();
        assert_eq!(refused, InvalidMetadata { lane: 2, bits: 8, row: 0, column: 2 });
    }

    #[test]
    fn order_matters_where_it_must() {
        let sparsity = Sparsity { k: 16, bits: 16, selector: 0 };
        let metadata = [0x1111_1111; 32];
        assert_eq!(sparsity.columns(&metadata, false, &NONZERO).unwrap()[..2], [1, 0]);
        assert!(sparsity.columns(&metadata, true, &NONZERO).is_err());
        assert!(sparsity.columns(&[0x5555_5555; 32], false, &NONZERO).is_err());
    }

    #[test]
    fn zeros_may_have_any_positions() {
        let sparsity = Sparsity { k: 16, bits: 16, selector: 0 };
        let mut values = [1; 16 * 8];
        let mut metadata = [0x4444_4444; 32];
        // Row 1, its third chunk.
        metadata[4] = 0x4444_4044;
        assert_eq!(
            sparsity.columns(&metadata, true, &values),
            Err(InvalidMetadata { lane: 4, bits: 0, row: 1, column: 8 })
        );
        values[8 + 4..8 + 6].fill(0);
        let columns = sparsity.columns(&metadata, true, &values).unwrap();
        assert_eq!(columns[8..16], [0, 1, 4, 5, 8, 8, 12, 13]);
        // Four values of four bits share a chunk.
        let sparsity = Sparsity { k: 64, bits: 4, selector: 0 };
        let mut values = [1; 16 * 32];
        let mut metadata = [0x4444_4444; 32];
        metadata[0] = 0x4444_4454;
        values[4..7].fill(0);
        let refused = InvalidMetadata { lane: 0, bits: 5, row: 0, column: 8 };
        assert_eq!(sparsity.columns(&metadata, true, &values), Err(refused));
        values[7] = 0;
        assert_eq!(sparsity.columns(&metadata, true, &values).unwrap()[4..8], [10, 11, 10, 11]);
    }
}
