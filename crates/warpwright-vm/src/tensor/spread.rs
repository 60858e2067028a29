//! The layout of matrices over the lanes of a warp.
//!
//! Every layout but one consists of tiles, each of which a warp holds in one register. With lane ℓ, g = ℓ / 4, t = ℓ
//! mod 4 and e elements in a register:
//!
//! ```text
//!   a: 8 × 4e, lane holds row g, columns e·t …      b: 4e × 8, lane holds column g, rows e·t …
//!   c, d: 8 × 8, lane holds row g, columns 2t and 2t + 1, in one register or two
//! ```
//!
//! Tiles are numbered down the columns of tiles: the next register holds the next tile down. The ISA specifies this
//! for `mma`. For `wmma` it specifies only the number of registers; if that exceeds the number of tiles, the
//! registers hold the tiles again from the first one on.
//!
//! The exception is `mma.m8n8k4` with `f16` factors: [`Spread::quad`].

/// Lanes of a warp.
const LANES: usize = 32;

/// The positions of a matrix's elements in the lanes' registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    rows: usize,
    columns: usize,
    /// Elements of a lane.
    held: usize,
    /// Row-major position of element i of lane ℓ, at i · 32 + ℓ.
    positions: Vec<u16>,
}

impl Spread {
    /// The left factor, `rows` × `columns`: `held` elements in each lane, `packed` of them in a
    /// register.
    pub fn left(rows: usize, columns: usize, packed: usize, held: usize) -> Self {
        let (down, across) = (rows / 8, columns / (4 * packed));
        Self::new(rows, columns, held, |lane, index| {
            let tile = index / packed;
            let (row, column) = (tile % down, tile / down % across);
            (8 * row + lane / 4, packed * (4 * column + lane % 4) + index % packed)
        })
    }

    /// The right factor, `rows` × `columns`: `held` elements in each lane, `packed` of them in a
    /// register.
    pub fn right(rows: usize, columns: usize, packed: usize, held: usize) -> Self {
        let (down, across) = (rows / (4 * packed), columns / 8);
        Self::new(rows, columns, held, |lane, index| {
            let tile = index / packed;
            let (row, column) = (tile % down, tile / down % across);
            (packed * (4 * row + lane % 4) + index % packed, 8 * column + lane / 4)
        })
    }

    /// The addend or the result.
    pub fn accumulator(rows: usize, columns: usize) -> Self {
        let down = rows / 8;
        Self::new(rows, columns, rows * columns / LANES, |lane, index| {
            let tile = index / 2;
            (8 * (tile % down) + lane / 4, 8 * (tile / down) + 2 * (lane % 4) + index % 2)
        })
    }

    /// The four matrices of `mma.m8n8k4` with `f16` factors, stacked. Lanes q·4 … q·4 + 3 and 16 + q·4 … 19 + q·4
    /// hold matrix q.
    pub fn quad(side: QuadSide) -> Self {
        let (rows, columns, held) = side.shape();
        Self::new(4 * rows, columns, held, |lane, index| {
            let (row, column) = side.position(lane, index);
            (lane % 16 / 4 * rows + row, column)
        })
    }

    fn new(
        rows: usize,
        columns: usize,
        held: usize,
        position: impl Fn(usize, usize) -> (usize, usize),
    ) -> Self {
        let mut positions = Vec::with_capacity(held * LANES);
        for index in 0..held {
            for lane in 0..LANES {
                let (row, column) = position(lane, index);
                debug_assert!(row < rows && column < columns);
                positions.push((row * columns + column) as u16);
            }
        }
        Spread { rows, columns, held, positions }
    }

    /// Rows of the matrix.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of the matrix.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of elements that each lane holds.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Row and column of element `index` of a lane: `index` counts from the low end of the first
    /// register.
    ///
    /// # Panics
    ///
    /// If the lane or element does not exist.
    pub fn position(&self, lane: usize, index: usize) -> (usize, usize) {
        let position = usize::from(self.lanes(index)[lane]);
        (position / self.columns, position % self.columns)
    }

    /// Row-major positions of element `index` of all lanes.
    ///
    /// # Panics
    ///
    /// If the element does not exist.
    #[inline(always)]
    pub fn lanes(&self, index: usize) -> &[u16; LANES] {
        self.positions[index * LANES..].first_chunk().expect("the element exists")
    }
}

/// A matrix of `mma.m8n8k4` with `f16` factors, and the choice of its layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuadSide {
    /// The left factor, 8 × 4, row-major or not.
    Left {
        /// `.row`
        row_major: bool,
    },
    /// The right factor, 4 × 8, row-major or not.
    Right {
        /// `.row`
        row_major: bool,
    },
    /// Sums of 32 or 16 bits, 8 × 8.
    Accumulator {
        /// `.f32`
        wide: bool,
    },
}

impl QuadSide {
    /// Rows and columns of one of the four matrices, and its elements in a lane.
    const fn shape(self) -> (usize, usize, usize) {
        match self {
            QuadSide::Left { .. } => (8, 4, 4),
            QuadSide::Right { .. } => (4, 8, 4),
            QuadSide::Accumulator { .. } => (8, 8, 8),
        }
    }

