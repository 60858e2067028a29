//! Common parts of the products on the tensor cores: the tile of a block, and its epilogue.
//!
//! ```text
//!             n: 128 or 64 columns of y, rows of W
//!           ┌────────┬────────┐           ┌──┬──┬──┬──┐
//!   tokens  │ warp 0 │ warp 1 │   or      │w0│w1│w2│w3│  for 64, 32 and 16 tokens
//!    128    ├────────┼────────┤           └──┴──┴──┴──┘
//!           │ warp 2 │ warp 3 │
//!           └────────┴────────┘
//! ```
//!
//! For 256 tokens there are eight warps, four rows of two.
//!
//! Blocks that follow one another have the same rows of `W` and other tokens, so that weights come out of
//! the L2 cache for all but the first of them.

use crate::data::floats::Floats;
use warpwright_dsl::*;

/// Weights of a row that a tile has.
pub(crate) const DEPTH: u32 = 64;
/// Weights of a row that an instruction takes.
const INNER: usize = 16;

/// The tile of `y` that a block makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockTile {
    /// Tokens: 16, 32, 64, 128, or 256 with 128 columns.
    pub(crate) rows: u32,
    /// 64 or 128.
    pub(crate) columns: u32,
}

impl BlockTile {
    /// What the field `rows` must be, of what [`ROWS`] has.
    pub(crate) fn check(self) -> Result<(), BuildError> {
        match self.rows {
            16 | 32 | 64 | 128 => Ok(()),
            256 if self.columns == 128 => Ok(()),
            rows => Err(BuildError::field("rows", rows, "16, 32, 64, 128, or 256 with 128 columns")),
        }
    }

    /// Threads of the block.
    pub(crate) fn threads(self) -> u32 {
        if self.rows == 256 { 256 } else { 128 }
    }

    /// Rows and columns that a warp makes.
    pub(crate) fn warp(self) -> [u32; 2] {
        if self.rows >= 128 { [64, self.columns / 2] } else { [self.rows, self.columns / 4] }
    }

    /// Where the warp's part begins in the tile.
    pub(crate) fn warp_place<'k>(self, k: K<'k>) -> [Reg<'k, u32>; 2] {
        let [rows, columns] = self.warp();
        let across = self.columns / columns;
        [k.warp() / across * rows, k.warp() % across * columns]
    }

    /// Where the block's tile begins in `y`.
    pub(crate) fn place<'k>(self, k: K<'k>) -> [Reg<'k, u32>; 2] {
        [k.ctaid() * self.rows, k.ctaid_y() * self.columns]
    }

    /// The launch rule for `n` columns.
    pub(crate) fn launch(self, n: u32) -> LaunchRule {
        let grid = [
            Extent::dim("tokens").per(self.rows.max(1).into()),
            Extent::new(n.div_ceil(self.columns.max(1)).into()),
            Extent::new(1),
        ];
        let resident_blocks = Some(256 / self.threads());
        LaunchRule { resident_blocks, ..LaunchRule::new(self.threads()).grid_3d(grid) }
    }

    /// The warp's part of `x · wᵀ` for a tile of each, and each term of `x`; `place` is [`warp_place`]'s.
    ///
    /// [`warp_place`]: Self::warp_place
    pub(crate) fn multiply<'k, T: Factor>(
        self,
        place: [Reg<'k, u32>; 2],
        x: &[SharedTile<'k, T, Ready>],
        w: SharedTile<'k, T, Ready>,
        sums: Tile<'k, Acc, f32>,
    ) -> Tile<'k, Acc, f32> {
        let ([rows, columns], [row, column]) = (self.warp(), place);
        let w = w.rows(column, columns);
        (0..DEPTH).step_by(INNER).fold(sums, |sums, depth| {
            let w = w.columns(depth, INNER as u32).load_bt();
            x.iter()
                .fold(sums, |sums, x| x.rows(row, rows).columns(depth, INNER as u32).load_a().mma(w, sums))
        })
    }
}

/// What becomes of the sums, and where: `y = scale · factor · sums + bias + residual`, rounded; what `f16` cannot hold becomes
/// ±65504.
#[derive(Clone, Copy)]
pub(crate) struct Outputs<'k> {
    /// Columns of `y`.
    pub(crate) n: u32,
    pub(crate) scales: Option<Ptr<'k, Global, f32>>,
    /// One more factor, of all sums.
    pub(crate) factor: Option<Reg<'k, f32>>,
    pub(crate) bias: Option<Ptr<'k, Global, f32>>,
    pub(crate) residual: Option<AnyPtr<'k>>,
    pub(crate) y: AnyPtr<'k>,
    /// Rows of `y`.
    pub(crate) tokens: Reg<'k, u32>,
}

impl<'k> Outputs<'k> {
    /// Finishes a warp's sums, which begin at a row and a column of `y`: 16 rows at a time, so that few numbers
    /// of the residual are held.
    pub(crate) fn store(&self, sums: Tile<'k, Acc, f32>, [row, column]: [Reg<'k, u32>; 2]) {
        let (k, n, columns) = (row.kernel(), self.n, sums.columns());
        let bias =
            self.bias.map(|bias| k.columns_at(columns, |j| bias.ld_if((column + j).lt(n), column + j, 0.0)));
        for (first, part) in (0..).step_by(16).zip(sums.to_vec().chunks_exact(columns as usize / 2)) {
            self.store_16(k.accumulators_of(16, columns, part), bias, [row + first, column]);
        }
    }

    fn store_16(
        &self,
        mut sums: Tile<'k, Acc, f32>,
        bias: Option<Columns<'k>>,
        [row, column]: [Reg<'k, u32>; 2],
    ) {
        let (k, n, tokens) = (row.kernel(), self.n, self.tokens);
        if let Some(scales) = self.scales {
            sums = sums
                * k.rows_at(16, |i| {
                    let scale = scales.ld_if((row + i).lt(tokens), row + i, 0.0);
                    self.factor.map_or(scale, |factor| scale * factor)
                });
        }
        if let Some(bias) = bias {
            sums = sums + bias;
        }
        if let Some(residual) = self.residual.map(Floats::from) {
            sums = sums.map_at(|i, j, sum| {
                let (i, j) = (row + i, column + j);
                sum + residual.ld_if(i.lt(tokens) & j.lt(n), i * n + j)
            });
        }
        match Floats::from(self.y) {
            Floats::F32(y) => sums.store(y.matrix(tokens, n), row, column),
            Floats::F16(y) => sums.store_finite(y.matrix(tokens, n), row, column),
            Floats::Bf16(y) => sums.store(y.matrix(tokens, n), row, column),
        }
    }
}

/// Tokens that a block's tile may have, as a field: [`BlockTile::check`] has the exceptions.
pub(crate) const ROWS: Domain = Domain::Int { from: 16, to: 256, multiple_of: 16 };
/// Columns that it may have.
pub(crate) const COLUMNS: Domain = Domain::Int { from: 64, to: 128, multiple_of: 64 };