    fn position(self, lane: usize, index: usize) -> (usize, usize) {
        let (inner, outer) = (lane % 4, 4 * (lane / 16));
        match self {
            QuadSide::Left { row_major: true } => (inner + outer, index),
            QuadSide::Left { row_major: false } => (index + outer, inner),
            QuadSide::Right { row_major: true } => (inner, index + outer),
            QuadSide::Right { row_major: false } => (index, inner + outer),
            QuadSide::Accumulator { wide: false } => (inner + outer, index),
            QuadSide::Accumulator { wide: true } => {
                ((lane & 1) + (index & 2) + outer, (index & 4) + (lane & 2) + (index & 1))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// How often each element is held.
    fn holders(spread: &Spread) -> HashMap<(usize, usize), usize> {
        let mut found = HashMap::new();
        for lane in 0..LANES {
            for index in 0..spread.held() {
                *found.entry(spread.position(lane, index)).or_default() += 1;
            }
        }
        found
    }

    #[test]
    fn fragments_stand_where_the_isa_puts_them() {
        let (lane, g, t) = (22, 5, 2);
        // mma.m16n8k16 with f16: a0 … a7, b0 … b3, c0 … c3.
        let a = Spread::left(16, 16, 2, 8);
        let rows = [g, g, g + 8, g + 8, g, g, g + 8, g + 8];
        let columns = [4, 5, 4, 5, 12, 13, 12, 13];
        for index in 0..8 {
            assert_eq!(a.position(lane, index), (rows[index], columns[index]));
        }
        let b = Spread::right(16, 8, 2, 4);
        assert_eq!([0, 1, 2, 3].map(|i| b.position(lane, i)), [(4, g), (5, g), (12, g), (13, g)]);
        let c = Spread::accumulator(16, 8);
        let expected = [(g, 4), (g, 5), (g + 8, 4), (g + 8, 5)];
        assert_eq!([0, 1, 2, 3].map(|i| c.position(lane, i)), expected);
        // mma.m16n8k32 with s8: a12 … a15 are the fourth register.
        let a = Spread::left(16, 32, 4, 16);
        assert_eq!(a.position(lane, 13), (g + 8, 4 * t + 1 + 16));
        // mma.m16n8k8 with tf32.
        let a = Spread::left(16, 8, 1, 4);
        assert_eq!(
            [0, 1, 2, 3].map(|i| a.position(lane, i)),
            [(g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)]
        );
        // mma.m16n8k16 with f64: a6 and b3.
        assert_eq!(Spread::left(16, 16, 1, 8).position(lane, 6), (g, 12 + t));
        assert_eq!(Spread::right(16, 8, 1, 4).position(lane, 3), (12 + t, g));
        // mma.m16n8k256 with b1: a100 and b40.
        assert_eq!(Spread::left(16, 256, 32, 128).position(lane, 100), (g + 8, 32 * t + 4 + 128));
        assert_eq!(Spread::right(256, 8, 32, 64).position(lane, 40), (32 * t + 8 + 128, g));
    }

    #[test]
    fn every_element_is_held_as_often_as_every_other() {
        // wmma, f16: factors take 16 elements of each lane in every shape.
        for (m, n, k) in [(16, 16, 16), (8, 32, 16), (32, 8, 16)] {
            for (spread, elements) in
                [(Spread::left(m, k, 2, 16), m * k), (Spread::right(k, n, 2, 16), k * n)]
            {
                let holders = holders(&spread);
                assert_eq!(holders.len(), elements);
                assert!(holders.values().all(|&count| count == 32 * 16 / elements));
            }
            assert!(holders(&Spread::accumulator(m, n)).len() == m * n);
        }
        assert_eq!(holders(&Spread::left(8, 128, 32, 32)).len(), 8 * 128);
        assert_eq!(holders(&Spread::right(32, 8, 8, 8)).len(), 32 * 8);
        assert_eq!(holders(&Spread::left(16, 8, 1, 4)).len(), 16 * 8);
    }

    #[test]
    fn a_quad_holds_each_element_of_its_product_once() {
        let sides = [
            QuadSide::Left { row_major: true },
            QuadSide::Left { row_major: false },
            QuadSide::Right { row_major: true },
            QuadSide::Right { row_major: false },
            QuadSide::Accumulator { wide: true },
            QuadSide::Accumulator { wide: false },
        ];
        for side in sides {
            let (rows, columns, held) = side.shape();
            let spread = Spread::quad(side);
            assert_eq!(holders(&spread).len(), 4 * rows * columns, "{side:?}");
            for lane in [4, 5, 6, 7, 20, 21, 22, 23] {
                for index in 0..held {
                    assert_eq!(spread.position(lane, index).0 / rows, 1, "the second product's lanes");
                }
            }
        }
        let wide = Spread::quad(QuadSide::Accumulator { wide: true });
        assert_eq!(wide.position(23, 6), (8 + 1 + 2 + 4, 4 + 2));
        assert_eq!(Spread::quad(QuadSide::Left { row_major: false }).position(22, 3), (8 + 7, 2));
    }
}
